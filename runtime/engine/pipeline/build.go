package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/nvtx"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/decode"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/degrade"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/source"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// builder makes the steps of a pipeline from its plan and checks that each stage accepts the
// output of the stage before it. Each level of the ladder is a pipeline of its own that shares
// identical stages with the level above.
type builder struct {
	o     Options
	p     *Pipeline
	rt    *ort.Runtime
	dev   *core.Device
	gpu   *gpu         // nil if no stage runs on the GPU, or if it is opened in this process
	here  *core.Device // the GPU of this process, with isolation none
	files modelFiles

	levels   []level
	now      int // the level being built
	carries  registry.Data
	made     []registry.Tensor         // the tensor that the stages built so far make, and further outputs of a model
	at       decode.Picture            // where that tensor lies in the frame
	sessions map[string][]*ort.Session // by stage and model; one for each instance
	trackers map[string]work           // by stage
	warming  bool                      // stages run before the first frame
	resets   []func()                  // of what warming up leaves in stages
}

// level is the pipeline on one level of the ladder.
type level struct {
	stages []plan.PipelineStage
	fps    int
	works  []work
	made   [][]registry.Tensor // what each stage makes
	at     decode.Picture      // where its tensors lie in the frame
	same   []bool              // the stage is shared with the level above

	fallbacks []work // CPU fallbacks of GPU stages; nil: none
}

// work processes a batch in one instance of a stage.
type work = func(ctx context.Context, instance int, f []*frame.Frame) error

func (b *builder) stages() error {
	stages := b.o.Plan.Stages
	var err error
	if b.levels, err = planLevels(b.o.Plan); err != nil {
		return err
	}
	b.p.steps = make([]step, len(stages))
	for k := range stages {
		if b.p.steps[k], err = b.buildStep(k, &stages[k]); err != nil {
			return fmt.Errorf("stage %s: %w", stages[k].ID, err)
		}
	}
	markSteps(b.o, b.p.steps)
	b.p.others = make([]atomic.Uint64, len(stages))
	if err := b.openGPU(); err != nil {
		return err
	}
	if err := b.allocate(); err != nil {
		return err
	}
	if slices.ContainsFunc(stages, func(s plan.PipelineStage) bool { return registry.StageOf(s.Kind).RunsModels }) {
		if b.rt, err = b.p.openRuntime(b.o.Library); err != nil {
			return err
		}
	}
	if err := b.openRecords(); err != nil {
		return err
	}
	b.sessions = map[string][]*ort.Session{}
	for n := range b.levels {
		if err := b.buildLevel(n); err != nil {
			if n > 0 {
				err = fmt.Errorf("degrade, step %d: %w", n, err)
			}
			return err
		}
	}
	b.describeTensors()
	if err := b.openAnswers(); err != nil {
		return err
	}
	if b.gpu != nil {
		b.p.memory.Begin("start of the GPU's process")
	}
	if err := b.startGPU(); err != nil {
		return err
	}
	b.p.memory.Begin("warm up")
	return b.warm()
}

// describeTensors records the tensors between the stages.
func (b *builder) describeTensors() {
	l := &b.levels[0]
	for k := range l.stages {
		if data := registry.StageOutput(&l.stages[k]).Data; data != registry.Tensors && data != registry.Crops {
			continue
		}
		for _, t := range l.made[k] {
			b.p.info.Tensors = append(b.p.info.Tensors, TensorInfo{
				Stage: l.stages[k].ID, Name: t.Name, DType: t.DType.String(), Shape: t.Shape, Memory: registry.MemoryOf(&b.o.Plan, k),
			})
		}
	}
}

// markSteps names the stages for NVIDIA's profilers, where their library is installed.
func markSteps(o Options, steps []step) {
	lib, err := nvtx.Open(o.NVTX)
	if err != nil && o.Note != nil && (o.NVTX != "" || !errors.Is(err, nvtx.ErrNotFound)) {
		o.Note(fmt.Errorf("stages are not marked for profilers: %w", err))
	}
	for k := range steps {
		steps[k].marks = lib.Range(o.Name + "/" + steps[k].id)
	}
}

// buildStep returns stage k of every level, without its work.
func (b *builder) buildStep(k int, s *plan.PipelineStage) (step, error) {
	st := step{id: s.ID, instances: s.Instances, deadline: time.Duration(s.Deadline), model: s.Model != nil}
	if onGPU(s) {
		st.instances = registry.Instances(&b.o.Plan, s)
	}
	if s.Deadline < 0 {
		return st, fmt.Errorf("%w: deadline of %v", ErrPlan, st.deadline)
	}
	if registry.Isolated(&b.o.Plan, s) {
		// The GPU may not take longer. A fallback then has its own time.
		if st.limit, st.deadline = st.deadline, 0; st.limit == 0 {
			st.limit = gpuLimit
		}
	}
	if s.Model != nil && s.Model.Batch != nil {
		if !registry.ValidBuckets(s.Model.Batch) {
			return st, fmt.Errorf("%w: buckets %v; they ascend from 1 to at most %d", ErrPlan, s.Model.Batch.Buckets, registry.MaxBatch)
		}
	}
	if registry.LargestBatch(b.o.Plan.Stages, k) > 1 {
		st.buckets, st.delay = s.Model.Batch.Buckets, time.Duration(s.Model.Batch.Delay)
	}
	st.batch = func(ctx context.Context, instance int, f []*frame.Frame) error {
		return b.levels[f[0].Level].works[k](ctx, instance, f)
	}
	return st, nil
}

// buildLevel builds the stages of one level that differ from the level above.
func (b *builder) buildLevel(n int) error {
	l := &b.levels[n]
	b.now, b.carries, b.made = n, registry.SourceOutput(&b.o.Plan.Source).Data, nil
	if b.carries == registry.Tensors {
		f := b.p.source.Format()
		b.made = append([]registry.Tensor{f.Record}, f.More...)
	}
	if n > 0 {
		b.at = b.levels[n-1].at
	}
	l.works, l.made, l.same = make([]work, len(l.stages)), make([][]registry.Tensor, len(l.stages)), make([]bool, len(l.stages))
	l.fallbacks = make([]work, len(l.stages))
	same := n > 0
	for k := range l.stages {
		s := &l.stages[k]
		if n > 0 {
			above := &b.levels[n-1]
			// The output of a stage also depends on its input.
			same = same && !registry.Changed(&above.stages[k], s)
			if l.same[k] = same; same {
				l.works[k], b.made = above.works[k], above.made[k]
				l.made[k] = b.made
				for i := range b.p.frames {
					t := b.p.frames[i].Tensors
					t[n][k] = t[n-1][k]
				}
				b.carries = registry.StageOutput(s).Data
				continue
			}
		}
		var err error
		if l.works[k], err = b.stage(k, s); err != nil {
			return fmt.Errorf("stage %s: %w", s.ID, err)
		}
		l.made[k] = b.made
	}
	l.at = b.at
	return nil
}

// warm runs every stage of every level and instance, so that the first frame needs no
// initialisation, and measures the levels of a ladder.
func (b *builder) warm() error {
	f := &b.p.frames[0]
	b.warming = true
	for n := range b.levels {
		f.Level = int32(n)
		b.cropForWarmUp(f)
		l := &b.levels[n]
		if err := b.warmFallback(n, f); err != nil {
			return err
		}
		var cost degrade.Level
		if l.fps > 0 {
			cost.Period = time.Second / time.Duration(l.fps)
		}
		for k := range b.p.steps {
			s := &b.p.steps[k]
			best := time.Duration(math.MaxInt64)
			for i := range max(s.workers(), warmRuns) {
				b.cropForWarmUp(f)
				began, in := time.Now(), i%s.workers()
				if err := b.runAtStart(s, func() { s.interrupt(in) }, func() error {
					return l.works[k](context.Background(), in, []*frame.Frame{f})
				}); err != nil {
					return fmt.Errorf("stage %s, warming up: %w", s.id, err)
				}
				best = min(best, time.Since(began))
			}
			if s.deadline > 0 && best > s.deadline && n == 0 && b.o.Note != nil {
				b.o.Note(fmt.Errorf("stage %s: the quickest of %d runs took %v, more than its deadline of %v: its frames will be dropped", s.id, max(s.workers(), warmRuns), best.Round(time.Millisecond), s.deadline))
			}
			cost.Bottleneck = max(cost.Bottleneck, best/time.Duration(s.workers()))
			cost.Service += best
		}
		b.p.levels = append(b.p.levels, cost)
	}
	b.warming = false
	f.Level, f.Results, f.Crops = 0, f.Results[:0], f.Crops[:0]
	for _, reset := range b.resets {
		reset()
	}
	b.p.copies.Store(0)
	for k := range b.p.others {
		b.p.others[k].Store(0)
	}
	if b.gpu != nil {
		for _, s := range b.gpu.shares {
			for n := range s.frames {
				s.frames[n].Store(0)
			}
		}
	}
	var err error
	if b.p.use, err = newUtilisation(b.o.Plan.Utilisation, b.p.steps, b.p.live); err != nil {
		return err
	}
	if len(b.levels) == 1 {
		b.p.levels = nil
		return nil
	}
	d := b.o.Plan.Degrade
	b.p.ladder = degrade.New(degrade.Config{
		Levels: b.p.levels, Source: b.p.source.Format().Rate.Period(), SLO: time.Duration(b.p.target),
		UpDwell: time.Duration(d.UpDwell), MaxDwell: time.Duration(d.MaxDwell),
	})
	return nil
}

// Limits of a run before the first frame, which may take longer than later ones: libraries initialise themselves.
const (
	startRuns = 10               // as many deadlines
	startTime = 10 * time.Second // at least
)

// runAtStart runs a stage before the first frame. A request to stop interrupts it, and so does the time of a stage
// with a deadline.
func (b *builder) runAtStart(s *step, interrupt func(), run func() error) error {
	if b.o.Start.Err() != nil {
		return context.Cause(b.o.Start)
	}
	defer context.AfterFunc(b.o.Start, interrupt)()
	if s.deadline == 0 {
		return run()
	}
	limit := max(startRuns*s.deadline, startTime)
	late := time.AfterFunc(limit, interrupt)
	err := run()
	if !late.Stop() {
		return fmt.Errorf("%w: a run takes more than %v, and the deadline is %v", ErrPlan, limit, s.deadline)
	}
	return err
}

// newUtilisation returns the controller of batch sizes, or nil without a target.
func newUtilisation(text string, steps []step, live bool) (*degrade.Utilisation, error) {
	if text == "" {
		return nil, nil
	}
	target, err := registry.Fraction("utilisation", text)
	if err != nil {
		return nil, err
	}
	most := 1
	for k := range steps {
		most = max(most, steps[k].largest())
	}
	if most == 1 && !live {
		return nil, fmt.Errorf("%w: utilisation is kept by the size of batches, or by skipping frames of a live source, and this source waits: give a model batch.buckets", ErrPlan)
	}
	return &degrade.Utilisation{Target: float64(target), Max: most}, nil
}

// allocate makes the frames.
func (b *builder) allocate() error {
	steps := len(b.o.Plan.Stages)
	n, size := framesFor(b.p.steps, b.p.capacity, b.p.sinkCapacity), b.p.source.Format().Bytes()
	if err := b.account(n, int64(size)); err != nil {
		return err
	}
	own, each := n, size
	record := registry.SourceOutput(&b.o.Plan.Source).Data == registry.Tensors
	if record {
		each = (size + 255) / 256 * 256 // which the core needs, and models a part of
	}
	if s, ok := b.p.source.(source.SelfPaced); ok {
		l := source.Lending{Frames: n, Share: registry.StageOf(b.o.Plan.Stages[0].Kind).Buffers}
		if b.gpu != nil {
			l.Share, l.Memory = false, b.cameraMemory
		}
		lends, err := s.Lend(l)
		if err != nil {
			return err
		}
		if lends {
			own = 1 // for warming up
		}
	}
	pixels, err := b.frameMemory(own * each)
	if err != nil {
		return err
	}
	if b.gpu == nil {
		b.p.closers = append(b.p.closers, func() error { return unix.Munmap(pixels) })
	}
	b.p.info.Frames = n
	b.p.spares = registry.SpareFrames(&b.o.Plan)
	b.p.frames = make([]frame.Frame, n+b.p.spares)
	for i := range b.p.frames {
		b.p.frames[i] = frame.Frame{
			Slot:    i,
			Fixed:   b.gpu != nil || record,
			Pixels:  pixels[i%own*each:][:size:size],
			Tensors: make([][]frame.Tensor, len(b.levels)),
			Spent:   make([]frame.Span, steps+1),
		}
		for n := range b.levels {
			b.p.frames[i].Tensors[n] = make([]frame.Tensor, steps)
		}
	}
	return nil
}

// cameraMemory allocates areas that a driver captures into and the worker reads.
func (b *builder) cameraMemory(areas, bytes int) ([][]byte, error) {
	// Those of the frames are accounted for.
	if err := b.account(registry.DriverBuffers, int64(bytes)); err != nil {
		return nil, err
	}
	all := make([][]byte, areas)
	for i := range all {
		var err error
		if all[i], err = b.gpu.alloc(bytes); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// stageBuilder builds one stage of one level.
type stageBuilder struct {
	*builder
	k  int                 // index of the stage
	s  *plan.PipelineStage // as on this level
	st *step
}

// stageBuilders builds the work of the stages of each kind.
var stageBuilders = map[string]func(stageBuilder) (work, error){
	registry.Gate.Kind:        buildGate,
	registry.Stats.Kind:       buildStats,
	registry.Preprocess.Kind:  buildPreprocess,
	registry.Model.Kind:       buildModel,
	registry.Map.Kind:         buildMap,
	registry.Postprocess.Kind: buildPostprocess,
	registry.Match.Kind:       buildMatch,
	registry.Track.Kind:       buildTrack,
	registry.ROI.Kind:         buildROI,
	registry.Custom.Kind:      buildCustom,
}

func (b *builder) stage(k int, s *plan.PipelineStage) (work, error) {
	w, err := stageBuilders[s.Kind](stageBuilder{b, k, s, &b.p.steps[k]})
	b.carries = registry.StageOutput(s).Data
	return w, err
}

// onCancel adds f to the functions that interrupt the work of an instance.
func (b *stageBuilder) onCancel(f func(instance int)) {
	cancel := b.st.cancel
	b.st.cancel = func(instance int) {
		f(instance)
		if cancel != nil {
			cancel(instance)
		}
	}
}

// core returns the CPU backend.
func (b *builder) core() (*core.Device, error) {
	if b.dev == nil {
		dev, err := core.Open(core.Options{Backend: core.CPU, Kernels: kernelConfigs(&b.o.Plan)})
		if err != nil {
			return nil, err
		}
		b.dev = dev
		b.p.closers = append(b.p.closers, dev.Close)
	}
	return b.dev, nil
}

func callIfSet(f func()) {
	if f != nil {
		f()
	}
}
