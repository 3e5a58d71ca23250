// Package custom runs stages written by users as child processes, so that a crash or hang costs
// frames and not the pipeline: programs in any language that implement its protocol, or C plug-ins,
// which package plugin loads. A program in Go uses [Serve], which implements the protocol.
//
// # Protocol
//
// The program reads messages from its standard input and writes messages to its standard
// output; its standard error is kept for error messages. Descriptor 3 is memory shared by both
// sides: the input of a frame is at one offset, the output of the stage goes to another. Camera
// frames need not be copied there: a program that accepts BUFFER gets descriptors of the
// driver's own memory. The program must exit at the end of its input. Numbers are in the
// machine's byte order. A message is a 24-byte header followed by the payload:
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
//	1 OPEN    to the program: version (4 bytes, 1); flags (4): 1 if the pipeline accepts EVENT;
//	          description of the input (96);
//	          description of the output (96); offsets of input and output in the shared
//	          memory, and its size (8, 8, 8); the plan's options, UTF-8
//	2 READY   from the program, after its start: empty, or flags (4): 1 if it accepts BUFFER,
//	          2 if it reads the types of elements; others get float32 tensors only
//	3 RUN     to the program: capture time of the frame in ns, CLOCK_MONOTONIC (8); bytes
//	          of the input (8); number of the buffer that holds the input, 0: the shared
//	          memory (4); 0 (4)
//	4 DONE    from the program, with the frame's number: bytes of the output (8)
//	5 METRIC  from the program, before DONE: 1 counter or 0 gauge (4); 0 (4);
//	          value (8, float64); name
//	6 BUFFER  to the program, with the descriptor of a DMA buffer (SCM_RIGHTS: standard
//	          input is a socket), to be mapped for reading: its number, 1 to 32 (4); 0 (4);
//	          bytes of a frame (8). A later buffer of the same number replaces it
//	7 EVENT   from the program, before DONE, for traces: 1 span or 0 value (4); 0 (4); start and
//	          end in ns, CLOCK_MONOTONIC, equal for a value (8, 8); value (8, float64); name
//
// An input or output is described by a yoctune_port: kind, format, width, height, rank, type of
// elements (4 bytes each), eight dimensions (8 each), bytes (8).
package custom

import (
	"errors"
	"fmt"
)

// Errors to test with errors.Is.
var (
	ErrStart  = errors.New("the stage did not start")
	ErrDown   = errors.New("the program of the stage is restarting")
	ErrFailed = errors.New("the stage failed")
	ErrPlugin = errors.New("not a plug-in for this program")
)

// abi is the version of the plug-in's functions and of the protocol.
const abi = 1

// Kinds of inputs and outputs.
const (
	Frame   = 1 // pixels
	Tensor  = 2 // dense elements
	Results = 3 // a JSON array
)

// Port describes the input or output of a stage.
type Port struct {
	Kind                  uint32
	Format, Width, Height uint32  // of frames; the format as in package core
	DType                 uint32  // of tensors, numbered as in package registry; 0: float32
	Shape                 []int64 // of tensors, at most 8
	Bytes                 int     // size; for results the maximum
}

// Item is one frame's input.
type Item struct {
	Frame   uint64
	Capture int64   // ns, CLOCK_MONOTONIC
	In      []byte  // input as described by the port; results have their actual length
	Buffer  *Buffer // the same memory as a DMA buffer, or nil
}

// Buffer is a DMA buffer of a driver.
type Buffer struct {
	ID     uint64 // unique
	Number int    // 1 to [maxBuffers]
	FD     int
	Bytes  int // size of the frame, which starts at offset 0
}

// maxBuffers is the maximum number of buffers of a program.
const maxBuffers = 32

// CheckInput returns an error if in does not match the port.
func (p *Port) CheckInput(in []byte) error {
	if p.Kind == Results && len(in) <= p.Bytes || len(in) == p.Bytes {
		return nil
	}
	return fmt.Errorf("%w: the input has %[3]d bytes, want %[2]d", ErrFailed, p.Bytes, len(in))
}

// MaxRank limits the rank of tensors.
const MaxRank = 8

// Reports receives what a stage reports during a run. Its functions may be nil.
type Reports struct {
	Metric func(name string, value float64, counter bool)
	Event  func(Event)
}

// Event is a value or a span for traces. Times are in ns, CLOCK_MONOTONIC; a value has one time.
type Event struct {
	Name       string
	Span       bool
	Start, End int64
	Value      float64 // of a value
}
