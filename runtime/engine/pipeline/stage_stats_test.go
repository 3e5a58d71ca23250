package pipeline_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/schema/plan"
)

// measured is a sink that remembers the statistics of frames.
type measured struct{ all []result.Stats }

func (m *measured) Write(r *result.Record) error {
	if r.Stats == nil {
		m.all = append(m.all, result.Stats{Brightness: -1})
	} else {
		m.all = append(m.all, *r.Stats)
	}
	return nil
}

func (*measured) Close() error { return nil }

// withStats is a pipeline that measures the frames of a file before it makes a tensor of one pixel.
func withStats(file, format string, width, height int, s plan.Stats) plan.Pipeline {
	return plan.Pipeline{
		Source: plan.PipelineSource{Kind: "file", Path: file, Format: format, Width: width, Height: height, FPSNum: 10, FPSDen: 1},
		Stages: []plan.PipelineStage{
			{ID: "light", Kind: "stats", Input: "source", Stats: &s},
			{ID: "pre", Kind: "preprocess", Input: "light", Preprocess: &plan.Preprocess{Width: 2, Height: 1, Fit: "stretch"}},
			{ID: "dump", Kind: "postprocess", Input: "pre", Post: &plan.Post{Kind: "raw"}},
		},
	}
}

// writePictures writes pictures of a format, and returns the brightness of their pixels.
func writePictures(t *testing.T, format string, width, height, count int) (string, [][]uint8) {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 8))
	var file bytes.Buffer
	var luma [][]uint8
	for range count {
		picture := make([]uint8, width*height)
		for i := range picture {
			picture[i] = uint8(rng.IntN(256))
		}
		switch format {
		case "nv12", "i420":
			file.Write(picture)
			file.Write(bytes.Repeat([]byte{uint8(rng.IntN(256))}, 2*((width+1)/2)*((height+1)/2)))
		case "grey":
			file.Write(picture)
		case "yuyv", "uyvy":
			for y := range height {
				for x := range (width + 1) / 2 * 2 {
					pair := []byte{picture[y*width+min(x, width-1)], 77}
					if format == "uyvy" {
						pair[0], pair[1] = pair[1], pair[0]
					}
					file.Write(pair)
				}
			}
		case "rgb", "bgr":
			for i := range picture {
				c := [3]uint8{uint8(rng.IntN(256)), uint8(rng.IntN(256)), uint8(rng.IntN(256))}
				picture[i] = uint8((9798*int(c[0]) + 19235*int(c[1]) + 3735*int(c[2]) + 1<<14) >> 15)
				if format == "bgr" {
					c[0], c[2] = c[2], c[0]
				}
				file.Write(c[:])
			}
		}
		luma = append(luma, picture)
	}
	name := filepath.Join(t.TempDir(), "pictures."+format)
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name, luma
}

// statsOf is the definition, in float64.
func statsOf(luma []uint8, width, height int, limited bool, low, high float64) result.Stats {
	black, white := 0., 255.
	if limited {
		black, white = 16, 235
	}
	mirror := func(v, n int) int {
		if v < 0 {
			v = min(1, n-1)
		}
		if v >= n {
			v = max(n-2, 0)
		}
		return v
	}
	at := func(x, y int) float64 { return float64(luma[mirror(y, height)*width+mirror(x, width)]) }
	var sum, dark, bright, lap, squares float64
	for y := range height {
		for x := range width {
			v := at(x, y)
			l := at(x-1, y) + at(x+1, y) + at(x, y-1) + at(x, y+1) - 4*v
			sum, lap, squares = sum+v, lap+l, squares+l*l
			if (v-black)/(white-black) <= low {
				dark++
			}
			if (v-black)/(white-black) >= high {
				bright++
			}
		}
	}
	n := float64(width * height)
	return result.Stats{
		Brightness: float32((sum/n - black) / (white - black)), Low: float32(dark / n), High: float32(bright / n),
		Focus: float32(squares/n - lap/n*lap/n),
	}
}

func near(a, b result.Stats) bool {
	close := func(x, y float32) bool { return math.Abs(float64(x-y)) <= 1e-5*math.Max(1, math.Abs(float64(y))) }
	return close(a.Brightness, b.Brightness) && close(a.Low, b.Low) && close(a.High, b.High) && close(a.Focus, b.Focus)
}

// Statistics are those of the definition in each format, on the CPU and on the GPU, and with the
// preprocess on the same GPU the brightness is uploaded once.
func TestStatsOfAFrame(t *testing.T) {
	const frames = 3
	for _, format := range []string{"nv12", "i420", "yuyv", "uyvy", "grey", "rgb", "bgr"} {
		for _, size := range [][2]int{{64, 48}, {33, 21}, {1, 1}, {2, 1}} {
			width, height := size[0], size[1]
			file, luma := writePictures(t, format, width, height, frames)
			s := plan.Stats{Low: "0.1", High: "0.75"}
			pl := withStats(file, format, width, height, s)
			limited := strings.Contains("nv12 i420 yuyv uyvy", format)
			for _, device := range []string{"cpu", "light", "light pre"} {
				if device != "cpu" && (width != 64 || testing.Short()) {
					continue
				}
				got := &measured{}
				o := pipeline.Options{Name: "light", Plan: pl, Sink: got, GPU: standIn("")}
				if device != "cpu" {
					o.Plan = onGPU(pl, 10e9, "", strings.Fields(device)...)
				}
				sum := run(t, o)
				if len(got.all) != frames || sum.Fallbacks["light"] > 0 {
					t.Fatalf("%s, %s: %d frames, fallbacks %v", format, device, len(got.all), sum.Fallbacks)
				}
				for n, g := range got.all {
					if want := statsOf(luma[n], width, height, limited, 0.1, 0.75); !near(g, want) {
						t.Errorf("%s of %dx%d on %s, frame %d: %+v, want %+v", format, width, height, device, n, g, want)
					}
				}
			}
		}
	}
}

func TestAMeasuredFrameIsUploadedOnce(t *testing.T) {
	upload := func(frames int) uint64 {
		file, _ := writePictures(t, "nv12", 64, 48, frames)
		pl := onGPU(withStats(file, "nv12", 64, 48, plan.Stats{}), 10e9, "", "light", "pre")
		return run(t, pipeline.Options{Name: "light", Plan: pl, Sink: &measured{}, GPU: standIn("")}).Runtime.Worker.Copied.ToDevice
	}
	if n := upload(2) - upload(1); n != 64*48*3/2 {
		t.Errorf("%d bytes for a frame of %d", n, 64*48*3/2)
	}
}

// Behind a gate, frames that repeat results have no statistics of their own, and before it they do.
func TestStatsBesideAGate(t *testing.T) {
	file := writeScene(t, "nv12", 8, 8, 8, 32)
	for _, before := range []bool{true, false} {
		pl := gated(file, "nv12", plan.Gate{MaxAge: 60e9, Repeat: true})
		light := plan.PipelineStage{ID: "light", Kind: "stats", Input: "source", Stats: &plan.Stats{}}
		gate := pl.Stages[0]
		first, second := gate, light
		if before {
			first, second = light, gate
		}
		second.Input, pl.Stages[1].Input = first.ID, second.ID
		pl.Stages = append([]plan.PipelineStage{first, second}, pl.Stages[1:]...)
		for _, gpu := range []bool{false, true} {
			got := &measured{}
			o := pipeline.Options{Name: "light", Plan: pl, Sink: got, GPU: standIn("")}
			if gpu {
				o.Plan = onGPU(pl, 10e9, "", "light", "quiet", "pre")
			}
			run(t, o)
			var have []bool
			for _, s := range got.all {
				have = append(have, s.Brightness >= 0)
			}
			if want := fmt.Sprint([]bool{true, before, before, true}); fmt.Sprint(have) != want {
				t.Errorf("stats before the gate: %v, on the GPU: %v: frames with statistics %v, want %s", before, gpu, have, want)
			}
		}
	}
}

func TestInvalidStatsAreRefused(t *testing.T) {
	for _, c := range []struct {
		edit     func(*plan.Pipeline)
		wantText string
	}{
		{func(p *plan.Pipeline) { p.Stages[0].Stats.Low = "1.5" }, `low "1.5" is not a decimal number from 0 to 1`},
		{func(p *plan.Pipeline) { p.Stages[0].Stats.High = "NaN" }, `high "NaN"`},
		{func(p *plan.Pipeline) { p.Stages[0].Stats.Low = "0.99" }, "low 0.99 is not below high 0.98"},
		{func(p *plan.Pipeline) {
			p.Stages[1] = plan.PipelineStage{ID: "again", Kind: "stats", Input: "light", Stats: &plan.Stats{}}
			p.Stages[2] = plan.PipelineStage{ID: "own", Kind: "custom", Input: "again", Custom: &plan.Custom{Exec: []string{"/bin/true"}}}
		}, "stages light and again are stats stages, and a pipeline has one"},
	} {
		file, _ := writePictures(t, "grey", 8, 8, 1)
		pl := withStats(file, "grey", 8, 8, plan.Stats{})
		c.edit(&pl)
		_, err := pipeline.New(pipeline.Options{Name: "bad", Plan: pl, Sink: &measured{}})
		if err == nil || !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%v, want %q", err, c.wantText)
		}
	}
}
