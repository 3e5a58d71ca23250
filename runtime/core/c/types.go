// Package c is the C side of the core: the ABI (yt_backend.h), the CPU backend
// and the loader of backend libraries. All cgo of the core is here, so that a
// changed header rebuilds what depends on it; package core, its only user,
// gives it a Go face.
//
// The types mirror the header's structs field by field; abi.go has the compiler
// compare them.
package c

import "unsafe"

// Range names bytes of a buffer, or of pinned host memory when Buf is 0.
type Range struct{ Buf, Off, Len uint64 }

// Preprocess mirrors yt_preprocess.
type Preprocess struct {
	Format, Fit, Color, Chroma, Matrix uint32
	Width, Height                      uint32
	Pitch                              [3]uint32
	CropX, CropY, CropW, CropH         uint32
	OutW, OutH                         uint32
	Pad                                uint32
	Mean, Std                          [3]float32
}

// Cmd mirrors yt_cmd.
type Cmd struct {
	Op, Value uint32
	Event     uint64
	Dst       Range
	Src       [3]Range
	Pre       Preprocess
}

// Values of the header's enumerations that Go names.
const (
	OpCopy       = 1
	OpMemset     = 2
	OpPreprocess = 3
	OpReduce     = 4
	OpRecord     = 5

	CapHostRanges = 1 << 0

	MaxCmds = 256

	CodeNoBackend = 8
)

// Failure is a copied yt_error; Code 0 means success.
type Failure struct {
	Code   int32
	Sticky bool
	Native int32
	Msg    string
}

// Info is what a device says of itself; 0 and "" mean unknown.
type Info struct {
	Name                  string
	CCMajor, CCMinor      int
	Cores                 int
	Integrated            bool
	ConcurrentManaged     bool
	Driver                int
	MemTotal, MemFree, L2 uint64
}

// Allocation is what buf_alloc returned.
type Allocation struct {
	ID     uint64
	Mode   uint32
	Host   unsafe.Pointer // nil: not for the CPU
	Device uint64
	Bytes  uint64
}
