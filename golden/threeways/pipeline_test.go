package threeways

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/schema/plan"
)

// The fields of pipelines have the same meaning in the three languages.
func TestDetectorsTrackersAndVotesAreOnePlanInEveryLanguage(t *testing.T) {
	cue := `package box
import "github.com/yoctune/yoctune/schema"
schema.#Config & {
layer: {name: "box", maintainer: "x"}
targets: cam: {board: "orin-nano-8gb", release: "scarthgap", pipelines: door: {
	source: {kind: "v4l2", path: "/dev/video0", format: "nv12", width: 1280, height: 720}
	stages: {
		pre: {kind: "preprocess", input: "source", width: 640, height: 640, fit: "letterbox"}
		find: {kind: "model", input: "pre", path: "/m/a.onnx", providers: ["tensorrt", "cpu"], precision: "fp16", workspace: "256MiB", spinning: true, arena: false, ensemble: {models: b: path: "/m/b.onnx", vote: "max"}}
		boxes: {kind: "postprocess", input: "find", decode: "keypoints", head: "v11", iou: 0.6, agnostic: true, classes: 2, threshold: 0.4, top: 20}
		follow: {kind: "track", input: "boxes", iou: "0.25", hits: 3, maxLost: "700ms", max: 64}
		crops: {kind: "roi", input: "follow", width: 224, height: 96, fit: "letterbox", pad: 9, color: "bgr", mean: [0.5, 0.5, 0.5], count: 6, margin: 0.1, only: [0, 1]}
		look: {kind: "model", input: "crops", path: "/m/c.onnx", batch: {buckets: [4], pad: true}}
		class: {kind: "postprocess", input: "look", decode: "argmax"}
	}
	memory: {lock: true, hugepages: true}
	utilisation: 0.9
	lease: true
	degrade: {ladder: [{fps: 15}], headroom: 5, power: 15000}
}}}
`
	hcl := `layer {
  name       = "box"
  maintainer = "x"
}
target "cam" {
  board   = "orin-nano-8gb"
  release = "scarthgap"
  pipeline "door" {
    source {
      kind   = "v4l2"
      path   = "/dev/video0"
      format = "nv12"
      width  = 1280
      height = 720
    }
    stage "pre" {
      kind   = "preprocess"
      input  = "source"
      width  = 640
      height = 640
      fit    = "letterbox"
    }
    stage "find" {
      kind      = "model"
      input     = "pre"
      path      = "/m/a.onnx"
      providers = ["tensorrt", "cpu"]
      precision = "fp16"
      workspace = "256MiB"
      spinning  = true
      arena     = false
      ensemble {
        vote = "max"
        model "b" {
          path = "/m/b.onnx"
        }
      }
    }
    stage "boxes" {
      kind      = "postprocess"
      input     = "find"
      decode    = "keypoints"
      head      = "v11"
      iou       = 0.6
      agnostic  = true
      classes   = 2
      threshold = 0.4
      top       = 20
    }
    stage "follow" {
      kind     = "track"
      input    = "boxes"
      iou      = "0.25"
      hits     = 3
      max_lost = "700ms"
      max      = 64
    }
    stage "crops" {
      kind   = "roi"
      input  = "follow"
      width  = 224
      height = 96
      fit    = "letterbox"
      pad    = 9
      color  = "bgr"
      mean   = [0.5, 0.5, 0.5]
      count  = 6
      margin = 0.1
      only   = [0, 1]
    }
    stage "look" {
      kind  = "model"
      input = "crops"
      path  = "/m/c.onnx"
      batch {
        buckets = [4]
        pad     = true
      }
    }
    stage "class" {
      kind   = "postprocess"
      input  = "look"
      decode = "argmax"
    }
    memory {
      lock      = true
      hugepages = true
    }
    utilisation = 0.9
    lease       = true
    degrade {
      ladder   = [{ fps = 15 }]
      headroom = 5
      power    = 15000
    }
  }
}
`
	jsonnet := `{
  layer: { name: "box", maintainer: "x" },
  targets: { cam: { board: "orin-nano-8gb", release: "scarthgap", pipelines: { door: {
    source: { kind: "v4l2", path: "/dev/video0", format: "nv12", width: 1280, height: 720 },
    stages: {
      pre: { kind: "preprocess", input: "source", width: 640, height: 640, fit: "letterbox" },
      find: { kind: "model", input: "pre", path: "/m/a.onnx", providers: ["tensorrt", "cpu"], precision: "fp16", workspace: "256MiB", spinning: true, arena: false, ensemble: { models: { b: { path: "/m/b.onnx" } }, vote: "max" } },
      boxes: { kind: "postprocess", input: "find", decode: "keypoints", head: "v11", iou: 0.6, agnostic: true, classes: 2, threshold: 0.4, top: 20 },
      follow: { kind: "track", input: "boxes", iou: "0.25", hits: 3, maxLost: "700ms", max: 64 },
      crops: { kind: "roi", input: "follow", width: 224, height: 96, fit: "letterbox", pad: 9, color: "bgr", mean: [0.5, 0.5, 0.5], count: 6, margin: 0.1, only: [0, 1] },
      look: { kind: "model", input: "crops", path: "/m/c.onnx", batch: { buckets: [4], pad: true } },
      class: { kind: "postprocess", input: "look", decode: "argmax" },
    },
    memory: { lock: true, hugepages: true },
    utilisation: 0.9,
    lease: true,
    degrade: { ladder: [{ fps: 15 }], headroom: 5, power: 15000 },
  } } } },
}
`
	var want plan.Pipeline
	for n, file := range []struct{ name, text string }{{"config.cue", cue}, {"config.hcl", hcl}, {"config.jsonnet", jsonnet}} {
		p := compiler.OpenFiles(map[string][]byte{file.name: []byte(file.text)})
		if p.Project == nil || len(p.Targets) != 1 {
			t.Fatalf("%s: %+v", file.name, p.Report.All())
		}
		for _, d := range p.Report.All() {
			if strings.HasPrefix(d.ID, "YT") {
				t.Errorf("%s: %s: %s", file.name, d.ID, d.Message)
			}
		}
		got := p.Targets[0].Plan.Pipelines["door"]
		if n == 0 {
			want = got
			if d := got.Degrade; d.Headroom != 5000 || d.Power != 15000 || got.Stages[3].Track.MaxLost != 7e8 || got.Stages[1].Model.Workspace != 256<<20 || got.Stages[4].ROI.Count != 6 || !got.Stages[5].Model.Batch.Pad || !got.Stages[1].Model.NoArena {
				t.Errorf("%+v", got)
			}
			continue
		}
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		if string(a) != string(b) {
			t.Errorf("%s:\n%s\nCUE:\n%s", file.name, b, a)
		}
	}
}

// Budgets, times and places of pipelines are one plan in every language.
func TestBudgetsAndTimesAreOnePlanInEveryLanguage(t *testing.T) {
	const cue = `package box
import "github.com/yoctune/yoctune/schema"
schema.#Config & {
layer: {name: "box", maintainer: "x"}
targets: cam: {board: "orin-nano-8gb", release: "scarthgap", pipelines: door: {
	source: {kind: "file", path: "a.nv12", format: "nv12", width: 64, height: 64, live: true, fps: 5, time: "1ms"}
	stages: {
		pre: {kind: "preprocess", input: "source", width: 32, height: 32, time: 2000000}
		dump: {kind: "postprocess", input: "pre", decode: "raw", time: "500us"}
	}
	sink: {kind: "ndjson", path: "/var/log/r", time: "1ms"}
	scheduling: "rr", priority: 10, nice: -3
	budget: {memory: "64MiB", diskRead: "8Mbit/s", diskWrite: 1000000, keepFree: {memory: "1GiB", disk: "2GB"}}
}}}
`
	const hcl = `layer {
  name       = "box"
  maintainer = "x"
}
target "cam" {
  board   = "orin-nano-8gb"
  release = "scarthgap"
  pipeline "door" {
    source {
      kind   = "file"
      path   = "a.nv12"
      format = "nv12"
      width  = 64
      height = 64
      live   = true
      fps    = 5
      time   = "1000us"
    }
    stage "pre" {
      kind   = "preprocess"
      input  = "source"
      width  = 32
      height = 32
      time   = "2ms"
    }
    stage "dump" {
      kind   = "postprocess"
      input  = "pre"
      decode = "raw"
      time   = "0.5ms"
    }
    sink {
      kind = "ndjson"
      path = "/var/log/r"
      time = "1ms"
    }
    scheduling = "rr"
    priority   = 10
    nice       = -3
    budget {
      memory     = "65536KiB"
      disk_read  = "1MB/s"
      disk_write = "1MB/s"
      keep_free {
        memory = "1024MiB"
        disk   = 2000000000
      }
    }
  }
}
`
	const jsonnet = `{
  layer: { name: 'box', maintainer: 'x' },
  targets: { cam: { board: 'orin-nano-8gb', release: 'scarthgap', pipelines: { door: {
    source: { kind: 'file', path: 'a.nv12', format: 'nv12', width: 64, height: 64, live: true, fps: 5, time: '1ms' },
    stages: {
      pre: { kind: 'preprocess', input: 'source', width: 32, height: 32, time: '2ms' },
      dump: { kind: 'postprocess', input: 'pre', decode: 'raw', time: '500us' },
    },
    sink: { kind: 'ndjson', path: '/var/log/r', time: '1ms' },
    scheduling: 'rr', priority: 10, nice: -3,
    budget: { memory: '64MiB', diskRead: '1000kB/s', diskWrite: '8000kbit/s', keepFree: { memory: '1GiB', disk: '2GB' } },
  } } } },
}
`
	want := ""
	for name, text := range map[string]string{"config.cue": cue, "config.hcl": hcl, "config.jsonnet": jsonnet} {
		p := compiler.OpenFiles(map[string][]byte{name: []byte(text)})
		p.Verify()
		for _, d := range p.Report.All() {
			if d.ID != "budget-config" {
				t.Fatalf("%s: %s: %s", name, d.ID, d.Message)
			}
		}
		got, err := p.Targets[0].Plan.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = string(got)
		}
		if string(got) != want {
			t.Errorf("%s:\n%s\nand\n%s", name, got, want)
		}
	}
	for _, part := range []string{`"time": 500000`, `"disk_read": 1000000`, `"free_disk": 2000000000`, `"nice": -3`} {
		if !strings.Contains(want, part) {
			t.Errorf("no %s in\n%s", part, want)
		}
	}
}
