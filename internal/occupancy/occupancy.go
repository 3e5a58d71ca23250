// Package occupancy calculates how many blocks of a CUDA kernel one multiprocessor
// holds at once, without a GPU. The compiler judges launch configurations with it,
// the tuner leaves out what cannot win.
//
// A multiprocessor has warp slots, registers, shared memory and block slots; each is
// handed out in units, and the scarcest decides. The test compares every answer with
// NVIDIA's own calculator, cuda_occupancy.h of the CUDA toolkit, which is what the
// driver's cuOccupancyMaxActiveBlocksPerMultiprocessor computes.
package occupancy

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Errors of Device.Occupancy and Lookup.
var (
	errUnknown = errors.New("compute capability is not known")
	errInvalid = errors.New("invalid launch")
)

// Kernel is what a compiled kernel needs; ptxas -v and Module.Kernel say it.
type Kernel struct {
	Registers  int // a thread
	Shared     int // bytes of static shared memory a block
	MaxThreads int // a block, from its launch bounds; 0: the device's
	// MaxDynamic is the dynamic shared memory, in bytes, that the program has asked
	// to be allowed (cudaFuncAttributeMaxDynamicSharedMemorySize); -1: it asked for
	// nothing, so static and dynamic together have the default limit of 48 KiB.
	MaxDynamic int
	Barriers   int // named barriers a block; 0: not counted
	// Carveout is the share of the unified cache preferred as shared memory, in
	// percent; -1: the driver's choice, all of it where blocks need it.
	Carveout int
}

// What limits the number of blocks.
type Limit string

const (
	Warps     Limit = "warps"
	Registers Limit = "registers"
	Shared    Limit = "shared memory"
	Blocks    Limit = "blocks"
	Barriers  Limit = "barriers"
)

// unlimited is a limit that does not apply: a kernel without shared memory has no
// limit by it.
const unlimited = math.MaxInt32

// Occupancy is how many blocks one multiprocessor holds, and why not more.
type Occupancy struct {
	Blocks int
	Warps  int           // of all blocks
	Share  float64       // warps of those the multiprocessor could hold, 0 to 1
	By     map[Limit]int // blocks that each resource would allow
	// Limits are those that allow the fewest blocks.
	Limits []Limit
	// What a block takes after rounding to the units in which it is given out.
	RegistersPerBlock, SharedPerBlock int
}

// Occupancy calculates the occupancy of blocks of `threads` threads with `dynamic` bytes of
// dynamic shared memory. A kernel that cannot be launched so has 0 blocks.
func (d Device) Occupancy(k Kernel, threads, dynamic int) (Occupancy, error) {
	if threads < 1 || dynamic < 0 || dynamic > math.MaxInt32 || k.Registers < 0 || k.Shared < 0 || k.Shared > math.MaxInt32 ||
		k.MaxThreads < 0 || k.MaxDynamic < -1 || k.Barriers < 0 || k.Carveout < -1 || k.Carveout > 100 {
		return Occupancy{}, fmt.Errorf("occupancy of %d threads with %d bytes: %w", threads, dynamic, errInvalid)
	}
	warps := ceil(threads, d.Warp)
	o := Occupancy{By: map[Limit]int{Blocks: d.BlocksPerSM, Barriers: unlimited}}
	o.By[Registers], o.RegistersPerBlock = d.byRegisters(k, warps)
	o.By[Warps] = 0
	if threads <= d.ThreadsPerBlock {
		o.By[Warps] = d.ThreadsPerSM / d.Warp / warps
	}
	var err error
	if o.By[Shared], o.SharedPerBlock, err = d.byShared(k, dynamic); err != nil {
		return Occupancy{}, err
	}
	// The calculator counts barriers from Hopper on.
	if d.Major >= 9 && k.Barriers > 0 {
		o.By[Barriers] = d.barriers() / k.Barriers
	}
	o.Blocks = unlimited
	for _, n := range o.By {
		o.Blocks = min(o.Blocks, n)
	}
	for _, l := range []Limit{Warps, Registers, Shared, Blocks, Barriers} {
		if o.By[l] == o.Blocks {
			o.Limits = append(o.Limits, l)
		}
	}
	o.Warps = o.Blocks * warps
	o.Share = float64(o.Warps) / float64(d.ThreadsPerSM/d.Warp)
	return o, nil
}

// byRegisters: registers are given to warps, in units, from the file of one of the
// multiprocessor's parts.
func (d Device) byRegisters(k Kernel, warps int) (blocks, taken int) {
	aWarp := roundUp(k.Registers*d.Warp, registerUnit)
	taken = aWarp * warps
	// The hardware checks a block as if its warps were spread over all parts.
	if aWarp*roundUp(warps, d.Parts) > d.RegistersPerBlock || taken > d.RegistersPerBlock || k.Registers > d.RegistersPerThread {
		return 0, taken
	}
	if aWarp == 0 {
		return unlimited, taken
	}
	return d.RegistersPerSM / d.Parts / aWarp * d.Parts / warps, taken
}

func (d Device) byShared(k Kernel, dynamic int) (blocks, taken int, err error) {
	static := k.Shared + d.SharedReserved
	taken = roundUp(static+dynamic, d.SharedUnit)
	limit := d.SharedPerBlock
	if k.MaxDynamic >= 0 {
		if dynamic > k.MaxDynamic {
			return 0, taken, nil
		}
		if len(d.Carveouts) > 0 && static+k.MaxDynamic > d.SharedPerBlock {
			limit = d.SharedPerBlockOptIn
		}
	}
	if taken > limit+d.SharedReserved {
		return 0, taken, nil
	}
	have := d.SharedPerSM
	if len(d.Carveouts) > 0 {
		prefer := d.SharedPerSM
		if k.Carveout >= 0 {
			prefer = k.Carveout * d.SharedPerSM / 100
		}
		// What a block needs is had whatever is preferred.
		if have = d.carveout(prefer); have < taken {
			have = d.carveout(taken)
		}
		if have < 0 {
			return 0, taken, fmt.Errorf("%d bytes of shared memory: %w", max(prefer, taken), errInvalid)
		}
	}
	if taken == 0 {
		return unlimited, taken, nil
	}
	return have / taken, taken, nil
}

// carveout is the smallest split of the unified cache with so much shared memory,
// -1 when there is none.
func (d Device) carveout(bytes int) int {
	for _, kib := range d.Carveouts {
		if bytes <= kib<<10 {
			return kib << 10
		}
	}
	return -1
}

// barriers of a multiprocessor: chips with few block slots have one a slot.
func (d Device) barriers() int {
	if d.BlocksPerSM < 32 {
		return d.BlocksPerSM
	}
	return 2 * d.BlocksPerSM
}

// Lookup finds the device of a compute capability: "8.7", or of the name of an
// architecture: 87 for sm_87.
func Lookup(sm int) (Device, error) {
	all := Devices()
	i := slices.IndexFunc(all, func(d Device) bool { return d.SM() == sm })
	if i < 0 {
		return Device{}, fmt.Errorf("sm_%d: %w", sm, errUnknown)
	}
	return all[i], nil
}

func ceil(x, unit int) int { return (x + unit - 1) / unit }

func roundUp(x, unit int) int { return ceil(x, unit) * unit }
