// Package occupancy calculates CUDA occupancy, the number of blocks of a kernel that are
// resident on one multiprocessor, without a GPU. The compiler checks launch configurations
// with it, and the tuner excludes candidates.
//
// A multiprocessor has warp slots, registers, shared memory and block slots. Each resource is
// allocated in units, and the scarcest one limits the occupancy. A test compares the results
// with NVIDIA's calculator, cuda_occupancy.h of the CUDA toolkit, which computes the same as
// the driver's cuOccupancyMaxActiveBlocksPerMultiprocessor.
package occupancy

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Errors of Device.Occupancy and Lookup.
var (
	errUnknown = errors.New("unknown compute capability")
	errInvalid = errors.New("invalid launch")
)

// Kernel is the resource use of a compiled kernel, as reported by ptxas -v.
type Kernel struct {
	Registers  int // per thread
	Shared     int // bytes of static shared memory per block
	MaxThreads int // per block, from the launch bounds; 0: the device's limit
	// MaxDynamic is cudaFuncAttributeMaxDynamicSharedMemorySize in bytes. -1 means that it
	// is not set, so static and dynamic shared memory together are limited to 48 KiB.
	MaxDynamic int
	Barriers   int // named barriers per block; 0: not counted
	// Carveout is the preferred share of the unified cache used as shared memory, in
	// percent; -1: the driver's choice.
	Carveout int
}

// Limit is a resource that limits the number of blocks.
type Limit string

const (
	Warps     Limit = "warps"
	Registers Limit = "registers"
	Shared    Limit = "shared memory"
	Blocks    Limit = "blocks"
	Barriers  Limit = "barriers"
)

// unlimited is the number of blocks for a resource that the kernel does not use.
const unlimited = math.MaxInt32

// Occupancy is the number of resident blocks of one multiprocessor, with its limits.
type Occupancy struct {
	Blocks int
	Warps  int           // of all blocks
	Share  float64       // resident warps / maximum number of warps
	By     map[Limit]int // blocks that each resource allows
	// Limits are the resources that allow the fewest blocks.
	Limits []Limit
	// RegistersPerBlock and SharedPerBlock (bytes) include rounding to allocation units.
	RegistersPerBlock, SharedPerBlock int
}

// Occupancy calculates the occupancy for blocks of `threads` threads with `dynamic` bytes of
// dynamic shared memory. It is 0 blocks if the kernel cannot be launched with them.
func (d Device) Occupancy(k Kernel, threads, dynamic int) (Occupancy, error) {
	if threads < 1 || dynamic < 0 || dynamic > math.MaxInt32 || !k.valid() {
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
	// NVIDIA's calculator counts barriers from Hopper on.
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

// valid reports whether all values are in their ranges.
func (k Kernel) valid() bool {
	return k.Registers >= 0 && k.Shared >= 0 && k.Shared <= math.MaxInt32 && k.MaxThreads >= 0 && k.MaxDynamic >= -1 &&
		k.Barriers >= 0 && k.Carveout >= -1 && k.Carveout <= 100
}

// byRegisters returns the blocks that the registers allow, and the registers per block.
// Registers are allocated to warps, in units, from the register file of one partition of the
// multiprocessor.
func (d Device) byRegisters(k Kernel, warps int) (blocks, taken int) {
	aWarp := roundUp(k.Registers*d.Warp, registerUnit)
	taken = aWarp * warps
	// The hardware checks a block as if its warps were spread over all partitions.
	if aWarp*roundUp(warps, d.Parts) > d.RegistersPerBlock || taken > d.RegistersPerBlock || k.Registers > d.RegistersPerThread {
		return 0, taken
	}
	if aWarp == 0 {
		return unlimited, taken
	}
	return d.RegistersPerSM / d.Parts / aWarp * d.Parts / warps, taken
}

// byShared returns the blocks that shared memory allows, and the bytes per block.
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
		// A block gets the shared memory that it needs, regardless of the preference.
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

// carveout returns the smallest configuration of the unified cache with at least that much
// shared memory, in bytes, or -1.
func (d Device) carveout(bytes int) int {
	for _, kib := range d.Carveouts {
		if bytes <= kib<<10 {
			return kib << 10
		}
	}
	return -1
}

// barriers returns the number of named barriers of a multiprocessor.
func (d Device) barriers() int {
	if d.BlocksPerSM < 32 {
		return d.BlocksPerSM
	}
	return 2 * d.BlocksPerSM
}

// Lookup returns the device with a compute capability; sm is 87 for 8.7 (sm_87).
func Lookup(sm int) (Device, error) {
	var known []string
	for _, d := range Devices() {
		if d.SM() == sm {
			return d, nil
		}
		known = append(known, strconv.Itoa(d.SM()))
	}
	return Device{}, fmt.Errorf("sm_%d: %w; choose one of %s", sm, errUnknown, strings.Join(known, ", "))
}

func ceil(x, unit int) int { return (x + unit - 1) / unit }

func roundUp(x, unit int) int { return ceil(x, unit) * unit }
