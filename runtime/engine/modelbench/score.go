package modelbench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/decode"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/schema/formats/examples"
	"github.com/yoctune/yoctune/schema/formats/measurement"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// score runs the model on every example and counts what the metric needs. reference is a file with
// the outputs of the original, for the metric cosine; the original writes it.
func (h *host) score(reference string, write bool) ([]measurement.Example, error) {
	if h.bound == nil || h.set == nil || h.metric.Name == "" {
		return nil, errors.New("no labelled set, metric or batch")
	}
	s, err := h.newScorer(reference, write)
	if err != nil {
		return nil, err
	}
	out := make([]measurement.Example, 0, h.set.Count)
	for first := 0; first < h.set.Count && err == nil; first += h.batch {
		if err = h.fill(first); err != nil {
			break
		}
		if err = h.bound.Run(); err != nil {
			break
		}
		for k := 0; k < h.batch && first+k < h.set.Count; k++ {
			var e measurement.Example
			if e, err = s.of(first+k, k); err != nil {
				err = fmt.Errorf("example %d: %w", first+k, err)
				break
			}
			out = append(out, e)
		}
	}
	return out, errors.Join(err, s.close())
}

// scorer scores one example from the outputs of a run: row is its place in the batch.
type scorer struct {
	of    func(example, row int) (measurement.Example, error)
	close func() error
}

func (h *host) newScorer(reference string, write bool) (scorer, error) {
	plain := func(of func(example, row int) (measurement.Example, error)) scorer {
		return scorer{of, func() error { return nil }}
	}
	switch h.metric.Name {
	case measurement.Cosine:
		return h.similarity(reference, write)
	case measurement.Top1:
		return plain(h.top1), h.checkWidth()
	case measurement.F1:
		return plain(h.f1), nil
	case measurement.CER:
		return plain(h.characters), nil
	case measurement.MAP:
		return h.precision()
	}
	return scorer{}, fmt.Errorf("no scorer for metric %s", h.metric.Name)
}

func (h *host) checkWidth() error {
	if h.set.Width() != 1 {
		return fmt.Errorf("metric %s needs one label for an example, and the set has %d", h.metric.Name, h.set.Width())
	}
	return nil
}

// row returns the elements of one example of an output, and their shape without the batch.
func (h *host) row(output, k int) ([]float64, []int64, error) {
	o, bytes, shape := h.shape[output], h.outs[output].Bytes(), h.shape[output].Shape
	switch {
	case len(o.Shape) > 0 && o.Shape[0] == int64(h.batch):
		n := len(bytes) / h.batch
		bytes, shape = bytes[k*n:(k+1)*n], o.Shape[1:]
	case h.batch > 1:
		return nil, nil, fmt.Errorf("output %s has no axis of %d examples", o, h.batch)
	}
	values, err := floats(bytes, o.DType)
	if err != nil {
		return nil, nil, fmt.Errorf("output %q: %w", o.Name, err)
	}
	return values, shape, nil
}

func (h *host) top1(example, k int) (measurement.Example, error) {
	values, _, err := h.row(0, k)
	if err != nil {
		return measurement.Example{}, err
	}
	labels, err := h.set.LabelsOf(example)
	if err != nil {
		return measurement.Example{}, err
	}
	if labels[0] < 0 || labels[0] >= int64(len(values)) {
		return measurement.Example{}, fmt.Errorf("the label is class %d, and the model has %d classes", labels[0], len(values))
	}
	return measurement.Example{Counts: []int64{flag(int64(best(values)) == labels[0])}}, nil
}

func flag(on bool) int64 {
	if on {
		return 1
	}
	return 0
}

// best returns the index of the largest number; -1 where there is none.
func best(values []float64) int {
	at := -1
	for i, v := range values {
		if !math.IsNaN(v) && (at < 0 || v > values[at]) {
			at = i
		}
	}
	return at
}

// f1 compares labels of 0 and 1 with scores above a half; of a model with two classes, class 1 is
// what is looked for.
func (h *host) f1(example, k int) (measurement.Example, error) {
	values, _, err := h.row(0, k)
	if err != nil {
		return measurement.Example{}, err
	}
	labels, err := h.set.LabelsOf(example)
	if err != nil {
		return measurement.Example{}, err
	}
	if len(labels) == 1 && len(values) == 2 {
		values = []float64{float64(flag(values[1] > values[0]))}
	}
	counts, err := confusion(values, labels)
	return measurement.Example{Counts: counts}, err
}

// confusion counts true positives, false positives and false negatives.
func confusion(values []float64, labels []int64) ([]int64, error) {
	if len(labels) != len(values) {
		return nil, fmt.Errorf("%d labels, and the model gives %d scores; for one class of several use %s", len(labels), len(values), measurement.Top1)
	}
	c := []int64{0, 0, 0}
	for i, v := range values {
		switch found := v > 0.5; {
		case labels[i] != 0 && labels[i] != 1:
			return nil, fmt.Errorf("label %d is %d; 0 and 1 are labels of metric %s", i, labels[i], measurement.F1)
		case found && labels[i] == 1:
			c[0]++
		case found:
			c[1]++
		case labels[i] == 1:
			c[2]++
		}
	}
	return c, nil
}

// characters reads a text as CTC does: the best class of each step, repeats merged, class 0 left out.
func (h *host) characters(example, k int) (measurement.Example, error) {
	var steps [][]float64
	o := h.shape[0]
	if len(o.Shape) != 3 {
		return measurement.Example{}, fmt.Errorf("metric %s reads steps of classes, and the output is %s", h.metric.Name, o)
	}
	values, err := floats(h.outs[0].Bytes(), o.DType)
	if err != nil {
		return measurement.Example{}, err
	}
	classes := int(o.Shape[2])
	switch {
	case o.Shape[0] == int64(h.batch) && o.Shape[1] >= 1 && (h.batch > 1 || o.Shape[1] != 1):
		n := int(o.Shape[1])
		for t := range n {
			steps = append(steps, values[(k*n+t)*classes:][:classes])
		}
	case o.Shape[1] == int64(h.batch): // steps first
		for t := range int(o.Shape[0]) {
			steps = append(steps, values[(t*h.batch+k)*classes:][:classes])
		}
	default:
		return measurement.Example{}, fmt.Errorf("the output %s has no axis of %d examples", o, h.batch)
	}
	var read []int64
	last := 0
	for _, s := range steps {
		at := best(s)
		if at > 0 && at != last {
			read = append(read, int64(at))
		}
		last = at
	}
	labels, err := h.set.LabelsOf(example)
	if err != nil {
		return measurement.Example{}, err
	}
	want := slices.DeleteFunc(labels, func(c int64) bool { return c < 0 })
	for _, c := range want {
		if c == 0 || c >= int64(classes) {
			return measurement.Example{}, fmt.Errorf("a label is class %d; characters are classes 1 to %d, and -1 fills up", c, classes-1)
		}
	}
	return measurement.Example{Counts: []int64{edits(read, want), int64(len(want))}}, nil
}

// edits counts the insertions, deletions and replacements between two texts.
func edits(a, b []int64) int64 {
	row := make([]int64, len(b)+1)
	for j := range row {
		row[j] = int64(j)
	}
	for i, x := range a {
		corner := row[0]
		row[0] = int64(i) + 1
		for j, y := range b {
			cost := min(row[j]+1, row[j+1]+1, corner+flag(x != y))
			corner, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// similarity compares all outputs with those of the original at batch 1.
func (h *host) similarity(reference string, write bool) (scorer, error) {
	mode := os.O_RDONLY
	if write {
		mode = os.O_RDWR | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(reference, mode, 0o600)
	if err != nil {
		return scorer{}, err
	}
	of := func(example, k int) (measurement.Example, error) {
		total, counted := 0.0, 0
		var parts [][]float64
		var shapes [][]int64
		n := 0
		for o := range h.outs {
			v, shape, err := h.row(o, k)
			if err != nil {
				return measurement.Example{}, err
			}
			parts, shapes, n = append(parts, v), append(shapes, shape), n+len(v)
		}
		raw := make([]byte, 4*n)
		if write {
			at := 0
			for _, v := range parts {
				for _, x := range v {
					putFloat32(raw[at:], float32(x))
					at += 4
				}
			}
			if _, err := f.WriteAt(raw, int64(example)*int64(len(raw))); err != nil {
				return measurement.Example{}, err
			}
		} else if st, err := f.Stat(); err != nil {
			return measurement.Example{}, err
		} else if st.Size() != int64(len(raw))*int64(h.set.Count) {
			return measurement.Example{}, fmt.Errorf("the outputs have %d values, and those of the original have %d", n, st.Size()/4/int64(h.set.Count))
		} else if _, err := f.ReadAt(raw, int64(example)*int64(len(raw))); err != nil {
			return measurement.Example{}, err
		}
		for i, v := range parts {
			want := make([]float64, len(v))
			for j := range want {
				want[j] = float64(math.Float32frombits(binary.NativeEndian.Uint32(raw[4*j:])))
			}
			raw = raw[4*len(v):]
			if c, known := cosine(v, want, shapes[i]); known {
				total, counted = total+c, counted+1
			}
		}
		if counted == 0 {
			return measurement.Example{}, errors.New("the outputs of the original are 0")
		}
		return measurement.Example{Counts: []int64{int64(math.Round(total / float64(counted) * measurement.Billionth))}}, nil
	}
	return scorer{of, f.Close}, nil
}

// Channels whose largest value is below both are noise, and not compared.
const (
	quietShare = 1e-3 // of the largest value of the output
	quietValue = 1e-2
)

// cosine is the mean similarity of the channels of an output, the first axis of its shape where it
// has several: coordinates of hundreds must not hide scores below 1. A value that is not finite has
// nothing in common with one that is. It is not known for an output of zeros.
func cosine(got, want []float64, shape []int64) (float64, bool) {
	channels := 1
	if len(shape) > 1 && shape[0] > 1 && shape[0] <= 4096 {
		channels = int(shape[0])
	}
	n := len(got) / channels
	largest := 0.0
	for _, v := range want {
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			largest = max(largest, math.Abs(v))
		}
	}
	sum, counted := 0.0, 0
	for c := range channels {
		a, b := got[c*n:(c+1)*n], want[c*n:(c+1)*n]
		peak := 0.0
		for _, v := range b {
			if !math.IsNaN(v) {
				peak = max(peak, math.Abs(v))
			}
		}
		if peak < quietValue && peak < quietShare*largest || peak == 0 {
			continue
		}
		var ab, aa, bb float64
		finite := true
		for i := range a {
			ga, gb := !math.IsNaN(a[i]) && !math.IsInf(a[i], 0), !math.IsNaN(b[i]) && !math.IsInf(b[i], 0)
			if !ga || !gb {
				finite = finite && ga == gb
				continue
			}
			ab, aa, bb = ab+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
		}
		counted++
		switch {
		case !finite:
			sum--
		case aa > 0 && bb > 0:
			sum += ab / math.Sqrt(aa) / math.Sqrt(bb)
		}
	}
	return sum / float64(max(counted, 1)), counted > 0
}

// precision decodes boxes as a postprocess stage does, and matches them with the labelled objects,
// best box first.
func (h *host) precision() (scorer, error) {
	o := h.shape[0]
	in := h.session.Inputs()[0]
	tensor := h.ins[0].Shape()
	if len(o.Shape) == 0 || o.Shape[0] != int64(h.batch) || len(tensor) != 4 || tensor[1] > 4 {
		return scorer{}, fmt.Errorf("metric %s reads a detector of pictures [frame channel row column], and the model takes %s and gives %s", h.metric.Name, in, o)
	}
	objects, err := h.set.ReadBoxes()
	if err != nil {
		return scorer{}, err
	}
	dev, err := core.Open(core.Options{Backend: core.CPU})
	if err != nil {
		return scorer{}, err
	}
	one := registry.Tensor{DType: registry.F32, Shape: append([]int64{1}, o.Shape[1:]...)}
	width, height := int(tensor[3]), int(tensor[2])
	whole := core.Rect{Width: width, Height: height}
	at := decode.Picture{Geometry: core.Geometry{Inner: whole, Crop: whole, ScaleX: 1, ScaleY: 1}, Width: width, Height: height}
	post := &plan.Post{Kind: registry.Detect, Head: h.head, Threshold: "0.05", IoU: "0.7", Top: 100}
	d, release, err := decode.New(dev, post, decode.Input{Tensors: []registry.Tensor{one}, At: at}, nil)
	if err != nil {
		return scorer{}, errors.Join(err, dev.Close())
	}
	memory := make([]byte, one.Bytes())
	t := frame.NewTensor(one, memory)
	of := func(example, k int) (measurement.Example, error) {
		values, _, err := h.row(0, k)
		if err != nil {
			return measurement.Example{}, err
		}
		for i, v := range values {
			t.Data[i] = float32(v)
		}
		found, err := d(t, nil)
		if err != nil {
			return measurement.Example{}, err
		}
		return match(found, objects[example]), nil
	}
	closeAll := func() error {
		var err error
		if release != nil {
			err = release()
		}
		return errors.Join(err, dev.Close())
	}
	return scorer{of, closeAll}, nil
}

// match gives each box, best first, the labelled object of its class that it overlaps most, at each
// threshold of overlap anew; an object is found once.
func match(found []result.Result, objects []examples.Box) measurement.Example {
	var e measurement.Example
	counts := map[int64]int64{}
	for _, o := range objects {
		counts[o.Class]++
	}
	for class, n := range counts {
		e.Objects = append(e.Objects, [2]int64{class, n})
	}
	slices.SortFunc(e.Objects, func(a, b [2]int64) int { return int(a[0] - b[0]) })
	slices.SortStableFunc(found, func(a, b result.Result) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	taken := make([][]bool, len(measurement.Overlaps()))
	for i := range taken {
		taken[i] = make([]bool, len(objects))
	}
	for _, r := range found {
		met := int64(0)
		for bit, percent := range measurement.Overlaps() {
			at, most := -1, float64(percent)/100
			for i, o := range objects {
				if o.Class == int64(r.Class) && !taken[bit][i] {
					if v := overlap(r.Box, o); v >= most {
						at, most = i, v
					}
				}
			}
			if at >= 0 {
				taken[bit][at] = true
				met |= 1 << bit
			}
		}
		e.Detections = append(e.Detections, [3]int64{int64(r.Class), int64(math.Round(float64(r.Score) * 1e6)), met})
	}
	return e
}

// overlap is the intersection of two boxes over their union.
func overlap(a [4]float32, b examples.Box) float64 {
	left, top := max(float64(a[0]), b.Left), max(float64(a[1]), b.Top)
	right, bottom := min(float64(a[2]), b.Right), min(float64(a[3]), b.Bottom)
	if right <= left || bottom <= top {
		return 0
	}
	both := (right - left) * (bottom - top)
	area := float64(a[2]-a[0])*float64(a[3]-a[1]) + (b.Right-b.Left)*(b.Bottom-b.Top)
	return both / (area - both)
}

func putFloat32(b []byte, v float32) { binary.NativeEndian.PutUint32(b, math.Float32bits(v)) }

// floats converts the elements of a tensor.
func floats(b []byte, t ort.DType) ([]float64, error) {
	read := map[ort.DType]func([]byte) float64{
		onnx.Float32: func(b []byte) float64 { return float64(math.Float32frombits(binary.NativeEndian.Uint32(b))) },
		onnx.Float16: func(b []byte) float64 { return half(binary.NativeEndian.Uint16(b)) },
		onnx.BFloat16: func(b []byte) float64 {
			return float64(math.Float32frombits(uint32(binary.NativeEndian.Uint16(b)) << 16))
		},
		onnx.Int32: func(b []byte) float64 { return float64(int32(binary.NativeEndian.Uint32(b))) },
		onnx.Int64: func(b []byte) float64 { return float64(int64(binary.NativeEndian.Uint64(b))) },
		onnx.Int8:  func(b []byte) float64 { return float64(int8(b[0])) },
		onnx.Uint8: func(b []byte) float64 { return float64(b[0]) },
		onnx.Bool:  func(b []byte) float64 { return float64(b[0]) },
	}[t]
	known, ok := registry.DTypeOfONNX(int(t))
	if read == nil || !ok {
		return nil, fmt.Errorf("elements of type %s are not compared", t)
	}
	size := int(known.Bytes())
	out := make([]float64, len(b)/size)
	for i := range out {
		out[i] = read(b[i*size:])
	}
	return out, nil
}

// half converts a float16.
func half(h uint16) float64 {
	sign := 1.0
	if h&0x8000 != 0 {
		sign = -1
	}
	exponent, fraction := int(h>>10&31), float64(h&1023)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}
