package core_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/occupancy"
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// A backend whose compiler prepends a word to the source and counts compilations in a file.
// It loads only source text and its own output.
const fakeCompiler = fakeBackend + `
	#include <stdlib.h>
	struct yt_module { unsigned char image[256]; uint64_t n; };
	static yt_status load(yt_device *d, const void *p, uint64_t n, const char *opts, yt_module **out, yt_error *e) {
		(void)d; (void)opts;
		yt_module *m = calloc(1, sizeof *m);
		if (memcmp(p, "\177ELF", 4) == 0) {
			if (n < 10 || memcmp((const char *)p + 4, "good", 4) != 0) {
				free(m); snprintf(e->msg, sizeof e->msg, "not for this driver"); return e->code = YT_E_INVALID; }
			memcpy(m->image, p, n); m->n = n;
		} else {
			FILE *f = fopen(COUNT, "a"); fputc('x', f); fclose(f);
			memcpy(m->image, "\177ELFgood", 8); memcpy(m->image + 8, p, n); m->n = n + 8;
		}
		*out = m; return YT_OK; }
	static yt_status image(yt_module *m, void *out, uint64_t *n, yt_error *e) { (void)e; if (out) memcpy(out, m->image, m->n); *n = m->n; return YT_OK; }
	static yt_status unload(yt_module *m, yt_error *e) { (void)e; free(m); return YT_OK; }
	static yt_status get(yt_module *m, const char *name, uint64_t *k, yt_kernel_info *i, yt_error *e) {
		(void)m; if (strcmp(name, "scale") != 0) { snprintf(e->msg, sizeof e->msg, "no kernel %s", name); return e->code = YT_E_INVALID; }
		*k = 7; i->registers = 32; i->max_threads = 1024; return YT_OK; }
	yt_status yt_get_api(uint32_t want, yt_api *out, uint32_t n, yt_error *e) {
		(void)want; (void)n; (void)e; fill(out); out->abi_minor = 1;
		out->module_load = load; out->module_image = image; out->module_unload = unload; out->kernel_get = get; return YT_OK; }
`

func TestModuleCacheRebuildsBadEntries(t *testing.T) {
	count := filepath.Join(t.TempDir(), "compiled")
	lib := build(t, "compiler", fmt.Sprintf("#define COUNT %q\n", count)+fakeCompiler)
	compiled := func() int {
		b, err := os.ReadFile(count)
		if err != nil {
			t.Fatal(err)
		}
		return len(b)
	}
	dir := t.TempDir()
	load := func(wantCached bool, want int) {
		t.Helper()
		d, err := core.Open(core.Options{Backend: core.CUDA, Library: lib})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		m, cached, err := d.LoadModule([]byte(".version 7.4"), "", core.OpenCache(dir))
		if err != nil || cached != wantCached || compiled() != want {
			t.Fatalf("cached %v, compiled %d times, %v; want %v and %d", cached, compiled(), err, wantCached, want)
		}
		k, err := m.Kernel("scale")
		if err != nil || k.Registers != 32 {
			t.Errorf("%+v, %v", k, err)
		}
		if _, err := m.Kernel("none"); !errors.Is(err, core.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "no kernel none") {
			t.Errorf("%v", err)
		}
	}
	load(false, 1)
	load(true, 1) // another start
	// An intact entry of an older driver: the cache cannot detect it, but the driver
	// refuses it.
	key := core.CacheKey{Source: []byte(".version 7.4\x00"), Capability: "0.0", Driver: "0"}.ID()
	c := core.OpenCache(dir)
	c.Drop(key)
	if _, _, err := c.Get(key, func() ([]byte, error) { return []byte("\x7fELFold image"), nil }); err != nil {
		t.Fatal(err)
	}
	load(false, 2)
	load(true, 2)
}

func TestCPUSupportsNoModules(t *testing.T) {
	d := openCPU(t)
	if _, _, err := d.LoadModule([]byte(".version 7.4"), "", nil); !errors.Is(err, core.ErrNotSupported) || !strings.Contains(fmt.Sprint(err), "need a GPU") {
		t.Errorf("%v", err)
	}
}

func TestInvalidLaunchConfigurationsAreRefused(t *testing.T) {
	d := openCPU(t)
	for _, tc := range []struct {
		k        core.KernelConfig
		wantText string // "": accepted
	}{
		{core.KernelConfig{Kernel: "preprocess", Block: 128}, ""},
		{core.KernelConfig{Kernel: "preprocess"}, ""},
		{core.KernelConfig{Kernel: "gemm", Block: 256, Tile: 64}, ""},
		{core.KernelConfig{Kernel: "preprocess", Block: 512}, "32 to 256 in steps of 32"},
		{core.KernelConfig{Kernel: "preprocess", Block: 100}, "32 to 256 in steps of 32"},
		{core.KernelConfig{Kernel: "reduce", Block: 128}, "256 to 256"},
		{core.KernelConfig{Kernel: "preprocess", Tile: 16}, "has no tile"},
		{core.KernelConfig{Kernel: "gemm", Tile: 48}, "a power of two from 32 to 256"},
		{core.KernelConfig{Kernel: "record"}, "no built-in kernel"},
		{core.KernelConfig{Kernel: ""}, "no built-in kernel"},
		{core.KernelConfig{Kernel: "preprocess", Block: -1}, "0 to 32767"},
	} {
		err := d.Configure(tc.k)
		if tc.wantText == "" && err != nil {
			t.Errorf("%+v: %v", tc.k, err)
		}
		if tc.wantText != "" && (!errors.Is(err, core.ErrInvalid) || !strings.Contains(fmt.Sprint(err), tc.wantText)) {
			t.Errorf("%+v: %v does not contain %q", tc.k, err, tc.wantText)
		}
	}
}

// The compiler cannot call the core, which is in C; it has the same table in Go.
func TestKernelLimitsOfCompilerAndCoreMatch(t *testing.T) {
	var want []occupancy.Limits
	for _, l := range c.Kernels() {
		if l.BlockMin != l.BlockMax && l.Tile == 0 {
			want = append(want, occupancy.Limits{Kernel: l.Name, Min: l.BlockMin, Max: l.BlockMax, Step: l.BlockStep})
		}
	}
	slices.SortFunc(want, func(a, b occupancy.Limits) int { return strings.Compare(a.Kernel, b.Kernel) })
	if got := occupancy.Launchable(); !slices.Equal(got, want) {
		t.Errorf("internal/occupancy has %+v, the core %+v", got, want)
	}
}

func TestOpenAppliesThePlansLaunchConfigurations(t *testing.T) {
	d, err := core.Open(core.Options{Backend: core.CPU, Kernels: []core.KernelConfig{{Kernel: "preprocess", Block: 128}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := core.Open(core.Options{Backend: core.CPU, Kernels: []core.KernelConfig{{Kernel: "preprocess", Block: 100}}}); !errors.Is(err, core.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "in steps of 32") {
		t.Errorf("%v", err)
	}
}

func TestDigestOfKernelsCoversTheirSources(t *testing.T) {
	d := openCPU(t)
	cpu, err := d.Sources()
	if err != nil || len(cpu) != 64 {
		t.Errorf("%q, %v", cpu, err)
	}
	lib := build(t, "compiler", fmt.Sprintf("#define COUNT %q\n", filepath.Join(t.TempDir(), "n"))+fakeCompiler)
	g, err := core.Open(core.Options{Backend: core.CUDA, Library: lib})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	first, err := g.Sources()
	if err != nil || first == cpu {
		t.Errorf("%q, %v", first, err)
	}
}
