// Package c is the C side of the core: the ABI (yt_backend.h), the CPU backend and the
// loader of backend libraries. All cgo of the core is in this package, so that a changed
// header rebuilds everything that depends on it. Package core wraps it in a Go API.
//
// The types mirror the structs of the header field by field; abi.go checks them at compile
// time. The header documents the fields.
package c

import "unsafe"

// Range is a range of bytes of a buffer, or of pinned host memory if Buf is 0.
type Range struct{ Buf, Off, Len uint64 }

// Cmd mirrors yt_cmd. Args holds the arguments of the operation; see Put.
type Cmd struct {
	Op, Value uint32
	Event     uint64
	Dst       Range
	Src       [3]Range
	Args      [12]uint64
}

// Arguments are the structs that Args can hold.
type Arguments interface {
	Preprocess | Launch | Decode | NMS | Rows | Convert | Gemm | ROI | Diff | Gather | Masks | Stats
}

// Put sets the arguments of cmd.
func Put[T Arguments](cmd *Cmd, v T) { *(*T)(unsafe.Pointer(&cmd.Args)) = v }

// Preprocess mirrors yt_preprocess.
type Preprocess struct {
	Format, Fit, Color, Chroma, Matrix uint32
	Width, Height                      uint32
	Pitch                              [3]uint32
	CropX, CropY, CropW, CropH         uint32
	OutW, OutH                         uint32
	Pad                                uint32
	Mean, Std                          [3]float32
	Type, Layout                       uint8
	_                                  uint16
}

// Launch mirrors yt_launch.
type Launch struct {
	Kernel         uint64
	Grid, Block    [3]uint32
	Shared         uint32
	Ranges, Params uint16
	Param          [6]uint64
}

// Decode mirrors yt_decode.
type Decode struct {
	Head, Type, Anchors, Classes, Max, Batch uint32
	Threshold                                float32
	ScaleX, ScaleY, ShiftX, ShiftY           float32
	LimitX, LimitY                           float32
	After                                    uint32
}

// Gather mirrors yt_gather.
type Gather struct{ Head, Type, Anchors, Values, First, Count, Max uint32 }

// Grid mirrors yt_grid.
type Grid struct {
	X, Y                            int32
	Step, Width, Height, Row, At, _ uint32
}

// Masks mirrors yt_masks.
type Masks struct {
	Type, Values, Width, Height    uint32
	Rows, Count                    uint32
	ScaleX, ScaleY, ShiftX, ShiftY float32
}

// NMS mirrors yt_nms.
type NMS struct {
	Flags, InMax, Max, Batch uint32
	IoU                      float32
}

// Rows mirrors yt_rows.
type Rows struct{ In, Out, Rows, Cols, Stride, K uint32 }

// Convert mirrors yt_convert.
type Convert struct {
	In, Out, InLayout, OutLayout uint8
	Flags                        uint32
	N, C, H, W                   uint32
	Scale                        float32
	Zero                         int32
}

// Gemm mirrors yt_gemm.
type Gemm struct {
	M, N, K                   uint32
	LDA, LDB, LDC             uint32
	Type, Out, Act            uint8
	_                         uint8
	Flags                     uint32
	Alpha, Beta               float32
	Batch                     uint32
	_                         uint32
	StrideA, StrideB, StrideC uint64
}

// ROI mirrors yt_roi.
type ROI struct {
	Boxes                              Range
	Format, Fit, Color, Chroma, Matrix uint8
	Type, Layout, Pad                  uint8
	Width, Height                      uint32
	Pitch                              [3]uint32
	OutW, OutH                         uint32
	Max                                uint32
	Mean, Std                          [3]float32
}

// Diff mirrors yt_diff.
type Diff struct {
	Width, Height    uint32
	Pitch            [2]uint32
	Threshold, Block uint32
}

// Stats mirrors yt_plane_stats.
type Stats struct {
	Format, Width, Height, Pitch, Low, High uint32
}

// Constants of the header that Go uses.
const (
	OpCopy       = 1
	OpPreprocess = 2
	OpReduce     = 3
	OpRecord     = 4
	OpLaunch     = 5
	OpDecode     = 6
	OpNMS        = 7
	OpSoftmax    = 8
	OpTopK       = 9
	OpConvert    = 10
	OpGemm       = 11
	OpROI        = 12
	OpDiff       = 13
	OpGather     = 14
	OpMasks      = 15
	OpStats      = 16

	OpenStrict = 1 << 0

	CapHostRanges  = 1 << 0
	CapSynchronous = 1 << 1
	CapFaults      = 1 << 2
	CapModules     = 1 << 3
	CapVirtual     = 1 << 4
	CapChains      = 1 << 5

	MaxCmds    = 256
	MaxVirtual = 16
	MaxBoxes   = 16384

	CodeInvalid      = 1
	CodeOOM          = 2
	CodeNotSupported = 3
	CodeNoBackend    = 8
	CodeClosed       = -1 // the stream was closed; not in the header

	StreamQueued = 1 << 0
)

// Failure is a copied yt_error; Code 0 means success.
type Failure struct {
	Code   int32
	Sticky bool
	Native int32
	Msg    string
}

// Info mirrors yt_device_info. 0 and "" mean unknown.
type Info struct {
	Name                                                     string
	CCMajor, CCMinor                                         int
	Cores                                                    int
	Integrated, ConcurrentManaged                            bool
	Managed, MapHost, HostRegister                           bool
	Driver                                                   int
	MemTotal, MemFree, L2                                    uint64
	Warp, ThreadsPerBlock, ThreadsPerSM                      int
	BlocksPerSM, RegsPerSM, RegsPerBlock                     int
	SharedPerSM, SharedPerBlock, SharedOptIn, SharedReserved uint64
	ClockKHz, MemClockKHz, BusBits                           int
}

// Attributes are the attributes of a GPU that determine the choice of memory.
type Attributes struct{ Integrated, MapHost, Managed, ConcurrentManaged, HostRegister bool }

// Choice mirrors yt_mem_choice.
type Choice struct {
	Mode, Why, Allowed uint32
	Text               string
}

// MemStats mirrors yt_mem_stats.
type MemStats struct {
	Bytes, Peak, Allocs           [8]uint64
	Total, TotalPeak              uint64
	H2D, D2H, D2D, H2H            uint64
	PageableCopies, PageableBytes uint64
}

// Limits mirrors yt_kernel_limits, the valid range of kernel_config. Tile is 0 if the kernel
// has no tile.
type Limits struct {
	Op                                   uint32
	Name                                 string
	Block, BlockMin, BlockMax, BlockStep int // built-in value, and the range
	Tile, TileMin, TileMax               int // powers of two
	CPUBlock, CPUTile                    int // built-in values of the CPU backend
}

// Allocation mirrors yt_buffer.
type Allocation struct {
	ID     uint64
	Mode   uint32
	Host   unsafe.Pointer // nil: not accessible by the CPU
	Device uint64
	Bytes  uint64
}
