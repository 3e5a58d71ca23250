package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/yoctune/yoctune/internal/backoff"
	"github.com/yoctune/yoctune/runtime/device/memory"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/perf"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/request"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/sink"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/source"
	"github.com/yoctune/yoctune/runtime/engine/tensorrt"
	"github.com/yoctune/yoctune/runtime/engine/trace"
	"github.com/yoctune/yoctune/runtime/engine/v4l2"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Options of a pipeline.
type Options struct {
	Name    string // in records
	Plan    plan.Pipeline
	Dir     string    // base of the plan's relative paths: its directory
	Models  string    // directory to search first for models and labels
	Library string    // ONNX Runtime library, see [ort.Find]
	Source  string    // file to read instead of the plan's; relative to the working directory
	Frames  uint64    // frames to read, 0: all
	Sink    sink.Sink // overrides the plan's sink
	// Delivery is the sink of a plan that needs a server, see [plan.Pipeline.Serves]; nil: this program has none.
	Delivery sink.Sink
	// Requests is the port of a source of requests, see [NewPort]; nil for other sources.
	Requests *request.Port
	Stdout   io.Writer     // for a sink without a path
	Drain    time.Duration // for frames in flight after a stop, 0: 5 s

	Start context.Context // ends the wait for a source or stage that does not start; may be nil

	Engines tensorrt.Store // built TensorRT engines
	Host    tensorrt.Host  // platform that engines must match

	Trace   *trace.Recorder // recorder of the run; nil: only the flight recorder's own
	Cache   string          // directory of compiled kernels and of measurements; "": core.CacheDir
	Flight  string          // directory for traces of windows that miss the objective, "": none
	Live    string          // socket that serves snapshots, see [live.Path]; "": none
	NVTX    string          // library that marks stages for NVIDIA's profilers, "": the system's, if installed
	Note    func(error)     // called for each degraded feature; may be nil
	Tell    func(Event)     // called for each event as it happens, from any goroutine; may be nil
	GPU     core.Options    // device of stages with device gpu; Backend "": cuda
	Worker  []string        // program and arguments of the GPU worker process; nil: this program
	Backoff worker.Backoff  // of the worker process

	Device rootfs.FS // device whose resources the budget is checked against; nil: this machine

	// Power returns the power of the whole module in mW. A nil function or result means unknown.
	Power func() *int64

	Hot func() string // reason why the device itself must do less, "" for none; may be nil
	// Throttled names what heat or power throttles now. A nil function or result means unknown.
	Throttled func() []string
	faults    []string    // per GPU, overriding those of GPU
	system    v4l2.System // of cameras, nil: the kernel
	host      []string    // host program of a plug-in, nil: this program
	measuring bool        // synthetic frames measure devices: a roi stage makes as many crops as it may

	room func(dir string) (int64, error) // free bytes of a directory's file system, nil: statfs
}

func (o *Options) cacheDir() string { return cmp.Or(o.Cache, core.CacheDir) }

// warmRuns is the number of runs of each stage on each level before the first frame.
const warmRuns = 3

// Pipeline is a pipeline that is ready to run: models are loaded and warm, memory is allocated,
// source and sink are open.
type Pipeline struct {
	engine
	slo    *plan.PipelineSLO
	info   RuntimeInfo
	stuck  bool
	view   liveView
	gpu    *gpu // nil without a worker process
	memory memory.Phases
	energy energyMeter
	budget *budgetGuard // nil without a budget

	requests *request.Port  // nil: it answers no requests
	delivery sink.Sink      // nil: the sink is one of the engine's own
	closers  []func() error // to be called in reverse order
}

// New prepares a pipeline. Errors wrap [ErrPlan] for an invalid plan, [ErrFormat],
// [ErrModelFile], a sentinel of package ort, or an error of the file system.
func New(o Options) (_ *Pipeline, err error) {
	p := &Pipeline{slo: o.Plan.SLO}
	if o.Start == nil {
		o.Start = context.Background()
	}
	p.memory.Begin("load")
	p.name, p.limit, p.drain = o.Name, o.Frames, cmp.Or(max(o.Drain, 0), 5*time.Second)
	defer func() {
		if err != nil {
			_ = p.Close()
			if o.Start.Err() != nil {
				err = fmt.Errorf("stopped before it began: %w: %w", context.Cause(o.Start), err)
			}
			err = fmt.Errorf("pipeline %s: %w", o.Name, err)
		}
	}()
	if faults := registry.Check(&o.Plan); len(faults) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrPlan, faults[0])
	}
	var choice *DeviceChoice
	if o.Plan, choice, err = chooseDevices(o); err != nil {
		return nil, err
	}
	if err := p.setQueues(o.Plan); err != nil {
		return nil, err
	}
	p.energy.power, p.requests, p.delivery = o.Power, o.Requests, o.Delivery
	p.hot, p.tell, p.served = o.Hot, o.Tell, o.Requests != nil
	p.view = liveView{path: o.Live, throttled: o.Throttled, note: o.Note}
	p.trace = o.Trace
	if p.trace == nil {
		p.trace = trace.New(0)
	}
	if err := p.noteDevices(choice); err != nil {
		return nil, err
	}
	if o.Flight != "" {
		f := newFlight(o.Flight, o.Name, p.trace, p.event)
		p.breach = f.dump
		p.closers = append(p.closers, f.close)
	}
	if p.budget, err = newBudgetGuard(o, p.event); err != nil {
		return nil, err
	}
	p.reserve = p.budget.memoryShortage
	if err := p.openSource(o); err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	b := builder{o: o, p: p, files: modelFiles{dir: o.Dir, models: o.Models, labels: map[string][]string{}}}
	if err := b.stages(); err != nil {
		return nil, err
	}
	if p.sink, err = sink.Open(sink.Options{Sink: o.Plan.Sink, Dir: o.Dir, Lines: o.Sink, Delivery: o.Delivery, Stdout: o.Stdout}); err != nil {
		return nil, fmt.Errorf("sink: %w", err)
	}
	p.closers = append(p.closers, p.sink.Close)
	if err := p.applyBudget(o); err != nil {
		return nil, err
	}
	if errs := applyMemoryOptions(o.Plan.Memory, &p.info); o.Note != nil {
		for _, err := range errs {
			o.Note(err)
		}
	}
	return p, nil
}

// openSource opens the plan's source.
func (p *Pipeline) openSource(o Options) (err error) {
	if p.source, err = source.Open(source.Options{
		Source: o.Plan.Source, Dir: o.Dir, File: o.Source, Start: o.Start, System: o.system, Port: o.Requests, Limit: p.budget.limitInput,
		Shrink: func(width, height int) int { return shrinkFor(o.Plan, width, height) },
		Say:    func(why string) { p.event(Event{Kind: EventSource, Stage: idSource, Why: why}) },
	}); err != nil {
		return err
	}
	p.closers = append(p.closers, p.source.Close)
	f := p.source.Format()
	if f.Shrunk > 1 {
		p.info.Decoded = &Size{f.Width, f.Height}
	}
	if p.live = o.Plan.Source.Live; p.live && f.Rate.Period() == 0 {
		return fmt.Errorf("%w: a live source needs a frame rate: set source.fps (fps_num and fps_den of the plan)", ErrPlan)
	}
	return nil
}

// applyBudget limits the pipeline to its budget.
func (p *Pipeline) applyBudget(o Options) error {
	if p.budget == nil {
		return nil
	}
	if err := p.budget.check(o.Plan, o.Note); err != nil {
		return err
	}
	if s, ok := p.budget.limitSink(p.sink, o.Plan.Sink).(*boundedSink); ok {
		p.sink = s
		p.onAbort(s.b.release)
	}
	return nil
}

// Run moves frames until the source ends, the limit is reached, or ctx ends. A pipeline runs
// once. The summary is nil only if the clock cannot be read; the error wraps [ErrFrames],
// [ErrTruncated], [ErrFormat] or [ErrSink].
func (p *Pipeline) Run(ctx context.Context) (*Summary, error) {
	p.view.counters = perf.Open()
	p.view.before = p.view.counters.Read()
	p.ready = func() { p.serveLive(ctx) }
	p.energy.begin()
	p.memory.Begin("run")
	defer everySecond(func() {
		p.memory.Sample()
		p.budget.measure()
		p.energy.measure()
	})()
	s, stuck, err := p.run(ctx)
	p.stuck = stuck
	counts, lerr := p.view.stop()
	err = errors.Join(err, lerr)
	if s != nil {
		s.Runtime, s.Counters = p.info, counts
		s.Memory, _ = p.memory.Snapshot()
		s.Fallbacks, s.Runtime.Worker = p.fallbacks(), p.worker()
		s.Runtime.GPUs = p.gpuShares()
		s.SLO, s.Budget = p.judge(s.Latency.Total, &s.FPS), p.budget.usage()
	}
	if err != nil {
		err = fmt.Errorf("pipeline %s: %w", p.name, err)
	}
	return s, err
}

// everySecond calls f every second until the returned function is called.
func everySecond(f func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		for !backoff.WaitClosed(done, time.Second) {
			f()
		}
	}()
	return func() { close(done) }
}

// Close releases what New opened, except memory that a stage which did not return may still
// use.
func (p *Pipeline) Close() error {
	var errs []error
	if !p.stuck {
		for _, c := range slices.Backward(p.closers) {
			errs = append(errs, c())
		}
	}
	p.closers = nil
	return errors.Join(errs...)
}

func (p *Pipeline) setQueues(pl plan.Pipeline) error {
	var err error
	if p.policy, err = parsePolicy(pl.Queue.Policy, pl.Source.Live); err != nil {
		return err
	}
	if p.capacity = pl.Queue.Capacity; p.capacity == 0 {
		_, p.capacity = registry.Queue(pl.Source.Live)
	}
	if p.capacity < 0 || p.capacity > registry.MaxQueue {
		return fmt.Errorf("%w: queue capacity %d: must be 1 to %d", ErrPlan, p.capacity, registry.MaxQueue)
	}
	switch q := pl.Queue; {
	case q.MaxAge < 0:
		return fmt.Errorf("%w: invalid max age of %v", ErrPlan, time.Duration(q.MaxAge))
	case q.InFlight < 0:
		return fmt.Errorf("%w: invalid limit of %d frames in flight", ErrPlan, q.InFlight)
	}
	p.maxAge, p.credits = pl.Queue.MaxAge, pl.Queue.InFlight
	if pl.SLO != nil {
		p.target = pl.SLO.LatencyP95
	}
	if p.sinkCapacity = pl.Sink.Capacity; p.sinkCapacity < 0 || p.sinkCapacity > registry.MaxQueue {
		return fmt.Errorf("%w: sink queue capacity %d: must be 1 to %d", ErrPlan, p.sinkCapacity, registry.MaxQueue)
	}
	if pl.Sink.Policy != "" {
		if p.sinkPolicy, err = parsePolicy(pl.Sink.Policy, pl.Source.Live); err != nil {
			return fmt.Errorf("sink: %w", err)
		}
	}
	return nil
}

// onAbort adds f to the functions that interrupt work in progress.
func (p *Pipeline) onAbort(f func()) {
	abort := p.abort
	p.abort = func() { f(); callIfSet(abort) }
}

// resolvePath resolves a path of the plan against the plan's directory.
func resolvePath(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// openRuntime loads ONNX Runtime once for all models of the pipeline.
func (p *Pipeline) openRuntime(library string) (*ort.Runtime, error) {
	path, err := ort.Find(library)
	if err != nil {
		return nil, err
	}
	rt, err := ort.Open(path)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, func() error { rt.Close(); return nil })
	p.info.ONNXRuntime = rt.Version()
	return rt, nil
}
