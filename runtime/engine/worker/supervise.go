package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// reapLimit is how long a killed worker may take to end before its device counts as
// stuck. A process with a GPU takes some 100 ms; one that waits in the driver for a
// device that does not answer may take for ever.
const reapLimit = 2 * time.Second

// process is what supervises needs of a started worker.
type process interface {
	pid() int
	kill()
	wait() (cause Cause, how string) // until it was reaped
}

// incarnation is one worker from its start to its end.
type incarnation struct {
	c       *Client
	proc    process
	control *memory
	lanes   []*lane
	seqs    []uint64 // by lane, of the last message
	locks   []sync.Mutex

	trial, trying atomic.Bool // half-open

	once   sync.Once
	gone   chan struct{} // closed by fail
	cause  Cause
	why    string
	killed time.Time
	reaped chan struct{}
	ready  time.Time

	mu    sync.Mutex
	users int // calls in progress and the supervisor: the control memory stays
}

// fail gives the worker up: nobody uses it any more, and who waits for it returns.
// Only the first cause counts.
func (in *incarnation) fail(cause Cause, why string) {
	in.once.Do(func() {
		in.cause, in.why, in.killed = cause, why, time.Now()
		in.c.now.CompareAndSwap(in, nil)
		close(in.gone)
		if cause != causeClosed {
			in.c.lost(cause, why, in.proc.pid())
		}
		for _, l := range in.lanes {
			ring(&l.ans.bell, stateGone)
		}
		ring(&headOf(in.control.data).state, stateGone)
		in.proc.kill()
	})
}

// lost says that there is no worker any more, and why.
func (c *Client) lost(cause Cause, why string, pid int) {
	c.set(func(st *Status) {
		st.State, st.Cause, st.LastLoss, st.PID = StateResting, cause, time.Now(), 0
		st.Last = string(cause) + ": " + why
		st.Why = st.Last
		st.Losses[cause]++
	})
	c.tell(Event{Kind: EventLost, Cause: cause, Why: why, PID: pid})
}

// lost is the error of a call whose worker was given up.
func (in *incarnation) lost() error {
	<-in.gone
	return in.cause.of(in.why)
}

func (in *incarnation) isGone() bool {
	select {
	case <-in.gone:
		return true
	default:
		return false
	}
}

// use keeps the control memory; it is false when there is none any more.
func (in *incarnation) use() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.users == 0 {
		return false
	}
	in.users++
	return true
}

func (in *incarnation) unuse() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.users--; in.users == 0 {
		_ = in.control.close() // unmapping what was mapped does not fail
	}
}

// call sends a message on a lane and waits for its answer. The payload of the answer
// is valid until the next call on the lane.
func (in *incarnation) call(n int, o op, payload []byte, limit time.Duration) ([]byte, error) {
	if n < 0 || n >= len(in.lanes) || len(payload) > roomBytes {
		return nil, fmt.Errorf("worker: lane %d of %d, %d bytes: %w", n, len(in.lanes), len(payload), core.ErrInvalid)
	}
	if !in.use() {
		return nil, in.lost()
	}
	defer in.unuse()
	in.locks[n].Lock()
	defer in.locks[n].Unlock()
	l := in.lanes[n]
	before := uint32(in.seqs[n])
	seq := nextBell(in.seqs[n])
	in.seqs[n] = seq
	copy(l.room, payload)
	l.ownReq = request{op: o, seq: seq, bytes: uint32(len(payload)), bell: before, limit: int64(limit)}
	l.ownReq.crc = l.ownReq.sum(l.room[:len(payload)])
	*l.req = l.ownReq
	until := time.Now().Add(limit)
	ring(&l.req.bell, uint32(seq))
	for {
		bell := atomic.LoadUint32(&l.ans.bell)
		if bell == uint32(seq) {
			break
		}
		if in.isGone() {
			return nil, in.lost()
		}
		if bell != before {
			in.fail(CauseGarbage, fmt.Sprintf("%s: its bell says %d, not %d", errWire, bell, uint32(seq)))
			return nil, in.lost()
		}
		left := time.Until(until)
		if left <= 0 {
			in.fail(CauseHang, fmt.Sprintf("no answer in %v", limit))
			return nil, in.lost()
		}
		futexWait(&l.ans.bell, bell, left)
	}
	l.ownAns = *l.ans // once: it may change under the eyes
	a := &l.ownAns
	if err := a.check(seq, l.room); err != nil {
		in.fail(CauseGarbage, err.Error())
		return nil, in.lost()
	}
	var out []byte
	if a.bytes > 0 {
		out = append(out, l.room[:a.bytes]...)
	}
	if a.crc != a.sum(out) {
		in.fail(CauseGarbage, errWire.Error()+": its checksum is wrong")
		return nil, in.lost()
	}
	in.c.answers.Add(1)
	err := a.failure("worker")
	if a.sticky == 1 {
		cause := CauseSticky
		if errors.Is(err, core.ErrDeviceLost) {
			cause = CauseLost
		}
		in.fail(cause, a.text())
		return nil, in.lost()
	}
	return out, err
}

// spawn starts a worker. The calling thread must live as long as the worker.
func (c *Client) spawn() (*incarnation, error) {
	return c.spawnWith(func(p process) process { return p })
}

// spawnWith lets tests stand between the worker and its process.
func (c *Client) spawnWith(as func(process) process) (*incarnation, error) {
	control, err := newMemory("yoctune-control", controlBytes(c.o.Lanes))
	if err != nil {
		return nil, err
	}
	in, err := c.attach(control, as)
	if err != nil {
		return nil, errors.Join(err, control.close())
	}
	return in, nil
}

func (c *Client) attach(control *memory, as func(process) process) (*incarnation, error) {
	text, err := json.Marshal(config{
		Device: c.o.Device, Bytes: c.given(), Lanes: c.o.Lanes, Scratch: c.o.Scratch,
		Library: c.o.Library, Models: c.o.Models, Access: c.o.Access, Tune: c.tune, Cache: c.o.Cache,
	})
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	if len(text) > textBytes {
		return nil, fmt.Errorf("worker: what it has to do takes %d bytes of %d", len(text), textBytes)
	}
	copy(configOf(control.data), text)
	*headOf(control.data) = head{magic: wireMagic, version: wireVersion, lanes: uint32(c.o.Lanes), config: uint32(len(text))}
	started, err := c.exec(control.fd)
	if err != nil {
		return nil, err
	}
	proc := as(started)
	in := &incarnation{
		c: c, proc: proc, control: control, users: 1,
		seqs: make([]uint64, c.o.Lanes), locks: make([]sync.Mutex, c.o.Lanes),
		gone: make(chan struct{}), reaped: make(chan struct{}),
	}
	for n := range c.o.Lanes {
		in.lanes = append(in.lanes, laneOf(control.data, n))
	}
	go func() {
		in.fail(proc.wait())
		close(in.reaped)
	}()
	return in, nil
}

// child is a worker's process.
type child struct {
	cmd   *exec.Cmd
	alive *os.File // the worker ends when this is closed
	last  *tail
}

// passed are the variables a worker gets, by prefix: what GPU drivers and ONNX
// Runtime read, and nothing else.
var passed = []string{"PATH=", "HOME=", "TMPDIR=", "LANG=", "CUDA_", "NVIDIA_", "ORT_", "OMP_", "YT_", "YOCTUNE_", "XDG_RUNTIME_DIR=", "GOCOVERDIR="}

func (c *Client) exec(control int) (*child, error) {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{os.Args[0], Command}} // this version, also when an update replaced the file
	if len(c.o.Command) > 0 {
		cmd = exec.Command(c.o.Command[0], c.o.Command[1:]...)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	defer r.Close()
	// The files are the parent's; these are for handing them on.
	var files []*os.File
	for _, fd := range []int{control, c.shared.fd} {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			w.Close()
			return nil, fmt.Errorf("start worker: %w", err)
		}
		f := os.NewFile(uintptr(dup), "memory")
		defer f.Close()
		files = append(files, f)
	}
	p := &child{cmd: cmd, alive: w, last: &tail{}}
	p.cmd.ExtraFiles = append(files, r)
	p.cmd.Stderr = p.last
	p.cmd.WaitDelay = 100 * time.Millisecond
	for _, v := range os.Environ() {
		if slices.ContainsFunc(passed, func(p string) bool { return strings.HasPrefix(v, p) }) {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	// Of its own group: Ctrl-C is the parent's business.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("start worker: %w", err)
	}
	return p, nil
}

func (p *child) pid() int { return p.cmd.Process.Pid }
func (p *child) kill()    { _ = p.cmd.Process.Kill() } // it fails when the process has ended

func (p *child) wait() (Cause, string) {
	_ = p.cmd.Wait() // the state says more
	_ = p.alive.Close()
	how, cause := p.cmd.ProcessState.String(), CauseExit
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		cause = CauseSignal
	}
	switch p.cmd.ProcessState.ExitCode() {
	case exitSticky:
		cause = CauseSticky
	case exitLost:
		cause = CauseLost
	case exitWire:
		cause = CauseGarbage
	}
	if s := p.last.String(); s != "" {
		how += ": " + s
	}
	return cause, how
}

// tail keeps the first line that a worker writes and passes nothing on: the trace of
// a crash is as long as the worker likes.
type tail struct {
	mu   sync.Mutex
	line strings.Builder
	full bool
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range b {
		if t.full {
			break
		}
		if t.full = c == '\n' || t.line.Len() == 240; !t.full {
			t.line.WriteByte(c)
		}
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return plain(t.line.String())
}

var _ io.Writer = (*tail)(nil)

// supervise keeps a worker running until Close.
func (c *Client) supervise() {
	defer close(c.ended)
	// A worker is told when the thread that started it ends, so that thread is this
	// goroutine's as long as there are workers; it is not given back, because it may
	// not gain privileges again, which its children inherit.
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) // kernels since 3.5 have it
	s := &supervisor{c: c}
	for s.one() {
	}
	c.set(func(s *Status) { s.State, s.Why = StateClosed, "" })
}

// supervisor is what the breaker remembers.
type supervisor struct {
	c      *Client
	row    int         // losses in a row
	losses []time.Time // within the window
}

// one runs one worker from its start until it was reaped and its successor may be
// started; false: the client is closed.
func (s *supervisor) one() bool {
	c := s.c
	c.set(func(st *Status) {
		st.State, st.Next = StateStarting, time.Time{}
		if st.Why = "it is starting"; len(st.Losses) == 0 {
			st.Why = "it is starting for the first time"
		}
	})
	began := time.Now()
	in, err := c.launch(c)
	if err != nil {
		c.lost(CauseStart, err.Error(), 0)
		return s.rest(nil, CauseStart, err.Error())
	}
	if why := in.started(c.o.Start, c.closing); why != "" {
		in.fail(CauseStart, why)
	} else {
		in.ready = time.Now()
		in.trial.Store(s.row > 0)
		c.now.Store(in)
		if in.isGone() { // fail came between
			c.now.CompareAndSwap(in, nil)
		}
		started := Event{Kind: EventStarted, Took: time.Since(began), PID: in.proc.pid()}
		c.set(func(st *Status) {
			if in.isGone() {
				return
			}
			st.PID = in.proc.pid()
			if st.State, st.Why = StateReady, ""; in.trial.Load() {
				st.State, st.Why = StateTrial, "the next call shows whether it works"
			}
			st.Starts++
		})
		c.tell(started)
	}
	select {
	case <-in.gone:
	case <-c.closing:
		in.fail(causeClosed, "it was closed")
	}
	return s.rest(in, in.cause, in.why)
}

// rest does what follows a loss: it tells of it, waits until the worker was reaped and
// as long as the breaker says.
func (s *supervisor) rest(in *incarnation, cause Cause, why string) bool {
	c, now := s.c, time.Now()
	if in != nil {
		defer in.unuse()
	}
	if c.isClosing() {
		if in != nil {
			wait(in.reaped, reapLimit)
		}
		return false
	}
	if in != nil && !in.ready.IsZero() && now.Sub(in.ready) >= c.o.Backoff.Calm {
		s.row = 0
	}
	s.row++
	s.losses = append(s.losses, now)
	s.losses = slices.DeleteFunc(s.losses, func(t time.Time) bool { return now.Sub(t) > c.o.Backoff.Window })
	delay := c.o.Backoff.wait(s.row)
	failed := len(s.losses) > c.o.Backoff.Limit
	pid := 0
	if in != nil {
		pid = in.proc.pid()
	}
	c.set(func(st *Status) { st.Next = now.Add(delay) })
	if delay > 0 && !failed {
		c.tell(Event{Kind: EventResting, Cause: cause, Wait: delay})
	}
	if in != nil && !wait(in.reaped, reapLimit) {
		c.set(func(st *Status) {
			st.State, st.Why = StateStuck, fmt.Sprintf("worker %d was killed and does not end; its device is not used", pid)
		})
		c.tell(Event{Kind: EventStuck, Cause: cause, Why: "it was killed and does not end", PID: pid})
		select {
		case <-in.reaped:
		case <-c.closing:
			return false
		}
		c.tell(Event{Kind: EventEnded, Took: time.Since(in.killed), PID: pid})
	}
	if failed {
		text := fmt.Sprintf("%d workers were lost within %v, the last one: %s: %s", len(s.losses), c.o.Backoff.Window, cause, why)
		c.set(func(st *Status) { st.State, st.Why, st.Next = StateFailed, text, time.Time{} })
		c.tell(Event{Kind: EventFailed, Cause: cause, Why: text})
		<-c.closing
		return false
	}
	c.set(func(st *Status) { st.State = StateResting })
	t := time.NewTimer(time.Until(now.Add(delay)))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.closing:
		return false
	}
}

func (c *Client) isClosing() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

// wait waits for c to be closed, at most d.
func wait(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}

// started waits until the worker is ready and warm; else it says why it is not.
func (in *incarnation) started(limit time.Duration, closing <-chan struct{}) string {
	h := headOf(in.control.data)
	until := time.Now().Add(limit)
	for {
		switch state := atomic.LoadUint32(&h.state); {
		case in.isGone():
			return in.why
		case state == stateStarting:
		case state == stateReady, state == stateFailed:
			hi, err := in.hello()
			if err != nil {
				return err.Error()
			}
			if hi.Error != "" {
				return plain(hi.Error)
			}
			in.c.set(func(st *Status) {
				st.Device, st.Access, st.Models, st.Memory = &hi.Device, hi.Access, hi.Models, &hi.Memory
			})
			return in.warmUp()
		default:
			return fmt.Sprintf("%s: state %d", errWire, state)
		}
		left := time.Until(until)
		if left <= 0 {
			return fmt.Sprintf("not ready in %v", limit)
		}
		select {
		case <-closing:
			return "it was closed"
		default:
		}
		// In slices: closing rings no bell here.
		futexWait(&h.state, stateStarting, min(left, 50*time.Millisecond))
	}
}

func (in *incarnation) hello() (hello, error) {
	var hi hello
	n := atomic.LoadUint32(&headOf(in.control.data).answer)
	if n > textBytes {
		return hi, fmt.Errorf("%w: a text of %d bytes", errWire, n)
	}
	text := slices.Clone(answerOf(in.control.data)[:n])
	if err := json.Unmarshal(text, &hi); err != nil {
		return hi, fmt.Errorf("%w: %w", errWire, err)
	}
	return hi, nil
}

// warmUp does what the first frames would have to wait for.
func (in *incarnation) warmUp() string {
	for _, w := range in.c.warm {
		if err := w(in); err != nil {
			return "warming up: " + err.Error()
		}
	}
	return ""
}
