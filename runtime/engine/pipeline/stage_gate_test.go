package pipeline_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/schema/plan"
)

// seen is a sink that remembers frames, ages and results.
type seen struct{ lines []string }

var (
	frameNumber = regexp.MustCompile(`"frame":([0-9]+)`)
	frameAge    = regexp.MustCompile(`"age_ns":([0-9a-z]+)`)
	frameValues = regexp.MustCompile(`"values":\[([^\]]*)\]`)
)

func (s *seen) Write(r *result.Record) error {
	b := r.AppendJSON(nil)
	part := func(e *regexp.Regexp) string {
		if m := e.FindSubmatch(b); m != nil {
			return string(m[1])
		}
		return "-"
	}
	line := part(frameNumber)
	if age := part(frameAge); age != "-" {
		line += " age " + age
	}
	s.lines = append(s.lines, line+": "+part(frameValues))
	return nil
}

func (s *seen) Close() error { return nil }

// frames returns the numbers of the frames that were written.
func (s *seen) frames() string {
	var all []string
	for _, l := range s.lines {
		all = append(all, strings.Fields(strings.ReplaceAll(l, ":", ""))[0])
	}
	return strings.Join(all, " ")
}

// A scene is a picture of 64 by 48 pixels with noise, and a square that is at a place in each frame.
func writeScene(t testing.TB, format string, places ...int) string {
	t.Helper()
	const width, height = 64, 48
	rng := rand.New(rand.NewPCG(1, 2))
	var all bytes.Buffer
	for _, at := range places {
		luma := make([]byte, width*height)
		for i := range luma {
			luma[i] = byte(100 + rng.IntN(3))
		}
		for y := range 8 {
			for x := range 8 {
				if at >= 0 {
					luma[(16+y)*width+at+x] = 200
				}
			}
		}
		switch format {
		case "grey":
			all.Write(luma)
		case "nv12":
			all.Write(luma)
			all.Write(bytes.Repeat([]byte{128}, width*height/2))
		case "rgb":
			for _, v := range luma {
				all.Write([]byte{v, v, v})
			}
		case "yuyv":
			for _, v := range luma {
				all.Write([]byte{v, 128})
			}
		}
	}
	name := filepath.Join(t.TempDir(), "scene."+format)
	if err := os.WriteFile(name, all.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// gated is a pipeline whose frames last 100 ms, with a gate before a tensor of one pixel.
func gated(file, format string, g plan.Gate) plan.Pipeline {
	return plan.Pipeline{
		Source: plan.PipelineSource{Kind: "file", Path: file, Format: format, Width: 64, Height: 48, FPSNum: 10, FPSDen: 1},
		Stages: []plan.PipelineStage{
			{ID: "quiet", Kind: "gate", Input: "source", Gate: &g},
			{ID: "pre", Kind: "preprocess", Input: "quiet", Preprocess: &plan.Preprocess{Width: 2, Height: 1, Fit: "stretch"}},
			{ID: "dump", Kind: "postprocess", Input: "pre", Post: &plan.Post{Kind: "raw"}},
		},
	}
}

// A frame passes when its picture differs from that of the last frame that passed, and when that is
// too old. All others are counted as skipped. The CPU and the GPU decide alike.
func TestAGateSkipsFramesWithoutAChange(t *testing.T) {
	still := []int{8, 8, 8, 8, 24, 24, 24, 24, -1, -1, -1, -1}
	for _, c := range []struct {
		name   string
		gate   plan.Gate
		places []int
		want   string
	}{
		// 64 of 3072 pixels are the square: 2 % of the picture.
		{"change", plan.Gate{Area: "0.01", MaxAge: 60e9}, still, "0 4 8"},
		{"both squares count", plan.Gate{Area: "0.03", MaxAge: 60e9}, still, "0 4"},
		{"too little changes", plan.Gate{Area: "0.05", MaxAge: 60e9}, still, "0"},
		{"blocks", plan.Gate{Area: "0.05", Threshold: "0.05", Grid: 16, MaxAge: 60e9}, still, "0 4 8"},
		{"large blocks", plan.Gate{Area: "0.05", Threshold: "0.05", Grid: 64, MaxAge: 60e9}, still, "0"},
		{"blocks at the edge", plan.Gate{Area: "1", Grid: 7, Threshold: "0.05", MaxAge: 60e9}, still, "0 4 8"},
		{"noise", plan.Gate{Threshold: "0", Area: "0.1", MaxAge: 60e9}, still, "0 1 2 3 4 5 6 7 8 9 10 11"},
		{"only white differs more", plan.Gate{Threshold: "1", Area: "0", MaxAge: 60e9}, still, "0"},
		{"age", plan.Gate{Area: "0.05", MaxAge: 300e6}, still, "0 3 6 9"},
		{"age starts anew", plan.Gate{Area: "0.01", MaxAge: 300e6}, still, "0 3 4 7 8 11"},
		{"a second by default", plan.Gate{Area: "0.05"}, still, "0 10"},
		{"slow change", plan.Gate{Area: "0.03", MaxAge: 60e9}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, "0 6"},
	} {
		for _, format := range []string{"nv12", "grey", "rgb", "yuyv"} {
			if format == "yuyv" && c.gate.Grid > 0 || format == "yuyv" && c.gate.Threshold == "0" {
				continue // its bytes are brightness and colour by turns
			}
			gate := c.gate
			if format == "yuyv" {
				gate.Area = map[string]string{"0.01": "0.005", "0.03": "0.015", "0.05": "0.025"}[gate.Area]
			}
			if format == "rgb" && gate.Grid > 0 {
				continue // blocks are of bytes
			}
			pl := gated(writeScene(t, format, c.places...), format, gate)
			for _, device := range []string{"cpu", "gate on the GPU", "all on the GPU", "direct"} {
				got := &seen{}
				o := pipeline.Options{Name: "still", Plan: pl, Sink: got, GPU: standIn("")}
				switch device {
				case "gate on the GPU":
					o.Plan = onGPU(pl, 10e9, "", "quiet")
				case "all on the GPU":
					o.Plan = onGPU(pl, 10e9, "", "quiet", "pre")
				case "direct":
					o.Plan, o.GPU.Backend = onGPU(pl, 10e9, "", "quiet", "pre"), "cpu"
				}
				if device != "cpu" && (format != "nv12" || testing.Short()) {
					continue
				}
				sum := run(t, o)
				if got.frames() != c.want {
					t.Errorf("%s, %s on %s: frames %s passed, want %s", c.name, format, device, got.frames(), c.want)
				}
				n := uint64(len(c.places) - len(got.lines))
				if f := sum.Frames; f.Skipped != n || f.Dropped+f.Failed > 0 || sum.Skips["skipped:quiet"] != n || sum.Copies["gate"] != f.Done {
					t.Errorf("%s: %+v, skips %v, copies %v", c.name, f, sum.Skips, sum.Copies)
				}
				for stage, n := range sum.Fallbacks {
					if n > 0 {
						t.Errorf("%s: the CPU did %d frames of %s", c.name, n, stage)
					}
				}
			}
		}
	}
}

// Skipped frames can repeat the results of the last frame that passed. They bypass the stages that make
// results, of any number of instances, and are in their place in the order of frames.
func TestAGateRepeatsResults(t *testing.T) {
	places := []int{8, 8, 8, 32, 32, 8, 8, 8}
	pl := gated(writeScene(t, "nv12", places...), "nv12", plan.Gate{MaxAge: 60e9, Repeat: true})
	first := &seen{}
	sum := run(t, pipeline.Options{Name: "still", Plan: pl, Sink: first})
	if f := sum.Frames; f.Done != 3 || f.Skipped != 5 || sum.Latency.Stages["pre"].Service.P50 <= 0 {
		t.Errorf("%+v", f)
	}
	value := func(n int) string { _, v, _ := strings.Cut(first.lines[n], ": "); return v }
	for n, l := range first.lines {
		from := []int{0, 0, 0, 3, 3, 5, 5, 5}[n]
		want := fmt.Sprintf("%d: %s", n, value(n))
		if from != n {
			want = fmt.Sprintf("%d age %d: %s", n, (n-from)*100e6, value(from))
		}
		if l != want || value(0) == value(3) {
			t.Errorf("frame %d gave %q, want %q", n, l, want)
		}
	}
	for range 5 {
		for _, instances := range []int{2, 3} {
			for _, k := range []int{1, 2} {
				again := &seen{}
				o := pipeline.Options{Name: "still", Plan: pl, Sink: again}
				o.Plan.Stages = slices.Clone(pl.Stages)
				o.Plan.Stages[k].Instances = instances
				run(t, o)
				if !slices.Equal(again.lines, first.lines) {
					t.Errorf("with %d instances %q, with one %q", instances, again.lines, first.lines)
				}
			}
		}
	}
}

// The reference is lost with the GPU's process: the next frame passes, on the CPU, and each frame is
// accounted for.
func TestAGateSurvivesTheGPU(t *testing.T) {
	pl := gated(writeScene(t, "nv12", slices.Repeat([]int{8}, 200)...), "nv12", plan.Gate{MaxAge: 60e9})
	pl = onGPU(pl, 100e6, "", "quiet", "pre")
	got := &seen{}
	sum := run(t, pipeline.Options{Name: "still", Plan: pl, Sink: got, GPU: standIn("launch:hang=1s@n=40"), Backoff: soon})
	if f := sum.Frames; f.Read != 200 || f.Done < 2 || f.Done > 20 || f.Failed+f.Dropped > 0 || sum.Fallbacks["quiet"] == 0 {
		t.Errorf("%+v, %v", f, sum.Fallbacks)
	}
}

// With a gate and the preprocess on the GPU, each byte of a frame that passes is uploaded once, and of
// one that is skipped only its brightness.
func TestAGatedFrameIsUploadedOnce(t *testing.T) {
	upload := func(places ...int) uint64 {
		pl := onGPU(gated(writeScene(t, "nv12", places...), "nv12", plan.Gate{MaxAge: 60e9}), 10e9, "", "quiet", "pre")
		return run(t, pipeline.Options{Name: "still", Plan: pl, Sink: &seen{}, GPU: standIn("")}).Runtime.Worker.Copied.ToDevice
	}
	base := upload(8)
	if n := upload(8, 8) - base; n != 64*48 {
		t.Errorf("%d bytes for a skipped frame", n)
	}
	if n := upload(8, 40) - base; n != 64*48*3/2 {
		t.Errorf("%d bytes for a frame that passes", n)
	}
}

// A frame that passed and was lost does not count as the reference of a live source.
func TestALostFrameOpensTheGate(t *testing.T) {
	pl := gated(writeScene(t, "nv12", slices.Repeat([]int{8}, 30)...), "nv12", plan.Gate{MaxAge: 60e9})
	pl.Source.Live, pl.Source.FPSNum = true, 200
	pl.Queue.MaxAge = 1 // every frame is too old
	sum := run(t, pipeline.Options{Name: "still", Plan: pl, Sink: &seen{}})
	if f := sum.Frames; f.Done > 0 || f.Dropped < 20 {
		t.Errorf("%+v", f)
	}
}

func TestInvalidGatesAreRefused(t *testing.T) {
	for _, c := range []struct {
		edit     func(*plan.Pipeline)
		wantText string
	}{
		{func(p *plan.Pipeline) { p.Stages[0].Gate.Threshold = "1.5" }, `threshold "1.5" is not a decimal number from 0 to 1`},
		{func(p *plan.Pipeline) { p.Stages[0].Gate.Area = "NaN" }, `area "NaN"`},
		{func(p *plan.Pipeline) { p.Stages[0].Gate.Grid = 3 }, "grid 3; it is 4 to 256"},
		{func(p *plan.Pipeline) { p.Stages[0].Gate.MaxAge = -1 }, "max age of -1 ns"},
		{func(p *plan.Pipeline) { p.Stages[0].Instances = 2 }, "has one instance"},
		{func(p *plan.Pipeline) { p.Stages[0].Gate = nil }, "no settings of its kind"},
		{func(p *plan.Pipeline) { p.Source.Format, p.Source.Width = "rgb", 16384 }, "compares rows of at most 16384 bytes"},
		{func(p *plan.Pipeline) {
			p.Stages[1] = plan.PipelineStage{ID: "again", Kind: "gate", Input: "quiet", Gate: &plan.Gate{}}
			p.Stages[2] = plan.PipelineStage{ID: "own", Kind: "custom", Input: "again", Custom: &plan.Custom{Exec: []string{"/bin/true"}}}
		}, "stages quiet and again are gates, and a pipeline has one"},
	} {
		pl := gated(writeScene(t, "grey", 8), "grey", plan.Gate{})
		pl.Stages = slices.Clone(pl.Stages)
		c.edit(&pl)
		_, err := pipeline.New(pipeline.Options{Name: "bad", Plan: pl, Sink: &seen{}})
		if err == nil || !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%v, want %q", err, c.wantText)
		}
	}
}
