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
)

// lane is a stream with the resources for one call on host memory. Lanes are reused, so
// that the frame path allocates nothing.
type lane struct {
	stream *Stream
	cmds   []c.Cmd // a separate allocation, because cgo scans the whole object for pointers
	pin    runtime.Pinner
	pinned bool

	// Staging buffers, for backends that cannot access Go memory.
	in, out       *Buffer // on the host
	devIn, devOut *Buffer // on the device; the same buffers if memory is shared
}

// Preprocess makes a tensor from a frame, both in host memory. It returns when p.Out, or
// p.OutBytes, is written. Calls from several goroutines run in parallel.
//
// The CPU backend works in place. Other backends copy through pinned memory, which the
// device keeps between calls. For frames in a Buffer, List.Preprocess avoids these copies.
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
	return d.runOnHost(ctx, op, cmd, p.Planes[:p.planes()], out)
}

// Reduce combines x into one value. For an empty x, Sum is 0, Min +Inf and Max -Inf. Any NaN
// gives NaN. The result depends on neither backend nor thread count.
func (d *Device) Reduce(ctx context.Context, op Reduction, x []float32) (float32, error) {
	out := make([]float32, 1)
	cmd := c.Cmd{Op: c.OpReduce, Value: uint32(op)}
	err := d.runOnHost(ctx, "reduce", cmd, [][]byte{floatBytes(x)}, floatBytes(out))
	return out[0], err
}

// Diff compares two planes, both in host memory, as [List.Diff] does. dst is aligned to 8 bytes.
func (d *Device) Diff(ctx context.Context, dst, x, y []byte, a DiffArgs) error {
	cmd := c.Cmd{Op: c.OpDiff}
	c.Put(&cmd, a)
	return d.runOnHost(ctx, "diff", cmd, [][]byte{x, y}, dst)
}

// Stats measures the plane of a picture in host memory, as [List.Stats] does. dst is aligned to 8 bytes.
func (d *Device) Stats(ctx context.Context, dst, plane []byte, a StatsArgs) error {
	cmd := c.Cmd{Op: c.OpStats}
	c.Put(&cmd, a)
	return d.runOnHost(ctx, "stats", cmd, [][]byte{plane}, dst)
}

// runOnHost runs a command whose sources and destination are Go memory.
func (d *Device) runOnHost(ctx context.Context, op string, cmd c.Cmd, src [][]byte, dst []byte) error {
	if err := contextError(ctx, op); err != nil {
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
	// Work of an earlier call that timed out may still use the lane.
	if err := ln.reclaim(ctx); err != nil {
		d.giveLane(ln)
		return fmt.Errorf("%s: %w", op, err)
	}
	if d.direct {
		err = ln.runInPlace(ctx, op, cmd, src, dst)
	} else {
		err = ln.runStaged(ctx, op, cmd, src, dst)
	}
	d.giveLane(ln)
	return err
}

// reclaim waits for the work of a call that timed out and unpins its memory.
func (ln *lane) reclaim(ctx context.Context) error {
	err := ln.stream.Wait(ctx)
	if errors.Is(err, ErrTimeout) || errors.Is(err, ErrCancelled) {
		return err
	}
	if ln.pinned { // a failure of that work does not concern this call
		ln.unpin()
		return nil
	}
	return err
}

func (ln *lane) unpin() {
	ln.pin.Unpin()
	ln.pinned = false
}

// runInPlace runs a command directly on Go memory. If ctx ends first, the memory stays
// pinned and may still be written until the lane is used again.
func (ln *lane) runInPlace(ctx context.Context, op string, cmd c.Cmd, src [][]byte, dst []byte) error {
	ln.pinned = true
	cmd.Dst = ln.pinHost(dst)
	for i, b := range src {
		cmd.Src[i] = ln.pinHost(b)
	}
	ln.cmds[0] = cmd
	if code := ln.stream.s.Submit(ln.cmds[:1], 0); code != 0 {
		ln.unpin()
		return backendError(op, ln.stream.s.Why(code))
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

// pinHost pins Go memory and returns it as a range.
func (ln *lane) pinHost(b []byte) c.Range {
	if len(b) == 0 {
		return c.Range{}
	}
	p := unsafe.SliceData(b)
	ln.pin.Pin(p)
	return c.Range{Off: uint64(uintptr(unsafe.Pointer(p))), Len: uint64(len(b))}
}

// stageAlign is the alignment of each plane in staging memory, for vector loads.
const stageAlign = 256

// runStaged runs a command on copies in staging memory.
func (ln *lane) runStaged(ctx context.Context, op string, cmd c.Cmd, src [][]byte, dst []byte) error {
	size := 0
	for _, b := range src {
		size += (len(b) + stageAlign - 1) / stageAlign * stageAlign
	}
	if err := ln.grow(max(size, 1), len(dst)); err != nil {
		return fmt.Errorf("%s: staging memory: %w", op, err)
	}
	at := 0
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
	if code := ln.stream.s.Submit(list, 0); code != 0 {
		return backendError(op, ln.stream.s.Why(code))
	}
	if err := ln.stream.Wait(ctx); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	copy(dst, ln.out.host)
	return nil
}

// grow enlarges the staging buffers to at least in and out bytes.
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
		if b != nil && d.disown(b) { // false if both are the same buffer
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
