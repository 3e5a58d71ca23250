package c

import "embed"

// Headers are the files that kernels compiled at run time include.
//
//go:embed yt_backend.h yt_math.h yt_ops.h yt_chain.h
var Headers embed.FS
