package bench

import (
	"context"
	"math"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// Ceilings are the highest rates that the device reached in this run, the roofs of the
// roofline model.
type Ceilings struct {
	Memory  []MemoryCeiling  `json:"memory"`  // by working set, ascending
	Compute []ComputeCeiling `json:"compute"` // by type of numbers
}

// MemoryCeiling applies to working sets of at most WorkingSet bytes. The last one applies
// to all larger ones as well.
type MemoryCeiling struct {
	WorkingSet int64  `json:"working_set"`
	Rate       int64  `json:"bytes_per_s"` // read and written
	By         string `json:"by"`          // what reached the rate
}

// ComputeCeiling applies to one type of numbers.
type ComputeCeiling struct {
	Numbers string `json:"numbers"` // "f32", "f16", "bf16", "i8"
	Rate    int64  `json:"flops_per_s"`
	By      string `json:"by"` // what reached the rate
}

// Roofline compares a kernel with the ceiling that limits it.
type Roofline struct {
	Bound string  `json:"bound"`    // "memory" or "compute"
	Floor int64   `json:"floor_ns"` // shortest possible time
	Share float64 `json:"share"`    // floor / p50
}

// rooflineOf returns the ceiling that limits b, or nil if none does. p50 is in ns.
func (c Ceilings) rooflineOf(b benchmark, p50 int64) *Roofline {
	var out *Roofline
	bound := func(name string, amount *int64, rate int64) {
		if amount == nil || *amount == 0 || rate == 0 || p50 == 0 {
			return
		}
		floor := int64(math.Round(float64(*amount) / float64(rate) * 1e9))
		if out == nil || floor > out.Floor {
			out = &Roofline{Bound: name, Floor: floor, Share: float64(floor) / float64(p50)}
		}
	}
	if b.bytes != nil {
		bound("memory", b.bytes, c.memoryRate(*b.bytes))
	}
	if b.flops == nil {
		return out
	}
	for _, v := range c.Compute {
		if v.Numbers == b.numbers {
			bound("compute", b.flops, v.Rate)
			return out
		}
	}
	return nil // without a compute ceiling the limit is unknown
}

// memoryRate returns the bytes per second for a working set of that many bytes.
func (c Ceilings) memoryRate(bytes int64) int64 {
	if len(c.Memory) == 0 {
		return 0
	}
	return c.Memory[c.memoryClass(bytes)].Rate
}

// memoryClass returns the index of the memory ceiling of a working set.
func (c Ceilings) memoryClass(bytes int64) int {
	for i, m := range c.Memory {
		if bytes <= m.WorkingSet {
			return i
		}
	}
	return len(c.Memory) - 1
}

// raise raises the ceilings that b exceeded. p50 is in ns.
func (c Ceilings) raise(b benchmark, p50 int64) {
	rate := func(amount *int64) int64 {
		if amount == nil || p50 == 0 {
			return 0
		}
		return int64(math.Ceil(float64(*amount) / float64(p50) * 1e9))
	}
	if v := rate(b.bytes); v != 0 && len(c.Memory) != 0 {
		// A smaller working set is never slower.
		for i := c.memoryClass(*b.bytes); i >= 0 && v > c.Memory[i].Rate; i-- {
			c.Memory[i].Rate, c.Memory[i].By = v, b.name
		}
	}
	for i := range c.Compute {
		if v := rate(b.flops); c.Compute[i].Numbers == b.numbers && v > c.Compute[i].Rate {
			c.Compute[i].Rate, c.Compute[i].By = v, b.name
		}
	}
}

// measureCeilings measures the ceilings in several ways; the fastest run counts.
func (r *rig) measureCeilings(ctx context.Context) Ceilings {
	c := Ceilings{Memory: []MemoryCeiling{}, Compute: []ComputeCeiling{}}
	for _, n := range []int{16 << 10, 128 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20} {
		c.Memory = append(c.Memory, r.memoryCeiling(ctx, n))
	}
	// A larger working set is never faster; a higher rate is noise.
	for i := len(c.Memory) - 2; i >= 0; i-- {
		if next := c.Memory[i+1]; next.Rate > c.Memory[i].Rate {
			c.Memory[i].Rate, c.Memory[i].By = next.Rate, next.By
		}
	}
	// The CPU computes 16-bit floats in float32.
	types, n := []core.Type{core.F32, core.I8}, 256
	if !r.onCPU() {
		types, n = []core.Type{core.F32, core.F16, core.BF16, core.I8}, 4096
	}
	for _, t := range types {
		if v := r.computeCeiling(ctx, t, n); v.Rate > 0 {
			c.Compute = append(c.Compute, v)
		}
	}
	return c
}

// measureRate returns amount per second in the fastest of seven runs.
func (r *rig) measureRate(ctx context.Context, amount int, run func(context.Context) (time.Duration, error)) int64 {
	best := time.Duration(math.MaxInt64)
	for range 7 {
		took, err := run(ctx)
		r.check(err)
		best = min(best, max(took, 1))
	}
	return int64(float64(amount) / best.Seconds())
}

// memoryCeiling measures the rate at n bytes read and n bytes written.
func (r *rig) memoryCeiling(ctx context.Context, n int) MemoryCeiling {
	c := MemoryCeiling{WorkingSet: int64(2 * n)}
	raise := func(by string, bytes int, run func(context.Context) (time.Duration, error)) {
		if rate := r.measureRate(ctx, bytes, run); rate > c.Rate {
			c.Rate, c.By = rate, by
		}
	}
	src, dst := r.alloc(n, core.MemAuto), r.alloc(n, core.MemAuto)
	host := r.fillWithNoise(src)
	times := max(1, min(64, (8<<20)/n))
	raise("copy of the core", 2*n, r.timeRepeated(times, func(l *core.List) { l.Copy(dst.All(), src.All()) }))
	if !r.onCPU() || !haveReferences {
		return c
	}
	to, values := make([]byte, n), floatsOf(src.Bytes())
	for _, way := range []struct {
		by    string
		bytes int
		run   func()
	}{
		{"memcpy of libc", 2 * n, func() { refMemcpy(to, host) }},
		{"memset of libc", n, func() { refMemset(to, 0x55) }},
		{"maximum in plain C, read only", n, func() { refMax(values) }},
	} {
		sample := r.timeAverage(times, func() error { way.run(); return nil })
		raise(way.by, way.bytes, func(context.Context) (time.Duration, error) { return sample() })
	}
	return c
}

// computeCeiling measures the fastest n by n matrix product. For float32 on the CPU it
// also measures the vector units in a loop that uses only registers.
func (r *rig) computeCeiling(ctx context.Context, t core.Type, n int) ComputeCeiling {
	c := ComputeCeiling{Numbers: typeName(t)}
	raise := func(by string, flops int, run func(context.Context) (time.Duration, error)) {
		if rate := r.measureRate(ctx, flops, run); rate > c.Rate {
			c.Rate, c.By = rate, by
		}
	}
	b, flops := r.product(t, n, n, n), 2*n*n*n
	raise("matrix product of the core", flops, b.run)
	if !r.onCPU() {
		return c
	}
	if b.reference != nil && b.reference.foreign {
		raise(b.reference.name, flops, func(context.Context) (time.Duration, error) { return b.reference.run() })
	}
	if t == core.F32 && haveReferences {
		const rounds = 1 << 16
		raise("multiply and add in registers, plain C", 128*rounds, func(context.Context) (time.Duration, error) {
			return r.clock(func() error { refFlops(rounds); return nil })
		})
	}
	return c
}
