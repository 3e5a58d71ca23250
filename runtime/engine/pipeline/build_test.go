package pipeline_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// tensorDump is a pipeline without a model: small synthetic frames become
// tensors that are written as they are.
func tensorDump() plan.Pipeline {
	return plan.Pipeline{
		Source: plan.PipelineSource{Kind: "synthetic", Format: "nv12", Width: 32, Height: 16, FPSNum: 200, FPSDen: 1},
		Stages: []plan.PipelineStage{
			{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 4, Height: 2, Fit: "stretch"}},
			{ID: "dump", Kind: "postprocess", Input: "pre", Post: &plan.Post{Kind: "raw"}},
		},
	}
}

func TestPipelineWithoutAModelNeedsNoLibrary(t *testing.T) {
	var out strings.Builder
	p, err := pipeline.New(pipeline.Options{Name: "dump", Plan: tensorDump(), Frames: 3, Stdout: &out, Library: "/absent"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sum, err := p.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if sum.Frames.Done != 3 || strings.Count(out.String(), `"results":[{"shape":[1,3,2,4],"values":[`) != 3 {
		t.Errorf("%+v\n%s", sum.Frames, out.String())
	}
}

func TestLiveSourceRunsAtItsRate(t *testing.T) {
	pl := tensorDump()
	pl.Source.Live = true
	pl.SLO = &plan.PipelineSLO{LatencyP95: 1, MinFPS: 100}
	p, err := pipeline.New(pipeline.Options{Name: "live", Plan: pl, Frames: 20, Sink: &lines{}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sum, err := p.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	// 20 frames at 200 Hz span 95 ms at least, however fast the machine.
	if sum.Duration < 95e6 || sum.Frames.Read != 20 {
		t.Errorf("%d frames in %d ns", sum.Frames.Read, sum.Duration)
	}
	if s := sum.SLO; s == nil || s.Met || s.LatencyP95.Met {
		t.Errorf("a p95 of 1 ns was met: %+v", s)
	}
}

func TestInvalidPlansAreRefused(t *testing.T) {
	pre := func(f func(*plan.Preprocess)) func(*plan.Pipeline) {
		return func(p *plan.Pipeline) { f(p.Stages[0].Preprocess) }
	}
	for _, c := range []struct {
		name     string
		edit     func(*plan.Pipeline)
		wantText string
	}{
		{"no stages", func(p *plan.Pipeline) { p.Stages = nil }, "has no stages"},
		{"no results", func(p *plan.Pipeline) { p.Stages = p.Stages[:1] }, "add a postprocess stage"},
		{"no frames", func(p *plan.Pipeline) { p.Stages = p.Stages[1:]; p.Stages[0].Input = "source" }, "postprocess stage dump takes tensors, and the source gives frames"},
		{"fork", func(p *plan.Pipeline) { p.Stages[1].Input = "source" }, "stages pre and dump take the same input"},
		{"same id", func(p *plan.Pipeline) { p.Stages[1].ID = "pre" }, "two stages have the id pre"},
		{"id of an end", func(p *plan.Pipeline) { p.Stages[1].ID = "sink" }, "reserved for an end"},
		{"no id", func(p *plan.Pipeline) { p.Stages[0].ID = "" }, "has no id"},
		{"unknown stage", func(p *plan.Pipeline) { p.Stages[1].Kind = "juggle" }, `kind "juggle"`},
		{"settings of another kind", func(p *plan.Pipeline) { p.Stages[1].Post = nil }, "no settings of its kind"},
		{"unknown source", func(p *plan.Pipeline) { p.Source.Kind = "rtsp" }, `kind "rtsp"`},
		{"camera", func(p *plan.Pipeline) { p.Source.Kind = "v4l2" }, "missing path of the camera"},
		{"unknown format", func(p *plan.Pipeline) { p.Source.Format = "hevc" }, `format "hevc"`},
		{"synthetic y4m", func(p *plan.Pipeline) { p.Source.Format = "y4m" }, "does not support format y4m"},
		{"no size", func(p *plan.Pipeline) { p.Source.Width = 0 }, "frames of 0x16"},
		{"huge size", func(p *plan.Pipeline) { p.Source.Width = 1 << 20 }, "1 to 16384"},
		{"no file", func(p *plan.Pipeline) { p.Source.Kind = "file" }, "missing path of the file"},
		{"live without a rate", func(p *plan.Pipeline) { p.Source.Live, p.Source.FPSNum = true, 0 }, "needs a frame rate"},
		{"unknown policy", func(p *plan.Pipeline) { p.Queue.Policy = "pray" }, `"pray"`},
		{"negative capacity", func(p *plan.Pipeline) { p.Queue.Capacity = -1 }, "capacity -1"},
		{"huge capacity", func(p *plan.Pipeline) { p.Queue.Capacity = 1 << 40 }, "must be 1 to 1024"},
		{"more memory than there is", func(p *plan.Pipeline) {
			p.Queue.Capacity, p.Source.Width, p.Source.Height = 1024, 16384, 16384
		}, "exceed the memory limit of 2048 MiB"},
		{"unknown sink", func(p *plan.Pipeline) { p.Sink.Kind = "kafka" }, `kind "kafka"`},
		{"unknown fit", pre(func(p *plan.Preprocess) { p.Fit = "squash" }), `fit squash`},
		{"unknown color", pre(func(p *plan.Preprocess) { p.Color = "cmyk" }), `color cmyk`},
		{"unknown layout", pre(func(p *plan.Preprocess) { p.Layout = "nchw4" }), `unknown layout "nchw4"`},
		{"unknown dtype", pre(func(p *plan.Preprocess) { p.DType = "i64" }), `does not write i64 elements`},
		{"pad", pre(func(p *plan.Preprocess) { p.Pad = 256 }), `pad 256`},
		{"no tensor", pre(func(p *plan.Preprocess) { p.Width = 0 }), "0x2 tensor"},
		{"mean", pre(func(p *plan.Preprocess) { p.Mean = []string{"0.5", "half", "0.5"} }), `"half" is not a decimal`},
		{"two means", pre(func(p *plan.Preprocess) { p.Mean = []string{"0.5", "0.5"} }), "mean has 2 values"},
		{"std of zero", pre(func(p *plan.Preprocess) { p.Std = []string{"1", "0", "1"} }), "not zero"},
		{"std that is not a number", pre(func(p *plan.Preprocess) { p.Std = []string{"NaN"} }), `"NaN" is not a decimal`},
		{"crop outside", pre(func(p *plan.Preprocess) { p.Crop = &plan.Crop{X: 30, Width: 4, Height: 4} }), "outside the frame"},
		{"crop that wraps", pre(func(p *plan.Preprocess) { p.Crop = &plan.Crop{X: 1 << 62, Width: 1 << 62, Height: 1} }), "outside the frame"},
		{"unknown post", func(p *plan.Pipeline) { p.Stages[1].Post.Kind = "yolo" }, `unknown decode "yolo"`},
		{"threshold", func(p *plan.Pipeline) { p.Stages[1].Post.Threshold = "2" }, `threshold "2"`},
		{"ctc without labels", func(p *plan.Pipeline) { p.Stages[1].Post.Kind = "ctc" }, "decodes ctc from the output of a model"},
		{"raw too large", func(p *plan.Pipeline) { p.Stages[0].Preprocess.Width = 1000 }, "at most 4096"},
	} {
		pl := tensorDump()
		c.edit(&pl)
		p, err := pipeline.New(pipeline.Options{Name: "bad", Plan: pl, Sink: &lines{}})
		if err == nil {
			p.Close()
		}
		if !errors.Is(err, pipeline.ErrPlan) || !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestInvalidLaunchConfigurationsAreRefused(t *testing.T) {
	pl := tensorDump()
	pl.Kernels = []plan.KernelLaunch{{Kernel: "preprocess", Block: 128}}
	p, err := pipeline.New(pipeline.Options{Name: "dump", Plan: pl, Sink: &lines{}})
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	pl.Kernels[0].Block = 100
	if _, err = pipeline.New(pipeline.Options{Name: "dump", Plan: pl, Sink: &lines{}}); err == nil || !strings.Contains(err.Error(), "preprocess: block of 100 threads; need 32 to 256 in steps of 32") {
		t.Errorf("%v", err)
	}
}

func TestModelsMustMatchThePlan(t *testing.T) {
	lib, dir := models.Library(t), models.Dir(t)
	whole, err := os.ReadFile(filepath.Join(dir, models.Recogniser))
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, models.Recogniser), whole[:len(whole)/3], 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, models.Characters), []byte("a\nb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		edit     func(*plan.Pipeline, *pipeline.Options)
		want     error
		wantText string
	}{
		{"damaged, with a sum", func(_ *plan.Pipeline, o *pipeline.Options) { o.Models = other }, pipeline.ErrModelFile, "the plan has 06b3e6af"},
		{"damaged, without", func(p *plan.Pipeline, o *pipeline.Options) {
			o.Models, p.Stages[1].Model.SHA256 = other, ""
		}, ort.ErrModel, "onnx runtime:"},
		{"absent", func(p *plan.Pipeline, o *pipeline.Options) { o.Models = "" }, pipeline.ErrModelFile, "--models"},
		{"a folder", func(p *plan.Pipeline, o *pipeline.Options) { p.Stages[1].Model = &plan.Model{Path: "/"} }, nil, "is a directory"},
		{"unnamed", func(p *plan.Pipeline, o *pipeline.Options) { p.Stages[1].Model = &plan.Model{} }, pipeline.ErrPlan, "neither path nor sha256"},
		{"sum that is a path", func(p *plan.Pipeline, o *pipeline.Options) { p.Stages[1].Model.SHA256 = "../../etc/passwd" }, pipeline.ErrPlan, "hexadecimal"},
		{"wrong height", func(p *plan.Pipeline, o *pipeline.Options) { p.Stages[0].Preprocess.Height = 32 }, ort.ErrShape, `"x" expects`},
		{"no such output", func(p *plan.Pipeline, o *pipeline.Options) { p.Stages[1].Model.Output = "boxes" }, ort.ErrModel, `no output named "boxes"`},
		{"labels of another model", func(p *plan.Pipeline, o *pipeline.Options) {
			p.Stages[2].Post.Labels = filepath.Join(other, models.Characters)
			o.Models, p.Stages[1].Model.Path = "", filepath.Join(dir, models.Recogniser)
		}, pipeline.ErrPlan, "has 2 lines, but a model with 6625 classes needs 6624"},
		{"no library", func(_ *plan.Pipeline, o *pipeline.Options) { o.Library = "/absent/libonnxruntime.so" }, ort.ErrNoLibrary, "/absent/libonnxruntime.so"},
		{"a library of something else", func(_ *plan.Pipeline, o *pipeline.Options) {
			o.Library = filepath.Join(dir, models.Characters)
		}, ort.ErrNoLibrary, models.Characters},
		{"cpus", func(p *plan.Pipeline, _ *pipeline.Options) { p.CPUs = "0-" }, pipeline.ErrPlan, `"0-"`},
	} {
		o := pipeline.Options{Name: "bad", Dir: "testdata", Models: dir, Library: lib, Sink: &lines{}}
		pl := labelReader()
		c.edit(&pl, &o)
		o.Plan = pl
		p, err := pipeline.New(o)
		if err == nil {
			p.Close()
			t.Errorf("%s: accepted", c.name)
			continue
		}
		if c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// The same clip as planar Y4M, through the same model.
func TestY4MOfTheSameClipGivesTheSameResults(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(media, "serials.nv12"))
	if err != nil {
		t.Fatal(err)
	}
	const luma, chroma = 192 * 48, 96 * 24
	y4m := []byte("YUV4MPEG2 W192 H48 F10:1 Ip C420\n")
	for n := range 3 {
		f := b[n*(luma+2*chroma):][:luma+2*chroma]
		y4m = append(append(y4m, "FRAME\n"...), f[:luma]...)
		for plane := range 2 {
			for i := range chroma {
				y4m = append(y4m, f[luma+2*i+plane])
			}
		}
	}
	// The last frame lacks its end.
	y4m = append(append(y4m, "FRAME\n"...), b[:luma]...)
	clip := filepath.Join(t.TempDir(), "clip.y4m")
	if err := os.WriteFile(clip, y4m, 0o644); err != nil {
		t.Fatal(err)
	}
	seen := &lines{}
	p, err := pipeline.New(pipeline.Options{
		Name: "labels", Plan: labelReader(), Dir: "testdata", Models: models.Dir(t), Library: models.Library(t),
		Source: clip, Sink: seen,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sum, err := p.Run(context.Background())
	if !errors.Is(err, frame.ErrTruncated) || !strings.Contains(err.Error(), "frame 3") {
		t.Errorf("%v", err)
	}
	if got := strings.Join(seen.text, " "); got != "YT-48207 YT-48213 BX-90154" {
		t.Errorf("read %s", got)
	}
	if f := sum.Frames; f.Read != 4 || f.Done != 3 || f.Failed != 1 {
		t.Errorf("%+v", f)
	}
}

// BenchmarkLabels loads the pipeline and reads the example's clip. fps excludes the loading.
func BenchmarkLabels(b *testing.B) {
	lib, dir := models.Library(b), models.Dir(b)
	for b.Loop() {
		p, err := pipeline.New(pipeline.Options{
			Name: "labels", Plan: labelReader(), Dir: "testdata", Models: dir, Library: lib, Sink: &lines{},
		})
		if err != nil {
			b.Fatal(err)
		}
		sum, err := p.Run(context.Background())
		if err := errors.Join(err, p.Close()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(sum.FPS, "fps")
		b.ReportMetric(float64(sum.Latency.Stages["read"].Service.P50)/1e6, "model-ms")
	}
}
