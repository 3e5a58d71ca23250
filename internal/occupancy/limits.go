package occupancy

import "slices"

// Limits are the valid block sizes of a built-in kernel.
type Limits struct {
	Kernel         string
	Min, Max, Step int // threads
}

// Launchable returns the kernels with more than one block size. A test compares them with
// the table of the core, runtime/engine/core/c/yt_names.h.
func Launchable() []Limits {
	return []Limits{
		{"convert", 32, 256, 32}, {"copy", 32, 256, 32}, {"preprocess", 32, 256, 32}, {"roi", 32, 256, 32},
	}
}

// LimitsOf returns the limits of a kernel.
func LimitsOf(kernel string) (Limits, bool) {
	all := Launchable()
	i := slices.IndexFunc(all, func(l Limits) bool { return l.Kernel == kernel })
	if i < 0 {
		return Limits{}, false
	}
	return all[i], true
}

// Allows reports whether the kernel can be launched with blocks of that many threads.
func (l Limits) Allows(block int) bool { return block >= l.Min && block <= l.Max && block%l.Step == 0 }

// BestBlock returns the valid block size with the highest occupancy on a device; among equals
// the largest.
func (l Limits) BestBlock(d Device, k Kernel) (block int, o Occupancy, err error) {
	for b := l.Max; b >= l.Min; b -= l.Step {
		got, err := d.Occupancy(k, b, 0)
		if err != nil {
			return 0, o, err
		}
		if got.Warps > o.Warps {
			block, o = b, got
		}
	}
	return block, o, nil
}
