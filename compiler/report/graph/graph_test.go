package graph

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/plan"
)

// parts reads a drawing as XML and returns its texts and how many of each
// element there are.
func parts(t *testing.T, d *Drawing) (texts []string, elements map[string]int) {
	t.Helper()
	elements = map[string]int{}
	dec := xml.NewDecoder(strings.NewReader(string(d.SVG())))
	var in []string
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return texts, elements
		}
		if err != nil {
			t.Fatal(err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			elements[tok.Name.Local]++
			in = append(in, tok.Name.Local)
		case xml.EndElement:
			in = in[:len(in)-1]
		case xml.CharData:
			if len(in) > 0 && in[len(in)-1] == "text" {
				texts = append(texts, string(tok))
			}
		}
	}
}

func TestUnitIsDrawnRightOfItsDependencies(t *testing.T) {
	nodes := []node{{id: "c"}, {id: "a"}, {id: "b"}}
	acyclic(nodes, []edge{{1, 2, "edge"}, {2, 0, "edge"}, {1, 0, "edge"}})
	if nodes[1].rank != 0 || nodes[2].rank != 1 || nodes[0].rank != 2 {
		t.Errorf("%+v", nodes)
	}
}

func TestUnitCyclesAreDrawn(t *testing.T) {
	d := Units([]Unit{{Name: "a.service", After: []string{"b.service", "a.service"}}, {Name: "b.service", After: []string{"a.service"}}})
	texts, _ := parts(t, d)
	for _, want := range []string{"a.service", "b.service"} {
		if !slices.Contains(texts, want) {
			t.Errorf("%s is not in %q", want, texts)
		}
	}
}

func TestCoreGraphShowsAssignments(t *testing.T) {
	p := &plan.Plan{Board: "orin-nano-8gb", Settings: []plan.Setting{
		{ID: "kernel.args.isolcpus", Want: "managed_irq,domain,4-5"}, {ID: "irq.default", Want: "f"},
	}, Pipelines: map[string]plan.Pipeline{"door": {CPUs: "5"}}}
	texts, elements := parts(t, Cores(p, []Unit{{Name: "a.slice", CPUs: "4-5"}, {Name: "b.service"}}))
	got := strings.Join(texts, " ")
	if got != "0 1 2 3 4 5 core everything else interrupts isolated a.slice pipeline door" {
		t.Errorf("%s", got)
	}
	// 6 cores, 5 lanes of 6 tracks, and the bars: 4 + 4 + 2 + 2 + 1.
	if elements["rect"] != 6+5*6+13 {
		t.Errorf("%d boxes", elements["rect"])
	}
}

func TestListsAndMasksOfCores(t *testing.T) {
	for text, want := range map[string]string{"0-3,5": "[0 1 2 3 5]", "managed_irq,domain,4-5": "[4 5]", "": "[]", "4-": "[]", "99": "[]", "3-1": "[]", "-1": "[]"} {
		if got := fmt.Sprint(parseCPUs(text, 6)); got != want {
			t.Errorf("list %q: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{"f": "[0 1 2 3]", "0x30": "[4 5]", "1,00000001": "[0 32]", "xyz": "[]"} {
		if got := fmt.Sprint(parseCPUMask(text, 64)); got != want {
			t.Errorf("mask %q: %s, want %s", text, got, want)
		}
	}
}

func TestPowerModesShowTheirCaps(t *testing.T) {
	mode := func(khz string) *plan.Plan {
		return &plan.Plan{Board: "orin-nano-8gb", Release: "scarthgap", Power: &plan.Power{Table: "extend", Default: "MINE", Modes: []plan.PowerMode{
			{ID: 9, Name: "MINE", Params: []plan.PowerParam{{Param: "CPU_ONLINE", Arg: "CORE_0", Value: "1"},
				{Param: "CPU_A78_0", Arg: "MAX_FREQ", Value: khz}, {Param: "GPU", Arg: "MAX_FREQ", Value: "-1"}}}}}}
	}
	texts, _ := parts(t, Power(mode("1344000"), mode("1190400")))
	for _, want := range []string{"MINE •", "1 core", "1.34 GHz", "was 1.19 GHz", "no cap", "as it is", "MAXN_SUPER"} {
		if !slices.Contains(texts, want) {
			t.Errorf("%q is not in %q", want, texts)
		}
	}
}

// Any text stays text.
func FuzzDrawings(f *testing.F) {
	for _, s := range []string{"</text><script>alert(1)</script>", "a\x00b\x1b", "\u202e", "&amp;", "\xff\xfe", "]]>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := &plan.Plan{Board: "orin-nano-8gb", Release: "scarthgap",
			Settings: []plan.Setting{{ID: "irq.default", Want: s}, {ID: "kernel.args.isolcpus", Want: s}},
			Power:    &plan.Power{Default: s, Modes: []plan.PowerMode{{Name: s, Params: []plan.PowerParam{{Param: "GPU", Arg: "MAX_FREQ", Value: s}}}}},
			Pipelines: map[string]plan.Pipeline{s: {CPUs: s, Source: plan.PipelineSource{Kind: s, Path: s},
				Stages: []plan.PipelineStage{{ID: s, Kind: s, Input: s}, {ID: s + "2", Input: s, Model: &plan.Model{Path: s}}}}}}
		units := []Unit{{Name: s, Slice: s, CPUs: s, After: []string{s, "x"}, Wants: []string{s + "y"}}}
		for _, d := range []*Drawing{Units(units), Cores(p, units), Pipelines(p), Power(p, p), Columns(s, s, []int{1, 2}),
			DrawBars(s, []Bar{{s, 1, s}}), Timeline(s, []Span{{s, 0, 1, s}})} {
			_, elements := parts(t, d)
			for e := range elements {
				if !slices.Contains([]string{"svg", "style", "title", "rect", "text", "path", "line"}, e) {
					t.Errorf("an element %q out of %q", e, s)
				}
			}
		}
	})
}

// A line of the scale is drawn at its number.
func TestColumnScaleIsDrawnAtItsNumbers(t *testing.T) {
	svg := Columns("levels", "level", []int{3, 1}).Inline()
	height := func(pattern string) float64 {
		m := regexp.MustCompile(pattern).FindStringSubmatch(svg)
		if m == nil {
			t.Fatalf("no %s in %s", pattern, svg)
		}
		y, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return y
	}
	// The number stands 4 below its line, and the column of height 1 ends at it.
	if number, column := height(`y="([0-9.]+)"[^>]*>1</text>`), height(`y="([0-9.]+)"[^>]*><title>level 1: 1<`); math.Abs(number-4-column) > 0.11 {
		t.Errorf("1 is written at %g, and a column of 1 ends at %g", number-4, column)
	}
}

func TestPipelineGraphShowsDevicesAndLatency(t *testing.T) {
	d := Pipelines(&plan.Plan{Pipelines: map[string]plan.Pipeline{"door": {
		Source: plan.PipelineSource{Kind: "v4l2", Format: "yuyv", Width: 64, Height: 64, FPSNum: 15, FPSDen: 1, Live: true},
		Stages: []plan.PipelineStage{
			{ID: "pre", Kind: "preprocess", Input: "source", Device: "gpu", Time: 2e6, Preprocess: &plan.Preprocess{Width: 32, Height: 32, Fit: "stretch", Color: "rgb"}},
			{ID: "find", Kind: "model", Input: "pre", Instances: 2, Time: 45e6, Model: &plan.Model{Path: "/m/yolo.onnx", Batch: &plan.ModelBatch{Buckets: []int{1, 2}}, Ensemble: &plan.Ensemble{Vote: "mean", Models: []plan.StageModel{{Path: "b"}}}}},
			{ID: "boxes", Kind: "postprocess", Input: "find", Post: &plan.Post{Kind: "detect"}, Time: 4e6},
		},
		Queue: plan.PipelineQueue{Capacity: 1, Policy: "drop-oldest"}, Sink: plan.PipelineSink{Kind: "ndjson", Time: 1e6},
	}}})
	texts, _ := parts(t, d)
	for _, want := range []string{"on the GPU, ≤ 2ms", "2×, mean of 2, batch 1 2, ≤ 45ms", "≤ 4ms", "f32 [1 3 32 32], shared memory", "tensor, host memory"} {
		if !slices.Contains(texts, want) {
			t.Errorf("%q is not in %q", want, texts)
		}
	}
	if last := texts[len(texts)-1]; !strings.Contains(last, "≤ 52ms") {
		t.Errorf("the last line is %q", last)
	}
}
