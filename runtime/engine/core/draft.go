package core

import (
	"fmt"
	"unsafe"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// CommandBytes is the size of one command of Encoded.
const CommandBytes = int(unsafe.Sizeof(c.Cmd{}))

// Draft stands for a device of another process: lists are built with it here, and
// run there by Stream.Replay. It has no memory and runs nothing itself; Submit and
// Release of what is made with it return ErrClosed.
type Draft struct {
	d *Device
	s *Stream
}

// NewDraft returns a draft.
func NewDraft() *Draft {
	d := &Device{draft: true, closed: true}
	return &Draft{d: d, s: &Stream{d: d}}
}

// Buffer names n bytes that the other process knows as id, which is not 0. host is
// where this process sees them, nil: nowhere.
func (dr *Draft) Buffer(id uint64, n int, host []byte) *Buffer {
	mode := MemDevice
	if host != nil {
		mode = MemRegistered
	}
	return &Buffer{d: dr.d, id: id, mode: mode, size: n, host: host}
}

// List starts an empty list.
func (dr *Draft) List() *List { return dr.s.List() }

// Encoded returns the list as bytes for Replay, CommandBytes for each command. They
// are the list's own and change with it.
func (l *List) Encoded() ([]byte, error) {
	if l.err != nil {
		return nil, fmt.Errorf("encode: %w", l.err)
	}
	if len(l.cmds) == 0 {
		return nil, nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(l.cmds))), len(l.cmds)*CommandBytes), nil
}

// Use is a region of a replayed command. What is written but not wholly, such as a
// list of boxes with room for more, is read too: the rest of it stays as it was.
type Use struct {
	Off, Len    int // bytes
	Read, Write bool
}

// Replay replaces the list's commands by those that another process encoded. name
// gives the buffer for each region that they use, and may move it there: what it
// returns is used instead. Commands that name events or compiled kernels are refused,
// since those are of one process. The list is checked as any other when it is submitted.
func (l *List) Replay(encoded []byte, name func(id uint64, u Use) (Region, error)) error {
	l.Reset()
	if len(encoded)%CommandBytes != 0 || len(encoded) > MaxCommands*CommandBytes {
		return fmt.Errorf("replay: %d bytes are not 1 to %d commands of %d: %w", len(encoded), MaxCommands, CommandBytes, ErrInvalid)
	}
	for n := range len(encoded) / CommandBytes {
		var cmd c.Cmd
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&cmd)), CommandBytes), encoded[n*CommandBytes:])
		if cmd.Op == c.OpRecord || cmd.Op == c.OpWait || cmd.Op == c.OpLaunch {
			return fmt.Errorf("replay: command %d: operation %d is of one process: %w", n, cmd.Op, ErrInvalid)
		}
		var none c.Range
		ranges := [...]*c.Range{&cmd.Src[0], &cmd.Src[1], &cmd.Src[2], &none, &cmd.Dst}
		if cmd.Op == c.OpROI {
			ranges[3] = &(*c.ROI)(unsafe.Pointer(&cmd.Args)).Boxes
		}
		for _, r := range ranges {
			if *r == none {
				continue
			}
			const most = 1 << 48 // no buffer is larger, and sums of two do not wrap
			if r.Buf == 0 || r.Off > most || r.Len > most {
				return fmt.Errorf("replay: command %d: bytes %d+%d of buffer %d: %w", n, r.Off, r.Len, r.Buf, ErrInvalid)
			}
			u := Use{Off: int(r.Off), Len: int(r.Len), Read: r != &cmd.Dst || !writesAll(cmd.Op), Write: r == &cmd.Dst}
			at, err := name(r.Buf, u)
			if err != nil {
				return fmt.Errorf("replay: command %d: %w", n, err)
			}
			*r = l.place("replay", at)
		}
		l.add(cmd)
	}
	return l.err
}

// writesAll tells whether an operation writes every byte of its destination,
// whatever its arguments.
func writesAll(op uint32) bool {
	switch op {
	case c.OpDecode, c.OpNMS, c.OpSoftmax, c.OpGemm:
		return false
	}
	return true
}
