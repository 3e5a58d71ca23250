package decode

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// referee runs graphs of ONNX Runtime's own operators: what post-processing does
// here, they do as others wrote it.
type referee struct{ rt *ort.Runtime }

func newReferee(t *testing.T) referee {
	t.Helper()
	rt, err := ort.Open(models.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rt.Close)
	return referee{rt}
}

// run feeds data to a graph of one input x and one output y.
func (r referee) run(t *testing.T, g *onnx.Graph, data []float32, dims ...int64) ([]float32, []int64) {
	t.Helper()
	g.Inputs = []onnx.Value{onnx.Tensor("x", onnx.Float32, dims...)}
	g.Outputs = []onnx.Value{{Name: "y", Type: onnx.Float32}}
	s, err := r.rt.NewSessionFromBytes(g.Encode(), ort.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := r.rt.NewTensor(ort.Float32, dims)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	copy(in.Data(), data)
	made, err := s.Probe(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.rt.NewTensor(ort.Float32, made[0].Shape)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	bound, err := s.Bind([]*ort.Tensor{in}, out)
	if err != nil {
		t.Fatal(err)
	}
	defer bound.Close()
	if err := bound.Run(); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(out.Data()), out.Shape()
}

func node(op string, in, out string, attributes map[string]any) onnx.Node {
	return onnx.Node{Op: op, In: strings.Fields(in), Out: strings.Fields(out), Attributes: attributes}
}

// suppress is ONNX's NonMaxSuppression over boxes by centre, [anchors 4], and the
// score of each class, [classes anchors]: class and anchor of those it keeps.
func (r referee) suppress(t *testing.T, boxes, scores []float32, classes, anchors int, iou, score float32) [][2]int {
	t.Helper()
	n, c := int64(anchors), int64(classes)
	g := &onnx.Graph{
		Weights: []onnx.Weight{
			{Name: "most", Dims: []int64{1}, Data: []int64{n}},
			{Name: "iou", Dims: []int64{1}, Data: []float32{iou}}, {Name: "score", Dims: []int64{1}, Data: []float32{score}},
			{Name: "b", Dims: []int64{3}, Data: []int64{1, n, 4}}, {Name: "s", Dims: []int64{3}, Data: []int64{1, c, n}},
			{Name: "cut", Dims: []int64{2}, Data: []int64{4 * n, c * n}},
		},
		Nodes: []onnx.Node{
			node("Split", "x cut", "flat points", map[string]any{"axis": int64(0)}),
			node("Reshape", "flat b", "boxes", nil), node("Reshape", "points s", "scores", nil),
			node("NonMaxSuppression", "boxes scores most iou score", "kept", map[string]any{"center_point_box": int64(1)}),
			node("Cast", "kept", "y", map[string]any{"to": int64(onnx.Float32)}),
		},
	}
	out, _ := r.run(t, g, append(slices.Clone(boxes), scores...), int64(4*anchors+classes*anchors))
	var kept [][2]int
	for i := 0; i < len(out); i += 3 {
		kept = append(kept, [2]int{int(out[i+1]), int(out[i+2])})
	}
	slices.SortFunc(kept, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return kept
}

// output returns a detector's output with clustered boxes, so that many overlap.
func output(rng *rand.Rand, anchors, classes, extra int, objectness bool) (rows []float32, width int) {
	first := 4
	if objectness {
		first = 5
	}
	width = first + classes + extra
	rows = make([]float32, anchors*width)
	for a := range anchors {
		v := rows[a*width:][:width]
		heap := float32(rng.IntN(12))
		v[0], v[1] = 60+heap*45+rng.Float32()*20, 80+heap*40+rng.Float32()*20
		v[2], v[3] = 20+rng.Float32()*60, 20+rng.Float32()*60
		for c := 4; c < width; c++ {
			v[c] = rng.Float32()
		}
	}
	return rows, width
}

// planes turns rows of anchors into planes of channels.
func planes(rows []float32, width int) []float32 {
	n := len(rows) / width
	out := make([]float32, len(rows))
	for a := range n {
		for c := range width {
			out[c*n+a] = rows[a*width+c]
		}
	}
	return out
}

// whole is a tensor that is the frame.
func whole(w, h int) Picture {
	return pictureOf(core.Preprocess{Format: core.NV12, Width: w, Height: h, OutW: w, OutH: h})
}

func pictureOf(p core.Preprocess) Picture {
	g, err := p.Geometry()
	if err != nil {
		panic(err)
	}
	return Picture{g, p.OutW, p.OutH}
}

// bench allocates tensors for a test.
type bench struct {
	dev *core.Device
	t   *testing.T
}

func newBench(t *testing.T) bench {
	t.Helper()
	dev, err := core.Open(core.Options{Backend: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	return bench{dev, t}
}

// tensor has memory that the core takes.
func (b bench) tensor(data []float32, shape ...int64) frame.Tensor {
	b.t.Helper()
	buf, err := b.dev.Alloc(4*len(data), core.MemHost)
	if err != nil {
		b.t.Fatal(err)
	}
	copy(buf.Float32s(), data)
	return frame.Tensor{Shape: shape, Data: buf.Float32s(), Buf: buf}
}

// few is the planes of some anchors, and of enough empty ones that there are more
// anchors than channels, as with every model.
func (b bench) few(rows []float32, width int) frame.Tensor {
	const anchors = 64
	rows = append(slices.Clone(rows), make([]float32, anchors*width-len(rows))...)
	return b.tensor(planes(rows, width), 1, int64(width), anchors)
}

// input describes float32 tensors; those without a shape are left out.
func input(at Picture, shapes ...[]int64) Input {
	in := Input{At: at}
	for _, shape := range shapes {
		if shape != nil {
			in.Tensors = append(in.Tensors, registry.Tensor{Shape: shape})
		}
	}
	return in
}

// decoder opens the decoder of a tensor.
func (b bench) decoder(p plan.Post, in frame.Tensor, at Picture, labels ...string) Decoder {
	b.t.Helper()
	var more []int64
	if in.More != nil {
		more = in.More[0].Shape
	}
	d, release, err := New(b.dev, &p, input(at, in.Shape, more), labels)
	if err != nil {
		b.t.Fatal(err)
	}
	if release != nil {
		b.t.Cleanup(func() { _ = release() })
	}
	return d
}

func TestBoxesOfEveryHeadEqualONNXRuntimes(t *testing.T) {
	r, b := newReferee(t), newBench(t)
	rng := rand.New(rand.NewPCG(1, 1))
	at := whole(640, 640)
	for _, c := range []struct {
		head, kind string
		turned     bool
		extra      int
	}{
		{"v8", registry.Detect, false, 0}, {"v11", registry.Detect, true, 0}, {"v5", registry.Detect, false, 0},
		{"v8", registry.Segment, false, 32}, {"v5", registry.Segment, false, 32}, {"v8", registry.Keypoints, false, 51}, {"v8", registry.Keypoints, true, 51},
	} {
		for _, agnostic := range []bool{false, true} {
			name := fmt.Sprintf("%s %s turned %t agnostic %t", c.head, c.kind, c.turned, agnostic)
			const anchors, score, iou = 900, 0.6, 0.5
			classes := 5
			if c.kind == registry.Keypoints {
				classes = 2
			}
			v5 := c.head == "v5"
			rows, width := output(rng, anchors, classes, c.extra, v5)
			first := width - classes - c.extra
			data, shape := planes(rows, width), []int64{1, int64(width), anchors}
			if v5 || c.turned {
				data, shape = rows, []int64{1, anchors, int64(width)}
			}
			in := b.tensor(data, shape...)
			if c.kind == registry.Segment {
				more := b.tensor(make([]float32, 32*4*4), 1, 32, 4, 4)
				in.More = []frame.Tensor{more}
			}
			d := b.decoder(plan.Post{Kind: c.kind, Head: c.head, Threshold: "0.6", IoU: "0.5", Agnostic: agnostic, Classes: 2, Top: 1000}, in, at)
			got, err := d(in, nil)
			if err != nil {
				t.Fatal(name, err)
			}

			// A box has only its best class; the reference gets only that one.
			boxes, scores := make([]float32, 4*anchors), make([]float32, classes*anchors)
			best := make([]int, anchors)
			for a := range anchors {
				v := rows[a*width:][:width]
				copy(boxes[4*a:], v[:4])
				class, value := maximum(v[first:][:classes])
				if v5 {
					value *= v[4]
				}
				best[a] = class
				if agnostic {
					class = 0
				}
				scores[class*anchors+a] = value
			}
			want := r.suppress(t, boxes, scores, classes, anchors, iou, score)
			var have [][2]int
			last := float32(math.Inf(1))
			for _, x := range got {
				if x.Score > last {
					t.Fatalf("%s: %v after %v", name, x.Score, last)
				}
				last = x.Score
				a := -1
				for i := range anchors {
					cx, cy := (x.Box[0]+x.Box[2])/2, (x.Box[1]+x.Box[3])/2
					if x.Class == best[i] && isNear(cx, boxes[4*i]) && isNear(cy, boxes[4*i+1]) && isNear(x.Box[2]-x.Box[0], boxes[4*i+2]) {
						a = i
					}
				}
				class := x.Class
				if agnostic {
					class = 0
				}
				have = append(have, [2]int{class, a})
			}
			slices.SortFunc(have, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
			if !slices.Equal(have, want) || len(want) < 10 {
				t.Errorf("%s: %d boxes, ONNX Runtime has %d", name, len(have), len(want))
			}
		}
	}
}

func isNear(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-3 }

func TestBoxesAndPointsAreInSourcePixels(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		name string
		p    core.Preprocess
		want [4]float32 // of the box 100…300, 200…400 of the tensor
	}{
		{"stretched", core.Preprocess{Width: 1920, Height: 1080, OutW: 640, OutH: 640}, [4]float32{300, 337.5, 900, 675}},
		// 640 wide are 1920: three times; 360 high, 140 above and below.
		{"letterbox", core.Preprocess{Width: 1920, Height: 1080, OutW: 640, OutH: 640, Fit: core.Letterbox}, [4]float32{300, 180, 900, 780}},
		{"part of a frame", core.Preprocess{Width: 1920, Height: 1080, OutW: 640, OutH: 640, Fit: core.Letterbox, Crop: core.Rect{X: 1000, Y: 100, Width: 640, Height: 320}}, [4]float32{1100, 140, 1300, 340}},
	} {
		c.p.Format = core.NV12
		at := pictureOf(c.p)
		// Box, class, two points.
		in := b.few([]float32{200, 300, 200, 200, 0.9, 100, 200, 0.8, 300, 400, 0.7}, 11)
		d := b.decoder(plan.Post{Kind: registry.Keypoints, Classes: 1}, in, at)
		got, err := d(in, nil)
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %v, %v", c.name, got, err)
		}
		r := got[0]
		for i := range c.want {
			if !isNear(r.Box[i], c.want[i]) {
				t.Errorf("%s: box %v, want %v", c.name, r.Box, c.want)
				break
			}
		}
		p := r.Points
		if len(p) != 2 || !isNear(p[0].X, c.want[0]) || !isNear(p[0].Y, c.want[1]) || !isNear(p[1].X, c.want[2]) || !isNear(p[1].Y, c.want[3]) || p[1].Score != 0.7 {
			t.Errorf("%s: points %v", c.name, p)
		}
		if line := string(r.AppendJSON(nil)); !strings.Contains(line, `"class":0,"score":0.9,"box":[`) || !strings.Contains(line, `],"points":[[`) || !json.Valid([]byte(line)) {
			t.Errorf("%s: %s", c.name, line)
		}
	}
}

func TestBoxesOutsideThePictureAreDropped(t *testing.T) {
	b := newBench(t)
	at := pictureOf(core.Preprocess{Format: core.NV12, Width: 1280, Height: 720, OutW: 640, OutH: 640, Fit: core.Letterbox})
	in := b.few([]float32{
		320, 40, 100, 60, 0.9, // on the letterbox's border
		320, 140, 100, 40, 0.8, // half on it: of 120 to 160, 20 rows are picture
		320, 300, 0, 0, 0.95, // nothing
		float32(math.NaN()), 300, 10, 10, 0.95,
	}, 5)
	got, err := b.decoder(plan.Post{Kind: registry.Detect}, in, at)(in, nil)
	if err != nil || len(got) != 1 || got[0].Box != [4]float32{540, 0, 740, 40} {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestEndToEndHeadsAreNotFilteredAgain(t *testing.T) {
	b := newBench(t)
	in := b.tensor([]float32{
		10, 20, 30, 40, 0.5, 2,
		11, 21, 31, 41, 0.9, 2, // overlaps the first: both stay
		0, 0, 9, 9, 0.1, 1,
		5, 5, 8, 8, 0.9, -1,
		5, 5, 8, 8, 0.9, float32(math.Inf(1)),
	}, 1, 5, 6)
	d := b.decoder(plan.Post{Kind: registry.Detect, Head: "v10", Threshold: "0.25"}, in, whole(100, 100))
	got, err := d(in, nil)
	if err != nil || len(got) != 2 || got[0].Score != 0.9 || got[0].Box != [4]float32{11, 21, 31, 41} || got[1].Class != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A model in float16 overflows to infinity, and to NaN. Such a box is left out, whatever the head.
func TestBoxesThatAreNotFiniteAreLeftOut(t *testing.T) {
	b := newBench(t)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, head := range registry.HeadNames() {
		for axis := range 4 {
			for _, v := range []float32{nan, inf, -inf} {
				edges := [][4]float32{{20, 20, 60, 60}, {10, 10, 30, 40}}
				switch head {
				case "v5", "v8", "v11": // by centre
					edges = [][4]float32{{40, 40, 40, 40}, {20, 25, 20, 30}}
				case registry.HeadDETR, registry.HeadRTDETR:
					edges = [][4]float32{{0.4, 0.4, 0.4, 0.4}, {0.2, 0.25, 0.2, 0.3}}
				case registry.HeadSSD:
					edges = [][4]float32{{0.2, 0.2, 0.6, 0.6}, {0.1, 0.1, 0.3, 0.4}}
				}
				edges[0][axis] = v
				flat := append(edges[0][:], edges[1][:]...)
				row := func(i int, more ...float32) []float32 { return append(edges[i][:], more...) }
				var tensors []frame.Tensor
				switch head {
				case "v8", "v11":
					tensors = []frame.Tensor{b.few(append(row(0, 0.95), row(1, 0.9)...), 5)}
				case "v5":
					tensors = []frame.Tensor{b.tensor(append(row(0, 0.95, 1), row(1, 0.9, 1)...), 1, 2, 6)}
				case "v10":
					tensors = []frame.Tensor{b.tensor(append(row(0, 0.95, 0), row(1, 0.9, 0)...), 1, 2, 6)}
				case registry.HeadEfficientNMS:
					tensors = []frame.Tensor{b.tensor(flat, 1, 2, 4), b.tensor([]float32{0.95, 0.9}, 1, 2), b.tensor([]float32{0, 0}, 1, 2), b.tensor([]float32{2}, 1, 1)}
				case registry.HeadSSD:
					tensors = []frame.Tensor{b.tensor(flat, 1, 2, 4), b.tensor([]float32{0.05, 0.95, 0.1, 0.9}, 1, 2, 2)}
				case registry.HeadDETR:
					tensors = []frame.Tensor{b.tensor(flat, 1, 2, 4), b.tensor([]float32{4, 0, 3, 0}, 1, 2, 2)}
				case registry.HeadRTDETR:
					tensors = []frame.Tensor{b.tensor(flat, 1, 2, 4), b.tensor([]float32{4, 3}, 1, 2, 1)}
				default:
					t.Fatalf("head %s has no sample", head)
				}
				in := tensors[0]
				in.More = tensors[1:]
				shapes := make([][]int64, len(tensors))
				for i := range tensors {
					shapes[i] = tensors[i].Shape
				}
				d, release, err := New(b.dev, &plan.Post{Kind: registry.Detect, Head: head}, input(whole(100, 100), shapes...), nil)
				if err != nil {
					t.Fatal(head, err)
				}
				got := decoded(t, d, in)
				if len(got) != 1 || got[0].Score > 0.96 || math.Abs(float64(got[0].Box[0]-10)) > 1e-4 || math.Abs(float64(got[0].Box[3]-40)) > 1e-4 {
					t.Errorf("%s with coordinate %d at %v: %+v", head, axis, v, got)
				}
				if release != nil {
					if err := release(); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

func TestMasksEqualONNXRuntimes(t *testing.T) {
	r, b := newReferee(t), newBench(t)
	rng := rand.New(rand.NewPCG(2, 2))
	const n, side, w, h = 8, 40, 320, 240
	at := pictureOf(core.Preprocess{Format: core.NV12, Width: w, Height: h, OutW: 160, OutH: 160})
	prototypes := make([]float32, n*side*side)
	for k := range n {
		fx, fy, ph := rng.Float64()/3, rng.Float64()/3, rng.Float64()*6
		for i := range side * side {
			prototypes[k*side*side+i] = float32(math.Sin(fx*float64(i%side) + fy*float64(i/side) + ph))
		}
	}
	row := []float32{80, 80, 100, 120, 0.9}
	weights := make([]float32, n)
	for k := range weights {
		weights[k] = rng.Float32()*2 - 1
	}
	row = append(row, weights...)
	in := b.few(row, len(row))
	more := b.tensor(prototypes, 1, n, side, side)
	in.More = []frame.Tensor{more}
	d := b.decoder(plan.Post{Kind: registry.Segment}, in, at)
	got, err := d(in, nil)
	if err != nil || len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	m := got[0].Mask

	want, _ := r.run(t, &onnx.Graph{
		Weights: []onnx.Weight{{Name: "w", Dims: []int64{1, n, 1, 1}, Data: weights}, {Name: "size", Dims: []int64{4}, Data: []int64{1, 1, h, w}}},
		Nodes: []onnx.Node{
			node("Conv", "x w", "sum", nil),
			{Op: "Resize", In: []string{"sum", "", "", "size"}, Out: []string{"y"}, Attributes: map[string]any{"mode": "linear", "coordinate_transformation_mode": "half_pixel"}},
		},
	}, prototypes, 1, n, side, side)

	if m.X != 60 || m.Y != 30 || m.Width != 200 || m.Height != 180 || m.Step != 1 {
		t.Fatalf("mask at %d,%d of %dx%d by %d", m.X, m.Y, m.Width, m.Height, m.Step)
	}
	in1, cell, inside := false, 0, 0
	for _, c := range m.Counts {
		for range c {
			x, y := m.X+cell%m.Width, m.Y+cell/m.Width
			if v := want[y*w+x]; in1 != (v > 0) && math.Abs(float64(v)) > 1e-4 {
				t.Fatalf("pixel %d,%d is inside: %t, ONNX Runtime's value is %v", x, y, in1, v)
			}
			if in1 {
				inside++
			}
			cell++
		}
		in1 = !in1
	}
	if cell != m.Width*m.Height || inside < 1000 || inside > cell-1000 {
		t.Errorf("%d cells, %d inside", cell, inside)
	}
	if line := string(got[0].AppendJSON(nil)); !strings.Contains(line, `"mask":{"x":60,"y":30,"width":200,"height":180,"step":1,"counts":[`) || !json.Valid([]byte(line)) {
		t.Errorf("%.200s", line)
	}
	// The mask of a box as large as the camera's frame does not exceed the frame.
	large := pictureOf(core.Preprocess{Format: core.NV12, Width: 4096, Height: 2160, OutW: 160, OutH: 160})
	masks := newMasks(more.Shape, large, 1)
	masks.next(&detector{at: large, boxes: []core.Box{{X1: 4096, Y1: 2160}}})
	big := masks.drawn[0]
	if big.Step != 8 || big.Width != 512 || big.Height != 270 {
		t.Errorf("%d by %d cells of %d", big.Width, big.Height, big.Step)
	}
}

func TestBestClassesEqualONNXRuntimes(t *testing.T) {
	r := newReferee(t)
	rng := rand.New(rand.NewPCG(3, 3))
	const n, k = 1000, 7
	data := make([]float32, n)
	for i := range data {
		data[i] = rng.Float32()*20 - 10
	}
	want, _ := r.run(t, &onnx.Graph{
		Weights: []onnx.Weight{{Name: "k", Dims: []int64{1}, Data: []int64{k}}},
		Nodes: []onnx.Node{
			node("Softmax", "x", "p", map[string]any{"axis": int64(-1)}), node("TopK", "p k", "values at", nil),
			node("Cast", "at", "index", map[string]any{"to": int64(onnx.Float32)}),
			node("Concat", "values index", "y", map[string]any{"axis": int64(0)}),
		},
	}, data, 1, n)
	b := newBench(t)
	in := b.tensor(data, 1, n)
	got := decoded(t, b.decoder(plan.Post{Kind: registry.Argmax, Top: k}, in, Picture{}), in)
	for i := range k {
		if got[i].Class != int(want[k+i]) || math.Abs(float64(got[i].Score-want[i])) > 1e-6 {
			t.Errorf("%d: class %d with %v, ONNX Runtime has %v with %v", i, got[i].Class, got[i].Score, want[k+i], want[i])
		}
	}
}

func TestVotesEqualONNXRuntimes(t *testing.T) {
	r := newReferee(t)
	rng := rand.New(rand.NewPCG(4, 4))
	const n = 40
	data := make([]float32, 3*n)
	for i := range data {
		data[i] = rng.Float32()
	}
	for kind, op := range map[string]string{"mean": "Mean", "max": "Max"} {
		v, err := ParseVote(kind)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := r.run(t, &onnx.Graph{Nodes: []onnx.Node{
			node("Split", "x", "a b c", map[string]any{"axis": int64(0)}), node(op, "a b c", "y", nil),
		}}, data, 3, n)
		got := slices.Clone(data[:n])
		v(got, [][]float32{data[n : 2*n], data[2*n:]}, n)
		for i := range got {
			if math.Abs(float64(got[i]-want[i])) > 1e-6 {
				t.Fatalf("%s: %v, ONNX Runtime has %v", kind, got[i], want[i])
			}
		}
	}
	got := []float32{0.1, 0.9, 0, 0.5, 0.4, 0.1}
	voteMajority(got, [][]float32{{0.6, 0.4, 0, 0, 0, 1}, {0.2, 0.8, 0, 0, 0, 1}}, 3)
	for i, want := range []float32{1. / 3, 2. / 3, 0, 1. / 3, 0, 2. / 3} {
		if !isNear(got[i], want) {
			t.Errorf("majority %v", got)
			break
		}
	}
	if _, err := ParseVote("loudest"); !errors.Is(err, registry.ErrPlan) {
		t.Errorf("%v", err)
	}
}

func TestRotatedTextGivesARotatedRegion(t *testing.T) {
	const w, h = 200, 160
	at := whole(w, h)
	r, err := newRegions([]int64{1, 1, h, w}, at, 0, true, 0)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]float32, w*h)
	// A bar of 80 by 12 about 90,80, turned by 30 degrees; a square; noise; and faint ink.
	sin, cos := math.Sincos(math.Pi / 6)
	for y := range h {
		for x := range w {
			dx, dy := float64(x)-90, float64(y)-80
			if along, across := dx*cos+dy*sin, dy*cos-dx*sin; math.Abs(along) <= 40 && math.Abs(across) <= 6 {
				data[y*w+x] = 0.95
			}
			if x >= 10 && x < 30 && y >= 10 && y < 30 {
				data[y*w+x] = 0.8
			}
			if x >= 150 && x < 180 && y >= 10 && y < 30 {
				data[y*w+x] = 0.4
			}
		}
	}
	data[150*w+190] = 1
	got, err := r.results(frame.Tensor{Data: data}, nil)
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got[0].Score < 0.9 || !isNear(got[1].Score, 0.8) {
		t.Errorf("scores %v, %v", got[0].Score, got[1].Score)
	}
	p := got[0].Points
	side := func(a, b result.Point) float64 { return math.Hypot(float64(b.X-a.X), float64(b.Y-a.Y)) }
	// Grown by 80·12·1.5/(2·92) = 7.8 to each side.
	if long, short := side(p[0], p[1]), side(p[1], p[2]); math.Abs(long-95.6) > 3 || math.Abs(short-27.6) > 3 {
		t.Errorf("sides %v and %v", long, short)
	}
	if angle := math.Atan2(float64(p[1].Y-p[0].Y), float64(p[1].X-p[0].X)); math.Abs(angle-math.Pi/6) > 0.05 {
		t.Errorf("turned by %v", angle)
	}
	if cx, cy := (p[0].X+p[2].X)/2, (p[0].Y+p[2].Y)/2; math.Abs(float64(cx)-90.5) > 1 || math.Abs(float64(cy)-80.5) > 1 {
		t.Errorf("about %v,%v", cx, cy)
	}
}

func TestDetectorsRefuseUnsupportedOutputs(t *testing.T) {
	for _, c := range []struct {
		post        plan.Post
		shape, more []int64
		labels      []string
		wantText    string
	}{
		{plan.Post{Kind: registry.Detect}, []int64{1, 1000}, nil, nil, "[1 1000]"},
		{plan.Post{Kind: registry.Detect}, []int64{2, 84, 8400}, nil, nil, "one frame"},
		{plan.Post{Kind: registry.Detect}, []int64{1, 3, 8400}, nil, nil, "at least one class"},
		{plan.Post{Kind: registry.Detect, Head: "v10"}, []int64{1, 84, 8400}, nil, nil, "[1 boxes 6]"},
		{plan.Post{Kind: registry.Detect, Head: "v3"}, []int64{1, 84, 8400}, nil, nil, "one of v5, v8, v10, v11"},
		{plan.Post{Kind: registry.Detect}, []int64{1, 84, 8400}, nil, []string{"cat"}, "1 lines, but the model has 80"},
		{plan.Post{Kind: registry.Detect, IoU: "2"}, []int64{1, 84, 8400}, nil, nil, "iou"},
		{plan.Post{Kind: registry.Segment}, []int64{1, 116, 8400}, []int64{1, 32}, nil, "[1 32]"},
		{plan.Post{Kind: registry.Segment}, []int64{1, 20, 8400}, []int64{1, 32, 4, 4}, nil, "at least one class"},
		{plan.Post{Kind: registry.Keypoints}, []int64{1, 57, 8400}, nil, nil, "52 of the 57 values of a box are left for keypoints"},
	} {
		if _, err := NewParts(&c.post, input(whole(640, 640), c.shape, c.more), c.labels); !errors.Is(err, registry.ErrPlan) || !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%+v of %v: %v", c.post, c.shape, err)
		}
	}
	if _, err := newRegions([]int64{1, 3, 10, 10}, whole(10, 10), 0, true, 0); !errors.Is(err, registry.ErrPlan) {
		t.Errorf("%v", err)
	}
}

// A model may output anything; results must be valid JSON.
func TestDecodersSurviveGarbage(t *testing.T) {
	b := newBench(t)
	rng := rand.New(rand.NewPCG(5, 5))
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	odd := []float32{nan, inf, -inf, math.MaxFloat32, -math.MaxFloat32, 0, 1, -1, 1e30, 0.5}
	fill := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			if v[i] = odd[rng.IntN(len(odd))]; rng.IntN(2) == 0 {
				v[i] = rng.Float32() * 200
			}
		}
		return v
	}
	for range 200 {
		for _, p := range []plan.Post{{Kind: registry.Detect}, {Kind: registry.Detect, Head: "v5"}, {Kind: registry.Detect, Head: "v10"}, {Kind: registry.Segment}, {Kind: registry.Segment, Head: "v5"}, {Kind: registry.Keypoints}} {
			shape := []int64{1, 11, 20}
			switch p.Head {
			case "v5":
				shape = []int64{1, 20, 11}
			case "v10":
				shape = []int64{1, 20, 6}
			}
			in := b.tensor(fill(int(elements(shape))), shape...)
			if p.Kind == registry.Segment {
				more := b.tensor(fill(4*5*5), 1, 4, 5, 5)
				in.More = []frame.Tensor{more}
			}
			got, err := b.decoder(p, in, whole(100, 80))(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if line := got[i].AppendJSON(nil); !json.Valid(line) {
					t.Fatalf("%s", line)
				}
			}
		}
		r, err := newRegions([]int64{1, 1, 8, 10}, whole(100, 80), 0, true, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.results(frame.Tensor{Data: fill(80)}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDecodersAllocateNothingPerFrame(t *testing.T) {
	b := newBench(t)
	rng := rand.New(rand.NewPCG(6, 6))
	rows, width := output(rng, 300, 3, 8, false)
	in := b.tensor(planes(rows, width), 1, int64(width), 300)
	more := b.tensor(make([]float32, 8*20*20), 1, 8, 20, 20)
	in.More = []frame.Tensor{more}
	d := b.decoder(plan.Post{Kind: registry.Segment, Threshold: "0.5"}, in, whole(640, 640))
	r, err := newRegions([]int64{1, 1, 20, 20}, whole(640, 640), 0, true, 0)
	if err != nil {
		t.Fatal(err)
	}
	ink := make([]float32, 400)
	for i := range ink {
		ink[i] = float32(i/5%2) * 0.9
	}
	var boxes, text []result.Result
	run := func() {
		var err, err2 error
		boxes, err = d(in, boxes)
		text, err2 = r.results(frame.Tensor{Data: ink}, text)
		if err != nil || err2 != nil || len(boxes) == 0 || len(text) == 0 {
			t.Fatal(len(boxes), err, len(text), err2)
		}
	}
	run()
	if n := testing.AllocsPerRun(50, run); n != 0 {
		t.Errorf("a frame allocates %v times", n)
	}
}

// elements is how many a tensor of a shape has.
func elements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// Masks of many large boxes take more than comes back at once; the memory does not grow with them.
func TestManyMasksAreDrawnInParts(t *testing.T) {
	const n, side, boxes = 4, 32, 70
	rng := rand.New(rand.NewPCG(8, 8))
	b := newBench(t)
	prototypes := make([]float32, n*side*side)
	for i := range prototypes {
		prototypes[i] = rng.Float32() - 0.5
	}
	var rows []float32
	for i := range boxes {
		rows = append(rows, 256, 256, 512, 512, 0.9-float32(i)/1000)
		for range n {
			rows = append(rows, rng.Float32()-0.5)
		}
	}
	width := 5 + n
	rows = append(rows, make([]float32, (100-boxes)*width)...)
	in := b.tensor(planes(rows, width), 1, int64(width), 100)
	more := b.tensor(prototypes, 1, n, side, side)
	in.More = []frame.Tensor{more}
	if size := 512 * 512 / 8; boxes*size < 2*registry.MaskBytes {
		t.Fatal("the masks fit")
	}
	post := plan.Post{Kind: registry.Segment, IoU: "1"}
	d := b.decoder(post, in, whole(512, 512))
	var got []result.Result
	for range 2 {
		var err error
		if got, err = d(in, got); err != nil || len(got) != boxes {
			t.Fatal(len(got), err)
		}
	}
	for i, r := range got {
		alone := b.tensor(planes(append(slices.Clone(rows[i*width:][:width]), make([]float32, 99*width)...), width), 1, int64(width), 100)
		alone.More = []frame.Tensor{more}
		want, err := d(alone, nil)
		if err != nil || len(want) != 1 || !slices.Equal(want[0].Mask.Counts, r.Mask.Counts) || len(r.Mask.Counts) < 100 {
			t.Fatalf("box %d: %d runs, alone %v", i, len(r.Mask.Counts), err)
		}
	}
}
