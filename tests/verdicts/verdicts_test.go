// Package verdicts checks that compiler and engine agree about pipelines: the engine refuses what
// vet refuses, and runs what vet accepts. The cases are generated from the registry of kinds,
// schema/pipeline.
package verdicts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom/plugin"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// zeros returns a tensor of zeros or, without a shape, no results.
const zeros = `
#include "yoctune_stage.h"
#include <stdlib.h>
#include <string.h>
static int open_stage(void **s, const yoctune_port *in, const yoctune_port *out, const char *o, const yoctune_host *h, char *e, size_t n)
{
	(void)in; (void)o; (void)h; (void)e; (void)n;
	*s = malloc(sizeof *out);
	memcpy(*s, out, sizeof *out);
	return 0;
}
static int run(void *s, yoctune_item *i, char *e, size_t n)
{
	(void)e; (void)n;
	if (((yoctune_port *)s)->kind == YOCTUNE_RESULTS) { memcpy(i->out, "[]", 2); i->out_bytes = 2; return 0; }
	memset(i->out, 0, ((yoctune_port *)s)->bytes);
	return 0;
}
const yoctune_stage *yoctune_stage_entry(uint32_t abi)
{
	static const yoctune_stage st = { sizeof st, YOCTUNE_STAGE_ABI, "zeros", open_stage, run, free };
	return abi == YOCTUNE_STAGE_ABI ? &st : NULL;
}
`

// variant is one way to declare a stage of a kind.
type variant struct {
	name, kind string
	decode     string
	tensor     bool // a custom stage with a shape
}

// variants lists every kind of stage, each decode, and custom stages that give results
// and tensors.
func variants() []variant {
	var all []variant
	for _, k := range registry.Stages() {
		switch k.Kind {
		case registry.Postprocess.Kind:
			for _, d := range registry.DecodeNames() {
				all = append(all, variant{name: d, kind: k.Kind, decode: d})
			}
		case registry.Custom.Kind:
			all = append(all, variant{name: k.Kind, kind: k.Kind}, variant{name: "custom tensor", kind: k.Kind, tensor: true})
		case registry.Match.Kind:
			// The gallery decides which tensors it takes: its own tests have it.
		default:
			all = append(all, variant{name: k.Kind, kind: k.Kind})
		}
	}
	return all
}

// shapes has a tensor shape for each decode.
var shapes = map[string][]int64{
	registry.CTC: {1, 5, 3}, registry.Argmax: {1, 4}, registry.Detect: {1, 6, 20}, registry.Segment: {1, 7, 20},
	registry.Keypoints: {1, 8, 20}, registry.Regions: {1, 1, 8, 8}, registry.Raw: {1, 4},
}

// bench builds and runs the cases.
type bench struct {
	dir, plugin, library string
}

func newBench(t *testing.T) bench {
	b := bench{dir: t.TempDir(), library: models.Library(t)}
	write(t, filepath.Join(b.dir, "yoctune_stage.h"), plugin.Header)
	write(t, filepath.Join(b.dir, "zeros.c"), zeros)
	b.plugin = filepath.Join(b.dir, "zeros.so")
	if out, err := exec.Command("gcc", "-std=c11", "-shared", "-fPIC", "-I", b.dir, "-o", b.plugin, filepath.Join(b.dir, "zeros.c")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	write(t, filepath.Join(b.dir, "labels.txt"), "a\nb\n")
	write(t, filepath.Join(b.dir, "clip.y4m"), "YUV4MPEG2 W16 H16 F30:1\nFRAME\n"+strings.Repeat("\x10", 16*16*3/2))
	for _, f := range registry.Formats() {
		if !f.Coded {
			size := registry.FrameBytes(&plan.PipelineSource{Format: f.Name, Width: 16, Height: 16})
			write(t, filepath.Join(b.dir, "clip."+f.Name), strings.Repeat("\x10", int(size)))
		}
	}
	return b
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// line is a sequence of stages, each with the previous one as its input.
type line struct {
	text   strings.Builder
	files  map[string][]byte // models
	n      int
	last   string  // id
	shape  []int64 // of the tensor so far, nil: none
	plugin string
}

// add declares a stage. shape is that of its output tensor, if the stage has a choice; next is the
// stage that follows.
func (l *line) add(t *testing.T, v variant, shape []int64, next variant) {
	l.n++
	id := fmt.Sprintf("s%d", l.n)
	settings := ""
	switch v.kind {
	case registry.Preprocess.Kind:
		settings, l.shape = "width: 4, height: 4", []int64{1, 3, 4, 4}
	case registry.Model.Kind:
		if l.shape == nil {
			l.shape = shape
		}
		settings = fmt.Sprintf("path: %q", id+".onnx")
		l.files[id+".onnx"] = identity(l.shape, next.decode == registry.Segment)
	case registry.Postprocess.Kind:
		settings, l.shape = fmt.Sprintf("decode: %q", v.decode), nil
		if d, _ := registry.DecodeOf(v.decode); d.Labels {
			settings += `, labels: "labels.txt"`
		}
	case registry.Custom.Kind:
		settings, l.shape = fmt.Sprintf("plugin: %q, inside: true", l.plugin), nil
		if v.tensor {
			settings += ", shape: " + strings.Join(strings.Fields(fmt.Sprint(shape)), ", ")
			l.shape = shape
		}
	case registry.ROI.Kind:
		settings, l.shape = "width: 4, height: 4", []int64{1, 3, 4, 4}
	case registry.Map.Kind:
		settings = `expressions: ["x * 2"]`
	case registry.Track.Kind, registry.Gate.Kind, registry.Stats.Kind:
	default:
		t.Fatalf("kind %s is new: give its settings here", v.kind)
	}
	fmt.Fprintf(&l.text, "\t\t%s: {kind: %q, input: %q, %s}\n", id, v.kind, l.last, settings)
	l.last = id
}

// identity returns a model whose output is its input, with mask prototypes as a second output.
func identity(shape []int64, second bool) []byte {
	g := onnx.Graph{
		Nodes:   []onnx.Node{{Op: "Identity", In: []string{"x"}, Out: []string{"y"}}},
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, shape...)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, shape...)},
	}
	if second {
		g.Weights = []onnx.Weight{{Name: "w", Dims: []int64{1, 2, 4, 4}, Data: make([]float32, 32)}}
		g.Nodes = append(g.Nodes, onnx.Node{Op: "Identity", In: []string{"w"}, Out: []string{"z"}})
		g.Outputs = append(g.Outputs, onnx.Tensor("z", onnx.Float32, 1, 2, 4, 4))
	}
	return g.Encode()
}

// addInputs declares the stages that must precede a stage, so that only the stage's own input is
// tested.
func (l *line) addInputs(t *testing.T, v variant, shape []int64) {
	tensor, model := variant{kind: registry.Custom.Kind, tensor: true}, variant{kind: registry.Model.Kind}
	boxes := variant{kind: registry.Postprocess.Kind, decode: registry.Detect}
	takes := registry.StageOf(v.kind).Takes
	switch d, _ := registry.DecodeOf(v.decode); {
	case slices.Contains(takes, registry.Frames):
	case slices.Contains(takes, registry.Tensors):
		l.add(t, tensor, shape, v)
		if d.Boxes {
			l.add(t, model, shape, v)
		}
	default:
		l.add(t, tensor, shapes[registry.Detect], model)
		l.add(t, model, nil, boxes)
		l.add(t, boxes, nil, v)
	}
}

// testCase is one pipeline.
type testCase struct {
	name    string
	text    string // of the pipeline
	files   map[string][]byte
	outside bool // its source cannot be opened here; the check ends there
	refused bool // both must refuse it
	run     bool // both must accept it
}

const synthetic = `{kind: "synthetic", format: "nv12", width: 16, height: 16}`

func (b bench) newLine() *line {
	return &line{files: map[string][]byte{}, last: registry.SourceID, plugin: b.plugin}
}

func (b bench) pipeline(name, source, sink string, l *line) testCase {
	text := "pipelines: p: {\n\tsource: " + source + "\n\tstages: {\n" + l.text.String() + "\t}\n"
	if sink != "" {
		text += "\tsink: " + sink + "\n"
	}
	return testCase{name: name, text: text + "}\n", files: l.files}
}

// pairs returns a case for every pair of stages, with the stages that the first one needs and a
// final stage that gives results.
func (b bench) pairs(t *testing.T) []testCase {
	var all []testCase
	raw := variant{kind: registry.Postprocess.Kind, decode: registry.Raw}
	for _, first := range variants() {
		for _, second := range variants() {
			shape := shapes[second.decode]
			if shape == nil {
				shape = shapes[first.decode]
			}
			if shape == nil {
				shape = shapes[registry.Raw]
			}
			before := shape
			if own := shapes[first.decode]; own != nil {
				before = own
			}
			l := b.newLine()
			l.addInputs(t, first, before)
			l.add(t, first, shape, second)
			l.add(t, second, shape, raw)
			if l.shape != nil {
				l.add(t, raw, nil, variant{})
			}
			c := b.pipeline(first.name+" then "+second.name, synthetic, "", l)
			c.refused = first.kind == registry.Custom.Kind && !first.tensor && second.kind == registry.Postprocess.Kind
			c.run = first.kind == registry.Model.Kind && second.kind == registry.Postprocess.Kind
			all = append(all, c)
		}
	}
	return all
}

// sources returns a case for every kind of source in every format, and before every stage.
func (b bench) sources(t *testing.T) []testCase {
	var all []testCase
	raw := variant{kind: registry.Postprocess.Kind, decode: registry.Raw}
	add := func(kind registry.Source, format string, first variant) {
		fields := map[string]string{
			registry.FileSource.Kind:      fmt.Sprintf("path: %q", "clip."+format),
			registry.SyntheticSource.Kind: "",
			registry.CameraSource.Kind:    `path: "/dev/v4l/by-path/absent"`,
			registry.CommandSource.Kind:   fmt.Sprintf(`exec: ["cat", %q]`, filepath.Join(b.dir, "clip."+format)),
			registry.RTSPSource.Kind:      `url: "rtsp://192.0.2.7/1"`,
			registry.RingSource.Kind:      `path: "/dev/shm/absent"`,
			registry.RequestSource.Kind:   `shape: [1, 4]`,
		}
		if kind.Serves && format == registry.ImageFormat {
			fields[kind.Kind] = ""
		}
		settings, ok := fields[kind.Kind]
		if !ok {
			t.Fatalf("source %s is new: give its settings here", kind.Kind)
		}
		size := ""
		if !registry.HasFrameSize(&plan.PipelineSource{Kind: kind.Kind, Format: format}) || kind.Kind == registry.SyntheticSource.Kind {
			size = "width: 16, height: 16, "
		}
		l := b.newLine()
		l.add(t, first, shapes[registry.Raw], raw)
		if l.shape != nil {
			l.add(t, raw, nil, variant{})
		}
		name := fmt.Sprintf("%s of %s, then %s", format, kind.Kind, first.name)
		c := b.pipeline(name, fmt.Sprintf("{kind: %q, format: %q, %s%s}", kind.Kind, format, size, settings), "", l)
		c.outside = kind.Live || kind.Serves || format == registry.MJPEG
		all = append(all, c)
	}
	for _, kind := range registry.Sources() {
		for _, f := range registry.Formats() {
			if kind.Device != "" && !kind.OffersFormat(f.Name) {
				continue // the plan has a command instead, which gives this format
			}
			add(kind, f.Name, variant{name: registry.Preprocess.Kind, kind: registry.Preprocess.Kind})
		}
		for _, v := range variants() {
			add(kind, "nv12", v)
			if kind.Serves {
				add(kind, registry.TensorFormat, v)
				add(kind, registry.ImageFormat, v)
			}
		}
	}
	return all
}

// sinks returns a case for every kind of sink after every stage.
func (b bench) sinks(t *testing.T) []testCase {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	fields := map[string][]string{
		registry.NDJSON.Kind:      {"", fmt.Sprintf("path: %q", filepath.Join(b.dir, "results"))},
		registry.HTTP.Kind:        {fmt.Sprintf("url: %q", server.URL)},
		registry.CommandSink.Kind: {`exec: ["cat"]`},
		registry.ReplySink.Kind:   {""},
		registry.NATSSink.Kind:    {"", `batch: {records: 10, delay: "1s"}`},
		registry.RingSink.Kind: {
			fmt.Sprintf("path: %q", filepath.Join(b.dir, "ring")),
			fmt.Sprintf(`path: %q, slots: 65536, slotSize: "1MiB"`, filepath.Join(b.dir, "ring")),
			fmt.Sprintf(`path: %q, slotSize: "32B"`, filepath.Join(b.dir, "ring")),
		},
	}
	var all []testCase
	for _, kind := range registry.Sinks() {
		if fields[kind.Kind] == nil {
			t.Fatalf("sink %s is new: give its settings here", kind.Kind)
		}
		for i, settings := range fields[kind.Kind] {
			for _, v := range variants() {
				shape := shapes[v.decode]
				if shape == nil {
					shape = shapes[registry.Raw]
				}
				line := b.newLine()
				line.addInputs(t, v, shape)
				line.add(t, v, shape, variant{})
				c := b.pipeline(fmt.Sprintf("%s before sink %s %d", v.name, kind.Kind, i), synthetic, fmt.Sprintf("{kind: %q, %s}", kind.Kind, settings), line)
				if kind.Kind == registry.NATSSink.Kind {
					c.text += "cluster: {name: \"plant\", embedded: {}}\n"
				}
				all = append(all, c)
			}
		}
	}
	return all
}

// config returns the configuration of a case.
func (c testCase) config() string {
	return "package box\nimport \"github.com/yoctune/yoctune/schema\"\nschema.#Config & {\nlayer: {name: \"box\", maintainer: \"x\"}\n" +
		"targets: cam: {\nboard: \"orin-nano-8gb\"\nrelease: \"scarthgap\"\n" + c.text + "}\n}\n"
}

// vet returns the compiler's verdict and the plan.
func (c testCase) vet() (errs []string, p *plan.Plan) {
	files := map[string][]byte{"config.cue": []byte(c.config())}
	for name, model := range c.files {
		files[name] = model
	}
	project := compiler.OpenFiles(files)
	project.Verify()
	for _, d := range project.Report.All() {
		if d.Severity == diag.Error {
			errs = append(errs, fmt.Sprintf("%s line %d: %s", d.ID, d.Pos.Line, d.Message))
		}
	}
	if project.Project == nil || len(project.Targets) != 1 {
		return errs, nil
	}
	return errs, project.Targets[0].Plan // also where vet refuses it
}

// discard takes the results of sinks that only yoctuned-serve has.
type discard struct{}

func (discard) Write(*result.Record) error { return nil }
func (discard) Close() error               { return nil }

// runEngine runs a pipeline and returns its error; pipeline.ErrPlan means that it was refused.
func (b bench) runEngine(t *testing.T, c testCase, p plan.Pipeline) error {
	t.Helper()
	for name, model := range c.files {
		write(t, filepath.Join(b.dir, name), string(model))
	}
	var out strings.Builder
	port, err := pipeline.NewPort(&p)
	if err != nil {
		return err
	}
	pl, err := pipeline.New(pipeline.Options{Name: "p", Plan: p, Dir: b.dir, Library: b.library, Frames: 1, Stdout: &out, Requests: port, Delivery: discard{}})
	if err != nil {
		return err
	}
	limit := 10 * time.Second
	if c.outside { // it is built, and then waits for its source
		limit = 10 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err = pl.Run(ctx)
	return errors.Join(err, pl.Close())
}

func TestCompilerAndEngineAgreeOnEveryPipeline(t *testing.T) {
	b := newBench(t)
	cases := slices.Concat(b.pairs(t), b.sources(t), b.sinks(t))
	accepted := 0
	for _, c := range cases {
		errs, p := c.vet()
		if p == nil {
			t.Errorf("%s: no plan: %v", c.name, errs)
			continue
		}
		err := b.runEngine(t, c, p.Pipelines["p"])
		refused := errors.Is(err, pipeline.ErrPlan)
		switch {
		case refused != (len(errs) > 0):
			t.Errorf("%s:\n    vet: %v\n    engine: %v\n%s", c.name, errs, err, c.text)
		case err != nil && !refused && !c.outside:
			t.Errorf("%s: vet accepts it, and it fails: %v\n%s", c.name, err, c.text)
		case c.refused && !refused, c.run && refused:
			t.Errorf("%s: refused is %v: %v", c.name, refused, err)
		}
		if !refused {
			accepted++
		}
	}
	if accepted < len(cases)/10 || accepted > len(cases)*9/10 {
		t.Errorf("%d of %d pipelines are accepted: the cases show little", accepted, len(cases))
	}
	t.Logf("%d pipelines, %d accepted", len(cases), accepted)
}

// The programs give the same verdicts as their packages.
func TestProgramsGiveTheSameVerdicts(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"yoctune", "yoctuned"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(b.dir, name), "../../cmd/"+name).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	run := func(name string, args ...string) (code int, text string) {
		out, err := exec.CommandContext(t.Context(), filepath.Join(b.dir, name), args...).CombinedOutput()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return exit.ExitCode(), string(out)
		} else if err != nil {
			t.Fatal(err)
		}
		return 0, string(out)
	}
	sockets, err := os.MkdirTemp("/tmp", "socket") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	t.Setenv("RUNTIME_DIRECTORY", sockets)
	cases := b.pairs(t)
	for n := 0; n < len(cases); n += 13 { // coprime to the number of variants, so that each occurs
		c := cases[n]
		dir := t.TempDir()
		write(t, filepath.Join(dir, "config.cue"), c.config())
		for name, model := range c.files {
			write(t, filepath.Join(dir, name), string(model))
			write(t, filepath.Join(b.dir, name), string(model))
		}
		vet, output := run("yoctune", "vet", dir)
		_, p := c.vet()
		if err := p.Seal(); err != nil {
			t.Fatal(err)
		}
		text, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(b.dir, "plan.json"), string(text))
		ran, result := run("yoctuned", "pipeline", "run", filepath.Join(b.dir, "plan.json"), "--frames", "1", "--library", b.library)
		if (vet == 0) != (ran == 0) || ran != 0 && !strings.Contains(result, pipeline.ErrPlan.Error()) {
			t.Errorf("%s: vet exits with %d, pipeline run with %d\n%s\n%s", c.name, vet, ran, output, result)
		}
		if vet != 0 {
			continue
		}
		if code, written := run("yoctune", "plan", dir); code != 0 || !strings.Contains(written, `"pipelines"`) {
			t.Errorf("%s: plan exits with %d\n%s", c.name, code, written)
		}
	}
}
