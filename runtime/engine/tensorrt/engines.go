// Package tensorrt builds and stores TensorRT engines, one for each combination of model,
// TensorRT version, GPU and flags. Pipelines only load engines: building one takes minutes.
//
// A store is a directory with one directory per engine, named by its key:
//
//	<key>/engine.onnx  a model with one node that contains the engine; ONNX Runtime's
//	                   TensorRT provider loads it like any model
//	<key>/about.json   the key, and the digest of engine.onnx
//	.building-<key>/   a build in progress or an interrupted one
//
// A finished engine is renamed into place, so that a partial one is never found.
//
// Reference: NVIDIA's trtexec; ONNX Runtime, "EPContext design".
package tensorrt

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/onnx"
)

// Dir is the engine store of a device.
const Dir = "/var/lib/yoctune/engines"

// Errors to test with errors.Is.
var (
	ErrNone    = errors.New("no TensorRT engine")
	ErrDamaged = errors.New("engine is damaged")
	ErrBuild   = errors.New("engine cannot be built")
)

// Key identifies an engine. With a different value of any field an engine does not load or
// computes different results.
type Key struct {
	Model     string           `json:"model"`     // SHA-256 of the ONNX file
	TensorRT  string           `json:"tensorrt"`  // 10.3.0
	GPU       string           `json:"gpu"`       // nvidia,tegra234
	Precision string           `json:"precision"` // see [Precision]
	Workspace int64            `json:"workspace"` // bytes; 0: TensorRT's default
	Shapes    map[string]Range `json:"shapes,omitempty"`
}

// Precision returns the precisions of an engine, fp32, fp16, int8 or int8+fp16: what is asked for, ""
// for fp32, and those that the model itself has. TensorRT refuses pairs of QuantizeLinear and
// DequantizeLinear without int8, and float16 weights without fp16.
func Precision(asked string, m *onnx.Model) string {
	half := asked == "fp16" || m.Half
	switch quantised := m.Ops["QuantizeLinear"]+m.Ops["DequantizeLinear"] > 0; {
	case quantised && half:
		return "int8+fp16"
	case quantised:
		return "int8"
	case half:
		return "fp16"
	}
	return "fp32"
}

// Range is the range of shapes of an input with dynamic axes.
type Range struct {
	Min []int64 `json:"min"`
	Opt []int64 `json:"opt"`
	Max []int64 `json:"max"`
}

// String returns the name of the engine's directory.
func (k Key) String() string {
	b, err := json.Marshal(k)
	if err != nil {
		return "" // cannot happen: strings and numbers can always be encoded
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// About is the metadata of an engine.
type About struct {
	Key    Key       `json:"key"`
	Digest string    `json:"digest"` // SHA-256 of engine.onnx
	Bytes  int64     `json:"bytes"`
	Built  time.Time `json:"built"`
	Took   float64   `json:"took_s"`
}

// Files of an engine, and the prefix of a build's directory.
const (
	fileEngine = "engine.onnx"
	fileAbout  = "about.json"
	building   = ".building-"
	timings    = "timings-" // caches, one for each TensorRT version and GPU
)

// Store is a directory of engines.
type Store struct{ Dir string }

// Find returns the path of an engine. It checks the size of the file. The error wraps
// [ErrNone] or [ErrDamaged].
func (s Store) Find(k Key) (string, error) {
	a, err := s.readAbout(k.String())
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w for this model with TensorRT %s on %s; run: yoctuned engines build", ErrNone, k.TensorRT, k.GPU)
	}
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.Dir, k.String(), fileEngine)
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrDamaged, err)
	case st.Size() != a.Bytes:
		return "", fmt.Errorf("%w: %s has %d bytes, want %d", ErrDamaged, path, st.Size(), a.Bytes)
	}
	return path, nil
}

func (s Store) readAbout(name string) (About, error) {
	var a About
	b, err := os.ReadFile(filepath.Join(s.Dir, name, fileAbout))
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	if a.Key.String() != name {
		return a, fmt.Errorf("%w: %s contains the engine of another key", ErrDamaged, name)
	}
	return a, nil
}

// Entry is one directory of a store.
type Entry struct {
	Name string
	About
	Err error // why the engine is unusable, or nil
}

// List returns the entries of the store, sorted by name, including interrupted builds. If
// checkDigests is set, it verifies the digest of every engine.
func (s Store) List(checkDigests bool) ([]Entry, error) {
	dirs, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Entry
	for _, d := range dirs {
		e := Entry{Name: d.Name()}
		switch {
		case !d.IsDir():
			continue
		case strings.HasPrefix(e.Name, building):
			e.Err = fmt.Errorf("%w: its build is in progress or was interrupted", ErrNone)
		default:
			if e.About, e.Err = s.readAbout(e.Name); e.Err == nil {
				_, e.Err = s.Find(e.Key)
			}
			if e.Err == nil && checkDigests {
				e.Err = s.checkDigest(e)
			}
		}
		all = append(all, e)
	}
	return all, nil
}

// checkDigest verifies the digest of an engine.
func (s Store) checkDigest(e Entry) error {
	sum, err := Digest(filepath.Join(s.Dir, e.Name, fileEngine))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if sum != e.Digest {
		return fmt.Errorf("%w: sha256 %s, want %s", ErrDamaged, sum, e.Digest)
	}
	return nil
}

// Prune removes all engines except intact ones with a wanted key, and interrupted builds. It
// returns the names of the removed entries. It holds the lock of builds.
func (s Store) Prune(wanted []Key) ([]string, error) {
	unlock, err := s.lock()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no store
	}
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, err := s.List(false)
	if err != nil {
		return nil, err
	}
	keep := map[string]bool{}
	for _, k := range wanted {
		keep[k.String()] = true
	}
	var gone []string
	for _, e := range all {
		if e.Err == nil && keep[e.Name] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.Dir, e.Name)); err != nil {
			return gone, err
		}
		gone = append(gone, e.Name)
	}
	return gone, nil
}

// Digest returns the SHA-256 of a file in hexadecimal.
func Digest(path string) (string, error) {
	f, err := infile.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// wrapEngine returns a model with one node that contains an engine, and with the inputs and
// outputs of the original model.
func wrapEngine(m *onnx.Model, plan []byte, k Key) []byte {
	n := onnx.Node{Op: "EPContext", Domain: "com.microsoft", Attributes: map[string]any{
		"main_context": int64(1), "embed_mode": int64(1), "ep_cache_context": string(plan),
		"ep_sdk_version": k.TensorRT, "source": "TensorrtExecutionProvider",
	}}
	for _, v := range m.Inputs {
		n.In = append(n.In, v.Name)
	}
	for _, v := range m.Outputs {
		n.Out = append(n.Out, v.Name)
	}
	g := onnx.Graph{
		Opsets: map[string]int64{"": 17, "com.microsoft": 1},
		Nodes:  []onnx.Node{n}, Inputs: m.Inputs, Outputs: m.Outputs,
	}
	return g.Encode()
}

// Host describes the TensorRT installation of a machine.
type Host struct {
	TensorRT string // version of the library; "": not installed
	GPU      string // "": none
	Builder  string // path of trtexec; "": not installed
}

// Obstacle returns why the machine cannot use engines, or "" if it can.
func (h Host) Obstacle() string {
	switch {
	case h.GPU == "":
		return "no NVIDIA GPU was found"
	case h.TensorRT == "":
		return "TensorRT is not installed (libnvinfer.so)"
	}
	return ""
}

// DetectHost reports what a machine offers. root is "/" except in tests. compatible are the compatible
// strings of the device tree.
func DetectHost(root string, compatible []string) Host {
	var h Host
	for _, c := range compatible {
		if strings.HasPrefix(c, "nvidia,tegra") {
			h.GPU = c
		}
	}
	if h.GPU == "" {
		h.GPU = discreteGPU(root)
	}
	for _, dir := range []string{"usr/lib", "usr/lib64", "usr/lib/aarch64-linux-gnu", "usr/lib/x86_64-linux-gnu", "usr/local/lib"} {
		found, err := filepath.Glob(filepath.Join(root, dir, "libnvinfer.so.*"))
		if err != nil {
			continue
		}
		for _, f := range found {
			_, v, _ := strings.Cut(filepath.Base(f), ".so.")
			if strings.Count(v, ".") >= 2 && (h.TensorRT == "" || isNewer(v, h.TensorRT)) {
				h.TensorRT = v
			}
		}
	}
	for _, name := range []string{"usr/bin/trtexec", "usr/src/tensorrt/bin/trtexec", "usr/local/bin/trtexec"} {
		if st, err := os.Stat(filepath.Join(root, name)); err == nil && st.Mode().IsRegular() {
			h.Builder = filepath.Join(root, name)
			break
		}
	}
	return h
}

// isNewer reports whether version a is higher than version b; both are dotted numbers.
func isNewer(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	return slices.CompareFunc(x, y, func(p, q string) int { return cmp.Or(len(p)-len(q), strings.Compare(p, q)) }) > 0
}

// discreteGPU returns the model name of a discrete GPU, or "".
func discreteGPU(root string) string {
	found, err := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*/information"))
	if err != nil || len(found) == 0 {
		return ""
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(line, "Model:"); ok {
			return strings.TrimSpace(name)
		}
	}
	return ""
}
