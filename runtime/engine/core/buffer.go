package core

import (
	"fmt"
	"unsafe"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// Mode is a kind of memory.
type Mode uint32

const (
	MemAuto       Mode = iota // mapped where CPU and device share memory, else device
	MemDevice                 // not accessible by the CPU, on any backend
	MemPinned                 // page-locked host memory, copied without staging
	MemMapped                 // one memory for CPU and device
	MemHost                   // pageable host memory
	MemManaged                // pages migrate; ErrNotSupported without concurrent access
	MemRegistered             // the caller's pages, from Device.Register; not for Alloc
)

// String returns the name of the mode in plans.
func (m Mode) String() string {
	if names := [...]string{"auto", "device", "pinned", "mapped", "host", "managed", "registered"}; int(m) < len(names) {
		return names[m]
	}
	return fmt.Sprintf("mode %d", uint32(m))
}

// Buffer is memory of a device. Device.Close releases buffers that are still allocated.
type Buffer struct {
	d    *Device
	id   uint64
	mode Mode
	size int
	host []byte
}

// Alloc allocates n bytes, aligned to 256. The content is undefined. Allocate at start,
// not once per frame.
func (d *Device) Alloc(n int, m Mode) (*Buffer, error) {
	const op = "allocate buffer"
	if n < 1 {
		return nil, fmt.Errorf("%s: size of %d bytes must be at least 1: %w", op, n, ErrInvalid)
	}
	if err := d.enter(op); err != nil {
		return nil, err
	}
	defer d.gate.RUnlock()
	return d.alloc(n, m)
}

func (d *Device) alloc(n int, m Mode) (*Buffer, error) {
	a, f := d.api.BufAlloc(d.dev, uint32(m), uint64(n), 0)
	if err := backendError("allocate buffer", f); err != nil {
		return nil, err
	}
	return d.newBuffer(a, n), nil
}

func (d *Device) newBuffer(a c.Allocation, n int) *Buffer {
	b := &Buffer{d: d, id: a.ID, mode: Mode(a.Mode), size: n, host: hostBytes(a.Host, n)}
	d.adopt(b)
	return b
}

// Register makes a buffer of the caller's pages: mappings of V4L2 buffers, shared memory
// or a file. The pages must be aligned to 256 bytes, stay mapped until the buffer is
// released, and not be Go memory. Register fails with ErrNotSupported on a GPU that cannot
// register host pages.
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
	if err := backendError(op, f); err != nil {
		return nil, err
	}
	return d.newBuffer(a, len(pages)), nil
}

// Bytes returns the buffer as host memory, or nil for device memory. The slice is invalid
// after Release.
func (b *Buffer) Bytes() []byte { return b.host }

// Float32s returns the buffer as host memory of float32, as Bytes does.
func (b *Buffer) Float32s() []float32 { return floats(b.host) }

// Address returns where a library that computes on the device, such as ONNX Runtime, finds the
// buffer. It is valid until Release. This program must not use it.
func (b *Buffer) Address() (uintptr, error) {
	const op = "address of buffer"
	if err := b.d.enterChild(op, b); err != nil {
		return 0, err
	}
	defer b.d.gate.RUnlock()
	at, f := b.d.api.BufAddress(b.d.dev, b.id)
	return uintptr(at), backendError(op, f)
}

// Len returns the size in bytes.
func (b *Buffer) Len() int { return b.size }

// Mode returns the kind of memory that was allocated, never MemAuto.
func (b *Buffer) Mode() Mode { return b.mode }

// All returns the region of the whole buffer.
func (b *Buffer) All() Region { return Region{Buf: b, Len: b.size} }

// At returns the region of n bytes from off. List.Submit checks that it lies in the
// buffer.
func (b *Buffer) At(off, n int) Region { return Region{Buf: b, Off: off, Len: n} }

// Release frees the buffer. It fails with ErrBusy while submitted work uses it,
// and with ErrClosed the second time.
func (b *Buffer) Release() error { return b.d.releaseChild("release buffer", b) }

func (b *Buffer) release() error {
	return backendError("release buffer", b.d.api.BufFree(b.d.dev, b.id))
}

func (b *Buffer) rank() int { return rankBuffer }

// Region is a range of bytes of a buffer.
type Region struct {
	Buf      *Buffer
	Off, Len int // bytes
}
