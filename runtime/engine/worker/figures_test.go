package worker

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// frameWork is a 1080p frame and its tensor, in the worker and here.
type frameWork struct {
	c    *Client
	dev  *core.Device
	list *core.List
	here core.Preprocess
}

func newFrameWork(t testing.TB, o Options) *frameWork {
	t.Helper()
	const w, h, side = 1920, 1080, 640
	frame := core.FrameBytes(core.NV12, w, h)
	tensor := (frame + 4095) / 4096 * 4096
	o.Bytes = tensor + 3*4*side*side
	f := &frameWork{c: start(t, o)}
	for i := range f.c.Memory()[:frame] {
		f.c.Memory()[i] = byte(i * 7)
	}
	p := core.Preprocess{Format: core.NV12, Width: w, Height: h, OutW: side, OutH: side, Fit: core.Letterbox}
	f.list = f.c.Draft().List().Preprocess(f.c.Region(tensor, 3*4*side*side), [3]core.Region{f.c.Region(0, w*h), f.c.Region(w*h, frame-w*h)}, &p)
	var err error
	if f.dev, err = core.Open(core.Options{Backend: core.CPU}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.dev.Close() })
	f.here = p
	f.here.Out = make([]float32, 3*side*side)
	if f.here.Planes, err = core.SplitPlanes(core.NV12, w, h, f.c.Memory()[:frame]); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *frameWork) runInWorker(limit time.Duration) error { return f.c.Run(0, f.list, limit) }
func (f *frameWork) runOnCPU() error                       { return f.dev.Preprocess(context.Background(), f.here) }

// measureTimes runs f n times and returns the durations, sorted.
func measureTimes(t testing.TB, n int, f func() error) times {
	t.Helper()
	out := make(times, n)
	for i := range out {
		began := time.Now()
		if err := f(); err != nil {
			t.Fatal(err)
		}
		out[i] = time.Since(began)
	}
	slices.Sort(out)
	return out
}

type times []time.Duration

func (t times) percentile(percent int) time.Duration { return t[min(len(t)*percent/100, len(t)-1)] }

func (t times) row(unit time.Duration, what string) string {
	in := func(d time.Duration) string { return fmt.Sprintf("%.4g", float64(d)/float64(unit)) }
	return fmt.Sprintf("| %s | %d | %s | %s | %s | %s |\n", what, len(t), in(t[0]), in(t.percentile(50)), in(t.percentile(95)), in(t[len(t)-1]))
}

// BenchmarkMessage is a list of one command that does next to nothing, in the worker
// and in this process.
func BenchmarkMessage(b *testing.B) {
	c := start(b, Options{})
	list := fill(c, 0, 8, 1)
	b.Run("worker", func(b *testing.B) {
		for b.Loop() {
			if err := c.Run(0, list, limit); err != nil {
				b.Fatal(err)
			}
		}
	})
	dev, err := core.Open(core.Options{Backend: core.CPU})
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	s, err := dev.NewStream()
	if err != nil {
		b.Fatal(err)
	}
	buf, err := dev.Alloc(16, core.MemMapped)
	if err != nil {
		b.Fatal(err)
	}
	own := s.List().Copy(buf.At(0, 8), buf.At(8, 8))
	b.Run("here", func(b *testing.B) {
		for b.Loop() {
			if err := own.Submit(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestFigures measures the cost of isolation, and how fast a lost worker is detected and
// replaced. It writes the results to the file that YOCTUNE_FIGURES names.
func TestFigures(t *testing.T) {
	name := os.Getenv("YOCTUNE_FIGURES")
	if name == "" {
		t.Skip("this measurement takes a minute; set YOCTUNE_FIGURES to its output file")
	}
	const losses, deadline = 100, 60 * time.Millisecond
	load := loadAverage(t)
	var out strings.Builder
	head := func(unit string) string {
		return "| " + unit + " | n | least | p50 | p95 | most |\n|---|---|---|---|---|---|\n"
	}

	f := newFrameWork(t, Options{Backoff: Backoff{First: time.Microsecond, Max: time.Microsecond, Limit: 10 * losses}})
	small := fill(f.c, 0, 8, 1)
	message := measureTimes(t, 5000, func() error { return f.c.Run(0, small, limit) })
	s, err := f.dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	buf, err := f.dev.Alloc(16, core.MemMapped)
	if err != nil {
		t.Fatal(err)
	}
	own := s.List().Copy(buf.At(0, 8), buf.At(8, 8))
	submit := measureTimes(t, 5000, own.Submit)
	away := measureTimes(t, 300, func() error { return f.runInWorker(limit) })
	here := measureTimes(t, 300, f.runOnCPU)
	out.WriteString(head("µs") + message.row(time.Microsecond, "message: one command that does next to nothing, in the worker") +
		submit.row(time.Microsecond, "the same list submitted in this process") +
		away.row(time.Microsecond, "1080p NV12 to 640x640 float32 in the worker") + here.row(time.Microsecond, "the same in this process"))

	var late, noticed, refused, reaped, replaced times
	for n := range losses {
		kill := n%2 == 1
		ready(t, f.c)
		checkWorks(t, f.c)
		in := f.c.now.Load()
		var began time.Time
		if kill {
			began = time.Now()
			if err := unix.Kill(in.proc.pid(), unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			err = f.runInWorker(time.Hour)
		} else {
			if err := f.c.InjectFaults(0, "launch:hang=2s", limit); err != nil {
				t.Fatal(err)
			}
			began = time.Now().Add(deadline)
			err = f.runInWorker(deadline)
		}
		if err != nil && !IsWorkerFault(err) {
			t.Fatal(err)
		}
		if err == nil { // it was quicker than the signal
			continue
		}
		if err := f.runOnCPU(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); kill {
			noticed = append(noticed, d)
		} else {
			late = append(late, d)
		}
		again := time.Now()
		if err := f.runInWorker(time.Hour); err != nil {
			refused = append(refused, time.Since(again))
		}
		<-in.reaped
		reaped = append(reaped, time.Since(in.killed))
		was := in
		waitUntil(t, "another worker", func() bool { now := f.c.now.Load(); return now != nil && now != was })
		replaced = append(replaced, time.Since(in.killed))
	}
	for _, t := range []times{late, noticed, refused, reaped, replaced} {
		slices.Sort(t)
	}
	out.WriteString("\n" + head("ms") + late.row(time.Millisecond, "past the deadline of 60 ms until the CPU had done the frame of a worker that hangs") +
		noticed.row(time.Millisecond, "SIGKILL of the worker until the CPU had done its frame") + refused.row(time.Millisecond, "a call without a worker") +
		reaped.row(time.Millisecond, "loss until the process was reaped") + replaced.row(time.Millisecond, "loss until the next worker was ready and warm"))
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`# The process for the GPU: what isolation costs and how fast a loss is left

The CPU backend stands in for the GPU, in a process of its own as the GPU would be. No
GPU was at hand: on an H200 a new CUDA context took some 230 ms and a killed process some
100 ms to be reaped, in an earlier measurement, which adds to the last two rows and to no
other. The frame is 1920x1080 NV12.

%d processors, Linux %s, load %s at the start and %s at the end.
Made by: YOCTUNE_FIGURES=FILE go test ./runtime/engine/worker -run TestFigures

%s`, runtime.NumCPU(), unix.ByteSliceToString(u.Release[:]), load, loadAverage(t), out.String())
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log(text)
}

func loadAverage(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(b))[0]
}
