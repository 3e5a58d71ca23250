package core

import (
	"fmt"
	"unsafe"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// Mode is a kind of memory.
type Mode uint32

const (
	MemAuto       Mode = iota // mapped where memory is shared, else device
	MemDevice                 // not for the CPU, on any backend
	MemPinned                 // host memory the device copies from without staging
	MemMapped                 // one memory for both
	MemHost                   // ordinary host memory
	MemManaged                // the driver moves pages; ErrNotSupported where both sides may not use it at once
	MemRegistered             // foreign pages, from Device.Register; not for Alloc
)

// String names the mode as it is written in a plan.
func (m Mode) String() string {
	if names := [...]string{"auto", "device", "pinned", "mapped", "host", "managed", "registered"}; int(m) < len(names) {
		return names[m]
	}
	return fmt.Sprintf("mode %d", uint32(m))
}

// Buffer is memory of a device. Release it; Device.Close releases the rest.
type Buffer struct {
	d    *Device
	id   uint64
	mode Mode
	size int
	host []byte
	pool *Pool // or nil
}

// Alloc allocates n bytes, aligned to 256. The content is undefined. Allocate
// at start, not per frame.
func (d *Device) Alloc(n int, m Mode) (*Buffer, error) {
	const op = "allocate buffer"
	if n < 1 {
		return nil, fmt.Errorf("%s: %d bytes: at least 1: %w", op, n, ErrInvalid)
	}
	if err := d.enter(op); err != nil {
		return nil, err
	}
	defer d.gate.RUnlock()
	return d.alloc(n, m)
}

func (d *Device) alloc(n int, m Mode) (*Buffer, error) {
	a, f := d.api.BufAlloc(d.dev, uint32(m), uint64(n), 0)
	if err := failed("allocate buffer", f); err != nil {
		return nil, err
	}
	return d.keep(a, n, nil), nil
}

func (d *Device) keep(a c.Allocation, n int, p *Pool) *Buffer {
	b := &Buffer{d: d, id: a.ID, mode: Mode(a.Mode), size: n, host: hostBytes(a.Host, n), pool: p}
	d.adopt(b)
	if p == nil {
		d.memory.add(b.mode, int64(n))
	}
	return b
}

// Register names memory that is not this package's: pages that were mapped from
// V4L2, shared memory or a file. It must be aligned to 256 bytes, stay mapped until
// the buffer is released, and not be Go memory. On a GPU that cannot use foreign
// pages it fails with ErrNotSupported.
func (d *Device) Register(pages []byte) (*Buffer, error) {
	const op = "register memory"
	if len(pages) == 0 {
		return nil, fmt.Errorf("%s: no bytes: %w", op, ErrInvalid)
	}
	if err := d.enter(op); err != nil {
		return nil, err
	}
	defer d.gate.RUnlock()
	a, f := d.api.BufRegister(d.dev, unsafe.Pointer(unsafe.SliceData(pages)), uint64(len(pages)))
	if err := failed(op, f); err != nil {
		return nil, err
	}
	return d.keep(a, len(pages), nil), nil
}

// Bytes returns the buffer as host memory, nil for device memory. The slice is
// not to be touched after Release.
func (b *Buffer) Bytes() []byte { return b.host }

// Float32s returns the buffer as host memory of float32, as Bytes does.
func (b *Buffer) Float32s() []float32 { return floats(b.host) }

// Len returns the size in bytes.
func (b *Buffer) Len() int { return b.size }

// Mode returns the kind of memory chosen, never MemAuto.
func (b *Buffer) Mode() Mode { return b.mode }

// All names the whole buffer.
func (b *Buffer) All() Region { return Region{Buf: b, Len: b.size} }

// At names n bytes from off. Whether they exist is checked when the list that
// names them is submitted.
func (b *Buffer) At(off, n int) Region { return Region{Buf: b, Off: off, Len: n} }

// Release frees the buffer. It fails with ErrBusy while submitted work uses it,
// and with ErrClosed the second time.
func (b *Buffer) Release() error { return b.d.releaseChild("release buffer", b) }

func (b *Buffer) release() error {
	err := failed("release buffer", b.d.api.BufFree(b.d.dev, b.id))
	if err == nil && b.pool == nil {
		b.d.memory.add(b.mode, -int64(b.size))
	}
	return err
}

func (b *Buffer) rank() int { return rankBuffer }

// Region names bytes of a buffer.
type Region struct {
	Buf      *Buffer
	Off, Len int // bytes
}
