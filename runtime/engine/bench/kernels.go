package bench

import "github.com/yoctune/yoctune/runtime/engine/core"

// kernelSuite measures every kernel of the core on the shapes of a detection pipeline.
// The flops of preprocess are counted from yt_math.h; those of maps are the steps.
func kernelSuite(r *rig) []benchmark {
	var list []benchmark
	for _, part := range []func(*rig) []benchmark{
		frameKernels, detectorKernels, rowKernels, reductionKernels, mapKernels, layoutKernels, productKernels, regionKernels, motionKernels,
	} {
		list = append(list, part(r)...)
	}
	b := r.copyBenchmark("within the device", uncached, core.MemAuto, core.MemAuto)
	b.kernel = "K13"
	return append(list, b)
}
