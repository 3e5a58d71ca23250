package core_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/occupancy"
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

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
	lib := build(t, "other", fakeBackend+`
		yt_status yt_get_api(uint32_t want, yt_api *out, uint32_t n, yt_error *e) { (void)want; (void)n; (void)e; fill(out); return YT_OK; }`)
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
