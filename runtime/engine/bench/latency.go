package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// latency is what the core costs beside its work. Calls are counted by the hundred: one
// is shorter than the clock can tell.
func latency(r *rig) ([]benchmark, error) {
	b, err := r.alloc(4096, core.MemAuto)
	if err != nil {
		return nil, err
	}
	var list []benchmark
	call := r.calls("an empty call from Go into C", func() error { c.Nothing(); return nil })
	for _, n := range []int{1, 16, 64} {
		l := r.stream.List()
		for range n {
			l.Memset(b.At(0, 1), 1)
		}
		list = append(list, benchmark{
			name: fmt.Sprintf("submit a list of %d", n), run: r.submitting(l.Submit), reference: call,
		})
	}
	graph, err := r.graphOf(b)
	if err != nil {
		return nil, err
	}
	list = append(list, graph)
	wait, err := r.waiting(b)
	if err != nil {
		return nil, err
	}
	pool, err := r.pooled()
	if err != nil {
		return nil, err
	}
	return append(list, wait, pool), nil
}

const calls = 200

// calls is a reference in Go, on any backend.
func (r *rig) calls(name string, one func() error) *reference {
	return &reference{name: name, foreign: true, run: func() (time.Duration, error) {
		took, err := r.clock(func() error {
			for range calls {
				if err := one(); err != nil {
					return err
				}
			}
			return nil
		})
		return took / calls, err
	}}
}

// submitting is the time of one submission, without the time of its work on devices
// that queue it.
func (r *rig) submitting(submit func() error) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		took, err := r.clock(func() error {
			for range calls {
				if err := submit(); err != nil {
					return err
				}
			}
			return nil
		})
		return took / calls, errors.Join(err, r.stream.Wait(ctx))
	}
}

// graphOf replays 16 commands; the reference submits them.
func (r *rig) graphOf(b *core.Buffer) (benchmark, error) {
	l := r.stream.List()
	for range 16 {
		l.Memset(b.At(0, 1), 1)
	}
	g, err := r.stream.Record(l.Submit)
	if err != nil {
		return benchmark{}, err
	}
	r.cleanup = append(r.cleanup, g.Release)
	again := r.submitting(l.Submit)
	return benchmark{
		name: "replay a graph of 16", run: r.submitting(func() error { return g.Launch(r.stream) }),
		reference: &reference{name: "submitting the same list", run: func() (time.Duration, error) { return again(context.Background()) }},
	}, nil
}

// waiting is a list's way through a queued stream and back: two hand-overs between
// threads, or a kernel's start and end. The reference is a Go channel there and back.
func (r *rig) waiting(b *core.Buffer) (benchmark, error) {
	s, err := r.d.OpenStream(core.StreamOptions{Queued: true, Name: "bench"})
	if err != nil {
		return benchmark{}, err
	}
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
			return byWall(func() error { return errors.Join(l.Submit(), s.Wait(ctx)) })
		},
		reference: &reference{name: "a Go channel there and back", foreign: true, run: func() (time.Duration, error) {
			return byWall(func() error {
				there <- struct{}{}
				<-back
				return nil
			})
		}},
	}, nil
}

// pooled is 1 MiB from a pool and back; the reference takes it from the device.
func (r *rig) pooled() (benchmark, error) {
	const n = 1 << 20
	p, err := r.d.NewPool(core.PoolOptions{})
	if err != nil {
		return benchmark{}, err
	}
	r.cleanup = append(r.cleanup, p.Release)
	take := func(alloc func() (*core.Buffer, error)) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			took, err := r.clock(func() error {
				for range calls {
					b, err := alloc()
					if err != nil {
						return err
					}
					if err := b.Release(); err != nil {
						return err
					}
				}
				return nil
			})
			return took / calls, err
		}
	}
	own := take(func() (*core.Buffer, error) { return p.Alloc(n) })
	return benchmark{
		name:      "allocate and free " + size(n) + " of a pool",
		run:       func(context.Context) (time.Duration, error) { return own() },
		reference: &reference{name: "the same without a pool", run: take(func() (*core.Buffer, error) { return r.d.Alloc(n, core.MemAuto) })},
	}, nil
}
