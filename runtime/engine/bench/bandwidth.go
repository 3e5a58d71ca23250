package bench

import (
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/schema/units"
)

const uncached = 64 << 20 // bytes; larger than every cache

// bandwidthSuite measures copies and reads by direction and size. On the CPU the
// sizes fit the first-level cache, the second-level cache and no cache. On a GPU the
// small size shows the cost of starting a copy.
func bandwidthSuite(r *rig) []benchmark {
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
			list = append(list, r.copyBenchmark(p.name, n, p.from, p.to))
		}
	}
	for _, n := range sizes {
		list = append(list, r.readBenchmark(n))
	}
	return list
}

// repetitions returns how often one timed list repeats an operation on n bytes, so that
// the list takes much longer than the resolution of the clock.
func repetitions(n int) int { return max(1, min(128, (1<<20)/n)) }

func (r *rig) copyBenchmark(name string, n int, from, to core.Mode) benchmark {
	src, dst := r.alloc(n, from), r.alloc(n, to)
	host := r.fillWithNoise(src)
	b := benchmark{
		name: fmt.Sprintf("copy %s, %s", name, units.RoundSize(int64(n))), bytes: count(2 * n),
		run: r.timeRepeated(repetitions(n), func(l *core.List) { l.Copy(dst.All(), src.All()) }),
	}
	if r.onCPU() {
		out := make([]byte, n)
		b.reference = r.repeatReference(repetitions(n), r.foreignReference("memcpy of libc", func() { refMemcpy(out, host) }))
	}
	return b
}

// repeatReference makes ref run n times per sample, as often as the benchmark that it is
// compared with.
func (r *rig) repeatReference(n int, ref *reference) *reference {
	if ref != nil && n > 1 {
		ref.run = r.timeAverage(n, ref.do)
	}
	return ref
}

func (r *rig) readBenchmark(n int) benchmark {
	values := ramp(n / 4)
	b, result := r.tensor(bytesOf(values)), r.alloc(4, core.MemAuto)
	ref := r.plainReference("maximum in plain C", func() { refMax(values) })
	if r.libraries.blas != nil {
		ref = r.foreignReference("cblas_isamax of "+r.libraries.blas.name(), func() { r.libraries.blas.indexOfMax(values) })
	}
	return benchmark{
		name: "read, " + units.RoundSize(int64(n)), bytes: count(n),
		run:       r.timeRepeated(repetitions(n), func(l *core.List) { l.Reduce(result.All(), b.All(), core.Max) }),
		reference: r.repeatReference(repetitions(n), ref),
	}
}
