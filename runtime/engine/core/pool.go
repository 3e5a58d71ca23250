package core

import (
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// Pool cuts buffers from larger allocations, so that allocating in the frame path
// costs a search and not a system call. Freed neighbours join: a pool from which
// everything was released holds one piece per slab.
type Pool struct {
	d    *Device
	p    c.Pool
	mode Mode
	last uint64 // bytes reserved when last looked at, for the timeline
}

// PoolOptions describe a pool.
type PoolOptions struct {
	Mode      Mode
	Max       int  // bytes it may take from the device; 0: no limit
	Slab      int  // bytes it takes at a time; 0: 32 MiB
	Scattered bool // do not join freed neighbours: only for measuring
}

// PoolStats are a pool's counters, in bytes where not said otherwise.
type PoolStats struct {
	Mode          string  `json:"mode"`
	Used          uint64  `json:"used"`
	Reserved      uint64  `json:"reserved"` // taken from the device
	LargestFree   uint64  `json:"largest_free"`
	Peak          uint64  `json:"peak"`   // of Used
	Allocs        uint64  `json:"allocs"` // count
	Frees         uint64  `json:"frees"`  // count
	Pieces        uint64  `json:"pieces"` // free ones, count
	Slabs         uint64  `json:"slabs"`  // count
	Max           uint64  `json:"max"`    // 0: no limit
	Deferred      uint64  `json:"deferred"`
	Fragmentation float64 `json:"fragmentation"` // 1 − largest free piece / all that is free
}

// NewPool creates a pool. It takes nothing from the device yet.
func (d *Device) NewPool(o PoolOptions) (*Pool, error) {
	const op = "create pool"
	if o.Max < 0 || o.Slab < 0 {
		return nil, fmt.Errorf("%s: limit %d, slab %d: not negative: %w", op, o.Max, o.Slab, ErrInvalid)
	}
	if err := d.enter(op); err != nil {
		return nil, err
	}
	defer d.gate.RUnlock()
	flags := uint32(0)
	if o.Scattered {
		flags |= c.PoolScattered
	}
	h, f := d.api.PoolCreate(d.dev, uint32(o.Mode), uint64(o.Max), uint64(o.Slab), flags)
	if err := failed(op, f); err != nil {
		return nil, err
	}
	p := &Pool{d: d, p: h}
	s, f := d.api.PoolStats(h)
	if err := failed(op, f); err != nil {
		return nil, err
	}
	p.mode = Mode(s.Mode)
	d.adopt(p)
	return p, nil
}

// Alloc allocates n bytes, aligned to 256. The content is undefined. ErrOOM names
// the limit and the largest free piece.
func (p *Pool) Alloc(n int) (*Buffer, error) {
	const op = "allocate from pool"
	if n < 1 {
		return nil, fmt.Errorf("%s: %d bytes: at least 1: %w", op, n, ErrInvalid)
	}
	if err := p.d.use(op, p); err != nil {
		return nil, err
	}
	defer p.d.gate.RUnlock()
	a, f := p.d.api.PoolAlloc(p.p, uint64(n), 0)
	if err := failed(op, f); err != nil {
		return nil, err
	}
	b := p.d.keep(a, n, p)
	p.note()
	return b, nil
}

// note puts slabs taken or given back on the device's timeline.
func (p *Pool) note() {
	s, f := p.d.api.PoolStats(p.p)
	if f.Code != 0 {
		return
	}
	p.d.mu.Lock()
	delta := int64(s.Reserved) - int64(p.last)
	p.last = s.Reserved
	p.d.mu.Unlock()
	if delta != 0 {
		p.d.memory.add(p.mode, delta)
	}
}

// FreeAfter releases a buffer of the pool while work of s may still use it: its
// memory is given out again after that work. Work of other streams must be done.
func (p *Pool) FreeAfter(b *Buffer, s *Stream) error {
	const op = "release buffer"
	if b == nil || b.pool != p || s == nil || s.d != p.d {
		return fmt.Errorf("%s: a buffer of this pool and a stream of its device are needed: %w", op, ErrInvalid)
	}
	if err := p.d.use(op, p); err != nil {
		return err
	}
	defer p.d.gate.RUnlock()
	if !p.d.disown(b) {
		return fmt.Errorf("%s: %w", op, ErrClosed)
	}
	err := failed(op, p.d.api.PoolFree(p.p, b.id, &s.s))
	if err != nil {
		p.d.adopt(b)
	}
	return err
}

// Stats reads the pool's counters.
func (p *Pool) Stats() (PoolStats, error) {
	if err := p.d.use("pool statistics", p); err != nil {
		return PoolStats{}, err
	}
	defer p.d.gate.RUnlock()
	s, f := p.d.api.PoolStats(p.p)
	if err := failed("pool statistics", f); err != nil {
		return PoolStats{}, err
	}
	out := PoolStats{
		Mode: Mode(s.Mode).String(), Used: s.Used, Reserved: s.Reserved, LargestFree: s.LargestFree, Peak: s.Peak,
		Allocs: s.Allocs, Frees: s.Frees, Pieces: s.Blocks, Slabs: s.Slabs, Max: s.Max, Deferred: s.Deferred,
	}
	if free := s.Reserved - s.Used - s.Deferred; free > 0 {
		out.Fragmentation = 1 - float64(s.LargestFree)/float64(free)
	}
	return out, nil
}

// Trim gives free slabs back until at most keep bytes are reserved.
func (p *Pool) Trim(keep int) error {
	if err := p.d.use("trim pool", p); err != nil {
		return err
	}
	defer p.d.gate.RUnlock()
	err := failed("trim pool", p.d.api.PoolTrim(p.p, uint64(max(keep, 0))))
	p.note()
	return err
}

// Release destroys the pool. It fails with ErrBusy while buffers of it exist.
func (p *Pool) Release() error { return p.d.releaseChild("release pool", p) }

func (p *Pool) release() error {
	err := failed("release pool", p.d.api.PoolDestroy(p.p))
	if err == nil && p.last != 0 {
		p.d.memory.add(p.mode, -int64(p.last))
	}
	return err
}

func (p *Pool) rank() int { return lastRank }
