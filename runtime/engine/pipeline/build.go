package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/nvtx"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/degrade"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/source"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// ModelStore is where layers install models, by their SHA-256.
const ModelStore = "/usr/share/yoctune/models"

// builder makes the steps of a pipeline from its plan, checking that each stage
// takes what the one before gives. A level of the ladder is a pipeline of its
// own, which shares with the one above whatever is the same.
type builder struct {
	o      Options
	p      *Pipeline
	rt     *ort.Runtime
	dev    *core.Device
	gpu    *gpu                // nil: no stage is on the GPU, or it is in this process
	here   *core.Device        // the GPU of this process, with isolation none
	labels map[string][]string // by path

	levels   []level
	now      int // the level being built
	carries  registry.Data
	shape    []int64                   // of the tensor the stages so far make
	more     []int64                   // of a second one beside it, nil: there is none
	at       picture                   // how that tensor lies in the frame
	sessions map[string][]*ort.Session // by stage and model; one for each instance
	trackers map[string]work           // by stage
}

// level is the pipeline on one level of the ladder.
type level struct {
	stages []plan.PipelineStage
	fps    int
	works  []work
	shapes [][]int64 // what each stage makes
	at     picture   // how its tensors lie in the frame
	same   []bool    // the stage is that of the level above

	fallbacks []work // what the CPU does for the GPU; nil: nothing
}

// work is what a stage does to a batch, on one of its instances.
type work = func(ctx context.Context, instance int, f []*frame.Frame) error

func (b *builder) stages() error {
	stages := b.o.Plan.Stages
	var err error
	if b.levels, err = planLevels(b.o.Plan); err != nil {
		return err
	}
	b.p.steps = make([]step, len(stages))
	for k := range stages {
		if b.p.steps[k], err = b.step(k, &stages[k]); err != nil {
			return fmt.Errorf("stage %s: %w", stages[k].ID, err)
		}
	}
	b.mark()
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
	b.labels, b.sessions = map[string][]string{}, map[string][]*ort.Session{}
	for n := range b.levels {
		if err := b.level(n); err != nil {
			if n > 0 {
				err = fmt.Errorf("degrade, step %d: %w", n, err)
			}
			return err
		}
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

// mark has NVIDIA's profilers see the stages, where their library is.
func (b *builder) mark() {
	lib, err := nvtx.Open(b.o.NVTX)
	if err != nil && b.o.Note != nil && (b.o.NVTX != "" || !errors.Is(err, nvtx.ErrNotFound)) {
		b.o.Note(fmt.Errorf("stages are not marked for profilers: %w", err))
	}
	for k := range b.p.steps {
		b.p.steps[k].marks = lib.Range(b.o.Name + "/" + b.p.steps[k].id)
	}
}

// step is stage k of every level, without its work.
func (b *builder) step(k int, s *plan.PipelineStage) (step, error) {
	st := step{id: s.ID, instances: s.Instances, deadline: time.Duration(s.Deadline)}
	if onGPU(s) && st.instances == 0 {
		st.instances = len(b.o.Plan.GPUs)
	}
	if s.Deadline < 0 {
		return st, fmt.Errorf("%w: deadline of %v", ErrPlan, st.deadline)
	}
	if registry.Isolated(&b.o.Plan, s) {
		// The GPU may not take longer; who does its work then has its own time.
		if st.limit, st.deadline = st.deadline, 0; st.limit == 0 {
			st.limit = gpuLimit
		}
	}
	if s.Model != nil && s.Model.Batch != nil {
		st.buckets, st.delay = s.Model.Batch.Buckets, time.Duration(s.Model.Batch.Delay)
		if err := checkBuckets(st.buckets); err != nil {
			return st, err
		}
	}
	st.batch = func(ctx context.Context, instance int, f []*frame.Frame) error {
		return b.levels[f[0].Level].works[k](ctx, instance, f)
	}
	return st, nil
}

func checkBuckets(buckets []int) error {
	for n, size := range buckets {
		if n == 0 && size != 1 || n > 0 && size <= buckets[n-1] || size > registry.MaxBatch {
			return fmt.Errorf("%w: buckets %v; they ascend from 1 to at most %d", ErrPlan, buckets, registry.MaxBatch)
		}
	}
	return nil
}

// planLevels applies the steps of the ladder to the stages.
func planLevels(p plan.Pipeline) ([]level, error) {
	ladder := []plan.DegradeStep(nil)
	if p.Degrade != nil {
		ladder = p.Degrade.Ladder
	}
	switch {
	case len(ladder) > 0 && !p.Source.Live:
		return nil, fmt.Errorf("%w: degrade: only a live source can do with less; another waits", ErrPlan)
	case len(ladder) > registry.MaxLadder:
		return nil, fmt.Errorf("%w: degrade: %d steps; there are at most %d", ErrPlan, len(ladder), registry.MaxLadder)
	}
	var levels []level
	for n, stages := range registry.Levels(&p) {
		l := level{stages: stages}
		if n > 0 {
			if err := checkStep(ladder[n-1], stages); err != nil {
				return nil, fmt.Errorf("%w: degrade, step %d: %w", ErrPlan, n, err)
			}
			if l.fps = ladder[n-1].FPS; l.fps == 0 {
				l.fps = levels[n-1].fps
			}
		}
		levels = append(levels, l)
	}
	return levels, nil
}

// checkStep checks that a step of the ladder changes stages that there are.
func checkStep(st plan.DegradeStep, stages []plan.PipelineStage) error {
	if st.FPS < 0 {
		return fmt.Errorf("%d fps", st.FPS)
	}
	find := func(field, id string) error {
		if slices.ContainsFunc(stages, func(s plan.PipelineStage) bool { return s.ID == id && registry.StageOf(s.Kind).Ladder == field }) {
			return nil
		}
		return fmt.Errorf("there is no %s stage %q", registry.ChangedBy(field), id)
	}
	for _, m := range st.Models {
		if err := find(registry.LadderModels, m.Stage); err != nil {
			return err
		}
	}
	for _, z := range st.Sizes {
		if err := find(registry.LadderSizes, z.Stage); err != nil {
			return err
		}
	}
	return nil
}

// level builds the stages of one level that are not those of the level above.
func (b *builder) level(n int) error {
	l := &b.levels[n]
	b.now, b.carries, b.shape, b.more = n, registry.Frames, nil, nil
	if n > 0 {
		b.at = b.levels[n-1].at
	}
	l.works, l.shapes, l.same = make([]work, len(l.stages)), make([][]int64, len(l.stages)), make([]bool, len(l.stages))
	l.fallbacks = make([]work, len(l.stages))
	same := n > 0
	for k := range l.stages {
		s := &l.stages[k]
		if n > 0 {
			above := &b.levels[n-1]
			// What a stage makes also depends on what it is given.
			same = same && !registry.Changed(&above.stages[k], s)
			if l.same[k] = same; same {
				l.works[k], b.shape = above.works[k], above.shapes[k]
				l.shapes[k] = b.shape
				for i := range b.p.frames {
					t := b.p.frames[i].Tensors
					t[n][k] = t[n-1][k]
				}
				b.carries = registry.Gives(s).Data
				continue
			}
		}
		var err error
		if l.works[k], err = b.stage(k, s); err != nil {
			return fmt.Errorf("stage %s: %w", s.ID, err)
		}
		l.shapes[k] = b.shape
	}
	l.at = b.at
	return nil
}

// warm runs every stage of every level and instance, so that the first frame
// finds everything in place, and measures the levels of a ladder.
func (b *builder) warm() error {
	f := &b.p.frames[0]
	for n := range b.levels {
		f.Level = int32(n)
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
				began := time.Now()
				if err := l.works[k](context.Background(), i%s.workers(), []*frame.Frame{f}); err != nil {
					return fmt.Errorf("stage %s, warming up: %w", s.id, err)
				}
				best = min(best, time.Since(began))
			}
			cost.Bottleneck = max(cost.Bottleneck, best/time.Duration(s.workers()))
			cost.Service += best
		}
		b.p.levels = append(b.p.levels, cost)
	}
	f.Level, f.Results = 0, f.Results[:0]
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
	if err := b.utilisation(); err != nil {
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

// utilisation sets up the controller of how much is done at once.
func (b *builder) utilisation() error {
	if b.o.Plan.Utilisation == "" {
		return nil
	}
	target, err := fraction("utilisation", b.o.Plan.Utilisation)
	if err != nil {
		return err
	}
	most := 1
	for k := range b.p.steps {
		most = max(most, b.p.steps[k].largest())
	}
	if most == 1 {
		return fmt.Errorf("%w: utilisation is kept by the size of batches, and no stage has any: give a model batch.buckets", ErrPlan)
	}
	b.p.use = &degrade.Utilisation{Target: float64(target), Max: most}
	return nil
}

// allocate makes the frames.
func (b *builder) allocate() error {
	steps := len(b.o.Plan.Stages)
	n, size := framesFor(b.p.steps, b.p.capacity, b.p.sinkCapacity), b.p.source.Format().Bytes()
	if err := b.account(n, int64(size)); err != nil {
		return err
	}
	own := n
	if s, ok := b.p.source.(source.SelfPaced); ok {
		want := n
		if b.gpu != nil {
			want = math.MaxInt16 // no driver has so many: the worker sees only memory that it shares
		}
		lends, err := s.Lend(want, registry.StageOf(b.o.Plan.Stages[0].Kind).Buffers)
		if err != nil {
			return err
		}
		if lends {
			own = 1 // for warming up
		}
	}
	pixels, err := b.frameMemory(own * size)
	if err != nil {
		return err
	}
	if b.gpu == nil {
		b.p.closers = append(b.p.closers, func() error { return unix.Munmap(pixels) })
	}
	b.p.info.Frames = n
	b.p.spares = b.spares()
	b.p.frames = make([]frame.Frame, n+b.p.spares)
	for i := range b.p.frames {
		b.p.frames[i] = frame.Frame{
			Slot:    i,
			Fixed:   b.gpu != nil,
			Pixels:  pixels[i%own*size : (i%own+1)*size : (i%own+1)*size],
			Tensors: make([][]frame.Tensor, len(b.levels)),
			Spent:   make([]frame.Span, steps+1),
		}
		for n := range b.levels {
			b.p.frames[i].Tensors[n] = make([]frame.Tensor, steps)
		}
	}
	return nil
}

// account adds n parts of size bytes to the pool, and refuses what is too much.
func (b *builder) account(n int, size int64) error {
	if size > registry.MaxPool/int64(n) || b.p.info.Bytes > registry.MaxPool-int64(n)*size {
		return fmt.Errorf("%w: %d frames of %d bytes would take more than %d MiB with the rest: lower the queue capacity or the size",
			ErrPlan, n, size, registry.MaxPool>>20)
	}
	b.p.info.Bytes += int64(n) * size
	return nil
}

// stageBuilders builds the stages of each kind.
var stageBuilders = map[string]func(b *builder, k int, s *plan.PipelineStage) (work, error){
	registry.Preprocess.Kind:  (*builder).preprocess,
	registry.Model.Kind:       (*builder).model,
	registry.Postprocess.Kind: (*builder).post,
	registry.Track.Kind:       (*builder).follow,
	registry.Custom.Kind:      (*builder).custom,
}

func (b *builder) stage(k int, s *plan.PipelineStage) (work, error) {
	w, err := stageBuilders[s.Kind](b, k, s)
	b.carries = registry.Gives(s).Data
	return w, err
}

// preprocess makes a tensor of a frame in one pass.
func (b *builder) preprocess(k int, s *plan.PipelineStage) (work, error) {
	f := b.p.source.Format()
	args, err := preprocessArgs(s.Preprocess, f)
	if err != nil {
		return nil, err
	}
	g, err := args.Geometry()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	b.at = picture{g, args.OutW, args.OutH}
	args = f.Part(args)
	dev, err := b.core()
	if err != nil {
		return nil, err
	}
	if b.here != nil && onGPU(s) {
		dev = b.here
	}
	b.p.info.Backend = dev.Backend()
	b.p.steps[k].backend = dev.Backend()
	if err := b.tensors(k, []int64{1, 3, int64(args.OutH), int64(args.OutW)}); err != nil {
		return nil, err
	}
	work := func(ctx context.Context, _ int, batch []*frame.Frame) error {
		for _, fr := range batch {
			a := args
			a.Out = fr.Tensors[fr.Level][k].Data
			var err error
			if a.Planes, err = core.SplitPlanes(f.Pixels, f.Width, f.Height, fr.Pixels); err != nil {
				return err
			}
			if err := dev.Preprocess(ctx, a); err != nil {
				return err
			}
		}
		return nil
	}
	if b.gpu == nil || !onGPU(s) {
		return work, nil
	}
	b.p.info.Backend = b.backend()
	by, err := b.gpu.share(b.p.steps[k].workers())
	if err != nil {
		return nil, err
	}
	do, err := b.preprocessOnGPU(k, args, f, by)
	if err != nil {
		return nil, err
	}
	return b.gpuStage(k, s, work, do, by), nil
}

// core is the CPU's backend.
func (b *builder) core() (*core.Device, error) {
	if b.dev == nil {
		dev, err := core.Open(core.Options{Backend: core.CPU, Kernels: launches(&b.o.Plan)})
		if err != nil {
			return nil, err
		}
		b.dev = dev
		b.p.closers = append(b.p.closers, dev.Close)
	}
	return b.dev, nil
}

// launches are the plan's launch configurations of the core's kernels. A device takes
// them when it is opened, the CPU's as well: what the GPU would refuse is refused there.
func launches(p *plan.Pipeline) []core.KernelConfig {
	var out []core.KernelConfig
	for _, k := range p.Kernels {
		out = append(out, core.KernelConfig{Kernel: k.Kernel, Block: k.Block})
	}
	return out
}

func preprocessArgs(p *plan.Preprocess, f frame.Format) (core.Preprocess, error) {
	width, height := f.Whole()
	a := core.Preprocess{
		Format: f.Pixels, Width: width, Height: height, Matrix: f.Matrix,
		OutW: p.Width, OutH: p.Height, Pad: uint8(p.Pad),
	}
	bad := func(field string, value any, want string) error {
		return fmt.Errorf("%w: %s %v; it is %s", ErrPlan, field, value, want)
	}
	switch p.Fit {
	case "stretch", "":
		a.Fit = core.Stretch
	case "letterbox":
		a.Fit = core.Letterbox
	default:
		return a, bad("fit", p.Fit, "stretch or letterbox")
	}
	switch p.Color {
	case "rgb", "":
		a.Color = core.RGB
	case "bgr":
		a.Color = core.BGR
	default:
		return a, bad("color", p.Color, "rgb or bgr")
	}
	if p.Layout != "nchw" && p.Layout != "" {
		return a, bad("layout", p.Layout, "nchw")
	}
	if p.DType != "f32" && p.DType != "" {
		return a, bad("dtype", p.DType, "f32")
	}
	if p.Pad < 0 || p.Pad > 255 {
		return a, bad("pad", p.Pad, "0 to 255")
	}
	if c := p.Crop; c != nil {
		if c.Width < 1 || c.Height < 1 || c.X < 0 || c.Y < 0 || c.X > width-c.Width || c.Y > height-c.Height {
			return a, fmt.Errorf("%w: crop %dx%d at %d,%d is not inside the frame of %dx%d",
				ErrPlan, c.Width, c.Height, c.X, c.Y, width, height)
		}
		a.Crop = core.Rect{X: c.X, Y: c.Y, Width: c.Width, Height: c.Height}
	}
	var err error
	if a.Mean, err = channels("mean", p.Mean, 0); err != nil {
		return a, err
	}
	if a.Std, err = channels("std", p.Std, 1); err != nil {
		return a, err
	}
	for _, v := range a.Std {
		if v == 0 {
			return a, bad("std", p.Std, "not zero")
		}
	}
	return a, nil
}

// channels reads the three values of mean or std, or one for all.
func channels(field string, text []string, unset float32) ([3]float32, error) {
	v := [3]float32{unset, unset, unset}
	if len(text) != 0 && len(text) != 1 && len(text) != 3 {
		return v, fmt.Errorf("%w: %s has %d values; it has 3, or 1 for all channels", ErrPlan, field, len(text))
	}
	for i := range v {
		if len(text) == 0 {
			break
		}
		x, err := decimal(text[min(i, len(text)-1)])
		if err != nil {
			return v, fmt.Errorf("%w: %s: %w", ErrPlan, field, err)
		}
		v[i] = x
	}
	return v, nil
}

func decimal(s string) (float32, error) {
	x, err := strconv.ParseFloat(s, 32)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0, fmt.Errorf("%q is not a decimal number", s)
	}
	return float32(x), nil
}

// tensors gives every frame a tensor of stage k's output.
func (b *builder) tensors(k int, shape []int64) error {
	b.shape = shape
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	if err := b.account(len(b.p.frames), n*4); err != nil {
		return err
	}
	feeds := k+1 < len(b.o.Plan.Stages) && registry.StageOf(b.o.Plan.Stages[k+1].Kind).RunsModels
	if !feeds && b.isShared(k) {
		for i := range b.p.frames {
			var err error
			if b.p.frames[i].Tensors[b.now][k], err = b.sharedTensor(shape, false); err != nil {
				return err
			}
		}
		return nil
	}
	if !feeds {
		for i := range b.p.frames {
			b.p.frames[i].Tensors[b.now][k] = frame.Tensor{Shape: shape, Data: make([]float32, n)}
		}
		return nil
	}
	return b.ortTensors(k, shape)
}

// ortTensors allocates the tensors where a model can read and write them.
func (b *builder) ortTensors(k int, shape []int64) error {
	for i := range b.p.frames {
		var t frame.Tensor
		var err error
		if b.isShared(k) {
			t, err = b.sharedTensor(shape, true)
		} else {
			t, err = b.newTensor(shape)
		}
		if err != nil {
			return err
		}
		b.p.frames[i].Tensors[b.now][k] = t
	}
	return nil
}

// newTensor is one a model can read and write, for as long as the pipeline.
func (b *builder) newTensor(shape []int64) (frame.Tensor, error) {
	t, err := b.rt.NewTensor(shape)
	if err != nil {
		return frame.Tensor{}, err
	}
	b.p.closers = append(b.p.closers, func() error { t.Close(); return nil })
	return frame.Tensor{Shape: t.Shape(), Data: t.Data(), ORT: t}, nil
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// find looks for a model where --models, the plan's folder and the layers put
// it, in this order.
func (b *builder) find(path, sum string) (string, error) {
	if path == "" && sum == "" {
		return "", fmt.Errorf("%w: the model has neither path nor sha256", ErrPlan)
	}
	if sum != "" && !isSHA256(sum) {
		return "", fmt.Errorf("%w: model sha256 %.80q is not 64 lower-case hexadecimal digits", ErrPlan, sum)
	}
	var tries []string
	add := func(dir, name string) {
		if dir != "" && name != "" {
			tries = append(tries, filepath.Join(dir, name))
		}
	}
	if path != "" && !filepath.IsAbs(path) {
		add(b.o.Models, path)
	}
	if path != "" {
		add(b.o.Models, filepath.Base(path))
	}
	add(b.o.Models, sum)
	if path != "" {
		tries = append(tries, locate(b.o.Dir, path))
	}
	add(ModelStore, sum)
	return firstFile(tries)
}

// firstFile returns the first path that exists.
func firstFile(tries []string) (string, error) {
	for _, t := range tries {
		_, err := os.Stat(t)
		if err == nil {
			return t, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%w: %w", ErrModelFile, err)
		}
	}
	return "", fmt.Errorf("%w: it is in none of %s: install it, or name its folder with --models",
		ErrModelFile, strings.Join(tries, ", "))
}

func isSHA256(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && strings.ToLower(s) == s
}

// checkSum compares a model with the sum in the plan, when there is one.
func checkSum(want string) func([]byte) error {
	if want == "" {
		return nil
	}
	return func(model []byte) error {
		sum := sha256.Sum256(model)
		if got := hex.EncodeToString(sum[:]); got != want {
			return fmt.Errorf("%w: its sha256 is %s, the plan wants %s: it is another model or was damaged", ErrModelFile, got, want)
		}
		return nil
	}
}
