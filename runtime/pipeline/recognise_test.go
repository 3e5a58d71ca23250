package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

const (
	media  = "../../examples/video-analytics/media"
	models = "../../build/models"
)

// library is the ONNX Runtime that tests/models/fetch.sh installs. Without the
// models a test is skipped, unless YOCTUNE_REQUIRE_MODELS says they must be
// there.
func library(t testing.TB) string {
	t.Helper()
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	found, _ := filepath.Glob(filepath.Join(models, arch, "libonnxruntime.so*"))
	_, err := os.Stat(filepath.Join(models, "ch_PP-OCRv4_rec_infer.onnx"))
	if len(found) == 1 && err == nil {
		return found[0]
	}
	const how = "no models in build/models: run tests/models/fetch.sh"
	if os.Getenv("YOCTUNE_REQUIRE_MODELS") == "1" {
		t.Fatal(how)
	}
	t.Skip(how)
	return ""
}

// labelReader is the pipeline of examples/video-analytics.
func labelReader() plan.Pipeline {
	return plan.Pipeline{
		Source: plan.PipelineSource{
			Kind: "file", Path: "serials.nv12", Format: "nv12",
			Width: 192, Height: 48, FPSNum: 10, FPSDen: 1,
		},
		Stages: []plan.PipelineStage{
			{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{
				Width: 320, Height: 48, Fit: "letterbox", Layout: "nchw", Color: "bgr", DType: "f32",
				Pad: 128, Mean: []string{"0.5", "0.5", "0.5"}, Std: []string{"0.5", "0.5", "0.5"},
			}},
			{ID: "read", Kind: "model", Input: "pre", Model: &plan.Model{
				Path:   "ch_PP-OCRv4_rec_infer.onnx",
				SHA256: "06b3e6af6c59a1ba5d53790ed8c2e4b2de389870b6cf5a97f349f3412cb269c0",
			}},
			{ID: "text", Kind: "postprocess", Input: "read", Post: &plan.Post{
				Kind: "ctc", Labels: "ppocr_keys_v1.txt", Threshold: "0.5",
			}},
		},
		Sink: plan.PipelineSink{Kind: "ndjson"},
	}
}

// lines is a sink that remembers what it saw.
type lines struct {
	text  []string
	score []float32
}

func (l *lines) Write(r *pipeline.Record) error {
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
		Name: "labels", Plan: labelReader(), Dir: media, Models: models, Library: library(t), Sink: seen,
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
	var out bytes.Buffer
	for _, id := range sum.Order {
		s := sum.Latency.Stages[id]
		out.WriteString(id + ": ")
		out.WriteString(strings.TrimSpace(strings.Join([]string{ms(s.Queue.P50), ms(s.Service.P50)}, " ")) + "  ")
	}
	t.Logf("scores %v", seen.score)
	t.Logf("fps %.1f  total p50 %s  %s", sum.FPS, ms(sum.Latency.Total.P50), out.String())
}

func ms(ns int64) string { return fmt.Sprintf("%.2fms", float64(ns)/1e6) }
