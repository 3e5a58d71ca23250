// Package nvtx marks what a program does as ranges for NVIDIA's profilers, which show
// them beside kernels and copies. The library, libnvToolsExt, is opened at run time;
// without it, and without a profiler, nothing is marked.
//
// Ranges are those of the process, not of a thread: a goroutine may end a range on
// another thread than the one it was started on. Reference: nvToolsExt.h, NVTX 1 to 3.
package nvtx

import "errors"

// ErrNotFound says that there is no library.
var ErrNotFound = errors.New("no NVTX library")

// libraries are its names: with CUDA up to 12, and as a development package links it.
func libraries() []string { return []string{"libnvToolsExt.so.1", "libnvToolsExt.so"} }

// Range is a kind of range, with the name under which a profiler shows it. A nil Range
// marks nothing.
type Range struct {
	lib  *Library
	name name
}

// Start begins a range and returns its id for End.
func (r *Range) Start() uint64 {
	if r == nil {
		return 0
	}
	return r.lib.start(r.name)
}

// End ends a range.
func (r *Range) End(id uint64) {
	if r != nil {
		r.lib.end(id)
	}
}
