//go:build cgo

package c

/*
// ISO C, not GNU: gcc then never contracts a*b+c, which backends must agree on.
#cgo CFLAGS: -std=c11 -O3 -Wall -Wextra -fvisibility=hidden
#cgo LDFLAGS: -ldl -lm

#include "yt_cpu.h"
#include "yt_faults.h"
#include "yt_gate.h"
#include "yt_load.h"
#include "yt_memory.h"
#include "yt_nvrtc.h"

#include <stdlib.h>

// The functions of the table are pointers, which Go cannot call. Each has a shim.
static yt_status c_device_count(const yt_api *a, uint32_t *n, yt_error *e) { return a->device_count(n, e); }
static yt_status c_device_info(const yt_api *a, yt_device *d, yt_device_info *i, yt_error *e) { return a->device_info(d, i, e); }
static yt_status c_device_health(const yt_api *a, yt_device *d, yt_error *e) { return a->device_health(d, e); }
static yt_status c_device_close(const yt_api *a, yt_device *d, yt_error *e) { return a->device_close(d, e); }
static yt_status c_buf_alloc(const yt_api *a, yt_device *d, uint32_t mode, uint64_t n, uint64_t align, yt_buffer *b, yt_error *e) { return a->buf_alloc(d, mode, n, align, b, e); }
static yt_status c_buf_free(const yt_api *a, yt_device *d, uint64_t id, yt_error *e) { return a->buf_free(d, id, e); }
static yt_status c_stream_destroy(const yt_api *a, yt_stream *s, yt_error *e) { return a->stream_destroy(s, e); }
static yt_status c_stream_open(const yt_api *a, yt_device *d, const yt_stream_options *o, yt_stream **s, yt_error *e) { return a->stream_open(d, o, s, e); }
static void c_submit(uintptr_t g, const yt_cmd *cmds, uint32_t n, uint64_t known) { yt_gate_submit((struct yt_gate *)g, cmds, n, known); }
static void c_poll(uintptr_t g, uint64_t ns) { yt_gate_poll((struct yt_gate *)g, ns); }
static yt_status c_stream_poll(const yt_api *a, yt_stream *s, uint64_t ns, yt_error *e) { return a->stream_poll(s, ns, e); }
static yt_status c_gate_error(struct yt_gate *g, yt_error *e) { *e = g->err; return e->code; }
static struct yt_gate *c_gate_new(const yt_api *a, yt_stream *s) { return yt_gate_new(a, s); }
static void c_gate_close(struct yt_gate *g) { yt_gate_close(g); }
static void c_gate_reopen(struct yt_gate *g) { yt_gate_reopen(g); }
static yt_stream *c_gate_stream(struct yt_gate *g) { return g->s; }
static void c_nothing(uint32_t v) { (void)v; }

static uint64_t c_ops(const yt_api *a) { return a->ops; }
static yt_status c_device_open(const yt_api *a, uint32_t i, uint32_t threads, const char *faults, uint32_t flags, yt_device **d, yt_error *e) {
	yt_open_options o = {sizeof o, threads, faults, flags, 0};

	return a->device_open(i, &o, d, e);
}

// Functions that a backend lacks fail with YT_E_NOT_SUPPORTED.
#define WANT(f) if (a->f == NULL) return yt_fail(e, YT_E_NOT_SUPPORTED, #f ": not in this backend")
static yt_status c_buf_register(const yt_api *a, yt_device *d, void *host, uint64_t n, yt_buffer *b, yt_error *e) { WANT(buf_register); return a->buf_register(d, host, n, b, e); }
static yt_status c_buf_address(const yt_api *a, yt_device *d, uint64_t id, uint64_t *at, yt_error *e) { WANT(buf_address); return a->buf_address(d, id, at, e); }
static yt_status c_mem_choose(const yt_api *a, yt_device *d, uint32_t mode, uint32_t cpu, yt_mem_choice *o, yt_error *e) { WANT(mem_choose); return a->mem_choose(d, mode, cpu, o, e); }
static yt_status c_mem_stats(const yt_api *a, yt_device *d, yt_mem_stats *o, yt_error *e) { WANT(mem_stats); return a->mem_stats(d, o, e); }
static yt_status c_module_load(const yt_api *a, yt_device *d, const void *p, uint64_t n, yt_module **m, yt_error *e) { WANT(module_load); return a->module_load(d, p, n, m, e); }
static yt_status c_module_unload(const yt_api *a, yt_module *m, yt_error *e) { WANT(module_unload); return a->module_unload(m, e); }
static yt_status c_kernel_get(const yt_api *a, yt_module *m, const char *name, uint64_t *k, yt_error *e) { WANT(kernel_get); return a->kernel_get(m, name, k, e); }
static yt_status c_kernel_config(const yt_api *a, yt_device *d, const char *k, const yt_kernel_config *c, yt_error *e) { WANT(kernel_config); return a->kernel_config(d, k, c, e); }
static yt_status c_fault_inject(const yt_api *a, yt_device *d, const char *spec, yt_error *e) { WANT(fault_inject); return a->fault_inject(d, spec, e); }
static yt_status c_event_create(const yt_api *a, yt_device *d, uint64_t *ev, yt_error *e) { return a->event_create(d, ev, e); }
static yt_status c_event_destroy(const yt_api *a, yt_device *d, uint64_t ev, yt_error *e) { return a->event_destroy(d, ev, e); }
static yt_status c_event_elapsed(const yt_api *a, yt_device *d, uint64_t x, uint64_t y, uint64_t *ns, yt_error *e) { return a->event_elapsed(d, x, y, ns, e); }

// The hot path neither retains its arguments nor calls back into Go. A gate is passed as a
// number, so that cgo does not scan it for Go pointers. The status is read from the gate,
// because a returned result would cost cgo a check before and after the call.
#cgo noescape c_submit
#cgo nocallback c_submit
#cgo noescape c_poll
#cgo nocallback c_poll
#cgo noescape c_nothing
#cgo nocallback c_nothing
*/
import "C"

import (
	"bytes"
	"fmt"
	"unsafe"
)

// These declarations compile only if the Go types and constants match the header: otherwise
// an array has a negative length, or a map literal a duplicate key.
var (
	_ [unsafe.Sizeof(Range{}) - C.sizeof_yt_range]struct{}
	_ [C.sizeof_yt_range - unsafe.Sizeof(Range{})]struct{}
	_ [unsafe.Sizeof(Preprocess{}) - C.sizeof_yt_preprocess]struct{}
	_ [C.sizeof_yt_preprocess - unsafe.Sizeof(Preprocess{})]struct{}
	_ [unsafe.Sizeof(Launch{}) - C.sizeof_yt_launch]struct{}
	_ [C.sizeof_yt_launch - unsafe.Sizeof(Launch{})]struct{}
	_ [unsafe.Sizeof(Decode{}) - C.sizeof_yt_decode]struct{}
	_ [C.sizeof_yt_decode - unsafe.Sizeof(Decode{})]struct{}
	_ [unsafe.Sizeof(NMS{}) - C.sizeof_yt_nms]struct{}
	_ [C.sizeof_yt_nms - unsafe.Sizeof(NMS{})]struct{}
	_ [unsafe.Sizeof(Rows{}) - C.sizeof_yt_rows]struct{}
	_ [C.sizeof_yt_rows - unsafe.Sizeof(Rows{})]struct{}
	_ [unsafe.Sizeof(Convert{}) - C.sizeof_yt_convert]struct{}
	_ [C.sizeof_yt_convert - unsafe.Sizeof(Convert{})]struct{}
	_ [unsafe.Sizeof(Gemm{}) - C.sizeof_yt_gemm]struct{}
	_ [C.sizeof_yt_gemm - unsafe.Sizeof(Gemm{})]struct{}
	_ [unsafe.Sizeof(ROI{}) - C.sizeof_yt_roi]struct{}
	_ [C.sizeof_yt_roi - unsafe.Sizeof(ROI{})]struct{}
	_ [unsafe.Sizeof(Diff{}) - C.sizeof_yt_diff]struct{}
	_ [C.sizeof_yt_diff - unsafe.Sizeof(Diff{})]struct{}
	_ [unsafe.Sizeof(Gather{}) - C.sizeof_yt_gather]struct{}
	_ [C.sizeof_yt_gather - unsafe.Sizeof(Gather{})]struct{}
	_ [unsafe.Sizeof(Grid{}) - C.sizeof_yt_grid]struct{}
	_ [C.sizeof_yt_grid - unsafe.Sizeof(Grid{})]struct{}
	_ [unsafe.Sizeof(Masks{}) - C.sizeof_yt_masks]struct{}
	_ [C.sizeof_yt_masks - unsafe.Sizeof(Masks{})]struct{}
	_ [unsafe.Sizeof(Stats{}) - C.sizeof_yt_plane_stats]struct{}
	_ [C.sizeof_yt_plane_stats - unsafe.Sizeof(Stats{})]struct{}
	_ [unsafe.Sizeof(Cmd{}) - C.sizeof_yt_cmd]struct{}
	_ [C.sizeof_yt_cmd - unsafe.Sizeof(Cmd{})]struct{}
	_ = map[bool]struct{}{false: {}, OpCopy == C.YT_OP_COPY && OpStats == C.YT_OP_LAST &&
		OpPreprocess == C.YT_OP_PREPROCESS && OpReduce == C.YT_OP_REDUCE && OpRecord == C.YT_OP_RECORD && OpGemm == C.YT_OP_GEMM && OpMasks == C.YT_OP_MASKS &&
		MaxBoxes == C.YT_MAX_BOXES && MaxVirtual == C.YT_MAX_VIRTUAL &&
		OpenStrict == C.YT_OPEN_STRICT && CapHostRanges == C.YT_CAP_HOST_RANGES && MaxCmds == C.YT_MAX_CMDS && CodeNoBackend == C.YT_E_NO_BACKEND: {}}
)

// API is a backend's table of functions. CPU and Load create it; it is never freed, like
// the library. It is in C memory, because cgo scans arguments in Go memory for pointers.
type API struct{ t *C.yt_api }

// Handles of a backend. A closed Stream may still be called until Free.
type (
	Device struct{ p *C.yt_device }
	Stream struct{ g *C.struct_yt_gate }
	Module struct{ p *C.yt_module }
)

// failure copies the error of a call that returned rc.
func failure(rc C.yt_status, e *C.yt_error) Failure {
	if rc == C.YT_OK {
		return Failure{}
	}
	// C.GoString would move every yt_error to the heap.
	msg := unsafe.Slice((*byte)(unsafe.Pointer(&e.msg)), len(e.msg))
	if end := bytes.IndexByte(msg, 0); end >= 0 {
		msg = msg[:end]
	}
	// The returned status counts, even if the backend did not fill e.
	return Failure{Code: int32(rc), Sticky: e.sticky != 0, Native: int32(e.native), Msg: string(msg)}
}

// CPU returns the compiled-in CPU backend.
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

// table allocates a table and fills it.
func table(fill func(*C.yt_api, *C.yt_error) C.yt_status) (*API, Failure) {
	// C.malloc never returns nil.
	t := (*C.yt_api)(C.malloc(C.sizeof_yt_api))
	*t = C.yt_api{}
	var e C.yt_error
	if rc := fill(t, &e); rc != C.YT_OK {
		C.free(unsafe.Pointer(t))
		return nil, failure(rc, &e)
	}
	return &API{t}, Failure{}
}

// Name returns the name of the backend.
func (a *API) Name() string { return C.GoString(a.t.name) }

// BuildID returns the version and compiler of the backend.
func (a *API) BuildID() string { return C.GoString(a.t.build_id) }

// Caps returns the YT_CAP bits of the backend.
func (a *API) Caps() uint32 { return uint32(a.t.caps) }

// Ops returns bit 1<<Op for each operation of the backend.
func (a *API) Ops() uint64 { return uint64(C.c_ops(a.t)) }

// DeviceCount returns the number of devices.
func (a *API) DeviceCount() (int, Failure) {
	var n C.uint32_t
	var e C.yt_error
	rc := C.c_device_count(a.t, &n, &e)
	return int(n), failure(rc, &e)
}

// DeviceOpen opens a device. The defaults are threads 0, faults "" and flags 0.
func (a *API) DeviceOpen(index, threads uint32, faults string, flags uint32) (Device, Failure) {
	var d Device
	var e C.yt_error
	f := C.CString(faults)
	defer C.free(unsafe.Pointer(f))
	rc := C.c_device_open(a.t, C.uint32_t(index), C.uint32_t(threads), f, C.uint32_t(flags), &d.p, &e)
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
		Managed: i.managed != 0, MapHost: i.map_host != 0, HostRegister: i.host_register != 0,
		Warp: int(i.warp), ThreadsPerBlock: int(i.max_threads_per_block), ThreadsPerSM: int(i.threads_per_sm),
		BlocksPerSM: int(i.blocks_per_sm), RegsPerSM: int(i.regs_per_sm), RegsPerBlock: int(i.regs_per_block),
		SharedPerSM: uint64(i.smem_per_sm), SharedPerBlock: uint64(i.smem_per_block), SharedOptIn: uint64(i.smem_per_block_optin),
		SharedReserved: uint64(i.smem_reserved), ClockKHz: int(i.clock_khz), MemClockKHz: int(i.mem_clock_khz), BusBits: int(i.mem_bus_bits),
	}, Failure{}
}

// DeviceHealth returns the sticky error.
func (a *API) DeviceHealth(d Device) Failure {
	var e C.yt_error
	return failure(C.c_device_health(a.t, d.p, &e), &e)
}

// DeviceClose closes a device without streams, buffers and events.
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
	return allocation(&b), Failure{}
}

func allocation(b *C.yt_buffer) Allocation {
	return Allocation{ID: uint64(b.id), Mode: uint32(b.mode), Host: b.host, Device: uint64(b.device), Bytes: uint64(b.bytes)}
}

// BufFree frees a buffer.
func (a *API) BufFree(d Device, id uint64) Failure {
	var e C.yt_error
	return failure(C.c_buf_free(a.t, d.p, C.uint64_t(id), &e), &e)
}

// BufAddress returns the address at which a library that computes on the device finds a buffer.
func (a *API) BufAddress(d Device, id uint64) (uint64, Failure) {
	var e C.yt_error
	var at C.uint64_t
	rc := C.c_buf_address(a.t, d.p, C.uint64_t(id), &at, &e)
	return uint64(at), failure(rc, &e)
}

// StreamOpen opens a stream; name has at most 15 bytes.
func (a *API) StreamOpen(d Device, flags uint32, name string) (Stream, Failure) {
	var h *C.yt_stream
	var e C.yt_error
	o := C.yt_stream_options{size: C.sizeof_yt_stream_options, flags: C.uint32_t(flags)}
	for i := range min(len(name), len(o.name)-1) {
		o.name[i] = C.char(name[i])
	}
	rc := C.c_stream_open(a.t, d.p, &o, &h, &e)
	if rc != C.YT_OK {
		return Stream{}, failure(rc, &e)
	}
	g := C.c_gate_new(a.t, h)
	if g == nil {
		C.c_stream_destroy(a.t, h, &e)
		return Stream{}, Failure{Code: CodeOOM, Msg: "no memory for the stream"}
	}
	return Stream{g}, Failure{}
}

// StreamClose waits for a call in progress, then for at most ns for the stream's work, and
// destroys the stream. Later calls fail with CodeClosed. If the work does not end, the
// stream stays open.
func (a *API) StreamClose(s Stream, ns uint64) Failure {
	var e C.yt_error
	C.c_gate_close(s.g)
	h := C.c_gate_stream(s.g)
	// The result of the work is reported elsewhere. Destroying the stream fails if the
	// work has not ended.
	C.c_stream_poll(a.t, h, C.uint64_t(ns), &e)
	rc := C.c_stream_destroy(a.t, h, &e)
	if rc != C.YT_OK {
		C.c_gate_reopen(s.g)
	}
	return failure(rc, &e)
}

// Free frees the memory of a closed stream.
func (s Stream) Free() { C.free(unsafe.Pointer(s.g)) }

// why copies the error of the last call on the stream.
func (s Stream) why(rc C.yt_status) Failure {
	if rc == C.YT_GATE_CLOSED {
		return Failure{Code: CodeClosed}
	}
	var e C.yt_error
	C.c_gate_error(s.g, &e)
	return failure(rc, &e)
}

// Submit checks and runs a list. It returns 0 or a code that Why explains. Host memory in a
// range must stay pinned until the list has finished. known is 0, or a number of the stream
// that no other commands have: what was checked is not checked again.
func (s Stream) Submit(cmds []Cmd, known uint64) int32 {
	C.c_submit(s.number(), (*C.yt_cmd)(unsafe.Pointer(unsafe.SliceData(cmds))), C.uint32_t(len(cmds)), C.uint64_t(known))
	return int32(s.g.rc)
}

// number returns the address of the gate, in C memory.
func (s Stream) number() C.uintptr_t { return C.uintptr_t(uintptr(unsafe.Pointer(s.g))) }

// Poll waits for at most ns for all submitted work. It returns a code as Submit does.
func (s Stream) Poll(ns uint64) int32 {
	C.c_poll(s.number(), C.uint64_t(ns))
	return int32(s.g.rc)
}

// Why explains the code that the last call on the stream returned.
func (s Stream) Why(code int32) Failure { return s.why(C.yt_status(code)) }

// Nothing is an empty call into C, for comparison.
func Nothing() { C.c_nothing(0) }

// BufRegister makes a buffer of the caller's memory, which must not be Go memory.
func (a *API) BufRegister(d Device, host unsafe.Pointer, bytes uint64) (Allocation, Failure) {
	var e C.yt_error
	b := C.yt_buffer{size: C.sizeof_yt_buffer}
	if rc := C.c_buf_register(a.t, d.p, host, C.uint64_t(bytes), &b, &e); rc != C.YT_OK {
		return Allocation{}, failure(rc, &e)
	}
	return allocation(&b), Failure{}
}

func choice(c *C.yt_mem_choice) Choice {
	return Choice{Mode: uint32(c.mode), Why: uint32(c.why), Allowed: uint32(c.allowed), Text: C.GoString(&c.text[0])}
}

// MemChoose returns the mode that the device would allocate.
func (a *API) MemChoose(d Device, mode, cpu uint32) (Choice, Failure) {
	var e C.yt_error
	c := C.yt_mem_choice{size: C.sizeof_yt_mem_choice}
	rc := C.c_mem_choose(a.t, d.p, C.uint32_t(mode), C.uint32_t(cpu), &c, &e)
	return choice(&c), failure(rc, &e)
}

// ChooseFor returns the mode that a GPU with these attributes would allocate.
func ChooseFor(at Attributes, mode, cpu uint32) (Choice, Failure) {
	var e C.yt_error
	var c C.yt_mem_choice
	i := C.yt_device_info{
		integrated: flag(at.Integrated), map_host: flag(at.MapHost), managed: flag(at.Managed),
		concurrent_managed: flag(at.ConcurrentManaged), host_register: flag(at.HostRegister),
	}
	rc := C.yt_choose(&i, C.uint32_t(mode), C.uint32_t(cpu), &c, &e)
	return choice(&c), failure(rc, &e)
}

func flag(b bool) C.uint32_t {
	if b {
		return 1
	}
	return 0
}

// MemStats reads the device's counters.
func (a *API) MemStats(d Device) (MemStats, Failure) {
	var e C.yt_error
	s := C.yt_mem_stats{size: C.sizeof_yt_mem_stats}
	if rc := C.c_mem_stats(a.t, d.p, &s, &e); rc != C.YT_OK {
		return MemStats{}, failure(rc, &e)
	}
	out := MemStats{
		Total: uint64(s.total), TotalPeak: uint64(s.total_peak), H2D: uint64(s.h2d), D2H: uint64(s.d2h), D2D: uint64(s.d2d),
		H2H: uint64(s.h2h), PageableCopies: uint64(s.pageable_copies), PageableBytes: uint64(s.pageable_bytes),
	}
	for i := range out.Bytes {
		out.Bytes[i], out.Peak[i], out.Allocs[i] = uint64(s.bytes[i]), uint64(s.peak[i]), uint64(s.allocs[i])
	}
	return out, Failure{}
}

// ModuleLoad loads a chain or a cubin.
func (a *API) ModuleLoad(d Device, image []byte) (Module, Failure) {
	var m Module
	var e C.yt_error
	rc := C.c_module_load(a.t, d.p, unsafe.Pointer(unsafe.SliceData(image)), C.uint64_t(len(image)), &m.p, &e)
	return m, failure(rc, &e)
}

// ModuleUnload unloads a module.
func (a *API) ModuleUnload(m Module) Failure {
	var e C.yt_error
	return failure(C.c_module_unload(a.t, m.p, &e), &e)
}

// Compile compiles CUDA source to a cubin or to PTX with NVRTC. library is its path, or ""
// for the installed one. version is the version of NVRTC.
func Compile(library, source string, headers map[string]string, options []string, cubin bool) (image []byte, version string, f Failure) {
	texts := func(all []string) (**C.char, func()) {
		// The array holds C pointers, so it must be in C memory.
		list := unsafe.Slice((**C.char)(C.malloc(C.size_t(len(all)+1)*C.size_t(unsafe.Sizeof((*C.char)(nil))))), len(all)+1)
		for i, text := range all {
			list[i] = C.CString(text)
		}
		return &list[0], func() {
			for i := range all {
				C.free(unsafe.Pointer(list[i]))
			}
			C.free(unsafe.Pointer(&list[0]))
		}
	}
	var names, bodies []string
	for name, body := range headers {
		names, bodies = append(names, name), append(bodies, body)
	}
	cnames, freeNames := texts(names)
	defer freeNames()
	cbodies, freeBodies := texts(bodies)
	defer freeBodies()
	coptions, freeOptions := texts(options)
	defer freeOptions()
	lib, src := C.CString(library), C.CString(source)
	defer C.free(unsafe.Pointer(lib))
	defer C.free(unsafe.Pointer(src))
	var out C.yt_nvrtc_result
	var e C.yt_error
	want := C.int(0)
	if cubin {
		want = 1
	}
	rc := C.yt_nvrtc_compile(lib, src, C.uint32_t(len(names)), cnames, cbodies, C.uint32_t(len(options)), coptions, want, &out, &e)
	defer C.free(unsafe.Pointer(out.image))
	defer C.free(unsafe.Pointer(out.log))
	version = fmt.Sprintf("%d.%d", out.major, out.minor)
	if rc != C.YT_OK {
		return nil, version, failure(rc, &e)
	}
	return C.GoBytes(unsafe.Pointer(out.image), C.int(out.bytes)), version, Failure{}
}

// KernelGet finds a kernel.
func (a *API) KernelGet(m Module, name string) (uint64, Failure) {
	var k C.uint64_t
	var e C.yt_error
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	rc := C.c_kernel_get(a.t, m.p, n, &k, &e)
	return uint64(k), failure(rc, &e)
}

// KernelConfig sets the launch configuration of a built-in kernel.
func (a *API) KernelConfig(d Device, kernel string, block, tile uint32) Failure {
	var e C.yt_error
	n := C.CString(kernel)
	defer C.free(unsafe.Pointer(n))
	c := C.yt_kernel_config{size: C.sizeof_yt_kernel_config, block: C.uint32_t(block), tile: C.uint32_t(tile)}
	return failure(C.c_kernel_config(a.t, d.p, n, &c, &e), &e)
}

// FaultInject replaces the injected faults of the device.
func (a *API) FaultInject(d Device, spec string) Failure {
	var e C.yt_error
	s := C.CString(spec)
	defer C.free(unsafe.Pointer(s))
	return failure(C.c_fault_inject(a.t, d.p, s, &e), &e)
}

// CheckFaults checks the syntax of a fault specification.
func CheckFaults(spec string) Failure {
	var e C.yt_error
	var f C.yt_faults
	s := C.CString(spec)
	defer C.free(unsafe.Pointer(s))
	return failure(C.yt_faults_parse(s, 0, &f, &e), &e)
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
