package check

import (
	"fmt"
	"iter"
	"strconv"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/internal/occupancy"
	"github.com/yoctune/yoctune/schema/plan"
)

func launchRules() []Rule {
	const clip = `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}, kernels: preprocess: block: `
	return []Rule{
		{
			ID: "kernel-launch", Severity: diag.Error, Firm: true,
			Title: "invalid launch configuration",
			Cause: "A kernel takes blocks of certain sizes, and a multiprocessor has a limited number of warps, registers and bytes of shared memory. A block that exceeds one of them does not start.",
			Fix:   "choose a size that the kernel takes, or leave it out: the device measures the fastest",
			Wrong: clip + `100}`,
			Right: clip + `128}`,
			See:   "CUDA C++ Programming Guide, technical specifications per compute capability",
			run:   checkKernelLaunch,
		},
		{
			ID: "kernel-occupancy", Severity: diag.Warning,
			Title: "blocks of this size leave multiprocessors half empty",
			Cause: "A multiprocessor holds a limited number of blocks. Small blocks reach that number long before its warps are used, so fewer warps hide the latency of memory.",
			Fix:   "choose a size that keeps more warps resident",
			Wrong: clip + `32}`,
			Right: clip + `256}`,
			See:   "CUDA C++ Best Practices Guide, occupancy; cuda_occupancy.h",
			run:   checkKernelOccupancy,
		},
	}
}

// launches returns the launches of the target's pipelines, each with the field of its
// block.
func (s *subject) launches() iter.Seq2[plan.KernelLaunch, config.Place] {
	return func(yield func(plan.KernelLaunch, config.Place) bool) {
		for c, p := range s.pipelines() {
			for _, k := range p.Kernels {
				if !yield(k, c.Kernels.Below(k.Kernel, "block")) {
					return
				}
			}
		}
	}
}

// computeOccupancy computes the occupancy of the module's multiprocessors during a launch.
// It returns false if the module or the compiled kernel is unknown.
func (s *subject) computeOccupancy(k plan.KernelLaunch) (occupancy.Device, occupancy.Kernel, occupancy.Occupancy, bool) {
	d, err := occupancy.Lookup(s.Board.SM)
	if err != nil {
		return d, occupancy.Kernel{}, occupancy.Occupancy{}, false
	}
	need, ok := occupancy.BuiltIn(d.SM(), k.Kernel)
	if !ok {
		return d, need, occupancy.Occupancy{}, false
	}
	o, err := d.Occupancy(need, k.Block, 0)
	return d, need, o, err == nil
}

func checkKernelLaunch(s *subject) {
	for k, block := range s.launches() {
		l, known := occupancy.LimitsOf(k.Kernel)
		if !known {
			continue
		}
		if !l.Allows(k.Block) {
			s.reportAt(block, strconv.Itoa(k.Block), fmt.Sprintf("choose a multiple of %d from %d to %d", l.Step, l.Min, l.Max), "%s does not support blocks of %d threads", k.Kernel, k.Block)
			continue
		}
		if d, need, o, ok := s.computeOccupancy(k); ok && o.Blocks == 0 {
			s.refuse(s.boardFact("sm", "compute capability"), block, strconv.Itoa(k.Block), "", "%s needs %d registers a thread and %d bytes of shared memory: a block of %d threads does not fit %s (sm_%d), by %s",
				k.Kernel, need.Registers, need.Shared, k.Block, s.Board.ID, d.SM(), o.Limits[0])
		}
	}
}

func checkKernelOccupancy(s *subject) {
	for k, block := range s.launches() {
		l, known := occupancy.LimitsOf(k.Kernel)
		d, need, o, ok := s.computeOccupancy(k)
		if !known || !l.Allows(k.Block) || !ok || o.Blocks == 0 {
			continue
		}
		full, best, err := l.BestBlock(d, need)
		if err != nil || 4*o.Warps >= 3*best.Warps {
			continue
		}
		s.reportAt(block, strconv.Itoa(k.Block), fmt.Sprintf("blocks of %d hold %d, limited by %s", full, best.Warps, best.Limits[0]),
			"%s with blocks of %d threads holds %d of %d warps of a multiprocessor of %s, limited by %s",
			k.Kernel, k.Block, o.Warps, d.ThreadsPerSM/d.Warp, s.Board.ID, o.Limits[0])
	}
}
