package core

import (
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// Pool cuts buffers from larger allocations, so that an allocation in the frame path is a
// search and not a system call. Free neighbours are merged: when all buffers are released,
// each slab is one free block.
type Pool struct {
	d    *Device
	p    c.Pool
	mode Mode
	last uint64 // bytes reserved at the last recordReserved
}

// PoolOptions describe a pool.
type PoolOptions struct {
	Mode      Mode
	Max       int  // bytes that it may reserve; 0: no limit
	Slab      int  // bytes reserved at a time; 0: 32 MiB
	Scattered bool // do not merge free neighbours; for measurements
}

// PoolStats are the counters of a pool, in bytes unless noted.
type PoolStats struct {
	Mode          string  `json:"mode"`
	Used          uint64  `json:"used"`
	Reserved      uint64  `json:"reserved"` // allocated from the device
	LargestFree   uint64  `json:"largest_free"`
	Peak          uint64  `json:"peak"`   // of Used
	Allocs        uint64  `json:"allocs"` // count
	Frees         uint64  `json:"frees"`  // count
	Pieces        uint64  `json:"pieces"` // free blocks, count
	Slabs         uint64  `json:"slabs"`  // count
	Max           uint64  `json:"max"`    // 0: no limit
	Deferred      uint64  `json:"deferred"`
	Fragmentation float64 `json:"fragmentation"` // 1 − largest free block / all free bytes
}

// NewPool creates an empty pool, which reserves memory at the first allocation.
func (d *Device) NewPool(o PoolOptions) (*Pool, error) {
	const op = "create pool"
	if o.Max < 0 || o.Slab < 0 {
		return nil, fmt.Errorf("%s: limit %d and slab size %d must not be negative: %w", op, o.Max, o.Slab, ErrInvalid)
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
	if err := backendError(op, f); err != nil {
		return nil, err
	}
	p := &Pool{d: d, p: h}
	s, f := d.api.PoolStats(h)
	if err := backendError(op, f); err != nil {
		return nil, err
	}
	p.mode = Mode(s.Mode)
	d.adopt(p)
	return p, nil
}

// Alloc allocates n bytes, aligned to 256. The content is undefined. The message of ErrOOM
// gives the limit and the largest free block.
func (p *Pool) Alloc(n int) (*Buffer, error) {
	const op = "allocate from pool"
	if n < 1 {
		return nil, fmt.Errorf("%s: size of %d bytes must be at least 1: %w", op, n, ErrInvalid)
	}
	if err := p.d.enterChild(op, p); err != nil {
		return nil, err
	}
	defer p.d.gate.RUnlock()
	a, f := p.d.api.PoolAlloc(p.p, uint64(n), 0)
	if err := backendError(op, f); err != nil {
		return nil, err
	}
	b := p.d.newBuffer(a, n, p)
	p.recordReserved()
	return b, nil
}

// recordReserved records a change of the reserved bytes in the device's timeline.
func (p *Pool) recordReserved() {
	s, f := p.d.api.PoolStats(p.p)
	if f.Code != 0 {
		return
	}
	p.d.mu.Lock()
	delta := int64(s.Reserved) - int64(p.last)
	p.last = s.Reserved
	p.d.mu.Unlock()
	if delta != 0 {
		p.d.memory.recordChange(p.mode, delta)
	}
}

// FreeAfter releases a buffer that submitted work of s may still use. Its memory is reused
// only after that work. Work of other streams must have finished.
func (p *Pool) FreeAfter(b *Buffer, s *Stream) error {
	const op = "release buffer"
	if b == nil || b.pool != p || s == nil || s.d != p.d {
		return fmt.Errorf("%s: need a buffer of this pool and a stream of its device: %w", op, ErrInvalid)
	}
	if err := p.d.enterChild(op, p); err != nil {
		return err
	}
	defer p.d.gate.RUnlock()
	if !p.d.disown(b) {
		return fmt.Errorf("%s: %w", op, ErrClosed)
	}
	err := backendError(op, p.d.api.PoolFree(p.p, b.id, &s.s))
	if err != nil {
		p.d.adopt(b)
	}
	return err
}

// Stats reads the pool's counters.
func (p *Pool) Stats() (PoolStats, error) {
	if err := p.d.enterChild("read pool statistics", p); err != nil {
		return PoolStats{}, err
	}
	defer p.d.gate.RUnlock()
	s, f := p.d.api.PoolStats(p.p)
	if err := backendError("read pool statistics", f); err != nil {
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

// Trim returns free slabs to the device until at most keep bytes are reserved.
func (p *Pool) Trim(keep int) error {
	if err := p.d.enterChild("trim pool", p); err != nil {
		return err
	}
	defer p.d.gate.RUnlock()
	err := backendError("trim pool", p.d.api.PoolTrim(p.p, uint64(max(keep, 0))))
	p.recordReserved()
	return err
}

// Release destroys the pool. It fails with ErrBusy while its buffers exist.
func (p *Pool) Release() error { return p.d.releaseChild("release pool", p) }

func (p *Pool) release() error {
	err := backendError("release pool", p.d.api.PoolDestroy(p.p))
	if err == nil && p.last != 0 {
		p.d.memory.recordChange(p.mode, -int64(p.last))
	}
	return err
}

func (p *Pool) rank() int { return lastRank }
