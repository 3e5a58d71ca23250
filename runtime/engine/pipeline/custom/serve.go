package custom

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Header is the C header for plug-ins.
//
//go:embed yoctune_stage.h
var Header string

// Names of the hidden commands that host a plug-in and start a program.
const (
	Command     = "stage-host"
	ExecCommand = "stage-exec"
)

// Serve hosts a plug-in in this process and serves the pipeline that started it over the
// protocol. It returns at the end of its input.
func Serve(path string) error {
	spareParent()
	out, err := takeStdout()
	if err != nil {
		return err
	}
	in := &descriptors{fd: int(os.Stdin.Fd())}
	c := wire{r: in, w: out}
	m, err := c.receive()
	if err != nil || m.typ != typeOpen {
		return fmt.Errorf("%w: yoctuned starts this command for a plug-in: %w", ErrFailed, cmp.Or(err, errors.New("no OPEN")))
	}
	o, err := readOpen(m.payload)
	if err != nil {
		return err
	}
	input, output, err := o.mapMemory()
	if err != nil {
		return err
	}
	frame, failed := uint64(0), error(nil)
	var buf []byte
	p, err := LoadPlugin(path, o.in, o.out, o.options, func(name string, value float64, counter bool) {
		buf = appendMetric(buf[:0], name, value, counter)
		failed = errors.Join(failed, c.send(typeMetric, frame, 0, buf))
	})
	if err != nil {
		return errors.Join(c.send(typeReady, 0, 1, []byte(err.Error())), err)
	}
	defer p.Close()
	diePlainly()
	if err := c.send(typeReady, 0, 0, native.AppendUint32(nil, takesBuffers|takesTypes)); err != nil {
		return err
	}
	s := host{wire: &c, in: in, p: p, input: input, out: output}
	for {
		m, err := c.receive()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.typ == typeBuffer:
			err = in.mapBuffer(&s.held, m.payload)
		case m.typ == typeRun:
			frame = m.frame
			err = s.run(m, &failed)
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

// host runs a plug-in for another process.
type host struct {
	*wire
	in    *descriptors
	p     *Plugin
	input []byte // part of the shared memory
	out   []byte // part of the shared memory
	held  [maxBuffers + 1]mapped
	buf   []byte
}

// run processes the frame of RUN, and sends DONE unless a metric could not be sent.
func (h *host) run(m message, failed *error) error {
	r, err := readRun(m.payload)
	if err != nil {
		return err
	}
	if r.bytes < 0 || r.bytes > len(h.input) || r.buffer > maxBuffers {
		return fmt.Errorf("%w: RUN of %d bytes in buffer %d", ErrFailed, r.bytes, r.buffer)
	}
	item := Item{Frame: m.frame, Capture: r.capture, In: h.input[:r.bytes]}
	n := 0
	if r.buffer > 0 {
		n, err = h.held[r.buffer].run(h.p, item, h.out)
	} else {
		n, err = h.p.Run(item, h.out)
	}
	switch {
	case *failed != nil:
		return *failed
	case err != nil:
		return h.send(typeDone, m.frame, 1, []byte(err.Error()))
	}
	h.buf = native.AppendUint64(h.buf[:0], uint64(n))
	return h.send(typeDone, m.frame, 0, h.buf)
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

// run processes a frame in the DMA buffer. DMA_BUF_IOCTL_SYNC of <linux/dma-buf.h> first makes
// the driver's writes visible to the CPU. Memory of other kinds rejects it.
func (b *mapped) run(p *Plugin, item Item, out []byte) (int, error) {
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
	n, err := p.Run(item, out)
	flags |= end
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(b.FD), sync, uintptr(unsafe.Pointer(&flags)))
	return n, err
}
