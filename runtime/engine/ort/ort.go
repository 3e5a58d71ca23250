// Package ort runs ONNX models on ONNX Runtime, through its C API and dlopen.
//
// The library is opened when it is needed, so one binary works with the ONNX Runtime of
// every release, and without one if no model is used. The package uses functions of API
// version 8, and requests at most version [maxAPI]: releases from 1.8 on work.
//
// Tensors are allocated once, outside the Go heap. [Binding.Run] allocates nothing.
//
//	rt, err := ort.Open("/usr/lib/libonnxruntime.so.1")
//	s, err := rt.NewSession("model.onnx", ort.Options{Threads: 2})
//	in, err := rt.NewTensor(ort.Float32, []int64{1, 3, 48, 320})
//	made, err := s.Probe(in)
//	out, err := rt.NewTensor(made[0].DType, made[0].Shape)
//	b, err := s.Bind([]*ort.Tensor{in}, out)
//	copy(in.Data(), pixels)
//	err = b.Run()
package ort

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/formats/measurement"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// API versions of ONNX Runtime's function table. Release 1.N provides every version up to
// N; each table is a prefix of the next.
const (
	minAPI = 8
	maxAPI = 17
)

// EnvLibrary is the environment variable with the path of the library, for use when neither
// an option nor the plan sets it. Only programs that run with their caller's rights read it.
const EnvLibrary = "YOCTUNE_ORT_LIBRARY"

// Errors for errors.Is. They may wrap a [*RuntimeError] with the message of ONNX Runtime.
var (
	ErrNoLibrary   = errors.New("no usable ONNX Runtime library")
	ErrModel       = errors.New("model cannot be loaded")
	ErrShape       = errors.New("tensor shape does not fit the model")
	ErrUnsupported = errors.New("model is not supported")
	ErrRun         = errors.New("model run failed")
	ErrDynamic     = errors.New("the shape of an output depends on the data")
	ErrTerminated  = errors.New("model run was terminated")
	ErrClosed      = errors.New("session is closed")
	ErrProvider    = errors.New("none of the allowed execution providers is available")
)

// changedShape finds the shapes in the message about an output that does not fit its memory, in the two
// forms that releases of ONNX Runtime have.
var changedShape = regexp.MustCompile(`(?:for output '([^']*)'.*?has shape (\{[0-9,]*\}) but the computed output shape for this run is (\{[0-9,]*\}))|(?:shape verification failed\. Current shape:(\{[0-9,]*\}) Requested shape:(\{[0-9,]*\}))`)

// describeChange describes the change of an output's shape that a message reports; "" for others.
func describeChange(message string) string {
	m := changedShape.FindStringSubmatch(message)
	switch {
	case m == nil:
		return ""
	case m[1] != "":
		return fmt.Sprintf("output %q has shape %s, and had %s", m[1], m[3], m[2])
	}
	return fmt.Sprintf("an output has shape %s, and had %s", cmp.Or(m[3], m[5]), cmp.Or(m[2], m[4]))
}

// RuntimeError is a failure that ONNX Runtime reported.
type RuntimeError struct {
	Code    int    // OrtErrorCode
	Message string // of ONNX Runtime
}

func (e *RuntimeError) Error() string {
	return fmt.Sprintf("onnx runtime: %s (code %d)", e.Message, e.Code)
}

// OutOfMemory reports whether a run failed because memory ran out. ONNX Runtime has no code
// for that, only messages.
func OutOfMemory(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "Failed to allocate memory") || strings.Contains(err.Error(), "std::bad_alloc"))
}

// DType is an element type.
type DType = onnx.Type

// Float32 is the element type of [Tensor.Data].
const Float32 = onnx.Float32

// Info describes an input or an output of a model.
type Info struct {
	Name  string
	DType DType
	Shape []int64  // -1: dynamic
	Axes  []string // names of dynamic axes; "" if unnamed
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

// checkFed checks that a tensor of the given type and shape fits the input.
func (i Info) checkFed(t DType, shape []int64) error {
	if i.DType != t {
		return fmt.Errorf("%w: input %s receives %s elements", ErrShape, i, t)
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

// Supported execution providers of ONNX Runtime.
const (
	TensorRT = "tensorrt"
	CUDA     = "cuda"
	CPU      = "cpu"
)

// MaxTensors is the largest number of inputs, and of selected outputs, of a session.
const MaxTensors = registry.MaxTensors

// HostMemory is the GPU of [Runtime.NewTensorAt] for memory of the CPU provider.
const HostMemory = -1

// Missing is an unavailable execution provider, with the reason.
type Missing struct {
	Provider string `json:"provider"`
	Why      string `json:"why"`
}

// Options of a session. The zero value runs on the CPU with one thread per core.
type Options struct {
	Threads  int      // intra-op threads; 0: one per core
	Inputs   []string // names of all inputs, in the order of [Session.Bind], one of which may be ""; nil: the model's only one
	Output   string   // name of the output; "": the model's first
	More     []string // further outputs for [Session.Bind], at most [MaxTensors]-1; "": the model's next
	Spinning bool     // idle threads spin
	NoArena  bool     // free memory after each run

	GPU       int   // number of the CUDA device of the GPU providers
	GPUMemory int64 // memory limit of the CUDA provider in bytes; 0: no limit

	// Providers in order of preference; the first available one runs the model. Nil means
	// the CPU. If none is available, the session fails with [ErrProvider].
	Providers []string

	// Engine returns the path of a model that contains a TensorRT engine, which the
	// TensorRT provider loads in place of the model. Without an engine TensorRT is
	// skipped, because building one takes minutes.
	Engine func() (path string, err error)

	// Check, if set, receives the bytes that are then loaded, so that the file cannot
	// change between verification and use.
	Check func(model []byte) error
}

// Find returns the path of the ONNX Runtime library: explicit if it is set, else the value
// of [EnvLibrary], else the newest library in the first of dirs that has
// one. The default for dirs are the library directories of Yocto and Debian, then that of the
// layer's own library. The error wraps [ErrNoLibrary] and lists the candidates.
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
		// dlopen searches the system directories for a name without a slash.
		return filepath.Abs(named.path)
	}
	if len(dirs) == 0 {
		dirs = []string{
			"/usr/lib", "/usr/lib64", "/usr/local/lib",
			"/usr/lib/aarch64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
			"/usr/lib/yoctune", // the layer's own, for the CPU only
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
	if path := os.Getenv(measurement.LibraryVariable); path != "" {
		return filepath.Abs(path)
	}
	return "", fmt.Errorf("%w: no libonnxruntime.so* in %s; install onnxruntime, or set the path with --library or %s",
		ErrNoLibrary, strings.Join(dirs, ", "), EnvLibrary)
}

// libraryVersion returns [1 24 2] for libonnxruntime.so.1.24.2.
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

// apiFor returns the API version to request from a library of the given version.
func apiFor(version string) (int, error) {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(minor)
	if err != nil || major != "1" {
		return 0, fmt.Errorf("%w: unknown version %q; need 1.%d or later", ErrNoLibrary, version, minAPI)
	}
	if n < minAPI {
		return 0, fmt.Errorf("%w: version %s is older than 1.%d", ErrNoLibrary, version, minAPI)
	}
	return min(n, maxAPI), nil
}

// sizeOf returns the bytes of a tensor whose shape is fully known.
func sizeOf(t DType, shape []int64) (int64, error) {
	known, ok := registry.DTypeOfONNX(int(t))
	if !ok {
		return 0, fmt.Errorf("%w: tensors of %s elements", ErrUnsupported, t)
	}
	// 1 Gi elements of 4 bytes are 4 GiB, more than any frame needs. Products of hostile
	// dimensions cannot overflow below this limit.
	const limit = 1 << 30
	n := int64(1)
	for _, d := range shape {
		if d < 1 || d > limit || n > limit/d {
			return 0, fmt.Errorf("%w: %v is not the shape of a tensor of 1 to %d elements", ErrShape, shape, limit)
		}
		n *= d
	}
	return n * known.Bytes(), nil
}

// selectInfo returns the entry with the given name, or the first if the name is empty.
func selectInfo(kind, name string, all []Info) (Info, error) {
	if len(all) == 0 {
		return Info{}, fmt.Errorf("%w: the model has no %s", ErrModel, kind)
	}
	for _, i := range all {
		if name == "" || i.Name == name {
			if i.Shape == nil && i.DType == 0 {
				return Info{}, fmt.Errorf("%w: %s %q is not a tensor", ErrUnsupported, kind, i.Name)
			}
			return i, nil
		}
	}
	return Info{}, fmt.Errorf("%w: no %s named %q; the model has %s", ErrModel, kind, name, joinInfos(all))
}

// selectInputs returns the inputs with the given names, in that order; "" is the input that no other
// name is of. A model cannot run without one of its inputs.
func selectInputs(all []Info, names []string) ([]Info, error) {
	switch {
	case len(names) == 0 && len(all) != 1, len(names) > 0 && len(names) != len(all):
		return nil, fmt.Errorf("%w: it has %d inputs (%s), and %d are given", ErrUnsupported, len(all), joinInfos(all), max(len(names), 1))
	case len(all) > MaxTensors:
		return nil, fmt.Errorf("%w: it has %d inputs, and at most %d are supported", ErrUnsupported, len(all), MaxTensors)
	case len(names) == 0:
		names = []string{""}
	}
	var ins []Info
	for _, name := range names {
		rest := all
		if name == "" {
			rest = slices.DeleteFunc(slices.Clone(all), func(i Info) bool { return slices.Contains(names, i.Name) })
		}
		in, err := selectInfo("input", name, rest)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(ins, func(i Info) bool { return i.Name == in.Name }) {
			return nil, fmt.Errorf("%w: input %q is given twice", ErrModel, in.Name)
		}
		ins = append(ins, in)
	}
	return ins, nil
}

func joinInfos(all []Info) string {
	s := make([]string, len(all))
	for n, i := range all {
		s[n] = i.String()
	}
	return strings.Join(s, ", ")
}
