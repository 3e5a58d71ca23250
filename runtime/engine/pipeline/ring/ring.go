// Package ring implements a ring of records in shared memory: frames for a source, and
// results of a sink.
package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// A ring of records in shared memory, for programs on the same machine that want the latest
// results without a pipe. It has one writer, any number of readers and no locks. A reader that
// is too slow loses records, and can count them.
//
//	offset  bytes
//	0       8      magic "YTRING1\0"
//	8       4      slots
//	12      4      bytes of a slot's data
//	16      8      records written so far; record n is in slot n mod slots
//	64             the slots, each 16 bytes and its data, in steps of 64 bytes:
//	  0     8        2n+1 while record n is written, 2n+2 when it is complete
//	  8     4        bytes of the record
//	  16             the record, JSON without a newline
//
// Numbers are in the machine's byte order. A reader takes record n when the
// slot's first number is 2n+2 before and after it has copied the record.
const (
	ringMagic  = "YTRING1\x00"
	ringHeader = 64
	slotHeader = 16

	maxSlots    = registry.MaxRingSlots
	maxSlotSize = registry.MaxRingSlotSize
	maxRing     = registry.MaxRing
)

// ring is a mapped ring.
type ring struct {
	mem         []byte
	slots, Size uint64
}

// errTruncated is the error of a ring whose file was truncated.
var errTruncated = errors.New("the file was truncated")

// recoverFault turns an access fault in the ring into errTruncated. Without it the kernel sends SIGBUS for
// mapped memory beyond the end of the file. It is deferred.
func recoverFault(was bool, err *error) {
	debug.SetPanicOnFault(was)
	switch e := recover().(type) {
	case nil:
	case interface{ Addr() uintptr }:
		*err = errTruncated
	default:
		panic(e)
	}
}

// stride returns the distance between two slots.
func stride(size uint64) int { return registry.RingStride(size) }

func (r *ring) word(offset int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&r.mem[offset]))
}

func (r *ring) slot(n uint64) int { return ringHeader + int(n%r.slots)*stride(r.Size) }

// Writer writes records to a ring.
type Writer struct {
	ring
	n uint64
}

// Create makes a new ring. Readers of an old ring of that name keep the old one.
func Create(path string, slots, size int) (_ *Writer, err error) {
	// Not renameio, which would write the memory of a ring to the disk.
	f, err := os.CreateTemp(filepath.Dir(path), ".ring-*")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
			err = fmt.Errorf("%s: %w", path, err)
		}
	}()
	total := ringHeader + slots*stride(uint64(size))
	// Allocate blocks now: a full tmpfs would raise SIGBUS later.
	if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(total)); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, total, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, err
	}
	binary.NativeEndian.PutUint32(mem[8:], uint32(slots))
	binary.NativeEndian.PutUint32(mem[12:], uint32(size))
	copy(mem, ringMagic)
	err = errors.Join(f.Chmod(0o644), os.Rename(f.Name(), path))
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(mem))
	}
	return &Writer{ring: ring{mem: mem, slots: uint64(slots), Size: uint64(size)}}, nil
}

// Put writes a record, which must fit a slot. It fails if the file was truncated.
func (w *Writer) Put(record []byte) (err error) {
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	at := w.slot(w.n)
	w.word(at).Store(2*w.n + 1)
	binary.NativeEndian.PutUint32(w.mem[at+8:], uint32(len(record)))
	copy(w.mem[at+slotHeader:], record)
	w.word(at).Store(2*w.n + 2)
	w.n++
	w.word(16).Store(w.n)
	return nil
}

// Close unmaps the ring.
func (w *Writer) Close() error {
	if w.mem == nil {
		return nil
	}
	err := unix.Munmap(w.mem)
	w.mem = nil
	return err
}

// Reader reads the ring of a sink of kind shm.
type Reader struct {
	ring
	next uint64
}

// Open opens a ring for reading, from the next record on. The error wraps [frame.ErrFormat] if the
// file is not a ring, or one with slots of more than slot bytes, or with more than total bytes.
func Open(path string, slot uint64, total int64) (_ *Reader, err error) {
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // do not wait on a pipe
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() < ringHeader || st.Size() > ringHeader+total {
		return nil, fmt.Errorf("%w: %s is not a ring of records", frame.ErrFormat, path)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: path, Err: err}
	}
	r := &Reader{ring: ring{
		mem: mem, slots: uint64(binary.NativeEndian.Uint32(mem[8:])), Size: uint64(binary.NativeEndian.Uint32(mem[12:])),
	}}
	if string(mem[:8]) != ringMagic || r.slots < 1 || r.slots > maxSlots || r.Size > slot ||
		ringHeader+int64(r.slots)*int64(stride(r.Size)) != st.Size() {
		return nil, errors.Join(fmt.Errorf("%w: %s is not a ring of records", frame.ErrFormat, path), unix.Munmap(mem))
	}
	r.next = r.word(16).Load()
	return r, nil
}

// Next appends the next record, if any, to b, and returns how many records were lost before it.
// A truncated ring has no more records.
func (r *Reader) Next(b []byte) (record []byte, lost uint64, ok bool) {
	var err error
	record = b
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	for {
		written := r.word(16).Load()
		if r.next >= written {
			return b, lost, false
		}
		if written-r.next > r.slots {
			lost += written - r.slots - r.next
			r.next = written - r.slots
		}
		at := r.slot(r.next)
		if r.word(at).Load() == 2*r.next+2 {
			n := min(uint64(binary.NativeEndian.Uint32(r.mem[at+8:])), r.Size)
			got := append(b, r.mem[at+slotHeader:at+slotHeader+int(n)]...)
			if r.word(at).Load() == 2*r.next+2 {
				r.next++
				return got, lost, true
			}
		}
		lost++
		r.next++
	}
}

// Close unmaps the ring.
func (r *Reader) Close() error { return unix.Munmap(r.mem) }
