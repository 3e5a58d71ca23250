// Package cuda holds the sources of the CUDA backend, which Go does not build, and
// provides the headers that kernels compiled at run time include.
package cuda

import "embed"

// Headers are the bodies of kernels, without CUDA syntax.
//
//go:embed bodies.h ops.h
var Headers embed.FS
