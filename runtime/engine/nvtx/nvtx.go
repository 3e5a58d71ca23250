// Package nvtx marks ranges for NVIDIA's profilers, which show them next to kernels and
// copies. It opens the library, libnvToolsExt, at run time. Without the library or a profiler
// it does nothing.
//
// Ranges belong to the process and not to a thread: a goroutine may end a range on another
// thread. Reference: nvToolsExt.h, NVTX 1 to 3.
package nvtx

import "errors"

// ErrNotFound means that the library is not installed.
var ErrNotFound = errors.New("no NVTX library")

// libraries returns the names of the library: in CUDA up to 12, and in development packages.
func libraries() []string { return []string{"libnvToolsExt.so.1", "libnvToolsExt.so"} }

// Range is a named kind of range. A nil Range does nothing.
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
