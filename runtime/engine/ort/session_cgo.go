//go:build cgo

package ort

/*
#cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -D_GNU_SOURCE
#cgo linux LDFLAGS: -ldl
#cgo noescape ort_run
#cgo nocallback ort_run
#cgo noescape ort_run_bound
#cgo nocallback ort_run_bound
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/onnx"
)

// Runtime is a loaded ONNX Runtime. It may be used from several goroutines.
type Runtime struct {
	c   *C.ort_runtime
	api int
}

// Open loads the library at path. The error wraps [ErrNoLibrary]. The library
// stays loaded until the process ends: its threads outlive any unloading.
func Open(path string) (*Runtime, error) {
	c := (*C.ort_runtime)(C.calloc(1, C.sizeof_ort_runtime))
	if c == nil {
		return nil, errors.New("onnx runtime: out of memory")
	}
	cpath := C.CString(path)
	defer C.free(unsafe.Pointer(cpath))
	var e C.ort_error
	if C.ort_load(c, cpath, &e) != 0 {
		C.free(unsafe.Pointer(c))
		return nil, fmt.Errorf("%w: %s: %s", ErrNoLibrary, path, C.GoString(&e.msg[0]))
	}
	r := &Runtime{c: c}
	var err error
	if r.api, err = apiFor(r.Version()); err != nil {
		C.free(unsafe.Pointer(c))
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if C.ort_start(c, C.uint32_t(r.api), &e) != 0 {
		C.ort_stop(c)
		C.free(unsafe.Pointer(c))
		return nil, fmt.Errorf("%w: %s %s: %s", ErrNoLibrary, path, r.Version(), C.GoString(&e.msg[0]))
	}
	return r, nil
}

// Version is the release of the library, "1.24.2".
func (r *Runtime) Version() string { return C.GoString(&r.c.version[0]) }

// Close releases what Open made, after every session and tensor is closed.
func (r *Runtime) Close() {
	if r.c != nil {
		C.ort_stop(r.c)
		C.free(unsafe.Pointer(r.c))
		r.c = nil
	}
}

// Session is a loaded model with one input and one output chosen. Run may be
// called by one goroutine at a time, Terminate by any.
type Session struct {
	rt              *Runtime
	c               *C.ort_session
	inputs, outputs []Info
	in              Info
	outs            []Info // to read, the first by Run
	provider        string
	missing         []Missing
	terminated      atomic.Bool
	mu              sync.Mutex // orders Terminate against Close
}

// NewSession loads the model in the file. Errors wrap [ErrModel],
// [ErrUnsupported], or what opening the file gave.
func (r *Runtime) NewSession(path string, o Options) (*Session, error) {
	data, unmap, err := mapFile(path)
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	defer unmap()
	s, err := r.NewSessionFromBytes(data, o)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", path, err)
	}
	return s, nil
}

// NewSessionFromBytes loads a model from memory, which it does not keep.
func (r *Runtime) NewSessionFromBytes(model []byte, o Options) (*Session, error) {
	if len(model) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrModel)
	}
	if o.Check != nil {
		if err := o.Check(model); err != nil {
			return nil, err
		}
	}
	if o.Threads <= 0 {
		o.Threads = runtime.NumCPU()
	}
	wanted := o.Providers
	if len(wanted) == 0 {
		wanted = []string{CPU}
	}
	var missing []Missing
	for _, p := range wanted {
		s, err := r.session(model, p, o)
		if err == nil {
			if err = s.choose(o); err != nil {
				s.Close()
				return nil, err
			}
			s.provider, s.missing = p, missing
			return s, nil
		}
		if p == CPU {
			return nil, explain(model, err)
		}
		missing = append(missing, Missing{Provider: p, Why: err.Error()})
	}
	return nil, fmt.Errorf("%w: %s", ErrProvider, why(missing))
}

// explain names what the library has no plain words for.
func explain(model []byte, err error) error {
	m, rerr := onnx.Read(bytes.NewReader(model), int64(len(model)))
	switch {
	case rerr != nil:
		return err
	case m.External:
		return fmt.Errorf("%w: its weights are in another file, save it with them inside: %w", ErrUnsupported, err)
	}
	return fmt.Errorf("%w; it is of IR version %d and opset %d", err, m.IR, m.Opsets[""])
}

// session loads the model for one provider.
func (r *Runtime) session(model []byte, provider string, o Options) (*Session, error) {
	if provider == TensorRT {
		if o.Engine == nil {
			return nil, errors.New("no engine was built for this model; build it with: yoctuned engines build")
		}
		path, err := o.Engine()
		if err != nil {
			return nil, err
		}
		data, unmap, err := mapFile(path)
		if err != nil {
			return nil, fmt.Errorf("read engine: %w", err)
		}
		defer unmap()
		model = data
	}
	set := C.ort_settings{threads: C.int32_t(o.Threads), spinning: flag(o.Spinning), arena: flag(!o.NoArena)}
	var e C.ort_error
	var options unsafe.Pointer
	defer func() { C.ort_options_free(r.c, options) }()
	if C.ort_options_new(r.c, &set, &options, &e) != 0 {
		return nil, goError(&e)
	}
	if err := r.appendProvider(options, provider, o); err != nil {
		return nil, err
	}
	c := (*C.ort_session)(C.calloc(1, C.sizeof_ort_session))
	if c == nil {
		return nil, errors.New("onnx runtime: out of memory")
	}
	if C.ort_session_new(r.c, c, unsafe.Pointer(unsafe.SliceData(model)), C.size_t(len(model)), options, &e) != 0 {
		C.free(unsafe.Pointer(c))
		return nil, fmt.Errorf("%w: %w", ErrModel, goError(&e))
	}
	return &Session{rt: r, c: c}, nil
}

func flag(on bool) C.int32_t {
	if on {
		return 1
	}
	return 0
}

// gpuAPI is the version of the function table from which on providers are set up
// by key and value; the structures before it are partly uninitialised.
const gpuAPI = 11

func (r *Runtime) appendProvider(options unsafe.Pointer, provider string, o Options) error {
	number, known := map[string]C.int{CPU: 0, CUDA: C.ORT_CUDA, TensorRT: C.ORT_TENSORRT}[provider]
	switch {
	case !known:
		return fmt.Errorf("%w: %q is no provider", ErrUnsupported, provider)
	case provider == CPU:
		return nil // it is always there, last
	case r.api < gpuAPI:
		return fmt.Errorf("ONNX Runtime %s is older than 1.%d", r.Version(), gpuAPI)
	}
	var e C.ort_error
	if provider != CUDA || o.GPUMemory <= 0 {
		if C.ort_append(r.c, options, number, nil, nil, 0, &e) != 0 {
			return goError(&e)
		}
		return nil
	}
	key, value := C.CString("gpu_mem_limit"), C.CString(strconv.FormatInt(o.GPUMemory, 10))
	defer C.free(unsafe.Pointer(key))
	defer C.free(unsafe.Pointer(value))
	if C.ort_append(r.c, options, number, &key, &value, 1, &e) != 0 {
		return goError(&e)
	}
	return nil
}

func why(missing []Missing) string {
	s := make([]string, len(missing))
	for n, m := range missing {
		s[n] = m.Provider + ": " + m.Why
	}
	return strings.Join(s, "; ")
}

// Provider is what runs the model.
func (s *Session) Provider() string { return s.provider }

// Missing lists the providers that were wanted more.
func (s *Session) Missing() []Missing { return s.missing }

// choose reads what the model has and picks the input and output to use.
func (s *Session) choose(o Options) error {
	var e C.ort_error
	var nin, nout C.size_t
	if C.ort_session_counts(s.c, &nin, &nout, &e) != 0 {
		return fmt.Errorf("%w: %w", ErrModel, goError(&e))
	}
	var err error
	if s.inputs, err = s.describe(0, int(nin)); err != nil {
		return err
	}
	if s.outputs, err = s.describe(1, int(nout)); err != nil {
		return err
	}
	if len(s.inputs) != 1 {
		return fmt.Errorf("%w: %d inputs (%s), one can be fed", ErrUnsupported, len(s.inputs), join(s.inputs))
	}
	if s.in, err = pick("input", o.Input, s.inputs); err != nil {
		return err
	}
	for n, name := range append([]string{o.Output}, o.More...) {
		rest := s.outputs
		if n > 0 && name == "" {
			rest = slices.DeleteFunc(slices.Clone(rest), func(i Info) bool {
				return slices.ContainsFunc(s.outs, func(o Info) bool { return o.Name == i.Name })
			})
		}
		out, err := pick("output", name, rest)
		if err != nil {
			return err
		}
		s.outs = append(s.outs, out)
	}
	in := C.CString(s.in.Name)
	defer C.free(unsafe.Pointer(in))
	if C.ort_session_input(s.c, in, &e) != 0 {
		return goError(&e)
	}
	for _, o := range s.outs {
		out := C.CString(o.Name)
		rc := C.ort_session_output(s.c, out, &e)
		C.free(unsafe.Pointer(out))
		if rc != 0 {
			return goError(&e)
		}
	}
	return nil
}

func (s *Session) describe(output, n int) ([]Info, error) {
	all := make([]Info, n)
	for i := range all {
		var e C.ort_error
		var io C.ort_io
		if C.ort_session_io(s.c, C.int(output), C.size_t(i), &io, &e) != 0 {
			return nil, fmt.Errorf("%w: %w", ErrModel, goError(&e))
		}
		all[i] = goInfo(&io)
	}
	return all, nil
}

// Inputs lists what the model can be fed.
func (s *Session) Inputs() []Info { return s.inputs }

// Outputs lists what the model gives.
func (s *Session) Outputs() []Info { return s.outputs }

// NewOutput runs the model once on in and allocates a tensor of the shape that
// came out, for [Session.Run] to fill. It also warms the session up.
func (s *Session) NewOutput(in *Tensor) (*Tensor, error) {
	shapes, err := s.Probe(in)
	if err != nil {
		return nil, err
	}
	return s.rt.NewTensor(shapes[0])
}

// Probe runs the model once on in and returns the shape of each output that is
// read: [Options].Output, then More.
func (s *Session) Probe(in *Tensor) ([][]int64, error) {
	if s.c == nil {
		return nil, ErrClosed
	}
	if err := s.in.checkFed(in.shape); err != nil {
		return nil, err
	}
	var e C.ort_error
	var io [C.ORT_MAX_OUTPUTS]C.ort_io
	if C.ort_probe(s.c, in.c, &io[0], &e) != 0 {
		return nil, s.runError(&e)
	}
	shapes := make([][]int64, len(s.outs))
	for n := range shapes {
		got := goInfo(&io[n])
		if got.DType != Float32 {
			return nil, fmt.Errorf("%w: output %s, only float32 can be read", ErrUnsupported, got)
		}
		shapes[n] = got.Shape
	}
	return shapes, nil
}

// Binding is a session tied to tensors whose memory does not move: where the
// runtime has memory of its own, it learns of these once and not at each run.
type Binding struct {
	s *Session
	c unsafe.Pointer
}

// Bind ties the session to its input and its outputs, in the order of
// [Session.Probe], whose shapes they have.
func (s *Session) Bind(in *Tensor, outs ...*Tensor) (*Binding, error) {
	if s.c == nil {
		return nil, ErrClosed
	}
	if err := s.in.checkFed(in.shape); err != nil {
		return nil, err
	}
	if len(outs) != len(s.outs) {
		return nil, fmt.Errorf("%w: %d tensors for %d outputs", ErrShape, len(outs), len(s.outs))
	}
	// C reads the list during the call only, and what it points to is C's own.
	list := (*[C.ORT_MAX_OUTPUTS]*C.ort_tensor)(C.calloc(C.ORT_MAX_OUTPUTS, C.size_t(unsafe.Sizeof(uintptr(0)))))
	if list == nil {
		return nil, errors.New("onnx runtime: out of memory")
	}
	defer C.free(unsafe.Pointer(list))
	for n, o := range outs {
		list[n] = o.c
	}
	b := &Binding{s: s}
	var e C.ort_error
	if C.ort_bind(s.c, in.c, &list[0], C.size_t(len(outs)), &b.c, &e) != 0 {
		return nil, fmt.Errorf("%w: %w", ErrShape, goError(&e))
	}
	return b, nil
}

// Run computes what is bound. The error wraps [ErrTerminated] or [ErrRun].
func (b *Binding) Run() error {
	if b.s.c == nil || b.c == nil {
		return ErrClosed
	}
	if C.ort_run_bound(b.s.c, b.c) != 0 {
		return b.s.runError(&b.s.c.err)
	}
	return nil
}

// Close unties what was bound, before the session and the tensors are closed.
func (b *Binding) Close() {
	if b.c != nil {
		C.ort_unbind(b.s.rt.c, b.c)
		b.c = nil
	}
}

// Run computes out from in. The shape of in is checked against the model; out
// must come from [Session.NewOutput] with an input of the same shape. The error
// wraps [ErrShape], [ErrTerminated] or [ErrRun].
func (s *Session) Run(in, out *Tensor) error {
	if s.c == nil {
		return ErrClosed
	}
	if err := s.in.checkFed(in.shape); err != nil {
		return err
	}
	if C.ort_run(s.c, in.c, out.c) != 0 {
		return s.runError(&s.c.err)
	}
	return nil
}

// Terminate makes a Run in progress return with [ErrTerminated] at the model's
// next node, and every later one at once.
func (s *Session) Terminate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		s.terminated.Store(true)
		C.ort_terminate(s.c)
	}
}

// Resume takes Terminate back. No Run may be in progress.
func (s *Session) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		C.ort_resume(s.c)
		s.terminated.Store(false)
	}
}

// Close frees the model. No Run may be in progress.
func (s *Session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		C.ort_session_free(s.c)
		C.free(unsafe.Pointer(s.c))
		s.c = nil
	}
}

func (s *Session) runError(e *C.ort_error) error {
	if s.terminated.Load() {
		return ErrTerminated
	}
	return fmt.Errorf("%w: %w", ErrRun, goError(e))
}

// Tensor is a dense float32 tensor in memory outside the Go heap, aligned to 256
// bytes.
type Tensor struct {
	rt    *Runtime
	c     *C.ort_tensor
	shape []int64
	data  []float32
}

// NewTensor allocates a tensor of zeros; every dimension is 1 or more.
func (r *Runtime) NewTensor(shape []int64) (*Tensor, error) {
	n, err := elements(shape)
	if err != nil {
		return nil, err
	}
	c := (*C.ort_tensor)(C.calloc(1, C.sizeof_ort_tensor))
	if c == nil {
		return nil, errors.New("onnx runtime: out of memory")
	}
	t := &Tensor{rt: r, c: c, shape: append([]int64(nil), shape...)}
	dims := (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(t.shape)))
	var e C.ort_error
	if C.ort_tensor_new(r.c, c, dims, C.size_t(len(shape)), C.size_t(n*4), &e) != 0 {
		C.free(unsafe.Pointer(c))
		return nil, fmt.Errorf("tensor %v: %w", shape, goError(&e))
	}
	t.data = unsafe.Slice((*float32)(unsafe.Pointer(t.c.data)), n)
	return t, nil
}

// NewTensorOver makes a tensor of memory that is the caller's: outside the Go heap,
// aligned to 64 bytes, as large as the shape wants and valid until Close.
func (r *Runtime) NewTensorOver(shape []int64, memory []byte) (*Tensor, error) {
	n, err := elements(shape)
	if err != nil {
		return nil, err
	}
	if int64(len(memory)) != n*4 || uintptr(unsafe.Pointer(unsafe.SliceData(memory)))%64 != 0 {
		return nil, fmt.Errorf("%w: %v is not a tensor of %d bytes at %p: 4 an element, aligned to 64", ErrShape, shape, len(memory), memory)
	}
	c := (*C.ort_tensor)(C.calloc(1, C.sizeof_ort_tensor))
	if c == nil {
		return nil, errors.New("onnx runtime: out of memory")
	}
	t := &Tensor{rt: r, c: c, shape: append([]int64(nil), shape...)}
	dims := (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(t.shape)))
	var e C.ort_error
	if C.ort_tensor_over(r.c, c, dims, C.size_t(len(shape)), unsafe.Pointer(unsafe.SliceData(memory)), C.size_t(n*4), &e) != 0 {
		C.free(unsafe.Pointer(c))
		return nil, fmt.Errorf("tensor %v: %w", shape, goError(&e))
	}
	t.data = unsafe.Slice((*float32)(unsafe.Pointer(t.c.data)), n)
	return t, nil
}

// Shape returns the dimensions.
func (t *Tensor) Shape() []int64 { return t.shape }

// Data is the tensor's memory, row-major. It is valid until Close.
func (t *Tensor) Data() []float32 { return t.data }

// Close frees the memory.
func (t *Tensor) Close() {
	if t.data != nil {
		C.ort_tensor_free(t.rt.c, t.c)
		C.free(unsafe.Pointer(t.c))
		t.c, t.data = nil, nil
	}
}

func goError(e *C.ort_error) *RuntimeError {
	return &RuntimeError{Code: int(e.code), Message: strings.ToValidUTF8(C.GoString(&e.msg[0]), "?")}
}

func goInfo(io *C.ort_io) Info {
	info := Info{Name: C.GoString(&io.name[0]), DType: DType(io.dtype)}
	for i := range int(io.ndims) {
		info.Shape = append(info.Shape, int64(io.dims[i]))
		info.Axes = append(info.Axes, C.GoString(&io.axes[i][0]))
	}
	return info
}

// mapFile maps a file to read, so that a model of hundreds of megabytes costs
// no heap while it is loaded.
func mapFile(path string) (data []byte, unmap func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", path)
	}
	if st.Size() == 0 {
		return nil, func() {}, nil
	}
	data, err = unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, &os.PathError{Op: "mmap", Path: path, Err: err}
	}
	return data, func() { _ = unix.Munmap(data) }, nil
}
