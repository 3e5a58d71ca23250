package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/check/budget"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/pipeline"
)

func headRules() []Rule {
	return []Rule{
		{
			ID: "model-head", Severity: diag.Error,
			Title: "the head does not fit the model's outputs",
			Cause: "A v8 model gives one box for each cell of its three grids, a v5 model three, and a model that ends with its own selection (v10) at most some hundred. Read by another head, the numbers are boxes of no object, without an error.",
			Fix:   "choose the head that fits, or export the model with an output that a head reads",
			Wrong: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx"}, b: {kind: "postprocess", input: "m", decode: "detect", head: "v5"}}}`,
			Right: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, ` + exampleModel,
			See:   "the model's graph outputs",
			run:   checkModelHead,
		},
	}
}

func checkModelHead(s *subject) {
	for _, u := range s.modelUses() {
		what, fits := headFault(u)
		if what == "" {
			continue
		}
		post := s.Config.Pipelines.Get(u.pipeline).Stages.Get(u.next.ID)
		part := config.FirstSet(post.Head, post.Decode)
		if u.level > 0 {
			part = s.findPart(u)
		}
		head, help := cmp.Or(u.next.Post.Head, "v8"), `export the model without its own selection of boxes, as one output of a YOLO head, or read the values with decode: "raw"`
		if fits != "" {
			help = fmt.Sprintf("set head: %q", fits)
		}
		s.reportAt(part, head, help, "head %s does not read the outputs of %s: %s", head, u.name(), what)
	}
}

// headFault describes the outputs of a model that the head of the next stage cannot read, and the
// head that can; "" where they fit or may fit.
func headFault(u modelUse) (what, fits string) {
	if u.model == nil || !u.whole || u.next == nil || u.next.Post == nil {
		return "", ""
	}
	out, ok := budget.FindValue(u.model.Outputs, u.stage.Model.Output)
	if d, _ := pipeline.DecodeOf(u.next.Post.Kind); !ok || !d.Boxes || !out.Ranked || pipeline.ReadsNamedOutputs(u.next.Post) {
		return "", ""
	}
	if what, fits := separateOutputs(u.model.Outputs, out); what != "" {
		return what, fits
	}
	head := cmp.Or(u.next.Post.Head, "v8")
	fits, why := u.findHead(out)
	if why == "" || fits == head || fits == "v8" && head == "v11" || head == "v10" && out.Shape[2].Size != 6 {
		return "", "" // it fits, or model-output reports it
	}
	return fmt.Sprintf("%s, %s", out, why), fits
}

// findHead finds the head of an output by its size and that of the model's input.
func (u modelUse) findHead(out onnx.Value) (head, why string) {
	height, width := u.pictureSize()
	if height == 0 || len(out.Shape) != 3 {
		return "", ""
	}
	shape := budget.Output(&u.stage, u.in, u.model).Shape
	if shape[1].Free() || shape[2].Free() {
		return "", ""
	}
	return fittingHead(shape[1].Size, shape[2].Size, height, width, u.next.Post.Kind)
}

// pictureSize returns the size of the picture in a model's input, 0 where it is not known.
func (u modelUse) pictureSize() (height, width int64) {
	in := u.in.Shape
	if len(in) != 4 {
		return 0, 0
	}
	h, w := in[2], in[3]
	if u.before != nil && u.before.Preprocess != nil && u.before.Preprocess.Layout == pipeline.NHWC {
		h, w = in[1], in[2]
	}
	if h.Free() || w.Free() {
		return 0, 0
	}
	return h.Size, w.Size
}

// grids are the strides of the grids of YOLO models: small objects (P2), the usual, large ones (P6).
var grids = [][]int64{{8, 16, 32}, {4, 8, 16, 32}, {8, 16, 32, 64}}

// hasAnchors reports whether a model has n boxes with k for each cell of its grids.
func hasAnchors(n, k, height, width int64) bool {
	return slices.ContainsFunc(grids, func(strides []int64) bool {
		var cells int64
		for _, stride := range strides {
			cells += ((height + stride - 1) / stride) * ((width + stride - 1) / stride)
		}
		return n == k*cells
	})
}

// fittingHead finds the head of a tensor [1 a b] by its number of boxes. Why is "" where more than
// one may fit.
func fittingHead(a, b, height, width int64, kind string) (head, why string) {
	has := func(n, k int64) bool { return hasAnchors(n, k, height, width) }
	size := fmt.Sprintf("%d by %d pixels", width, height)
	switch {
	case has(a, 3) && a > b:
		return "v5", fmt.Sprintf("three boxes for each cell of %s", size)
	case has(b, 1) && b > a:
		return "v8", fmt.Sprintf("one box for each cell of %s, values first", size)
	case has(a, 1) || has(b, 3), a > 1000, b < 6:
		return "", ""
	case b == 6 && kind == pipeline.Detect:
		return "v10", fmt.Sprintf("%d boxes of six values, which the model has selected", a)
	case b >= 6 && a >= b && kind != pipeline.Detect:
		return "", fmt.Sprintf("%d boxes of %d values, which the model has selected", a, b)
	}
	return "", ""
}

// separateOutputs describes detections that a model gives as several outputs, one of which is out,
// and the head that reads them; "" for any others.
func separateOutputs(all []onnx.Value, out onnx.Value) (what, fits string) {
	is := func(v onnx.Value, rank int) bool { return v.Ranked && len(v.Shape) == rank }
	size := func(v onnx.Value, axis int) int64 { return v.Shape[axis].Size }
	boxes := slices.IndexFunc(all, func(v onnx.Value) bool { return is(v, 3) && size(v, 2) == 4 })
	if boxes < 0 || len(all) < 2 {
		return "", ""
	}
	n := size(all[boxes], 1)
	var rows, tables, counts []onnx.Value
	for i, v := range all {
		switch {
		case i == boxes:
		case is(v, 2) && size(v, 1) == n && n != 1:
			rows = append(rows, v)
		case is(v, 3) && size(v, 1) == n:
			tables = append(tables, v)
		case is(v, 1), is(v, 2) && size(v, 1) == 1:
			counts = append(counts, v)
		}
	}
	parts := slices.Concat([]onnx.Value{all[boxes]}, rows, tables, counts)
	if !slices.ContainsFunc(parts, func(v onnx.Value) bool { return v.Name == out.Name }) {
		return "", ""
	}
	list := formatValues(parts)
	switch {
	case len(rows) >= 2 && len(counts) > 0:
		if strings.HasPrefix(all[boxes].Name, "detection_boxes") && is(counts[0], 1) {
			return "they are those of SSD of TensorFlow: " + list, "" // rows before columns
		}
		return "they are those of EfficientNMS: " + list, pipeline.HeadEfficientNMS
	case len(rows) >= 2:
		return "they are boxes, scores and classes apart, as RT-DETR gives them: " + list, ""
	case len(tables) == 1 && n > 0 && n <= 1000:
		return "they are boxes and classes of queries, as DETR gives them: " + list, pipeline.HeadDETR
	case len(tables) == 1:
		return "they are boxes and scores apart, as SSD gives them: " + list, pipeline.HeadSSD
	}
	return "", ""
}
