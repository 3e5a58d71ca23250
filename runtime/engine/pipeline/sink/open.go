package sink

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// maxKeep limits how many rotated files a sink keeps.
const maxKeep = 1000

// Errors of sinks.
var (
	ErrFailed = errors.New("results cannot be written")
	// ErrDegraded is returned by a sink that lost one record and may accept the next: the frame
	// is dropped and the pipeline continues.
	ErrDegraded = errors.New("results cannot be written at the moment")
)

// sinkOpeners maps kinds to the functions that open them; other kinds are NDJSON.
var sinkOpeners = map[string]func(plan.PipelineSink) (Sink, error){
	registry.HTTP.Kind:        func(s plan.PipelineSink) (Sink, error) { return openHTTP(s.URL, registry.SinkTimeout(&s)) },
	registry.CommandSink.Kind: func(s plan.PipelineSink) (Sink, error) { return openCommandSink(s.Exec, registry.SinkTimeout(&s)) },
	registry.ReplySink.Kind:   func(plan.PipelineSink) (Sink, error) { return noSink{}, nil },
	registry.RingSink.Kind:    func(s plan.PipelineSink) (Sink, error) { return openRing(s.Path, s.Slots, s.SlotSize) },
}

// Options for opening a sink.
type Options struct {
	Sink  plan.PipelineSink
	Dir   string // base of relative paths
	Lines Sink   // replaces the plan's NDJSON sink; may be nil
	// Delivery is the sink of a kind that the engine does not have; nil: it cannot be opened.
	Delivery Sink
	Stdout   io.Writer // of a sink without a path, nil: standard output
}

// noSink is of pipelines whose callers get the results.
type noSink struct{}

func (noSink) Write(*result.Record) error { return nil }
func (noSink) Close() error               { return nil }

// Open opens the sink of a plan.
func Open(o Options) (Sink, error) {
	s := o.Sink
	switch {
	case s.Timeout < 0:
		return nil, fmt.Errorf("%w: invalid timeout of %v", registry.ErrPlan, time.Duration(s.Timeout))
	case s.Rotate != nil && (s.Rotate.Size < 1 || s.Rotate.Keep < 1 || s.Rotate.Keep > maxKeep):
		return nil, fmt.Errorf("%w: rotate at %d bytes and keep %d files: both must be at least 1, and at most %d files are kept",
			registry.ErrPlan, s.Rotate.Size, s.Rotate.Keep, maxKeep)
	}
	kind, ok := registry.SinkOf(s.Kind)
	if !ok {
		return nil, fmt.Errorf("%w: unknown kind %q", registry.ErrPlan, s.Kind)
	}
	if s.NeedsServer() {
		if o.Delivery == nil {
			return nil, fmt.Errorf("%w: only yoctuned-serve has this sink of kind %s", registry.ErrPlan, s.Kind)
		}
		return o.Delivery, nil
	}
	if open := sinkOpeners[kind.Kind]; open != nil {
		return open(s)
	}
	switch {
	case o.Lines != nil:
		return o.Lines, nil
	case s.Path != "":
		var r plan.Rotate
		if s.Rotate != nil {
			r = *s.Rotate
		}
		path := s.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.Dir, path)
		}
		return OpenNDJSON(path, r)
	case o.Stdout != nil:
		return NewNDJSON(o.Stdout), nil
	}
	return NewNDJSON(os.Stdout), nil
}
