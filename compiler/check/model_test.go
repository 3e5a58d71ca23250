package check_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/internal/onnx"
)

func encoded(inputs, outputs []onnx.Value) []byte {
	n := onnx.Node{Op: "Net"}
	for _, v := range inputs {
		n.In = append(n.In, v.Name)
	}
	for _, v := range outputs {
		n.Out = append(n.Out, v.Name)
	}
	g := onnx.Graph{Nodes: []onnx.Node{n}, Inputs: inputs, Outputs: outputs}
	return g.Encode()
}

func TestModelsAreCheckedAgainstStages(t *testing.T) {
	f32 := func(name string, dims ...int64) onnx.Value { return onnx.Tensor(name, onnx.Float32, dims...) }
	one := func(v onnx.Value) []onnx.Value { return []onnx.Value{v} }
	models := map[string][]byte{
		"yolo.onnx": yoloModel(),
		"free.onnx": encoded(
			[]onnx.Value{{Name: "x", Type: onnx.Float32, Ranked: true, Shape: []onnx.Dim{{Axis: "batch"}, {Size: 3}, {Axis: "height"}, {Axis: "width"}}}},
			[]onnx.Value{{Name: "y", Type: onnx.Float32, Ranked: true, Shape: []onnx.Dim{{Axis: "batch"}, {Size: 84}, {}}}}),
		"nhwc.onnx":  encoded(one(onnx.Tensor("x", onnx.Uint8, 1, 640, 640, 3)), one(f32("y", 1, 84, 8400))),
		"long.onnx":  encoded(one(onnx.Tensor("x", onnx.Int64, 1, 3, 640, 640)), one(f32("y", 1, 84, 8400))),
		"wide.onnx":  encoded(one(f32("x", 1, 3, 640, 640)), one(onnx.Tensor("y", 11, 1, 84, 8400))),
		"out16.onnx": encoded(one(f32("x", 1, 3, 640, 640)), one(onnx.Tensor("y", onnx.Float16, 1, 84, 8400))),
		"half.onnx":  encoded(one(onnx.Tensor("x", onnx.Float16, 1, 3, 640, 640)), one(f32("y", 1, 84, 8400))),
		"two.onnx":   encoded([]onnx.Value{f32("a", 1, 3, 640, 640), f32("b", 1)}, one(f32("y", 1, 84, 8400))),
		"flat.onnx":  encoded(one(f32("x", 1, 409600)), one(f32("y", 1, 84, 8400))),
		"small.onnx": encoded(one(f32("x", 1, 3, 320, 320)), one(f32("y", 1, 84, 2100))),
		"class.onnx": encoded(one(f32("x", 0, 3, 224, 224)), []onnx.Value{f32("y", 0, 1000), f32("features", 0, 7, 7, 64)}),
	}
	for name, shape := range map[string][]int64{"v5": {1, 25200, 85}, "rows": {1, 8400, 84}, "end": {1, 300, 6}, "one": {1, 25200, 6}, "pose-end": {1, 300, 57}, "p6": {1, 84, 8500}, "two-classes": {1, 6, 8400}} {
		models[name+".onnx"] = encoded(one(f32("images", 1, 3, 640, 640)), one(f32("output0", shape...)))
	}
	for name, outputs := range map[string][]onnx.Value{
		"nms":    {f32("num_dets", 1, 1), f32("det_boxes", 1, 100, 4), f32("det_scores", 1, 100), f32("det_classes", 1, 100)},
		"tf":     {f32("detection_boxes", 1, 100, 4), f32("detection_classes", 1, 100), f32("detection_scores", 1, 100), f32("num_detections", 1)},
		"detr":   {f32("logits", 1, 100, 92), f32("pred_boxes", 1, 100, 4)},
		"rtdetr": {f32("labels", 1, 300), f32("boxes", 1, 300, 4), f32("scores", 1, 300)},
		"ssd":    {f32("scores", 1, 3000, 2), f32("boxes", 1, 3000, 4)},
		"extra":  {f32("output0", 1, 84, 8400), f32("boxes", 1, 8400, 4)},
	} {
		models[name+".onnx"] = encoded(one(f32("images", 1, 3, 640, 640)), outputs)
	}
	const head = `pipelines: p: {
	source: {kind: "v4l2", path: "/dev/video0", format: "nv12", width: 1280, height: 720}
	stages: {
		f: {kind: "preprocess", input: "source", width: 640, height: 640}
		m: {kind: "model", input: "f", path: "yolo.onnx"}
		b: {kind: "postprocess", input: "m", decode: "detect"}
	}
}`
	with := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(head) }
	for _, c := range []struct {
		name, text, id string
		line           string // what the line that is named says
		wantText       string
	}{
		{"it fits", head, "", "", ""},
		{"free axes fit", with("yolo.onnx", "free.onnx"), "", "", ""},
		{"width", with("width: 640", "width: 320"), "model-shape", "f: {", `"images" float32 [1 3 640 640] and receives [1 3 640 320]`},
		{"height", with("height: 640", "height: 320"), "model-shape", "f: {", "[1 3 320 640]"},
		{"type", with("yolo.onnx", "half.onnx"), "model-shape", "m: {", "float16"},
		{"inputs", with("yolo.onnx", "two.onnx"), "model-shape", "m: {", "takes 2 tensors"},
		{"type that fits", with("yolo.onnx", "half.onnx", "height: 640", `height: 640, dtype: "f16"`), "", "", ""},
		{"type of a stage", with("yolo.onnx", "long.onnx", "height: 640", `height: 640, dtype: "u8"`), "model-shape", "m: {", `"x" int64 [1 3 640 640] and receives uint8 elements`},
		{"layout", with("yolo.onnx", "nhwc.onnx", "height: 640", `height: 640, dtype: "u8"`), "model-shape", "f: {", "[1 640 640 3] and receives [1 3 640 640]"},
		{"layout that fits", with("yolo.onnx", "nhwc.onnx", "height: 640", `height: 640, dtype: "u8", layout: "nhwc"`), "", "", ""},
		{"elements of float64", with("yolo.onnx", "wide.onnx"), "model-output", "b: {", "reads numbers"},
		{"elements of float16", with("yolo.onnx", "out16.onnx"), "", "", ""},
		{"votes of float16", with(`"yolo.onnx"`, `"out16.onnx", ensemble: models: other: path: "out16.onnx"`), "model-output", "b: {", "votes of an ensemble"},
		{"two inputs", with(`"yolo.onnx"`, `"two.onnx", inputs: b: values: [1]`), "", "", ""},
		{"a value of another type", with(`"yolo.onnx"`, `"two.onnx", inputs: b: {values: [1], dtype: "i64"}`), "model-shape", "m: {", `"b" float32 [1] and receives int64 elements`},
		{"values of another shape", with(`"yolo.onnx"`, `"two.onnx", inputs: b: values: [1, 2]`), "model-shape", "m: {", `"b" float32 [1] and receives [2]`},
		{"an input that is not there", with(`"yolo.onnx"`, `"two.onnx", inputs: c: values: [1]`), "model-shape", "m: {", `no input "c"`},
		{"EfficientNMS by its head", with("yolo.", "nms.", `"detect"`, `"detect", head: "efficient-nms"`), "", "", ""},
		{"DETR by its head", with("yolo.", "detr.", `"detect"`, `"detect", head: "detr"`), "", "", ""},
		{"SSD by its head", with("yolo.", "ssd.", `"detect"`, `"detect", head: "ssd"`), "", "", ""},
		{"SSD by another head", with("yolo.", "ssd.", `"detect"`, `"detect", head: "efficient-nms"`), "model-output", "b: {", "which output has the classes"},
		{"an output that is not there", with("yolo.", "ssd.", `"detect"`, `"detect", head: "ssd", outputs: boxes: "x"`), "model-output", "b: {", `no output "x"`},
		{"dimensions", with("yolo.onnx", "flat.onnx"), "model-shape", "m: {", "[1 409600]"},
		{"input's name", with(`"yolo.onnx"`, `"yolo.onnx", inputTensor: "image"`), "model-shape", "m: {", `no input "image"`},
		{"output's name", with(`"yolo.onnx"`, `"yolo.onnx", outputTensor: "out"`), "model-output", "m: {", `no output "out"; it gives "output0"`},
		{"batch", with(`"yolo.onnx"`, `"yolo.onnx", batch: buckets: [1, 2]`), "model-batch", "m: {", "its first axis is always 1"},
		{"batch of a free axis", with(`"yolo.onnx"`, `"free.onnx", batch: buckets: [1, 2]`), "", "", ""},
		{"classes of boxes", with(`"detect"`, `"argmax"`), "model-output", "b: {", "one row of classes"},
		{"text of boxes", with(`"detect"`, `"regions"`), "model-output", "b: {", "[1 1 height width]"},
		{"another head", with(`"detect"`, `"detect", head: "v10"`), "model-output", "b: {", "[1 boxes 6]"},
		{"v5 by v5", with("yolo.", "v5.", `"detect"`, `"detect", head: "v5"`), "", "", ""},
		{"v5 by the default", with("yolo.", "v5."), "model-head", "b: {", "three boxes for each cell"},
		{"v5 of one class by v10", with("yolo.", "one.", `"detect"`, `"detect", head: "v10"`), "model-head", "b: {", "three boxes"},
		{"v8 by v5", with(`"detect"`, `"detect", head: "v5"`), "model-head", "b: {", "one box for each cell"},
		{"v8 by v11", with(`"detect"`, `"detect", head: "v11"`), "", "", ""},
		{"v8 in rows", with("yolo.", "rows."), "", "", ""},
		{"v8 of two classes", with("yolo.", "two-classes."), "", "", ""},
		{"boxes of a fourth grid", with("yolo.", "p6."), "", "", ""},
		{"end to end by the default", with("yolo.", "end."), "model-head", "b: {", "300 boxes of six values"},
		{"end to end by v10", with("yolo.", "end.", `"detect"`, `"detect", head: "v10"`), "", "", ""},
		{"points, end to end", with("yolo.", "pose-end.", `"detect"`, `"keypoints"`), "model-head", "b: {", "300 boxes of 57 values"},
		{"EfficientNMS", with("yolo.", "nms."), "model-head", "b: {", "EfficientNMS"},
		{"EfficientNMS, its boxes", with("yolo.", "nms.", `.onnx"`, `.onnx", outputTensor: "det_boxes"`), "model-head", "b: {", "EfficientNMS"},
		{"SSD of TensorFlow", with("yolo.", "tf."), "model-head", "b: {", "SSD of TensorFlow"},
		{"DETR", with("yolo.", "detr."), "model-head", "b: {", "DETR"},
		{"RT-DETR", with("yolo.", "rtdetr."), "model-head", "b: {", "RT-DETR"},
		{"SSD", with("yolo.", "ssd."), "model-head", "b: {", "SSD"},
		{"the values of DETR", with("yolo.", "detr.", `"detect"`, `"raw", top: 5`), "model-output", "b: {", "at most 4096 values"},
		{"boxes beside v8", with("yolo.", "extra."), "", "", ""},
		{"masks without prototypes", with(`"detect"`, `"segment"`), "model-output", "b: {", "two outputs"},
		{"boxes of classes", with("640", "224", "yolo.onnx", "class.onnx"), "model-output", "b: {", "boxes"},
		{"a smaller size", with("\n}", "\n\tdegrade: ladder: [\n\t\t{fps: 15},\n\t\t{sizes: f: {width: 416, height: 416}},\n\t]\n}"), "model-shape", "sizes: f", "step 2"},
		{"a smaller size that fits", with("yolo.onnx", "free.onnx", "\n}", "\n\tdegrade: ladder: [{sizes: f: {width: 416, height: 416}}]\n}"), "", "", ""},
		{"another model", with("\n}", "\n\tdegrade: ladder: [\n\t\t{models: m: path: \"small.onnx\"},\n\t]\n}"), "model-shape", "models: m", "small.onnx (degrade, step 1)"},
		{"a vote", with(`"yolo.onnx"`, "\"yolo.onnx\", ensemble: models: {\n\t\t\tother: path: \"half.onnx\"\n\t\t}"), "model-shape", "other: path", "half.onnx"},
		{"it is not here", with("yolo.onnx", "elsewhere.onnx"), "", "", ""},
		{"it is the device's", with("yolo.onnx", "/models/yolo.onnx"), "", "", ""},
	} {
		text := inTarget(c.text)
		files := map[string][]byte{"config.cue": []byte(text)}
		for name, b := range models {
			files[name] = b
		}
		p := compiler.OpenFiles(files)
		hit := ""
		for _, d := range p.Report.All() {
			if strings.HasPrefix(d.ID, "YT") {
				t.Errorf("%s: %s: %s", c.name, d.ID, d.Message)
			}
			if !strings.HasPrefix(d.ID, "model-") {
				continue
			}
			line := strings.Split(text, "\n")[d.Pos.Line-1]
			hit = d.ID
			if d.ID != c.id || !strings.Contains(line, c.line) || !strings.Contains(d.Message, c.wantText) {
				t.Errorf("%s: %s at %q: %s", c.name, d.ID, line, d.Message)
			}
		}
		if hit != c.id {
			t.Errorf("%s: raised %q, want %q", c.name, hit, c.id)
		}
	}
}

// A model that the build fetches from a file is found there, by its digest.
func TestModelIsReadFromItsFetchURI(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "models", "yolo.onnx")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, yoloModel(), 0o644); err != nil {
		t.Fatal(err)
	}
	const sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	text := inTarget(`pipelines: p: {source: {kind: "file", path: "clip.nv12", format: "nv12", width: 64, height: 64}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f", uri: "file://` + file + `", sha256: "` + sum + `"}, b: {kind: "postprocess", input: "m", decode: "detect"}}}`)
	project := filepath.Join(dir, "project")
	if err := os.Mkdir(project, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(project, "config.cue"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := compiler.Options{}.Open(project)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, d := range p.Report.All() {
		found = found || d.ID == "model-shape" && strings.Contains(d.Message, "[1 3 64 64]")
	}
	if !found {
		t.Errorf("%+v", p.Report.All())
	}
}

func TestPipelinesLargerThanTheModuleAreRefused(t *testing.T) {
	big := onnx.Graph{
		Nodes:   []onnx.Node{{Op: "Net", In: []string{"x", "w"}, Out: []string{"y"}}},
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 1, 3, 64, 64)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 1, 10)},
		// 4 GiB, which are not in the file.
		Weights: []onnx.Weight{{Name: "w", Dims: []int64{1 << 30}, Data: []float32{}}},
	}
	text := `pipelines: p: {source: {kind: "file", path: "clip.nv12", format: "nv12", width: 64, height: 64}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f", path: "big.onnx", instances: 2}, b: {kind: "postprocess", input: "m", decode: "argmax"}}}`
	for board, refused := range map[string]bool{"orin-nano-8gb": true, "agx-orin-64gb": false} {
		p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(inTarget(`{board: "` + board + `", ` + text + "}")), "big.onnx": big.Encode()})
		got := ""
		for _, d := range p.Report.All() {
			if d.ID == "pipeline-memory" {
				got = d.Message
			}
		}
		if (got != "") != refused || refused && !strings.Contains(got, "weights 8192 MiB") {
			t.Errorf("%s: %q", board, got)
		}
	}
}
