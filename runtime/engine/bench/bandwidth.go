package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

const uncached = 64 << 20 // bytes that fit no cache

// bandwidth is a matrix of directions and sizes. On the CPU, sizes fit the first, the
// second and no cache; on a GPU the small one shows the cost of starting a copy.
func bandwidth(r *rig) ([]benchmark, error) {
	type path struct {
		name     string
		from, to core.Mode
	}
	paths := []path{
		{"host to device", core.MemPinned, core.MemDevice},
		{"device to host", core.MemDevice, core.MemPinned},
		{"device to device", core.MemDevice, core.MemDevice},
		{"mapped host to device", core.MemMapped, core.MemDevice},
	}
	sizes := []int{256 << 10, uncached}
	if r.onCPU() {
		paths, sizes = []path{{"host to host", core.MemHost, core.MemHost}}, []int{16 << 10, 256 << 10, 4 << 20, uncached}
	}
	var list []benchmark
	for _, p := range paths {
		for _, n := range sizes {
			b, err := r.copying(p.name, n, p.from, p.to)
			if err != nil {
				return nil, err
			}
			list = append(list, b)
		}
	}
	for _, n := range sizes {
		more, err := r.fillAndRead(n)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	b, err := r.peerCopy()
	if err != nil {
		return nil, err
	}
	return append(list, b...), nil
}

// times is how often a list does something of n bytes, so that the clock can tell.
func times(n int) int { return max(1, min(128, (1<<20)/n)) }

func (r *rig) copying(name string, n int, from, to core.Mode) (benchmark, error) {
	src, err := r.alloc(n, from)
	if err != nil {
		return benchmark{}, err
	}
	dst, err := r.alloc(n, to)
	if err != nil {
		return benchmark{}, err
	}
	host, err := r.filled(src)
	if err != nil {
		return benchmark{}, fmt.Errorf("fill %s: %w", name, err)
	}
	b := benchmark{
		name: fmt.Sprintf("copy %s, %s", name, size(n)), bytes: count(2 * n),
		run: r.repeated(times(n), func(l *core.List) { l.Copy(dst.All(), src.All()) }),
	}
	if r.onCPU() {
		out := make([]byte, n)
		b.reference = r.repeatedly(times(n), r.foreign("memcpy of libc", func() { refMemcpy(out, host) }))
	}
	return b, nil
}

// repeatedly is a reference run as often as what it stands beside.
func (r *rig) repeatedly(n int, ref *reference) *reference {
	if ref == nil || n == 1 {
		return ref
	}
	one := ref.do
	ref.run = func() (time.Duration, error) {
		took, err := r.clock(func() error {
			for range n {
				if err := one(); err != nil {
					return err
				}
			}
			return nil
		})
		return took / time.Duration(n), err
	}
	return ref
}

func (r *rig) fillAndRead(n int) ([]benchmark, error) {
	b, err := r.alloc(n, core.MemAuto)
	if err != nil {
		return nil, err
	}
	result, err := r.alloc(4, core.MemAuto)
	if err != nil {
		return nil, err
	}
	if err := r.upload(b, bytesOf(ramp(n/4))); err != nil {
		return nil, err
	}
	to, values := make([]byte, n), ramp(n/4)
	fill := benchmark{
		name: "fill, " + size(n), bytes: count(n),
		run:       r.repeated(times(n), func(l *core.List) { l.Memset(b.All(), 0x35) }),
		reference: r.repeatedly(times(n), r.foreign("memset of libc", func() { refMemset(to, 0x35) })),
	}
	read := benchmark{
		name: "read, " + size(n), bytes: count(n),
		run:       r.repeated(times(n), func(l *core.List) { l.Reduce(result.All(), b.All(), core.Max) }),
		reference: r.repeatedly(times(n), r.plain("maximum in plain C", func() { refMax(values) })),
	}
	if r.others.blas != nil {
		read.reference = r.repeatedly(times(n), r.foreign("cblas_isamax of "+r.others.blas.name(), func() { r.others.blas.largest(values) }))
	}
	return []benchmark{fill, read}, nil
}

// peerCopy is from another device of the backend, where there is one.
func (r *rig) peerCopy() ([]benchmark, error) {
	info, err := r.d.Info()
	if err != nil {
		return nil, err
	}
	o := core.Options{Backend: info.Backend, Library: r.library}
	n, err := core.Count(o)
	if err != nil || n < 2 {
		return nil, err
	}
	o.Index = (r.d.Index() + 1) % n
	other, err := core.Open(o)
	if err != nil {
		return nil, err
	}
	r.cleanup = append(r.cleanup, other.Close)
	src, err := other.Alloc(uncached, core.MemAuto)
	if err != nil {
		return nil, err
	}
	dst, err := r.alloc(uncached, core.MemAuto)
	if err != nil {
		return nil, err
	}
	caps, err := core.CanPeer(other, r.d)
	if err != nil {
		return nil, err
	}
	how := "through host memory"
	if caps.Direct && caps.Checked {
		how = "directly"
	}
	return []benchmark{{
		name: fmt.Sprintf("copy from device %d, %s, %s", o.Index, how, size(uncached)), bytes: count(2 * uncached), clock: wallClock,
		run: func(ctx context.Context) (time.Duration, error) {
			return byWall(func() error {
				if _, err := core.CopyPeer(r.stream, dst.All(), src.All()); err != nil {
					return err
				}
				return r.stream.Wait(ctx)
			})
		},
	}}, nil
}
