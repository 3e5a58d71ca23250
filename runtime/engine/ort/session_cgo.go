//go:build cgo

package ort

/*
#cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -D_GNU_SOURCE
#cgo linux LDFLAGS: -ldl
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

	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/onnx"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Runtime is a loaded ONNX Runtime. Several goroutines may use it.
type Runtime struct {
	c   *C.ort_runtime
	api int
}

// Open loads the library at path. The error wraps [ErrNoLibrary]. The library stays loaded
// until the process exits, because its threads do.
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

// Version returns the release of the library, such as "1.24.2".
func (r *Runtime) Version() string { return C.GoString(&r.c.version[0]) }

// Close frees the runtime. All sessions and tensors must be closed before.
func (r *Runtime) Close() {
	if r.c != nil {
		C.ort_stop(r.c)
		C.free(unsafe.Pointer(r.c))
		r.c = nil
	}
}

// Session is a loaded model with its inputs and at least one selected output. Only one
// goroutine may run it at a time; any may call Terminate.
type Session struct {
	rt              *Runtime
	c               *C.ort_session
	inputs, outputs []Info
	ins             []Info // in the order of Bind
	outs            []Info // selected outputs
	provider        string
	missing         []Missing
	terminated      atomic.Bool
	mu              sync.Mutex // orders Terminate against Close
}

// NewSession loads the model in a file. Errors wrap [ErrModel], [ErrUnsupported],
// [ErrProvider] or the error of reading the file.
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

// NewSessionFromBytes loads a model from memory, which the session does not retain.
func (r *Runtime) NewSessionFromBytes(model []byte, o Options) (*Session, error) {
	if len(model) == 0 {
		return nil, fmt.Errorf("%w: the file is empty", ErrModel)
	}
	if o.Check != nil {
		if err := o.Check(model); err != nil {
			return nil, err
		}
	}
	about, rerr := onnx.Read(bytes.NewReader(model), int64(len(model)))
	if rerr == nil {
		if err := about.CheckComplete(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
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
			if about == nil && !isORTFormat(model) {
				err = fmt.Errorf("%w: %w", ErrUnsupported, rerr)
			} else {
				err = s.selectTensors(o)
			}
			if err != nil {
				s.Close()
				return nil, err
			}
			s.provider, s.missing = p, missing
			return s, nil
		}
		if p == CPU {
			return nil, explain(about, err)
		}
		missing = append(missing, Missing{Provider: p, Why: err.Error()})
	}
	return nil, fmt.Errorf("%w: %s", ErrProvider, joinReasons(missing))
}

// isORTFormat reports whether a model has ONNX Runtime's own format, a flatbuffer.
func isORTFormat(model []byte) bool { return len(model) >= 8 && string(model[4:8]) == "ORTM" }

// explain adds what the file declares to an error of loading a model; m is nil for a file without a graph.
func explain(m *onnx.Model, err error) error {
	if m == nil {
		return err
	}
	return fmt.Errorf("%w; the model has IR version %d and opset %d", err, m.IR, m.Opsets[""])
}

// session loads the model for one provider.
func (r *Runtime) session(model []byte, provider string, o Options) (*Session, error) {
	if provider == TensorRT {
		if o.Engine == nil {
			return nil, errors.New("no TensorRT engine for this model; run: yoctuned engines build")
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

// gpuAPI is the first API version that configures providers by keys and values. Earlier
// versions use structs that are partly uninitialised.
const gpuAPI = 11

func (r *Runtime) appendProvider(options unsafe.Pointer, provider string, o Options) error {
	number, known := map[string]C.int{CPU: 0, CUDA: C.ORT_CUDA, TensorRT: C.ORT_TENSORRT}[provider]
	switch {
	case !known:
		return fmt.Errorf("%w: unknown execution provider %q", ErrUnsupported, provider)
	case provider == CPU:
		return nil // always present, as the last one
	case r.api < gpuAPI:
		return fmt.Errorf("ONNX Runtime %s is older than 1.%d", r.Version(), gpuAPI)
	}
	settings := [][2]string{{"device_id", strconv.Itoa(o.GPU)}}
	if provider == CUDA && o.GPUMemory > 0 {
		settings = append(settings, [2]string{"gpu_mem_limit", strconv.FormatInt(o.GPUMemory, 10)})
	}
	var keys, values [2]*C.char
	for i, s := range settings {
		keys[i], values[i] = C.CString(s[0]), C.CString(s[1])
		defer C.free(unsafe.Pointer(keys[i]))
		defer C.free(unsafe.Pointer(values[i]))
	}
	var e C.ort_error
	if C.ort_append(r.c, options, number, &keys[0], &values[0], C.size_t(len(settings)), &e) != 0 {
		return goError(&e)
	}
	return nil
}

func joinReasons(missing []Missing) string {
	s := make([]string, len(missing))
	for n, m := range missing {
		s[n] = m.Provider + ": " + m.Why
	}
	return strings.Join(s, "; ")
}

// Provider returns the execution provider that runs the model.
func (s *Session) Provider() string { return s.provider }

// Missing returns the preferred providers that are unavailable.
func (s *Session) Missing() []Missing { return s.missing }

// selectTensors reads the model's inputs and outputs and selects those to use.
func (s *Session) selectTensors(o Options) error {
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
	if s.ins, err = selectInputs(s.inputs, o.Inputs); err != nil {
		return err
	}
	for n, name := range append([]string{o.Output}, o.More...) {
		rest := s.outputs
		if n > 0 && name == "" {
			rest = slices.DeleteFunc(slices.Clone(rest), func(i Info) bool {
				return slices.ContainsFunc(s.outs, func(o Info) bool { return o.Name == i.Name })
			})
		}
		out, err := selectInfo("output", name, rest)
		if err != nil {
			return err
		}
		s.outs = append(s.outs, out)
	}
	add := func(all []Info, add func(name *C.char) C.int) error {
		for _, i := range all {
			name := C.CString(i.Name)
			rc := add(name)
			C.free(unsafe.Pointer(name))
			if rc != 0 {
				return goError(&e)
			}
		}
		return nil
	}
	if err := add(s.ins, func(name *C.char) C.int { return C.ort_session_input(s.c, name, &e) }); err != nil {
		return err
	}
	return add(s.outs, func(name *C.char) C.int { return C.ort_session_output(s.c, name, &e) })
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

// Inputs returns the model's inputs.
func (s *Session) Inputs() []Info { return s.inputs }

// Outputs returns the model's outputs.
func (s *Session) Outputs() []Info { return s.outputs }

// Probe runs the model once on ins, in the order of [Options].Inputs, and returns the types and
// shapes of the selected outputs: [Options].Output, then More. It also warms up the session.
func (s *Session) Probe(ins ...*Tensor) ([]Info, error) {
	if s.c == nil {
		return nil, ErrClosed
	}
	if err := s.checkInputs(ins); err != nil {
		return nil, err
	}
	var lists tensorLists
	if err := lists.fill(ins, nil); err != nil {
		return nil, err
	}
	defer lists.free()
	var e C.ort_error
	var io [C.ORT_MAX_TENSORS]C.ort_io
	if C.ort_probe(s.c, lists.ins(), &io[0], &e) != 0 {
		return nil, s.runError(&e)
	}
	made := make([]Info, len(s.outs))
	for n := range made {
		made[n] = goInfo(&io[n])
		if _, ok := registry.DTypeOfONNX(int(made[n].DType)); !ok {
			return nil, fmt.Errorf("%w: output %s has elements that no stage reads", ErrUnsupported, made[n])
		}
	}
	return made, nil
}

// checkInputs checks that tensors fit the inputs of the model.
func (s *Session) checkInputs(ins []*Tensor) error {
	if len(ins) != len(s.ins) {
		return fmt.Errorf("%w: %d tensors for %d inputs (%s)", ErrShape, len(ins), len(s.ins), joinInfos(s.ins))
	}
	for n, in := range ins {
		if err := s.ins[n].checkFed(in.dtype, in.shape); err != nil {
			return err
		}
	}
	return nil
}

// tensorLists holds lists of tensors in C memory, which C reads only during a call.
type tensorLists struct {
	c *[2][C.ORT_MAX_TENSORS]*C.ort_tensor
}

func (l *tensorLists) fill(ins, outs []*Tensor) error {
	l.c = (*[2][C.ORT_MAX_TENSORS]*C.ort_tensor)(C.calloc(2*C.ORT_MAX_TENSORS, C.size_t(unsafe.Sizeof(uintptr(0)))))
	if l.c == nil {
		return errors.New("onnx runtime: out of memory")
	}
	for n, t := range ins {
		l.c[0][n] = t.c
	}
	for n, t := range outs {
		l.c[1][n] = t.c
	}
	return nil
}

func (l *tensorLists) free()                { C.free(unsafe.Pointer(l.c)) }
func (l *tensorLists) ins() **C.ort_tensor  { return &l.c[0][0] }
func (l *tensorLists) outs() **C.ort_tensor { return &l.c[1][0] }

// Binding is a session bound to tensors at fixed addresses. Execution providers with their
// own memory set up the transfers once and not at every run.
type Binding struct {
	s *Session
	c unsafe.Pointer
}

// Bind binds the session to inputs, in the order of [Options].Inputs, and to outputs, in the
// order of [Session.Probe] and with its types and shapes.
func (s *Session) Bind(ins []*Tensor, outs ...*Tensor) (*Binding, error) {
	if s.c == nil {
		return nil, ErrClosed
	}
	if err := s.checkInputs(ins); err != nil {
		return nil, err
	}
	if len(outs) != len(s.outs) {
		return nil, fmt.Errorf("%w: %d tensors for %d outputs", ErrShape, len(outs), len(s.outs))
	}
	for n, o := range outs {
		if want := s.outs[n]; want.DType != o.dtype {
			return nil, fmt.Errorf("%w: output %s is bound to %s elements", ErrShape, want, o.dtype)
		}
	}
	var lists tensorLists
	if err := lists.fill(ins, outs); err != nil {
		return nil, err
	}
	defer lists.free()
	b := &Binding{s: s}
	var e C.ort_error
	if C.ort_bind(s.c, lists.ins(), lists.outs(), C.size_t(len(outs)), &b.c, &e) != 0 {
		return nil, fmt.Errorf("%w: %w", ErrShape, goError(&e))
	}
	return b, nil
}

// Run runs the model on the bound tensors. The error wraps [ErrTerminated] or [ErrRun].
func (b *Binding) Run() error {
	if b.s.c == nil || b.c == nil {
		return ErrClosed
	}
	if C.ort_run_bound(b.s.c, b.c) != 0 {
		return b.s.runError(&b.s.c.err)
	}
	return nil
}

// Close frees the binding. The session and the tensors must still be open.
func (b *Binding) Close() {
	if b.c != nil {
		C.ort_unbind(b.s.rt.c, b.c)
		b.c = nil
	}
}

// Terminate makes a Run in progress return [ErrTerminated] at the next node of the model,
// and every later Run at once.
func (s *Session) Terminate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		s.terminated.Store(true)
		C.ort_terminate(s.c)
	}
}

// Resume undoes Terminate. No Run may be in progress.
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
	re := goError(e)
	if changed := describeChange(re.Message); changed != "" {
		return fmt.Errorf("%w: %w: %s; a model's outputs have the shapes that they had at the start: export it with outputs of a fixed size, such as the best boxes and their count", ErrRun, ErrDynamic, changed)
	}
	return fmt.Errorf("%w: %w", ErrRun, re)
}

// Tensor is a dense tensor outside the Go heap.
type Tensor struct {
	rt    *Runtime
	c     *C.ort_tensor
	dtype DType
	shape []int64
	bytes []byte
}

// NewTensor allocates a tensor of zeros, aligned to 256 bytes. Every dimension must be at
// least 1.
func (r *Runtime) NewTensor(dtype DType, shape []int64) (*Tensor, error) {
	n, err := sizeOf(dtype, shape)
	if err != nil {
		return nil, err
	}
	return r.makeTensor(dtype, shape, n, true, func(c *C.ort_tensor, dims *C.int64_t, e *C.ort_error) C.int {
		return C.ort_tensor_new(r.c, c, C.int32_t(dtype), dims, C.size_t(len(shape)), C.size_t(n), e)
	})
}

// NewTensorOver makes a tensor over the caller's memory. The memory must be outside the Go
// heap, aligned to 64 bytes, of exactly the tensor's size, and valid until Close.
func (r *Runtime) NewTensorOver(dtype DType, shape []int64, memory []byte) (*Tensor, error) {
	n, err := sizeOf(dtype, shape)
	if err != nil {
		return nil, err
	}
	if int64(len(memory)) != n || uintptr(unsafe.Pointer(unsafe.SliceData(memory)))%64 != 0 {
		return nil, fmt.Errorf("%w: a tensor of shape %v needs %d bytes aligned to 64, got %d bytes at %p", ErrShape, shape, n, len(memory), memory)
	}
	return r.makeTensor(dtype, shape, n, true, func(c *C.ort_tensor, dims *C.int64_t, e *C.ort_error) C.int {
		return C.ort_tensor_over(r.c, c, C.int32_t(dtype), dims, C.size_t(len(shape)), unsafe.Pointer(unsafe.SliceData(memory)), C.size_t(n), e)
	})
}

// NewTensorAt makes a tensor at an address of a device's memory, which this program does not
// access: Data and Bytes return nil. The memory is that of CUDA device gpu, or with HostMemory that
// of the CPU provider. It must be aligned to 64 bytes and valid until Close.
func (r *Runtime) NewTensorAt(dtype DType, shape []int64, address uintptr, gpu int) (*Tensor, error) {
	n, err := sizeOf(dtype, shape)
	if err != nil {
		return nil, err
	}
	if address == 0 || address%64 != 0 {
		return nil, fmt.Errorf("%w: a tensor needs an address aligned to 64 bytes, got %#x", ErrShape, address)
	}
	return r.makeTensor(dtype, shape, n, false, func(c *C.ort_tensor, dims *C.int64_t, e *C.ort_error) C.int {
		if gpu == HostMemory {
			return C.ort_tensor_at(r.c, c, C.int32_t(dtype), dims, C.size_t(len(shape)), C.uintptr_t(address), C.size_t(n), e)
		}
		return C.ort_tensor_on_gpu(r.c, c, C.int32_t(dtype), dims, C.size_t(len(shape)), C.uintptr_t(address), C.size_t(n), C.int(gpu), e)
	})
}

// makeTensor makes a tensor of n bytes with a function of the shim. The memory is not accessible
// unless host is set.
func (r *Runtime) makeTensor(dtype DType, shape []int64, n int64, host bool, with func(*C.ort_tensor, *C.int64_t, *C.ort_error) C.int) (*Tensor, error) {
	c := (*C.ort_tensor)(C.calloc(1, C.sizeof_ort_tensor))
	if c == nil {
		return nil, errors.New("onnx runtime: out of memory")
	}
	t := &Tensor{rt: r, c: c, dtype: dtype, shape: append([]int64(nil), shape...)}
	var e C.ort_error
	if with(c, (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(t.shape))), &e) != 0 {
		C.free(unsafe.Pointer(c))
		return nil, fmt.Errorf("tensor %v: %w", shape, goError(&e))
	}
	if host {
		t.bytes = unsafe.Slice((*byte)(t.c.data), n)
	}
	return t, nil
}

// Part returns n rows of the first axis, from row at on, as a tensor over the same memory, which must
// stay open. The execution providers of the CPU accept any row.
func (t *Tensor) Part(at, n int) (*Tensor, error) {
	if len(t.shape) == 0 || t.bytes == nil || at < 0 || n < 1 || int64(at)+int64(n) > t.shape[0] {
		return nil, fmt.Errorf("%w: rows %d to %d of a tensor of shape %v", ErrShape, at, at+n, t.shape)
	}
	each := len(t.bytes) / int(t.shape[0])
	shape := append([]int64{int64(n)}, t.shape[1:]...)
	return t.rt.makeTensor(t.dtype, shape, int64(n*each), true, func(c *C.ort_tensor, dims *C.int64_t, e *C.ort_error) C.int {
		return C.ort_tensor_over(t.rt.c, c, C.int32_t(t.dtype), dims, C.size_t(len(shape)), unsafe.Pointer(unsafe.SliceData(t.bytes[at*each:])), C.size_t(n*each), e)
	})
}

// Shape returns the dimensions.
func (t *Tensor) Shape() []int64 { return t.shape }

// Bytes returns the elements in row-major order as they are in memory, nil for memory of a device.
// The slice is valid until Close.
func (t *Tensor) Bytes() []byte { return t.bytes }

// Data is [Tensor.Bytes] as float32 elements, nil for other types.
func (t *Tensor) Data() []float32 {
	if t.dtype != Float32 || t.bytes == nil {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(t.bytes))), len(t.bytes)/4)
}

// Close frees the memory.
func (t *Tensor) Close() {
	if t.c != nil {
		C.ort_tensor_free(t.rt.c, t.c)
		C.free(unsafe.Pointer(t.c))
		t.c, t.bytes = nil, nil
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

// mapFile maps a file for reading, so that loading a large model needs no heap.
func mapFile(path string) (data []byte, unmap func(), err error) {
	f, err := infile.Open(path)
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
