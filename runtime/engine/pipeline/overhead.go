package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/backoff"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/trace"
)

// MeasureOverhead measures the cost of observing a pipeline. It returns this process's CPU time
// per frame of about a millisecond of work: plain, and with the recorder, the kernel's counters
// and a client that reads the snapshot at least once and then every second, as pipeline top and
// Prometheus do. Nothing else may run meanwhile.
func MeasureOverhead(ctx context.Context, frames int, observed bool) (perFrame time.Duration, err error) {
	const warm = 20 // uncounted frames, so that startup is not measured
	if frames <= warm {
		return 0, fmt.Errorf("%d frames: must be more than %d", frames, warm)
	}
	var began, ended time.Duration
	p := &Pipeline{}
	p.name, p.source, p.drain = "observed", &emptySource{left: frames}, time.Second
	p.capacity, p.policy = 4, block
	p.steps = []step{
		{id: "pre", run: func(context.Context, *frame.Frame) error { return nil }},
		{id: "work", run: func(context.Context, *frame.Frame) error { return spin() }},
	}
	p.frames = make([]frame.Frame, framesFor(p.steps, p.capacity, 0))
	for i := range p.frames {
		p.frames[i].Spent = make([]frame.Span, len(p.steps)+1)
	}
	p.sink = clockSink(func(r *result.Record) error {
		now, err := processTime()
		if r.Frame == warm {
			began = now
		}
		ended = now
		return err
	})
	if !observed {
		_, _, err = p.run(ctx)
		return (ended - began) / time.Duration(frames-1-warm), err
	}
	dir, err := os.MkdirTemp("", "yoctune-observed-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	p.trace, p.view.path = trace.New(0), filepath.Join(dir, pipelines.Socket)
	polling, stop := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		pollSnapshot(polling, p.view.path)
	}()
	_, err = p.Run(ctx)
	stop()
	<-gone
	return (ended - began) / time.Duration(frames-1-warm), err
}

// pollSnapshot reads the snapshot of a pipeline once a second. The reader's own cost is not
// counted.
func pollSnapshot(ctx context.Context, path string) {
	wait := 10 * time.Millisecond
	for ctx.Err() == nil {
		if c, err := net.Dial("unix", path); err == nil {
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
			wait = time.Second
		}
		backoff.WaitClosed(ctx.Done(), wait)
	}
}

// spin does about a millisecond of work that the compiler cannot remove.
func spin() error {
	x := uint64(1)
	for range 600_000 {
		x = x*6364136223846793005 + 1442695040888963407
	}
	if x == 0 {
		return errors.New("unlikely")
	}
	return nil
}

// processTime returns the CPU time of this process.
func processTime() (time.Duration, error) {
	var u unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}

// emptySource delivers a number of frames without pixels.
type emptySource struct{ left int }

func (*emptySource) Format() frame.Format { return frame.Format{Width: 2, Height: 2} }
func (*emptySource) Interrupt()           {}
func (*emptySource) Close() error         { return nil }
func (b *emptySource) ReadFrame([]byte) error {
	if b.left == 0 {
		return io.EOF
	}
	b.left--
	return nil
}

// clockSink only reads the clock.
type clockSink func(*result.Record) error

func (c clockSink) Write(r *result.Record) error { return c(r) }
func (clockSink) Close() error                   { return nil }
