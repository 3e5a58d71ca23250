// Package frame holds the data that moves through a pipeline: frames with their pixels, tensors
// and results, the pixel format of a source, and the clock of timestamps.
package frame

import (
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Frame is one slot of the pool: the memory of a frame in the pipeline, and its metadata.
type Frame struct {
	ID      uint64
	Slot    int   // in the pool
	Capture int64 // ns
	// Moment is when the picture was taken, in ns: the capture, or for a source that is not
	// live the place in the recording, which does not depend on when the frame was read.
	Moment  int64
	Pixels  []byte
	Results []result.Result
	Spent   []Span // by stage, then the sink
	Entered int64  // ns, when it entered its current queue

	Arrived int64 // ns, when a self-paced source received it; 0: another source
	Copies  int   // copies that the source made of it
	Fixed   bool  // Pixels must not move, because another process maps that memory
	Loan    Loan  // owner of Pixels, nil: the frame itself

	Crops []Crop // of Results; made by a roi stage
	// PixelsOn is the number of the worker whose device has a copy of Pixels, 0: none.
	PixelsOn uint64
	Skip     Skip         // what a gate decided
	Age      int64        // ns since the frame whose results are repeated was taken, -1: it has none yet
	Kept     result.Store // memory of repeated results
	Lost     *atomic.Bool // set when the frame is dropped or fails; nil: nothing asks for it

	Reply Reply // caller that waits for the frame; nil: none
	Row   int   // of the caller's request
	// LumaOn is the number of the worker whose device has a copy of the first plane of Pixels, 0: none.
	LumaOn uint64

	Stats    result.Stats // of the picture
	Measured bool         // Stats are set

	Level    int32      // of the ladder, while the frame is in flight
	Admitted bool       // it left the first queue
	Record   Tensor     // Pixels of a source that gives tensors
	Tensors  [][]Tensor // by level and stage; empty for stages without a tensor
}

// Input returns the tensor that stage k reads on a level: that of the stage before it, or of the
// source.
func (f *Frame) Input(level, k int) *Tensor {
	if k == 0 {
		return &f.Record
	}
	return &f.Tensors[level][k-1]
}

// Skip is what happens to a frame whose picture has not changed.
type Skip uint8

const (
	NotSkipped Skip = iota
	Skipped         // it ends at the gate
	Repeated        // it bypasses stages and has the results of an earlier frame
)

// Reply is the caller that a frame is for. One of Answer, Drop and Fail ends each frame.
type Reply interface {
	Unwanted(now int64) error // why the frame need not be processed; nil: the caller waits
	Ran(size int, ns int64)   // a model ran on a batch of that size, which the frame is the first of
	Answer(*Frame) error      // the stages are done
	Drop(reason string, late bool)
	Fail(error)
}

// Loan is driver memory that a frame holds for a while.
type Loan interface {
	Settle()                  // called when the frame is no longer read
	Exported() *custom.Buffer // the memory as a DMA buffer; nil: it is not exported
}

// Crop is a part of a frame that a stage works on, and the result that it is of.
type Crop struct {
	Result int // index
	Area   core.Rect
}

// Span is how long a frame waited for a stage and was processed in it, in ns.
type Span struct{ Queue, Service int64 }

// Tensor is a dense array, row-major.
type Tensor struct {
	DType registry.DType
	Shape []int64
	Data  []float32    // the elements, nil if they are of another type
	Mem   []byte       // the elements of any type as they are in memory; nil: those of Data
	ORT   *ort.Tensor  // the same memory for a model; nil if no model uses it
	Buf   *core.Buffer // the same memory for the core; nil if the core does not use it
	Off   int          // bytes before the elements in Buf
	More  []Tensor     // further outputs of the model

	// On is the number of the worker whose device holds the content, which the memory here then
	// lacks; 0: it is here.
	On uint64
}

// NewTensor returns a tensor over memory of its size.
func NewTensor(t registry.Tensor, memory []byte) Tensor {
	out := Tensor{DType: t.DType, Shape: t.Shape, Mem: memory}
	if t.DType == registry.F32 {
		out.Data = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/4)
	}
	return out
}

// Type describes the tensor.
func (t *Tensor) Type() registry.Tensor { return registry.Tensor{DType: t.DType, Shape: t.Shape} }

// Bytes returns the tensor's memory.
func (t *Tensor) Bytes() []byte {
	if t.Mem != nil {
		return t.Mem
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(t.Data))), 4*len(t.Data))
}

// CopyFrom copies the content of a tensor of the same kind, and of the tensors beside it. Content that a
// worker holds is not copied.
func (t *Tensor) CopyFrom(from *Tensor) {
	if t.On = from.On; t.On == 0 {
		copy(t.Bytes(), from.Bytes())
	}
	for n := range t.More {
		t.More[n].CopyFrom(&from.More[n])
	}
}

// SetOn sets the worker that holds the content of a tensor and of the tensors beside it; 0: none.
func (t *Tensor) SetOn(on uint64) {
	t.On = on
	for n := range t.More {
		t.More[n].On = on
	}
}

// Clock reads CLOCK_MONOTONIC, the clock of V4L2 timestamps. Go's own monotonic clock has
// another zero.
type Clock struct {
	base  int64
	start time.Time
}

// NewClock starts a clock.
func NewClock() (Clock, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return Clock{}, err
	}
	return Clock{base: ts.Nano(), start: time.Now()}, nil
}

func (c Clock) Now() int64 { return c.base + int64(time.Since(c.start)) }

// MapMemory allocates page-aligned memory outside the Go heap, with its pages resident, for C
// code that uses it frame after frame.
func MapMemory(bytes int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes for frames: %w", bytes, err)
	}
	return b, nil
}
