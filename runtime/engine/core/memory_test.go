package core_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// For any order of allocations and releases, buffers never overlap and the totals are correct.
// After the last release every slab is one free block.
func TestEmptyPoolIsOneBlock(t *testing.T) {
	d := openCPU(t)
	rapid.Check(t, func(t *rapid.T) {
		const slab = 1 << 16
		p, err := d.NewPool(core.PoolOptions{Mode: core.MemMapped, Slab: slab})
		if err != nil {
			t.Fatal(err)
		}
		type live struct {
			b    *core.Buffer
			fill byte
		}
		var all []live
		used := uint64(0)
		for i := range rapid.IntRange(1, 120).Draw(t, "steps") {
			if len(all) == 0 || rapid.Bool().Draw(t, "allocate") {
				n := rapid.OneOf(rapid.IntRange(1, 600), rapid.IntRange(1, slab)).Draw(t, "bytes")
				b, err := p.Alloc(n)
				if err != nil {
					t.Fatal(err)
				}
				if uintptr(unsafe.Pointer(&b.Bytes()[0]))%256 != 0 {
					t.Fatalf("%d bytes at %p", n, &b.Bytes()[0])
				}
				for j := range b.Bytes() {
					b.Bytes()[j] = byte(i)
				}
				all = append(all, live{b, byte(i)})
				used += uint64(n+255) / 256 * 256
			} else {
				k := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				for _, v := range all[k].b.Bytes() {
					if v != all[k].fill {
						t.Fatal("two buffers share memory")
					}
				}
				used -= uint64(all[k].b.Len()+255) / 256 * 256
				if err := all[k].b.Release(); err != nil {
					t.Fatal(err)
				}
				all[k] = all[len(all)-1]
				all = all[:len(all)-1]
			}
			s, err := p.Stats()
			if err != nil || s.Used != used || s.Used > s.Reserved || s.LargestFree > s.Reserved-s.Used || s.Peak < s.Used {
				t.Fatalf("%d bytes are used: %+v, %v", used, s, err)
			}
		}
		if err := p.Release(); len(all) > 0 && !errors.Is(err, core.ErrBusy) {
			t.Fatalf("released a pool with %d buffers: %v", len(all), err)
		} else if len(all) == 0 {
			return
		}
		for _, l := range all {
			if err := l.b.Release(); err != nil {
				t.Fatal(err)
			}
		}
		s, err := p.Stats()
		if err != nil || s.Used != 0 || s.Pieces != s.Slabs || s.Allocs != s.Frees || (s.Slabs == 1 && s.Fragmentation != 0) {
			t.Fatalf("%+v, %v", s, err)
		}
		if err := p.Trim(0); err != nil {
			t.Fatal(err)
		}
		if s, err = p.Stats(); err != nil || s.Reserved != 0 || s.Slabs != 0 || s.Pieces != 0 {
			t.Fatalf("trimmed: %+v, %v", s, err)
		}
		if err := p.Release(); err != nil {
			t.Fatal(err)
		}
	})
	m, err := d.Memory()
	if err != nil || m.InUse != 0 {
		t.Errorf("%d bytes are left, %v", m.InUse, err)
	}
}

func TestPoolLimit(t *testing.T) {
	d := openCPU(t)
	p, err := d.NewPool(core.PoolOptions{Max: 1 << 20, Slab: 1 << 18})
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.Alloc(700 << 10)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Alloc(400 << 10)
	if !errors.Is(err, core.ErrOOM) || !strings.Contains(fmt.Sprint(err), "limit 1048576") {
		t.Errorf("got %v", err)
	}
	b, err := p.Alloc(200 << 10)
	if err != nil {
		t.Errorf("below the limit: %v", err)
	}
	if err := errors.Join(a.Release(), b.Release(), p.Release()); err != nil {
		t.Error(err)
	}
	if _, err := p.Alloc(1); !errors.Is(err, core.ErrClosed) {
		t.Errorf("allocation from a pool that is gone: %v", err)
	}
}

func TestBufferFreedInStreamOrderIsReusedAfterItsWork(t *testing.T) {
	d := openWith(t, core.Options{Threads: 1, Faults: "launch:hang=2s@n=1"})
	p, err := d.NewPool(core.PoolOptions{Slab: 4096, Max: 4096})
	if err != nil {
		t.Fatal(err)
	}
	s := stream(t, d)
	b, err := p.Alloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	submit(t, s.List().Memset(b.All(), 1))
	if err := b.Release(); !errors.Is(err, core.ErrBusy) {
		t.Errorf("release of a buffer in use: %v", err)
	}
	if err := p.FreeAfter(b, s); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Alloc(4096); !errors.Is(err, core.ErrOOM) {
		t.Errorf("memory that a stream still writes was given out: %v", err)
	}
	if err := s.List().Memset(b.All(), 1).Submit(); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("the id of a freed buffer: %v", err)
	}
	if err := d.InjectFaults(""); err != nil { // ends the hang
		t.Fatal(err)
	}
	wait(t, s)
	again, err := p.Alloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(again.Release(), p.Release()); err != nil {
		t.Error(err)
	}
}

func TestRegisteredPagesAreUsedInPlace(t *testing.T) {
	d := openCPU(t)
	pages, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(pages) }()
	b, err := d.Register(pages)
	if err != nil {
		t.Fatal(err)
	}
	s := stream(t, d)
	submit(t, s.List().Memset(b.At(4096, 1), 5))
	wait(t, s)
	if pages[4096] != 5 || &b.Bytes()[0] != &pages[0] || b.Mode() != core.MemRegistered {
		t.Errorf("pages[4096] = %d, mode %v", pages[4096], b.Mode())
	}
	if err := b.Release(); err != nil {
		t.Error(err)
	}
	if pages[4096] != 5 {
		t.Error("the pages did not stay")
	}
	if _, err := d.Register(pages[1:]); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("unaligned pages: %v", err)
	}
}

func TestPageableCopiesAreCounted(t *testing.T) {
	d := openCPU(t)
	s := stream(t, d)
	dev, pinned, host := alloc(t, d, 1000, core.MemDevice), alloc(t, d, 1000, core.MemPinned), alloc(t, d, 1000, core.MemHost)
	submit(t, s.List().Copy(dev.All(), pinned.All()).Copy(pinned.All(), dev.All()).Copy(dev.At(0, 10), dev.At(10, 10)))
	wait(t, s)
	m, err := d.Memory()
	if err != nil || m.Copies.ToDevice != 1000 || m.Copies.ToHost != 1000 || m.Copies.OnDevice != 10 || m.Copies.PageableCopies != 0 {
		t.Errorf("%+v, %v", m.Copies, err)
	}
	submit(t, s.List().Copy(dev.At(0, 7), host.At(0, 7)))
	wait(t, s)
	if m, err = d.Memory(); err != nil || m.Copies.PageableCopies != 1 || m.Copies.PageableBytes != 7 {
		t.Errorf("%+v, %v", m.Copies, err)
	}
}

func TestMemoryStatistics(t *testing.T) {
	d := openCPU(t)
	d.Phase("load")
	model := alloc(t, d, 1000, core.MemDevice)
	d.Phase("warm up")
	scratch := alloc(t, d, 500, core.MemHost)
	if err := scratch.Release(); err != nil {
		t.Fatal(err)
	}
	d.Phase("run")
	alloc(t, d, 100, core.MemDevice)
	d.Phase("load")
	if err := model.Release(); err != nil {
		t.Fatal(err)
	}
	m, err := d.Memory()
	if err != nil {
		t.Fatal(err)
	}
	want := []core.PhaseUse{{Name: "start"}, {Name: "load", Peak: 1100, Allocs: 1}, {Name: "warm up", Start: 1000, Peak: 1500, Allocs: 1},
		{Name: "run", Start: 1000, Peak: 1100, Allocs: 1}}
	if fmt.Sprint(m.Phases) != fmt.Sprint(want) {
		t.Errorf("phases %+v, want %+v", m.Phases, want)
	}
	if m.InUse != 100 || m.Peak != 1500 || len(m.Timeline) != 5 || m.Timeline[4].Bytes != -1000 || m.Timeline[4].InUse != 100 {
		t.Errorf("%+v", m)
	}
	if _, err := json.Marshal(m); err != nil {
		t.Error(err)
	}
	for range 5000 {
		if err := alloc(t, d, 1, core.MemHost).Release(); err != nil {
			t.Fatal(err)
		}
	}
	if m, err = d.Memory(); err != nil || len(m.Timeline) != 4096 || m.Dropped != 10005-4096 || m.Timeline[4095].InUse != 100 {
		t.Errorf("%d events, %d dropped, %v", len(m.Timeline), m.Dropped, err)
	}
}

func TestChoiceOfMemoryHasAReason(t *testing.T) {
	orin := core.Attributes{Integrated: true, MapHost: true, Managed: true}
	thor := core.Attributes{Integrated: true, MapHost: true, Managed: true, ConcurrentManaged: true, HostRegister: true}
	h100 := core.Attributes{MapHost: true, Managed: true, ConcurrentManaged: true, HostRegister: true}
	for _, tc := range []struct {
		name    string
		on      core.Attributes
		request core.Mode
		touch   core.Touch
		want    core.Mode
		reason  string
		refused bool
	}{
		{"shared memory, CPU writes", orin, core.MemAuto, core.TouchWrite, core.MemMapped, "integrated", false},
		{"shared memory, CPU never", orin, core.MemAuto, core.TouchNever, core.MemDevice, "cpu-never", false},
		{"own memory", h100, core.MemAuto, core.TouchBoth, core.MemDevice, "discrete", false},
		{"unified on Orin", orin, core.MemManaged, core.TouchBoth, core.MemManaged, "no-concurrent-managed", true},
		{"unified on Thor", thor, core.MemManaged, core.TouchBoth, core.MemManaged, "asked", false},
		{"unified on H100", h100, core.MemManaged, core.TouchBoth, core.MemManaged, "asked", false},
		{"unified nowhere", core.Attributes{}, core.MemManaged, core.TouchBoth, core.MemManaged, "no-managed", true},
		{"mapped nowhere", core.Attributes{}, core.MemMapped, core.TouchBoth, core.MemMapped, "no-map", true},
		{"explicit", orin, core.MemDevice, core.TouchBoth, core.MemDevice, "asked", false},
		{"pageable", h100, core.MemHost, core.TouchBoth, core.MemHost, "staging", true},
	} {
		got, err := tc.on.Choose(tc.request, tc.touch)
		if err != nil || got.Mode != tc.want || got.Reason != tc.reason || got.Refused != tc.refused || got.Text == "" {
			t.Errorf("%s: %+v, %v", tc.name, got, err)
		}
	}
	d := openCPU(t)
	for m := core.MemAuto; m <= core.MemManaged; m++ {
		ch, err := d.ChooseMemory(m, core.TouchBoth)
		if err != nil || ch.Text == "" || ch.Refused {
			t.Errorf("%v: %+v, %v", m, ch, err)
		}
		if b := alloc(t, d, 1, m); b.Mode() != ch.Mode {
			t.Errorf("%v: predicted %v, got %v", m, ch.Mode, b.Mode())
		}
	}
}

func TestIneffectiveAdviceHasAReason(t *testing.T) {
	d := openCPU(t)
	b := alloc(t, d, 64, core.MemManaged)
	if why, err := d.Prefetch(b.All(), false, nil); err != nil || why != "host" {
		t.Errorf("prefetch: %q, %v", why, err)
	}
	if why, err := d.Advise(b.All(), core.ReadMostly); err != nil || why != "host" {
		t.Errorf("advise: %q, %v", why, err)
	}
	for _, err := range []error{
		second(d.Advise(b.All(), 0)), second(d.Advise(b.At(1, 64), core.ReadMostly)), second(d.Prefetch(core.Region{}, true, nil)),
	} {
		if !errors.Is(err, core.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
