package pipeline

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/decode"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// bound is one run of a stage's models on fixed memory.
type bound struct {
	ins  []frame.Tensor // in the order of the session's inputs
	outs []frame.Tensor // of the stage's main model: its output and any further ones
	runs []*ort.Binding // of each model of the stage

	votes [][]float32 // outputs of the other models
	kept  []keep      // tensors for the next run
	moves []move
}

// run runs the models on one level of the ladder and combines their outputs. A stage without a last
// run on this level takes the tensors of this one as the previous ones.
func (r *bound) run(v decode.Vote, level int) error {
	for _, m := range r.moves {
		copy(m.to, m.from)
	}
	for _, k := range r.kept {
		if *k.level != int32(level) {
			copy(k.to, k.from)
		}
	}
	for _, b := range r.runs {
		if err := markNoMemory(b.Run()); err != nil {
			return err
		}
	}
	if len(r.votes) > 0 {
		out := r.outs[0]
		v(out.Data, r.votes, int(out.Shape[len(out.Shape)-1]))
	}
	for _, k := range r.kept {
		*k.level = int32(level)
		copy(k.to, k.from)
	}
	return nil
}

// modelBuilder builds a stage that runs models.
type modelBuilder struct {
	stageBuilder
	vote    decode.Vote
	models  []member
	options []ort.Options     // of each model
	in      registry.Tensor   // of the stage's input
	inlets  []inlet           // of its models
	outs    []registry.Tensor // of the stage's own model
}

// buildModel loads the models of a stage, runs each once per batch size and instance to learn
// its output shapes, and binds each frame's tensors to it.
func buildModel(sb stageBuilder) (work, error) {
	b := &modelBuilder{stageBuilder: sb, in: sb.p.frames[0].Input(sb.now, sb.k).Type()}
	if e := b.s.Model.Ensemble; e != nil {
		var err error
		if b.vote, err = decode.ParseVote(e.Vote); err != nil {
			return nil, err
		}
	}
	var err error
	if b.inlets, err = b.openInlets(); err != nil {
		return nil, err
	}
	if err := b.load(); err != nil {
		return nil, err
	}
	if crops := registry.CropsFor(b.levels[b.now].stages, b.k); crops != nil {
		return b.buildOnCrops(crops)
	}
	ins, _, err := b.inputs(&b.p.frames[0])
	if err != nil {
		return nil, err
	}
	if b.outs, err = b.probeAll(b.models, ins); err != nil {
		return nil, err
	}
	b.made = b.outs
	if err := b.allocateOutputs(); err != nil {
		return nil, err
	}
	cpu, err := b.workOnCPU()
	if err != nil || b.gpu == nil || !onGPU(b.s) {
		return cpu, err
	}
	by, err := b.gpu.newBalance(b.st.workers())
	if err != nil {
		return nil, err
	}
	do, err := b.workOnGPU(by)
	if err != nil {
		return nil, err
	}
	return b.gpuStage(b.k, b.s, cpu, do, by), nil
}

// load finds the stage's models and opens their sessions.
func (b *modelBuilder) load() error {
	for n, m := range registry.Models(b.s) {
		path, err := b.files.find(m.Path, m.SHA256)
		if err != nil {
			return err
		}
		o := ort.Options{Check: newDigestCheck(m.SHA256)}
		if n == 0 {
			if o.Output, o.More, err = b.outputNames(path); err != nil {
				return fmt.Errorf("model %s: %w", path, err)
			}
			for _, in := range b.inlets {
				o.Inputs = append(o.Inputs, in.name)
			}
		}
		if err := b.tune(&o); err != nil {
			return err
		}
		sessions, err := b.open(path, o)
		if err != nil {
			return err
		}
		b.models = append(b.models, member{path, m.SHA256, sessions})
		b.options = append(b.options, o)
	}
	return nil
}

// workOnCPU returns the stage's work in this process.
func (b *modelBuilder) workOnCPU() (work, error) {
	single := make([][]bound, b.st.workers()) // by instance and frame
	wide := make([]map[int]bound, b.st.workers())
	for i := range single {
		var err error
		if single[i], err = b.bindFrames(i); err != nil {
			return nil, err
		}
		wide[i] = map[int]bound{}
		for _, size := range b.st.buckets {
			if size == 1 {
				continue
			}
			if wide[i][size], err = b.bindBatch(i, size); err != nil {
				return nil, fmt.Errorf("model %s, batch of %d: %w", b.models[0].path, size, err)
			}
		}
	}
	k, level, v, copies, inlets, gathered := b.k, b.now, b.vote, &b.p.copies, b.inlets, 0
	for n := range inlets {
		if !inlets[n].constant {
			gathered++
		}
	}
	return func(_ context.Context, instance int, f []*frame.Frame) error {
		for _, fr := range f {
			fr.Tensors[level][k].SetOn(0)
		}
		if len(f) == 1 {
			r := &single[instance][f[0].Slot]
			copies.Add(uint64(len(r.kept)))
			return r.run(v, level)
		}
		r, ok := wide[instance][len(f)]
		if !ok {
			return fmt.Errorf("%w: batch of %d", ErrPlan, len(f))
		}
		for n := range inlets {
			if !inlets[n].constant {
				gather(f, level, &inlets[n], r.ins[n].Bytes())
			}
		}
		if err := r.run(v, level); err != nil {
			return err
		}
		scatter(f, level, k, r.outs)
		copies.Add(uint64((gathered + len(r.outs)) * len(f)))
		return nil
	}, nil
}

// bindFrames ties the models of an instance to the tensors of each frame.
func (b *modelBuilder) bindFrames(instance int) ([]bound, error) {
	votes, err := b.allocateVotes(b.outs[0])
	if err != nil {
		return nil, err
	}
	runs := make([]bound, len(b.p.frames))
	for f := range b.p.frames {
		t := &b.p.frames[f].Tensors[b.now][b.k]
		r := &runs[f]
		if r.ins, r.moves, err = b.inputs(&b.p.frames[f]); err != nil {
			return nil, err
		}
		r.outs, r.kept = append([]frame.Tensor{*t}, t.More...), b.kept(&b.p.frames[f])
		if err := b.bind(r, instance, votes); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// gather copies the tensors of an inlet of a batch's frames into one tensor.
func gather(f []*frame.Frame, level int, i *inlet, to []byte) {
	each := len(to) / len(f)
	for n, fr := range f {
		t := i.of(fr, level)
		copy(to[n*each:][:each], t.Bytes())
	}
}

// scatter copies the output of a batch to its frames.
func scatter(f []*frame.Frame, level, k int, outs []frame.Tensor) {
	for o := range outs {
		made := outs[o].Bytes()
		each := len(made) / len(f)
		for n, fr := range f {
			t := &fr.Tensors[level][k]
			if o > 0 {
				t = &t.More[o-1]
			}
			copy(t.Bytes(), made[n*each:][:each])
		}
	}
}

// member is one model of a stage, with a session for each instance.
type member struct {
	path     string
	sum      string // SHA-256 of the file, "" if unknown
	sessions []*ort.Session
}

// probeAll runs every session once, and checks that the outputs of voting models match.
func (b *modelBuilder) probeAll(models []member, ins []frame.Tensor) ([]registry.Tensor, error) {
	var outs []registry.Tensor
	for n, m := range models {
		for i, s := range m.sessions {
			var got []ort.Info
			err := b.runAtStart(b.st, s.Terminate, func() (err error) { got, err = s.Probe(ortTensors(ins)...); return err })
			if err != nil {
				return nil, fmt.Errorf("model %s: %w", m.path, err)
			}
			made := make([]registry.Tensor, len(got))
			for k, g := range got {
				dtype, _ := registry.DTypeOfONNX(int(g.DType))
				made[k] = registry.Tensor{Name: g.Name, DType: dtype, Shape: g.Shape}
				if made[k].Bytes() == 0 {
					return nil, fmt.Errorf("%w: model %s gives %s, which is empty or too large", ErrPlan, m.path, g)
				}
			}
			switch {
			case len(models) > 1 && made[0].DType != registry.F32:
				return nil, fmt.Errorf("%w: ensemble: %s outputs %s: votes are counted of f32 elements", ErrPlan, m.path, made[0])
			case n == 0 && i == 0:
				outs = made
			case !made[0].Equal(outs[0]):
				return nil, fmt.Errorf("%w: ensemble: %s outputs %v, but %s outputs %v: all models of an ensemble must have the same outputs", ErrPlan, models[0].path, outs[0].Shape, m.path, made[0].Shape)
			}
		}
	}
	return outs, nil
}

// ortTensors returns the tensors of ONNX Runtime.
func ortTensors(all []frame.Tensor) []*ort.Tensor {
	out := make([]*ort.Tensor, len(all))
	for n := range all {
		out[n] = all[n].ORT
	}
	return out
}

// allocateOutputs allocates the stage's output tensors of every frame.
func (b *modelBuilder) allocateOutputs() error {
	for _, t := range b.outs {
		if err := b.account(len(b.p.frames), t.Bytes()); err != nil {
			return err
		}
	}
	if err := b.allocateTensors(b.k, b.outs[0], true); err != nil {
		return err
	}
	for i := range b.p.frames {
		out := &b.p.frames[i].Tensors[b.now][b.k]
		for _, t := range b.outs[1:] {
			more, err := b.allocateTensor(b.k, t, true)
			if err != nil {
				return err
			}
			out.More = append(out.More, more)
		}
	}
	return nil
}

// allocateVotes allocates the outputs of the other models.
func (b *modelBuilder) allocateVotes(out registry.Tensor) ([]frame.Tensor, error) {
	var votes []frame.Tensor
	for range b.models[1:] {
		t, err := b.newTensor(out)
		if err != nil {
			return nil, err
		}
		if err := b.account(1, out.Bytes()); err != nil {
			return nil, err
		}
		votes = append(votes, t)
	}
	return votes, nil
}

// bind binds the models of an instance to the memory in r, the other models to votes.
func (b *modelBuilder) bind(r *bound, instance int, votes []frame.Tensor) error {
	ins := ortTensors(r.ins)
	for n, m := range b.models {
		var outs []*ort.Tensor
		if n == 0 {
			outs = ortTensors(r.outs)
		} else {
			outs = append(outs, votes[n-1].ORT)
			r.votes = append(r.votes, votes[n-1].Data)
		}
		run, err := m.sessions[instance].Bind(ins, outs...)
		if err != nil {
			return fmt.Errorf("model %s: %w", m.path, err)
		}
		b.p.closers = append(b.p.closers, func() error { run.Close(); return nil })
		r.runs = append(r.runs, run)
	}
	return nil
}

// batchOf returns the tensor of a batch of frames.
func batchOf(t registry.Tensor, size int) registry.Tensor {
	t.Shape = slices.Clone(t.Shape)
	t.Shape[0] *= int64(size)
	return t
}

// bindBatch ties the models of an instance to memory for size frames.
func (b *modelBuilder) bindBatch(instance, size int) (bound, error) {
	var r bound
	room := int64(0)
	for n := range b.inlets {
		i := &b.inlets[n]
		t := i.of(&b.p.frames[0], b.now)
		if !i.constant { // constants are the same for every row
			if len(t.Shape) == 0 {
				return r, fmt.Errorf("%w: a tensor without axes has no batch", ErrPlan)
			}
			var err error
			if t, err = b.newTensor(batchOf(t.Type(), size)); err != nil {
				return r, err
			}
			room += int64(len(t.Bytes()))
		}
		r.ins = append(r.ins, t)
	}
	alone := []member{}
	for _, m := range b.models {
		alone = append(alone, member{m.path, m.sum, m.sessions[instance : instance+1]})
	}
	outs, err := b.probeAll(alone, r.ins)
	if err != nil {
		return r, err
	}
	for n, got := range outs {
		if want := b.outs[n]; len(want.Shape) == 0 || want.Shape[0] != 1 || !got.Equal(batchOf(want, size)) {
			return r, fmt.Errorf("%w: its output is %v, but %v for one frame: the first axis must be the batch", ErrPlan, got.Shape, want.Shape)
		}
		t, err := b.newTensor(got)
		if err != nil {
			return r, err
		}
		r.outs = append(r.outs, t)
		room += got.Bytes()
	}
	votes, err := b.allocateVotes(outs[0])
	if err != nil {
		return r, err
	}
	if err := b.bind(&r, instance, votes); err != nil {
		return r, err
	}
	return r, b.account(1, room)
}

// markNoMemory wraps out-of-memory errors in errNoMemory.
func markNoMemory(err error) error {
	if ort.OutOfMemory(err) {
		return fmt.Errorf("%w: %w", errNoMemory, err)
	}
	return err
}

// tune sets the session options of a stage's models.
func (b *modelBuilder) tune(o *ort.Options) error {
	m := b.s.Model
	o.Threads, o.Spinning, o.NoArena, o.Providers = m.Threads, m.Spinning, m.NoArena, b.s.ModelProviders()
	if registry.Isolated(&b.o.Plan, b.s) { // the others run it in the worker
		o.Providers = []string{ort.CPU}
	}
	if o.Threads == 0 {
		cores, err := countCPUs(b.o.Plan.CPUs)
		if err != nil {
			return fmt.Errorf("%w: cpus: %w", ErrPlan, err)
		}
		o.Threads = max(cores/b.st.workers(), 1)
	}
	return nil
}

// open loads a model once for each instance, shared by all levels.
func (b *modelBuilder) open(path string, o ort.Options) ([]*ort.Session, error) {
	key := b.s.ID + "\x00" + path
	if all := b.sessions[key]; all != nil {
		return all, nil
	}
	o.Engine = func() (string, error) { return findEngine(b.o, b.s, path) }
	var all []*ort.Session
	for range b.st.workers() {
		session, err := b.rt.NewSession(path, o)
		if err != nil {
			return nil, err
		}
		b.p.closers = append(b.p.closers, func() error { session.Close(); return nil })
		all = append(all, session)
	}
	b.sessions[key] = all
	b.p.info.Models = append(b.p.info.Models, ModelInfo{
		Stage: b.s.ID, Path: path, Provider: all[0].Provider(), Missing: all[0].Missing(), Threads: o.Threads,
	})
	b.p.info.Provider = b.p.info.Models[0].Provider
	b.st.backend = "onnxruntime " + all[0].Provider()
	b.p.onAbort(func() {
		for _, session := range all {
			session.Terminate()
		}
	})
	// The level of an instance does not matter: it runs one model at a time.
	b.onCancel(func(instance int) { all[instance].Terminate() })
	resume := b.st.resume
	b.st.resume = func(instance int) {
		all[instance].Resume()
		if resume != nil {
			resume(instance)
		}
	}
	return all, nil
}

// workerRun is one run of a stage's models in the worker, on an instance's memory.
type workerRun struct {
	in    frame.Tensor // of a batch
	shape []int64      // of the input, for crops
	outs  []frame.Tensor
	votes []frame.Tensor
	data  [][]float32 // outputs of the voting models
}

// workOnGPU returns the stage's work in the worker.
func (b *modelBuilder) workOnGPU(by *gpuBalance) (work, error) {
	numbers := make([][]int, b.st.workers())
	runs := make([]map[int]*workerRun, b.st.workers())
	for i := range runs {
		numbers[i] = b.addToWorkers()
		runs[i] = map[int]*workerRun{}
		for _, size := range append([]int{1}, b.st.buckets...) {
			if runs[i][size] != nil {
				continue
			}
			r, err := b.workerRun(size)
			if err != nil {
				return nil, err
			}
			runs[i][size] = r
		}
	}
	g, k, level, v := b.gpu, b.k, b.now, b.vote
	lane, limit := g.lanes[k], b.st.limit
	at := func(t *frame.Tensor) worker.Tensor {
		return worker.Tensor{Off: g.offset(t.Bytes()), DType: t.DType, Shape: t.Shape, Resident: t.On}
	}
	lists := make([]*core.List, b.st.workers())
	for i := range lists {
		lists[i] = g.clients[0].Draft().List()
	}
	if err := b.uploadConstants(); err != nil {
		return nil, err
	}
	if err := b.warmModels(numbers, runs, at); err != nil {
		return nil, err
	}
	copies := &b.p.copies
	keeps, inlets := b.keepsOutput(k), b.inlets
	kepts := make([][]frame.Tensor, b.st.workers()) // outputs of one frame
	return func(_ context.Context, instance int, f []*frame.Frame) error {
		r := runs[instance][len(f)]
		if r == nil {
			return fmt.Errorf("%w: batch of %d", ErrPlan, len(f))
		}
		in := &r.in
		kept := len(f) > 1 && slices.ContainsFunc(f, func(fr *frame.Frame) bool { return fr.Input(level, k).On != 0 })
		if len(f) > 1 && !kept {
			in.On = 0
			gather(f, level, &inlets[0], in.Bytes())
			copies.Add(uint64(len(f)))
		}
		if err := by.runOnGPU(instance, len(f), func(c *worker.Client) error {
			if kept {
				if err := g.gather(c, lane+instance, lists[instance].Reset(), in, f, level, k, limit); err != nil {
					return err
				}
			}
			var ins, outs [worker.MaxTensors]worker.Tensor
			if len(f) > 1 {
				ins[0] = at(in)
			} else {
				for n := range inlets {
					t := inlets[n].of(f[0], level)
					ins[n] = at(&t)
				}
			}
			for n, number := range numbers[instance] {
				made := r.outs
				switch {
				case n > 0:
					made = r.votes[n-1 : n]
				case keeps && len(f) == 1:
					t := &f[0].Tensors[level][k]
					kepts[instance] = append(append(kepts[instance][:0], *t), t.More...)
					made = kepts[instance]
				}
				for m := range made {
					if outs[m] = at(&made[m]); keeps {
						outs[m].Resident = 1
					}
				}
				on, err := c.Infer(lane+instance, number, ins[:len(inlets)], outs[:len(made)], limit)
				if err != nil {
					return err
				}
				if keeps {
					return g.keep(c, on, lane+instance, lists[instance].Reset(), r.outs, f, level, k, limit)
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if keeps {
			return nil
		}
		if len(r.data) > 0 {
			v(r.outs[0].Data, r.data, int(r.outs[0].Shape[len(r.outs[0].Shape)-1]))
		}
		for _, fr := range f {
			fr.Tensors[level][k].SetOn(0)
		}
		scatter(f, level, k, r.outs)
		copies.Add(uint64(len(r.outs) * len(f)))
		return nil
	}, nil
}

// keep marks the outputs of frames as those that a worker holds. Those of a batch are copied from
// one tensor in the device's memory.
func (g *gpu) keep(c *worker.Client, on uint64, lane int, list *core.List, outs []frame.Tensor, f []*frame.Frame, level, k int, limit time.Duration) error {
	if len(f) > 1 {
		for m := range outs {
			each := len(outs[m].Bytes()) / len(f)
			for n, fr := range f {
				t := &fr.Tensors[level][k]
				if m > 0 {
					t = &t.More[m-1]
				}
				list.Copy(g.resident(t.Bytes()), g.resident(outs[m].Bytes()[n*each:][:each]))
			}
		}
		if _, err := c.RunOn(on, lane, list, limit); err != nil {
			return err
		}
	}
	for _, fr := range f {
		fr.Tensors[level][k].SetOn(on)
	}
	return nil
}

// gather copies the inputs of stage k of a batch's frames into one tensor in the device's memory.
func (g *gpu) gather(c *worker.Client, lane int, list *core.List, to *frame.Tensor, f []*frame.Frame, level, k int, limit time.Duration) error {
	each, on := len(to.Bytes())/len(f), uint64(0)
	for n, fr := range f {
		t := fr.Input(level, k)
		if t.On != 0 {
			if on != 0 && on != t.On {
				return fmt.Errorf("%w: the frames of a batch are in the memory of two workers", worker.ErrUnavailable)
			}
			on = t.On
		}
		list.Copy(g.resident(to.Bytes()[n*each:][:each]), g.where(t))
	}
	var err error
	to.On, err = c.RunOn(on, lane, list, limit)
	return err
}

// addToWorkers adds the models of one instance to every worker, and returns their numbers.
func (b *modelBuilder) addToWorkers() []int {
	var numbers []int
	for n, m := range b.models {
		b.gpu.models = append(b.gpu.models, workerModel{b.s.ID, m.path})
		o := b.options[n]
		model := worker.Model{
			Path: m.path, SHA256: m.sum, Inputs: o.Inputs, Output: o.Output, More: o.More,
			Threads: o.Threads, Spinning: o.Spinning, NoArena: o.NoArena,
			GPUMemory: sessionMemory(&b.o.Plan), Providers: workerProviders(b.o.GPU, b.s),
		}
		var err error
		if model.Engine, err = findEngine(b.o, b.s, m.path); err != nil {
			model.Engine, model.NoEngine = "", err.Error()
		}
		number := 0
		for _, c := range b.gpu.clients {
			number = c.AddModel(model) // the same for all
		}
		numbers = append(numbers, number)
	}
	return numbers
}

// warmModels makes every worker run each model at each of its batch sizes before it counts as
// ready.
func (b *modelBuilder) warmModels(numbers [][]int, runs []map[int]*workerRun, at func(*frame.Tensor) worker.Tensor) error {
	var room []frame.Tensor // holds the outputs of the largest batch
	for _, t := range b.outs {
		if size := b.st.largest(); size > 1 {
			t = batchOf(t, size)
		}
		t, err := b.warmTensor(t)
		if err != nil {
			return err
		}
		room = append(room, t)
	}
	for i, models := range numbers {
		for size, r := range runs[i] {
			var ins []worker.Tensor
			for _, in := range b.inlets {
				t := in.of(&b.p.frames[0], b.now)
				if size > 1 {
					t = r.in
				}
				ins = append(ins, at(&t))
			}
			for n, number := range models {
				var outs []worker.Tensor
				for m := range room {
					if n > 0 && m > 0 { // voting models have one output
						break
					}
					outs = append(outs, worker.Tensor{Off: at(&room[m]).Off, DType: r.outs[m].DType, Shape: r.outs[m].Shape})
				}
				for _, c := range b.gpu.clients {
					c.WarmModel(b.gpu.lanes[b.k]+i, number, ins, outs)
				}
			}
		}
	}
	return nil
}

// sessionMemory returns the memory limit of each GPU session in bytes; 0 means no limit.
func sessionMemory(p *plan.Pipeline) int64 {
	if p.Budget == nil || p.Budget.GPUMemory == 0 {
		return 0
	}
	sessions := 0
	levels := registry.Levels(p)
	for n, stages := range levels {
		for k := range stages {
			s := &stages[k]
			if s.Model != nil && onGPU(s) && (n == 0 || s.Model != levels[n-1][k].Model) {
				sessions += registry.Instances(p, s) * len(registry.Models(s))
			}
		}
	}
	return max(p.Budget.GPUMemory/int64(max(sessions, 1)), 1)
}

// workerProviders returns the providers that run a model in the worker.
func workerProviders(o core.Options, s *plan.PipelineStage) []string {
	switch {
	case gpuBackend(o) != core.CUDA: // stands in for the GPU
		return []string{ort.CPU}
	case len(s.Model.Providers) > 0:
		return s.Model.Providers
	}
	return []string{ort.TensorRT, ort.CUDA}
}

// workerRun allocates the memory of a run on size frames.
func (b *modelBuilder) workerRun(size int) (*workerRun, error) {
	r := &workerRun{}
	make := func(t registry.Tensor) (frame.Tensor, error) {
		if size > 1 {
			t = batchOf(t, size)
		}
		if err := b.account(1, t.Bytes()); err != nil {
			return frame.Tensor{}, err
		}
		return b.sharedTensor(t, false)
	}
	var err error
	if size > 1 {
		if r.in, err = make(b.in); err != nil {
			return nil, err
		}
	}
	for _, out := range b.outs {
		t, err := make(out)
		if err != nil {
			return nil, err
		}
		r.outs = append(r.outs, t)
	}
	for range b.models[1:] {
		t, err := make(b.outs[0])
		if err != nil {
			return nil, err
		}
		r.votes, r.data = append(r.votes, t), append(r.data, t.Data)
	}
	return r, nil
}
