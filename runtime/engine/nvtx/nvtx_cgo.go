//go:build cgo

package nvtx

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef uint64_t (*start_fn)(const char *);
typedef void (*end_fn)(uint64_t);

static uint64_t yt_nvtx_start(void *f, const char *name) { return ((start_fn)f)(name); }
static void yt_nvtx_end(void *f, uint64_t id) { ((end_fn)f)(id); }
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// Library is an open library. It is never closed, because profilers hook into it.
type Library struct{ rangeStart, rangeEnd unsafe.Pointer }

type name = *C.char

// Open opens the library at path, or the installed one if path is "". The error wraps
// ErrNotFound if there is none.
func Open(path string) (*Library, error) {
	names := libraries()
	if path != "" {
		names = []string{path}
	}
	for _, n := range names {
		if strings.IndexByte(n, 0) >= 0 {
			continue
		}
		text := C.CString(n)
		handle := C.dlopen(text, C.RTLD_NOW|C.RTLD_LOCAL)
		C.free(unsafe.Pointer(text))
		if handle == nil {
			continue
		}
		l := &Library{rangeStart: symbol(handle, "nvtxRangeStartA"), rangeEnd: symbol(handle, "nvtxRangeEnd")}
		if l.rangeStart == nil || l.rangeEnd == nil {
			return nil, fmt.Errorf("%s: nvtxRangeStartA or nvtxRangeEnd is missing", n)
		}
		return l, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrNotFound, strings.Join(names, ", "))
}

func symbol(handle unsafe.Pointer, name string) unsafe.Pointer {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return C.dlsym(handle, text)
}

// Range returns a kind of range, or nil if the library is nil. The name is never freed.
func (l *Library) Range(text string) *Range {
	if l == nil {
		return nil
	}
	return &Range{lib: l, name: C.CString(strings.ReplaceAll(text, "\x00", ""))}
}

func (l *Library) start(n name) uint64 { return uint64(C.yt_nvtx_start(l.rangeStart, n)) }

func (l *Library) end(id uint64) { C.yt_nvtx_end(l.rangeEnd, C.uint64_t(id)) }
