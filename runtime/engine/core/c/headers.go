package c

import "embed"

// Headers are what a kernel that is compiled at run time includes.
//
//go:embed yt_backend.h yt_math.h yt_ops.h yt_chain.h
var Headers embed.FS
