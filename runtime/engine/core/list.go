package core

import (
	"fmt"
	"math"
	"runtime"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// MaxCommands is the capacity of a list.
const MaxCommands = c.MaxCmds

// List collects commands and submits them with one call to the backend. It may be
// submitted repeatedly and reused after Reset, without allocations.
//
// Submit reports an invalid command; then no command has run.
type List struct {
	s    *Stream
	cmds []c.Cmd
	err  error

	number uint64 // of these commands in the stream; 0 before their first Submit, and with an error
}

// List returns an empty list for the stream.
func (s *Stream) List() *List { return &List{s: s} }

// Reset empties the list.
func (l *List) Reset() *List {
	l.cmds, l.err, l.number = l.cmds[:0], nil, 0
	return l
}

// Len returns the number of commands.
func (l *List) Len() int { return len(l.cmds) }

// Copy copies src to dst. Both must have the same length and not overlap.
func (l *List) Copy(dst, src Region) *List {
	cmd := c.Cmd{Op: c.OpCopy, Dst: l.resolve("copy", "destination", dst)}
	cmd.Src[0] = l.resolve("copy", "source", src)
	return l.add(cmd)
}

// Preprocess makes a tensor in dst from the frame in planes: two regions for NV12, three
// for I420, otherwise one. Planes, Out and OutBytes of p are not used.
func (l *List) Preprocess(dst Region, planes [3]Region, p *Preprocess) *List {
	args, err := p.args()
	if err != nil {
		return l.fail(err)
	}
	cmd := c.Cmd{Op: c.OpPreprocess, Dst: l.resolve("preprocess", "destination", dst)}
	c.Put(&cmd, args)
	for i := range p.planes() {
		cmd.Src[i] = l.resolve("preprocess", "plane", planes[i])
	}
	return l.add(cmd)
}

// Reduce combines the float32 values of src into one float32 at dst.
func (l *List) Reduce(dst, src Region, op Reduction) *List {
	cmd := c.Cmd{Op: c.OpReduce, Value: uint32(op), Dst: l.resolve("reduce", "destination", dst)}
	cmd.Src[0] = l.resolve("reduce", "source", src)
	return l.add(cmd)
}

// Record makes e mark this point of the list.
func (l *List) Record(e *Event) *List {
	if e == nil || e.d != l.s.d {
		return l.fail(fmt.Errorf("record: the event is nil or belongs to another device: %w", ErrInvalid))
	}
	return l.add(c.Cmd{Op: c.OpRecord, Event: e.id})
}

// Submit checks all commands and queues them in order. Errors of their execution are
// returned here or by Stream.Wait. On the CPU a list that is submitted several times in a row
// is checked once, and again after anything of the device was released.
func (l *List) Submit() error {
	if l.number == 0 {
		return l.submitFirst()
	}
	code := l.s.s.Submit(l.cmds, l.number)
	if code != 0 {
		return l.failed(code)
	}
	runtime.KeepAlive(l.s) // its cleanup frees the stream that the call used
	return nil
}

// submitFirst submits a list that is new or changed.
func (l *List) submitFirst() error {
	if l.err != nil {
		return fmt.Errorf("submit: %w", l.err)
	}
	if l.s.d.draft {
		return fmt.Errorf("submit: the list of a draft must be replayed in another process: %w", ErrClosed)
	}
	l.s.lists++
	l.number = l.s.lists
	code := l.s.s.Submit(l.cmds, l.number)
	if code != 0 {
		return l.failed(code)
	}
	runtime.KeepAlive(l.s)
	return nil
}

// failed explains the code of the stream's last call.
func (l *List) failed(code int32) error {
	err := backendError("submit", l.s.s.Why(code))
	runtime.KeepAlive(l.s)
	return err
}

func (l *List) add(cmd c.Cmd) *List {
	if l.err == nil {
		l.cmds, l.number = append(l.cmds, cmd), 0
	}
	return l
}

// fail records the first error of the list.
func (l *List) fail(err error) *List {
	l.number = 0
	if l.err == nil {
		l.err = fmt.Errorf("command %d: %w", len(l.cmds), err)
	}
	return l
}

// resolve converts a region to a range of the backend. op and what name it in errors.
func (l *List) resolve(op, what string, r Region) c.Range {
	switch {
	case r.Buf == nil || r.Buf.d != l.s.d: // id 0 would mean host memory
		l.fail(fmt.Errorf("%s: %s: the buffer is nil or belongs to another device: %w", op, what, ErrInvalid))
		return c.Range{}
	case r.Off < 0 || r.Len < 0:
		l.fail(fmt.Errorf("%s: %s: offset %d and length %d must not be negative: %w", op, what, r.Off, r.Len, ErrInvalid))
		return c.Range{}
	}
	return c.Range{Buf: r.Buf.id, Off: uint64(r.Off), Len: uint64(r.Len)}
}

// args converts p to the struct of the ABI. It checks only that the values fit 32 bits; the
// backend checks the rest.
func (p *Preprocess) args() (c.Preprocess, error) {
	for _, v := range [...]int{p.Width, p.Height, p.Pitch[0], p.Pitch[1], p.Pitch[2],
		p.Crop.X, p.Crop.Y, p.Crop.Width, p.Crop.Height, p.OutW, p.OutH} {
		if v < 0 || v > math.MaxInt32 {
			return c.Preprocess{}, fmt.Errorf("preprocess: size, pitch or position %d must be 0 to %d: %w", v, math.MaxInt32, ErrInvalid)
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
