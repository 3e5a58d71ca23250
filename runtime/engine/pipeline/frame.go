package pipeline

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/ort"
)

// frame is one slot of the pool: the memory of a frame on its way through the
// pipeline, and what is known of it.
type frame struct {
	id      uint64
	slot    int   // in the pool
	capture int64 // ns
	pixels  []byte
	results []Result
	spent   []span // by stage, then the sink
	entered int64  // ns, when it was put in the queue it is in

	arrived int64 // ns, when a source that paces itself had it; 0: another one
	copies  int   // that the source made of it
	fixed   bool  // pixels stays where it is: another process sees that memory
	loan    *loan // whose memory pixels is, nil: the frame's own

	level    int32      // of the ladder, while it is on its way
	admitted bool       // it left the first queue
	tensors  [][]tensor // by level and stage; empty where a stage makes none
}

// span is where the time of a frame went at one stage, in ns.
type span struct{ queue, service int64 }

// tensor is a dense float32 array, row-major.
type tensor struct {
	shape []int64
	data  []float32
	ort   *ort.Tensor  // the same memory as a model takes it; nil beside models
	buf   *core.Buffer // the same memory as the core takes it; nil where it does not
	more  *tensor      // a second output of the model
}

// clock reads CLOCK_MONOTONIC, which V4L2 stamps frames with too. Go's own
// monotonic reading is the same clock from another zero.
type clock struct {
	base  int64
	start time.Time
}

func newClock() (clock, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return clock{}, err
	}
	return clock{base: ts.Nano(), start: time.Now()}, nil
}

func (c clock) now() int64 { return c.base + int64(time.Since(c.start)) }

// mapMemory allocates memory outside the Go heap, page-aligned and with its
// pages in place, for what C code works on frame after frame.
func mapMemory(bytes int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes for frames: %w", bytes, err)
	}
	return b, nil
}
