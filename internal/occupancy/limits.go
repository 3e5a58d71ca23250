package occupancy

import "slices"

// Limits are the block sizes that a built-in kernel takes.
type Limits struct {
	Kernel         string
	Min, Max, Step int // threads
}

// Launchable are the kernels that take more than one block size. A test compares them
// with the core's own table, runtime/engine/core/c/yt_names.h.
func Launchable() []Limits {
	return []Limits{
		{"convert", 32, 256, 32}, {"copy", 32, 256, 32}, {"map", 32, 256, 32}, {"preprocess", 32, 256, 32}, {"roi", 32, 256, 32},
	}
}

// LimitsOf finds those of a kernel.
func LimitsOf(kernel string) (Limits, bool) {
	all := Launchable()
	i := slices.IndexFunc(all, func(l Limits) bool { return l.Kernel == kernel })
	if i < 0 {
		return Limits{}, false
	}
	return all[i], true
}

// Takes reports whether the kernel takes blocks of so many threads.
func (l Limits) Takes(block int) bool { return block >= l.Min && block <= l.Max && block%l.Step == 0 }

// Fullest is the block size that the kernel takes with the most warps at once on a
// device, the largest of equals.
func (l Limits) Fullest(d Device, k Kernel) (block int, o Occupancy, err error) {
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
