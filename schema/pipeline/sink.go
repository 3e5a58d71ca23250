package pipeline

import (
	"fmt"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
)

// Sink is one kind of sink.
type Sink struct {
	Kind    string
	File    bool          // it writes a file of its own where the plan gives a path
	Network bool          // it sends results over the network
	Program bool          // a program takes results, and may write or send them
	Replies bool          // it answers requests
	Timeout time.Duration // for one result where the plan sets none; 0: it has no other end
}

// Sinks lists the kinds of sinks; the first is that of a pipeline without a sink.
func Sinks() []Sink { return sinks }

// Kinds of sinks.
var (
	NDJSON      = Sink{Kind: "ndjson", File: true}
	HTTP        = Sink{Kind: "http", Network: true, Timeout: 2 * time.Second}
	CommandSink = Sink{Kind: "command", Program: true, Timeout: 2 * time.Second}
	RingSink    = Sink{Kind: "shm"}
	NATSSink    = Sink{Kind: "nats", Network: true}
	ReplySink   = Sink{Kind: "reply", Replies: true}

	sinks = []Sink{NDJSON, HTTP, CommandSink, RingSink, NATSSink, ReplySink}
)

// SinkOf finds the entry of a kind, "" being the first.
func SinkOf(kind string) (Sink, bool) {
	if kind == "" {
		return sinks[0], true
	}
	for _, s := range sinks {
		if s.Kind == kind {
			return s, true
		}
	}
	return Sink{}, false
}

// DefaultSink returns the kind of sink of a source for which the plan names none.
func DefaultSink(s *plan.PipelineSource) Sink {
	if IsServed(s) {
		return ReplySink
	}
	return sinks[0]
}

// WritesFile reports whether a sink writes a file of its own.
func WritesFile(s *plan.PipelineSink) bool {
	k, _ := SinkOf(s.Kind)
	return k.File && s.Path != ""
}

// SinkTimeout is how long a sink's other end may take for one result; 0: it has none.
func SinkTimeout(s *plan.PipelineSink) time.Duration {
	k, _ := SinkOf(s.Kind)
	if k.Timeout > 0 && s.Timeout != 0 {
		return time.Duration(s.Timeout)
	}
	return k.Timeout
}

// Bounds and defaults of a ring of results.
const (
	RingSlots       = 64   // where the plan sets none
	RingSlotSize    = 4096 // bytes, where the plan sets none
	MaxRingSlots    = 1 << 16
	minRingSlotSize = 64
	MaxRingSlotSize = 1 << 20
	MaxRing         = 64 << 20 // bytes

	ringSlotHeader = 16 // bytes before the data of a slot
	ringSlotStep   = 64 // bytes; slots begin at multiples of it
)

// RingStride is the distance of two slots in a ring, in bytes.
func RingStride(size uint64) int {
	return int((size + ringSlotHeader + ringSlotStep - 1) / ringSlotStep * ringSlotStep)
}

// checkSink checks what the language cannot.
func checkSink(s *plan.PipelineSink) []Fault {
	if s.Kind != RingSink.Kind {
		return nil
	}
	slots, size := s.Slots, s.SlotSize
	if slots == 0 {
		slots = RingSlots
	}
	if size == 0 {
		size = RingSlotSize
	}
	if slots >= 1 && slots <= MaxRingSlots && size >= minRingSlotSize && size <= MaxRingSlotSize && slots*RingStride(uint64(size)) <= MaxRing {
		return nil
	}
	return []Fault{{Topic: Range, Path: []string{"sink", "slots"}, Value: fmt.Sprint(slots),
		Reason: fmt.Sprintf("a ring of %d slots of %d bytes; it has 1 to %d slots of %d to %d bytes, together at most %d MiB",
			slots, size, MaxRingSlots, minRingSlotSize, MaxRingSlotSize, MaxRing>>20), Advice: "lower slots or slotSize"}}
}
