package pipeline

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/sink"
	"github.com/yoctune/yoctune/runtime/engine/trace"
)

// envSoak is the number of frames of the long run.
const envSoak = "YOCTUNE_SOAK_FRAMES"

// view reads back what a recorder writes.
func view(t testing.TB, r *trace.Recorder, f trace.Filter) *trace.View {
	t.Helper()
	var b bytes.Buffer
	if err := trace.Write(&b, r, "test", trace.Chrome); err != nil {
		t.Fatal(err)
	}
	v, err := trace.Read(&b, f)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// faulty is a stage in which, from a fixed seed, some frames fail, some batches
// run out of memory, and some runs hang until they are cancelled.
type faulty struct {
	seed  uint64
	stop  []chan struct{}
	hangs atomic.Uint64
}

func (f *faulty) run(ctx context.Context, instance int, frames []*frame.Frame) error {
	h := rand.New(rand.NewPCG(f.seed, frames[0].ID)).Uint64()
	switch {
	case h%20011 == 0:
		f.hangs.Add(1)
		select {
		case <-f.stop[instance]:
		case <-ctx.Done():
		}
		return errors.New("cancelled")
	case h%499 == 0:
		return errors.New("injected")
	case h%257 == 0 && len(frames) > 2:
		return errNoMemory
	}
	return nil
}

// memory is this process's resident set in KiB.
func resident(t *testing.T) int {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(v), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return kb
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// probe is a source that looks at the process as it goes.
type probe struct {
	counted
	every, given int
	look         func()
	wait         func() // for room, three frames of four
}

func (p *probe) ReadFrame(b []byte) error {
	if p.given++; p.given%p.every == 0 {
		p.look()
	}
	if p.given%4 != 0 {
		p.wait()
	}
	return p.counted.ReadFrame(b)
}

// In a long run with faults of every kind, every frame is counted once, every slot is
// returned, and neither memory nor goroutines grow.
func TestEveryFrameIsCounted(t *testing.T) {
	frames := 100_000
	if s := os.Getenv(envSoak); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%s: %v", envSoak, err)
		}
		frames = n
	}
	for _, c := range []struct {
		name   string
		policy policy
		wide   bool // three instances, batches and few credits; else one goroutine may do all
	}{{"block", block, true}, {"drop-oldest", dropOldest, true}, {"drop-newest", dropNewest, true}, {"direct", block, false}} {
		t.Run(c.name, func(t *testing.T) {
			p, frames := c.policy, frames/4
			bad := &faulty{seed: 42}
			for range 3 {
				bad.stop = append(bad.stop, make(chan struct{}, 1))
			}
			var rss, routines []int
			src := &probe{counted: counted{n: frames}, every: frames / 10, look: func() {
				rss, routines = append(rss, resident(t)), append(routines, runtime.NumGoroutine())
			}}
			trouble := 0
			sink := sinkFunc(func(r *result.Record) error {
				if trouble++; trouble%5000 < 20 {
					return sink.ErrDegraded
				}
				return nil
			})
			var e *engine
			src.wait = func() {
				for e.queues[0].len() > 0 {
					runtime.Gosched()
				}
			}
			model := step{
				id: "model", batch: bad.run, deadline: 2 * time.Millisecond,
				cancel: func(i int) { bad.stop[i] <- struct{}{} },
				resume: func(i int) {
					select { // the run may have ended by itself meanwhile
					case <-bad.stop[i]:
					default:
					}
				},
			}
			post := step{id: "post", run: nothing}
			if c.wide {
				model.buckets, model.instances, model.delay = []int{1, 2, 4}, 3, 5*time.Microsecond
				post.instances = 2
			}
			e = newEngine(src, sink, 2, p, step{id: "pre", run: nothing}, model, post)
			e.maxAge = int64(500 * time.Millisecond)
			if c.wide {
				e.credits = 12
			}
			s, stuck, err := e.run(t.Context())
			if stuck || errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%v, stuck %t", err, stuck)
			}
			balanced(t, s)
			if len(e.free) != len(e.frames) {
				t.Errorf("%d of %d slots came back", len(e.free), len(e.frames))
			}
			if got := e.inflight.Load(); got != 0 {
				t.Errorf("%d credits are missing", got)
			}
			if s.Frames.Read != uint64(frames) {
				t.Errorf("%d frames read", s.Frames.Read)
			}
			if p == block && (s.Frames.Failed == 0 || s.Drops["sink-degraded"] == 0) {
				t.Errorf("the faults did not happen: %+v %v", s.Frames, s.Drops)
			}
			// The first looks are before everything has been touched.
			for n := 4; n < len(rss); n++ {
				if rss[n] > rss[3]+8<<10 || routines[n] > slices.Max(routines[:4])+2 {
					t.Errorf("after %d frames %d KiB and %d goroutines, early %d and %d", n*src.every, rss[n], routines[n], rss[3], slices.Max(routines[:4]))
					break
				}
			}
			t.Logf("%d frames: %d done, %d dropped %v, %d failed, %d hangs; %d to %d KiB, %d goroutines; %.1f µs a frame",
				s.Frames.Read, s.Frames.Done, s.Frames.Dropped, s.Drops, s.Frames.Failed, bad.hangs.Load(),
				rss[3], rss[len(rss)-1], routines[len(routines)-1], float64(s.Duration)/1e3/float64(s.Frames.Read))
		})
	}
}
