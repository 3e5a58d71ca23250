package core

import (
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// Touch is the CPU's use of a piece of memory.
type Touch uint32

const (
	TouchNever Touch = iota
	TouchRead
	TouchWrite
	TouchBoth
)

// String describes the use.
func (t Touch) String() string {
	if names := [...]string{"never", "reads", "writes", "reads and writes"}; int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("touch %d", uint32(t))
}

// Choice is the mode that a device selects for a requested mode, with the reason.
type Choice struct {
	Asked   Mode   `json:"-"`
	Mode    Mode   `json:"-"`       // never MemAuto
	Reason  string `json:"reason"`  // for programs, see reasons
	Text    string `json:"text"`    // for people
	Allowed []Mode `json:"-"`       // modes that the device supports
	Refused bool   `json:"refused"` // the device does not support the requested mode
}

// reasons are the values of Choice.Reason, in the order of YT_WHY_*.
var reasons = [...]string{"asked", "integrated", "discrete", "cpu-never", "no-concurrent-managed", "no-managed",
	"host", "staging", "no-map", "no-register"}

func reasonName(why uint32) string {
	if int(why) < len(reasons) {
		return reasons[why]
	}
	return fmt.Sprintf("reason %d", why)
}

func newChoice(asked Mode, ch c.Choice, f c.Failure) (Choice, error) {
	err := backendError("choose memory", f)
	out := Choice{Asked: asked, Mode: Mode(ch.Mode), Reason: reasonName(ch.Why), Text: ch.Text}
	if f.Code == c.CodeNotSupported && ch.Text != "" {
		out.Refused, err = true, nil
	}
	for m := MemDevice; m <= MemRegistered; m++ {
		if ch.Allowed&(1<<m) != 0 {
			out.Allowed = append(out.Allowed, m)
		}
	}
	return out, err
}

// ChooseMemory reports the mode that Alloc would select for m, given the CPU's use of the
// memory.
func (d *Device) ChooseMemory(m Mode, t Touch) (Choice, error) {
	if err := d.enter("choose memory"); err != nil {
		return Choice{}, err
	}
	defer d.gate.RUnlock()
	ch, f := d.api.MemChoose(d.dev, uint32(m), uint32(t))
	return newChoice(m, ch, f)
}

// Attributes are the CUDA device attributes that determine the choice of memory.
type Attributes struct {
	Integrated        bool // CPU and GPU share physical memory
	MapHost           bool // canMapHostMemory
	Managed           bool // managedMemory
	ConcurrentManaged bool // concurrentManagedAccess; 0 on Jetson before Thor
	HostRegister      bool // hostRegisterSupported
}

// Choose reports the mode that a GPU with these attributes would select. It needs no GPU.
func (a Attributes) Choose(m Mode, t Touch) (Choice, error) {
	ch, f := c.ChooseFor(c.Attributes(a), uint32(m), uint32(t))
	return newChoice(m, ch, f)
}

// ModeUse counts the allocations of one kind of memory, in bytes.
type ModeUse struct {
	Mode   string `json:"mode"`
	Bytes  uint64 `json:"bytes"`
	Peak   uint64 `json:"peak"`
	Allocs uint64 `json:"allocs"`
}

// Memory is the state of a device's memory, in bytes.
type Memory struct {
	InUse  uint64    `json:"in_use"`
	Peak   uint64    `json:"peak"`
	Modes  []ModeUse `json:"modes"`
	Copies Copies    `json:"copies"`
}

// Copies counts copied bytes by direction, and copies that were synchronous because one
// side was pageable memory.
type Copies struct {
	ToDevice       uint64 `json:"to_device"`
	ToHost         uint64 `json:"to_host"`
	OnDevice       uint64 `json:"on_device"`
	OnHost         uint64 `json:"on_host"`
	PageableCopies uint64 `json:"pageable_copies"`
	PageableBytes  uint64 `json:"pageable_bytes"`
}

// Copied returns what the backend has copied since the device was opened.
func (d *Device) Copied() (Copies, error) {
	if err := d.enter("copies"); err != nil {
		return Copies{}, err
	}
	defer d.gate.RUnlock()
	s, f := d.api.MemStats(d.dev)
	return copiesOf(&s), backendError("copies", f)
}

func copiesOf(s *c.MemStats) Copies {
	return Copies{
		ToDevice: s.H2D, ToHost: s.D2H, OnDevice: s.D2D, OnHost: s.H2H,
		PageableCopies: s.PageableCopies, PageableBytes: s.PageableBytes,
	}
}

// Memory returns the use of the device's memory.
func (d *Device) Memory() (Memory, error) {
	if err := d.enter("memory"); err != nil {
		return Memory{}, err
	}
	defer d.gate.RUnlock()
	s, f := d.api.MemStats(d.dev)
	if err := backendError("memory", f); err != nil {
		return Memory{}, err
	}
	out := Memory{InUse: s.Total, Peak: s.TotalPeak, Copies: copiesOf(&s)}
	for m := MemDevice; m <= MemRegistered; m++ {
		if s.Allocs[m] != 0 {
			out.Modes = append(out.Modes, ModeUse{Mode: m.String(), Bytes: s.Bytes[m], Peak: s.Peak[m], Allocs: s.Allocs[m]})
		}
	}
	return out, nil
}
