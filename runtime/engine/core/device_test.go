package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

func alloc(t testing.TB, d *core.Device, n int, m core.Mode) *core.Buffer {
	t.Helper()
	b, err := d.Alloc(n, m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func stream(t testing.TB, d *core.Device) *core.Stream {
	t.Helper()
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestListRunsInOrderAndRepeatedly(t *testing.T) {
	d := openCPU(t)
	s := stream(t, d)
	a, b := alloc(t, d, 64, core.MemHost), alloc(t, d, 64, core.MemPinned)
	hidden := alloc(t, d, 64, core.MemDevice)
	start, end, err := events(d)
	if err != nil {
		t.Fatal(err)
	}
	l := s.List().Record(start).
		Fill(a.All(), 7).
		Copy(hidden.All(), a.All()).
		Fill(a.At(0, 32), 9).
		Copy(b.At(16, 48), hidden.At(0, 48)).
		Record(end)
	for range 2 {
		clear(b.Bytes())
		if err := l.Submit(); err != nil {
			t.Fatal(err)
		}
		if err := s.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		if want := append(make([]byte, 16), bytes.Repeat([]byte{7}, 48)...); !bytes.Equal(b.Bytes(), want) {
			t.Errorf("got % x", b.Bytes())
		}
	}
	if took, err := end.Since(start); err != nil || took < 0 {
		t.Errorf("event time: %v, %v", took, err)
	}
	if _, err := start.Since(end); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("time backwards: %v", err)
	}
	if hidden.Bytes() != nil || hidden.Float32s() != nil {
		t.Error("device memory has a host address, so a mistake would pass here and fault on a GPU")
	}
}

func events(d *core.Device) (a, b *core.Event, err error) {
	a, err1 := d.NewEvent()
	b, err2 := d.NewEvent()
	return a, b, errors.Join(err1, err2)
}

func TestInvalidListRunsNothing(t *testing.T) {
	d, other := openCPU(t), openCPU(t)
	s := stream(t, d)
	b, c := alloc(t, d, 64, core.MemAuto), alloc(t, d, 64, core.MemAuto)
	foreign, freed := alloc(t, other, 64, core.MemAuto), alloc(t, d, 64, core.MemAuto)
	if err := freed.Release(); err != nil {
		t.Fatal(err)
	}
	fresh, err := d.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	p := &core.Preprocess{Width: 2, Height: 2, OutW: 1, OutH: 1}
	for _, tc := range []struct {
		name     string
		add      func(*core.List)
		wantText string
	}{
		{"copy past the end", func(l *core.List) { l.Copy(b.At(0, 33), c.At(32, 33)) }, "bytes 32 to 65 are outside a buffer of 64"},
		{"offset that wraps", func(l *core.List) { l.Fill(core.Region{Buf: b, Off: 1 << 62, Len: 1 << 62}, 1) }, "outside a buffer of 64"},
		{"negative length", func(l *core.List) { l.Fill(b.At(0, -1), 1) }, "length -1"},
		{"lengths differ", func(l *core.List) { l.Copy(b.At(0, 8), c.At(0, 4)) }, "source has 4 bytes, destination 8"},
		{"overlap", func(l *core.List) { l.Copy(b.At(0, 8), b.At(4, 8)) }, "overlap"},
		{"freed buffer", func(l *core.List) { l.Fill(freed.All(), 1) }, "was freed"},
		{"another device's buffer", func(l *core.List) { l.Fill(foreign.All(), 1) }, "another device"},
		{"no buffer", func(l *core.List) { l.Fill(core.Region{}, 1) }, "buffer is nil"},
		{"half a float", func(l *core.List) { l.Reduce(b.At(0, 4), c.At(0, 6), core.Sum) }, "whole, aligned elements"},
		{"unaligned float", func(l *core.List) { l.Reduce(b.At(2, 4), c.At(0, 4), core.Sum) }, "whole, aligned elements"},
		{"no room for the result", func(l *core.List) { l.Reduce(b.At(0, 3), c.At(0, 4), core.Sum) }, "needs 4"},
		{"tensor without room", func(l *core.List) { l.Preprocess(b.At(0, 8), [3]core.Region{c.At(0, 4), c.At(4, 2)}, p) }, "tensor has 12 bytes"},
		{"no event", func(l *core.List) { l.Record(nil) }, "event is nil"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clear(b.Bytes())
			l := s.List().Fill(b.All(), 0xff)
			tc.add(l)
			err := l.Submit()
			if !errors.Is(err, core.ErrInvalid) || !strings.Contains(fmt.Sprint(err), tc.wantText) {
				t.Errorf("got %v, want an error that contains %q", err, tc.wantText)
			}
			if !strings.Contains(fmt.Sprint(err), "command 1:") {
				t.Errorf("%v does not name the command", err)
			}
			if b.Bytes()[0] != 0 {
				t.Error("the command before the invalid one ran")
			}
		})
	}
	if _, err := fresh.Since(fresh); !errors.Is(err, core.ErrNotReady) {
		t.Errorf("an event that was never recorded: %v", err)
	}
	l := s.List()
	for range core.MaxCommands + 1 {
		l.Fill(b.All(), 1)
	}
	if err := l.Submit(); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("too many commands: %v", err)
	}
	if err := s.List().Submit(); err != nil {
		t.Errorf("an empty list: %v", err)
	}
}

// A frame that lives in device memory makes the same tensor as one in Go memory.
func TestListWithPreprocess(t *testing.T) {
	d := openCPU(t)
	p := frame1080()
	if err := d.Preprocess(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	s := stream(t, d)
	n := len(p.Planes[0]) + len(p.Planes[1])
	up, frame := alloc(t, d, n, core.MemPinned), alloc(t, d, n, core.MemDevice)
	tensor, back := alloc(t, d, 4*p.OutLen(), core.MemDevice), alloc(t, d, 4*p.OutLen(), core.MemPinned)
	copy(up.Bytes(), p.Planes[0])
	copy(up.Bytes()[len(p.Planes[0]):], p.Planes[1])
	planes := [3]core.Region{frame.At(0, len(p.Planes[0])), frame.At(len(p.Planes[0]), len(p.Planes[1]))}
	if err := s.List().Copy(frame.All(), up.All()).Preprocess(tensor.All(), planes, &p).Copy(back.All(), tensor.All()).Submit(); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i, v := range back.Float32s() {
		if v != p.Out[i] {
			t.Fatalf("value %d: %g, in place %g", i, v, p.Out[i])
		}
	}
}

func TestAllocationErrors(t *testing.T) {
	d := openCPU(t)
	if _, err := d.Alloc(1<<60, core.MemHost); !errors.Is(err, core.ErrOOM) {
		t.Errorf("an exbibyte: %v", err)
	}
	var e *core.Error
	if _, err := d.Alloc(1<<60, core.MemHost); !errors.As(err, &e) || e.Code != 2 || e.Sticky || !strings.Contains(e.Msg, "1152921504606846976 bytes") {
		t.Errorf("got %+v", e)
	}
	for _, n := range []int{0, -1} {
		if _, err := d.Alloc(n, core.MemHost); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := d.Alloc(1, core.Mode(99)); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("unknown mode: %v", err)
	}
}

func TestCloseReleasesTheRemainingObjects(t *testing.T) {
	d, err := core.Open(core.Options{Backend: core.CPU})
	if err != nil {
		t.Fatal(err)
	}
	b, s := alloc(t, d, 1, core.MemHost), stream(t, d)
	ev, err := d.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range []func() error{b.Release, s.Release, ev.Release} {
		if err := release(); err != nil {
			t.Error(err)
		}
		if err := release(); !errors.Is(err, core.ErrClosed) {
			t.Errorf("second release: %v", err)
		}
	}
	kept, left := alloc(t, d, 1, core.MemHost), stream(t, d)
	if err := d.Preprocess(context.Background(), frame1080()); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("close with a buffer and a stream open: %v", err)
	}
	for name, err := range map[string]error{
		"close": d.Close(), "release": kept.Release(), "health": d.Health(), "wait": left.Wait(context.Background()),
		"submit": left.List().Submit(), "preprocess": d.Preprocess(context.Background(), frame1080()),
	} {
		if !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s after close: %v", name, err)
		}
	}
}

func TestCPUDeviceInfo(t *testing.T) {
	d := openCPU(t)
	info, err := d.Info()
	if err != nil {
		t.Fatal(err)
	}
	if info.Backend != "cpu" || info.Name == "" || info.Cores == nil || info.MemTotal == nil || !strings.Contains(info.Build, "compiler") {
		t.Errorf("%+v", info)
	}
	if info.Capability != nil || info.Driver != nil {
		t.Errorf("a CPU with compute capability or driver: %+v", info)
	}
	if err := d.Health(); err != nil {
		t.Error(err)
	}
}

func TestOpenWithoutCUDAReportsTheReason(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.so")
	if err := os.WriteFile(text, []byte("not a library\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, library string
		want          error
		wantText      string
	}{
		{"absent", filepath.Join(dir, "none.so"), core.ErrNoBackend, "install the package yoctune-cuda"},
		{"not a library", text, core.ErrNoBackend, "text.so"},
		{"relative path", "libyoctune_cuda.so", core.ErrInvalid, "must be an absolute path"},
		{"NUL in the path", "/a\x00b", core.ErrInvalid, "must be an absolute path"},
		{"no table", build(t, "no_table", `int other;`), core.ErrABI, "symbol yt_get_api is missing"},
		{"another major", build(t, "major", `
			yt_status yt_get_api(uint32_t want, yt_api *out, uint32_t n, yt_error *e) {
				(void)out; (void)n; snprintf(e->msg, sizeof e->msg, "ABI %u was requested, this has 3.0", want);
				return e->code = YT_E_ABI; }`), core.ErrABI, "this has 3.0"},
		{"a shorter table", build(t, "short", `
			yt_status yt_get_api(uint32_t want, yt_api *out, uint32_t n, yt_error *e) {
				(void)want; (void)n; (void)e; out->abi_major = YT_ABI_MAJOR; out->struct_size = 64; return YT_OK; }`),
			core.ErrABI, "install the library built with it"},
		{"no driver", build(t, "no_driver", fakeBackend+`
			static yt_status count(uint32_t *n, yt_error *e) { *n = 0;
				snprintf(e->msg, sizeof e->msg, "no NVIDIA driver on this machine"); return e->code = YT_E_NO_BACKEND; }
			yt_status yt_get_api(uint32_t want, yt_api *out, uint32_t n, yt_error *e) {
				(void)want; (void)n; (void)e; fill(out); out->device_count = count; return YT_OK; }`),
			core.ErrNoBackend, "no NVIDIA driver"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := core.Open(core.Options{Backend: core.CUDA, Library: tc.library})
			if !errors.Is(err, tc.want) || !strings.Contains(fmt.Sprint(err), tc.wantText) {
				t.Errorf("got %v, want %v and %q", err, tc.want, tc.wantText)
			}
			d, err := core.Open(core.Options{Library: tc.library})
			if err != nil {
				t.Fatalf("auto: %v", err)
			}
			defer d.Close()
			if d.Backend() != "cpu" || !strings.Contains(d.Note(), tc.wantText) {
				t.Errorf("auto chose %s and noted %q", d.Backend(), d.Note())
			}
		})
	}
	if _, err := core.Open(core.Options{Backend: "vulkan"}); !errors.Is(err, core.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "use auto, cpu, cuda or strict") {
		t.Errorf("unknown backend: %v", err)
	}
	if _, err := core.Open(core.Options{Backend: core.CPU, Index: 1}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("second CPU: %v", err)
	}
}

// A library that loads is used, and sticky faults are distinguished from transient ones.
func TestStickyFaultOfALoadedBackend(t *testing.T) {
	lib := build(t, "faulty", fakeBackend+`
		static yt_status dead(yt_error *e) {
			e->code = YT_E_KERNEL_FAULT; e->sticky = 1; e->native = 700;
			snprintf(e->msg, sizeof e->msg, "an illegal memory access was encountered");
			return YT_E_KERNEL_FAULT; }
		static yt_status submit(yt_stream *s, const yt_cmd *c, uint32_t n, yt_error *e) { (void)s; (void)c; (void)n; return dead(e); }
		static yt_status health(yt_device *d, yt_error *e) { (void)d; return dead(e); }
		yt_status yt_get_api(uint32_t want, yt_api *out, uint32_t n, yt_error *e) {
			(void)want; (void)n; (void)e; fill(out); out->submit = submit; out->device_health = health; return YT_OK; }`)
	d, err := core.Open(core.Options{Library: lib})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Backend() != "fake" || d.Note() != "" {
		t.Fatalf("auto chose %s and noted %q", d.Backend(), d.Note())
	}
	for name, err := range map[string]error{"submit": stream(t, d).List().Submit(), "health": d.Health()} {
		var e *core.Error
		if !errors.Is(err, core.ErrKernelFault) || !errors.As(err, &e) || !e.Sticky || e.Native != 700 {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(fmt.Sprint(err), "unusable until this process exits") {
			t.Errorf("%s: %v does not report that a new process is needed", name, err)
		}
	}
}

// fakeBackend fills a table with functions that succeed.
const fakeBackend = `
	static int handle;
	static yt_status one(uint32_t *n, yt_error *e) { (void)e; *n = 1; return YT_OK; }
	static yt_status dopen(uint32_t i, const yt_open_options *o, yt_device **d, yt_error *e) { (void)i; (void)o; (void)e; *d = (yt_device *)&handle; return YT_OK; }
	static yt_status dinfo(yt_device *d, yt_device_info *i, yt_error *e) { (void)d; (void)i; (void)e; return YT_OK; }
	static yt_status dok(yt_device *d, yt_error *e) { (void)d; (void)e; return YT_OK; }
	static yt_status sopen(yt_device *d, const yt_stream_options *o, yt_stream **s, yt_error *e) { (void)d; (void)o; (void)e; *s = (yt_stream *)&handle; return YT_OK; }
	static yt_status sok(yt_stream *s, yt_error *e) { (void)s; (void)e; return YT_OK; }
	static yt_status spoll(yt_stream *s, uint64_t ns, yt_error *e) { (void)s; (void)ns; (void)e; return YT_OK; }
	static void fill(yt_api *a) {
		memset(a, 0, sizeof *a); a->struct_size = sizeof *a; a->abi_major = YT_ABI_MAJOR; a->name = "fake"; a->build_id = "test";
		a->device_count = one; a->device_open = dopen; a->device_info = dinfo; a->device_health = dok; a->device_close = dok;
		a->stream_open = sopen; a->stream_destroy = sok; a->stream_poll = spoll; }
`

// build compiles a backend library with the compiler that cgo used.
func build(t *testing.T, name, code string) string {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	dir := t.TempDir()
	src, lib := filepath.Join(dir, name+".c"), filepath.Join(dir, name+".so")
	code = "#include \"yt_backend.h\"\n#include <stdio.h>\n#include <string.h>\n" + code
	if err := os.WriteFile(src, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append(strings.Fields(cc), "-std=c11", "-shared", "-fPIC", "-I", "c", src, "-o", lib)
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return lib
}

func TestSubmitDoesNotAllocate(t *testing.T) {
	d := openCPU(t)
	l := stream(t, d).List().Fill(alloc(t, d, 64, core.MemHost).At(0, 1), 1)
	if n := testing.AllocsPerRun(100, func() {
		if err := l.Submit(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("submitting allocates %g times", n)
	}
}

// Lists through Go, beside a call into C that does nothing: what they cost more is
// what the core adds. least-ns is the quickest of many short turns, which other programs
// on the machine disturb least.
// A list that is submitted again is not checked again, but must notice all that has changed.
func TestListSubmittedAgainNoticesChanges(t *testing.T) {
	d := openCPU(t)
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	alloc := func() *core.Buffer {
		b, err := d.Alloc(64, core.MemHost)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	submit := func(l *core.List) {
		t.Helper()
		if err := l.Submit(); err != nil {
			t.Fatal(err)
		}
	}
	a, b, other := alloc(), alloc(), alloc()
	one, two := s.List().Fill(a.At(0, 4), 1), s.List().Fill(b.At(0, 4), 2)
	for range 3 {
		submit(one)
		submit(two)
		submit(two)
		if got := []byte{a.Bytes()[0], b.Bytes()[0]}; !bytes.Equal(got, []byte{1, 2}) {
			t.Fatalf("two lists in turn wrote %v", got)
		}
		clear(a.Bytes())
		clear(b.Bytes())
	}
	one.Fill(a.At(4, 4), 3)
	submit(one)
	if a.Bytes()[4] != 3 {
		t.Error("a command that was added after the first submission did not run")
	}
	if err := other.Release(); err != nil {
		t.Fatal(err)
	}
	submit(one)
	if err := a.Release(); err != nil {
		t.Fatal(err)
	}
	a = alloc() // takes the slot of the released one
	clear(a.Bytes())
	if err := one.Submit(); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("a list that names a released buffer: %v", err)
	}
	if a.Bytes()[0] != 0 {
		t.Error("the list wrote to the buffer that replaced the released one")
	}
	submit(two)
	if err := one.Reset().Fill(a.At(0, 4), 5).Submit(); err != nil || a.Bytes()[0] != 5 {
		t.Errorf("after Reset: %v, %d", err, a.Bytes()[0])
	}
}

func BenchmarkSubmit(b *testing.B) {
	d := openCPU(b)
	s, err := d.NewStream()
	if err != nil {
		b.Fatal(err)
	}
	buf, err := d.Alloc(64, core.MemHost)
	if err != nil {
		b.Fatal(err)
	}
	turns := func(b *testing.B, do func() error) {
		const turn = 200
		least := time.Duration(math.MaxInt64)
		b.ReportAllocs()
		for b.Loop() {
			start := time.Now()
			for range turn {
				if err := do(); err != nil {
					b.Fatal(err)
				}
			}
			least = min(least, time.Since(start))
		}
		b.ReportMetric(float64(least)/turn, "least-ns")
	}
	b.Run("empty call", func(b *testing.B) {
		turns(b, func() error { core.EmptyCall(); return nil })
	})
	for _, n := range []int{0, 1, 16, 64} {
		b.Run(fmt.Sprintf("commands=%d", n), func(b *testing.B) {
			l := s.List()
			for range n {
				l.Convert(buf.At(0, 1), buf.At(1, 1), core.Region{}, core.ConvertArgs{In: uint8(core.U8), Out: uint8(core.U8), N: 1, C: 1, H: 1, W: 1, Scale: 1})
			}
			turns(b, l.Submit)
		})
	}
}
