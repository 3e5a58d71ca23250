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
	"github.com/yoctune/yoctune/schema/units"
)

// rig holds what a run needs: a stream, the two events around a measurement, and the
// resources of the benchmarks.
type rig struct {
	d          *core.Device
	stream     *core.Stream
	start, end *core.Event
	buffers    []*core.Buffer
	cleanup    []func() error
	libraries  *libraries
	library    string // backend library, for opening another device
	clock      clock
}

// clock measures how long a function takes.
type clock func(func() error) (time.Duration, error)

// Clocks that Measurement.Clock names.
const (
	wallClock   = "wall"
	threadClock = "thread" // processor time of the calling thread, excluding other programs
	deviceClock = "device" // between two events of the device

	processClock = "process" // processor time of all threads, excluding other programs
)

func timeByWall(f func() error) (time.Duration, error) {
	t := time.Now()
	err := f()
	return time.Since(t), err
}

// timeByThread measures processor time. The caller must hold runtime.LockOSThread, and f
// must not use other threads.
func timeByThread(f func() error) (time.Duration, error) {
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
	r := &rig{d: d, libraries: &libraries{}, clock: timeByWall}
	if r.onCPU() {
		r.clock = timeByThread
	}
	var err error
	if r.stream, err = d.NewStream(); err != nil {
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

func (r *rig) onCPU() bool { return r.d.Backend() != core.CUDA }

func (r *rig) release() error {
	var errs []error
	for _, f := range r.cleanup {
		errs = append(errs, f())
	}
	if r.stream != nil { // first, because its work uses the rest
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
	r.libraries.release()
	return errors.Join(errs...)
}

// prepareError carries the error of check to prepare.
type prepareError struct{ err error }

// prepare runs f, which sets up benchmarks, and returns the error that ended it. Setting
// up is a long sequence of allocations; check keeps them readable.
func (r *rig) prepare(f func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case prepareError:
			err = p.err
		default:
			panic(p)
		}
	}()
	f()
	return nil
}

// check ends the enclosing prepare if err is not nil.
func (r *rig) check(err error) {
	if err != nil {
		panic(prepareError{err})
	}
}

// alloc allocates n bytes that release frees. It must be called within prepare.
func (r *rig) alloc(n int, m core.Mode) *core.Buffer {
	b, err := r.d.Alloc(n, m)
	if err != nil {
		r.check(fmt.Errorf("allocate %s: %w", units.RoundSize(int64(n)), err))
	}
	r.buffers = append(r.buffers, b)
	return b
}

// tensor allocates device memory that holds data. It must be called within prepare.
func (r *rig) tensor(data []byte) *core.Buffer {
	b := r.alloc(len(data), core.MemAuto)
	r.check(r.upload(b, data))
	return b
}

// time returns a function that runs the commands and returns their time on the device; on
// the CPU, the processor time of the thread.
func (r *rig) time(add func(*core.List)) func(context.Context) (time.Duration, error) {
	return r.timeRepeated(1, add)
}

// timeRepeated is time for commands that are too short for the clock: the list holds them
// n times, and the returned time is divided by n.
func (r *rig) timeRepeated(n int, add func(*core.List)) func(context.Context) (time.Duration, error) {
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

// timeAverage returns a function that calls f n times and returns the average time.
func (r *rig) timeAverage(n int, f func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		took, err := r.clock(func() error {
			for range n {
				if err := f(); err != nil {
					return err
				}
			}
			return nil
		})
		return took / time.Duration(n), err
	}
}

// fillWithNoise writes to a buffer, so that its pages exist, and returns the same bytes in
// Go memory. It must be called within prepare.
func (r *rig) fillWithNoise(b *core.Buffer) []byte {
	data := noise(b.Len())
	r.check(r.upload(b, data))
	return data
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

// ramp returns n pseudo-random values in [0, 1).
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

// plainReference returns a reference of this package, or nil if the device is not a CPU.
func (r *rig) plainReference(name string, run func()) *reference {
	if !r.onCPU() || !haveReferences {
		return nil
	}
	do := func() error { run(); return nil }
	return &reference{name: name, do: do, run: r.timeAverage(1, do)}
}

// foreignReference is plainReference for a function of another library.
func (r *rig) foreignReference(name string, run func()) *reference {
	ref := r.plainReference(name, run)
	if ref != nil {
		ref.foreign = true
	}
	return ref
}

// networkReference returns ONNX Runtime running a graph, or otherwise if there is no ONNX
// Runtime. It must be called within prepare.
func (r *rig) networkReference(name string, g *graph, shape []int64, x []float32, otherwise *reference) *reference {
	if r.libraries.ort == nil {
		return otherwise
	}
	n, err := r.libraries.newNetwork(g, shape, x)
	if err != nil {
		r.check(fmt.Errorf("reference %s in ONNX Runtime: %w", name, err))
	}
	r.cleanup = append(r.cleanup, func() error { n.release(); return nil })
	return &reference{name: name + " of ONNX Runtime " + r.libraries.ort.Version(), foreign: true, run: r.timeAverage(1, n.run)}
}

func count(n int) *int64 {
	v := int64(n)
	return &v
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

// libraries are the installed libraries to compare with.
type libraries struct {
	blas    *blas
	sws     *sws
	ort     *ort.Runtime
	missing []string
}

func findLibraries(onnxRuntime string) *libraries {
	o := &libraries{blas: openBLAS(), sws: openSws(), missing: []string{}}
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

func (o *libraries) names() []string {
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

func (o *libraries) release() {
	if o.ort != nil {
		o.ort.Close()
	}
}
