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

// gpuLimit is the time limit of one run on the GPU for a stage without a deadline.
const gpuLimit = 2 * time.Second

// EventWorker is the kind of events about the GPU worker process.
const EventWorker = "worker"

// Reasons for dropping a frame that the GPU did not process, if the plan forbids the CPU.
var (
	errNoDevice = errors.New("the GPU is unavailable")
	errLate     = errors.New("the GPU did not answer in time")
)

// gpu holds the GPUs of a pipeline, each with a worker process. All share the memory of the
// first.
type gpu struct {
	clients []*worker.Client
	numbers []int // of the GPUs in the plan; nil: not given
	shares  []*gpuBalance
	clock   frame.Clock
	lanes   map[int]int // first lane of each stage
	stages  []*gpuStage
	models  []workerModel // by their number in the worker
}

type workerModel struct{ stage, path string }

// onGPU reports whether a stage runs on the GPU.
func onGPU(s *plan.PipelineStage) bool { return registry.RunsOnGPU(s) }

// openGPU prepares the worker processes if a stage runs on the GPU.
func (b *builder) openGPU() error {
	b.o.GPU.Kernels = kernelConfigs(&b.o.Plan)
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
			Device: b.o.GPU, Bytes: registry.MaxPool, Lanes: lanes, Library: b.o.Library, Command: b.o.Worker, Backoff: b.o.Backoff, Cache: b.o.cacheDir(),
			OnEvent: func(e worker.Event) {
				b.p.event(Event{At: g.clock.Now(), Kind: EventWorker, Why: g.noteWorkerEvent(n, e)})
			},
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
	b.p.onAbort(func() {
		for _, c := range g.clients {
			c.Stop()
		}
	})
	return nil
}

// noteWorkerEvent describes an event of a GPU's worker, and adds or removes the GPU from the
// balance.
func (g *gpu) noteWorkerEvent(n int, e worker.Event) string {
	for _, s := range g.shares {
		switch e.Kind {
		case worker.EventStarted, worker.EventTrusted:
			s.balance.Restore(n)
		case worker.EventLost, worker.EventStuck, worker.EventFailed:
			s.balance.Exclude(n)
		}
	}
	if len(g.numbers) < 2 {
		return describeEvent(e)
	}
	return fmt.Sprintf("GPU %d: %s", g.numbers[n], describeEvent(e))
}

// gpuBalance distributes the work of a stage over the GPUs in proportion to their measured
// speed.
type gpuBalance struct {
	clients []*worker.Client
	balance *core.Balancer
	last    []int           // GPU that each instance used last
	frames  []atomic.Uint64 // done by each GPU
}

// newBalance returns the balance of a stage with the given number of instances.
func (g *gpu) newBalance(instances int) (*gpuBalance, error) {
	b, err := core.NewBalancer(core.BalanceThroughput, len(g.clients))
	if err != nil {
		return nil, err
	}
	s := &gpuBalance{clients: g.clients, balance: b, last: make([]int, instances), frames: make([]atomic.Uint64, len(g.clients))}
	g.shares = append(g.shares, s)
	return s, nil
}

// errNoGPU is returned by runOnGPU if no GPU has a worker.
var errNoGPU = fmt.Errorf("%w: of any GPU", worker.ErrUnavailable)

// runOnGPU runs n frames of an instance on one of the GPUs. GPUs without a worker are skipped;
// work that has started is not repeated on another GPU.
func (s *gpuBalance) runOnGPU(instance, n int, do func(c *worker.Client) error) error {
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
		if worker.IsWorkerFault(err) {
			s.balance.Exclude(i)
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

// openHere opens the GPU in this process, for isolation none. A fault then lasts until this
// process ends.
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

// describeEvent describes an event of the worker in one line.
func describeEvent(e worker.Event) string {
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

// region returns the shared region of memory that alloc returned.
func (g *gpu) region(p []byte) core.Region { return g.clients[0].Region(g.offset(p), len(p)) }

// resident returns the device's memory at the place of memory that alloc returned.
func (g *gpu) resident(p []byte) core.Region { return g.clients[0].Resident(g.offset(p), len(p)) }

// where returns the region that holds the content of a tensor.
func (g *gpu) where(t *frame.Tensor) core.Region {
	if t.On != 0 {
		return g.resident(t.Bytes())
	}
	return g.region(t.Bytes())
}

// keepsOutput reports whether the output of stage k stays in the device's memory.
func (b *builder) keepsOutput(k int) bool {
	return registry.StaysOnGPU(&b.o.Plan, b.levels[b.now].stages, k)
}

func (g *gpu) offset(p []byte) int {
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(p))) - uintptr(unsafe.Pointer(unsafe.SliceData(g.clients[0].Memory()))))
}

// gpuBackend returns the backend that GPU stages use.
func gpuBackend(o core.Options) string {
	if o.Backend == "" {
		return core.CUDA
	}
	return o.Backend
}

// startGPU starts the workers and waits until they are ready. A stage with a fallback starts
// without its GPU, and one of several GPUs may be missing.
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
				s.balance.Exclude(n)
			}
			continue
		}
		b.describeGPUModels(c.Status().Models)
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

// describeGPUModels records the providers of the models in the worker, which has one model per
// instance of a stage.
func (b *builder) describeGPUModels(states []worker.ModelState) {
	for i := range b.p.info.Models {
		m := &b.p.info.Models[i]
		for n, w := range b.gpu.models {
			if w.stage == m.Stage && w.path == m.Path && n < len(states) {
				m.Provider, m.Missing = states[n].Provider, states[n].Missing
			}
		}
	}
}

// fallbacks counts the frames that the CPU processed instead of the GPU, by stage; nil if no
// stage has a GPU worker.
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

// worker returns the status of the first GPU's process, or nil without one.
func (p *Pipeline) worker() *worker.Status {
	if p.gpu == nil {
		return nil
	}
	return new(p.gpu.clients[0].Status())
}

// GPUShare is the work of one of several GPUs.
type GPUShare struct {
	GPU    int                `json:"gpu"`           // its number
	Frames map[string]uint64  `json:"frames"`        // by stage
	Rates  map[string]float64 `json:"batches_per_s"` // by stage, as last measured; unmeasured stages are left out
	Worker worker.Status      `json:"worker"`        // its process
}

// gpuShares returns the work of each GPU, or nil with fewer than two.
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
