package custom

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Stage is the side of the program. Its methods may be called only by the function that processes frames, and
// not concurrently.
type Stage struct {
	In, Out Port
	Options string // as in the plan

	wire   wire
	in     *descriptors
	input  []byte // part of the shared memory
	out    []byte // part of the shared memory
	held   [maxBuffers + 1]mapped
	buf    []byte
	events bool // the pipeline accepts EVENT
	run    Run
	frame  uint64
	failed error // of sending what the stage reports
}

// Run processes a frame: it writes the output to out and returns its size in bytes. An error fails
// the frame.
type Run func(item Item, out []byte) (int, error)

// Metric sets a metric, or adds to it if it is a counter. `yoctuned pipeline top` and Prometheus show
// it. Names are lower-case letters, digits and underscores.
func (s *Stage) Metric(name string, value float64, counter bool) {
	s.buf = appendMetric(s.buf[:0], name, value, counter)
	s.report(typeMetric)
}

// Event records a value at this moment, for traces.
func (s *Stage) Event(name string, value float64) {
	now := Now()
	s.Report(Event{Name: name, Start: now, End: now, Value: value})
}

// Scope begins a span, for traces. The returned function ends it.
func (s *Stage) Scope(name string) (end func()) {
	start := Now()
	return func() { s.Report(Event{Name: name, Span: true, Start: start, End: Now()}) }
}

// Report records an event with times of its own.
func (s *Stage) Report(e Event) {
	if s.events {
		s.buf = appendEvent(s.buf[:0], e)
		s.report(typeEvent)
	}
}

func (s *Stage) report(typ uint32) {
	s.failed = errors.Join(s.failed, s.wire.send(typ, s.frame, 0, s.buf))
}

// Now returns the time in ns, CLOCK_MONOTONIC.
func Now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // it cannot fail
	return ts.Nano()
}

// Serve makes this process the program of a stage: it serves the pipeline that started it until the
// end of its input. open prepares the stage and returns the function that processes frames.
// Standard output is reserved for messages; what the program prints goes to standard error.
func Serve(open func(*Stage) (Run, error)) error {
	out, err := takeStdout()
	if err != nil {
		return err
	}
	in := &descriptors{fd: int(os.Stdin.Fd())}
	s := &Stage{in: in, wire: wire{r: in, w: out}}
	m, err := s.wire.receive()
	if err != nil || m.typ != typeOpen {
		return fmt.Errorf("%w: a pipeline starts this program: %w", ErrFailed, cmp.Or(err, errors.New("no OPEN")))
	}
	o, err := readOpen(m.payload)
	if err != nil {
		return err
	}
	s.In, s.Out, s.Options, s.events = o.in, o.out, o.options, o.flags&acceptsEvents != 0
	if s.input, s.out, err = o.mapMemory(); err != nil {
		return err
	}
	if s.run, err = open(s); err != nil {
		return errors.Join(s.wire.send(typeReady, 0, 1, []byte(err.Error())), err)
	}
	if err := s.wire.send(typeReady, 0, 0, native.AppendUint32(nil, takesBuffers|takesTypes)); err != nil {
		return err
	}
	for {
		m, err := s.wire.receive()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.typ == typeBuffer:
			err = in.mapBuffer(&s.held, m.payload)
		case m.typ == typeRun:
			err = s.process(m)
		default:
			err = fmt.Errorf("%w: message %d", ErrFailed, m.typ)
		}
		if err != nil {
			return err
		}
	}
}

// takeStdout returns standard output for messages, and redirects the process's standard output
// to standard error, so that output of a plug-in cannot mix with messages.
func takeStdout() (*os.File, error) {
	out := os.Stdout
	os.Stdout = os.Stderr
	fd, err := unix.Dup(int(out.Fd()))
	if err == nil {
		err = unix.Dup3(int(os.Stderr.Fd()), int(out.Fd()), 0)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "messages"), nil
}

// mapMemory maps the shared memory, and returns its parts for input and output.
func (o *open) mapMemory() (in, out []byte, err error) {
	const shared = 3
	mem, err := unix.Mmap(shared, 0, o.size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map the shared memory: %w", err)
	}
	if o.inAt < 0 || o.outAt < o.inAt+o.in.Bytes || o.size < o.outAt+o.out.Bytes {
		return nil, nil, fmt.Errorf("%w: offsets outside the shared memory", ErrFailed)
	}
	return mem[o.inAt:][:o.in.Bytes], mem[o.outAt:][:o.out.Bytes], nil
}

// process processes the frame of RUN, and sends DONE unless a report could not be sent.
func (s *Stage) process(m message) error {
	r, err := readRun(m.payload)
	if err != nil {
		return err
	}
	if r.bytes < 0 || r.bytes > len(s.input) || r.buffer < 0 || r.buffer > maxBuffers {
		return fmt.Errorf("%w: RUN of %d bytes in buffer %d", ErrFailed, r.bytes, r.buffer)
	}
	s.frame = m.frame
	item := Item{Frame: m.frame, Capture: r.capture, In: s.input[:r.bytes]}
	n := 0
	if r.buffer > 0 {
		n, err = s.held[r.buffer].process(s.run, item, s.out)
	} else {
		n, err = s.run(item, s.out)
	}
	switch {
	case s.failed != nil:
		return s.failed
	case err != nil:
		return s.wire.send(typeDone, m.frame, 1, []byte(err.Error()))
	}
	s.buf = native.AppendUint64(s.buf[:0], uint64(n))
	return s.wire.send(typeDone, m.frame, 0, s.buf)
}

// descriptors reads standard input and collects the descriptors that messages carry.
type descriptors struct {
	fd  int
	oob [64]byte
	got []int
}

func (d *descriptors) Read(b []byte) (int, error) {
	for {
		n, beside, _, _, err := unix.Recvmsg(d.fd, b, d.oob[:], unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("read messages: %w", err)
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		}
		if beside > 0 {
			all, err := unix.ParseSocketControlMessage(d.oob[:beside])
			if err != nil {
				return 0, err
			}
			for _, m := range all {
				fds, err := unix.ParseUnixRights(&m)
				if err != nil {
					return 0, err
				}
				d.got = append(d.got, fds...)
			}
		}
		return n, nil
	}
}

// mapped is a mapped DMA buffer.
type mapped struct {
	Buffer
	mem []byte
	err error // why mapping failed
}

// mapBuffer maps the buffer that BUFFER carries.
func (d *descriptors) mapBuffer(held *[maxBuffers + 1]mapped, payload []byte) error {
	if len(payload) < 16 || len(d.got) == 0 {
		return fmt.Errorf("%w: BUFFER has %d bytes and %d descriptors", ErrFailed, len(payload), len(d.got))
	}
	b := Buffer{Number: int(native.Uint32(payload)), FD: d.got[0], Bytes: int(native.Uint64(payload[8:]))}
	d.got = d.got[1:]
	if b.Number < 1 || b.Number > maxBuffers {
		return errors.Join(fmt.Errorf("%w: buffer %d", ErrFailed, b.Number), unix.Close(b.FD))
	}
	was := held[b.Number]
	if was.mem != nil {
		_ = unix.Munmap(was.mem)
	}
	if was.FD > 0 {
		_ = unix.Close(was.FD)
	}
	now := mapped{Buffer: b}
	if now.mem, now.err = unix.Mmap(b.FD, 0, b.Bytes, unix.PROT_READ, unix.MAP_SHARED); now.err != nil {
		now.err = fmt.Errorf("%w: map the camera's memory: %w", ErrFailed, now.err)
	}
	held[b.Number] = now
	return nil
}

// process processes a frame in the DMA buffer. DMA_BUF_IOCTL_SYNC of <linux/dma-buf.h> first makes
// the driver's writes visible to the CPU. Memory of other kinds rejects it.
func (b *mapped) process(run Run, item Item, out []byte) (int, error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case len(item.In) > len(b.mem):
		return 0, fmt.Errorf("%w: %d bytes in a buffer of %d", ErrFailed, len(item.In), len(b.mem))
	}
	const sync, read, end = 0x40086200, 1, 4
	item.In, item.Buffer = b.mem[:len(item.In)], &b.Buffer
	flags := uint64(read)
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(b.FD), sync, uintptr(unsafe.Pointer(&flags)))
	n, err := run(item, out)
	flags |= end
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(b.FD), sync, uintptr(unsafe.Pointer(&flags)))
	return n, err
}
