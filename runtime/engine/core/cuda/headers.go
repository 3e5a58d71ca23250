// Package cuda holds the sources of the CUDA backend, which Go does not build, and
// hands out those headers of it that a kernel compiled at run time includes.
package cuda

import "embed"

// Headers are the bodies of kernels, without a word of CUDA.
//
//go:embed bodies.h ops.h
var Headers embed.FS
