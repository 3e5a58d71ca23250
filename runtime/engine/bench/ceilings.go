package bench

import (
	"context"
	"math"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// Ceilings are the most that this device did in this run: what a kernel is measured
// against in a roofline.
type Ceilings struct {
	Memory  []MemoryCeiling  `json:"memory"`  // by working set, ascending
	Compute []ComputeCeiling `json:"compute"` // by type of numbers
}

// MemoryCeiling holds for working sets of at most that many bytes; the last for all
// that are larger.
type MemoryCeiling struct {
	WorkingSet int64  `json:"working_set"`
	Rate       int64  `json:"bytes_per_s"` // read and written
	By         string `json:"by"`
}

// ComputeCeiling is of one type of numbers.
type ComputeCeiling struct {
	Numbers string `json:"numbers"` // "f32", "f16", "bf16", "i8"
	Rate    int64  `json:"flops_per_s"`
	By      string `json:"by"`
}

// Roofline says how near a kernel comes to the ceiling that stops it first.
type Roofline struct {
	Bound string  `json:"bound"` // "memory" or "compute"
	Floor int64   `json:"floor_ns"`
	Share float64 `json:"share"` // floor / p50
}

// of judges a benchmark; nil when nothing bounds it.
func (c Ceilings) of(b benchmark, p50 int64) *Roofline {
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
		bound("memory", b.bytes, c.memory(*b.bytes))
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
	return nil // what memory allows says nothing of a kernel that computes
}

func (c Ceilings) memory(bytes int64) int64 {
	if len(c.Memory) == 0 {
		return 0
	}
	return c.Memory[c.class(bytes)].Rate
}

// class is the memory ceiling of a working set.
func (c Ceilings) class(bytes int64) int {
	for i, m := range c.Memory {
		if bytes <= m.WorkingSet {
			return i
		}
	}
	return len(c.Memory) - 1
}

// raise takes what a benchmark did for a ceiling, where that was more.
func (c Ceilings) raise(b benchmark, p50 int64) {
	rate := func(amount *int64) int64 {
		if amount == nil || p50 == 0 {
			return 0
		}
		return int64(math.Ceil(float64(*amount) / float64(p50) * 1e9))
	}
	if v := rate(b.bytes); v != 0 && len(c.Memory) != 0 {
		// A smaller working set is never slower.
		for i := c.class(*b.bytes); i >= 0 && v > c.Memory[i].Rate; i-- {
			c.Memory[i].Rate, c.Memory[i].By = v, b.name
		}
	}
	for i := range c.Compute {
		if v := rate(b.flops); c.Compute[i].Numbers == b.numbers && v > c.Compute[i].Rate {
			c.Compute[i].Rate, c.Compute[i].By = v, b.name
		}
	}
}

// ceilings measures them: the quickest of several ways and of several runs.
func (r *rig) ceilings(ctx context.Context) (Ceilings, error) {
	c := Ceilings{Memory: []MemoryCeiling{}, Compute: []ComputeCeiling{}}
	for _, n := range []int{16 << 10, 128 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20} {
		m, err := r.memoryCeiling(ctx, n)
		if err != nil {
			return c, err
		}
		c.Memory = append(c.Memory, m)
	}
	// A larger working set is never quicker; that it looks so is noise.
	for i := len(c.Memory) - 2; i >= 0; i-- {
		if next := c.Memory[i+1]; next.Rate > c.Memory[i].Rate {
			c.Memory[i].Rate, c.Memory[i].By = next.Rate, next.By
		}
	}
	// A CPU computes halves in float32.
	types, n := []core.Type{core.F32, core.I8}, 256
	if !r.onCPU() {
		types, n = []core.Type{core.F32, core.F16, core.BF16, core.I8}, 4096
	}
	for _, t := range types {
		v, err := r.computeCeiling(ctx, t, n)
		if err != nil {
			return c, err
		}
		if v.Rate > 0 {
			c.Compute = append(c.Compute, v)
		}
	}
	return c, nil
}

// quickest of a few runs.
func quickest(ctx context.Context, run func(context.Context) (time.Duration, error)) (time.Duration, error) {
	best := time.Duration(math.MaxInt64)
	for range 7 {
		took, err := run(ctx)
		if err != nil {
			return 0, err
		}
		best = min(best, max(took, 1))
	}
	return best, nil
}

func (r *rig) memoryCeiling(ctx context.Context, n int) (MemoryCeiling, error) {
	c := MemoryCeiling{WorkingSet: int64(2 * n)}
	take := func(by string, bytes int, run func(context.Context) (time.Duration, error)) error {
		best, err := quickest(ctx, run)
		if rate := int64(float64(bytes) / best.Seconds()); err == nil && rate > c.Rate {
			c.Rate, c.By = rate, by
		}
		return err
	}
	src, err := r.alloc(n, core.MemAuto)
	if err != nil {
		return c, err
	}
	dst, err := r.alloc(n, core.MemAuto)
	if err != nil {
		return c, err
	}
	host, err := r.filled(src)
	if err != nil {
		return c, err
	}
	times := max(1, min(64, (8<<20)/n))
	if err := take("copy of the core", 2*n, r.repeated(times, func(l *core.List) { l.Copy(dst.All(), src.All()) })); err != nil {
		return c, err
	}
	if !r.onCPU() || !haveReferences {
		return c, nil
	}
	to, values := make([]byte, n), floatsOf(src.Bytes())
	for _, way := range []struct {
		by    string
		bytes int
		run   func()
	}{
		{"memcpy of libc", 2 * n, func() { refMemcpy(to, host) }},
		{"memset of libc", n, func() { refMemset(to, 0x55) }},
		{"maximum in plain C, which only reads", n, func() { refMax(values) }},
	} {
		err := take(way.by, way.bytes*times, func(context.Context) (time.Duration, error) {
			return r.clock(func() error {
				for range times {
					way.run()
				}
				return nil
			})
		})
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// computeCeiling is the best product of matrices, and for float32 on the CPU what its
// vector units do in a loop without memory.
func (r *rig) computeCeiling(ctx context.Context, t core.Type, n int) (ComputeCeiling, error) {
	c := ComputeCeiling{Numbers: typeName(t)}
	take := func(by string, flops float64, run func(context.Context) (time.Duration, error)) error {
		best, err := quickest(ctx, run)
		if rate := int64(flops / best.Seconds()); err == nil && rate > c.Rate {
			c.Rate, c.By = rate, by
		}
		return err
	}
	b, err := r.product(t, n, n, n)
	if err != nil {
		return c, err
	}
	flops := 2 * float64(n) * float64(n) * float64(n)
	if err := take("product of the core", flops, b.run); err != nil || !r.onCPU() {
		return c, err
	}
	if b.reference != nil && b.reference.foreign {
		if err := take(b.reference.name, flops, func(context.Context) (time.Duration, error) { return b.reference.run() }); err != nil {
			return c, err
		}
	}
	if t != core.F32 || !haveReferences {
		return c, nil
	}
	const rounds = 1 << 16
	err = take("multiply and add in registers, plain C", 128*rounds, func(context.Context) (time.Duration, error) {
		return r.clock(func() error { refFlops(rounds); return nil })
	})
	return c, err
}
