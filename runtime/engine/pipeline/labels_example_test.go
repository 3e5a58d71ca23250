package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/jpeg"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

const media = "../../../examples/video-analytics/media"

// labelReader is the pipeline of examples/video-analytics.
func labelReader() plan.Pipeline {
	return plan.Pipeline{
		Source: plan.PipelineSource{
			Kind: "file", Path: "../" + media + "/serials.nv12", Format: "nv12",
			Width: 192, Height: 48, FPSNum: 10, FPSDen: 1,
		},
		Stages: []plan.PipelineStage{
			{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{
				Width: 320, Height: 48, Fit: "letterbox", Layout: "nchw", Color: "bgr", DType: "f32",
				Pad: 128, Mean: []string{"0.5", "0.5", "0.5"}, Std: []string{"0.5", "0.5", "0.5"},
			}},
			{ID: "read", Kind: "model", Input: "pre", Model: &plan.Model{
				Path:   models.Recogniser,
				SHA256: "06b3e6af6c59a1ba5d53790ed8c2e4b2de389870b6cf5a97f349f3412cb269c0",
			}},
			{ID: "text", Kind: "postprocess", Input: "read", Post: &plan.Post{
				Kind: "ctc", Labels: models.Characters, Threshold: "0.5",
			}},
		},
		Sink: plan.PipelineSink{Kind: "ndjson"},
	}
}

var update = flag.Bool("update", false, "rewrite testdata")

// The tests of the command line run the same plan.
func TestPlanFixtureIsCurrent(t *testing.T) {
	p := plan.Plan{
		Layer: "vision", Target: "line-camera", Board: "orin-nano-8gb", Release: "scarthgap", L4T: "36.5.0", Serial: 1,
		Pipelines: map[string]plan.Pipeline{"labels": labelReader()},
	}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	want, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	const name = "testdata/labels.plan.json"
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not the plan of this test; run: go test ./runtime/engine/pipeline -run PlanFixture -update", name)
	}
}

// lines is a sink that keeps the text and score of every line.
type lines struct {
	text  []string
	score []float32
}

func (l *lines) Write(r *result.Record) error {
	var s []string
	for _, x := range r.Results {
		s = append(s, x.Text)
		l.score = append(l.score, x.Score)
	}
	l.text = append(l.text, strings.Join(s, "|"))
	return nil
}

func (l *lines) Close() error { return nil }

func TestEveryLabelOfTheExampleClipIsRead(t *testing.T) {
	seen := &lines{}
	p, err := pipeline.New(pipeline.Options{
		Name: "labels", Plan: labelReader(), Dir: "testdata", Models: models.Dir(t), Library: models.Library(t), Sink: seen,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sum, err := p.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(media, "serials.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(b))
	if len(seen.text) != len(want) {
		t.Fatalf("%d results for %d frames", len(seen.text), len(want))
	}
	for n, w := range want {
		if seen.text[n] != w {
			t.Errorf("frame %d: read %q, the clip shows %q", n, seen.text[n], w)
		}
	}
	if f := sum.Frames; f.Read != 20 || f.Done != 20 || f.Dropped+f.Failed != 0 {
		t.Errorf("frames: %+v", f)
	}
	for n, score := range seen.score {
		if score < 0.9 {
			t.Errorf("frame %d: score %.3f", n, score)
		}
	}
}

// The same labels as Motion JPEG, with the chroma sampling of webcams and of files.
func TestLabelsOfMotionJPEGAreRead(t *testing.T) {
	if _, err := jpeg.Open(""); err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_SOURCES") != "" {
			t.Fatal(err)
		}
		t.Skipf("%v: labels of Motion JPEG are not read here", err)
	}
	for _, clip := range []string{"labels420.avi", "labels422.avi", "labels444.mjpeg"} {
		seen := &lines{}
		p, err := pipeline.New(pipeline.Options{
			Name: "labels", Plan: labelReader(), Dir: "testdata", Models: models.Dir(t), Library: models.Library(t), Sink: seen,
			Source: filepath.Join("../jpeg/testdata", clip),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Run(context.Background())
		if err = errors.Join(err, p.Close()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(seen.text, " "); got != "YT-48207 YT-48213 BX-90154" {
			t.Errorf("%s: read %q", clip, got)
		}
	}
}
