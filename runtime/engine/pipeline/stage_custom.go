package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom/plugin"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/trace"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// customRoom is the maximum size of the JSON that a custom stage returns for a frame, in bytes.
const customRoom = 256 << 10

// customBuilder builds a stage that the user wrote.
type customBuilder struct {
	stageBuilder
	in, out custom.Port
	tracers []laneTracer // by instance
}

// buildCustom builds a stage that runs the user's program, or the user's plug-in in this
// process.
func buildCustom(sb stageBuilder) (work, error) {
	b, c := &customBuilder{stageBuilder: sb}, sb.s.Custom
	if err := b.setPorts(); err != nil {
		return nil, err
	}
	if len(c.Shape) > 0 {
		if err := b.tensors(b.k, registry.StageOutput(b.s).Tensor()); err != nil {
			return nil, err
		}
	}
	lanes := make([]customLane, b.st.workers())
	b.tracers = make([]laneTracer, len(lanes))
	for n := range lanes {
		var err error
		if lanes[n], err = b.openLane(n); err != nil {
			return nil, err
		}
	}
	b.st.backend, b.st.aside = map[bool]string{true: "plugin", false: "process"}[c.Inside], true
	b.onCancel(func(n int) { lanes[n].kill() })
	b.p.onAbort(func() {
		for _, l := range lanes {
			l.kill()
		}
	})
	k, level, in, out := b.k, b.now, b.in, b.out
	text := make([][]byte, len(lanes)) // results, one buffer per lane
	copies := &b.p.copies
	return func(_ context.Context, n int, batch []*frame.Frame) error {
		for _, f := range batch {
			item := custom.Item{Frame: f.ID, Capture: f.Capture}
			switch in.Kind {
			case custom.Tensor:
				item.In = f.Input(level, k).Bytes()
			case custom.Results:
				text[n] = append(result.AppendResults(append(text[n][:0], '['), f.Results), ']')
				item.In = text[n]
			default:
				item.In = f.Pixels
				if f.Loan != nil {
					item.Buffer = f.Loan.Exported()
				}
			}
			b.tracers[n].begin(b.p, b.s.ID, n, f.ID)
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

// setPorts describes input and output of the stage.
func (b *customBuilder) setPorts() error {
	switch f := b.p.source.Format(); b.carries {
	case registry.Frames:
		b.in = custom.Port{Kind: custom.Frame, Format: uint32(f.Pixels), Width: uint32(f.Width), Height: uint32(f.Height), Bytes: f.Bytes()}
	case registry.Tensors:
		b.in = tensorPort(b.made[0])
	default:
		b.in = custom.Port{Kind: custom.Results, Bytes: customRoom}
	}
	b.out = custom.Port{Kind: custom.Results, Bytes: customRoom}
	if made := registry.StageOutput(b.s); made.Data == registry.Tensors {
		b.out = tensorPort(made.Tensor())
	}
	if len(b.in.Shape) > custom.MaxRank {
		return fmt.Errorf("%w: a tensor has at most %d dimensions", ErrPlan, custom.MaxRank)
	}
	return nil
}

func tensorPort(t registry.Tensor) custom.Port {
	return custom.Port{Kind: custom.Tensor, DType: uint32(t.DType), Shape: t.Shape, Bytes: int(t.Bytes())}
}

// customLane runs one instance.
type customLane interface {
	run(custom.Item) (made []byte, copies int, err error)
	kill()
}

// openLane starts the program, or loads the plug-in, of instance n.
func (b *customBuilder) openLane(n int) (customLane, error) {
	c := b.s.Custom
	reports := custom.Reports{Metric: b.setMetric, Event: func(e custom.Event) { b.tracers[n].record(b.p, e) }}
	if c.Inside {
		p, err := plugin.Load(resolvePath(b.o.Dir, c.Plugin), b.in, b.out, c.Options, reports)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPlan, err)
		}
		b.p.closers = append(b.p.closers, func() error { p.Close(); return nil })
		return &insideLane{p: p, out: make([]byte, b.out.Bytes)}, nil
	}
	argv, err := b.command()
	if err != nil {
		return nil, err
	}
	// The stage's watchdog kills the program at the deadline; a stage without a deadline still
	// has a time limit.
	child, err := custom.Start(custom.Options{
		Argv: argv, Name: filepath.Base(argv[len(argv)-1-max(len(c.Exec)-1, 0)]), In: b.in, Out: b.out, Options: c.Options, Timeout: 2 * time.Duration(b.s.Deadline), Reports: reports, Start: b.o.Start,
		Say: func(why string) {
			b.p.event(Event{Kind: EventStage, Stage: b.s.ID, From: n, To: n, Why: why})
		},
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	b.p.closers = append(b.p.closers, child.Close)
	return (*childLane)(child), nil
}

// setMetric sets a metric of the stage, or adds to it if it is a counter. It ignores invalid
// names, because a metric must not fail a frame.
func (b *customBuilder) setMetric(name string, value float64, counter bool) {
	if counter {
		if m, err := b.p.Metrics().Counter(b.s.ID, name); err == nil {
			m.Add(value)
		}
	} else if m, err := b.p.Metrics().Gauge(b.s.ID, name); err == nil {
		m.Set(value)
	}
}

// laneTracer puts what an instance reports on the track of the instance.
type laneTracer struct {
	track *trace.Track // nil before the first frame: runs that warm up are not traced
	frame uint64
	began int64 // ns
}

func (l *laneTracer) begin(p *Pipeline, stage string, n int, frame uint64) {
	if l.track == nil {
		l.track = p.trace.Lookup(stage, n)
	}
	if l.track != nil {
		l.frame, l.began = frame, p.clock.Now()
	}
}

// record limits the times, which a plug-in chooses freely, to those of its run.
func (l *laneTracer) record(p *Pipeline, e custom.Event) {
	if l.track == nil {
		return
	}
	now := p.clock.Now()
	start := min(max(e.Start, l.began), now)
	if !e.Span {
		l.track.Value(e.Name, start, e.Value)
		return
	}
	l.track.Scope(e.Name, l.frame, start, min(max(e.End, start), now))
}

// command returns the command line of the stage's program, or of the program that hosts its
// plug-in. Both are started by this program, which keeps them from sending signals to it.
func (b *customBuilder) command() ([]string, error) {
	c := b.s.Custom
	host, what := b.o.host, custom.Command
	argv := []string{resolvePath(b.o.Dir, c.Plugin)}
	if c.Plugin == "" {
		what, argv = custom.ExecCommand, slices.Clone(c.Exec)
		if filepath.Base(argv[0]) != argv[0] {
			argv[0] = resolvePath(b.o.Dir, argv[0])
		}
		if _, err := exec.LookPath(argv[0]); err != nil {
			return nil, fmt.Errorf("%w: %w: %w", ErrPlan, custom.ErrStart, err)
		}
		if host != nil {
			return argv, nil
		}
	}
	if host == nil {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		host = []string{self, what}
	}
	return slices.Concat(host, argv), nil
}

type childLane custom.Child

func (l *childLane) run(i custom.Item) ([]byte, int, error) { return (*custom.Child)(l).Run(i) }
func (l *childLane) kill()                                  { (*custom.Child)(l).Kill() }

type insideLane struct {
	p   *plugin.Plugin
	out []byte
}

func (l *insideLane) run(i custom.Item) ([]byte, int, error) {
	n, err := l.p.Run(i, l.out)
	return l.out[:n], 0, err
}
func (*insideLane) kill() {} // a plug-in in this process cannot be killed

// readResults parses a JSON array of results. It refuses what readers of the sinks could not read: text that is
// not UTF-8, and numbers beyond those of a float64, which become infinite.
func readResults(into []result.Result, b []byte) ([]result.Result, error) {
	b = bytes.TrimSpace(b)
	if len(b) < 2 || b[0] != '[' || !json.Valid(b) {
		return into[:0], fmt.Errorf("%w: results must be a JSON array, got %.60q", custom.ErrFailed, b)
	}
	if !utf8.Valid(b) {
		return into[:0], fmt.Errorf("%w: results must be UTF-8, got %.60q", custom.ErrFailed, b)
	}
	var all any
	if err := json.Unmarshal(b, &all); err != nil {
		return into[:0], fmt.Errorf("%w: results: %w", custom.ErrFailed, err)
	}
	into = into[:0]
	inner := bytes.TrimSpace(b[1 : len(b)-1])
	if len(inner) == 0 {
		return into, nil
	}
	// Compact to one line.
	var w bytes.Buffer
	if err := json.Compact(&w, b); err != nil {
		return into, fmt.Errorf("%w: %w", custom.ErrFailed, err)
	}
	return append(into, result.Result{Kind: result.KindCustom, JSON: w.Bytes()[1 : w.Len()-1]}), nil
}
