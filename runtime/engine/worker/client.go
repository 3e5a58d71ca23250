package worker

import (
	"context"
	"fmt"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/schema/fuse"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Access is how the worker's device accesses the shared memory.
type Access string

// Kinds of access. By default the worker uses the first one that its device supports.
const (
	AccessDirect Access = "direct" // in place: the CPU backend, and GPUs with shared memory
	AccessStaged Access = "staged" // the device copies to its own memory and back
	AccessCopied Access = "copied" // the CPU copies, because pages cannot be registered
)

// AccessFor returns the best access for a device. register reports whether the device can
// register host pages.
func AccessFor(backend string, integrated, register bool) Access {
	switch {
	case !register:
		return AccessCopied
	case integrated || backend == core.CPU:
		return AccessDirect
	}
	return AccessStaged
}

// Text describes the access in a sentence.
func (a Access) Text() string {
	switch a {
	case AccessDirect:
		return "frames are used in place"
	case AccessStaged:
		return "the device copies frames to its own memory and back"
	case AccessCopied:
		return "the CPU copies frames: host pages cannot be registered"
	}
	return "unknown"
}

// Ids of buffers in lists.
const (
	idShared   = 1 // the shared memory; the worker copies what a list reads and writes
	idResident = 2 // the same offsets in the device's memory, which nothing is copied to or from
)

// Model is an ONNX model that the worker loads, for one lane. Inputs to Providers are those
// of ort.Options.
type Model struct {
	Path      string
	SHA256    string // of the file; "": not checked
	Inputs    []string
	Output    string
	More      []string
	Threads   int
	Spinning  bool
	NoArena   bool
	GPUMemory int64 // bytes; 0: no limit
	Providers []string
	Engine    string // file of the TensorRT engine
	NoEngine  string // reason why there is no engine
}

// ModelState describes what runs a model in the worker.
type ModelState struct {
	Provider string        `json:"provider"`
	Missing  []ort.Missing `json:"missing,omitempty"`
}

// Options of a Client.
type Options struct {
	Device  core.Options // the device that the worker opens
	Bytes   int          // capacity of Alloc; pages that are not allocated are not used
	Share   *Client      // client whose memory is used instead of Bytes; it must be closed last
	Lanes   int          // concurrent calls, 1 to MaxLanes
	Library string       // ONNX Runtime library of the models; see ort.Find
	Models  []Model
	Chains  [][]string // expressions of the chains that the worker compiles, see [Client.AddChain]
	Access  Access     // "": the best that the device supports

	Cache string // directory of launch configurations; "": core.CacheDir

	Command []string      // program and arguments of a worker; nil: this program with "worker"
	Start   time.Duration // time limit for a worker to become ready; 0: 30 s
	Backoff Backoff
	OnEvent func(Event) // called for each event, must not block; may be nil
}

// Backoff defines when the circuit breaker starts another worker. It starts one immediately
// after the first loss, then after First, 2·First and so on up to Max. A worker that lived
// for Calm resets the delay. After Limit losses within Window the breaker stays open.
type Backoff struct {
	First, Max, Calm time.Duration // 0: 1 s, 60 s, 60 s
	Limit            int           // 0: 10
	Window           time.Duration // 0: 10 min
}

func (b Backoff) withDefaults() Backoff {
	set := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	set(&b.First, time.Second)
	set(&b.Max, time.Minute)
	set(&b.Calm, time.Minute)
	set(&b.Window, 10*time.Minute)
	if b.Limit == 0 {
		b.Limit = 10
	}
	return b
}

// wait returns the delay after the n-th consecutive loss, counted from 1.
func (b Backoff) wait(n int) time.Duration {
	if n <= 1 {
		return 0
	}
	d := b.First
	for range n - 2 {
		if d *= 2; d >= b.Max {
			return b.Max
		}
	}
	return min(d, b.Max)
}

// State is the state of a Client.
type State string

// States of a Client, with the state of the circuit breaker.
const (
	StateStarting State = "starting" // open: the worker is not ready
	StateReady    State = "ready"    // closed
	StateTrial    State = "trial"    // half-open: the next call tests the new worker
	StateResting  State = "resting"  // open until Status.Next
	StateStuck    State = "stuck"    // open: the killed worker does not exit
	StateFailed   State = "failed"   // open for good: too many losses
	StateClosed   State = "closed"
)

// Event is a change of the worker.
type Event struct {
	Kind  EventKind
	Cause Cause         // of a loss
	Why   string        // for people
	Wait  time.Duration // EventResting: delay before the next start
	Took  time.Duration // EventStarted: of the start; EventEnded: from the kill to the end
	PID   int
}

// EventKind is the kind of an event.
type EventKind string

// Kinds of events.
const (
	EventStarted EventKind = "started" // a worker is ready
	EventTrusted EventKind = "trusted" // the worker passed its trial
	EventLost    EventKind = "lost"    // the worker was given up
	EventResting EventKind = "resting" // the next start is delayed
	EventStuck   EventKind = "stuck"   // the worker still runs 2 s after it was killed
	EventEnded   EventKind = "ended"   // a stuck worker was reaped
	EventFailed  EventKind = "failed"  // no further worker is started
)

// Status is a snapshot of a Client.
type Status struct {
	State    State            `json:"state"`
	Why      string           `json:"why,omitempty"`   // reason why no worker is ready
	Cause    Cause            `json:"cause,omitempty"` // of the last loss
	Last     string           `json:"last,omitempty"`  // description of the last loss
	Since    time.Time        `json:"since"`           // start of the state
	Next     time.Time        `json:"next,omitzero"`   // time of the next start in StateResting
	PID      int              `json:"pid,omitempty"`
	Starts   uint64           `json:"starts"` // workers that became ready
	Losses   map[Cause]uint64 `json:"losses"`
	Answers  uint64           `json:"answers"` // answered messages, including errors
	Refused  uint64           `json:"refused"` // calls without an available worker
	Access   Access           `json:"access,omitempty"`
	Models   []ModelState     `json:"models,omitempty"`
	Memory   *core.Memory     `json:"memory,omitempty"` // of the device, when the worker became ready
	Device   *core.Info       `json:"device,omitempty"`
	LastLoss time.Time        `json:"last_loss,omitzero"`
	Copied   Copied           `json:"copied"`
}

// Copied counts the bytes that all workers have copied between the shared memory and that of the
// device, and inside the device. With direct access there is one memory.
type Copied struct {
	ToDevice uint64 `json:"to_device"`
	ToHost   uint64 `json:"to_host"`
	OnDevice uint64 `json:"on_device"`
}

// Healthy reports whether the worker is ready, or is starting for the first time.
func (s Status) Healthy() bool {
	switch s.State {
	case StateReady, StateTrial:
		return true
	case StateStarting:
		return len(s.Losses) == 0
	}
	return false
}

// Client is the parent's side of a worker. Several goroutines may use it; calls on the same
// lane wait for each other.
type Client struct {
	o      Options
	shared *memory
	used   int // of shared, before Start
	draft  *core.Draft
	region *core.Buffer
	device *core.Buffer // the same offsets in the device's memory
	launch func(c *Client) (*incarnation, error)

	now     atomic.Pointer[incarnation] // nil: no worker is available
	absent  atomic.Pointer[error]       // the error for calls then
	answers atomic.Uint64
	moved   moved  // by all workers
	spawned uint64 // workers
	refused atomic.Uint64

	gate    sync.RWMutex // held for reading by calls, for writing to unmap
	closing chan struct{}
	stop    sync.Once
	once    sync.Once
	started atomic.Bool
	ended   chan struct{} // closed by the supervisor when it ends
	closed  error

	mu     sync.Mutex
	status Status
	turn   chan struct{} // closed when the status changes
	warm   []func(in *incarnation) error
	tune   []core.Preprocess
}

// New creates the shared memory. Start starts the worker.
func New(o Options) (*Client, error) {
	if o.Share != nil {
		o.Bytes = o.Share.o.Bytes
	}
	if o.Bytes < 1 || o.Lanes < 1 || o.Lanes > MaxLanes {
		return nil, fmt.Errorf("worker: %d bytes and %d lanes; need at least 1 byte and 1 to %d lanes: %w", o.Bytes, o.Lanes, MaxLanes, core.ErrInvalid)
	}
	if o.Start == 0 {
		o.Start = 30 * time.Second
	}
	o.Backoff = o.Backoff.withDefaults()
	if err := core.CheckFaults(o.Device.Faults); err != nil {
		return nil, err
	}
	var shared *memory
	if o.Share != nil {
		shared = o.Share.shared
	} else {
		var err error
		if shared, err = newMemory("yoctune-frames", o.Bytes); err != nil {
			return nil, err
		}
	}
	c := &Client{
		o: o, shared: shared, draft: core.NewDraft(), launch: (*Client).spawn,
		closing: make(chan struct{}), ended: make(chan struct{}), turn: make(chan struct{}),
		status: Status{Losses: map[Cause]uint64{}},
	}
	c.setStatus(func(s *Status) { s.State, s.Why = StateStarting, "not started yet" })
	c.region = c.draft.Buffer(idShared, o.Bytes, shared.data)
	c.device = c.draft.Buffer(idResident, o.Bytes, nil)
	return c, nil
}

// Memory returns the shared memory. Only parts that Alloc returned may be used.
func (c *Client) Memory() []byte { return c.shared.data }

// allocated returns how many bytes Alloc has returned; workers map that part.
func (c *Client) allocated() int {
	if c.o.Share != nil {
		return c.o.Share.used
	}
	return c.used
}

// Alloc allocates n bytes of the shared memory and touches their pages. The offset is a
// multiple of 4096; the memory is valid until Close. Alloc must be called before Start.
func (c *Client) Alloc(n int) (off int, err error) {
	const page = 4096
	off = c.used
	if n < 1 || n > len(c.shared.data)-off {
		return 0, fmt.Errorf("worker: allocate %d bytes of shared memory: %d of %d are in use: %w", n, off, len(c.shared.data), core.ErrOOM)
	}
	c.used = min((off+n+page-1)/page*page, len(c.shared.data))
	clear(c.shared.data[off:c.used])
	return off, nil
}

// Tune makes every worker use the fastest launch configuration for frames and tensors like
// p's. The first worker measures it. Tune must be called before Start.
func (c *Client) Tune(p core.Preprocess) { c.tune = append(c.tune, p) }

// AddModel adds a model and returns its number for Infer. It must be called before Start.
func (c *Client) AddModel(m Model) int {
	c.o.Models = append(c.o.Models, m)
	return len(c.o.Models) - 1
}

// AddChain adds a chain of float32 tensors, and returns it for lists. It must be called before Start.
func (c *Client) AddChain(chain *fuse.Chain, expressions []string) *core.Fused {
	c.o.Chains = append(c.o.Chains, expressions)
	return c.draft.Fused(chain, len(c.o.Chains)-1)
}

// Draft returns the draft that builds lists for Run.
func (c *Client) Draft() *core.Draft { return c.draft }

// Region returns n bytes of the shared memory at off, for lists. The worker copies them to its
// device where a list reads them, and back where a list writes them.
func (c *Client) Region(off, n int) core.Region { return c.region.At(off, n) }

// Resident returns the device's memory for the n bytes at off, for lists. Nothing is copied: the
// content stays with the device until another list or a model reads it, or the worker ends.
func (c *Client) Resident(off, n int) core.Region { return c.device.At(off, n) }

// Warm makes every worker run a list before it becomes ready. It must be called before
// Start. The list must write only unused memory, because other memory may be in use when a
// worker is restarted.
func (c *Client) Warm(l *core.List) {
	c.warm = append(c.warm, func(in *incarnation) error { return c.runOn(in, 0, l, c.o.Start) })
}

// WarmModel makes every worker run a model before it becomes ready.
func (c *Client) WarmModel(lane, model int, ins, outs []Tensor) {
	c.warm = append(c.warm, func(w *incarnation) error { return c.inferOn(w, lane, model, ins, outs, c.o.Start) })
}

// Start starts the worker in the background. WaitReady waits for it.
func (c *Client) Start() {
	c.started.Store(true)
	go c.supervise()
}

// WaitReady returns nil when a worker is ready. It returns an error if the first worker
// failed to start, if no further worker will be started, or when ctx ends.
func (c *Client) WaitReady(ctx context.Context) error {
	for {
		c.mu.Lock()
		st, turn := c.status, c.turn
		c.mu.Unlock()
		switch {
		case st.State == StateReady, st.State == StateTrial:
			return nil
		case st.State == StateClosed:
			return ErrClosed
		case st.State == StateFailed, st.Starts == 0 && st.Cause != "":
			return fmt.Errorf("%w: %s", ErrUnavailable, st.Last)
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return fmt.Errorf("%w: %s: %w", ErrUnavailable, st.Why, ctx.Err())
		}
	}
}

// Status returns the current state and the counters.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.status
	st.Losses = maps.Clone(st.Losses)
	st.Answers, st.Refused = c.answers.Load(), c.refused.Load()
	st.Copied = Copied{ToDevice: c.moved.toDevice.Load(), ToHost: c.moved.toHost.Load(), OnDevice: c.moved.onDevice.Load()}
	return st
}

// setStatus changes the status and wakes waiters.
func (c *Client) setStatus(change func(*Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.status.State
	change(&c.status)
	if c.status.State != was {
		c.status.Since = time.Now()
	}
	close(c.turn)
	c.turn = make(chan struct{})
	// Formatted once per change, not once per refused call.
	err := fmt.Errorf("%w: %s: %s", ErrUnavailable, c.status.State, c.status.Why)
	if c.status.State == StateClosed {
		err = ErrClosed
	}
	c.absent.Store(&err)
}

func (c *Client) notify(e Event) {
	if c.o.OnEvent != nil {
		c.o.OnEvent(e)
	}
}

// Run runs a list of the Draft on the worker's device. It returns when the list has
// finished, or after limit at the latest. See IsWorkerFault for its errors.
func (c *Client) Run(lane int, l *core.List, limit time.Duration) error {
	_, err := c.RunOn(0, lane, l, limit)
	return err
}

// RunOn is Run on one worker: that with the given number, because the list reads what that worker
// holds in its device's memory. With number 0 any worker runs the list. RunOn returns the number of
// the worker, or [ErrUnavailable] if the one with the number is gone.
func (c *Client) RunOn(number uint64, lane int, l *core.List, limit time.Duration) (uint64, error) {
	err := c.withWorker(func(in *incarnation) error {
		if number != 0 && number != in.number {
			return ErrReplaced
		}
		number = in.number
		return c.runOn(in, lane, l, limit)
	})
	return number, err
}

// ErrReplaced means that the worker with a tensor is gone. It wraps [ErrUnavailable].
var ErrReplaced = fmt.Errorf("%w: the worker that holds the tensor was replaced", ErrUnavailable)

func (c *Client) runOn(in *incarnation, lane int, l *core.List, limit time.Duration) error {
	b, err := l.Encoded()
	if err != nil {
		return err
	}
	_, err = in.call(lane, opRun, b, limit)
	return err
}

// maxDims is the largest number of dimensions of a Tensor.
const maxDims = 8

// Tensor is a tensor in the shared memory, at a multiple of 64 bytes, or in the memory of a worker's
// device at that offset, see [Client.Resident].
type Tensor struct {
	Off      int
	DType    registry.DType
	Shape    []int64
	Resident uint64 // number of the worker that holds it, see [Client.RunOn]; 0: the shared memory
}

// Everywhere is the Resident of a tensor that every worker holds since it was warmed up.
const Everywhere = math.MaxUint64

func (t Tensor) key() (k tensorKey, err error) {
	if len(t.Shape) > maxDims || t.Off < 0 {
		return k, fmt.Errorf("worker: invalid tensor of %d dimensions at offset %d: %w", len(t.Shape), t.Off, core.ErrInvalid)
	}
	k.off, k.dtype, k.dims = uint64(t.Off), uint64(t.DType), uint64(len(t.Shape))
	copy(k.shape[:], t.Shape)
	if t.Resident != 0 {
		k.resident = 1
	}
	return k, nil
}

// MaxTensors is the largest number of inputs, and of outputs, of a model.
const MaxTensors = ort.MaxTensors

// inferMessage is the payload of opInfer.
type inferMessage struct {
	model           uint32
	inputs, outputs uint16
	ins, outs       [MaxTensors]tensorKey
}

// Infer runs the model with number n. It returns when the outputs are written, or after
// limit at the latest, and with it the number of the worker: outputs whose Resident is not 0 are
// there, whatever its value.
func (c *Client) Infer(lane, n int, ins, outs []Tensor, limit time.Duration) (uint64, error) {
	var number uint64
	err := c.withWorker(func(w *incarnation) error {
		number = w.number
		return c.inferOn(w, lane, n, ins, outs, limit)
	})
	return number, err
}

func (c *Client) inferOn(w *incarnation, lane, n int, ins, outs []Tensor, limit time.Duration) error {
	if n < 0 || len(ins) < 1 || len(ins) > MaxTensors || len(outs) < 1 || len(outs) > MaxTensors {
		return fmt.Errorf("worker: invalid run of model %d with %d inputs and %d outputs: %w", n, len(ins), len(outs), core.ErrInvalid)
	}
	m := inferMessage{model: uint32(n), inputs: uint16(len(ins)), outputs: uint16(len(outs))}
	var err error
	for i, in := range ins {
		if in.Resident != 0 && in.Resident != w.number && in.Resident != Everywhere {
			return ErrReplaced
		}
		if m.ins[i], err = in.key(); err != nil {
			return err
		}
	}
	for i, o := range outs {
		if m.outs[i], err = o.key(); err != nil {
			return err
		}
	}
	_, err = w.call(lane, opInfer, bytesOf(&m), limit)
	return err
}

var errTrial = fmt.Errorf("%w: a new worker is on trial", ErrUnavailable)

// withWorker calls f with the current worker. The first call of a new worker is its trial;
// other calls fail until the trial has succeeded.
func (c *Client) withWorker(f func(*incarnation) error) error {
	c.gate.RLock()
	defer c.gate.RUnlock()
	in := c.now.Load()
	if in == nil {
		c.refused.Add(1)
		return *c.absent.Load()
	}
	if !in.trial.Load() {
		return f(in)
	}
	if !in.trying.CompareAndSwap(false, true) {
		c.refused.Add(1)
		return errTrial
	}
	defer in.trying.Store(false)
	err := f(in)
	if !IsWorkerFault(err) && in.trial.CompareAndSwap(true, false) {
		c.setStatus(func(s *Status) {
			if s.State == StateTrial {
				s.State, s.Why = StateReady, ""
			}
		})
		c.notify(Event{Kind: EventTrusted, PID: in.proc.pid()})
	}
	return err
}

// Stop ends the worker in the background. Calls in progress return ErrClosed.
func (c *Client) Stop() { c.stop.Do(func() { close(c.closing) }) }

// Close ends the worker and unmaps the memory.
func (c *Client) Close() error {
	c.Stop()
	c.once.Do(func() {
		if c.started.Load() {
			<-c.ended
		}
		c.gate.Lock()
		defer c.gate.Unlock()
		if c.o.Share == nil {
			c.closed = c.shared.close()
		}
	})
	return c.closed
}

// Command is the hidden subcommand that runs a worker.
const Command = "worker"
