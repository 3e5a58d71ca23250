package worker

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/ort"
)

// Access is how the worker's device gets at the shared memory.
type Access string

// Kinds of access; without one asked for the worker takes the first that its device
// has.
const (
	AccessDirect Access = "direct" // in place: the CPU backend, GPUs that share memory with it
	AccessStaged Access = "staged" // copies to memory of its own and back, by the device
	AccessCopied Access = "copied" // copies by the CPU, where foreign pages cannot be registered
)

// AccessFor is the best access that a device has.
func AccessFor(backend string, integrated, register bool) Access {
	switch {
	case !register:
		return AccessCopied
	case integrated || backend == core.CPU:
		return AccessDirect
	}
	return AccessStaged
}

// Text says what an access is.
func (a Access) Text() string {
	switch a {
	case AccessDirect:
		return "frames are used in place"
	case AccessStaged:
		return "frames are copied to the device's own memory and back, by the device"
	case AccessCopied:
		return "frames are copied by the CPU: foreign pages cannot be registered"
	}
	return "not known"
}

// Buffers as lists name them.
const (
	idShared  = 1
	idScratch = 2
)

// Model is an ONNX model that the worker loads, for one lane.
type Model struct {
	Path      string
	SHA256    string   // of the file, "": not checked
	Input     string   // these as in ort.Options
	Output    string   //
	More      []string //
	Threads   int      //
	Spinning  bool     //
	NoArena   bool     //
	GPUMemory int64    // bytes of the GPU that its CUDA provider may take, 0: no bound
	Providers []string //
	Engine    string   // file of its TensorRT engine
	NoEngine  string   // why there is none
}

// ModelState says what runs a model in the worker.
type ModelState struct {
	Provider string        `json:"provider"`
	Missing  []ort.Missing `json:"missing,omitempty"`
}

// Options of a Client.
type Options struct {
	Device  core.Options // what the worker opens
	Bytes   int          // that Alloc may give in all; what it does not give is not used
	Share   *Client      // whose memory this one's worker has as well, instead of Bytes: it gives it, and is closed last
	Lanes   int          // calls that may be in progress at once, 1 to MaxLanes
	Scratch []int        // bytes of memory that only the device sees, for what is between two commands
	Library string       // ONNX Runtime library of the models, see ort.Find
	Models  []Model
	Access  Access // "": the best there is

	Cache string // where the quickest launches are kept, "": core.CacheDir

	Command []string      // program and arguments of a worker; nil: this program with "worker"
	Start   time.Duration // a worker has to be ready, 0: 30 s
	Backoff Backoff
	Tell    func(Event) // of what happens, and must not block; nil: nobody
}

// Backoff says how long the breaker waits before it starts another worker. After
// the first loss it does not wait; then First, twice that, and so on up to Max, until
// a worker lived for Calm. After Limit losses within Window there is none any more.
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

// wait is how long the n-th loss in a row, from 1, keeps the breaker open.
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

// State is what a Client can do.
type State string

// States, and what the breaker is in them.
const (
	StateStarting State = "starting" // open: the worker is not ready yet
	StateReady    State = "ready"    // closed
	StateTrial    State = "trial"    // half-open: the next call shows whether the new worker works
	StateResting  State = "resting"  // open: until Status.Next
	StateStuck    State = "stuck"    // open: the last worker was killed and does not end
	StateFailed   State = "failed"   // open for good: too many losses
	StateClosed   State = "closed"
)

// Event is something that happened to the worker.
type Event struct {
	Kind  EventKind
	Cause Cause         // of a loss
	Why   string        // for people
	Wait  time.Duration // of a rest: before the next start
	Took  time.Duration // of a start; of an end: from the kill until it was reaped
	PID   int
}

// EventKind is what happened.
type EventKind string

// Kinds of events.
const (
	EventStarted EventKind = "started" // a worker is ready
	EventTrusted EventKind = "trusted" // it passed its trial
	EventLost    EventKind = "lost"
	EventResting EventKind = "resting" // another is started only after a while
	EventStuck   EventKind = "stuck"   // it does not end, 2 s after it was killed
	EventEnded   EventKind = "ended"   // it was reaped after all
	EventFailed  EventKind = "failed"
)

// Status is a Client at one moment.
type Status struct {
	State    State            `json:"state"`
	Why      string           `json:"why,omitempty"`   // it is not ready
	Cause    Cause            `json:"cause,omitempty"` // of the last loss
	Last     string           `json:"last,omitempty"`  // in words
	Since    time.Time        `json:"since"`           // the state began
	Next     time.Time        `json:"next,omitzero"`   // when a resting breaker tries again
	PID      int              `json:"pid,omitempty"`
	Starts   uint64           `json:"starts"` // that became ready
	Losses   map[Cause]uint64 `json:"losses"`
	Answers  uint64           `json:"answers"` // messages answered, also with an error
	Refused  uint64           `json:"refused"` // calls there was no worker for
	Access   Access           `json:"access,omitempty"`
	Models   []ModelState     `json:"models,omitempty"`
	Memory   *core.Memory     `json:"memory,omitempty"` // of its device, when it was ready
	Device   *core.Info       `json:"device,omitempty"`
	LastLoss time.Time        `json:"last_loss,omitzero"`
}

// Healthy reports whether work is done on the device, or will be after a short
// absence of its worker.
func (s Status) Healthy() bool {
	switch s.State {
	case StateReady, StateTrial:
		return true
	case StateStarting:
		return len(s.Losses) == 0
	}
	return false
}

// Client is the parent's side of a worker. Its methods may be called from several
// goroutines; calls on one lane wait for each other.
type Client struct {
	o      Options
	shared *memory
	used   int // of shared, before Start
	draft  *core.Draft
	region *core.Buffer
	inner  []*core.Buffer
	launch func(c *Client) (*incarnation, error)

	now     atomic.Pointer[incarnation] // nil: none that may be used
	absent  atomic.Pointer[error]       // why
	answers atomic.Uint64
	refused atomic.Uint64

	gate    sync.RWMutex // held for reading by calls, for writing to unmap
	closing chan struct{}
	stop    sync.Once
	once    sync.Once
	started atomic.Bool
	ended   chan struct{} // the supervisor has
	closed  error

	mu     sync.Mutex
	status Status
	turn   chan struct{} // closed when the status changes
	warm   []func(in *incarnation) error
	tune   []core.Preprocess
}

// New makes the shared memory. Start starts the worker.
func New(o Options) (*Client, error) {
	if o.Share != nil {
		o.Bytes = o.Share.o.Bytes
	}
	if o.Bytes < 1 || o.Lanes < 1 || o.Lanes > MaxLanes {
		return nil, fmt.Errorf("worker: %d bytes and %d lanes; at least 1, and at most %d lanes: %w", o.Bytes, o.Lanes, MaxLanes, core.ErrInvalid)
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
	c.set(func(s *Status) { s.State, s.Why = StateStarting, "it was not started yet" })
	c.region = c.draft.Buffer(idShared, o.Bytes, shared.data)
	for n, size := range o.Scratch {
		c.inner = append(c.inner, c.draft.Buffer(idScratch+uint64(n), size, nil))
	}
	return c, nil
}

// Memory is what both processes see, once it was given by Alloc.
func (c *Client) Memory() []byte { return c.shared.data }

// given is how much of the memory Alloc gave, which is what workers see.
func (c *Client) given() int {
	if c.o.Share != nil {
		return c.o.Share.used
	}
	return c.used
}

// Alloc gives n bytes of the shared memory, with their pages in place, before Start. They start at a
// multiple of 4096 and are there until Close.
func (c *Client) Alloc(n int) (off int, err error) {
	const page = 4096
	off = c.used
	if n < 1 || n > len(c.shared.data)-off {
		return 0, fmt.Errorf("worker: %d bytes of shared memory beside %d of %d: %w", n, off, len(c.shared.data), core.ErrOOM)
	}
	c.used = min((off+n+page-1)/page*page, len(c.shared.data))
	clear(c.shared.data[off:c.used])
	return off, nil
}

// Tune lets every worker launch kernels for frames and tensors like p's in the quickest
// way, which the first one measures. It must be called before Start.
func (c *Client) Tune(p core.Preprocess) { c.tune = append(c.tune, p) }

// AddModel adds a model before Start, and returns its number.
func (c *Client) AddModel(m Model) int {
	c.o.Models = append(c.o.Models, m)
	return len(c.o.Models) - 1
}

// Draft makes lists for Run.
func (c *Client) Draft() *core.Draft { return c.draft }

// Region names n bytes of the shared memory, in a list.
func (c *Client) Region(off, n int) core.Region { return c.region.At(off, n) }

// Scratch names n bytes of a part of Options.Scratch, in a list.
func (c *Client) Scratch(part, off, n int) core.Region { return c.inner[part].At(off, n) }

// Warm lets every worker run a list before it counts as ready. It must be called
// before Start. What it writes should be nobody's: workers start while others work.
func (c *Client) Warm(l *core.List) {
	c.warm = append(c.warm, func(in *incarnation) error { return c.runOn(in, 0, l, c.o.Start) })
}

// WarmModel lets every worker run a model before it counts as ready.
func (c *Client) WarmModel(lane, model int, in Tensor, outs []Tensor) {
	c.warm = append(c.warm, func(w *incarnation) error { return c.inferOn(w, lane, model, in, outs, c.o.Start) })
}

// Start starts the worker beside the caller; WaitReady waits for it.
func (c *Client) Start() {
	c.started.Store(true)
	go c.supervise()
}

// WaitReady returns when a worker is ready, or why none is: the first one could not
// start, there will be none any more, or ctx ended.
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

// Status is what the client can do now, and what happened so far.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.status
	st.Losses = maps.Clone(st.Losses)
	st.Answers, st.Refused = c.answers.Load(), c.refused.Load()
	return st
}

// set changes the status and wakes who waits for that.
func (c *Client) set(change func(*Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.status.State
	change(&c.status)
	if c.status.State != was {
		c.status.Since = time.Now()
	}
	close(c.turn)
	c.turn = make(chan struct{})
	// Made here, once, and not for each frame that has to go elsewhere.
	err := fmt.Errorf("%w: %s: %s", ErrUnavailable, c.status.State, c.status.Why)
	if c.status.State == StateClosed {
		err = ErrClosed
	}
	c.absent.Store(&err)
}

func (c *Client) tell(e Event) {
	if c.o.Tell != nil {
		c.o.Tell(e)
	}
}

// Run runs a list of the Draft on the worker's device and returns when it has, or at
// the latest after limit. See Elsewhere for its errors.
func (c *Client) Run(lane int, l *core.List, limit time.Duration) error {
	return c.on(func(in *incarnation) error { return c.runOn(in, lane, l, limit) })
}

func (c *Client) runOn(in *incarnation, lane int, l *core.List, limit time.Duration) error {
	b, err := l.Encoded()
	if err != nil {
		return err
	}
	_, err = in.call(lane, opRun, b, limit)
	return err
}

// maxDims is the most dimensions of a Tensor.
const maxDims = 8

// Tensor is a float32 tensor in the shared memory, at a multiple of 64 bytes.
type Tensor struct {
	Off   int
	Shape []int64
}

func (t Tensor) key() (k tensorKey, err error) {
	if len(t.Shape) > maxDims || t.Off < 0 {
		return k, fmt.Errorf("worker: a tensor of %d dimensions at %d: %w", len(t.Shape), t.Off, core.ErrInvalid)
	}
	k.off, k.dims = uint64(t.Off), uint64(len(t.Shape))
	copy(k.shape[:], t.Shape)
	return k, nil
}

// MaxOutputs is how many tensors one run of a model makes at most.
const MaxOutputs = 4

// inferMessage is what opInfer is about.
type inferMessage struct {
	model   uint32
	outputs uint32
	in      tensorKey
	outs    [MaxOutputs]tensorKey
}

// Infer runs model number n.
func (c *Client) Infer(lane, n int, in Tensor, outs []Tensor, limit time.Duration) error {
	return c.on(func(w *incarnation) error { return c.inferOn(w, lane, n, in, outs, limit) })
}

func (c *Client) inferOn(w *incarnation, lane, n int, in Tensor, outs []Tensor, limit time.Duration) error {
	if n < 0 || len(outs) < 1 || len(outs) > MaxOutputs {
		return fmt.Errorf("worker: model %d with %d outputs: %w", n, len(outs), core.ErrInvalid)
	}
	m := inferMessage{model: uint32(n), outputs: uint32(len(outs))}
	var err error
	if m.in, err = in.key(); err != nil {
		return err
	}
	for i, o := range outs {
		if m.outs[i], err = o.key(); err != nil {
			return err
		}
	}
	_, err = w.call(lane, opInfer, bytesOf(&m), limit)
	return err
}

var errTried = fmt.Errorf("%w: a new one is being tried", ErrUnavailable)

// on calls f with the worker there is, once it is trusted or as its trial.
func (c *Client) on(f func(*incarnation) error) error {
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
		return errTried
	}
	defer in.trying.Store(false)
	err := f(in)
	if !Elsewhere(err) && in.trial.CompareAndSwap(true, false) {
		c.set(func(s *Status) {
			if s.State == StateTrial {
				s.State, s.Why = StateReady, ""
			}
		})
		c.tell(Event{Kind: EventTrusted, PID: in.proc.pid()})
	}
	return err
}

// Stop ends the worker, beside the caller. Calls in progress return ErrClosed.
func (c *Client) Stop() { c.stop.Do(func() { close(c.closing) }) }

// Close ends the worker and gives the memory back.
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

// Command is the hidden command of the program that is its own worker.
const Command = "worker"
