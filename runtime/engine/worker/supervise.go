package worker

import (
	"encoding/json"
	"errors"
	"fmt"
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

	"github.com/yoctune/yoctune/internal/backoff"
	"github.com/yoctune/yoctune/runtime/engine/core"
)

// reapLimit is how long a killed worker may take to exit before it counts as stuck. With a
// GPU, exiting takes about 100 ms. A process that waits in the driver for an unresponsive
// device may never exit.
const reapLimit = 2 * time.Second

// process is a started worker.
type process interface {
	pid() int
	kill()
	wait() (cause Cause, how string) // returns after the process was reaped
}

// incarnation is one worker process from its start to its end.
type incarnation struct {
	c       *Client
	number  uint64 // from 1
	proc    process
	control *memory
	lanes   []*lane
	seqs    []uint64 // number of the last message, by lane
	locks   []sync.Mutex

	trial, trying atomic.Bool // on trial; the trial call is in progress

	once   sync.Once
	gone   chan struct{} // closed by fail
	cause  Cause
	why    string
	killed time.Time
	reaped chan struct{}
	ready  time.Time

	moved moved // by this worker

	mu    sync.Mutex
	users int // calls in progress and the supervisor; at 0 the control memory is unmapped
}

// moved counts copied bytes.
type moved struct{ toDevice, toHost, onDevice atomic.Uint64 }

// fail gives the worker up: it kills the process and wakes all waiters. Only the first cause
// counts.
func (in *incarnation) fail(cause Cause, why string) {
	in.once.Do(func() {
		in.cause, in.why, in.killed = cause, why, time.Now()
		in.c.now.CompareAndSwap(in, nil)
		close(in.gone)
		if cause != causeClosed {
			in.c.recordLoss(cause, why, in.proc.pid())
		}
		for _, l := range in.lanes {
			ringBell(&l.ans.bell, stateGone)
		}
		ringBell(&headerAt(in.control.data).state, stateGone)
		in.proc.kill()
	})
}

// recordLoss records the loss of a worker.
func (c *Client) recordLoss(cause Cause, why string, pid int) {
	c.setStatus(func(st *Status) {
		st.State, st.Cause, st.LastLoss, st.PID = StateResting, cause, time.Now(), 0
		st.Last = string(cause) + ": " + why
		st.Why = st.Last
		st.Losses[cause]++
	})
	c.notify(Event{Kind: EventLost, Cause: cause, Why: why, PID: pid})
}

// waitGone waits until the worker is given up and returns the error for its calls.
func (in *incarnation) waitGone() error {
	<-in.gone
	return in.cause.errorFor(in.why)
}

func (in *incarnation) isGone() bool {
	select {
	case <-in.gone:
		return true
	default:
		return false
	}
}

// acquire keeps the control memory mapped until release. It returns false if it was already
// unmapped.
func (in *incarnation) acquire() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.users == 0 {
		return false
	}
	in.users++
	return true
}

func (in *incarnation) release() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.users--; in.users == 0 {
		_ = in.control.close() // cannot fail
	}
}

// call sends a message on a lane and waits for its answer, for at most limit.
func (in *incarnation) call(n int, o op, payload []byte, limit time.Duration) ([]byte, error) {
	if n < 0 || n >= len(in.lanes) || len(payload) > roomBytes {
		return nil, fmt.Errorf("worker: invalid message of %d bytes on lane %d of %d: %w", len(payload), n, len(in.lanes), core.ErrInvalid)
	}
	if !in.acquire() {
		return nil, in.waitGone()
	}
	defer in.release()
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
	ringBell(&l.req.bell, uint32(seq))
	for {
		bell := atomic.LoadUint32(&l.ans.bell)
		if bell == uint32(seq) {
			break
		}
		if in.isGone() {
			return nil, in.waitGone()
		}
		if bell != before {
			in.fail(CauseGarbage, fmt.Sprintf("%s: bell %d, want %d", errAnswer, bell, uint32(seq)))
			return nil, in.waitGone()
		}
		left := time.Until(until)
		if left <= 0 {
			in.fail(CauseHang, fmt.Sprintf("no answer within %v", limit))
			return nil, in.waitGone()
		}
		futexWait(&l.ans.bell, bell, left)
	}
	l.ownAns = *l.ans // copied once, because the worker may change it at any time
	a := &l.ownAns
	if err := a.check(seq, l.room); err != nil {
		in.fail(CauseGarbage, err.Error())
		return nil, in.waitGone()
	}
	var out []byte
	if a.bytes > 0 {
		out = append(out, l.room[:a.bytes]...)
	}
	if a.crc != a.sum(out) {
		in.fail(CauseGarbage, errAnswer.Error()+": wrong checksum")
		return nil, in.waitGone()
	}
	in.c.answers.Add(1)
	in.noteCopied(a.copied)
	err := a.deviceError("worker")
	if a.sticky == 1 {
		cause := CauseSticky
		if errors.Is(err, core.ErrDeviceLost) {
			cause = CauseLost
		}
		in.fail(cause, a.text())
		return nil, in.waitGone()
	}
	return out, err
}

// noteCopied adds what the worker has copied since its last answer on any lane. Answers may arrive
// out of order.
func (in *incarnation) noteCopied(now copied) {
	total := &in.c.moved
	for _, n := range [...]struct {
		now        uint64
		seen, into *atomic.Uint64
	}{
		{now.toDevice, &in.moved.toDevice, &total.toDevice},
		{now.toHost, &in.moved.toHost, &total.toHost},
		{now.onDevice, &in.moved.onDevice, &total.onDevice},
	} {
		for seen := n.seen.Load(); n.now > seen; seen = n.seen.Load() {
			if n.seen.CompareAndSwap(seen, n.now) {
				n.into.Add(n.now - seen)
				break
			}
		}
	}
}

// spawn starts a worker. The calling thread must outlive the worker (PR_SET_PDEATHSIG).
func (c *Client) spawn() (*incarnation, error) {
	return c.spawnWrapped(func(p process) process { return p })
}

// spawnWrapped lets tests replace the process of the worker.
func (c *Client) spawnWrapped(wrap func(process) process) (*incarnation, error) {
	control, err := newMemory("yoctune-control", controlBytes(c.o.Lanes))
	if err != nil {
		return nil, err
	}
	in, err := c.attach(control, wrap)
	if err != nil {
		return nil, errors.Join(err, control.close())
	}
	return in, nil
}

func (c *Client) attach(control *memory, wrap func(process) process) (*incarnation, error) {
	text, err := json.Marshal(config{
		Device: c.o.Device, Bytes: c.allocated(), Lanes: c.o.Lanes,
		Library: c.o.Library, Models: c.o.Models, Chains: c.o.Chains, Access: c.o.Access, Tune: c.tune, Cache: c.o.Cache,
	})
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	if len(text) > textBytes {
		return nil, fmt.Errorf("worker: the configuration has %d bytes; at most %d are allowed", len(text), textBytes)
	}
	copy(configOf(control.data), text)
	*headerAt(control.data) = head{magic: wireMagic, version: wireVersion, lanes: uint32(c.o.Lanes), config: uint32(len(text))}
	started, err := c.startProcess(control.fd)
	if err != nil {
		return nil, err
	}
	proc := wrap(started)
	c.spawned++
	in := &incarnation{
		c: c, number: c.spawned, proc: proc, control: control, users: 1,
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

// child is the process of a worker.
type child struct {
	cmd   *exec.Cmd
	alive *os.File // closing it ends the worker
	last  *firstLine
}

// passed lists the environment variables of a worker, by prefix: those that GPU drivers and
// ONNX Runtime read.
var passed = []string{"PATH=", "HOME=", "TMPDIR=", "LANG=", "CUDA_", "NVIDIA_", "ORT_", "OMP_", "YT_", "YOCTUNE_", "XDG_RUNTIME_DIR=", "GOCOVERDIR="}

// PassedNames lists further variables that a worker gets, separated by commas: those of the
// pipeline's environment.
const PassedNames = "YOCTUNE_ENVIRONMENT"

func isPassed(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return slices.ContainsFunc(passed, func(p string) bool { return strings.HasPrefix(variable, p) }) ||
		slices.Contains(strings.Split(os.Getenv(PassedNames), ","), name)
}

func (c *Client) startProcess(control int) (*child, error) {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{os.Args[0], Command}} // the running version, even if an update replaced the file
	if len(c.o.Command) > 0 {
		cmd = exec.Command(c.o.Command[0], c.o.Command[1:]...)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	defer r.Close()
	// Duplicates for the child; the parent keeps its own descriptors.
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
	p := &child{cmd: cmd, alive: w, last: &firstLine{}}
	p.cmd.ExtraFiles = append(files, r)
	p.cmd.Stderr = p.last
	p.cmd.WaitDelay = 100 * time.Millisecond
	for _, v := range os.Environ() {
		if isPassed(v) {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	// A process group of its own keeps Ctrl-C in the terminal from reaching the worker.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("start worker: %w", err)
	}
	return p, nil
}

func (p *child) pid() int { return p.cmd.Process.Pid }
func (p *child) kill()    { _ = p.cmd.Process.Kill() } // fails if the process has ended

func (p *child) wait() (Cause, string) {
	_ = p.cmd.Wait() // ProcessState has the result
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
	case exitProtocol:
		cause = CauseGarbage
	}
	if s := p.last.String(); s != "" {
		how += ": " + s
	}
	return cause, how
}

// firstLine is a writer that keeps only the first line of a worker's output. The rest may be
// a stack trace of any length.
type firstLine struct {
	mu   sync.Mutex
	line strings.Builder
	full bool
}

func (t *firstLine) Write(b []byte) (int, error) {
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

func (t *firstLine) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return sanitize(t.line.String())
}

// supervise keeps a worker running until Close.
func (c *Client) supervise() {
	defer close(c.ended)
	// The kernel kills a worker when the thread that started it exits, so this goroutine
	// keeps its thread. The thread is not unlocked, because NO_NEW_PRIVS cannot be undone.
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) // since Linux 3.5
	s := &supervisor{c: c}
	for s.runWorker() {
	}
	c.setStatus(func(s *Status) { s.State, s.Why = StateClosed, "" })
}

// supervisor is the state of the circuit breaker.
type supervisor struct {
	c      *Client
	row    int         // consecutive losses
	losses []time.Time // within Backoff.Window
}

// runWorker runs one worker until it was reaped and the next may be started. It returns
// false if the client is closed.
func (s *supervisor) runWorker() bool {
	c := s.c
	c.setStatus(func(st *Status) {
		st.State, st.Next = StateStarting, time.Time{}
		if st.Why = "starting"; len(st.Losses) == 0 {
			st.Why = "starting for the first time"
		}
	})
	began := time.Now()
	in, err := c.launch(c)
	if err != nil {
		c.recordLoss(CauseStart, err.Error(), 0)
		return s.afterLoss(nil, CauseStart, err.Error())
	}
	if why := in.waitStarted(c.o.Start, c.closing); why != "" {
		in.fail(CauseStart, why)
	} else {
		in.ready = time.Now()
		in.trial.Store(s.row > 0)
		c.now.Store(in)
		if in.isGone() { // lost in the meantime
			c.now.CompareAndSwap(in, nil)
		}
		started := Event{Kind: EventStarted, Took: time.Since(began), PID: in.proc.pid()}
		c.setStatus(func(st *Status) {
			if in.isGone() {
				return
			}
			st.PID = in.proc.pid()
			if st.State, st.Why = StateReady, ""; in.trial.Load() {
				st.State, st.Why = StateTrial, "the next call tests the new worker"
			}
			st.Starts++
		})
		c.notify(started)
	}
	select {
	case <-in.gone:
	case <-c.closing:
		in.fail(causeClosed, "closed")
	}
	return s.afterLoss(in, in.cause, in.why)
}

// afterLoss handles the loss of a worker: it waits until the worker was reaped and for the
// delay of the breaker. It returns false if no further worker is to be started.
func (s *supervisor) afterLoss(in *incarnation, cause Cause, why string) bool {
	c, now := s.c, time.Now()
	if in != nil {
		defer in.release()
	}
	if c.isClosing() {
		if in != nil {
			backoff.WaitClosed(in.reaped, reapLimit)
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
	c.setStatus(func(st *Status) { st.Next = now.Add(delay) })
	if delay > 0 && !failed {
		c.notify(Event{Kind: EventResting, Cause: cause, Wait: delay})
	}
	if in != nil && !s.waitReaped(in, cause) {
		return false
	}
	if failed {
		text := fmt.Sprintf("%d workers were lost within %v; the last loss: %s: %s", len(s.losses), c.o.Backoff.Window, cause, why)
		c.setStatus(func(st *Status) { st.State, st.Why, st.Next = StateFailed, text, time.Time{} })
		c.notify(Event{Kind: EventFailed, Cause: cause, Why: text})
		<-c.closing
		return false
	}
	c.setStatus(func(st *Status) { st.State = StateResting })
	return !backoff.WaitClosed(c.closing, time.Until(now.Add(delay)))
}

// waitReaped waits until a killed worker was reaped and reports one that is stuck. It
// returns false if the client is closed first.
func (s *supervisor) waitReaped(in *incarnation, cause Cause) bool {
	if backoff.WaitClosed(in.reaped, reapLimit) {
		return true
	}
	c, pid := s.c, in.proc.pid()
	c.setStatus(func(st *Status) {
		st.State, st.Why = StateStuck, fmt.Sprintf("worker %d was killed but does not exit; its device is not used", pid)
	})
	c.notify(Event{Kind: EventStuck, Cause: cause, Why: "killed but does not exit", PID: pid})
	select {
	case <-in.reaped:
	case <-c.closing:
		return false
	}
	c.notify(Event{Kind: EventEnded, Took: time.Since(in.killed), PID: pid})
	return true
}

func (c *Client) isClosing() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

// waitStarted waits until the worker is ready and warm. It returns "" then, otherwise the
// reason of the failure.
func (in *incarnation) waitStarted(limit time.Duration, closing <-chan struct{}) string {
	h := headerAt(in.control.data)
	until := time.Now().Add(limit)
	for {
		switch state := atomic.LoadUint32(&h.state); {
		case in.isGone():
			return in.why
		case state == stateStarting:
		case state == stateReady, state == stateFailed:
			hi, err := in.readReport()
			if err != nil {
				return err.Error()
			}
			if hi.Error != "" {
				return sanitize(hi.Error)
			}
			in.c.setStatus(func(st *Status) {
				st.Device, st.Access, st.Models, st.Memory = &hi.Device, hi.Access, hi.Models, &hi.Memory
			})
			return in.warmUp()
		default:
			return fmt.Sprintf("%s: state %d", errAnswer, state)
		}
		left := time.Until(until)
		if left <= 0 {
			return fmt.Sprintf("not ready within %v", limit)
		}
		select {
		case <-closing:
			return "closed"
		default:
		}
		// Closing rings no bell, so wait in slices.
		futexWait(&h.state, stateStarting, min(left, 50*time.Millisecond))
	}
}

// readReport copies and parses the start report.
func (in *incarnation) readReport() (startReport, error) {
	var hi startReport
	n := atomic.LoadUint32(&headerAt(in.control.data).answer)
	if n > textBytes {
		return hi, fmt.Errorf("%w: start report of %d bytes", errAnswer, n)
	}
	text := slices.Clone(answerOf(in.control.data)[:n])
	if err := json.Unmarshal(text, &hi); err != nil {
		return hi, fmt.Errorf("%w: %w", errAnswer, err)
	}
	return hi, nil
}

// warmUp runs the lists and models of Warm and WarmModel. It returns "" or an error.
func (in *incarnation) warmUp() string {
	for _, w := range in.c.warm {
		if err := w(in); err != nil {
			return "warm up: " + err.Error()
		}
	}
	return ""
}
