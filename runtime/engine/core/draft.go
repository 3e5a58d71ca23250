package core

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
	"github.com/yoctune/yoctune/schema/fuse"
)

// CommandBytes is the size of an encoded command.
const CommandBytes = int(unsafe.Sizeof(c.Cmd{}))

// Draft represents a device of another process. It builds lists here that List.Replay runs
// there. It has no memory and runs nothing: Submit and Release of its objects return
// ErrClosed.
type Draft struct {
	d *Device
	s *Stream
}

// NewDraft returns a draft.
func NewDraft() *Draft {
	d := &Device{draft: true, closed: true}
	return &Draft{d: d, s: &Stream{d: d}}
}

// Buffer returns a buffer of n bytes that has the given id, not 0, in the other process.
// host is its mapping in this process, or nil.
func (dr *Draft) Buffer(id uint64, n int, host []byte) *Buffer {
	mode := MemDevice
	if host != nil {
		mode = MemRegistered
	}
	return &Buffer{d: dr.d, id: id, mode: mode, size: n, host: host}
}

// List starts an empty list.
func (dr *Draft) List() *List { return dr.s.List() }

// Fused represents a chain that the other process has compiled, the n-th of those of [List.Replay].
func (dr *Draft) Fused(chain *fuse.Chain, n int) *Fused {
	return &Fused{chain: chain, operands: chain.Operands(), m: &module{d: dr.d, kernel: uint64(n)}}
}

// Encoded returns the list as bytes for Replay, CommandBytes per command. The bytes are
// valid until the list changes.
func (l *List) Encoded() ([]byte, error) {
	if l.err != nil {
		return nil, fmt.Errorf("encode: %w", l.err)
	}
	if len(l.cmds) == 0 {
		return nil, nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(l.cmds))), len(l.cmds)*CommandBytes), nil
}

// Use is a region of a replayed command. A region that is written only in part, such as a
// list of boxes with spare capacity, has Read set as well, because its rest must be kept.
type Use struct {
	Off, Len    int // bytes
	Read, Write bool
}

// Replay replaces the list's commands with those that another process encoded. resolve
// returns the region to use for each region of a command. Commands with events or compiled
// kernels are refused, because those exist in one process only, except for chains: a launch names
// one of those given by its number. Submit checks the list as any other.
func (l *List) Replay(encoded []byte, resolve func(id uint64, u Use) (Region, error), chains ...*Fused) error {
	l.Reset()
	if len(encoded)%CommandBytes != 0 || len(encoded) > MaxCommands*CommandBytes {
		return fmt.Errorf("replay: %d bytes are not 1 to %d commands of %d bytes: %w", len(encoded), MaxCommands, CommandBytes, ErrInvalid)
	}
	for n := range len(encoded) / CommandBytes {
		var cmd c.Cmd
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&cmd)), CommandBytes), encoded[n*CommandBytes:])
		if cmd.Op == c.OpRecord {
			return fmt.Errorf("replay: command %d: operation %d cannot be sent to another process: %w", n, cmd.Op, ErrInvalid)
		}
		if err := replaceChain(&cmd, chains); err != nil {
			return fmt.Errorf("replay: command %d: %w", n, err)
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
			const most = 1 << 48 // larger than any buffer; sums of two do not overflow
			if r.Buf == 0 || r.Off > most || r.Len > most {
				return fmt.Errorf("replay: command %d: invalid range of %d bytes at %d of buffer %d: %w", n, r.Len, r.Off, r.Buf, ErrInvalid)
			}
			u := Use{Off: int(r.Off), Len: int(r.Len), Read: r != &cmd.Dst || !writesAll(cmd.Op), Write: r == &cmd.Dst}
			at, err := resolve(r.Buf, u)
			if err != nil {
				return fmt.Errorf("replay: command %d: %w", n, err)
			}
			*r = l.resolve("replay", "region", at)
		}
		l.add(cmd)
	}
	return l.err
}

// replaceChain makes the launch of a chain that another process encoded one of a kernel of this process.
// The sizes of its memory decide what it does.
func replaceChain(cmd *c.Cmd, chains []*Fused) error {
	if cmd.Op != c.OpLaunch {
		return nil
	}
	a := *(*c.Launch)(unsafe.Pointer(&cmd.Args))
	if a.Kernel >= uint64(len(chains)) || a.Ranges < 2 || a.Ranges > 4 || a.Param[1] > math.MaxInt32 || a.Param[2] > math.MaxInt32 ||
		cmd.Dst.Len > math.MaxInt32 || cmd.Src[0].Len > math.MaxInt32 {
		return fmt.Errorf("launch of chain %d of %d: %w", a.Kernel, len(chains), ErrInvalid)
	}
	f := chains[a.Kernel]
	var others [2]int
	for i := range a.Ranges - 2 {
		others[i] = int(min(cmd.Src[1+i].Len, math.MaxInt32))
	}
	made, err := f.launch(int(cmd.Dst.Len), int(cmd.Src[0].Len), Channels{Inner: int(a.Param[1]), Count: int(a.Param[2])}, others[:a.Ranges-2])
	if err != nil {
		return err
	}
	c.Put(cmd, made)
	return nil
}

// writesAll reports whether an operation writes every byte of its destination for all
// arguments.
func writesAll(op uint32) bool {
	switch op {
	case c.OpDecode, c.OpNMS, c.OpSoftmax, c.OpGemm:
		return false
	}
	return true
}
