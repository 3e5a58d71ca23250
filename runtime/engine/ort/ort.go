// Package ort runs ONNX models on ONNX Runtime, through its C API and dlopen.
//
// The library is found when a session is made, not when the program is linked,
// so one binary runs on every release whichever ONNX Runtime it ships, and runs
// without one as long as no model is asked for. Only functions of API version 8
// and before are used, and the version asked for is at most [maxAPI]: releases
// from 1.8 to the current one work.
//
// Tensors live in memory of the C heap that is allocated once and bound to the
// session; [Session.Run] allocates nothing.
//
//	rt, err := ort.Open("/usr/lib/libonnxruntime.so.1")
//	s, err := rt.NewSession("model.onnx", ort.Options{Threads: 2})
//	in, err := ort.NewTensor([]int64{1, 3, 48, 320})
//	out, err := s.NewOutput(in)
//	copy(in.Data(), pixels)
//	err = s.Run(in, out)
package ort

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// API versions of ONNX Runtime's function table. Release 1.N has version N and
// hands out every table up to it; all are prefixes of the newest.
const (
	minAPI = 8
	maxAPI = 17
)

// EnvLibrary names the library when neither an option nor the plan does. It is
// read by programs that run with the rights of their caller only: tests and the
// command line.
const EnvLibrary = "YOCTUNE_ORT_LIBRARY"

// Errors to test with errors.Is. A [*RuntimeError] carries ONNX Runtime's own
// message below one of them.
var (
	ErrNoLibrary   = errors.New("no usable ONNX Runtime library")
	ErrModel       = errors.New("model cannot be loaded")
	ErrShape       = errors.New("tensor shape does not fit the model")
	ErrUnsupported = errors.New("model needs something this program does not offer")
	ErrRun         = errors.New("model run failed")
	ErrTerminated  = errors.New("model run was terminated")
	ErrClosed      = errors.New("session is closed")
	ErrProvider    = errors.New("no provider that the plan allows is there")
)

// RuntimeError is a failure that ONNX Runtime reported.
type RuntimeError struct {
	Code    int    // OrtErrorCode
	Message string // the runtime's words
}

func (e *RuntimeError) Error() string {
	return fmt.Sprintf("onnx runtime: %s (code %d)", e.Message, e.Code)
}

// OutOfMemory reports whether a run failed for want of memory, for which ONNX Runtime
// has a message and no code.
func OutOfMemory(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "Failed to allocate memory") || strings.Contains(err.Error(), "std::bad_alloc"))
}

// DType is the type of a tensor's elements, numbered as ONNX does.
type DType int

// Float32 is the one element type tensors of this package have.
const Float32 DType = 1

func (d DType) String() string {
	names := []string{
		"undefined", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64",
		"string", "bool", "float16", "float64", "uint32", "uint64", "complex64", "complex128", "bfloat16",
	}
	if d < 0 || int(d) >= len(names) {
		return "type " + strconv.Itoa(int(d))
	}
	return names[d]
}

// Info describes an input or an output of a model.
type Info struct {
	Name  string
	DType DType
	Shape []int64  // -1: decided at run time
	Axes  []string // name of each such axis in the model, "" where it has none
}

func (i Info) String() string {
	return fmt.Sprintf("%q %s %s", i.Name, i.DType, i.shape())
}

func (i Info) shape() string {
	parts := make([]string, len(i.Shape))
	for n, d := range i.Shape {
		switch {
		case d >= 0:
			parts[n] = strconv.FormatInt(d, 10)
		case n < len(i.Axes) && i.Axes[n] != "":
			parts[n] = i.Axes[n]
		default:
			parts[n] = "?"
		}
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// checkFed returns nil if a float32 tensor of the given shape can be bound to
// the input; the error names what the model expects and what it got.
func (i Info) checkFed(shape []int64) error {
	if i.DType != Float32 {
		return fmt.Errorf("%w: input %s, only float32 can be fed", ErrUnsupported, i)
	}
	ok := len(shape) == len(i.Shape)
	for n := 0; ok && n < len(shape); n++ {
		ok = i.Shape[n] < 0 || i.Shape[n] == shape[n]
	}
	if !ok {
		return fmt.Errorf("%w: input %q expects %s, got %v", ErrShape, i.Name, i.shape(), shape)
	}
	return nil
}

// Providers of ONNX Runtime that this program knows to ask for.
const (
	TensorRT = "tensorrt"
	CUDA     = "cuda"
	CPU      = "cpu"
)

// Missing is a provider that a session does not run on, and why.
type Missing struct {
	Provider string `json:"provider"`
	Why      string `json:"why"`
}

// Options of a session. The zero value runs on the CPU, one thread per core.
type Options struct {
	Threads  int      // intra-op threads, 0: one per core
	Input    string   // tensor to feed; the model's first when empty
	Output   string   // tensor to read; the model's first when empty
	More     []string // further outputs for [Session.Bind], at most three; "": the model's next
	Spinning bool     // idle threads spin
	NoArena  bool     // memory is given back after each run

	GPUMemory int64 // bytes that the CUDA provider may take of the GPU's memory, 0: no bound

	// Providers in order of preference; the first that can be had runs the model.
	// Nil is the CPU; without the CPU in the list the last one's absence is
	// [ErrProvider].
	Providers []string

	// Engine is a model with a TensorRT engine inside or beside it, loaded in
	// place of the model when TensorRT is there; without it TensorRT is passed
	// over, for it would build one first, which takes minutes.
	Engine func() (path string, err error)

	// Check, when set, sees the very bytes that are then loaded, so that a file
	// cannot change between its verification and its use.
	Check func(model []byte) error
}

// Find returns the ONNX Runtime library to open: the explicit path when there
// is one, else the one [EnvLibrary] names, else the newest in dirs. Without dirs
// it looks where Yocto and Debian install libraries. The error wraps
// [ErrNoLibrary] and lists what was tried.
func Find(explicit string, dirs ...string) (string, error) {
	for _, named := range []struct{ path, by string }{
		{explicit, "given"},
		{os.Getenv(EnvLibrary), "from " + EnvLibrary},
	} {
		if named.path == "" {
			continue
		}
		if _, err := os.Stat(named.path); err != nil {
			return "", fmt.Errorf("%w: %s %s: %w", ErrNoLibrary, named.path, named.by, errors.Unwrap(err))
		}
		// Of a name without a slash dlopen looks in the system's folders.
		return filepath.Abs(named.path)
	}
	if len(dirs) == 0 {
		dirs = []string{
			"/usr/lib", "/usr/lib64", "/usr/local/lib",
			"/usr/lib/aarch64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
		}
	}
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, "libonnxruntime.so*"))
		if err != nil || len(found) == 0 {
			continue
		}
		return slices.MaxFunc(found, func(a, b string) int {
			return slices.Compare(libraryVersion(a), libraryVersion(b))
		}), nil
	}
	return "", fmt.Errorf("%w: no libonnxruntime.so* in %s; install onnxruntime, or name the library with --library or %s",
		ErrNoLibrary, strings.Join(dirs, ", "), EnvLibrary)
}

// libraryVersion gives [1 24 2] for libonnxruntime.so.1.24.2.
func libraryVersion(path string) []int {
	_, tail, _ := strings.Cut(filepath.Base(path), ".so")
	var v []int
	for _, f := range strings.Split(strings.TrimPrefix(tail, "."), ".") {
		n, err := strconv.Atoi(f)
		if err != nil {
			break
		}
		v = append(v, n)
	}
	return v
}

// apiFor picks the table to ask a library of the given version for.
func apiFor(version string) (int, error) {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(minor)
	if err != nil || major != "1" {
		return 0, fmt.Errorf("%w: it calls itself version %q, this program knows 1.%d and later", ErrNoLibrary, version, minAPI)
	}
	if n < minAPI {
		return 0, fmt.Errorf("%w: version %s is older than 1.%d", ErrNoLibrary, version, minAPI)
	}
	return min(n, maxAPI), nil
}

// elements returns the number of elements of a shape that is fully known.
func elements(shape []int64) (int64, error) {
	// 1 Gi elements are 4 GiB: past any tensor one frame needs, and far below
	// where the product of hostile dimensions could wrap round.
	const limit = 1 << 30
	n := int64(1)
	for _, d := range shape {
		if d < 1 || d > limit || n > limit/d {
			return 0, fmt.Errorf("%w: %v is not the shape of a tensor of 1 to %d elements", ErrShape, shape, limit)
		}
		n *= d
	}
	return n, nil
}

// pick returns the named one of all, or the first without a name.
func pick(kind, name string, all []Info) (Info, error) {
	if len(all) == 0 {
		return Info{}, fmt.Errorf("%w: it has no %s", ErrModel, kind)
	}
	for _, i := range all {
		if name == "" || i.Name == name {
			if i.Shape == nil && i.DType == 0 {
				return Info{}, fmt.Errorf("%w: %s %q is not a tensor", ErrUnsupported, kind, i.Name)
			}
			return i, nil
		}
	}
	return Info{}, fmt.Errorf("%w: no %s named %q; it has %s", ErrModel, kind, name, join(all))
}

func join(all []Info) string {
	s := make([]string, len(all))
	for n, i := range all {
		s[n] = i.String()
	}
	return strings.Join(s, ", ")
}
