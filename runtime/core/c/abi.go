//go:build cgo

package c

/*
// ISO C, not GNU: gcc then never contracts a*b+c, which backends must agree on.
#cgo CFLAGS: -std=c11 -O3 -Wall -Wextra -fvisibility=hidden
#cgo LDFLAGS: -ldl

#include "yt_cpu.h"
#include "yt_load.h"

#include <stdlib.h>

// A table's functions are pointers, which Go cannot call: one shim each.
static yt_status c_device_count(const yt_api *a, uint32_t *n, yt_error *e) { return a->device_count(n, e); }
static yt_status c_device_open(const yt_api *a, uint32_t i, yt_device **d, yt_error *e) { return a->device_open(i, d, e); }
static yt_status c_device_info(const yt_api *a, yt_device *d, yt_device_info *i, yt_error *e) { return a->device_info(d, i, e); }
static yt_status c_device_health(const yt_api *a, yt_device *d, yt_error *e) { return a->device_health(d, e); }
static yt_status c_device_close(const yt_api *a, yt_device *d, yt_error *e) { return a->device_close(d, e); }
static yt_status c_buf_alloc(const yt_api *a, yt_device *d, uint32_t mode, uint64_t n, uint64_t align, yt_buffer *b, yt_error *e) { return a->buf_alloc(d, mode, n, align, b, e); }
static yt_status c_buf_free(const yt_api *a, yt_device *d, uint64_t id, yt_error *e) { return a->buf_free(d, id, e); }
static yt_status c_stream_create(const yt_api *a, yt_device *d, int32_t prio, yt_stream **s, yt_error *e) { return a->stream_create(d, prio, s, e); }
static yt_status c_stream_destroy(const yt_api *a, yt_stream *s, yt_error *e) { return a->stream_destroy(s, e); }
static yt_status c_submit(const yt_api *a, yt_stream *s, const void *cmds, uint32_t n, yt_error *e) { return a->submit(s, (const yt_cmd *)cmds, n, e); }
static yt_status c_stream_poll(const yt_api *a, yt_stream *s, uint64_t ns, yt_error *e) { return a->stream_poll(s, ns, e); }
static yt_status c_event_create(const yt_api *a, yt_device *d, uint64_t *ev, yt_error *e) { return a->event_create(d, ev, e); }
static yt_status c_event_destroy(const yt_api *a, yt_device *d, uint64_t ev, yt_error *e) { return a->event_destroy(d, ev, e); }
static yt_status c_event_elapsed(const yt_api *a, yt_device *d, uint64_t x, uint64_t y, uint64_t *ns, yt_error *e) { return a->event_elapsed(d, x, y, ns, e); }

// The hot path neither keeps its arguments nor calls back into Go.
#cgo noescape c_submit
#cgo nocallback c_submit
#cgo noescape c_stream_poll
#cgo nocallback c_stream_poll
*/
import "C"

import (
	"bytes"
	"unsafe"
)

// The Go side says what the header says, or this does not compile: an array of negative
// length, a key that is there twice.
var (
	_ [unsafe.Sizeof(Range{}) - C.sizeof_yt_range]struct{}
	_ [C.sizeof_yt_range - unsafe.Sizeof(Range{})]struct{}
	_ [unsafe.Sizeof(Preprocess{}) - C.sizeof_yt_preprocess]struct{}
	_ [C.sizeof_yt_preprocess - unsafe.Sizeof(Preprocess{})]struct{}
	_ [unsafe.Sizeof(Reduce{}) - C.sizeof_yt_reduce]struct{}
	_ [C.sizeof_yt_reduce - unsafe.Sizeof(Reduce{})]struct{}
	_ [unsafe.Sizeof(Launch{}) - C.sizeof_yt_launch]struct{}
	_ [C.sizeof_yt_launch - unsafe.Sizeof(Launch{})]struct{}
	_ [unsafe.Sizeof(Decode{}) - C.sizeof_yt_decode]struct{}
	_ [C.sizeof_yt_decode - unsafe.Sizeof(Decode{})]struct{}
	_ [unsafe.Sizeof(NMS{}) - C.sizeof_yt_nms]struct{}
	_ [C.sizeof_yt_nms - unsafe.Sizeof(NMS{})]struct{}
	_ [unsafe.Sizeof(Rows{}) - C.sizeof_yt_rows]struct{}
	_ [C.sizeof_yt_rows - unsafe.Sizeof(Rows{})]struct{}
	_ [unsafe.Sizeof(Map{}) - C.sizeof_yt_map]struct{}
	_ [C.sizeof_yt_map - unsafe.Sizeof(Map{})]struct{}
	_ [unsafe.Sizeof(Convert{}) - C.sizeof_yt_convert]struct{}
	_ [C.sizeof_yt_convert - unsafe.Sizeof(Convert{})]struct{}
	_ [unsafe.Sizeof(Gemm{}) - C.sizeof_yt_gemm]struct{}
	_ [C.sizeof_yt_gemm - unsafe.Sizeof(Gemm{})]struct{}
	_ [unsafe.Sizeof(ROI{}) - C.sizeof_yt_roi]struct{}
	_ [C.sizeof_yt_roi - unsafe.Sizeof(ROI{})]struct{}
	_ [unsafe.Sizeof(Diff{}) - C.sizeof_yt_diff]struct{}
	_ [C.sizeof_yt_diff - unsafe.Sizeof(Diff{})]struct{}
	_ [unsafe.Sizeof(Cmd{}) - C.sizeof_yt_cmd]struct{}
	_ [C.sizeof_yt_cmd - unsafe.Sizeof(Cmd{})]struct{}
	_ = map[bool]struct{}{false: {}, OpCopy == C.YT_OP_COPY && OpMemset == C.YT_OP_MEMSET &&
		OpPreprocess == C.YT_OP_PREPROCESS && OpReduce == C.YT_OP_REDUCE && OpRecord == C.YT_OP_RECORD && OpGemm == C.YT_OP_GEMM && OpDiff == C.YT_OP_LAST &&
		MaxSteps == C.YT_MAX_STEPS && MaxBoxes == C.YT_MAX_BOXES && MaxVirtual == C.YT_MAX_VIRTUAL &&
		CapHostRanges == C.YT_CAP_HOST_RANGES && MaxCmds == C.YT_MAX_CMDS && CodeNoBackend == C.YT_E_NO_BACKEND: {}}
)

// API is a backend's table of functions. It is made by CPU and Load and kept
// for the life of the process, as the library is. It lives in C memory: cgo looks
// for Go pointers in whatever a call is given, and this is full of pointers.
type API struct{ t *C.yt_api }

// Device and Stream are handles of a backend.
type (
	Device struct{ p *C.yt_device }
	Stream struct{ p *C.yt_stream }
)

func failure(rc C.yt_status, e *C.yt_error) Failure {
	if rc == C.YT_OK {
		return Failure{}
	}
	// Not C.GoString, which would move every yt_error to the heap.
	msg := unsafe.Slice((*byte)(unsafe.Pointer(&e.msg)), len(e.msg))
	if end := bytes.IndexByte(msg, 0); end >= 0 {
		msg = msg[:end]
	}
	// The status that was returned counts, even if a backend forgot the rest.
	return Failure{Code: int32(rc), Sticky: e.sticky != 0, Native: int32(e.native), Msg: string(msg)}
}

// CPU returns the backend that is compiled in.
func CPU() (*API, Failure) {
	return table(func(t *C.yt_api, e *C.yt_error) C.yt_status {
		return C.yt_cpu_get_api(C.YT_ABI_MAJOR, t, C.sizeof_yt_api, e)
	})
}

// Load opens a backend library and checks its version.
func Load(path string) (*API, Failure) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	return table(func(t *C.yt_api, e *C.yt_error) C.yt_status { return C.yt_load(name, t, e) })
}

func table(fill func(*C.yt_api, *C.yt_error) C.yt_status) (*API, Failure) {
	// cgo's malloc does not return without memory.
	t := (*C.yt_api)(C.malloc(C.sizeof_yt_api))
	*t = C.yt_api{}
	var e C.yt_error
	if rc := fill(t, &e); rc != C.YT_OK {
		C.free(unsafe.Pointer(t))
		return nil, failure(rc, &e)
	}
	return &API{t}, Failure{}
}

// Name, BuildID and Caps describe the backend.
func (a *API) Name() string    { return C.GoString(a.t.name) }
func (a *API) BuildID() string { return C.GoString(a.t.build_id) }
func (a *API) Caps() uint32    { return uint32(a.t.caps) }

// DeviceCount returns how many devices can be opened.
func (a *API) DeviceCount() (int, Failure) {
	var n C.uint32_t
	var e C.yt_error
	rc := C.c_device_count(a.t, &n, &e)
	return int(n), failure(rc, &e)
}

// DeviceOpen opens a device.
func (a *API) DeviceOpen(index uint32) (Device, Failure) {
	var d Device
	var e C.yt_error
	rc := C.c_device_open(a.t, C.uint32_t(index), &d.p, &e)
	return d, failure(rc, &e)
}

// DeviceInfo describes a device.
func (a *API) DeviceInfo(d Device) (Info, Failure) {
	var e C.yt_error
	i := C.yt_device_info{size: C.sizeof_yt_device_info}
	if rc := C.c_device_info(a.t, d.p, &i, &e); rc != C.YT_OK {
		return Info{}, failure(rc, &e)
	}
	return Info{
		Name: C.GoString(&i.name[0]), CCMajor: int(i.cc_major), CCMinor: int(i.cc_minor), Cores: int(i.sm_count),
		Integrated: i.integrated != 0, ConcurrentManaged: i.concurrent_managed != 0, Driver: int(i.driver_version),
		MemTotal: uint64(i.mem_total), MemFree: uint64(i.mem_free), L2: uint64(i.l2),
	}, Failure{}
}

// DeviceHealth reports the sticky state.
func (a *API) DeviceHealth(d Device) Failure {
	var e C.yt_error
	return failure(C.c_device_health(a.t, d.p, &e), &e)
}

// DeviceClose closes a device that has no streams, buffers and events.
func (a *API) DeviceClose(d Device) Failure {
	var e C.yt_error
	return failure(C.c_device_close(a.t, d.p, &e), &e)
}

// BufAlloc allocates a buffer.
func (a *API) BufAlloc(d Device, mode uint32, bytes, align uint64) (Allocation, Failure) {
	var e C.yt_error
	b := C.yt_buffer{size: C.sizeof_yt_buffer}
	if rc := C.c_buf_alloc(a.t, d.p, C.uint32_t(mode), C.uint64_t(bytes), C.uint64_t(align), &b, &e); rc != C.YT_OK {
		return Allocation{}, failure(rc, &e)
	}
	return Allocation{ID: uint64(b.id), Mode: uint32(b.mode), Host: b.host, Device: uint64(b.device), Bytes: uint64(b.bytes)}, Failure{}
}

// BufFree frees a buffer.
func (a *API) BufFree(d Device, id uint64) Failure {
	var e C.yt_error
	return failure(C.c_buf_free(a.t, d.p, C.uint64_t(id), &e), &e)
}

// StreamCreate creates a stream.
func (a *API) StreamCreate(d Device, priority int32) (Stream, Failure) {
	var s Stream
	var e C.yt_error
	rc := C.c_stream_create(a.t, d.p, C.int32_t(priority), &s.p, &e)
	return s, failure(rc, &e)
}

// StreamDestroy destroys an idle stream.
func (a *API) StreamDestroy(s Stream) Failure {
	var e C.yt_error
	return failure(C.c_stream_destroy(a.t, s.p, &e), &e)
}

// Submit checks and runs a list: one call, however long the list. Host memory
// that a range names must be pinned until the list has finished.
func (a *API) Submit(s Stream, cmds []Cmd) Failure {
	var e C.yt_error
	return failure(C.c_submit(a.t, s.p, unsafe.Pointer(unsafe.SliceData(cmds)), C.uint32_t(len(cmds)), &e), &e)
}

// StreamPoll waits at most ns for what was submitted.
func (a *API) StreamPoll(s Stream, ns uint64) Failure {
	var e C.yt_error
	return failure(C.c_stream_poll(a.t, s.p, C.uint64_t(ns), &e), &e)
}

// EventCreate creates an event.
func (a *API) EventCreate(d Device) (uint64, Failure) {
	var ev C.uint64_t
	var e C.yt_error
	rc := C.c_event_create(a.t, d.p, &ev, &e)
	return uint64(ev), failure(rc, &e)
}

// EventDestroy destroys an event.
func (a *API) EventDestroy(d Device, ev uint64) Failure {
	var e C.yt_error
	return failure(C.c_event_destroy(a.t, d.p, C.uint64_t(ev), &e), &e)
}

// EventElapsed returns the time from x to y in ns.
func (a *API) EventElapsed(d Device, x, y uint64) (uint64, Failure) {
	var ns C.uint64_t
	var e C.yt_error
	rc := C.c_event_elapsed(a.t, d.p, C.uint64_t(x), C.uint64_t(y), &ns, &e)
	return uint64(ns), failure(rc, &e)
}
