package core_test

import (
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

func openStrict(t *testing.T) *core.Device {
	t.Helper()
	d, err := core.Open(core.Options{Backend: core.Strict})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// A strict device has the memory of a card: what the CPU must not access it cannot access, and
// what a driver copies without being asked is refused.
func TestStrictDeviceHasItsOwnMemory(t *testing.T) {
	d := openStrict(t)
	for _, tc := range []struct {
		mode    core.Mode
		refused bool
		host    bool
	}{
		{core.MemAuto, false, false}, {core.MemDevice, false, false}, {core.MemPinned, false, true},
		{core.MemMapped, false, true}, {core.MemHost, true, false}, {core.MemManaged, true, false},
	} {
		b, err := d.Alloc(1000, tc.mode)
		if errors.Is(err, core.ErrNotSupported) != tc.refused {
			t.Fatalf("%v: %v; refused: %v", tc.mode, err, tc.refused)
		}
		if tc.refused {
			continue
		}
		if (b.Bytes() != nil) != tc.host || b.Mode() == core.MemAuto {
			t.Errorf("%v: mode %v, host memory %v", tc.mode, b.Mode(), b.Bytes() != nil)
		}
	}
	choice, err := d.ChooseMemory(core.MemAuto, core.TouchBoth)
	if err != nil || choice.Mode != core.MemDevice || !strings.Contains(choice.Text, "pinned") {
		t.Errorf("%+v, %v", choice, err)
	}
	if info, err := d.Info(); err != nil || info.Integrated || info.Backend != core.Strict {
		t.Errorf("%+v, %v", info, err)
	}
}

// Buffers are at addresses that fault.
func TestStrictDeviceMemoryFaults(t *testing.T) {
	api, f := c.CPU()
	dev, g := api.DeviceOpen(0, 0, "", c.OpenStrict)
	if f.Code != 0 || g.Code != 0 {
		t.Fatal(f, g)
	}
	read := func(at uint64) (fault bool) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { fault = recover() != nil }()
		return *(*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))) == 1
	}
	for _, bytes := range []uint64{1, 4096, 5000, 3 << 20} {
		b, f := api.BufAlloc(dev, uint32(core.MemDevice), bytes, 1<<21)
		if f.Code != 0 {
			t.Fatal(f)
		}
		alias, f := api.BufAddress(dev, b.ID)
		if f.Code != 0 || alias == b.Device || b.Host != nil || alias%(1<<21) != 0 {
			t.Errorf("%+v: %#x, %v", b, alias, f)
		}
		if !read(b.Device) || !read(b.Device+bytes-1) || read(alias) || read(alias+bytes-1) {
			t.Errorf("%d bytes: the program can read device memory, or the kernels cannot", bytes)
		}
		if f := api.BufFree(dev, b.ID); f.Code != 0 {
			t.Error(f)
		}
		if _, f := api.BufAddress(dev, b.ID); f.Code == 0 {
			t.Error("a freed buffer has an address")
		}
		if !read(alias) {
			t.Error("a freed buffer is mapped")
		}
	}
	if f := api.DeviceClose(dev); f.Code != 0 {
		t.Error(f)
	}
}

// A frame is uploaded, processed and downloaded: the result is that of the CPU backend, and the
// copies are exactly those of the list.
func TestStrictDeviceComputesAndCounts(t *testing.T) {
	pre := core.Preprocess{Format: core.YUYV, Width: 64, Height: 48, OutW: 32, OutH: 32}
	frame := make([]byte, core.FrameBytes(pre.Format, pre.Width, pre.Height))
	for i := range frame {
		frame[i] = byte(i * 7)
	}
	results := map[string][]float32{}
	for _, backend := range []string{core.CPU, core.Strict} {
		d, err := core.Open(core.Options{Backend: backend})
		if err != nil {
			t.Fatal(err)
		}
		alloc := func(n int, m core.Mode) *core.Buffer {
			b, err := d.Alloc(n, m)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		staging, in := alloc(len(frame), core.MemPinned), alloc(len(frame), core.MemDevice)
		out, result := alloc(4*pre.OutLen(), core.MemDevice), alloc(4*pre.OutLen(), core.MemPinned)
		copy(staging.Bytes(), frame)
		s, err := d.OpenStream(core.StreamOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.List().Copy(in.All(), staging.All()).Preprocess(out.All(), [3]core.Region{in.All()}, &pre).Copy(result.All(), out.All()).Submit(); err != nil {
			t.Fatal(err)
		}
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		results[backend] = append([]float32(nil), result.Float32s()...)
		m, err := d.Memory()
		if err != nil {
			t.Fatal(err)
		}
		if m.Copies.ToDevice != uint64(len(frame)) || m.Copies.ToHost != uint64(4*pre.OutLen()) || m.Copies.PageableCopies != 0 {
			t.Errorf("%s: copied %+v", backend, m.Copies)
		}
		// Go memory is copied through pinned memory: a card does not read it.
		whole := pre
		whole.Planes, whole.Out = [3][]byte{frame}, make([]float32, pre.OutLen())
		if err := d.Preprocess(t.Context(), whole); err != nil {
			t.Fatal(err)
		}
		if m, err = d.Memory(); err != nil || (m.Copies.ToDevice > uint64(len(frame))) != (backend == core.Strict) {
			t.Errorf("%s: copied %+v, %v", backend, m.Copies, err)
		}
		if !slices.Equal(whole.Out, results[backend]) {
			t.Errorf("%s: the result of Go memory differs", backend)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	for i, v := range results[core.CPU] {
		if v != results[core.Strict][i] {
			t.Fatalf("value %d: %g, on the CPU %g", i, results[core.Strict][i], v)
		}
	}
}
