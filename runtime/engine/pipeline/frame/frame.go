// Package frame is what moves through a pipeline: frames with their pixels, tensors and
// results, the format of a source's pixels, and the clock that frames are stamped with.
package frame

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
)

// Frame is one slot of the pool: the memory of a frame on its way through the
// pipeline, and what is known of it.
type Frame struct {
	ID      uint64
	Slot    int   // in the pool
	Capture int64 // ns
	Pixels  []byte
	Results []result.Result
	Spent   []Span // by stage, then the sink
	Entered int64  // ns, when it was put in the queue it is in

	Arrived int64 // ns, when a source that paces itself had it; 0: another one
	Copies  int   // that the source made of it
	Fixed   bool  // Pixels stays where it is: another process sees that memory
	Loan    Loan  // whose memory pixels is, nil: the frame's own

	Level    int32      // of the ladder, while it is on its way
	Admitted bool       // it left the first queue
	Tensors  [][]Tensor // by level and stage; empty where a stage makes none
}

// Loan is memory of a driver that a frame has for a while.
type Loan interface {
	Settle()                  // nobody reads the frame any more
	Exported() *custom.Buffer // the memory as a DMA buffer; nil: it is not exported
}

// Span is where the time of a frame went at one stage, in ns.
type Span struct{ Queue, Service int64 }

// Tensor is a dense float32 array, row-major.
type Tensor struct {
	Shape []int64
	Data  []float32
	ORT   *ort.Tensor  // the same memory as a model takes it; nil beside models
	Buf   *core.Buffer // the same memory as the core takes it; nil where it does not
	More  *Tensor      // a second output of the model
}

// Bytes is the memory of the tensor.
func (t *Tensor) Bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(t.Data))), 4*len(t.Data))
}

// Clock reads CLOCK_MONOTONIC, which V4L2 stamps frames with too. Go's own
// monotonic reading is the same clock from another zero.
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

// MapMemory allocates memory outside the Go heap, page-aligned and with its
// pages in place, for what C code works on frame after frame.
func MapMemory(bytes int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes for frames: %w", bytes, err)
	}
	return b, nil
}
