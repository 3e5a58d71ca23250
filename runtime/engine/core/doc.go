// Package core is the compute layer below the pipelines: devices, buffers,
// streams and the kernels that determine a pipeline's speed, behind one C ABI
// (c/yt_backend.h).
//
// Two backends implement the ABI. The CPU backend is compiled in. The CUDA backend
// is a separate library, libyoctune_cuda.so, which is loaded on request or when
// "auto" finds it. Without the library or a GPU the same program runs on the CPU.
// Both backends check arguments with the same code and use the same index and
// colour arithmetic (c/yt_math.h).
//
//	dev, err := core.Open(core.Options{}) // "auto"
//	if err != nil { ... }
//	defer dev.Close()
//	planes, err := core.SplitPlanes(core.NV12, 1920, 1080, frame)
//	if err != nil { ... }
//	err = dev.Preprocess(ctx, core.Preprocess{
//		Planes: planes, Width: 1920, Height: 1080,
//		Out: tensor, OutW: 640, OutH: 640, Fit: core.Letterbox, Pad: 114,
//	})
//
// A Device may be used from several goroutines. A Stream and its Lists belong
// to one goroutine at a time.
package core
