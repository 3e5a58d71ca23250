package core

import (
	"fmt"
	"sync"
	"time"

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

// reasons are the values of Choice.Reason and of Advise and Prefetch, in the order of
// YT_WHY_*.
var reasons = [...]string{"asked", "integrated", "discrete", "cpu-never", "no-concurrent-managed", "no-managed",
	"not-managed", "host", "staging", "no-map", "no-register"}

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

// Advice is a hint to a driver that migrates pages.
type Advice uint32

const (
	ReadMostly   Advice = iota + 1 // the device does not write it
	PreferDevice                   // keep the pages in device memory
	PreferHost                     // keep the pages in host memory
	AdviseNormal                   // withdraw earlier advice
)

// Advise gives the driver advice about a region. It returns "" if the driver accepted the
// advice, otherwise the reason why nothing was done, which is not an error.
func (d *Device) Advise(r Region, a Advice) (string, error) {
	return d.hint("advise", r, func(at c.Range) (uint32, c.Failure) { return d.api.BufAdvise(d.dev, at, uint32(a)) })
}

// Prefetch starts migrating the pages of a region to the device or the host, in the order
// of s (nil: at once). It returns "" if that was queued, otherwise the reason why nothing
// was done, which is not an error.
func (d *Device) Prefetch(r Region, toHost bool, s *Stream) (string, error) {
	to := uint32(0)
	if toHost {
		to = 1
	}
	var on *c.Stream
	if s != nil {
		if s.d != d {
			return "", fmt.Errorf("prefetch: the stream belongs to another device: %w", ErrInvalid)
		}
		on = &s.s
	}
	return d.hint("prefetch", r, func(at c.Range) (uint32, c.Failure) { return d.api.BufPrefetch(d.dev, at, to, on) })
}

func (d *Device) hint(op string, r Region, call func(c.Range) (uint32, c.Failure)) (string, error) {
	if r.Buf == nil || r.Buf.d != d || r.Off < 0 || r.Len < 0 {
		return "", fmt.Errorf("%s: need a region of a buffer of this device: %w", op, ErrInvalid)
	}
	if err := d.enter(op); err != nil {
		return "", err
	}
	defer d.gate.RUnlock()
	why, f := call(c.Range{Buf: r.Buf.id, Off: uint64(r.Off), Len: uint64(r.Len)})
	if err := backendError(op, f); err != nil || why == 0 {
		return "", err
	}
	return reasonName(why), nil
}

// ModeUse counts the allocations of one kind of memory, in bytes.
type ModeUse struct {
	Mode   string `json:"mode"`
	Bytes  uint64 `json:"bytes"`
	Peak   uint64 `json:"peak"`
	Allocs uint64 `json:"allocs"`
}

// PhaseUse counts the allocations of a phase of the program. A repeated phase continues its
// counts.
type PhaseUse struct {
	Name   string `json:"name"`
	Start  uint64 `json:"start"`  // bytes in use when it first began
	Peak   uint64 `json:"peak"`   // most bytes in use during it
	Allocs uint64 `json:"allocs"` // allocations during it
}

// MemoryEvent is one allocation (Bytes > 0) or release.
type MemoryEvent struct {
	At    time.Duration `json:"at_ns"` // since the device was opened
	Phase string        `json:"phase"`
	Mode  string        `json:"mode"`
	Bytes int64         `json:"bytes"`
	InUse uint64        `json:"in_use"` // after it
}

// Memory is the state of a device's memory, in bytes. A pool counts the slabs that it has
// reserved.
type Memory struct {
	InUse    uint64        `json:"in_use"`
	Peak     uint64        `json:"peak"`
	Modes    []ModeUse     `json:"modes"`
	Copies   Copies        `json:"copies"`
	Phases   []PhaseUse    `json:"phases"`
	Timeline []MemoryEvent `json:"timeline"` // the last 4096
	Dropped  uint64        `json:"dropped"`  // older events that were discarded
}

// Copies counts copied bytes by direction, and copies that were synchronous because one
// side was pageable memory.
type Copies struct {
	ToDevice       uint64 `json:"to_device"`
	ToHost         uint64 `json:"to_host"`
	OnDevice       uint64 `json:"on_device"`
	OnHost         uint64 `json:"on_host"`
	Peer           uint64 `json:"peer"`
	PageableCopies uint64 `json:"pageable_copies"`
	PageableBytes  uint64 `json:"pageable_bytes"`
	StagedBytes    uint64 `json:"staged_bytes"` // Go memory copied through pinned memory
}

// memoryLog is the timeline of a device's memory.
type memoryLog struct {
	mu       sync.Mutex
	opened   time.Time
	inUse    uint64
	phases   []PhaseUse // phase is the index of the current one
	phase    int
	events   []MemoryEvent // a ring buffer once it is full
	next     int
	dropped  uint64
	stagedBy uint64
}

const timelineLength = 4096

func (m *memoryLog) start() {
	m.opened = time.Now()
	m.phases = []PhaseUse{{Name: "start"}}
}

func (m *memoryLog) countStaged(in, out int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stagedBy += uint64(in + out)
}

func (m *memoryLog) recordChange(mode Mode, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inUse += uint64(bytes) // wraps around correctly for releases
	p := &m.phases[m.phase]
	if bytes > 0 {
		p.Allocs++
		p.Peak = max(p.Peak, m.inUse)
	}
	e := MemoryEvent{At: time.Since(m.opened), Phase: p.Name, Mode: mode.String(), Bytes: bytes, InUse: m.inUse}
	if len(m.events) < timelineLength {
		m.events = append(m.events, e)
		return
	}
	m.events[m.next] = e
	m.next = (m.next + 1) % timelineLength
	m.dropped++
}

// Phase begins a phase of the program, such as "load" or "warm up". Allocations count
// towards it until the next phase begins.
func (d *Device) Phase(name string) {
	m := &d.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.phases {
		if m.phases[i].Name == name {
			m.phase = i
			m.phases[i].Peak = max(m.phases[i].Peak, m.inUse)
			return
		}
	}
	m.phases = append(m.phases, PhaseUse{Name: name, Start: m.inUse, Peak: m.inUse})
	m.phase = len(m.phases) - 1
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
		ToDevice: s.H2D, ToHost: s.D2H, OnDevice: s.D2D, OnHost: s.H2H, Peer: s.P2P,
		PageableCopies: s.PageableCopies, PageableBytes: s.PageableBytes,
	}
}

// Memory returns the current and past use of the device's memory.
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
	m := &d.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	out.Phases = append(out.Phases, m.phases...)
	out.Timeline = append(append(out.Timeline, m.events[m.next:]...), m.events[:m.next]...)
	out.Dropped, out.Copies.StagedBytes = m.dropped, m.stagedBy
	return out, nil
}
