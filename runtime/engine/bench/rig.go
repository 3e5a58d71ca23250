package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/ort"
)

// rig is a stream with two events around whatever is measured, and what a run holds.
type rig struct {
	d          *core.Device
	stream     *core.Stream
	start, end *core.Event
	buffers    []*core.Buffer
	cleanup    []func() error
	others     *others
	library    string // of the backend, to open another device of it
	clock      clock
}

// clock tells how long a function took.
type clock func(func() error) (time.Duration, error)

// Clocks that Measurement.Clock names.
const (
	wallClock   = "wall"
	threadClock = "thread" // processor time of the calling thread: other programs do not count
	deviceClock = "device" // between two events of the device

	processClock = "process" // processor time of all threads: other programs do not count
)

func byWall(f func() error) (time.Duration, error) {
	t := time.Now()
	err := f()
	return time.Since(t), err
}

// byThread needs runtime.LockOSThread. What it measures must not use other threads.
func byThread(f func() error) (time.Duration, error) {
	start, err := threadTime()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	end, err := threadTime()
	return end - start, err
}

func threadTime() (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano()), err
}

func newRig(d *core.Device) (*rig, error) {
	r := &rig{d: d, others: &others{}, clock: byWall}
	if r.onCPU() {
		r.clock = byThread
	}
	var err error
	if r.stream, err = d.NewStream(0); err != nil {
		return nil, err
	}
	if r.start, err = d.NewEvent(); err != nil {
		return nil, errors.Join(err, r.release())
	}
	if r.end, err = d.NewEvent(); err != nil {
		return nil, errors.Join(err, r.release())
	}
	return r, nil
}

func (r *rig) onCPU() bool { return r.d.Backend() == core.CPU }

func (r *rig) release() error {
	var errs []error
	for _, f := range r.cleanup {
		errs = append(errs, f())
	}
	if r.stream != nil { // before the rest: its work uses it
		errs = append(errs, r.stream.Release())
	}
	for _, e := range []*core.Event{r.start, r.end} {
		if e != nil {
			errs = append(errs, e.Release())
		}
	}
	for _, b := range r.buffers {
		errs = append(errs, b.Release())
	}
	r.others.release()
	return errors.Join(errs...)
}

func (r *rig) alloc(n int, m core.Mode) (*core.Buffer, error) {
	b, err := r.d.Alloc(n, m)
	if err != nil {
		return nil, fmt.Errorf("%s of memory: %w", size(n), err)
	}
	r.buffers = append(r.buffers, b)
	return b, nil
}

// tensor is device memory with values.
func (r *rig) tensor(data []byte) (*core.Buffer, error) {
	b, err := r.alloc(len(data), core.MemAuto)
	if err != nil {
		return nil, err
	}
	return b, r.upload(b, data)
}

// timed returns a function that runs the commands and gives the device's time, of a
// CPU the thread's.
func (r *rig) timed(add func(*core.List)) func(context.Context) (time.Duration, error) {
	return r.repeated(1, add)
}

// repeated is timed for what is shorter than the clock can tell: the commands are n
// times in a list, and the time is divided by n.
func (r *rig) repeated(n int, add func(*core.List)) func(context.Context) (time.Duration, error) {
	l := r.stream.List().Record(r.start)
	for range n {
		add(l)
	}
	l.Record(r.end)
	return func(ctx context.Context) (time.Duration, error) {
		took, err := r.clock(func() error {
			if err := l.Submit(); err != nil {
				return err
			}
			return r.stream.Wait(ctx)
		})
		if err == nil && !r.onCPU() {
			took, err = r.end.Since(r.start)
		}
		return took / time.Duration(n), err
	}
}

// filled writes something to a buffer, so that its pages exist, and returns the
// same bytes in Go memory.
func (r *rig) filled(b *core.Buffer) ([]byte, error) {
	data := noise(b.Len())
	return data, r.upload(b, data)
}

func noise(n int) []byte {
	data := make([]byte, n)
	state := uint64(1)
	for i := range data {
		state = state*6364136223846793005 + 1442695040888963407
		data[i] = byte(state >> 56)
	}
	return data
}

// ramp is n values from 0 to nearly 1, in no order.
func ramp(n int) []float32 {
	x := make([]float32, n)
	state := uint64(1)
	for i := range x {
		state = state*6364136223846793005 + 1442695040888963407
		x[i] = float32(state>>40) / (1 << 24)
	}
	return x
}

func (r *rig) upload(b *core.Buffer, data []byte) error {
	if host := b.Bytes(); host != nil {
		copy(host, data)
		return nil
	}
	up, err := r.d.Alloc(len(data), core.MemPinned)
	if err != nil {
		return err
	}
	copy(up.Bytes(), data)
	if err := r.stream.List().Copy(b.At(0, len(data)), up.All()).Submit(); err != nil {
		return err
	}
	if err := r.stream.Wait(context.Background()); err != nil {
		return err
	}
	return up.Release()
}

// plain is a reference of this package, on the CPU only.
func (r *rig) plain(name string, run func()) *reference {
	if !r.onCPU() || !haveReferences {
		return nil
	}
	do := func() error { run(); return nil }
	return &reference{name: name, do: do, run: r.taking(do)}
}

// foreign is a reference that others wrote, on the CPU only.
func (r *rig) foreign(name string, run func()) *reference {
	ref := r.plain(name, run)
	if ref != nil {
		ref.foreign = true
	}
	return ref
}

// network is ONNX Runtime running a graph, or else the reference otherwise.
func (r *rig) network(name string, g *graph, shape []int64, x []float32, otherwise *reference) (*reference, error) {
	if r.others.ort == nil {
		return otherwise, nil
	}
	n, err := r.others.network(g, shape, x)
	if err != nil {
		return nil, fmt.Errorf("reference %s in ONNX Runtime: %w", name, err)
	}
	r.cleanup = append(r.cleanup, func() error { n.release(); return nil })
	return &reference{name: name + " of ONNX Runtime " + r.others.ort.Version(), foreign: true, run: r.taking(n.run)}, nil
}

func count(n int) *int64 {
	v := int64(n)
	return &v
}

// taking is f, timed by the rig's clock.
func (r *rig) taking(f func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) { return r.clock(f) }
}

func bytesOf[T any](x []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), int(unsafe.Sizeof(one))*len(x))
}

func floatsOf(b []byte) []float32 {
	if len(b) < 4 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func size(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// others are libraries to measure against.
type others struct {
	blas    *blas
	sws     *sws
	ort     *ort.Runtime
	missing []string
}

func findOthers(onnxRuntime string) *others {
	o := &others{blas: openBLAS(), sws: openSws(), missing: []string{}}
	if o.blas == nil {
		o.missing = append(o.missing, "libopenblas.so.0")
	}
	if o.sws == nil {
		o.missing = append(o.missing, "libswscale and libavutil")
	}
	path, err := ort.Find(onnxRuntime)
	if err == nil {
		o.ort, err = ort.Open(path)
	}
	if err != nil {
		o.missing = append(o.missing, err.Error())
	}
	return o
}

func (o *others) names() []string {
	names := []string{}
	if o.blas != nil {
		names = append(names, o.blas.name())
	}
	if o.sws != nil {
		names = append(names, o.sws.name())
	}
	if o.ort != nil {
		names = append(names, "ONNX Runtime "+o.ort.Version())
	}
	return names
}

func (o *others) release() {
	if o.ort != nil {
		o.ort.Close()
	}
}
