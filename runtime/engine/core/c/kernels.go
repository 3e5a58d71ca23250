//go:build cgo

package c

/*
#include "yt_cpu.h"
#include "yt_names.h"

static const yt_kernel_limits *c_limits(uint32_t op) { return yt_kernel_of(op); }
*/
import "C"

// Kernels returns the launch limits of the built-in kernels, in the order of YT_OP_*.
func Kernels() []Limits {
	var out []Limits
	for op := range C.uint32_t(C.YT_OP_LAST) + 1 {
		l := C.c_limits(op)
		if l.block == 0 {
			continue
		}
		cpu := C.yt_cpu_built_in(op)
		out = append(out, Limits{
			Op: uint32(op), Name: C.GoString(l.name),
			Block: int(l.block), BlockMin: int(l.block_min), BlockMax: int(l.block_max), BlockStep: int(l.block_step),
			Tile: int(l.tile), TileMin: int(l.tile_min), TileMax: int(l.tile_max),
			CPUBlock: int(cpu.block), CPUTile: int(cpu.tile),
		})
	}
	return out
}
