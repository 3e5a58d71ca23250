package core

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// Reduction is an associative operation on float32 values.
type Reduction uint32

const (
	Sum Reduction = iota
	Min
	Max
	Mean // of nothing: NaN
)

// lane is a stream with what one call on host memory needs, kept for the next
// call so that the frame path allocates nothing.
type lane struct {
	stream *Stream
	cmds   []c.Cmd // its own allocation: cgo looks at the whole object for Go pointers
	pin    runtime.Pinner
	pinned bool

	// Staging, only on backends that do not read Go memory in place.
	in, out       *Buffer // host side
	devIn, devOut *Buffer // device side; the same buffers where memory is shared
}

// Preprocess makes a tensor from a frame, both in host memory, and returns when
// p.Out, or p.OutBytes, is written. Calls from several goroutines run in parallel.
//
// The CPU backend works in place. A backend that cannot goes through pinned
// memory that the device keeps between calls; frames that live in a Buffer are
// better served by List.Preprocess.
func (d *Device) Preprocess(ctx context.Context, p Preprocess) error {
	const op = "preprocess"
	args, err := p.args()
	if err != nil {
		return err
	}
	out := floatBytes(p.Out)
	if p.Type != F32 {
		out = p.OutBytes
	}
	if len(out) == 0 {
		return fmt.Errorf("%s: Out is empty: %w", op, ErrInvalid)
	}
	cmd := c.Cmd{Op: c.OpPreprocess}
	c.Put(&cmd, args)
	return d.onHost(ctx, op, cmd, p.Planes[:p.planes()], out)
}

// Reduce combines x into one value. Of nothing: Sum 0, Min +Inf, Max -Inf. Any
// NaN gives NaN. The result does not depend on backend or thread count.
func (d *Device) Reduce(ctx context.Context, op Reduction, x []float32) (float32, error) {
	out := make([]float32, 1)
	cmd := c.Cmd{Op: c.OpReduce, Value: uint32(op)}
	err := d.onHost(ctx, "reduce", cmd, [][]byte{floatBytes(x)}, floatBytes(out))
	return out[0], err
}

// onHost runs one command whose sources and destination are Go memory.
func (d *Device) onHost(ctx context.Context, op string, cmd c.Cmd, src [][]byte, dst []byte) error {
	if err := ended(ctx, op); err != nil {
		return err
	}
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.gate.RUnlock()
	ln, err := d.takeLane()
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	// Work of a call that gave up may still use the staging memory.
	if err := ln.settle(ctx); err != nil {
		d.giveLane(ln)
		return fmt.Errorf("%s: %w", op, err)
	}
	if d.direct {
		err = ln.inPlace(ctx, op, cmd, src, dst)
	} else {
		err = ln.staged(ctx, op, cmd, src, dst)
	}
	d.giveLane(ln)
	return err
}

// settle waits for the work of a call that gave up, and lets its memory go.
func (ln *lane) settle(ctx context.Context) error {
	err := ln.stream.Wait(ctx)
	if errors.Is(err, ErrTimeout) || errors.Is(err, ErrCancelled) {
		return err
	}
	if ln.pinned { // else the failure is that call's, not this one's
		ln.unpin()
		return nil
	}
	return err
}

func (ln *lane) unpin() {
	ln.pin.Unpin()
	ln.pinned = false
}

// inPlace runs one command on Go memory. When ctx ends first the memory stays
// pinned, and may still be written, until the lane is used again.
func (ln *lane) inPlace(ctx context.Context, op string, cmd c.Cmd, src [][]byte, dst []byte) error {
	ln.pinned = true
	cmd.Dst = ln.host(dst)
	for i, b := range src {
		cmd.Src[i] = ln.host(b)
	}
	ln.cmds[0] = cmd
	if code := ln.stream.s.Submit(ln.cmds[:1]); code != 0 {
		ln.unpin()
		return failed(op, ln.stream.s.Why(code))
	}
	err := ln.stream.Wait(ctx)
	if errors.Is(err, ErrTimeout) || errors.Is(err, ErrCancelled) {
		return fmt.Errorf("%s: %w", op, err)
	}
	ln.unpin()
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// host names Go memory and pins it, so that its address stays true.
func (ln *lane) host(b []byte) c.Range {
	if len(b) == 0 {
		return c.Range{}
	}
	p := unsafe.SliceData(b)
	ln.pin.Pin(p)
	return c.Range{Off: uint64(uintptr(unsafe.Pointer(p))), Len: uint64(len(b))}
}

// stageAlign keeps every plane on the boundary the kernels like best.
const stageAlign = 256

func (ln *lane) staged(ctx context.Context, op string, cmd c.Cmd, src [][]byte, dst []byte) error {
	size := 0
	for _, b := range src {
		size += (len(b) + stageAlign - 1) / stageAlign * stageAlign
	}
	if err := ln.grow(max(size, 1), len(dst)); err != nil {
		return fmt.Errorf("%s: staging memory: %w", op, err)
	}
	at := 0
	ln.stream.d.memory.staged(size, len(dst))
	for i, b := range src {
		copy(ln.in.host[at:], b)
		cmd.Src[i] = c.Range{Buf: ln.devIn.id, Off: uint64(at), Len: uint64(len(b))}
		at += (len(b) + stageAlign - 1) / stageAlign * stageAlign
	}
	cmd.Dst = c.Range{Buf: ln.devOut.id, Len: uint64(len(dst))}

	list := ln.cmds[:0]
	if ln.devIn != ln.in {
		up := c.Cmd{Op: c.OpCopy, Dst: c.Range{Buf: ln.devIn.id, Len: uint64(size)}}
		up.Src[0] = c.Range{Buf: ln.in.id, Len: uint64(size)}
		list = append(list, up)
	}
	list = append(list, cmd)
	if ln.devOut != ln.out {
		down := c.Cmd{Op: c.OpCopy, Dst: c.Range{Buf: ln.out.id, Len: uint64(len(dst))}}
		down.Src[0] = cmd.Dst
		list = append(list, down)
	}
	if code := ln.stream.s.Submit(list); code != 0 {
		return failed(op, ln.stream.s.Why(code))
	}
	if err := ln.stream.Wait(ctx); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	copy(dst, ln.out.host)
	return nil
}

// grow makes the staging buffers at least as large as asked.
func (ln *lane) grow(in, out int) error {
	if err := ln.growPair(&ln.in, &ln.devIn, in); err != nil {
		return err
	}
	return ln.growPair(&ln.out, &ln.devOut, out)
}

func (ln *lane) growPair(host, dev **Buffer, n int) error {
	d := ln.stream.d
	if *host != nil && (*host).size >= n {
		return nil
	}
	for _, b := range []*Buffer{*host, *dev} {
		if b != nil && d.disown(b) { // the same buffer twice is released once
			if err := b.release(); err != nil {
				d.adopt(b)
				return err
			}
		}
	}
	*host, *dev = nil, nil
	mode := MemPinned
	if d.integrated {
		mode = MemMapped
	}
	h, err := d.alloc(n, mode)
	if err != nil {
		return err
	}
	*host, *dev = h, h
	if d.integrated {
		return nil
	}
	if *dev, err = d.alloc(n, MemDevice); err != nil {
		*host, *dev = nil, nil
		if d.disown(h) {
			return errors.Join(err, h.release())
		}
		return err
	}
	return nil
}

func (d *Device) takeLane() (*lane, error) {
	d.mu.Lock()
	if n := len(d.lanes); n > 0 {
		ln := d.lanes[n-1]
		d.lanes = d.lanes[:n-1]
		d.mu.Unlock()
		return ln, nil
	}
	d.mu.Unlock()
	s, err := d.newStream(StreamOptions{})
	if err != nil {
		return nil, err
	}
	return &lane{stream: s, cmds: make([]c.Cmd, 3)}, nil
}

func (d *Device) giveLane(ln *lane) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lanes = append(d.lanes, ln)
}

func hostBytes(p unsafe.Pointer, n int) []byte {
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(p), n)
}

func floats(b []byte) []float32 {
	if len(b) < 4 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func floatBytes(x []float32) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}
