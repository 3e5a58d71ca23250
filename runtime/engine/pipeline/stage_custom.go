package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// customRoom is how much JSON a custom stage may make of a frame, in bytes.
const customRoom = 256 << 10

// custom has a stage's work done by what the user wrote: by a program, by a plug-in in
// a program, or by a plug-in in this process.
func (b *builder) custom(k int, s *plan.PipelineStage) (work, error) {
	c, st := s.Custom, &b.p.steps[k]
	in, out, err := b.ports(c)
	if err != nil {
		return nil, err
	}
	if len(c.Shape) > 0 {
		if err := b.tensors(k, c.Shape); err != nil {
			return nil, err
		}
		b.more = nil
	}
	lanes := make([]customLane, st.workers())
	for n := range lanes {
		if lanes[n], err = b.lane(s, in, out, n); err != nil {
			return nil, err
		}
	}
	st.backend, st.aside = map[bool]string{true: "plugin", false: "process"}[c.Inside], true
	cancel := st.cancel
	st.cancel = func(n int) {
		lanes[n].kill()
		if cancel != nil {
			cancel(n)
		}
	}
	abort := b.p.abort
	b.p.abort = func() {
		for _, l := range lanes {
			l.kill()
		}
		callIfSet(abort)
	}
	level := b.now
	text := make([][]byte, len(lanes)) // of the results that each takes
	copies := &b.p.copies
	return func(_ context.Context, n int, batch []*frame.Frame) error {
		for _, f := range batch {
			item := custom.Item{Frame: f.ID, Capture: f.Capture}
			switch in.Kind {
			case custom.Tensor:
				item.In = f.Tensors[level][k-1].Bytes()
			case custom.Results:
				text[n] = append(result.AppendResults(append(text[n][:0], '['), f.Results), ']')
				item.In = text[n]
			default:
				item.In = f.Pixels
				if f.Loan != nil {
					item.Buffer = f.Loan.Exported()
				}
			}
			made, copied, err := lanes[n].run(item)
			copies.Add(uint64(copied))
			if err != nil {
				return err
			}
			if out.Kind == custom.Tensor {
				copy(f.Tensors[level][k].Bytes(), made)
				copies.Add(1)
				continue
			}
			if f.Results, err = readResults(f.Results, made); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// ports are what stage k takes and gives.
func (b *builder) ports(c *plan.Custom) (in, out custom.Port, err error) {
	switch f := b.p.source.Format(); b.carries {
	case registry.Frames:
		in = custom.Port{Kind: custom.Frame, Format: uint32(f.Pixels), Width: uint32(f.Width), Height: uint32(f.Height), Bytes: f.Bytes()}
	case registry.Tensors:
		in = custom.Port{Kind: custom.Tensor, Shape: b.shape, Bytes: int(4 * volume(b.shape))}
	default:
		in = custom.Port{Kind: custom.Results, Bytes: customRoom}
	}
	out = custom.Port{Kind: custom.Results, Bytes: customRoom}
	if len(c.Shape) > 0 {
		out = custom.Port{Kind: custom.Tensor, Shape: c.Shape, Bytes: int(4 * volume(c.Shape))}
	}
	if len(in.Shape) > custom.MaxRank {
		return in, out, fmt.Errorf("%w: a tensor of more than %d dimensions", ErrPlan, custom.MaxRank)
	}
	return in, out, nil
}

// customLane does the work of one instance.
type customLane interface {
	run(custom.Item) (made []byte, copies int, err error)
	kill()
}

func (b *builder) lane(s *plan.PipelineStage, in, out custom.Port, n int) (customLane, error) {
	metric := func(name string, value float64, counter bool) {
		// A name that cannot be is not worth a frame.
		if counter {
			if m, err := b.p.Metrics().Counter(s.ID, name); err == nil {
				m.Add(value)
			}
		} else if m, err := b.p.Metrics().Gauge(s.ID, name); err == nil {
			m.Set(value)
		}
	}
	if s.Custom.Inside {
		p, err := custom.LoadPlugin(resolvePath(b.o.Dir, s.Custom.Plugin), in, out, s.Custom.Options, metric)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPlan, err)
		}
		b.p.closers = append(b.p.closers, func() error { p.Close(); return nil })
		return &insideLane{p: p, out: make([]byte, out.Bytes)}, nil
	}
	argv := s.Custom.Exec
	if s.Custom.Plugin != "" {
		argv = b.o.host
		if argv == nil {
			self, err := os.Executable()
			if err != nil {
				return nil, err
			}
			argv = []string{self, custom.Command}
		}
		argv = append(argv[:len(argv):len(argv)], resolvePath(b.o.Dir, s.Custom.Plugin))
	} else if filepath.Base(argv[0]) != argv[0] {
		argv = append([]string{resolvePath(b.o.Dir, argv[0])}, argv[1:]...)
	}
	// The watchdog of the stage kills it at the deadline; without one there is
	// still an end to waiting.
	c, err := custom.Start(custom.Options{
		Argv: argv, In: in, Out: out, Options: s.Custom.Options, Timeout: 2 * time.Duration(s.Deadline), Metric: metric, Start: b.o.Start,
		Say: func(why string) {
			b.p.event(Event{Kind: EventStage, Stage: s.ID, From: n, To: n, Why: why})
		},
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	b.p.closers = append(b.p.closers, c.Close)
	return (*childLane)(c), nil
}

type childLane custom.Child

func (l *childLane) run(i custom.Item) ([]byte, int, error) { return (*custom.Child)(l).Run(i) }
func (l *childLane) kill()                                  { (*custom.Child)(l).Kill() }

type insideLane struct {
	p   *custom.Plugin
	out []byte
}

func (l *insideLane) run(i custom.Item) ([]byte, int, error) {
	n, err := l.p.Run(i, l.out)
	return l.out[:n], 0, err
}
func (*insideLane) kill() {} // nothing can

// readResults makes results of a JSON array.
func readResults(into []result.Result, b []byte) ([]result.Result, error) {
	b = bytes.TrimSpace(b)
	if len(b) < 2 || b[0] != '[' || !json.Valid(b) {
		return into[:0], fmt.Errorf("%w: results are a JSON array, not %.60q", custom.ErrFailed, b)
	}
	into = into[:0]
	inner := bytes.TrimSpace(b[1 : len(b)-1])
	if len(inner) == 0 {
		return into, nil
	}
	// On one line.
	var w bytes.Buffer
	if err := json.Compact(&w, b); err != nil {
		return into, fmt.Errorf("%w: %w", custom.ErrFailed, err)
	}
	return append(into, result.Result{Kind: result.KindCustom, JSON: w.Bytes()[1 : w.Len()-1]}), nil
}
