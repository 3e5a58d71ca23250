package custom

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Header is the header that plug-ins are written against.
//
//go:embed yoctune_stage.h
var Header string

// Command is the name of the hidden command that keeps a plug-in.
const Command = "stage-host"

// Serve keeps a plug-in in this process for the pipeline that started it: the other
// side of the protocol. It returns when its input ends.
func Serve(path string) error {
	out := os.Stdout
	// What a plug-in prints must not come between messages.
	os.Stdout = os.Stderr
	fd, err := unix.Dup(int(out.Fd()))
	if err == nil {
		err = unix.Dup3(int(os.Stderr.Fd()), int(out.Fd()), 0)
	}
	if err != nil {
		return err
	}
	c := wire{r: os.Stdin, w: os.NewFile(uintptr(fd), "messages")}
	m, err := c.receive()
	if err != nil || m.typ != typeOpen {
		return fmt.Errorf("%w: this command is what yoctuned starts for a plug-in: %w", ErrFailed, orElse(err, errors.New("no OPEN")))
	}
	o, err := readOpen(m.payload)
	if err != nil {
		return err
	}
	const shared = 3
	mem, err := unix.Mmap(shared, 0, o.size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map the shared memory: %w", err)
	}
	if o.inAt < 0 || o.outAt < o.inAt+o.in.Bytes || o.size < o.outAt+o.out.Bytes {
		return fmt.Errorf("%w: places outside of the shared memory", ErrFailed)
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
	if err := c.send(typeReady, 0, 0, nil); err != nil {
		return err
	}
	for {
		m, err := c.receive()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.typ != typeRun || len(m.payload) < 8:
			return fmt.Errorf("%w: message %d", ErrFailed, m.typ)
		}
		frame = m.frame
		capture := int64(native.Uint64(m.payload))
		n, err := p.Run(frame, capture, mem[o.inAt:][:o.in.Bytes], mem[o.outAt:][:o.out.Bytes])
		switch {
		case failed != nil:
			return failed
		case err != nil:
			err = c.send(typeDone, frame, 1, []byte(err.Error()))
		default:
			err = c.send(typeDone, frame, 0, native.AppendUint64(buf[:0], uint64(n)))
		}
		if err != nil {
			return err
		}
	}
}
