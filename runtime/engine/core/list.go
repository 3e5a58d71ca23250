package core

import (
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// MaxCommands is how many commands one list holds.
const MaxCommands = c.MaxCmds

// List collects commands and submits them in one call into the backend. It may
// be submitted again, and reused after Reset; neither allocates.
//
// A mistake in a command is reported by Submit, and then no command has run.
type List struct {
	s    *Stream
	cmds []c.Cmd
	err  error
}

// List starts an empty list.
func (s *Stream) List() *List { return &List{s: s} }

// Reset empties the list.
func (l *List) Reset() *List {
	l.cmds, l.err = l.cmds[:0], nil
	return l
}

// Len returns the number of commands.
func (l *List) Len() int { return len(l.cmds) }

// Copy copies src to dst, which must have its length and not overlap it.
func (l *List) Copy(dst, src Region) *List {
	cmd := c.Cmd{Op: c.OpCopy, Dst: l.place("copy: destination", dst)}
	cmd.Src[0] = l.place("copy: source", src)
	return l.add(cmd)
}

// Memset sets every byte of dst.
func (l *List) Memset(dst Region, value byte) *List {
	return l.add(c.Cmd{Op: c.OpMemset, Value: uint32(value), Dst: l.place("memset: destination", dst)})
}

// Preprocess makes a tensor in dst from a frame in planes (two regions for
// NV12, three for I420, else one). Planes, Out and OutBytes of p are not used.
func (l *List) Preprocess(dst Region, planes [3]Region, p *Preprocess) *List {
	args, err := p.args()
	if err != nil {
		return l.fail(err)
	}
	cmd := c.Cmd{Op: c.OpPreprocess, Dst: l.place("preprocess: destination", dst)}
	c.Put(&cmd, args)
	for i := range p.planes() {
		cmd.Src[i] = l.place("preprocess: plane", planes[i])
	}
	return l.add(cmd)
}

// Reduce combines the float32 values of src into one at dst. ReduceOf takes other
// types of values.
func (l *List) Reduce(dst, src Region, op Reduction) *List {
	cmd := c.Cmd{Op: c.OpReduce, Value: uint32(op), Dst: l.place("reduce: destination", dst)}
	cmd.Src[0] = l.place("reduce: source", src)
	return l.add(cmd)
}

// ReduceOf combines the values of src, of type t (F32, F16, BF16), into one float32
// at dst, in the same fixed tree. fast allows another order, which a backend may use.
func (l *List) ReduceOf(dst, src Region, op Reduction, t Type, fast bool) *List {
	cmd := c.Cmd{Op: c.OpReduce, Value: uint32(op), Dst: l.place("reduce: destination", dst)}
	cmd.Src[0] = l.place("reduce: source", src)
	args := c.Reduce{Type: uint32(t)}
	if fast {
		args.Flags = 1 // YT_REDUCE_FAST
	}
	c.Put(&cmd, args)
	return l.add(cmd)
}

// Record lets e mark this point.
func (l *List) Record(e *Event) *List {
	if e == nil || e.d != l.s.d {
		return l.fail(fmt.Errorf("record: event is nil or of another device: %w", ErrInvalid))
	}
	return l.add(c.Cmd{Op: c.OpRecord, Event: e.id})
}

// Wait lets what follows wait until e's last submitted record has passed. An event
// that was not recorded is not waited for.
func (l *List) Wait(e *Event) *List {
	if e == nil || e.d != l.s.d {
		return l.fail(fmt.Errorf("wait: event is nil or of another device: %w", ErrInvalid))
	}
	return l.add(c.Cmd{Op: c.OpWait, Event: e.id})
}

// Signal writes value to the 4 bytes of dst, where the CPU, also in another process
// that maps them, sees it; futex waiters are woken where the CPU does the work.
func (l *List) Signal(dst Region, value uint32) *List {
	return l.add(c.Cmd{Op: c.OpSignal, Value: value, Dst: l.place("signal: destination", dst)})
}

// Submit checks every command and queues them in order. A failure of their
// execution is reported here or by Stream.Wait.
func (l *List) Submit() error {
	if l.err != nil {
		return fmt.Errorf("submit: %w", l.err)
	}
	if l.s.d.draft {
		return fmt.Errorf("submit: a draft runs in another process: %w", ErrClosed)
	}
	var after map[*Mirror]sides
	if l.s.d.mirrored.Load() {
		var err error
		if after, err = l.track(); err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		if after != nil && l.s.recording {
			return fmt.Errorf("submit: a graph may run at any time, so it cannot tell which side of a mirror is newer: use buffers: %w", ErrInvalid)
		}
	}
	code := l.s.s.Submit(l.cmds)
	if code != 0 {
		err := failed("submit", l.s.s.Why(code))
		if after != nil && !errors.Is(err, ErrInvalid) { // some of it ran
			l.s.submitted(after)
			l.s.settle(false)
		}
		return err
	}
	runtime.KeepAlive(l.s) // whose end frees what the call used
	if after != nil {
		l.s.submitted(after)
	}
	return nil
}

func (l *List) add(cmd c.Cmd) *List {
	if l.err == nil {
		l.cmds = append(l.cmds, cmd)
	}
	return l
}

// fail keeps the first mistake, which is the one to correct.
func (l *List) fail(err error) *List {
	if l.err == nil {
		l.err = fmt.Errorf("command %d: %w", len(l.cmds), err)
	}
	return l
}

func (l *List) place(what string, r Region) c.Range {
	switch {
	case r.Buf == nil || r.Buf.d != l.s.d: // id 0 would mean host memory
		l.fail(fmt.Errorf("%s: buffer is nil or of another device: %w", what, ErrInvalid))
		return c.Range{}
	case r.Off < 0 || r.Len < 0:
		l.fail(fmt.Errorf("%s: offset %d, length %d: not negative: %w", what, r.Off, r.Len, ErrInvalid))
		return c.Range{}
	}
	return c.Range{Buf: r.Buf.id, Off: uint64(r.Off), Len: uint64(r.Len)}
}

// args turns the Go value into the ABI's. What does not fit 32 bits would wrap,
// so it is refused here; all else the backend checks.
func (p *Preprocess) args() (c.Preprocess, error) {
	for _, v := range [...]int{p.Width, p.Height, p.Pitch[0], p.Pitch[1], p.Pitch[2],
		p.Crop.X, p.Crop.Y, p.Crop.Width, p.Crop.Height, p.OutW, p.OutH} {
		if v < 0 || v > math.MaxInt32 {
			return c.Preprocess{}, fmt.Errorf("preprocess: a size, pitch or position of %d: must be 0 to %d: %w", v, math.MaxInt32, ErrInvalid)
		}
	}
	return c.Preprocess{
		Format: uint32(p.Format), Fit: uint32(p.Fit), Color: uint32(p.Color), Chroma: uint32(p.Chroma), Matrix: uint32(p.Matrix),
		Width: uint32(p.Width), Height: uint32(p.Height),
		Pitch: [3]uint32{uint32(p.Pitch[0]), uint32(p.Pitch[1]), uint32(p.Pitch[2])},
		CropX: uint32(p.Crop.X), CropY: uint32(p.Crop.Y), CropW: uint32(p.Crop.Width), CropH: uint32(p.Crop.Height),
		OutW: uint32(p.OutW), OutH: uint32(p.OutH), Pad: uint32(p.Pad), Mean: p.Mean, Std: p.std(),
		Type: uint8(p.Type), Layout: uint8(p.Layout),
	}, nil
}

func (p *Preprocess) planes() int { return p.Format.planes() }
