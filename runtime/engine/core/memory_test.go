package core_test

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

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
	submit(t, s.List().Fill(b.At(4096, 1), 5))
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
	model := alloc(t, d, 1000, core.MemDevice)
	if err := alloc(t, d, 500, core.MemHost).Release(); err != nil {
		t.Fatal(err)
	}
	alloc(t, d, 100, core.MemDevice)
	if err := model.Release(); err != nil {
		t.Fatal(err)
	}
	m, err := d.Memory()
	want := []core.ModeUse{{Mode: "device", Bytes: 100, Peak: 1100, Allocs: 2}, {Mode: "host", Peak: 500, Allocs: 1}}
	if err != nil || m.InUse != 100 || m.Peak != 1500 || !slices.Equal(m.Modes, want) {
		t.Errorf("%+v, %v", m, err)
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
