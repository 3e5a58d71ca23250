package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Values of plan.Pipeline.Isolation and of a stage's device and fallback.
const (
	isolationNone = registry.IsolationNone
	fallbackDrop  = registry.FallbackDrop
)

// gpuLimit is how long the GPU may take for one run of a stage without a deadline.
const gpuLimit = 2 * time.Second

// EventWorker is the kind of events of the process that works on the GPU.
const EventWorker = "worker"

// What the GPU did not do, and the plan wants nobody else to do.
var (
	errNoDevice = errors.New("the GPU is not to be had")
	errLate     = errors.New("the GPU did not answer in time")
)

// gpu is the GPUs of a pipeline, each with a worker process. All see the memory of the
// first.
type gpu struct {
	clients []*worker.Client
	numbers []int // of the GPUs in the plan; nil: it names none
	shares  []*share
	clock   frame.Clock
	lanes   map[int]int // the first one of each stage
	stages  []*gpuStage
	models  []workerModel // by number in the worker
}

type workerModel struct{ stage, path string }

// gpuStage is one stage on the GPU, for one level of the ladder.
type gpuStage struct {
	id     string
	drop   bool // nobody else does its work
	gpu    work
	cpu    work
	share  *share
	spare  []*frame.Frame // for each GPU and instance of a preprocess stage, see quarantine
	others *atomic.Uint64
}

// onGPU reports whether a stage's work is the GPU's.
func onGPU(s *plan.PipelineStage) bool { return registry.OnGPU(s) }

// openGPU prepares the process that works on the GPU, when a stage wants one.
func (b *builder) openGPU() error {
	b.o.GPU.Kernels = launches(&b.o.Plan)
	lanes, first := 0, map[int]int{}
	for k := range b.o.Plan.Stages {
		s := &b.o.Plan.Stages[k]
		if !onGPU(s) {
			continue
		}
		first[k] = lanes
		lanes += b.p.steps[k].workers()
	}
	if lanes == 0 {
		return nil
	}
	if b.o.Plan.Isolation == isolationNone {
		return b.openHere()
	}
	c, err := frame.NewClock()
	if err != nil {
		return err
	}
	g := &gpu{clock: c, lanes: first, numbers: b.o.Plan.GPUs}
	for n := range max(len(g.numbers), 1) {
		o := worker.Options{
			Device: b.o.GPU, Bytes: registry.MaxPool, Lanes: lanes, Library: b.o.Library, Command: b.o.Worker, Backoff: b.o.Backoff,
			OnEvent: func(e worker.Event) { b.p.event(Event{At: g.clock.Now(), Kind: EventWorker, Why: g.tell(n, e)}) },
		}
		if o.Device.Backend == "" {
			o.Device.Backend = core.CUDA
		}
		if n < len(g.numbers) {
			o.Device.Index = g.numbers[n]
		}
		if n < len(b.o.faults) {
			o.Device.Faults = b.o.faults[n]
		}
		if n > 0 {
			o.Share = g.clients[0]
		}
		client, err := worker.New(o)
		if err != nil {
			return err
		}
		g.clients = append(g.clients, client)
		b.p.closers = append(b.p.closers, client.Close)
	}
	b.p.gpu, b.gpu = g, g
	abort := b.p.abort
	b.p.abort = func() {
		for _, c := range g.clients {
			c.Stop()
		}
		call(abort)
	}
	return nil
}

// tell says what happened to the worker of a GPU, and has work go where it is done.
func (g *gpu) tell(n int, e worker.Event) string {
	for _, s := range g.shares {
		switch e.Kind {
		case worker.EventStarted, worker.EventTrusted:
			s.balance.Restore(n)
		case worker.EventLost, worker.EventStuck, worker.EventFailed:
			s.balance.Lose(n)
		}
	}
	if len(g.numbers) < 2 {
		return describe(e)
	}
	return fmt.Sprintf("GPU %d: %s", g.numbers[n], describe(e))
}

// share is how the GPUs share the work of a stage: by how quick each proves to be.
type share struct {
	clients []*worker.Client
	balance *core.Balancer
	last    []int           // GPU that each instance gave work to
	frames  []atomic.Uint64 // done by each GPU
}

func (g *gpu) share(instances int) (*share, error) {
	b, err := core.NewBalancer(core.BalanceThroughput, len(g.clients))
	if err != nil {
		return nil, err
	}
	s := &share{clients: g.clients, balance: b, last: make([]int, instances), frames: make([]atomic.Uint64, len(g.clients))}
	g.shares = append(g.shares, s)
	return s, nil
}

// errNoGPU is what share gives where no GPU is left to ask.
var errNoGPU = fmt.Errorf("%w: of any GPU", worker.ErrUnavailable)

// on has one of the GPUs do n frames of an instance. One that has no worker is passed
// over; work that was begun is not begun again elsewhere.
func (s *share) on(instance, n int, do func(c *worker.Client) error) error {
	if len(s.clients) == 1 {
		return do(s.clients[0])
	}
	for range s.clients {
		i, err := s.balance.Next()
		if err != nil {
			break
		}
		began := time.Now()
		err = do(s.clients[i])
		s.balance.Done(i, time.Since(began), err)
		s.last[instance] = i
		if worker.Elsewhere(err) {
			s.balance.Lose(i)
		}
		if errors.Is(err, worker.ErrUnavailable) {
			continue
		}
		if err == nil {
			s.frames[i].Add(uint64(n))
		}
		return err
	}
	return errNoGPU
}

// openHere opens the GPU in this process, as isolation none asks for. What spoils it
// spoils it until this process ends.
func (b *builder) openHere() error {
	o := b.o.GPU
	if o.Backend == "" {
		o.Backend = core.CUDA
	}
	if len(b.o.Plan.GPUs) > 0 {
		o.Index = b.o.Plan.GPUs[0]
	}
	var err error
	if b.here, err = core.Open(o); err != nil {
		return fmt.Errorf("isolation none: %w", err)
	}
	b.p.closers = append(b.p.closers, b.here.Close)
	return nil
}

// describe says in a line what happened to the worker.
func describe(e worker.Event) string {
	switch e.Kind {
	case worker.EventStarted:
		return fmt.Sprintf("process %d is ready for the GPU, after %v", e.PID, e.Took.Round(time.Millisecond))
	case worker.EventTrusted:
		return fmt.Sprintf("process %d works, and gets all work again", e.PID)
	case worker.EventLost:
		return fmt.Sprintf("lost, %s: %s", e.Cause, e.Why)
	case worker.EventResting:
		return fmt.Sprintf("the next process is started in %v", e.Wait)
	case worker.EventStuck:
		return fmt.Sprintf("process %d does not end though it was killed; the GPU is not used", e.PID)
	case worker.EventEnded:
		return fmt.Sprintf("process %d has ended after %v", e.PID, e.Took.Round(time.Millisecond))
	}
	return "the GPU is not used any more: " + e.Why
}

// isShared reports whether the worker reads or writes what stage k makes.
func (b *builder) isShared(k int) bool {
	stages := b.o.Plan.Stages
	return b.gpu != nil && (onGPU(&stages[k]) && registry.StageOf(stages[k].Kind).Direct || k+1 < len(stages) && onGPU(&stages[k+1]))
}

// frameMemory allocates the pixels of all frames.
func (b *builder) frameMemory(bytes int) ([]byte, error) {
	if b.gpu != nil {
		return b.gpu.alloc(bytes)
	}
	return frame.MapMemory(bytes)
}

func (g *gpu) alloc(bytes int) ([]byte, error) {
	off, err := g.clients[0].Alloc(bytes)
	if err != nil {
		return nil, err
	}
	return g.clients[0].Memory()[off:][:bytes:bytes], nil
}

// region names memory that alloc gave.
func (g *gpu) region(p []byte) core.Region { return g.clients[0].Region(g.offset(p), len(p)) }

func (g *gpu) offset(p []byte) int {
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(p))) - uintptr(unsafe.Pointer(unsafe.SliceData(g.clients[0].Memory()))))
}

// sharedTensor makes a tensor that the worker sees; a model of this process takes it
// too when it is to.
func (b *builder) sharedTensor(shape []int64, model bool) (frame.Tensor, error) {
	n := int(volume(shape))
	mem, err := b.gpu.alloc(4 * n)
	if err != nil {
		return frame.Tensor{}, err
	}
	if !model {
		return frame.Tensor{Shape: shape, Data: unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(mem))), n)}, nil
	}
	t, err := b.rt.NewTensorOver(shape, mem)
	if err != nil {
		return frame.Tensor{}, err
	}
	b.p.closers = append(b.p.closers, func() error { t.Close(); return nil })
	return frame.Tensor{Shape: t.Shape(), Data: t.Data(), ORT: t}, nil
}

// spares is how many frames are there for quarantine: one for each GPU and instance of a
// preprocess stage there.
func (b *builder) spares() int {
	n := 0
	for k := range b.o.Plan.Stages {
		if s := &b.o.Plan.Stages[k]; b.gpu != nil && onGPU(s) && registry.StageOf(s.Kind).Direct {
			n += b.p.steps[k].workers() * len(b.gpu.clients)
		}
	}
	return n
}

// gpuStage lets stage k be done by do on the GPU, and by cpu where that fails.
func (b *builder) gpuStage(k int, s *plan.PipelineStage, cpu, do work, by *share) work {
	g := &gpuStage{id: s.ID, drop: s.Fallback == fallbackDrop, gpu: do, cpu: cpu, share: by, others: &b.p.others[k]}
	if registry.StageOf(s.Kind).Direct { // of which there is one in a line
		for i := range b.p.spares {
			g.spare = append(g.spare, &b.p.frames[len(b.p.frames)-b.p.spares+i])
		}
	}
	b.gpu.stages = append(b.gpu.stages, g)
	if !g.drop {
		b.levels[b.now].fallbacks[k] = cpu
	}
	b.p.steps[k].backend, b.p.steps[k].aside = b.backend()+" in a process of its own", true
	return g.run
}

// backend names what the GPU's work is done with.
func (b *builder) backend() string {
	if b.o.GPU.Backend == "" {
		return core.CUDA
	}
	return b.o.GPU.Backend
}

// run does a batch on the GPU; else a smaller one, then on the CPU, then not at all.
func (g *gpuStage) run(ctx context.Context, instance int, f []*frame.Frame) error {
	err := g.gpu(ctx, instance, f)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, worker.ErrUnavailable):
	case worker.Elsewhere(err):
		g.quarantine(instance, f)
	case !errors.Is(err, core.ErrOOM):
		return err
	case len(f) > 1:
		return fmt.Errorf("%w: %w", errNoMemory, err)
	}
	switch {
	case !g.drop:
		if err = g.cpu(ctx, instance, f); err == nil {
			g.others.Add(uint64(len(f)))
		}
		return err
	case errors.Is(err, worker.ErrTimeout):
		return errLate
	case errors.Is(err, core.ErrOOM):
		return fmt.Errorf("%w: %w", errNoMemory, err)
	}
	return errNoDevice
}

// quarantine gives a frame the tensors of another one: a worker that was given up may
// still write to those it had. The next worker starts only when the last one has ended,
// so one spare for each instance and GPU is enough. What models make in the worker is copied
// from memory of their instance, and needs none.
func (g *gpuStage) quarantine(instance int, f []*frame.Frame) {
	if len(g.spare) > 0 {
		a, b := f[0], g.spare[instance*len(g.share.clients)+g.share.last[instance]]
		a.Tensors, b.Tensors = b.Tensors, a.Tensors
		a.Slot, b.Slot = b.Slot, a.Slot
	}
}

// startGPU starts the workers and waits until they are ready. A stage that can do without
// does, and one of several GPUs is not missed.
func (b *builder) startGPU() error {
	if b.gpu == nil {
		return nil
	}
	g := b.gpu
	for _, c := range g.clients {
		c.Start()
	}
	var missing []error
	for n, c := range g.clients {
		if err := c.WaitReady(context.Background()); err != nil {
			missing = append(missing, err)
			for _, s := range g.shares {
				s.balance.Lose(n)
			}
			continue
		}
		b.modelsOnGPU(c.Status().Models)
	}
	err := errors.Join(missing...)
	if len(missing) == len(g.clients) {
		if slices.ContainsFunc(g.stages, func(s *gpuStage) bool { return s.drop }) {
			return err
		}
		err = fmt.Errorf("the CPU does the work of the GPU: %w", err)
	}
	if err != nil && b.o.Note != nil {
		b.o.Note(err)
	}
	return nil
}

// modelsOnGPU says what runs the models of stages on the GPU; each of their instances
// has one in the worker, in the order of the stages.
func (b *builder) modelsOnGPU(states []worker.ModelState) {
	for i := range b.p.info.Models {
		m := &b.p.info.Models[i]
		for n, w := range b.gpu.models {
			if w.stage == m.Stage && w.path == m.Path && n < len(states) {
				m.Provider, m.Missing = states[n].Provider, states[n].Missing
			}
		}
	}
}

// warmFallback runs what the CPU does for the GPU once, so that the frame for which
// it is needed finds everything in place.
func (b *builder) warmFallback(n int, f *frame.Frame) error {
	for k := range b.p.steps {
		cpu := b.levels[n].fallbacks[k]
		for i := range b.p.steps[k].workers() {
			if cpu == nil {
				continue
			}
			if err := cpu(context.Background(), i, []*frame.Frame{f}); err != nil {
				return fmt.Errorf("stage %s, warming up on the CPU: %w", b.p.steps[k].id, err)
			}
		}
	}
	return nil
}

// preprocessOnGPU is the work of a preprocess stage in the worker.
func (b *builder) preprocessOnGPU(k int, args core.Preprocess, f frame.Format, by *share) (work, error) {
	g, level, limit, lane := b.gpu, b.now, b.p.steps[k].limit, b.gpu.lanes[k]
	said := slices.ContainsFunc(b.o.Plan.Kernels, func(l plan.KernelLaunch) bool { return l.Kernel == registry.Preprocess.Kind })
	if level == 0 && !said {
		for _, c := range g.clients {
			c.Tune(args)
		}
	}
	lists := make([]*core.List, b.p.steps[k].workers())
	for n := range lists {
		lists[n] = g.clients[0].Draft().List()
	}
	add := func(list *core.List, pixels, to []byte) error {
		planes, err := core.SplitPlanes(f.Pixels, f.Width, f.Height, pixels)
		if err != nil {
			return err
		}
		var at [3]core.Region
		for n, p := range planes {
			if len(p) > 0 {
				at[n] = g.region(p)
			}
		}
		a := args
		list.Preprocess(g.region(to), at, &a)
		return nil
	}
	warm, err := b.warmTensor(b.shape)
	if err != nil {
		return nil, err
	}
	first := g.clients[0].Draft().List()
	if err := add(first, b.p.frames[0].Pixels, warm.Bytes()); err != nil {
		return nil, err
	}
	for _, c := range g.clients {
		c.Warm(first)
	}
	return func(_ context.Context, instance int, batch []*frame.Frame) error {
		list := lists[instance].Reset()
		for _, fr := range batch {
			if err := add(list, fr.Pixels, fr.Tensors[level][k].Bytes()); err != nil {
				return err
			}
		}
		return by.on(instance, len(batch), func(c *worker.Client) error { return c.Run(lane+instance, list, limit) })
	}, nil
}

// warmTensor is an output of what workers do before they count as ready. It is nobody
// else's: they start while frames are in work.
func (b *builder) warmTensor(shape []int64) (frame.Tensor, error) {
	if err := b.account(1, 4*volume(shape)); err != nil {
		return frame.Tensor{}, err
	}
	return b.sharedTensor(shape, false)
}

// workerRun is one run of a stage's models in the worker, on memory of an instance.
type workerRun struct {
	in    frame.Tensor // of a batch
	outs  []frame.Tensor
	votes []frame.Tensor
	data  [][]float32 // of the votes
}

// modelOnGPU is the work of a model stage in the worker.
func (b *builder) modelOnGPU(k int, s *plan.PipelineStage, models []member, o []ort.Options, shapes [][]int64, v vote, by *share) (work, error) {
	g, st, level := b.gpu, &b.p.steps[k], b.now
	lane, limit := g.lanes[k], st.limit
	in := b.p.frames[0].Tensors[level][k-1].Shape
	numbers := make([][]int, st.workers())
	runs := make([]map[int]*workerRun, st.workers())
	for i := range st.workers() {
		for n, m := range models {
			g.models = append(g.models, workerModel{s.ID, m.path})
			var engine, without string
			if path, err := b.engine(s, m.path); err != nil {
				without = err.Error()
			} else {
				engine = path
			}
			model := worker.Model{
				Path: m.path, SHA256: m.sum, Input: o[n].Input, Output: o[n].Output, More: o[n].More,
				Threads: o[n].Threads, Spinning: o[n].Spinning, NoArena: o[n].NoArena, GPUMemory: b.gpuShare(), Providers: b.workerProviders(s),
				Engine: engine, NoEngine: without,
			}
			number := 0
			for _, c := range g.clients {
				number = c.AddModel(model) // the same for all
			}
			numbers[i] = append(numbers[i], number)
		}
		runs[i] = map[int]*workerRun{}
		for _, size := range append([]int{1}, st.buckets...) {
			if runs[i][size] != nil {
				continue
			}
			r, err := b.workerRun(in, shapes, size, len(models)-1)
			if err != nil {
				return nil, err
			}
			runs[i][size] = r
		}
	}
	at := func(t *frame.Tensor) worker.Tensor { return worker.Tensor{Off: g.offset(t.Bytes()), Shape: t.Shape} }
	if err := b.warmModels(k, shapes, numbers, runs, at); err != nil {
		return nil, err
	}
	copies := &b.p.copies
	return func(_ context.Context, instance int, f []*frame.Frame) error {
		r := runs[instance][len(f)]
		if r == nil {
			return fmt.Errorf("%w: a batch of %d", ErrPlan, len(f))
		}
		in := &f[0].Tensors[level][k-1]
		if len(f) > 1 {
			in = &r.in
			gather(f, level, k-1, in.Data)
			copies.Add(uint64(len(f)))
		}
		if err := by.on(instance, len(f), func(c *worker.Client) error {
			var outs [worker.MaxOutputs]worker.Tensor
			for n, number := range numbers[instance] {
				made := r.outs
				if n > 0 {
					made = r.votes[n-1 : n]
				}
				for m := range made {
					outs[m] = at(&made[m])
				}
				if err := c.Infer(lane+instance, number, at(in), outs[:len(made)], limit); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if len(r.data) > 0 {
			v(r.outs[0].Data, r.data, int(r.outs[0].Shape[len(r.outs[0].Shape)-1]))
		}
		scatter(f, level, k, r.outs)
		copies.Add(uint64(len(r.outs) * len(f)))
		return nil
	}, nil
}

// warmModels lets every worker run each model in each of its batch sizes before it
// counts as ready.
func (b *builder) warmModels(k int, shapes [][]int64, numbers [][]int, runs []map[int]*workerRun, at func(*frame.Tensor) worker.Tensor) error {
	g, st := b.gpu, &b.p.steps[k]
	var room []frame.Tensor // for outputs of the largest batch
	for _, shape := range shapes {
		wide := slices.Clone(shape)
		wide[0] *= int64(st.largest())
		t, err := b.warmTensor(wide)
		if err != nil {
			return err
		}
		room = append(room, t)
	}
	for i, models := range numbers {
		for size, r := range runs[i] {
			in := &b.p.frames[0].Tensors[b.now][k-1]
			if size > 1 {
				in = &r.in
			}
			for n, number := range models {
				var outs []worker.Tensor
				for m := range room {
					if n > 0 && m > 0 { // those that vote have one output
						break
					}
					outs = append(outs, worker.Tensor{Off: at(&room[m]).Off, Shape: r.outs[m].Shape})
				}
				for _, c := range g.clients {
					c.WarmModel(g.lanes[k]+i, number, at(in), outs)
				}
			}
		}
	}
	return nil
}

// gpuShare is what each session on the GPU may take of the budget, 0: no bound.
func (b *builder) gpuShare() int64 {
	if b.o.Plan.Budget == nil || b.o.Plan.Budget.GPUMemory == 0 {
		return 0
	}
	sessions := 0
	for n := range b.levels {
		for k := range b.levels[n].stages {
			s := &b.levels[n].stages[k]
			if s.Model != nil && onGPU(s) && (n == 0 || s.Model != b.levels[n-1].stages[k].Model) {
				sessions += b.p.steps[k].workers() * len(registry.Models(s))
			}
		}
	}
	return max(b.o.Plan.Budget.GPUMemory/int64(max(sessions, 1)), 1)
}

// workerProviders is what runs a model in the worker.
func (b *builder) workerProviders(s *plan.PipelineStage) []string {
	switch {
	case b.backend() == core.CPU: // stands in for the GPU
		return []string{ort.CPU}
	case len(s.Model.Providers) > 0:
		return s.Model.Providers
	}
	return []string{ort.TensorRT, ort.CUDA}
}

func (b *builder) workerRun(in []int64, shapes [][]int64, size, votes int) (*workerRun, error) {
	r := &workerRun{}
	make := func(shape []int64) (frame.Tensor, error) {
		shape = slices.Clone(shape)
		if size > 1 {
			shape[0] = int64(size)
		}
		t, err := b.sharedTensor(shape, false)
		if err != nil {
			return t, err
		}
		return t, b.account(1, 4*volume(shape))
	}
	var err error
	if size > 1 {
		if r.in, err = make(in); err != nil {
			return nil, err
		}
	}
	for _, shape := range shapes {
		t, err := make(shape)
		if err != nil {
			return nil, err
		}
		r.outs = append(r.outs, t)
	}
	for range votes {
		t, err := make(shapes[0])
		if err != nil {
			return nil, err
		}
		r.votes, r.data = append(r.votes, t), append(r.data, t.Data)
	}
	return r, nil
}

// fallbacks are the frames that the CPU did for the GPU, by stage; nil: no stage has
// a GPU in a process of its own.
func (p *Pipeline) fallbacks() map[string]uint64 {
	if p.gpu == nil {
		return nil
	}
	out := map[string]uint64{}
	for k := range p.gpu.lanes {
		out[p.steps[k].id] = p.others[k].Load()
	}
	return out
}

// worker is the process for the first GPU, nil: there is none.
func (p *Pipeline) worker() *worker.Status {
	if p.gpu == nil {
		return nil
	}
	return new(p.gpu.clients[0].Status())
}

// GPUShare is what one of several GPUs did.
type GPUShare struct {
	GPU    int                `json:"gpu"`           // its number
	Frames map[string]uint64  `json:"frames"`        // by stage
	Rates  map[string]float64 `json:"batches_per_s"` // by stage, as measured last; of what was measured
	Worker worker.Status      `json:"worker"`        // its process
}

// gpuShares is what each GPU did; nil where there is one, or none.
func (p *Pipeline) gpuShares() []GPUShare {
	if p.gpu == nil || len(p.gpu.clients) < 2 {
		return nil
	}
	out := make([]GPUShare, len(p.gpu.clients))
	for n, c := range p.gpu.clients {
		out[n] = GPUShare{GPU: p.gpu.numbers[n], Frames: map[string]uint64{}, Rates: map[string]float64{}, Worker: c.Status()}
		for _, s := range p.gpu.stages {
			out[n].Frames[s.id] += s.share.frames[n].Load()
			if r := s.share.balance.Rates()[n]; r > 0 {
				out[n].Rates[s.id] = r
			}
		}
	}
	return out
}
