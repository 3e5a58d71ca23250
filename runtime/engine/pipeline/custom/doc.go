// Package custom runs stages that a user wrote: as a C plug-in (yoctune_stage.h), or
// as a program of any language that speaks the protocol below. Either runs as a child
// process, so that what crashes or hangs in it costs frames and not the pipeline; a
// plug-in can be loaded into this process where that is wanted.
//
// # Protocol
//
// The program reads messages from its standard input and writes messages to its
// standard output; what it writes to standard error is kept for error messages.
// Descriptor 3 is memory that both share: what a frame brings is in it at one place,
// what the stage makes of it belongs at another. A frame of a camera need not be copied
// there: to a program that takes them come descriptors of the driver's own memory. At
// the end of its input the program ends. Numbers are in the machine's byte order. A message is a header of 24 bytes
// and the payload:
//
//	offset  bytes
//	0       4      "YTS1"
//	4       4      type
//	8       8      frame
//	16      4      status: 0, or the payload is the text of an error
//	20      4      bytes of the payload
//
// Types:
//
//	1 OPEN    to the program: version (4 bytes, 1), 0 (4); what the stage takes (96);
//	          what it gives (96); places of both in the memory and its size (8, 8, 8);
//	          options as the plan has them, UTF-8
//	2 READY   from it, when it can work: nothing, or 1 (4) when it takes BUFFER
//	3 RUN     to it: capture time of the frame in ns, CLOCK_MONOTONIC (8); bytes of
//	          what it takes (8); number of the buffer that has it, 0: it is in the
//	          memory (4); 0 (4)
//	4 DONE    from it, with the frame's number: bytes of what it made (8)
//	5 METRIC  from it, at any time before DONE: 1 counter or 0 gauge (4), 0 (4),
//	          value (8, float64), name
//	6 BUFFER  to it, with a descriptor beside the message (SCM_RIGHTS: standard input is
//	          a socket), a DMA buffer to be mapped for reading: its number, 1 to 32 (4);
//	          0 (4); bytes of a frame in it (8). Another one with the number replaces it
//
// What a stage takes or gives is a yoctune_port: kind, format, width, height, rank, 0
// (4 bytes each), eight dimensions (8 each), bytes (8).
package custom

import (
	"errors"
	"fmt"
)

// Errors to test with errors.Is.
var (
	ErrStart  = errors.New("the stage does not start")
	ErrDown   = errors.New("the stage's program is being started again")
	ErrFailed = errors.New("the stage failed")
	ErrPlugin = errors.New("not a plug-in for this program")
)

// abi is the version of both, the plug-in's functions and the protocol.
const abi = 1

// Kinds of what a stage takes or gives.
const (
	Frame   = 1 // pixels
	Tensor  = 2 // float32
	Results = 3 // a JSON array
)

// Port is what a stage takes or gives.
type Port struct {
	Kind                  uint32
	Format, Width, Height uint32  // of frames; the format as in package core
	Shape                 []int64 // of tensors, at most 8
	Bytes                 int     // of one; of results: room for one
}

// Item is a frame's turn.
type Item struct {
	Frame   uint64
	Capture int64   // ns, CLOCK_MONOTONIC
	In      []byte  // what the stage takes, as its port says; of results as many as there are
	Buffer  *Buffer // the same memory as a DMA buffer; nil: it is none
}

// Buffer is memory of a driver.
type Buffer struct {
	ID     uint64 // no other has it
	Number int    // 1 to [maxBuffers]
	FD     int
	Bytes  int // of the frame at its beginning
}

// maxBuffers is how many buffers a program may have to know at once.
const maxBuffers = 32

// fits says what is wrong with what a stage is to take.
func (p *Port) fits(in []byte) error {
	if p.Kind == Results && len(in) <= p.Bytes || len(in) == p.Bytes {
		return nil
	}
	return fmt.Errorf("%w: it takes %d bytes, there are %d", ErrFailed, p.Bytes, len(in))
}

// MaxRank bounds tensors.
const MaxRank = 8

// Metric takes a number of the stage's own.
type Metric func(name string, value float64, counter bool)
