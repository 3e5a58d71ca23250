package pipeline_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/compiler/check/budget"
	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// The frames of the cascade have a grid of 4 by 4 coloured cells of 16 by 12 pixels.
const cellsW, cellsH, cellW, cellH = 4, 4, 16, 12

// cellColor is the colour of a cell.
func cellColor(n int) [3]byte { return [3]byte{byte(10 + 15*n), byte(240 - 15*n), byte(40 * (n % 5))} }

// cellFrame draws all cells but the last four, which have a level of grey.
func cellFrame(grey byte) []byte {
	b := make([]byte, 0, 3*cellsW*cellW*cellsH*cellH)
	for y := range cellsH * cellH {
		for x := range cellsW * cellW {
			c := [3]byte{grey, grey, grey}
			if n := y/cellH*cellsW + x/cellW; n < 12 {
				c = cellColor(n)
			}
			b = append(b, c[:]...)
		}
	}
	return b
}

// cellDetector finds the first twelve cells, the first with the best score. The lighter the rest of
// the frame is, the lower are the scores.
func cellDetector(boxes [][4]float32) []byte {
	n := len(boxes)
	w, dark := make([]float32, 5*n), make([]float32, 5*n)
	for a, b := range boxes {
		for c, v := range b {
			w[c*n+a] = v
		}
		w[4*n+a], dark[4*n+a] = 0.95-float32(a)/float32(4*n), -1
	}
	g := onnx.Graph{
		Inputs: []onnx.Value{onnx.Tensor("x", onnx.Float32, 1, 3, 4, 4)},
		Weights: []onnx.Weight{
			{Name: "w", Dims: []int64{1, 5, int64(n)}, Data: w}, {Name: "dark", Dims: []int64{1, 5, int64(n)}, Data: dark},
			{Name: "last", Dims: []int64{1}, Data: []int64{3}},
		},
		Nodes: []onnx.Node{
			{Op: "Gather", In: []string{"x", "last"}, Out: []string{"row"}, Attributes: map[string]any{"axis": int64(2)}},
			{Op: "ReduceMean", In: []string{"row"}, Out: []string{"mean"}, Attributes: map[string]any{"keepdims": int64(0)}},
			{Op: "Mul", In: []string{"mean", "dark"}, Out: []string{"less"}},
			{Op: "Add", In: []string{"w", "less"}, Out: []string{"y"}},
		},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 1, 5, int64(n))},
	}
	return g.Encode()
}

func cellBoxes() [][4]float32 {
	var all [][4]float32
	for n := range 12 {
		all = append(all, [4]float32{float32(n%cellsW) + 0.5, float32(n/cellsW) + 0.5, 1, 1})
	}
	return all
}

// cropMean gives the mean of each channel of each crop of 8 by 6 pixels. batch 0 is a dynamic axis.
func cropMean(batch int64) []byte { return cropsOf(batch, 8) }

// cropsOf is cropMean for crops of another width.
func cropsOf(batch, width int64) []byte {
	g := onnx.Graph{
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, batch, 3, 6, width)},
		Nodes:   []onnx.Node{{Op: "ReduceMean", In: []string{"x"}, Out: []string{"y"}, Attributes: map[string]any{"keepdims": int64(0), "axes": []int64{2, 3}}}},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, batch, 3)},
	}
	return g.Encode()
}

// cascade is the folder of a cascade's models and frames.
type cascade struct {
	t   testing.TB
	dir string
}

func newCascade(t testing.TB, levels ...byte) cascade {
	t.Helper()
	c := cascade{t, t.TempDir()}
	var clip []byte
	for _, l := range levels {
		clip = append(clip, cellFrame(l)...)
	}
	c.write("clip.rgb", clip)
	c.write("find.onnx", cellDetector(cellBoxes()))
	c.write("mean.onnx", cropMean(0))
	return c
}

func (c cascade) write(name string, b []byte) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), b, 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// plan returns the cascade with some of its stages on the GPU.
func (c cascade) plan(count int, batch *plan.ModelBatch, gpu ...string) plan.Pipeline {
	zero, one := []string{"0"}, []string{"1"}
	p := plan.Pipeline{
		Source: plan.PipelineSource{Kind: "file", Path: filepath.Join(c.dir, "clip.rgb"), Format: "rgb", Width: cellsW * cellW, Height: cellsH * cellH, FPSNum: 10, FPSDen: 1},
		Stages: []plan.PipelineStage{
			{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 4, Height: 4, Mean: zero, Std: one}},
			{ID: "find", Kind: "model", Input: "pre", Model: &plan.Model{Path: "find.onnx", Threads: 1}},
			{ID: "boxes", Kind: "postprocess", Input: "find", Post: &plan.Post{Kind: "detect", Threshold: "0.5"}},
			{ID: "crops", Kind: "roi", Input: "boxes", ROI: &plan.ROI{Width: 8, Height: 6, Count: count, Mean: zero, Std: one}},
			{ID: "look", Kind: "model", Input: "crops", Model: &plan.Model{Path: "mean.onnx", Threads: 1, Batch: batch}},
			{ID: "mean", Kind: "postprocess", Input: "look", Post: &plan.Post{Kind: "raw"}},
		},
	}
	return onGPU(p, time.Minute, "", gpu...)
}

// cascadeSink keeps the records as JSON without their times.
type cascadeSink struct {
	t      testing.TB
	frames []string
}

func (s *cascadeSink) Write(r *result.Record) error {
	var f struct{ Results json.RawMessage }
	if err := json.Unmarshal(r.AppendJSON(nil), &f); err != nil {
		s.t.Error(err)
	}
	s.frames = append(s.frames, string(f.Results))
	return nil
}

func (*cascadeSink) Close() error { return nil }

func (c cascade) run(p plan.Pipeline, o pipeline.Options) ([]string, *pipeline.Summary) {
	c.t.Helper()
	s := &cascadeSink{t: c.t}
	o.Plan, o.Models, o.Library, o.Sink, o.Name = p, c.dir, models.Library(c.t), s, "cascade"
	if o.GPU.Backend == "" {
		o.GPU = standIn(o.GPU.Faults)
	}
	sum := run(c.t, o)
	return s.frames, sum
}

// seenBox is a box of a cascade as a reader of the results sees it.
type seenBox struct {
	Score float64
	Box   [4]float64
	Then  map[string][]struct{ Values []float64 }
}

// check compares the crops of a frame with the colours of its cells, best scores first.
func (c cascade) check(frame string, count int) (boxes int) {
	c.t.Helper()
	var all []seenBox
	if err := json.Unmarshal([]byte(frame), &all); err != nil {
		c.t.Fatal(err)
	}
	for n, b := range all {
		if n >= count {
			if b.Then != nil {
				c.t.Errorf("box %d is beyond the count of %d and has %v", n, count, b.Then)
			}
			continue
		}
		want := cellColor(n)
		if len(b.Then) != 1 || len(b.Then["mean"]) != 1 || len(b.Then["mean"][0].Values) != 3 {
			c.t.Fatalf("box %d: %+v", n, b)
		}
		for k, v := range b.Then["mean"][0].Values {
			if math.Abs(v-float64(want[k])/255) > 1e-4 {
				c.t.Errorf("box %d: channel %d is %v, want %d/255", n, k, v, want[k])
			}
		}
	}
	return len(all)
}

// Each crop has the pixels of its box, in batches of every size, on the CPU and on the strict
// device. Frames have from none to twelve boxes.
func TestEveryCropHasThePixelsOfItsBox(t *testing.T) {
	levels := []byte{0, 255, 100, 110, 60, 95, 90, 80}
	c := newCascade(t, levels...)
	c.write("four.onnx", cropMean(4))
	var found []string
	for _, tc := range []struct {
		count int
		batch *plan.ModelBatch
		model string
	}{
		{12, nil, ""},
		{12, &plan.ModelBatch{Buckets: []int{1, 2, 4, 8}}, ""},
		{12, &plan.ModelBatch{Buckets: []int{1, 3, 5}}, ""},
		{12, &plan.ModelBatch{Buckets: []int{1, 2, 4, 8}, Pad: true}, ""},
		{12, &plan.ModelBatch{Buckets: []int{5}, Pad: true}, ""},
		{10, &plan.ModelBatch{Buckets: []int{4}, Pad: true}, "four.onnx"},
		{5, &plan.ModelBatch{Buckets: []int{1, 4}}, ""},
	} {
		for _, gpu := range [][]string{nil, {"crops"}, {"look"}, {"crops", "look"}, {"pre", "find", "boxes", "crops", "look"}} {
			p := c.plan(tc.count, tc.batch, gpu...)
			if tc.model != "" {
				p.Stages[4].Model.Path = tc.model
			}
			frames, sum := c.run(p, pipeline.Options{})
			if len(frames) != len(levels) {
				t.Fatalf("%d frames", len(frames))
			}
			var want live.Crops
			for _, f := range frames {
				n := c.check(f, tc.count)
				want.Boxes += uint64(n)
				want.Crops += uint64(min(n, tc.count))
				want.Beyond += uint64(max(n-tc.count, 0))
			}
			if got := sum.Crops["crops"]; got != want || want.Boxes < 20 || frames[1] != "[]" {
				t.Errorf("count %d, %+v on the GPU: %+v, want %+v", tc.count, gpu, got, want)
			}
			for stage, n := range sum.Fallbacks {
				if n > 0 {
					t.Errorf("the CPU did %d frames of %s", n, stage)
				}
			}
			if tc.count == 12 {
				if found == nil {
					found = frames
				} else if !slices.Equal(found, frames) {
					t.Errorf("%+v on %v gives other results", tc.batch, gpu)
				}
			}
		}
	}
}

// The strict device counts the copies of a cascade. The frame is uploaded once for the detector and
// for its crops; of the detector only boxes come back, of the crops only the model's output.
func TestACascadeUploadsTheFrameOnceAndItsCropsStay(t *testing.T) {
	c := newCascade(t, 0, 0, 0, 0, 0, 0)
	perFrame := func(gpu ...string) worker.Copied {
		copied := func(frames uint64) worker.Copied {
			p := c.plan(4, &plan.ModelBatch{Buckets: []int{1, 4}}, gpu...)
			p.Stages[2].Post.Top = 4
			_, sum := c.run(p, pipeline.Options{Frames: frames})
			return sum.Runtime.Worker.Copied
		}
		a, b := copied(2), copied(6)
		return worker.Copied{ToDevice: (b.ToDevice - a.ToDevice) / 4, ToHost: (b.ToHost - a.ToHost) / 4, OnDevice: (b.OnDevice - a.OnDevice) / 4}
	}
	const (
		pixels = 3 * cellsW * cellW * cellsH * cellH
		tensor = 4 * 3 * 4 * 4 // of the detector
		output = 4 * 5 * 12    // of the detector
		crops  = 4 * 4 * 3 * 6 * 8
		means  = 4 * 4 * 3
	)
	list := uint64(core.BoxesBytes(4))
	for _, tc := range []struct {
		stages []string
		want   worker.Copied
	}{
		// Each stage alone: everything crosses.
		{[]string{"pre"}, worker.Copied{ToDevice: pixels, ToHost: tensor}},
		{[]string{"find"}, worker.Copied{ToDevice: tensor, ToHost: output}},
		{[]string{"crops"}, worker.Copied{ToDevice: pixels + list, ToHost: crops}},
		{[]string{"look"}, worker.Copied{ToDevice: crops, ToHost: means}},
		// Together: the frame once, and lists of boxes.
		{[]string{"crops", "look"}, worker.Copied{ToDevice: pixels + list, ToHost: means}},
		{[]string{"pre", "crops"}, worker.Copied{ToDevice: pixels + list, ToHost: tensor + crops}},
		{[]string{"pre", "find", "boxes", "crops", "look"}, worker.Copied{ToDevice: pixels + list, ToHost: list + means, OnDevice: list}},
	} {
		if got := perFrame(tc.stages...); got != tc.want {
			t.Errorf("%v on the GPU copy %+v a frame, want %+v", tc.stages, got, tc.want)
		}
	}
}

// No frame is lost and no result changes when the device is lost between two stages, hangs, or has
// no memory left for the third model run.
func TestNoFrameOfACascadeIsLostWithTheGPU(t *testing.T) {
	levels := []byte{0, 100, 60, 95, 255, 80, 0, 90, 20, 0}
	c := newCascade(t, levels...)
	batch := &plan.ModelBatch{Buckets: []int{1, 2, 4}}
	want, _ := c.run(c.plan(6, batch), pipeline.Options{})
	all := []string{"pre", "find", "boxes", "crops", "look"}
	for _, faults := range []string{
		"launch:fault@kernel=roi@n=2", "launch:fault@kernel=roi@n=5", "launch:fault@kernel=nms@n=4", "launch:fault@kernel=pre@n=5",
		"device:lost@n=40", "device:lost@n=47", "device:lost@n=53", "device:lost@n=60", "launch:hang=2s@kernel=roi@n=4",
	} {
		p := c.plan(6, batch, all...)
		if strings.Contains(faults, "hang") {
			for i := range p.Stages {
				if p.Stages[i].Device != "" {
					p.Stages[i].Deadline = int64(150 * time.Millisecond)
				}
			}
		}
		got, sum := c.run(p, pipeline.Options{GPU: core.Options{Faults: faults}, Backoff: soon})
		if !slices.Equal(got, want) || sum.Frames.Done != uint64(len(levels)) {
			t.Errorf("%s: %+v\n%v\nwithout faults\n%v", faults, sum.Frames, got, want)
		}
		if w := sum.Runtime.Worker; len(w.Losses) == 0 {
			t.Errorf("%s: worker %+v, fallbacks %v", faults, w, sum.Fallbacks)
		}
		if n := sum.Crops["crops"]; n.Crops+n.Beyond != n.Boxes {
			t.Errorf("%s: boxes are counted twice or not at all: %+v", faults, n)
		}
	}
	// A device without memory for the tensors leaves the work to the CPU.
	got, sum := c.run(c.plan(6, batch, all...), pipeline.Options{GPU: core.Options{Faults: "alloc:oom"}, Backoff: worker.Backoff{First: time.Hour, Max: time.Hour, Limit: 1}})
	if !slices.Equal(got, want) || sum.Fallbacks["crops"] != uint64(len(levels)-1) || sum.Fallbacks["look"] != uint64(len(levels)-1) { // one frame has no box
		t.Errorf("without memory: %v, the results are the same: %v", sum.Fallbacks, slices.Equal(got, want))
	}
	// With fallback drop the frames are dropped with their reason.
	p := c.plan(6, batch)
	p.Stages[3].Device, p.Stages[3].Fallback, p.Stages[3].Deadline = "gpu", "drop", int64(time.Minute)
	got, sum = c.run(p, pipeline.Options{GPU: core.Options{Faults: "launch:fault@kernel=roi@n=8"}, Backoff: worker.Backoff{First: time.Hour, Max: time.Hour, Limit: 1}})
	if sum.Drops["no-device:crops"] == 0 || sum.Frames.Done+sum.Frames.Dropped != uint64(len(levels)) || len(got) != int(sum.Frames.Done) {
		t.Errorf("%+v %v", sum.Frames, sum.Drops)
	}
}

// The compiler's sums equal what the runtime allocates.
func TestTheBudgetOfACascade(t *testing.T) {
	c := newCascade(t, 0)
	for _, tc := range []struct {
		batch *plan.ModelBatch
		gpu   []string
	}{
		{nil, nil},
		{&plan.ModelBatch{Buckets: []int{1, 2, 4}}, nil},
		{&plan.ModelBatch{Buckets: []int{4}, Pad: true}, []string{"crops", "look"}},
		{&plan.ModelBatch{Buckets: []int{1, 2, 4}}, []string{"pre", "find", "boxes", "crops", "look"}},
		{nil, []string{"look"}},
	} {
		for _, width := range []int{8, 7} { // crops of 7 by 6 pixels do not begin at a multiple of 64 bytes
			p := c.plan(5, tc.batch, tc.gpu...)
			p.Stages[3].ROI.Width = width
			p.Stages[3].Instances = 2
			p.Queue.Capacity = 4
			c.write("mean.onnx", cropsOf(0, int64(width)))
			run, err := pipeline.New(pipeline.Options{Name: "sum", Plan: p, Models: c.dir, Library: models.Library(t), Sink: &records{t: t}, GPU: standIn("")})
			if err != nil {
				t.Fatal(err)
			}
			b := budget.Compute(p, func(path, _ string) *onnx.Model {
				m, err := onnx.ReadFile(filepath.Join(c.dir, path))
				if err != nil {
					t.Fatal(err)
				}
				return m
			})
			if info := run.Info(); !b.Known || b.Pool != info.Bytes || b.Frames != info.Frames {
				t.Errorf("%+v %v, %d pixels wide: the compiler counts %d bytes and %d frames (known: %t), the runtime has %d and %d", tc.batch, tc.gpu, width, b.Pool, b.Frames, b.Known, info.Bytes, info.Frames)
			}
			if err := run.Close(); err != nil {
				t.Error(err)
			}
			if len(tc.gpu) > 0 && width == 7 {
				frames, _ := c.run(p, pipeline.Options{})
				c.check(frames[0], 5)
			}
		}
	}
}

// A hundred thousand candidates become crops of the best, and every other box is counted.
func TestACascadeBehindAHundredThousandCandidates(t *testing.T) {
	c := newCascade(t, 0, 0)
	var boxes [][4]float32
	for n := range 100_000 {
		// Outside of the frame, without area, not a number, or one of a thousand small ones.
		switch n % 5 {
		case 0:
			boxes = append(boxes, [4]float32{-3, -3, 1, 1})
		case 1:
			boxes = append(boxes, [4]float32{2, 2, 0, 1})
		case 2:
			boxes = append(boxes, [4]float32{float32(math.NaN()), 2, 1, 1})
		case 3:
			boxes = append(boxes, [4]float32{2, float32(math.Inf(1)), 1, float32(math.Inf(1))})
		default:
			boxes = append(boxes, [4]float32{float32(n%40) / 10, float32(n/40%40) / 10, 0.05, 0.05})
		}
	}
	c.write("find.onnx", cellDetector(boxes))
	for _, gpu := range [][]string{nil, {"pre", "find", "boxes", "crops", "look"}} {
		p := c.plan(3, &plan.ModelBatch{Buckets: []int{1, 2}}, gpu...)
		p.Stages[2].Post.Top = 1000
		p.Stages[3].ROI.Margin = "1"
		frames, sum := c.run(p, pipeline.Options{})
		n := sum.Crops["crops"]
		if len(frames) != 2 || n.Crops != 6 || n.Boxes != n.Crops+n.Beyond+n.Outside+n.Empty+n.Invalid || n.Beyond < 100 {
			t.Errorf("%d frames, %+v", len(frames), n)
		}
	}
}

// A model whose outputs do not have a row for each crop is refused with both shapes, whatever its
// file declares.
func TestAModelThatMixesCropsIsRefused(t *testing.T) {
	c := newCascade(t, 0)
	g := onnx.Graph{
		Inputs: []onnx.Value{onnx.Tensor("x", onnx.Float32, 0, 3, 6, 8)},
		Nodes: []onnx.Node{
			{Op: "ReduceMean", In: []string{"x"}, Out: []string{"mean"}, Attributes: map[string]any{"keepdims": int64(1), "axes": []int64{0, 2, 3}}},
			{Op: "Flatten", In: []string{"mean"}, Out: []string{"y"}},
		},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 0, 3)}, // n rows, and it gives one
	}
	c.write("mean.onnx", g.Encode())
	p := c.plan(4, &plan.ModelBatch{Buckets: []int{1, 2}})
	_, err := pipeline.New(pipeline.Options{Name: "mixed", Plan: p, Models: c.dir, Library: models.Library(t), Sink: &records{t: t}})
	if !errors.Is(err, pipeline.ErrPlan) || !strings.Contains(fmt.Sprint(err), "stage look") || !strings.Contains(fmt.Sprint(err), "its output is [1 3] for 2 crops: the first axis must be the batch") {
		t.Error(err)
	}
}

// The classes of crops are decoded where the crops are, and only they come back.
func TestClassesOfCropsAreDecodedOnTheGPU(t *testing.T) {
	c := newCascade(t, 0, 100, 60, 255, 80, 0)
	classify := func(frames uint64, gpu ...string) ([]string, *pipeline.Summary) {
		p := c.plan(4, &plan.ModelBatch{Buckets: []int{1, 4}}, gpu...)
		p.Stages[5] = plan.PipelineStage{ID: "mean", Kind: "postprocess", Input: "look", Post: &plan.Post{Kind: "argmax", Top: 2}, Device: p.Stages[5].Device, Deadline: p.Stages[5].Deadline}
		return c.run(p, pipeline.Options{Frames: frames})
	}
	all := []string{"pre", "find", "boxes", "crops", "look", "mean"}
	want, _ := classify(6)
	got, sum := classify(6, all...)
	if !slices.Equal(got, want) || !strings.Contains(want[0], `"then":{"mean":[{"class":1`) {
		t.Errorf("on the GPU\n%v\non the CPU\n%v", got, want)
	}
	for stage, n := range sum.Fallbacks {
		if n > 0 {
			t.Errorf("the CPU did %d frames of %s", n, stage)
		}
	}
}

// A detector that finds fewer boxes than there are crops to warm up with, with every choice of devices for the
// stages from it on.
func TestEveryChoiceOfDevicesOfACascadeStarts(t *testing.T) {
	c := newCascade(t, 0, 100)
	var want []string
	for bits := range 1 << 4 {
		var gpu []string
		for n, id := range []string{"boxes", "crops", "look", "mean"} {
			if bits>>n&1 != 0 {
				gpu = append(gpu, id)
			}
		}
		p := c.plan(4, &plan.ModelBatch{Buckets: []int{1, 4}}, gpu...)
		p.Stages[2].Post.Top = 1
		p.Stages[5].Post = &plan.Post{Kind: "argmax"}
		got, sum := c.run(p, pipeline.Options{Frames: 2})
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) || sum.Frames.Done != 2 || !strings.Contains(got[0], `"then"`) {
			t.Errorf("%v on the GPU: %v, on the CPU %v", gpu, got, want)
		}
	}
}

// Several GPUs share the work of a cascade, and one can do it in the pipeline's own process.
func TestACascadeOnSeveralGPUsAndInThisProcess(t *testing.T) {
	t.Setenv("YT_CPU_DEVICES", "2")
	c := newCascade(t, 0, 100, 60, 255, 80, 0, 90, 30)
	batch := &plan.ModelBatch{Buckets: []int{1, 2, 4}}
	want, _ := c.run(c.plan(6, batch), pipeline.Options{})
	p := c.plan(6, batch, "pre", "find", "boxes", "crops", "look")
	p.GPUs = []int{0, 1}
	got, sum := c.run(p, pipeline.Options{})
	if !slices.Equal(got, want) || len(sum.Runtime.GPUs) != 2 {
		t.Errorf("on two GPUs: %+v, the results are the same: %v", sum.Runtime.GPUs, slices.Equal(got, want))
	}
	for stage, n := range sum.Fallbacks {
		if n > 0 {
			t.Errorf("the CPU did %d frames of %s", n, stage)
		}
	}
	p = c.plan(6, batch, "pre", "crops")
	p.Isolation = "none"
	if got, sum := c.run(p, pipeline.Options{}); !slices.Equal(got, want) || sum.Runtime.Worker != nil {
		t.Errorf("in this process: worker %+v, the results are the same: %v", sum.Runtime.Worker, slices.Equal(got, want))
	}
}

// After the first frames nothing is allocated for a frame, whatever the number of its crops.
func TestACascadeAllocatesNothingForAFrame(t *testing.T) {
	levels := make([]byte, 400)
	for n := range levels {
		levels[n] = byte(37 * n)
	}
	c := newCascade(t, levels...)
	p := c.plan(6, &plan.ModelBatch{Buckets: []int{1, 2, 4}})
	p.Stages[5].Post = &plan.Post{Kind: "argmax"}
	s := &mallocs{}
	sum := run(t, pipeline.Options{Name: "quiet", Plan: p, Models: c.dir, Library: models.Library(t), Sink: s, GPU: standIn("")})
	n := s.at[350] - s.at[100]
	t.Logf("%d allocations for 250 frames with %d crops in all", n, sum.Crops["crops"].Crops)
	if n > 100 { // timers and goroutines of the run
		t.Errorf("%d allocations", n)
	}
}

// mallocs is a sink that remembers how much was allocated until each frame.
type mallocs struct {
	at    []uint64
	line  []byte
	stats runtime.MemStats
}

func (m *mallocs) Write(r *result.Record) error {
	if m.at == nil {
		m.at = make([]uint64, 0, 1000)
	}
	m.line = r.AppendJSON(m.line[:0])
	runtime.ReadMemStats(&m.stats)
	m.at = append(m.at, m.stats.Mallocs)
	return nil
}

func (*mallocs) Close() error { return nil }

// With more places of crops than the GPU's process keeps bindings for, it makes them again; with more
// than a pipeline may have, the pipeline is refused.
func TestACascadeWithThousandsOfBindings(t *testing.T) {
	levels := make([]byte, 720) // each with twelve crops, in memory of its own: more than 8192 places
	c := newCascade(t, levels...)
	p := c.plan(12, nil, "look")
	p.Queue.Capacity, p.Sink.Capacity = 120, 120
	frames, sum := c.run(p, pipeline.Options{})
	if len(frames) != len(levels) || sum.Fallbacks["look"] != 0 || sum.Runtime.Frames < len(levels) {
		t.Fatalf("%d frames, %v, a pool of %d", len(frames), sum.Fallbacks, sum.Runtime.Frames)
	}
	for _, f := range frames[len(frames)-100:] {
		c.check(f, 12)
	}
	batch := &plan.ModelBatch{}
	batch.Buckets = []int{1, 2, 4, 8, 16, 32, 64, 128, 256}
	p = c.plan(256, batch)
	p.Stages[4].Instances, p.Queue.Capacity = 8, 32
	_, err := pipeline.New(pipeline.Options{Name: "many", Plan: p, Models: c.dir, Library: models.Library(t), Sink: &records{t: t}})
	if !errors.Is(err, pipeline.ErrPlan) || !strings.Contains(fmt.Sprint(err), "each bound to its memory") {
		t.Error(err)
	}
}

// Devices of stages on crops are measured with as many crops as a frame may have, although no box is
// found in the synthetic frames.
func TestDevicesOfACascadeAreMeasuredWithCrops(t *testing.T) {
	c := newCascade(t, 0, 100)
	none := cellBoxes()
	for n := range none {
		none[n] = [4]float32{-9, -9, 1, 1} // outside
	}
	c.write("find.onnx", cellDetector(none))
	p := c.plan(6, &plan.ModelBatch{Buckets: []int{1, 2, 4}})
	p.Stages[3].Device = "auto"
	_, sum := c.run(p, pipeline.Options{Cache: t.TempDir(), GPU: core.Options{Faults: "launch:hang=20ms@kernel=roi"}})
	d := sum.Runtime.Devices
	if d == nil || d.Devices["crops"] != "cpu" || d.Rates["crops cpu"] < 2*d.Rates["crops gpu"] || sum.Crops["crops"].Boxes != 0 {
		t.Errorf("%+v, %+v", d, sum.Crops)
	}
}

// A ladder may replace the model on crops and the size of the detector's tensor.
func TestALadderOfACascade(t *testing.T) {
	c := newCascade(t, 0, 100, 60, 255, 80, 0)
	c.write("small.onnx", cropMean(0))
	p := c.plan(6, &plan.ModelBatch{Buckets: []int{1, 2, 4}})
	p.Source.Live, p.Source.FPSNum = true, 50
	p.SLO = &plan.PipelineSLO{LatencyP95: int64(time.Second)}
	p.Degrade = &plan.PipelineDegrade{Ladder: []plan.DegradeStep{{Models: []plan.StageModel{{Stage: "look", Path: "small.onnx"}}}, {FPS: 10}}}
	frames, sum := c.run(p, pipeline.Options{})
	if len(sum.Runtime.Models) != 3 || len(frames) != int(sum.Frames.Done) || sum.Frames.Failed > 0 {
		t.Errorf("%+v, models %+v", sum.Frames, sum.Runtime.Models)
	}
	for _, f := range frames {
		c.check(f, 6)
	}
}

// A model on crops may give other elements than float32.
func TestModelsOnCropsGiveHalves(t *testing.T) {
	c := newCascade(t, 0, 100, 60)
	g := onnx.Graph{
		Inputs: []onnx.Value{onnx.Tensor("x", onnx.Float32, 0, 3, 6, 8)},
		Nodes: []onnx.Node{
			{Op: "ReduceMean", In: []string{"x"}, Out: []string{"m"}, Attributes: map[string]any{"keepdims": int64(0), "axes": []int64{2, 3}}},
			{Op: "Cast", In: []string{"m"}, Out: []string{"y"}, Attributes: map[string]any{"to": int64(onnx.Float16)}},
		},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float16, 0, 3)},
	}
	c.write("mean.onnx", g.Encode())
	var want []string
	for _, gpu := range [][]string{nil, {"crops", "look"}, {"pre", "find", "boxes", "crops", "look", "mean"}} {
		p := c.plan(6, &plan.ModelBatch{Buckets: []int{1, 2, 4}}, gpu...)
		p.Stages[5].Post = &plan.Post{Kind: "argmax", Top: 3}
		got, _ := c.run(p, pipeline.Options{})
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) || !strings.Contains(got[0], `"then":{"mean":[{"class":1,"score":0.`) {
			t.Errorf("%v on the GPU:\n%v\non the CPU\n%v", gpu, got, want)
		}
	}
}

// A tracker between detector and crops, and one after them, keep boxes and crops together.
func TestTracksAndCropsBelongToTheSameBoxes(t *testing.T) {
	c := newCascade(t, 0, 0, 0)
	p := c.plan(4, nil)
	track := plan.PipelineStage{ID: "follow", Kind: "track", Input: "boxes", Track: &plan.Track{Hits: 1}}
	p.Stages[3].Input = "follow"
	p.Stages = slices.Insert(p.Stages, 3, track)
	before, _ := c.run(p, pipeline.Options{})
	p = c.plan(4, nil)
	track.Input = "mean"
	p.Stages = append(p.Stages, track)
	after, _ := c.run(p, pipeline.Options{})
	if !slices.Equal(before, after) || !strings.Contains(before[0], `"id":1`) {
		t.Errorf("%v\n%v", before, after)
	}
	for _, f := range before {
		c.check(f, 4)
	}
}

func TestLiveCropsListEveryReason(t *testing.T) {
	lost := live.Crops{Beyond: 1, Other: 2, Outside: 3, Empty: 4, Invalid: 5}.Lost()
	fields := reflect.TypeFor[live.Crops]().NumField()
	if len(lost) != fields-3 { // Boxes, Crops and Cut are not losses
		t.Errorf("%v of %d fields", lost, fields)
	}
}

// BenchmarkACascadeBesideItsStages runs the stages of a small cascade directly and through the engine, in
// turns. The overhead of the engine is the difference of the times per frame, of their medians.
func BenchmarkACascadeBesideItsStages(b *testing.B) {
	const frames = 500
	c := newCascade(b, make([]byte, frames)...)
	var direct, engine []float64 // µs
	for b.Loop() {
		var last time.Time
		lap := func(to *[]float64) {
			now := time.Now()
			if !last.IsZero() {
				*to = append(*to, float64(now.Sub(last).Nanoseconds())/1e3)
			}
			last = now
		}
		p := c.plan(8, &plan.ModelBatch{Buckets: []int{1, 2, 4, 8}})
		p.Queue = plan.PipelineQueue{InFlight: 1, Capacity: 1} // stages do not overlap
		run, err := pipeline.New(pipeline.Options{Name: "small", Plan: p, Models: c.dir, Library: models.Library(b), Sink: lapSink(func() { lap(&engine) })})
		if err != nil {
			b.Fatal(err)
		}
		for range frames {
			if err := run.RunDirectly(); err != nil {
				b.Fatal(err)
			}
			lap(&direct)
		}
		last = time.Time{}
		sum, err := run.Run(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if n := sum.Crops["crops"].Crops; n != 2*8*frames {
			b.Fatalf("%d crops", n)
		}
		if err := run.Close(); err != nil {
			b.Error(err)
		}
	}
	slices.Sort(direct)
	slices.Sort(engine)
	b.ReportMetric(direct[len(direct)/2], "stages-µs/frame")
	b.ReportMetric(engine[len(engine)/2]-direct[len(direct)/2], "engine-µs/frame")
}

// lapSink calls a function for each result.
type lapSink func()

func (l lapSink) Write(*result.Record) error { l(); return nil }
func (lapSink) Close() error                 { return nil }
