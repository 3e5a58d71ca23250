package pipeline_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	"github.com/yoctune/yoctune/schema"
	"github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

func names[T any](all []T, name func(T) string) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = name(v)
	}
	return out
}

func sourceKinds() []string {
	return names(pipeline.Sources(), func(s pipeline.Source) string { return s.Kind })
}

func sinkKinds() []string {
	return names(pipeline.Sinks(), func(s pipeline.Sink) string { return s.Kind })
}

// The language has the kinds of the registry, and no others.
func TestLanguageHasTheRegistrysKinds(t *testing.T) {
	text, err := fs.ReadFile(schema.FS, "pipelines.cue")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		definition, field string
		want              []string
	}{
		{"#Stage", "kind!", pipeline.StageKinds()},
		{"#Source", "kind!", sourceKinds()},
		{"#Source", "format!", names(pipeline.Formats(), func(f pipeline.Format) string { return f.Name })},
		{"#Sink", "kind!", sinkKinds()},
		{"#PostprocessStage", "decode!", pipeline.DecodeNames()},
		{"#PostprocessStage", "head?", pipeline.HeadNames()},
		{"#PreprocessStage", "dtype?", names(pipeline.PreprocessDTypes(), pipeline.DType.String)},
		{"#Queue", "policy?", []string{pipeline.Block, pipeline.DropOldest, pipeline.DropNewest}},
	} {
		_, body, _ := strings.Cut(string(text), "\n"+c.definition+": {")
		_, line, ok := strings.Cut(body, "\t"+c.field+": ")
		line, _, _ = strings.Cut(line, "\n")
		var got []string
		for _, m := range regexp.MustCompile(`"([a-z0-9-]+)"`).FindAllStringSubmatch(line, -1) {
			got = append(got, m[1])
		}
		if slices.Sort(c.want); !ok || !slices.Equal(sorted(got), c.want) {
			t.Errorf("%s.%s has %v, the registry %v", c.definition, c.field, got, c.want)
		}
	}
}

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

// Limits that a protocol has as well are those of the protocol.
func TestLimitsMatchTheProtocols(t *testing.T) {
	if pipeline.MaxLanes != worker.MaxLanes || pipeline.MaxRank != custom.MaxRank {
		t.Errorf("lanes %d and %d, dimensions %d and %d", pipeline.MaxLanes, worker.MaxLanes, pipeline.MaxRank, custom.MaxRank)
	}
}

// A kind is compared by its entry, not by its name: no comparison, case or map key
// outside this package is the text of a kind.
func TestNothingElseSwitchesOnKinds(t *testing.T) {
	kinds := slices.Concat(pipeline.StageKinds(), sourceKinds(), sinkKinds())
	isKind := func(e ast.Expr) bool {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return false
		}
		text, err := strconv.Unquote(lit.Value)
		return err == nil && slices.Contains(kinds, text)
	}
	field := func(e ast.Expr) bool { // x.Kind of a stage, a source or a sink
		s, ok := e.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Kind"
	}
	found := func(fset *token.FileSet, n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			return field(n.X) && isKind(n.Y)
		case *ast.SwitchStmt:
			if n.Tag == nil || !field(n.Tag) {
				return false
			}
			for _, s := range n.Body.List {
				if slices.ContainsFunc(s.(*ast.CaseClause).List, isKind) {
					return true
				}
			}
		case *ast.CompositeLit:
			keys := 0
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && isKind(kv.Key) {
					keys++
				}
			}
			return keys > 1
		}
		return false
	}
	files := 0
	for _, dir := range []string{"compiler", "emitters", "runtime", "cmd"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			if strings.Contains(filepath.ToSlash(path), "/runtime/engine/core/") {
				return nil // its operations have such names, too
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files++
			ast.Inspect(f, func(n ast.Node) bool {
				if n != nil && found(fset, n) {
					t.Errorf("%s: a kind by its name: use the registry", fset.Position(n.Pos()))
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Errorf("only %d files were read", files)
	}
}

// Each stage's output is what the next is judged by.
func TestFaultsNameTheField(t *testing.T) {
	stage := func(id, kind, input string) plan.PipelineStage {
		s := plan.PipelineStage{ID: id, Kind: kind, Input: input}
		switch id[0] {
		case 'f':
			s.Preprocess = &plan.Preprocess{Width: 4, Height: 4}
		case 'm':
			s.Model = &plan.Model{Path: "m.onnx"}
		case 'p':
			s.Post = &plan.Post{Kind: pipeline.Raw}
		case 'c':
			s.Custom = &plan.Custom{Exec: []string{"c"}}
		}
		return s
	}
	chain := func(kinds ...string) []plan.PipelineStage {
		var all []plan.PipelineStage
		input := pipeline.SourceID
		for _, k := range kinds {
			id := map[string]string{"preprocess": "f", "model": "m", "postprocess": "p", "custom": "c"}[k] + strconv.Itoa(len(all))
			all = append(all, stage(id, k, input))
			input = id
		}
		return all
	}
	for _, c := range []struct {
		kinds []string
		path  string // of the first fault, "": none
	}{
		{[]string{"preprocess", "model", "postprocess"}, ""},
		{[]string{"custom"}, ""},
		{[]string{"custom", "postprocess"}, "stages p1 input"},
		{[]string{"model", "postprocess"}, "stages m0 input"},
		{[]string{"preprocess", "model"}, "stages m1"},
		{nil, "stages"},
	} {
		faults := pipeline.Check(&plan.Pipeline{Stages: chain(c.kinds...)})
		got := ""
		if len(faults) > 0 {
			got = strings.Join(faults[0].Path, " ")
		}
		if got != c.path {
			t.Errorf("%v: %v", c.kinds, faults)
		}
	}
}

// A tensor between two stages on one GPU is not copied; another GPU reads it through shared memory,
// as does a stage on the CPU.
func TestCopiesBetweenStages(t *testing.T) {
	stages := func(pre, model string) []plan.PipelineStage {
		return []plan.PipelineStage{
			{ID: "pre", Kind: "preprocess", Device: pre, Preprocess: &plan.Preprocess{Width: 8, Height: 8}},
			{ID: "see", Kind: "model", Device: model, Model: &plan.Model{Path: "m.onnx"}},
			{ID: "post", Kind: "postprocess", Post: &plan.Post{Kind: "classify"}},
		}
	}
	for _, tc := range []struct {
		pre, model string
		gpus       []int
		isolation  string
		want       int // the first is the source's
	}{
		{"", "", nil, "", 1},
		{"gpu", "", nil, "", 3},
		{"", "gpu", nil, "", 3},
		{"gpu", "gpu", nil, "", 3},
		{"gpu", "gpu", []int{1}, "", 3},
		{"gpu", "gpu", []int{0, 1}, "", 5},
		{"gpu", "gpu", nil, "none", 5},
	} {
		p := &plan.Pipeline{Stages: stages(tc.pre, tc.model), GPUs: tc.gpus, Isolation: tc.isolation}
		if got := pipeline.CountCopies(p); got != tc.want {
			t.Errorf("%+v: %d copies, want %d", tc, got, tc.want)
		}
	}
}

// Devices are measured with synthetic pictures of the source's size.
func TestMeasuredDevicesNeedPictures(t *testing.T) {
	stages := []plan.PipelineStage{
		{ID: "m", Kind: "model", Input: "source", Model: &plan.Model{Path: "m.onnx"}, Device: "auto"},
		{ID: "out", Kind: "postprocess", Input: "m", Post: &plan.Post{Kind: "argmax"}},
	}
	pictures := append([]plan.PipelineStage{{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 4, Height: 4}}}, stages...)
	pictures[1].Input = "pre"
	for _, c := range []struct {
		source plan.PipelineSource
		stages []plan.PipelineStage
		want   string
	}{
		{plan.PipelineSource{Kind: "command", Exec: []string{"/bin/feed"}, Format: "tensor", Shape: []int64{1, 4}}, stages, "the source gives tensors"},
		{plan.PipelineSource{Kind: "file", Path: "a.y4m", Format: "y4m"}, pictures, "the source does not declare its size"},
		{plan.PipelineSource{Kind: "synthetic", Format: "nv12", Width: 8, Height: 4}, pictures, ""},
	} {
		var got []string
		for _, f := range pipeline.Check(&plan.Pipeline{Source: c.source, Stages: c.stages}) {
			if f.Topic == pipeline.Device {
				got = append(got, f.Reason)
			}
		}
		if text := strings.Join(got, "; "); !strings.Contains(text, c.want) || c.want == "" && text != "" {
			t.Errorf("%s of %s: %q, want %q", c.source.Format, c.source.Kind, text, c.want)
		}
	}
}
