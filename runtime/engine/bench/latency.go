package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// callsPerSample is how many calls one sample times: a single call is shorter than the
// resolution of the clock.
const callsPerSample = 200

// latencySuite measures the overhead of the core: submitting and waiting.
func latencySuite(r *rig) []benchmark {
	b := r.alloc(4096, core.MemAuto)
	call := &reference{name: "an empty call from Go into C", foreign: true, run: r.timeAverage(callsPerSample, func() error { c.Nothing(); return nil })}
	var list []benchmark
	for _, n := range []int{1, 16, 64} {
		list = append(list, benchmark{
			name: fmt.Sprintf("submit a list of %d", n), run: r.timeSubmit(oneByteList(r.stream, b, n).Submit), reference: call,
		})
	}
	return append(list, r.waitBenchmark(b))
}

// oneByteList returns a list of n commands that each convert one byte.
func oneByteList(s *core.Stream, b *core.Buffer, n int) *core.List {
	l := s.List()
	for range n {
		l.Convert(b.At(0, 1), b.At(1, 1), core.Region{}, core.ConvertArgs{In: uint8(core.U8), Out: uint8(core.U8), N: 1, C: 1, H: 1, W: 1, Scale: 1})
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
	l := oneByteList(s, b, 1)
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
