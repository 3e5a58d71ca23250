package modelbench

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/schema/formats/examples"
	"github.com/yoctune/yoctune/schema/formats/measurement"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// GeneratedBy is the producer of models whose weights were made for a measurement.
const GeneratedBy = "yoctune-generated"

// maxModel bounds a model that is measured, in bytes.
const maxModel = 2 << 30

// host runs one model.
type host struct {
	rt      *ort.Runtime
	session *ort.Session
	set     *examples.Set // nil: random inputs
	setFile *os.File
	metric  measurement.Metric
	head    string
	sizes   map[string]int64
	base    int64 // memory of the process before the model

	names []string // of the inputs
	batch int
	ins   []*ort.Tensor
	outs  []*ort.Tensor
	shape []ort.Info // of outs
	bound *ort.Binding
}

func (h *host) open(c call) (answer, error) {
	if h.rt != nil {
		return answer{}, errors.New("a model is open")
	}
	h.head, h.sizes = c.Head, c.Sizes
	if c.Examples != "" {
		if err := h.openSet(c.Examples, c.Metric); err != nil {
			return answer{}, err
		}
	}
	model, err := infile.Read(c.File, maxModel)
	if err != nil {
		return answer{}, err
	}
	sum := sha256.Sum256(model)
	if got := hex.EncodeToString(sum[:]); c.SHA256 != "" && got != c.SHA256 {
		return answer{}, fmt.Errorf("the sha256 of %s is %s, and the request has %s", c.File, got, c.SHA256)
	}
	about, err := onnx.Read(bytes.NewReader(model), int64(len(model)))
	if err != nil {
		return answer{}, err
	}
	library, err := ort.Find(c.Library)
	if err != nil {
		return answer{}, err
	}
	if h.rt, err = ort.Open(library); err != nil {
		return answer{}, err
	}
	h.base = residentMemory() // with the model's bytes, which are freed once it is loaded
	o := ort.Options{Threads: c.Threads, Providers: c.Providers, More: make([]string, max(0, min(len(about.Outputs), ort.MaxTensors)-1))}
	for _, in := range about.Inputs {
		h.names = append(h.names, in.Name)
	}
	if len(h.names) > 1 {
		o.Inputs = h.names
	}
	o.Engine = func() (string, error) {
		if c.Engine == "" {
			return "", errors.New(cmp.Or(c.NoEngine, "it has no engine"))
		}
		return c.Engine, nil
	}
	if h.session, err = h.rt.NewSessionFromBytes(model, o); err != nil {
		return answer{}, err
	}
	a := answer{Bytes: int64(len(model)), ONNXRuntime: h.rt.Version(), Provider: h.session.Provider()}
	if missing := h.session.Missing(); len(missing) > 0 && len(c.Providers) > 0 && missing[0].Provider == c.Providers[0] {
		a.Missing = missing[0].Why
	}
	if about.Producer == GeneratedBy {
		a.Weights = "generated"
	}
	if h.set != nil {
		a.Count = h.set.Count
	}
	return a, nil
}

func (h *host) openSet(path, metric string) error {
	var err error
	if h.setFile, err = infile.Open(path); err != nil {
		return err
	}
	st, err := h.setFile.Stat()
	if err != nil {
		return err
	}
	if h.set, err = examples.Open(h.setFile, st.Size()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if metric == "" {
		return nil
	}
	m, ok := measurement.MetricOf(metric)
	if !ok {
		return fmt.Errorf("unknown metric %q", metric)
	}
	if !h.set.HasLabels(m) {
		return fmt.Errorf("%s: metric %s needs the tensor %s", path, metric, m.Labels)
	}
	h.metric = m
	return nil
}

// bind makes the tensors of a batch and binds the model to them.
func (h *host) bind(batch int) error {
	if h.session == nil {
		return errors.New("no model is open")
	}
	h.unbind()
	h.batch = batch
	for _, name := range h.names {
		i := slices.IndexFunc(h.session.Inputs(), func(in ort.Info) bool { return in.Name == name })
		if i < 0 {
			return fmt.Errorf("ONNX Runtime does not list the input %q", name)
		}
		info := h.session.Inputs()[i]
		shape, err := h.inputShape(info)
		if err != nil {
			return err
		}
		t, err := h.rt.NewTensor(info.DType, shape)
		if err != nil {
			return fmt.Errorf("input %q: %w", name, err)
		}
		h.ins = append(h.ins, t)
		if h.set == nil {
			fillRandom(t.Bytes(), info)
		}
	}
	if h.set != nil {
		if err := h.fill(0); err != nil {
			return err
		}
	}
	made, err := h.session.Probe(h.ins...)
	if err != nil {
		return fmt.Errorf("batch %d: %w", batch, err)
	}
	h.shape = made
	for _, o := range made {
		t, err := h.rt.NewTensor(o.DType, o.Shape)
		if err != nil {
			return fmt.Errorf("output %q: %w", o.Name, err)
		}
		h.outs = append(h.outs, t)
	}
	h.bound, err = h.session.Bind(h.ins, h.outs...)
	return err
}

// inputShape is the shape of an input with the batch: that of the set, or that of the model, whose
// free axes have a size.
func (h *host) inputShape(in ort.Info) ([]int64, error) {
	if h.set != nil {
		i := slices.IndexFunc(h.set.Inputs, func(t examples.Tensor) bool { return t.Name == in.Name })
		if i < 0 {
			return nil, fmt.Errorf("the labelled set has no tensor for the input %s", in)
		}
		t := &h.set.Inputs[i]
		if t.ONNX != int(in.DType) {
			return nil, fmt.Errorf("the labelled set has %s for the input %s", t.DType, in)
		}
		shape := t.BatchShape(h.batch)
		fits := len(shape) == len(in.Shape)
		for k := 0; fits && k < len(shape); k++ {
			fits = in.Shape[k] < 0 || in.Shape[k] == shape[k]
		}
		if !fits {
			return nil, fmt.Errorf("%w: the labelled set gives %v with batch %d for the input %s", ort.ErrShape, shape, h.batch, in)
		}
		return shape, nil
	}
	shape := slices.Clone(in.Shape)
	for k, d := range shape {
		if d >= 0 {
			if k == 0 && d != int64(h.batch) && h.batch > 1 {
				return nil, fmt.Errorf("%w: the first axis of the input %s is fixed, and a batch of %d needs a free one", ort.ErrShape, in, h.batch)
			}
			continue
		}
		if k == 0 {
			shape[k] = int64(h.batch)
			continue
		}
		key := in.Name + "." + strconv.Itoa(k)
		size := h.sizes[key]
		if size == 0 && k < len(in.Axes) {
			size = h.sizes[in.Axes[k]]
		}
		if size == 0 {
			name := key
			if k < len(in.Axes) && in.Axes[k] != "" {
				name = in.Axes[k]
			}
			return nil, fmt.Errorf("axis %d of the input %s is free: give it a size with --size %s=N", k, in, name)
		}
		shape[k] = size
	}
	return shape, nil
}

// fill reads the examples of a run from the set; past its end, the last one again.
func (h *host) fill(first int) error {
	pick := make([]int, h.batch)
	for k := range pick {
		pick[k] = min(first+k, h.set.Count-1)
	}
	for k, name := range h.names {
		i := slices.IndexFunc(h.set.Inputs, func(t examples.Tensor) bool { return t.Name == name })
		if err := h.set.Fill(&h.set.Inputs[i], pick, h.ins[k].Bytes()); err != nil {
			return fmt.Errorf("reading the labelled set: %w", err)
		}
	}
	return nil
}

// fillRandom fills an input with values that any model takes: floats from 0 to 1, ones for integers.
func fillRandom(b []byte, in ort.Info) {
	t, _ := registry.DTypeOfONNX(int(in.DType))
	size := int(t.Bytes())
	state := uint32(1)
	for at := 0; at+size <= len(b); at += size {
		state = state*1664525 + 1013904223
		text := "1"
		if !t.IsInteger() && t != registry.Bool {
			if in.DType == ort.Float32 {
				putFloat32(b[at:], float32(state>>8)/(1<<24))
				continue
			}
			text = strconv.FormatFloat(float64(state>>24)/256, 'f', 6, 64)
		}
		v, err := registry.AppendElement(nil, t, text)
		if err == nil {
			copy(b[at:], v)
		}
	}
}

// time returns the time of each of some runs, in ns.
func (h *host) time(runs int) ([]int64, error) {
	if h.bound == nil {
		return nil, errors.New("no batch is bound")
	}
	out := make([]int64, 0, runs)
	for range runs {
		began := time.Now()
		if err := h.bound.Run(); err != nil {
			return nil, err
		}
		out = append(out, max(1, int64(time.Since(began))))
	}
	return out, nil
}

func (h *host) unbind() {
	if h.bound != nil {
		h.bound.Close()
		h.bound = nil
	}
	for _, t := range append(h.ins, h.outs...) {
		t.Close()
	}
	h.ins, h.outs, h.shape = nil, nil, nil
}

func (h *host) close() {
	h.unbind()
	if h.session != nil {
		h.session.Close()
	}
	if h.setFile != nil {
		h.setFile.Close()
	}
}

// statusField reads a size from /proc/self/status, 0 if it is not known.
func statusField(name string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil || kib > math.MaxInt64>>10 {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// peakMemory is the largest resident memory so far, residentMemory that of now.
func peakMemory() int64     { return statusField("VmHWM") }
func residentMemory() int64 { return statusField("VmRSS") }
