package check_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
)

// Each mistake in a pipeline is one message, at the line that has to change.
func TestPipelineFaultGivesOneMessageAtItsLine(t *testing.T) {
	const sound = `pipelines: p: {
	source: {
		kind: "v4l2", path: "/dev/v4l/by-path/a"
		format: "nv12"
		width: 1280
		height: 720
		fps: 30
	}
	stages: {
		pre: {
			kind: "preprocess"
			input: "source"
			width: 640
			height: 640
		}
		find: {
			kind: "model"
			input: "pre"
			path: "yolo.onnx"
		}
		boxes: {
			kind: "postprocess"
			input: "find"
			decode: "detect"
		}
	}
}`
	times := []string{`height: 640`, "height: 640\n\t\t\ttime: \"2ms\"", `path: "yolo.onnx"`, "path: \"yolo.onnx\"\n\t\t\ttime: \"45ms\"", `decode: "detect"`, "decode: \"detect\"\n\t\t\ttime: \"4ms\"", "fps: 30", "fps: 15"}
	end := func(more string) []string { return []string{"\n\t}\n}", "\n\t}\n" + more + "\n}"} }
	ladder := func(steps string) []string { return end("\tslo: latencyP95: \"1s\"\n\tdegrade: ladder: " + steps) }
	// cascade adds a roi stage, a model that takes [n 3 64 64] and a postprocess stage.
	cascade := func(roi, model, decode string, more ...string) []string {
		stages := "decode: \"detect\"\n\t\t}\n\t\tcrops: {\n\t\t\tkind: \"roi\"\n\t\t\tinput: \"boxes\"\n\t\t\theight: 64\n\t\t\t" + roi +
			"\n\t\t}\n\t\tlook: {\n\t\t\tkind: \"model\", input: \"crops\"\n\t\t\tpath: \"crops.onnx\"\n\t\t\t" + model +
			"\n\t\t}\n\t\tclass: {\n\t\t\tkind: \"postprocess\", input: \"look\"\n\t\t\tdecode: " + decode + "\n\t\t}"
		return append([]string{"decode: \"detect\"\n\t\t}", strings.NewReplacer(more...).Replace(stages)}, more...)
	}
	for _, c := range []struct {
		name     string
		replace  []string
		id       string // "": nothing is wrong
		line     string // what the line that is named says
		wantText string
	}{
		{"sound", nil, "", "", ""},
		{"a cascade", cascade("width: 64", "batch: {buckets: [1, 2, 8]}", `"argmax"`), "", "", ""},
		{"a cascade with a padded batch", cascade("width: 64, only: [0, 2], margin: 0.1", "batch: {buckets: [4], pad: true}", `"argmax"`), "", "", ""},
		{"crops of another size", cascade("width: 32", "", `"argmax"`), "model-shape", "width: 32", "receives [1 3 64 32]"},
		{"a batch that is never full", cascade("width: 64, count: 4", "batch: {buckets: [1, 2, 8]}", `"argmax"`), "cascade", "buckets", "a batch of 8 is never full: a frame has at most 4 crops"},
		{"seventeen sizes of batches", cascade("width: 64, count: 20", "batch: {buckets: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]}", `"argmax"`), "cascade", "buckets", "at most 16 sizes, and 17 are listed"},
		{"a batch of crops that waits", cascade("width: 64", "batch: {buckets: [1, 2], delay: \"4ms\"}", `"argmax"`), "cascade", "delay", "complete with its frame"},
		{"votes about crops", cascade("width: 64", "ensemble: models: b: path: \"crops.onnx\"", `"argmax"`), "cascade", "ensemble", "votes about frames"},
		{"a fixed batch of crops", cascade("width: 64", "batch: {buckets: [1, 2]}", `"argmax"`, "crops.onnx", "crops4.onnx"), "model-batch", "batch", "its first axis is always 4"},
		{"the batch that the model fixes", cascade("width: 64", "batch: {buckets: [4], pad: true}", `"argmax"`, "crops.onnx", "crops4.onnx"), "", "", ""},
		{"padded frames", []string{`"yolo.onnx"`, "\"other.onnx\"\n\t\t\tbatch: {buckets: [1, 2], pad: true}"}, "cascade", "pad", "takes one tensor of each frame"},
		{"boxes in crops", cascade("width: 64", "", `"detect"`), "pipeline-shape", "decode", "boxes in a crop have no place in the results"},
		{"crops of crops", cascade("width: 64", "", "\"argmax\"\n\t\t}\n\t\tagain: {\n\t\t\tkind: \"roi\", width: 8, height: 8\n\t\t\tinput: \"class\""), "pipeline-shape", "input: \"class\"", "a pipeline has one roi stage"},
		{"crops of values", cascade("width: 64", "", `"argmax"`, "decode: \"detect\"", "decode: \"raw\"", "yolo.onnx", "map.onnx"), "pipeline-shape", "input: \"boxes\"", "it crops boxes, and the postprocess stage before it gives none"},
		{"classes of regions", cascade("width: 64\n\t\t\tonly: [1]", "", `"argmax"`, "decode: \"detect\"", "decode: \"regions\"", "yolo.onnx", "map.onnx"), "cascade", "only", "those of decode regions have none"},
		{"too many crops", cascade("width: 64\n\t\t\tcount: 300", "", `"argmax"`), "YT0106", "count", ""},
		{"a margin of twenty boxes", cascade("width: 64\n\t\t\tmargin: 20", "", `"argmax"`), "pipeline-range", "margin", "from 0 to 1"},
		{"crops divided by 0", cascade("width: 64\n\t\t\tstd: [1, 0, 1]", "", `"argmax"`), "pipeline-range", "std", "divided by 0"},
		{"crops of no class", cascade("width: 64\n\t\t\tonly: []", "", `"argmax"`), "pipeline-range", "only", "no box would be cropped"},
		{"crops of a class twice", cascade("width: 64\n\t\t\tonly: [2, 0, 2]", "", `"argmax"`), "pipeline-range", "only", "class 2 is listed twice"},
		{"crops of a negative class", cascade("width: 64\n\t\t\tonly: [-1]", "", `"argmax"`), "YT0106", "only", ""},
		{"normalised bytes without a scale", []string{"height: 640", "height: 640\n\t\t\tdtype: \"u8\"\n\t\t\tmean: [0.5, 0.5, 0.5]", `"yolo.onnx"`, `"/data/yolo.onnx"`}, "pipeline-range", "dtype", "the pixels themselves"},
		{"signed bytes without a scale", []string{"height: 640", "height: 640\n\t\t\tdtype: \"i8\"", `"yolo.onnx"`, `"/data/yolo.onnx"`}, "pipeline-range", "dtype", "i8 elements need a scale"},
		{"a channel divided by 0", []string{"\t\tboxes: {", "\t\tscale: {\n\t\t\tkind: \"map\", input: \"pre\"\n\t\t\texpressions: [\"x\",\n\"x / (p - q)\"]\n\t\t\tp: [1, 2, 3], q: [0, 2, 1]\n\t\t}\n\t\tboxes: {", `input: "pre"`, `input: "scale"`}, "map-expression", "x / (p - q)", "expression 2, line 1, column 5: division by 0 in channel 1"},
		{"a clamp upside down", []string{"\t\tboxes: {", "\t\tscale: {\n\t\t\tkind: \"map\", input: \"pre\"\n\t\t\texpressions: [\"x\",\n\"clamp(x, 3, -3)\"]\n\t\t\t\n\t\t}\n\t\tboxes: {", `input: "pre"`, `input: "scale"`}, "map-expression", "clamp", "expression 2, line 1, column 10: the limits of clamp descend from 3 to -3"},
		{"a number of Go", []string{"\t\tboxes: {", "\t\tscale: {\n\t\t\tkind: \"map\", input: \"pre\"\n\t\t\texpressions: [\"x\",\n\"x * 0x1p3\"]\n\t\t\t\n\t\t}\n\t\tboxes: {", `input: "pre"`, `input: "scale"`}, "map-expression", "0x1p3", "expression 2, line 1, column 5: 0x1p3 is not a decimal number"},
		{"a scale of floats", []string{"height: 640", "height: 640\n\t\t\tscale: 0.5"}, "pipeline-range", "scale", "not quantised"},
		{"crops for nobody", []string{"decode: \"detect\"\n\t\t}\n", "decode: \"detect\"\n\t\t}\n\t\tcrops: {\n\t\t\tkind: \"roi\", input: \"boxes\", width: 64, height: 64\n\t\t}\n"}, "pipeline-shape", "crops: {", "gives crops, and a sink takes results"},
		{"a step for a roi stage", cascade("width: 64", "", `"argmax"`, "\n\t}\n}", "\n\t}\n\tslo: latencyP95: \"1s\"\n\tdegrade: ladder: [{sizes: crops: {width: 32, height: 32}}]\n}"), "degrade-ladder", "sizes", "not a preprocess stage"},
		{"format of a camera", []string{`"nv12"`, `"y4m"`}, "pipeline-source", "format", "v4l2 does not give y4m"},
		{"odd size", []string{"1280", "1281"}, "", "", ""},
		{"rows that GStreamer pads", []string{`kind: "v4l2", path: "/dev/v4l/by-path/a"`, `kind: "command", live: true, exec: ["gst-launch-1.0", "-q", "videotestsrc"]`, "pipelines: p: {", "packages: \"gstreamer1.0\": \"install\"\npipelines: p: {", "1280", "1366"}, "pipeline-frame", "width", "pads the rows of nv12 frames of 1366x720 pixels"},
		{"no size", []string{"\t\twidth: 1280\n\t\theight: 720\n", ""}, "pipeline-frame", "source", "no size of their own"},
		{"no rate", []string{"fps: 30", `fps: "0/1"`}, "pipeline-range", "fps", "0/1 is not a rate"},
		{"a circle", []string{`input: "source"`, `input: "boxes"`}, "YT0205", "input", "boxes takes from find takes from pre takes from boxes"},
		{"a circle of one", []string{`input: "pre"`, `input: "find"`}, "YT0205", "input", "find takes from find"},
		{"an unknown stage", []string{`input: "pre"`, `input: "pree"`}, "YT0205", `"pree"`, "which does not exist"},
		{"an unknown kind", []string{`"model"`, `"modell"`}, "YT0103", `"modell"`, `"kind"`},
		{"a fork", []string{"\t\tboxes:", "\t\tmore: {\n\t\t\tkind: \"postprocess\", decode: \"raw\"\n\t\t\tinput: \"find\"\n\t\t}\n\t\tboxes:"}, "pipeline-shape", "input", "boxes and more take the same input"},
		{"no results", []string{"\t\tboxes: {\n\t\t\tkind: \"postprocess\"\n\t\t\tinput: \"find\"\n\t\t\tdecode: \"detect\"\n\t\t}\n", ""}, "pipeline-shape", "find: {", "ends with a model stage"},
		{"the name of an end", []string{"boxes:", "sink:"}, "pipeline-shape", "sink: {", "reserved for an end"},
		{"a custom stage without a shape before a postprocess", []string{"kind: \"model\"", "kind: \"custom\"", `path: "yolo.onnx"`, `exec: ["/usr/bin/awk"]`, `decode: "detect"`, `decode: "raw"`, "kind: \"preprocess\"", "kind: \"preprocess\""}, "pipeline-shape", `input: "find"`, "postprocess stage boxes takes tensors, and the custom stage before it gives results"},
		{"a decoder of a custom stage's tensor", []string{"kind: \"model\"", "kind: \"custom\"", `path: "yolo.onnx"`, "exec: [\"/usr/bin/awk\"]\n\t\t\tshape: [1, 84, 8400]"}, "pipeline-shape", `input: "find"`, "decodes detect from the output of a model"},
		{"more raw values than are written", []string{"kind: \"model\"", "kind: \"custom\"", `path: "yolo.onnx"`, "exec: [\"/usr/bin/awk\"]\n\t\t\tshape: [1, 4097]", `"detect"`, `"raw"`}, "pipeline-shape", "decode", "decode raw reads at most 4096 values"},
		{"a detector on the GPU", []string{`decode: "detect"`, "decode: \"detect\"\n\t\t\tdevice: \"gpu\""}, "", "", ""},
		{"a decoder of the CPU on the GPU", []string{"kind: \"model\"", "kind: \"custom\"", `path: "yolo.onnx"`, "exec: [\"/usr/bin/awk\"]\n\t\t\tshape: [1, 40]", `decode: "detect"`, "decode: \"raw\"\n\t\t\tdevice: \"gpu\""}, "pipeline-device", "device", "stage boxes decodes raw, which the CPU does"},
		{"more classes than are ranked", []string{"kind: \"model\"", "kind: \"custom\"", `path: "yolo.onnx"`, "exec: [\"/usr/bin/awk\"]\n\t\t\tshape: [1, 40]", `decode: "detect"`, "decode: \"argmax\"\n\t\t\ttop: 33"}, "pipeline-range", "top", "argmax finds at most 32 classes"},
		{"a measured detector", []string{`decode: "detect"`, "decode: \"detect\"\n\t\t\tdevice: \"auto\""}, "", "", ""},
		{"a measured custom stage", []string{"kind: \"model\"", "kind: \"custom\"", `path: "yolo.onnx"`, "exec: [\"/usr/bin/awk\"]\n\t\t\tshape: [1, 4]\n\t\t\tdevice: \"auto\"", `"detect"`, `"raw"`}, "pipeline-device", "device", "custom stage and runs on the CPU"},
		{"a detector on the GPU without a process", append([]string{`decode: "detect"`, "decode: \"detect\"\n\t\t\tdevice: \"gpu\""}, end("\tisolation: \"none\"")...), "pipeline-device", "device", "stage boxes decodes on the GPU in a process of its own"},
		{"a custom stage on the GPU", []string{"kind: \"model\"", "kind: \"custom\"", `path: "yolo.onnx"`, "exec: [\"/usr/bin/awk\"]\n\t\t\tshape: [1, 4]\n\t\t\tdevice: \"gpu\"", `"detect"`, `"raw"`}, "pipeline-device", "device", "custom stage and runs on the CPU"},
		{"GPUs of no stage", end("\tgpus: [0]"), "pipeline-device", "gpus", "no stage runs on the GPU"},
		{"a ring that is too large", end("\tsink: {\n\t\tkind: \"shm\", path: \"/dev/shm/p\"\n\t\tslots: 65536, slotSize: \"1MiB\"\n\t}"), "pipeline-range", "slots", "together at most 64 MiB"},
		{"dtype", []string{"height: 640", "height: 640\n\t\t\tdtype: \"f16\""}, "model-shape", "dtype", "receives float16 elements"},
		{"a kernel that no stage launches", end("\tkernels: {\n\t\tpreprocess: block: 128\n\t\tmap: block: 128\n\t}"), "YT0102", "map", "no effect in this version: no stage of a pipeline launches this kernel"},
		{"the copy kernel", end("\tkernels: copy: block: 128"), "YT0102", "copy", "with the copy engine"},
		{"a region outside", []string{"height: 640", "height: 640\n\t\t\tcrop: {x: 1000, y: 0, width: 640, height: 640}"}, "pipeline-range", "crop", "not inside a frame of 1280x720"},
		{"division by 0", []string{"height: 640", "height: 640\n\t\t\tstd: [1, 0, 1]"}, "pipeline-range", "std", "divided by 0"},
		{"two channels", []string{"height: 640", "height: 640\n\t\t\tmean: [0.5, 0.5]"}, "pipeline-shape", "mean", "three values"},
		{"percent", []string{`"detect"`, "\"detect\"\n\t\t\tthreshold: 40"}, "pipeline-range", "threshold", "from 0 to 1"},
		{"negative overlap", []string{`"detect"`, "\"detect\"\n\t\t\tiou: -0.2"}, "pipeline-range", "iou", "from 0 to 1"},
		{"a DLA", []string{`"yolo.onnx"`, "\"yolo.onnx\"\n\t\t\tdevice: \"dla\""}, "YT0103", "device", ""},
		{"nothing runs it", []string{`"yolo.onnx"`, "\"yolo.onnx\"\n\t\t\tproviders: []"}, "pipeline-range", "providers", "no provider may run the model"},
		{"tried twice", []string{`"yolo.onnx"`, "\"yolo.onnx\"\n\t\t\tproviders: [\"cpu\", \"cpu\"]"}, "pipeline-range", "providers", "tried once"},
		{"batches without 1", []string{`"yolo.onnx"`, "\"other.onnx\"\n\t\t\tbatch: buckets: [2, 4]"}, "model-buckets", "buckets", "[2 4]"},
		{"batches that descend", []string{`"yolo.onnx"`, "\"other.onnx\"\n\t\t\tbatch: buckets: [1, 4, 2]"}, "model-buckets", "buckets", "[1 4 2]"},
		{"a model in parts", []string{`"yolo.onnx"`, `"parts.onnx"`, `"detect"`, `"raw"`}, "model-external", "path", "parts of parts.onnx are in other files: parts.bin"},
		{"a model that was cut", []string{`"yolo.onnx"`, `"broken.onnx"`}, "model-file", "path", "not an ONNX model"},
		{"an engine", []string{`"yolo.onnx"`, `"yolo.engine"`}, "model-format", "path", "one TensorRT"},
		{"a core that is not there", end("\tcpus: [4, 9]"), "core-exists", "cpus", "core 9"},
		{"no queue", end("\tqueue: capacity: 0"), "YT0106", "capacity", ""},
		{"utilisation in percent", end("\tutilisation: 90"), "pipeline-range", "utilisation", "from 0 to 1"},
		{"utilisation of a live source", end("\tutilisation: 0.9"), "", "", ""},
		{"utilisation of nothing", append(end("\tutilisation: 0.9"), `kind: "v4l2", path: "/dev/v4l/by-path/a"`, `kind: "synthetic"`), "pipeline-range", "utilisation", "no stage has any"},
		{"a ladder that is not late", end("\tdegrade: ladder: [{fps: 15}]"), "degrade-ladder", "ladder", "without slo.latencyP95"},
		{"a ladder of a file", append(end("\tslo: latencyP95: \"1s\"\n\tqueue: maxAge: \"1s\"\n\tdegrade: ladder: [{fps: 15}]"), "fps: 30", "fps: 30\n\t\tlive: false"), "degrade-ladder", "ladder", "only a live source"},
		{"a ladder without steps", ladder("[]"), "degrade-ladder", "ladder", "no steps"},
		{"a step that does nothing", ladder("[\n{fps: 15},\n{}]"), "degrade-ladder", "{}", "step 2 of the ladder does nothing"},
		{"a step up", ladder("[\n{fps: 15},\n{fps: 20}]"), "degrade-ladder", "20", "before it there are 15"},
		{"a step of nobody", ladder("[{sizes: prex: {width: 320, height: 320}}]"), "degrade-ladder", "prex", "not a preprocess stage"},
		{"a step of another kind", ladder("[{models: pre: path: \"yolo.onnx\"}]"), "degrade-ladder", "pre", "not a model stage"},
		{"memory", append(end("\tqueue: capacity: 1000"), "1280", "3840", "720", "2160"), "pipeline-memory", "pipelines", "a pipeline has at most 2048 MiB"},
		{"times that fit", append(end("\tsink: {kind: \"ndjson\", time: \"1ms\"}\n\tslo: latencyP95: \"60ms\""), times...), "", "", ""},
		{"times that do not", append(end("\tsink: {kind: \"ndjson\", time: \"1ms\"}\n\tslo: latencyP95: \"50ms\""), times...), "latency-objective", "latencyP95", "takes 52ms (pre 2ms + find 45ms + boxes 4ms + the sink 1ms)"},
		{"a rate that is too high", append(end("\tslo: minFps: 30"), times...), "latency-objective", "minFps", "(22.2 per second), fewer than the objective of 30"},
		{"every frame would be too old", append(end("\tqueue: maxAge: \"40ms\"\n\tslo: latencyP95: \"80ms\""), times...), "latency-objective", "latencyP95", "frames older than 40ms are dropped"},
		{"an undeclared time", end("\tslo: latencyP95: \"50ms\""), "latency-unknown", "latencyP95", "for pre, find, boxes, the sink"},
		{"a bound that is exceeded", end("\tbudget: memory: \"20MiB\""), "pipeline-budget", "memory", "of 20 MiB"},
		{"a bound of nothing", end("\tbudget: netOut: \"1Mbit/s\""), "budget-unused", "netOut", "no results go to the network"},
		{"a unit that is none", end("\tsink: {kind: \"http\", url: \"http://192.0.2.1/\"}\n\tbudget: netOut: \"5MBps\""), "YT0109", "netOut", ""},
		{"a bound of memory and what is kept free", end("\tbudget: keepFree: memory: \"7936MiB\""), "pipeline-memory", "keepFree", "and 7936 are to be kept free"},
		{"a priority of nothing", end("\tpriority: 20"), "service-priority", "priority", "without a real-time policy"},
	} {
		text := inTarget(strings.NewReplacer(c.replace...).Replace(sound))
		p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(text), "yolo.onnx": yoloModel(), "broken.onnx": []byte("version https://git-lfs"), "parts.onnx": modelInParts(), "crops.onnx": cropModel(0), "crops4.onnx": cropModel(4), "map.onnx": mapModel()})
		p.Verify()
		all := p.Report.All()
		if c.id == "" && len(all) == 0 {
			continue
		}
		if len(all) != 1 {
			t.Errorf("%s: %d messages", c.name, len(all))
			for _, d := range all {
				t.Logf("    %s line %d: %s", d.ID, d.Pos.Line, d.Message)
			}
			continue
		}
		d, line := all[0], ""
		if lines := strings.Split(text, "\n"); d.Pos.Line > 0 && d.Pos.Line <= len(lines) {
			line = lines[d.Pos.Line-1]
		}
		if d.ID != c.id || !strings.Contains(line, c.line) || !strings.Contains(d.Message, c.wantText) || d.Help == "" && !strings.HasPrefix(d.ID, "YT") {
			t.Errorf("%s: %s at %q: %s (%s)", c.name, d.ID, line, d.Message, d.Help)
		}
	}
}
