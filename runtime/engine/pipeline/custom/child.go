package custom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/backoff"
	"github.com/yoctune/yoctune/internal/tailbuf"
)

// Options of a stage's program.
type Options struct {
	Argv    []string
	Name    string // in messages, "": that of the program
	In, Out Port
	Options string        // as in the plan
	Timeout time.Duration // for one frame, 0: 10 s
	Reports Reports
	Start   context.Context // ends the wait for a program to be ready; may be nil
	Say     func(string)    // called with the reason when the program is restarted; may be nil
}

// Time limits of a program.
const (
	startTime = 30 * time.Second // until READY; the program may load a model
	runTime   = 10 * time.Second // per frame, unless the plan sets a timeout
	endTime   = 2 * time.Second  // from the end of its input until exit
)

// Child is a stage's program and its restarts after crashes. Run is for one goroutine; Kill may
// be called concurrently.
type Child struct {
	o     Options
	shm   int
	mem   []byte
	outAt int
	in    [24]byte

	mu     sync.Mutex
	now    *process
	coming chan started // a restart in progress
	stop   chan struct{}
	begun  atomic.Pointer[process] // process being started
	pause  backoff.Delay
	closed bool
}

type started struct {
	p   *process
	err error
}

// process is one run of the program.
type process struct {
	cmd    *exec.Cmd
	to     *os.File
	from   *os.File
	stderr *tailbuf.Buffer
	wire   wire
	once   sync.Once
	end    error

	buffers bool                   // the program accepts BUFFER
	sent    [maxBuffers + 1]uint64 // ID of the buffer that the program has, by number
}

// Start runs the program and waits until it is ready. The error wraps [ErrStart].
func Start(o Options) (*Child, error) {
	if len(o.Argv) == 0 || o.Argv[0] == "" {
		return nil, fmt.Errorf("%w: missing command", ErrStart)
	}
	if o.Timeout <= 0 {
		o.Timeout = runTime
	}
	c := &Child{o: o, stop: make(chan struct{}), outAt: (o.In.Bytes + 4095) &^ 4095}
	size := c.outAt + o.Out.Bytes
	var err error
	if c.shm, err = unix.MemfdCreate("yoctune-stage", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	// Sealed, so that the program cannot shrink it while this process uses it.
	err = unix.Ftruncate(c.shm, int64(size))
	if err == nil {
		_, err = unix.FcntlInt(uintptr(c.shm), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err == nil {
		c.mem, err = unix.Mmap(c.shm, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	}
	if err != nil {
		_ = unix.Close(c.shm)
		return nil, fmt.Errorf("%w: %d bytes of shared memory: %w", ErrStart, size, err)
	}
	if c.now, err = c.start(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Child) start() (_ *process, err error) {
	p := &process{stderr: &tailbuf.Buffer{}}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %s: %w", ErrStart, c.name(), err)
		}
	}()
	childIn, to, err := socketPair()
	if err != nil {
		return nil, err
	}
	from, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, to.Close(), childIn.Close())
	}
	fd, err := unix.FcntlInt(uintptr(c.shm), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(err, to.Close(), from.Close(), childIn.Close(), childOut.Close())
	}
	shm := os.NewFile(uintptr(fd), "yoctune-stage")
	p.to, p.from = to, from
	p.wire = wire{r: from, w: to}
	p.cmd = exec.Command(c.o.Argv[0], c.o.Argv[1:]...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, p.stderr
	p.cmd.ExtraFiles = []*os.File{shm}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = endTime
	err = p.cmd.Start()
	// Only the child keeps its ends of the pipes, so that they close when it exits.
	_, _, _ = childIn.Close(), childOut.Close(), shm.Close()
	if err != nil {
		return nil, errors.Join(err, to.Close(), from.Close())
	}
	c.begun.Store(p)
	defer c.begun.Store(nil)
	if c.o.Start != nil {
		defer context.AfterFunc(c.o.Start, func() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })()
	}
	o := open{in: c.o.In, out: c.o.Out, outAt: c.outAt, size: len(c.mem), flags: acceptsEvents, options: c.o.Options}
	end := time.Now().Add(startTime)
	_ = from.SetReadDeadline(end)
	_ = to.SetWriteDeadline(end)
	if err = p.wire.send(typeOpen, 0, 0, o.append(nil)); err == nil {
		var ready []byte
		ready, err = p.await(typeReady, 0, &c.o.Reports)
		flags := uint32(0)
		if len(ready) >= 4 {
			flags = native.Uint32(ready)
		}
		p.buffers = flags&takesBuffers != 0
		if err == nil && (c.o.In.DType != 0 || c.o.Out.DType != 0) && flags&takesTypes == 0 {
			err = fmt.Errorf("%w: the program takes and gives float32 tensors only: its READY lacks flag %d", ErrStart, takesTypes)
		}
	}
	if err != nil {
		return nil, p.kill(err)
	}
	return p, nil
}

// socketPair returns the program's standard input and this side of it: a socket, because
// messages can carry descriptors.
func socketPair() (theirs, ours *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	_ = unix.SetNonblock(fds[1], true) // deadlines need it
	return os.NewFile(uintptr(fds[0]), "input"), os.NewFile(uintptr(fds[1]), "input"), nil
}

// sendBuffer passes a buffer to the program, unless the program has it already.
func (p *process) sendBuffer(b *Buffer) error {
	if b.Number < 1 || b.Number > maxBuffers || p.sent[b.Number] == b.ID {
		return nil
	}
	payload := native.AppendUint32(make([]byte, 0, 16), uint32(b.Number))
	payload = native.AppendUint64(native.AppendUint32(payload, 0), uint64(b.Bytes))
	m := p.wire.compose(typeBuffer, 0, 0, payload)
	raw, err := p.to.SyscallConn()
	if err != nil {
		return err
	}
	sent, serr := 0, error(nil)
	err = raw.Write(func(fd uintptr) bool {
		sent, serr = unix.SendmsgN(int(fd), m, unix.UnixRights(b.FD), nil, unix.MSG_NOSIGNAL)
		return !errors.Is(serr, unix.EAGAIN) && !errors.Is(serr, unix.EINTR)
	})
	if err = errors.Join(err, serr); err == nil && sent < len(m) {
		_, err = p.to.Write(m[sent:])
	}
	p.sent[b.Number] = b.ID
	return err
}

func (c *Child) name() string { return cmp.Or(c.o.Name, filepath.Base(c.o.Argv[0])) }

// await reads messages up to one of the given type, and returns its payload.
func (p *process) await(typ uint32, frame uint64, to *Reports) ([]byte, error) {
	for {
		m, err := p.wire.receive()
		switch {
		case err != nil:
			return nil, err
		case m.typ == typeMetric:
			m.metric(to.Metric)
			continue
		case m.typ == typeEvent:
			m.event(to.Event)
			continue
		case m.typ != typ || m.frame != frame:
			return nil, fmt.Errorf("%w: got message %d for frame %d, want message %d for frame %d", ErrFailed, m.typ, m.frame, typ, frame)
		case m.status != 0:
			return nil, &answer{strings.ToValidUTF8(string(m.payload[:min(len(m.payload), 512)]), "?")}
		}
		return m.payload, nil
	}
}

// processFrame sends a frame to the program and returns the size of its output in bytes.
func (p *process) processFrame(i *Item, r run, to *Reports, scratch []byte) (int, error) {
	if r.buffer > 0 {
		if err := p.sendBuffer(i.Buffer); err != nil {
			return 0, err
		}
	}
	if err := p.wire.send(typeRun, i.Frame, 0, r.append(scratch)); err != nil {
		return 0, err
	}
	done, err := p.await(typeDone, i.Frame, to)
	switch {
	case err != nil:
		return 0, err
	case len(done) < 8:
		return 0, fmt.Errorf("%w: DONE has %d bytes", ErrFailed, len(done))
	}
	return int(min(native.Uint64(done), 1<<40)), nil
}

// answer is an error that the stage reported through the protocol.
type answer struct{ text string }

func (a *answer) Error() string { return a.text }
func (a *answer) Unwrap() error { return ErrFailed }

// kill ends the process and everything it started, and adds its last output to the error.
func (p *process) kill(why error) error {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	return p.wait(why)
}

// wait waits until the process has exited. It returns why, with the exit status and the last
// output; later calls return the same error.
func (p *process) wait(why error) error {
	p.once.Do(func() {
		err := p.cmd.Wait()
		_ = p.to.Close()
		_ = p.from.Close()
		switch {
		case errors.Is(why, os.ErrDeadlineExceeded):
			why = errors.New("no answer in time")
		case errors.Is(why, io.EOF) || errors.Is(why, io.ErrUnexpectedEOF) || errors.Is(why, syscall.EPIPE):
			why = fmt.Errorf("the program exited: %w", cmp.Or(err, errors.New("exit status 0")))
		}
		if s := p.stderr.String(); s != "" {
			why = fmt.Errorf("%w: %s", why, s)
		}
		p.end = why
	})
	return p.end
}

// Run processes a frame and returns how often its input or output was copied. The output is
// valid until the next call. The error wraps [ErrFailed] if this frame failed, and [ErrDown]
// while no program runs.
func (c *Child) Run(i Item) (made []byte, copies int, err error) {
	p, err := c.process()
	if err != nil {
		return nil, 0, err
	}
	if err := c.o.In.CheckInput(i.In); err != nil {
		return nil, 0, err
	}
	r := run{capture: i.Capture, bytes: len(i.In)}
	if p.buffers && i.Buffer != nil {
		r.buffer = i.Buffer.Number
	} else if copy(c.mem[:c.o.In.Bytes], i.In); c.o.In.Kind != Results {
		copies = 1
	}
	end := time.Now().Add(c.o.Timeout)
	_ = p.from.SetReadDeadline(end)
	_ = p.to.SetWriteDeadline(end)
	n, err := p.processFrame(&i, r, &c.o.Reports, c.in[:0])
	var failure *answer
	switch {
	case errors.As(err, &failure):
		return nil, copies, failure
	case err == nil && (n > c.o.Out.Bytes || c.o.Out.Kind == Tensor && n != c.o.Out.Bytes):
		err = fmt.Errorf("output of %d bytes, want %d", n, c.o.Out.Bytes)
	case err == nil:
		c.pause = 0
		return c.mem[c.outAt : c.outAt+n], copies, nil
	}
	err = p.kill(err)
	c.restart(err)
	return nil, copies, fmt.Errorf("%w: %s: %w", ErrFailed, c.name(), err)
}

// process returns the running program, or its finished restart.
func (c *Child) process() (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil {
		return c.now, nil
	}
	select {
	case s := <-c.coming:
		c.coming = nil
		if s.err != nil {
			c.scheduleStart(s.err)
			return nil, ErrDown
		}
		c.now = s.p
		return s.p, nil
	default:
		return nil, ErrDown
	}
}

func (c *Child) restart(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = nil
	c.scheduleStart(why)
}

// scheduleStart starts a new program in the background, after a delay that doubles each time.
func (c *Child) scheduleStart(why error) {
	if c.closed || c.coming != nil {
		return
	}
	if c.o.Say != nil {
		c.o.Say(fmt.Sprintf("%s: %v; restarting it", c.name(), why))
	}
	coming, wait := make(chan started, 1), c.pause.Next()
	c.coming = coming
	go func() {
		if backoff.WaitClosed(c.stop, wait) {
			coming <- started{}
			return
		}
		p, err := c.start()
		coming <- started{p, err}
	}()
}

// Kill kills the running program, so that Run returns.
func (c *Child) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil {
		_ = syscall.Kill(-c.now.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// Close closes the program's input, and kills the program if it does not exit.
func (c *Child) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.stop)
	}
	p, coming := c.now, c.coming
	c.now, c.coming = nil, nil
	c.mu.Unlock()
	if coming != nil {
		// A restart in progress is not awaited.
		if b := c.begun.Load(); b != nil {
			_ = syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
		}
		if s := <-coming; s.p != nil {
			p = s.p
		}
	}
	if p != nil {
		_ = p.to.Close()
		t := time.AfterFunc(endTime, func() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
		_ = p.wait(io.EOF)
		t.Stop()
	}
	var errs []error
	if c.mem != nil {
		errs = append(errs, unix.Munmap(c.mem), unix.Close(c.shm))
		c.mem = nil
	}
	return errors.Join(errs...)
}
