// Package core is the compute layer below the pipelines: devices, buffers,
// streams and the few kernels that decide a pipeline's speed, behind one C ABI
// (c/yt_backend.h).
//
// Two backends implement it. The CPU backend is compiled in and always there.
// The CUDA backend is a separate library, libyoctune_cuda.so, loaded when asked
// for or when "auto" finds it; a machine without it, or without a GPU, runs the
// same code on the CPU. Both take the same arguments, refuse the same mistakes
// with the same messages, and compute with the same index and colour arithmetic
// (c/yt_math.h).
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
