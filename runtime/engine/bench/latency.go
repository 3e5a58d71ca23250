package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/core/c"
	"github.com/yoctune/yoctune/schema/units"
)

// callsPerSample is how many calls one sample times: a single call is shorter than the
// resolution of the clock.
const callsPerSample = 200

// latencySuite measures the overhead of the core: submitting, replaying, waiting and
// allocating.
func latencySuite(r *rig) []benchmark {
	b := r.alloc(4096, core.MemAuto)
	call := &reference{name: "an empty call from Go into C", foreign: true, run: r.timeAverage(callsPerSample, func() error { c.Nothing(); return nil })}
	var list []benchmark
	for _, n := range []int{1, 16, 64} {
		list = append(list, benchmark{
			name: fmt.Sprintf("submit a list of %d", n), run: r.timeSubmit(r.newFillList(b, n).Submit), reference: call,
		})
	}
	return append(list, r.graphBenchmark(b), r.waitBenchmark(b), r.poolBenchmark())
}

// newFillList returns a list of n commands that each set one byte.
func (r *rig) newFillList(b *core.Buffer, n int) *core.List {
	l := r.stream.List()
	for range n {
		l.Memset(b.At(0, 1), 1)
	}
	return l
}

// timeSubmit returns a function that measures one submission. On devices that queue the
// work, the time of the work itself is not included.
func (r *rig) timeSubmit(submit func() error) func(context.Context) (time.Duration, error) {
	sample := r.timeAverage(callsPerSample, submit)
	return func(ctx context.Context) (time.Duration, error) {
		took, err := sample()
		return took, errors.Join(err, r.stream.Wait(ctx))
	}
}

// graphBenchmark replays 16 commands. The reference submits the same list.
func (r *rig) graphBenchmark(b *core.Buffer) benchmark {
	l := r.newFillList(b, 16)
	g, err := r.stream.Record(l.Submit)
	r.check(err)
	r.cleanup = append(r.cleanup, g.Release)
	submit := r.timeSubmit(l.Submit)
	return benchmark{
		name: "replay a graph of 16", run: r.timeSubmit(func() error { return g.Launch(r.stream) }),
		reference: &reference{name: "submitting the same list", run: func() (time.Duration, error) { return submit(context.Background()) }},
	}
}

// waitBenchmark measures the round trip of a list through a queued stream: two hand-overs
// between threads, or the start and end of a kernel. The reference is the round trip of a
// value through two Go channels.
func (r *rig) waitBenchmark(b *core.Buffer) benchmark {
	s, err := r.d.OpenStream(core.StreamOptions{Queued: true, Name: "bench"})
	r.check(err)
	there, back := make(chan struct{}), make(chan struct{})
	go func() {
		for range there {
			back <- struct{}{}
		}
	}()
	r.cleanup = append(r.cleanup, func() error { close(there); return s.Release() })
	l := s.List().Memset(b.At(0, 1), 1)
	return benchmark{
		name: "submit to a queued stream and wait", clock: wallClock,
		run: func(ctx context.Context) (time.Duration, error) {
			return timeByWall(func() error { return errors.Join(l.Submit(), s.Wait(ctx)) })
		},
		reference: &reference{name: "round trip through Go channels", foreign: true, run: func() (time.Duration, error) {
			return timeByWall(func() error {
				there <- struct{}{}
				<-back
				return nil
			})
		}},
	}
}

// poolBenchmark allocates and frees 1 MiB from a pool. The reference allocates it from
// the device.
func (r *rig) poolBenchmark() benchmark {
	const n = 1 << 20
	p, err := r.d.NewPool(core.PoolOptions{})
	r.check(err)
	r.cleanup = append(r.cleanup, p.Release)
	timeAlloc := func(alloc func() (*core.Buffer, error)) func() (time.Duration, error) {
		return r.timeAverage(callsPerSample, func() error {
			b, err := alloc()
			if err != nil {
				return err
			}
			return b.Release()
		})
	}
	fromPool := timeAlloc(func() (*core.Buffer, error) { return p.Alloc(n) })
	return benchmark{
		name:      "allocate and free " + units.RoundSize(int64(n)) + " from a pool",
		run:       func(context.Context) (time.Duration, error) { return fromPool() },
		reference: &reference{name: "the same without a pool", run: timeAlloc(func() (*core.Buffer, error) { return r.d.Alloc(n, core.MemAuto) })},
	}
}
