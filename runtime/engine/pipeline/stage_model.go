package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/decode"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// bound is one run of a stage's models on fixed memory.
type bound struct {
	in   frame.Tensor
	outs []frame.Tensor // of the stage's own model: what it makes, and what goes beside it
	runs []*ort.Binding // of each model of the stage

	votes [][]float32 // outputs of the further models
}

// run runs the models and makes one output of theirs.
func (r *bound) run(v decode.Vote) error {
	for _, b := range r.runs {
		if err := classify(b.Run()); err != nil {
			return err
		}
	}
	if len(r.votes) > 0 {
		out := r.outs[0]
		v(out.Data, r.votes, int(out.Shape[len(out.Shape)-1]))
	}
	return nil
}

// model loads the models of a stage, runs each once for each batch size and instance
// to learn the shapes of its outputs, and binds each frame's tensors to it.
func (b *builder) model(k int, s *plan.PipelineStage) (work, error) {
	st := &b.p.steps[k]
	v := decode.Mean
	if e := s.Model.Ensemble; e != nil {
		var err error
		if v, err = decode.ParseVote(e.Vote); err != nil {
			return nil, err
		}
	}
	names := secondOutputs(b.levels[b.now].stages, k)
	var models []member
	var options []ort.Options
	for n, m := range registry.Models(s) {
		path, err := b.files.find(m.Path, m.SHA256)
		if err != nil {
			return nil, err
		}
		o := ort.Options{Check: checkSum(m.SHA256)}
		if n == 0 {
			o.Input, o.Output, o.More = s.Model.Input, s.Model.Output, names
		}
		if err := b.tune(k, s, &o); err != nil {
			return nil, err
		}
		sessions, err := b.open(k, s, path, o)
		if err != nil {
			return nil, err
		}
		models = append(models, member{path, m.SHA256, sessions})
		options = append(options, o)
	}
	level := b.now
	in := b.p.frames[0].Tensors[level][k-1]
	shapes, err := probeAll(models, in)
	if err != nil {
		return nil, err
	}
	b.shape, b.more = shapes[0], nil
	if len(shapes) > 1 {
		b.more = shapes[1]
	}
	if err := b.outputs(k, shapes); err != nil {
		return nil, err
	}

	single := make([][]bound, st.workers()) // by instance and frame
	wide := make([]map[int]bound, st.workers())
	for i := range st.workers() {
		votes, err := b.ballot(models, shapes[0])
		if err != nil {
			return nil, err
		}
		single[i] = make([]bound, len(b.p.frames))
		for f := range b.p.frames {
			t := b.p.frames[f].Tensors[level]
			r := bound{in: t[k-1], outs: []frame.Tensor{t[k]}}
			if t[k].More != nil {
				r.outs = append(r.outs, *t[k].More)
			}
			if err := b.bind(&r, models, i, votes); err != nil {
				return nil, err
			}
			single[i][f] = r
		}
		wide[i] = map[int]bound{}
		for _, size := range st.buckets {
			if size == 1 {
				continue
			}
			if wide[i][size], err = b.batch(models, i, in.Shape, shapes, size); err != nil {
				return nil, fmt.Errorf("model %s, batch of %d: %w", models[0].path, size, err)
			}
		}
	}
	copies := &b.p.copies
	work := func(_ context.Context, instance int, f []*frame.Frame) error {
		if len(f) == 1 {
			return single[instance][f[0].Slot].run(v)
		}
		r, ok := wide[instance][len(f)]
		if !ok {
			return fmt.Errorf("%w: a batch of %d", ErrPlan, len(f))
		}
		gather(f, level, k-1, r.in.Data)
		if err := r.run(v); err != nil {
			return err
		}
		scatter(f, level, k, r.outs)
		copies.Add(uint64((1 + len(r.outs)) * len(f)))
		return nil
	}
	if b.gpu == nil || !onGPU(s) {
		return work, nil
	}
	by, err := b.gpu.newBalance(st.workers())
	if err != nil {
		return nil, err
	}
	do, err := b.modelOnGPU(k, s, models, options, shapes, v, by)
	if err != nil {
		return nil, err
	}
	return b.gpuStage(k, s, work, do, by), nil
}

// gather copies the tensors of a batch's frames into one.
func gather(f []*frame.Frame, level, k int, to []float32) {
	each := len(to) / len(f)
	for n, fr := range f {
		copy(to[n*each:], fr.Tensors[level][k].Data)
	}
}

// scatter copies what a batch made to its frames.
func scatter(f []*frame.Frame, level, k int, outs []frame.Tensor) {
	for o, out := range outs {
		each := len(out.Data) / len(f)
		for n, fr := range f {
			t := &fr.Tensors[level][k]
			if o > 0 {
				t = t.More
			}
			copy(t.Data, out.Data[n*each:][:each])
		}
	}
}

// member is one model of a stage, with a session for each instance.
type member struct {
	path     string
	sum      string // SHA-256 of the file, "": not known
	sessions []*ort.Session
}

// secondOutputs names further outputs of the model of stage k that the next one reads.
func secondOutputs(stages []plan.PipelineStage, k int) []string {
	if k+1 == len(stages) || stages[k+1].Post == nil {
		return nil
	}
	if d, _ := registry.DecodeOf(stages[k+1].Post.Kind); d.Second {
		return []string{stages[k+1].Post.Prototypes}
	}
	return nil
}

// probeAll runs every session once, and checks that those that vote speak of the same.
func probeAll(models []member, in frame.Tensor) ([][]int64, error) {
	var shapes [][]int64
	for n, m := range models {
		for i, s := range m.sessions {
			got, err := s.Probe(in.ORT)
			if err != nil {
				return nil, fmt.Errorf("model %s: %w", m.path, err)
			}
			switch {
			case n == 0 && i == 0:
				shapes = got
			case !slices.Equal(got[0], shapes[0]):
				return nil, fmt.Errorf("%w: ensemble: %s gives %v, %s gives %v: models that vote give the same", ErrPlan, models[0].path, shapes[0], m.path, got[0])
			}
		}
	}
	return shapes, nil
}

// outputs gives every frame the tensors that stage k makes.
func (b *builder) outputs(k int, shapes [][]int64) error {
	for _, s := range shapes {
		if err := b.account(len(b.p.frames), 4*volume(s)); err != nil {
			return err
		}
	}
	if err := b.ortTensors(k, shapes[0]); err != nil {
		return err
	}
	if len(shapes) == 1 {
		return nil
	}
	for i := range b.p.frames {
		t, err := b.newTensor(shapes[1])
		if err != nil {
			return err
		}
		b.p.frames[i].Tensors[b.now][k].More = &t
	}
	return nil
}

// ballot allocates the outputs of the further models.
func (b *builder) ballot(models []member, shape []int64) ([]frame.Tensor, error) {
	var votes []frame.Tensor
	for range models[1:] {
		t, err := b.newTensor(shape)
		if err != nil {
			return nil, err
		}
		votes = append(votes, t)
	}
	return votes, b.account(1, 4*volume(shape)*int64(len(votes)))
}

// bind ties the models of an instance to what r holds, the further ones to votes.
func (b *builder) bind(r *bound, models []member, instance int, votes []frame.Tensor) error {
	for n, m := range models {
		var outs []*ort.Tensor
		if n == 0 {
			for _, o := range r.outs {
				outs = append(outs, o.ORT)
			}
		} else {
			outs = append(outs, votes[n-1].ORT)
			r.votes = append(r.votes, votes[n-1].Data)
		}
		run, err := m.sessions[instance].Bind(r.in.ORT, outs...)
		if err != nil {
			return fmt.Errorf("model %s: %w", m.path, err)
		}
		b.p.closers = append(b.p.closers, func() error { run.Close(); return nil })
		r.runs = append(r.runs, run)
	}
	return nil
}

// batch is the run of an instance on several frames, done once.
func (b *builder) batch(models []member, instance int, in []int64, one [][]int64, size int) (bound, error) {
	shape := slices.Clone(in)
	shape[0] = int64(size)
	var r bound
	var err error
	if r.in, err = b.newTensor(shape); err != nil {
		return r, err
	}
	alone := []member{}
	for _, m := range models {
		alone = append(alone, member{m.path, m.sum, m.sessions[instance : instance+1]})
	}
	shapes, err := probeAll(alone, r.in)
	if err != nil {
		return r, err
	}
	room := volume(shape)
	for n, got := range shapes {
		if want := one[n]; len(got) != len(want) || got[0] != int64(size) || want[0] != 1 || !slices.Equal(got[1:], want[1:]) {
			return r, fmt.Errorf("%w: its output is %v, for one frame %v: it does not have the batch on its first axis", ErrPlan, got, want)
		}
		t, err := b.newTensor(got)
		if err != nil {
			return r, err
		}
		r.outs = append(r.outs, t)
		room += volume(got)
	}
	votes, err := b.ballot(models, shapes[0])
	if err != nil {
		return r, err
	}
	if err := b.bind(&r, models, instance, votes); err != nil {
		return r, err
	}
	return r, b.account(1, 4*room)
}

// classify finds out whether a run failed for want of memory.
func classify(err error) error {
	if ort.OutOfMemory(err) {
		return fmt.Errorf("%w: %w", errNoMemory, err)
	}
	return err
}

// tune sets how a stage's models run.
func (b *builder) tune(k int, s *plan.PipelineStage, o *ort.Options) error {
	m, st := s.Model, &b.p.steps[k]
	o.Threads, o.Spinning, o.NoArena, o.Providers = m.Threads, m.Spinning, m.NoArena, s.ModelProviders()
	if registry.Isolated(&b.o.Plan, s) { // the others run it in the worker
		o.Providers = []string{ort.CPU}
	}
	if o.Threads == 0 {
		cores, err := countCPUs(b.o.Plan.CPUs)
		if err != nil {
			return fmt.Errorf("%w: cpus: %w", ErrPlan, err)
		}
		o.Threads = max(cores/st.workers(), 1)
	}
	return nil
}

// open loads a model once for each instance, and once for all levels.
func (b *builder) open(k int, s *plan.PipelineStage, path string, o ort.Options) ([]*ort.Session, error) {
	key := s.ID + "\x00" + path
	if all := b.sessions[key]; all != nil {
		return all, nil
	}
	st := &b.p.steps[k]
	o.Engine = func() (string, error) { return findEngine(b.o, s, path) }
	var all []*ort.Session
	for range st.workers() {
		session, err := b.rt.NewSession(path, o)
		if err != nil {
			return nil, err
		}
		b.p.closers = append(b.p.closers, func() error { session.Close(); return nil })
		all = append(all, session)
	}
	b.sessions[key] = all
	b.p.info.Models = append(b.p.info.Models, ModelInfo{
		Stage: s.ID, Path: path, Provider: all[0].Provider(), Missing: all[0].Missing(), Threads: o.Threads,
	})
	b.p.info.Provider = b.p.info.Models[0].Provider
	st.backend = "onnxruntime " + all[0].Provider()
	abort, cancel, resume := b.p.abort, st.cancel, st.resume
	b.p.abort = func() {
		for _, session := range all {
			session.Terminate()
		}
		callIfSet(abort)
	}
	// Which level an instance is on does not matter: it runs one model at a time.
	st.cancel = func(instance int) {
		all[instance].Terminate()
		if cancel != nil {
			cancel(instance)
		}
	}
	st.resume = func(instance int) {
		all[instance].Resume()
		if resume != nil {
			resume(instance)
		}
	}
	return all, nil
}
