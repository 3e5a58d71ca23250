package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"github.com/yoctune/yoctune/compiler/check/budget"
	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// page is a printed page with the known positions of its parts.
type page struct {
	*image.Gray
	parts map[string][]image.Rectangle // by class of models.LayoutLabels
	lines []image.Rectangle
}

const pageW, pageH = 1280, 1600

func newPage(t testing.TB) *page {
	t.Helper()
	f, err := opentype.Parse(goregular.TTF)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{Gray: image.NewGray(image.Rect(0, 0, pageW, pageH)), parts: map[string][]image.Rectangle{}}
	draw.Draw(p, p.Bounds(), image.White, image.Point{}, draw.Src)
	write := func(x, y int, size float64, text string) image.Rectangle {
		face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72})
		if err != nil {
			t.Fatal(err)
		}
		defer face.Close()
		d := font.Drawer{Dst: p, Src: image.Black, Face: face, Dot: fixed.P(x, y)}
		b, _ := d.BoundString(text)
		d.DrawString(text)
		r := image.Rect(b.Min.X.Floor(), b.Min.Y.Floor(), b.Max.X.Ceil(), b.Max.Y.Ceil())
		p.lines = append(p.lines, r)
		return r
	}
	add := func(class string, r image.Rectangle) { p.parts[class] = append(p.parts[class], r) }

	add("Section-header", write(140, 170, 56, "Measuring what a device does"))
	words := strings.Fields("the frames of a camera arrive thirty times a second and each is turned into a tensor which a model reads before the next one comes so that nothing waits")
	n := 0
	paragraph := func(y int) {
		var all image.Rectangle
		for line := range 9 {
			var text []string
			for range 11 {
				text = append(text, words[n*7%len(words)])
				n++
			}
			all = all.Union(write(140, y+40*line, 26, strings.Join(text, " ")))
		}
		add("Text", all)
	}
	paragraph(290)
	add("Section-header", write(140, 690, 36, "1  What was found"))
	paragraph(770)
	black := image.NewUniform(color.Black)
	for k := range 6 {
		draw.Draw(p, image.Rect(140, 1150+60*k, 1142, 1152+60*k), black, image.Point{}, draw.Src)
	}
	for k := range 5 {
		draw.Draw(p, image.Rect(140+250*k, 1150, 142+250*k, 1452), black, image.Point{}, draw.Src)
	}
	for k := range 20 {
		write(165+250*(k%4), 1190+60*(k/4), 26, strconv.Itoa(1000+k*k*731%9000))
	}
	add("Table", image.Rect(140, 1150, 1142, 1452))
	return p
}

// nv12 converts a grey picture to NV12.
func nv12(g *image.Gray) []byte {
	w, h := g.Rect.Dx(), g.Rect.Dy()
	b := make([]byte, w*h*3/2)
	for y := range h {
		for x := range w {
			// Luma of video is 16 to 235.
			b[y*w+x] = byte(16 + int(g.GrayAt(x, y).Y)*219/255)
		}
	}
	for i := w * h; i < len(b); i++ {
		b[i] = 128
	}
	return b
}

// clip writes frames to a file and returns the source that reads it.
func clip(t testing.TB, w, h int, frames ...[]byte) plan.PipelineSource {
	t.Helper()
	name := filepath.Join(t.TempDir(), "clip.nv12")
	var all []byte
	for _, f := range frames {
		all = append(all, f...)
	}
	if err := os.WriteFile(name, all, 0o644); err != nil {
		t.Fatal(err)
	}
	return plan.PipelineSource{Kind: "file", Path: name, Format: "nv12", Width: w, Height: h, FPSNum: 10, FPSDen: 1}
}

// records is a sink that keeps every record in JSON, the form that other programs read.
type records struct {
	t   testing.TB
	all []seenFrame
}

type seenFrame struct {
	Results []struct {
		Class   int
		Label   string
		Score   float64
		ID      uint64
		Box     [4]float64
		Corners [][2]float64
	}
}

func (s *records) Write(r *result.Record) error {
	var f seenFrame
	if err := json.Unmarshal(r.AppendJSON(nil), &f); err != nil {
		s.t.Error(err)
	}
	s.all = append(s.all, f)
	return nil
}

func (*records) Close() error { return nil }

func runRecorded(t testing.TB, p plan.Pipeline) (*records, *pipeline.Summary) {
	t.Helper()
	s := &records{t: t}
	run, err := pipeline.New(pipeline.Options{Name: "see", Plan: p, Models: models.Dir(t), Library: models.Library(t), Sink: s, GPU: standIn("")})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := run.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Close(); err != nil {
		t.Error(err)
	}
	return s, sum
}

// overlap is intersection over union of a box and what was drawn.
func overlap(b [4]float64, r image.Rectangle) float64 {
	w := min(b[2], float64(r.Max.X)) - max(b[0], float64(r.Min.X))
	h := min(b[3], float64(r.Max.Y)) - max(b[1], float64(r.Min.Y))
	if w <= 0 || h <= 0 {
		return 0
	}
	return w * h / ((b[2]-b[0])*(b[3]-b[1]) + float64(r.Dx()*r.Dy()) - w*h)
}

func newPreprocessStage(id string, w, h int, fit string) plan.PipelineStage {
	return plan.PipelineStage{ID: id, Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{
		Width: w, Height: h, Fit: fit, Pad: 114, Mean: []string{"0"}, Std: []string{"1"},
	}}
}

// A trained YOLOv8n finds each drawn part of a page in a letterboxed frame. When the page
// moves, the tracker keeps the ids.
func TestATrainedDetectorFindsShapesAndTheTrackerFollowsThem(t *testing.T) {
	page := newPage(t)
	labels := filepath.Join(t.TempDir(), "labels.txt")
	if err := os.WriteFile(labels, []byte(strings.Join(models.LayoutLabels[:], "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var frames [][]byte
	const steps, step = 2, 8
	for k := range steps {
		moved := image.NewGray(page.Rect)
		draw.Draw(moved, moved.Rect, image.White, image.Point{}, draw.Src)
		draw.Draw(moved, moved.Rect.Add(image.Pt(k*step, k*step)), page.Gray, image.Point{}, draw.Src)
		frames = append(frames, nv12(moved))
	}
	s, sum := runRecorded(t, plan.Pipeline{
		Source: clip(t, pageW, pageH, frames...),
		Stages: []plan.PipelineStage{
			newPreprocessStage("pre", 1024, 1024, "letterbox"),
			{ID: "find", Kind: "model", Input: "pre", Model: &plan.Model{Path: models.Layout}},
			{ID: "boxes", Kind: "postprocess", Input: "find", Post: &plan.Post{Kind: "detect", Head: "v8", Labels: labels, Threshold: "0.5"}},
			{ID: "follow", Kind: "track", Input: "boxes", Track: &plan.Track{Hits: 1}},
		},
	})
	if sum.Frames.Done != steps {
		t.Fatalf("%+v", sum.Frames)
	}
	ids := map[string]uint64{}
	for n, f := range s.all {
		found := 0
		for class, all := range page.parts {
			for k, r := range all {
				hit := false
				for _, b := range f.Results {
					if b.Label != class || overlap(b.Box, r.Add(image.Pt(n*step, n*step))) < 0.7 {
						continue
					}
					hit = true
					found++
					key := class + strconv.Itoa(k)
					if was := ids[key]; b.ID == 0 || was != 0 && was != b.ID {
						t.Errorf("frame %d: %s is %d, it was %d", n, key, b.ID, was)
					}
					ids[key] = b.ID
				}
				if !hit {
					t.Errorf("frame %d: no %s at %v in %+v", n, class, r, f.Results)
				}
			}
		}
		if len(f.Results) != found {
			t.Errorf("frame %d: %d boxes, %d of them match a drawn object", n, len(f.Results), found)
		}
	}
}

// The compiler's sums equal what the runtime allocates.
func TestTheCompilersBudgetMatchesTheRuntime(t *testing.T) {
	for _, device := range []string{"", "gpu"} {
		budgetHolds(t, device, nil)
		budgetHolds(t, device, &plan.Ensemble{Models: []plan.StageModel{{Stage: "again", Path: models.Orientation}}})
	}
}

// The decoder of boxes on the GPU has memory of its own.
func TestTheBudgetOfADetectorOnTheGPU(t *testing.T) {
	g := onnx.Graph{
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 1, 3, 4, 4)},
		Weights: []onnx.Weight{{Name: "w", Dims: []int64{1, 5, 12}, Data: make([]float32, 60)}},
		Nodes: []onnx.Node{
			{Op: "ReduceMean", In: []string{"x"}, Out: []string{"mean"}, Attributes: map[string]any{"keepdims": int64(0)}},
			{Op: "Add", In: []string{"w", "mean"}, Out: []string{"y"}},
		},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 1, 5, 12)},
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.onnx"), g.Encode(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, device := range []string{"", "gpu"} {
		p := plan.Pipeline{
			Source: plan.PipelineSource{Kind: "synthetic", Format: "nv12", Width: 64, Height: 48, FPSNum: 30, FPSDen: 1},
			Stages: []plan.PipelineStage{
				newPreprocessStage("pre", 4, 4, "stretch"),
				{ID: "find", Kind: "model", Input: "pre", Model: &plan.Model{Path: "m.onnx", Threads: 1}},
				{ID: "boxes", Kind: "postprocess", Input: "find", Instances: 2, Post: &plan.Post{Kind: "detect"}},
			},
			Queue: plan.PipelineQueue{Capacity: 3}, Sink: plan.PipelineSink{Capacity: 5},
		}
		for i := range p.Stages {
			p.Stages[i].Device = device
		}
		run, err := pipeline.New(pipeline.Options{Name: "sum", Plan: p, Models: dir, Library: models.Library(t), Sink: &records{t: t}, GPU: standIn("")})
		if err != nil {
			t.Fatal(err)
		}
		b := budget.Compute(p, func(path, _ string) *onnx.Model {
			m, err := onnx.ReadFile(filepath.Join(dir, path))
			if err != nil {
				t.Fatal(err)
			}
			return m
		})
		if info := run.Info(); !b.Known || b.Pool != info.Bytes {
			t.Errorf("device %q: the compiler counts %d bytes (known: %t), the runtime has %d", device, b.Pool, b.Known, info.Bytes)
		}
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	}
}

func budgetHolds(t *testing.T, device string, also *plan.Ensemble) {
	t.Helper()
	p := plan.Pipeline{
		Source: plan.PipelineSource{Kind: "synthetic", Format: "nv12", Width: 640, Height: 480, FPSNum: 30, FPSDen: 1},
		Stages: []plan.PipelineStage{
			newPreprocessStage("pre", 224, 224, "stretch"),
			{ID: "way", Kind: "model", Input: "pre", Instances: 2, Model: &plan.Model{Path: models.Orientation, Threads: 1, Ensemble: also, Batch: &plan.ModelBatch{Buckets: []int{1, 2}}}},
			{ID: "class", Kind: "postprocess", Input: "way", Post: &plan.Post{Kind: "argmax"}},
		},
		Queue: plan.PipelineQueue{Capacity: 3}, Sink: plan.PipelineSink{Capacity: 5},
	}
	p.Stages[0].Device, p.Stages[1].Device = device, device
	run, err := pipeline.New(pipeline.Options{Name: "sum", Plan: p, Models: models.Dir(t), Library: models.Library(t), Sink: &records{t: t}, GPU: standIn("")})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	b := budget.Compute(p, func(path, _ string) *onnx.Model {
		m, err := onnx.ReadFile(filepath.Join(models.Dir(t), path))
		if err != nil {
			t.Fatal(err)
		}
		return m
	})
	info := run.Info()
	if !b.Known || b.Frames != info.Frames || b.Pool != info.Bytes || device == "" && b.Copies != 3 {
		t.Errorf("device %q: %d frames, %d bytes, %d copies (known: %t); the runtime has %d and %d", device, b.Frames, b.Pool, b.Copies, b.Known, info.Frames, info.Bytes)
	}
	copies := int64(1) // a file that votes with itself is there once
	if (b.GPU > 0) != (device == "gpu") || device == "gpu" && b.GPU != b.Pool+b.Weights/2 {
		t.Errorf("device %q: %d bytes in the GPU's process, of %d and weights of %d", device, b.GPU, b.Pool, b.Weights)
	}
	if device == "gpu" { // and in the GPU's process
		copies *= 2
	}
	if st, err := os.Stat(filepath.Join(models.Dir(t), models.Orientation)); err != nil || b.Weights < copies*st.Size() || b.Weights > 2*copies*st.Size() {
		t.Errorf("device %q: %d bytes of weights for two instances of a file of %d", device, b.Weights, st.Size())
	}
}

// PP-OCRv4's detector finds the lines of the page in raw frames, and at half size in a JPEG
// image twice as large.
func TestATrainedDetectorFindsEveryLineOfText(t *testing.T) {
	page := newPage(t)
	large := image.NewGray(image.Rect(0, 0, 2*pageW, 2*pageH))
	for y := range 2 * pageH {
		for x := range 2 * pageW {
			large.Pix[y*large.Stride+x] = page.GrayAt(x/2, y/2).Y
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, large, &jpeg.Options{Quality: 90}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "page.jpg")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	linesOf(t, page, clip(t, pageW, pageH, nv12(page.Gray)), 1)
	info := linesOf(t, page, plan.PipelineSource{Kind: "file", Path: file, Format: "mjpeg", FPSNum: 10, FPSDen: 1}, 2)
	if d := info.Decoded; d == nil || d.Width != pageW || d.Height != pageH {
		t.Errorf("decoded at %+v", d)
	}
}

// linesOf finds the lines of the upper part of the page, which is drawn scale times as
// large as it is, at three quarters of its size.
func linesOf(t *testing.T, page *page, source plan.PipelineSource, scale int) pipeline.RuntimeInfo {
	t.Helper()
	times := func(r image.Rectangle) image.Rectangle { return image.Rectangle{r.Min.Mul(scale), r.Max.Mul(scale)} }
	part := times(image.Rect(0, 64, pageW, 704))
	p := newPreprocessStage("pre", 960, 480, "stretch")
	p.Preprocess.Crop = &plan.Crop{Y: part.Min.Y, Width: part.Dx(), Height: part.Dy()}
	p.Preprocess.Mean, p.Preprocess.Std = []string{"0.485", "0.456", "0.406"}, []string{"0.229", "0.224", "0.225"}
	s, sum := runRecorded(t, plan.Pipeline{
		Source: source,
		Stages: []plan.PipelineStage{
			p,
			{ID: "find", Kind: "model", Input: "pre", Model: &plan.Model{Path: models.TextDetector}},
			{ID: "lines", Kind: "postprocess", Input: "find", Post: &plan.Post{Kind: "regions"}},
		},
	})
	var missed []image.Rectangle
	lines := 0
	for _, l := range page.lines {
		if l = times(l); !l.In(part) {
			continue
		}
		lines++
		hit := false
		for _, r := range s.all[0].Results {
			hit = hit || overlap(r.Box, l) > 0.5
			if len(r.Corners) != 4 {
				t.Fatalf("%+v", r)
			}
		}
		if !hit {
			missed = append(missed, l)
		}
	}
	if len(missed) > 0 || len(s.all[0].Results) != lines || lines < 10 {
		t.Errorf("of %d lines %d are missed: %v; %d regions", lines, len(missed), missed, len(s.all[0].Results))
	}
	return sum.Runtime
}

// A trained classifier detects the orientation of each picture, alone and in an ensemble.
func TestATrainedClassifierDetectsPageOrientation(t *testing.T) {
	page := newPage(t)
	square := image.NewGray(image.Rect(0, 0, 1000, 1000))
	draw.Draw(square, square.Rect, page.Gray, image.Pt(130, 260), draw.Src)
	turned := []*image.Gray{square}
	for range 3 {
		last := turned[len(turned)-1]
		next := image.NewGray(square.Rect)
		for y := range 1000 {
			for x := range 1000 {
				next.SetGray(999-y, x, last.GrayAt(x, y)) // clockwise
			}
		}
		turned = append(turned, next)
	}
	var frames [][]byte
	for _, g := range turned {
		frames = append(frames, nv12(g))
	}
	p := newPreprocessStage("pre", 224, 224, "stretch")
	p.Preprocess.Mean, p.Preprocess.Std = []string{"0.485", "0.456", "0.406"}, []string{"0.229", "0.224", "0.225"}
	source := clip(t, 1000, 1000, frames...)
	var alone []float64
	twice := &plan.Ensemble{Models: []plan.StageModel{{Stage: "again", Path: models.Orientation}}, Vote: "mean"}
	for _, tc := range []struct {
		ensemble *plan.Ensemble
		device   string
	}{{nil, ""}, {twice, ""}, {twice, "gpu"}} {
		s, sum := runRecorded(t, plan.Pipeline{
			Source: source,
			Stages: []plan.PipelineStage{
				p,
				{ID: "way", Kind: "model", Input: "pre", Device: tc.device, Deadline: int64(time.Minute), Model: &plan.Model{Path: models.Orientation, Ensemble: tc.ensemble}},
				{ID: "class", Kind: "postprocess", Input: "way", Post: &plan.Post{Kind: "argmax"}},
			},
		})
		if sum.Frames.Done != 4 || sum.Fallbacks["way"] != 0 {
			t.Fatalf("%+v, %d on the CPU", sum.Frames, sum.Fallbacks["way"])
		}
		for n, f := range s.all {
			r := f.Results[0]
			if r.Class != n || r.Score < 0.8 { // classes are quarter turns
				t.Errorf("turned by %d degrees it is class %d with %.3f", n*90, r.Class, r.Score)
			}
			if tc.ensemble == nil {
				alone = append(alone, r.Score)
			} else if math.Abs(alone[n]-r.Score) > 1e-5 {
				t.Errorf("a model that votes with itself gives %v, alone %v", r.Score, alone[n])
			}
		}
	}
}
