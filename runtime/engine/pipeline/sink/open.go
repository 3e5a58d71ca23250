package sink

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// maxKeep is how many files of a sink are kept at most.
const maxKeep = 1000

// Errors of sinks.
var (
	ErrFailed = errors.New("results cannot be written")
	// ErrDegraded is returned by a sink that lost one record and may take
	// the next: the frame is dropped and the pipeline goes on.
	ErrDegraded = errors.New("results cannot be written for now")
)

// sinkOpeners opens sinks; one of another kind is NDJSON.
var sinkOpeners = map[string]func(plan.PipelineSink) (Sink, error){
	registry.HTTP.Kind:        func(s plan.PipelineSink) (Sink, error) { return openHTTP(s.URL, registry.SinkTimeout(&s)) },
	registry.CommandSink.Kind: func(s plan.PipelineSink) (Sink, error) { return openCommandSink(s.Exec, registry.SinkTimeout(&s)) },
	registry.RingSink.Kind:    func(s plan.PipelineSink) (Sink, error) { return openRing(s.Path, s.Slots, s.SlotSize) },
}

// Options is what a sink is opened with.
type Options struct {
	Sink   plan.PipelineSink
	Dir    string    // what relative paths are relative to
	Lines  Sink      // instead of NDJSON of the plan; nil: none
	Stdout io.Writer // of a sink without a path, nil: standard output
}

// Open opens the sink of a plan.
func Open(o Options) (Sink, error) {
	s := o.Sink
	switch {
	case s.Timeout < 0:
		return nil, fmt.Errorf("%w: timeout of %v", registry.ErrPlan, time.Duration(s.Timeout))
	case s.Rotate != nil && (s.Rotate.Size < 1 || s.Rotate.Keep < 1 || s.Rotate.Keep > maxKeep):
		return nil, fmt.Errorf("%w: rotate at %d bytes and keep %d files; both are at least 1, and files at most %d",
			registry.ErrPlan, s.Rotate.Size, s.Rotate.Keep, maxKeep)
	}
	kind, ok := registry.SinkOf(s.Kind)
	if !ok {
		return nil, fmt.Errorf("%w: unknown kind %q", registry.ErrPlan, s.Kind)
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
