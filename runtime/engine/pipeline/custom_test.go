package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/compiler/check/budget"
	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom/plugin"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/v4l2/v4l2test"
	"github.com/yoctune/yoctune/schema/plan"
)

// host is this program as yoctuned is: what keeps a plug-in.
func host() []string { return []string{os.Args[0], "-test.run=^TestStageHost$", "--"} }

// TestStageHost is the child process that hosts a plug-in, not a test.
func TestStageHost(t *testing.T) {
	if len(os.Args) < 3 || os.Args[len(os.Args)-2] != "--" {
		return
	}
	if err := plugin.Serve(os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// compile makes a plug-in of C source.
func compile(t testing.TB, name, source string) string {
	t.Helper()
	dir := t.TempDir()
	if source != "" {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "yoctune_stage.h"), []byte(plugin.Header), 0o600); err != nil {
		t.Fatal(err)
	}
	so := filepath.Join(dir, "stage.so")
	if out, err := exec.Command("gcc", "-std=c11", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-I", dir, "-o", so, name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return so
}

// misbehaving crashes, hangs and fails on frames that the options name.
const misbehaving = `
#define _GNU_SOURCE
#include "yoctune_stage.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static const char *plan;
static uint64_t elements;
static int takes_results;
static int open_stage(void **s, const yoctune_port *in, const yoctune_port *out, const char *o, const yoctune_host *h, char *e, size_t n)
{
	(void)h;
	if (!strcmp(o, "refuse")) { snprintf(e, n, "no licence"); return 1; }
	plan = strdup(o); elements = out->bytes / sizeof(float); takes_results = in->kind == YOCTUNE_RESULTS; *s = (void *)plan;
	return 0;
}
static int is(const char *what, uint64_t frame)
{
	char t[64];
	snprintf(t, sizeof t, "%s%llu,", what, (unsigned long long)frame);
	return strstr(plan, t) != NULL;
}
static int run(void *s, yoctune_item *i, char *e, size_t n)
{
	(void)s;
	if (is("crash", i->frame)) { fprintf(stderr, "lost my way\n"); abort(); }
	if (is("hang", i->frame)) for (;;) pause();
	if (is("fail", i->frame)) { snprintf(e, n, "bad light"); return 1; }
	if (is("junk", i->frame)) { i->out_bytes = (uint64_t)sprintf(i->out, "[oops"); return 0; }
	if (is("bytes", i->frame)) { i->out_bytes = (uint64_t)sprintf(i->out, "[\"\xff\"]"); return 0; }
	if (is("endless", i->frame)) { i->out_bytes = (uint64_t)sprintf(i->out, "[{\"score\": 1e999}]"); return 0; }
	if (is("kill", i->frame) && !kill(getppid(), SIGKILL)) pause();
	if (is("vast", i->frame)) { i->out_bytes = 1ull << 40; return 0; }
	if (strstr(plan, "tensor")) { float *out = i->out; for (uint64_t k = 0; k < elements; k++) out[k] = (float)i->frame; return 0; }
	if (takes_results) {
		i->out_bytes = (uint64_t)sprintf(i->out, "[{\"frame\": %llu, \"took\": %.*s}]", (unsigned long long)i->frame, (int)i->in_bytes, (const char *)i->in);
		return 0;
	}
	printf("this does not disturb the messages\n");
	i->out_bytes = (uint64_t)sprintf(i->out, "[ {\"n\": %llu},\n {\"n\": 0} ]", (unsigned long long)i->frame);
	return 0;
}
const yoctune_stage *yoctune_stage_entry(uint32_t abi)
{
	static const yoctune_stage st = { sizeof st, YOCTUNE_STAGE_ABI, "misbehaving", open_stage, run, NULL };
	return abi == YOCTUNE_STAGE_ABI ? &st : NULL;
}
`

// customPlan is a pipeline of one custom stage on small frames.
func customPlan(c plan.Custom) plan.Pipeline {
	return plan.Pipeline{
		Source: plan.PipelineSource{Kind: "synthetic", Format: "nv12", Width: 32, Height: 16, FPSNum: 200, FPSDen: 1},
		Stages: []plan.PipelineStage{{ID: "own", Kind: "custom", Input: "source", Custom: &c}},
	}
}

func runCustom(t *testing.T, pl plan.Pipeline, frames uint64) (*Summary, []string, *Pipeline, error) {
	t.Helper()
	var lines []string
	p, err := New(Options{Name: "own", Plan: pl, Frames: frames, host: host(), Sink: sinkFunc(func(r *result.Record) error {
		lines = append(lines, string(r.AppendJSON(nil)))
		return nil
	})})
	if err != nil {
		return nil, nil, nil, err
	}
	sum, err := p.Run(context.Background())
	if cerr := p.Close(); cerr != nil {
		t.Error(cerr)
	}
	if f := sum.Frames; f.Read != f.Done+f.Dropped+f.Failed {
		t.Errorf("unaccounted: %+v", f)
	}
	return sum, lines, p, err
}

// The example gives the same results and metrics as a plug-in in a child process, as a plug-in
// in this process, and as a Python program.
func TestTheExampleStageGivesTheSameResultsInEachForm(t *testing.T) {
	so := compile(t, "../../../examples/custom-stage/brightness.c", "")
	python, err := exec.LookPath("python3")
	needs(t, err)
	script, err := filepath.Abs("../../../examples/custom-stage/brightness.py")
	if err != nil {
		t.Fatal(err)
	}
	var want string
	for name, c := range map[string]plan.Custom{
		"plug-in": {Plugin: so, Options: "200"},
		"inside":  {Plugin: so, Options: "200", Inside: true},
		"python":  {Exec: []string{python, script}, Options: "200"},
	} {
		sum, lines, p, err := runCustom(t, customPlan(c), 5)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var results []string
		for _, l := range lines {
			_, l, _ = strings.Cut(l, `"results":`)
			l, _, _ = strings.Cut(l, `,"latency`)
			results = append(results, strings.ReplaceAll(l, " ", ""))
		}
		got := strings.Join(results, "\n")
		if want == "" {
			want = got
		}
		if sum.Frames.Done != 5 || got != want || !strings.Contains(got, `[{"brightness":`) {
			t.Errorf("%s: %+v\n%s\nwant\n%s", name, sum.Frames, got, want)
		}
		numbers := map[string]float64{}
		for _, n := range p.Metrics().Numbers() {
			if n.Value != nil {
				numbers[n.Stage+"."+n.Name+"."+n.Kind] = *n.Value
			}
		}
		// One more than frames were read: stages are warmed up, three times.
		if numbers["own.dark_frames.counter"] != 8 || numbers["own.brightness.gauge"] < 1 {
			t.Errorf("%s: %v", name, numbers)
		}
	}
}

// A crash loses its frame and those that arrive before the restart. An error that the stage
// reports, or output that is not JSON, fails one frame without a restart.
func TestFaultsOfACustomStageFailOnlyItsFrames(t *testing.T) {
	so := compile(t, "bad.c", misbehaving)
	pl := customPlan(plan.Custom{Plugin: so, Options: "fail5,kill8,junk10,bytes12,endless14,crash20,"})
	pl.Source.Live, pl.Queue.Policy = true, "block"
	sum, lines, _, err := runCustom(t, pl, 150)
	if !errors.Is(err, ErrFrames) {
		t.Errorf("%v", err)
	}
	events := joinEvents(sum)
	for _, s := range []string{"lost my way", "signal: aborted", "restarting it"} {
		if !strings.Contains(events, s) {
			t.Errorf("no %q in %s", s, events)
		}
	}
	var failures []string
	for _, e := range sum.Errors {
		failures = append(failures, e.Text)
	}
	all := strings.Join(failures, "\n")
	if !strings.Contains(all, "lost my way") || !strings.Contains(all, "bad light") || !strings.Contains(all, "a JSON array") ||
		!strings.Contains(all, "must be UTF-8") || !strings.Contains(all, "1e999") || sum.Failures["own"] != 5 || sum.Frames.Done < 18 || sum.Drops["restarting:own"] == 0 {
		t.Errorf("%+v %v\n%s", sum.Frames, sum.Drops, all)
	}
	if len(lines) == 0 || !strings.Contains(lines[0], `"results":[{"n":0},{"n":0}],`) {
		t.Errorf("%v", lines)
	}
}

func TestAHangingStageIsKilledAtItsDeadline(t *testing.T) {
	so := compile(t, "bad.c", misbehaving)
	pl := customPlan(plan.Custom{Plugin: so, Options: "hang3,"})
	pl.Stages[0].Deadline = int64(1500 * time.Millisecond)
	pl.Source.Live, pl.Queue.Policy = true, "block"
	sum, _, _, err := runCustom(t, pl, 150)
	if err != nil || sum.Drops["deadline:own"] == 0 || sum.Frames.Done < 3 {
		t.Errorf("%+v %v: %v", sum.Frames, sum.Drops, err)
	}
}

// The tensor of a custom stage is the input of the next stage.
func TestACustomStageMakesATensor(t *testing.T) {
	so := compile(t, "bad.c", misbehaving)
	for _, inside := range []bool{false, true} {
		pl := customPlan(plan.Custom{Plugin: so, Options: "tensor", Shape: []int64{1, 3}, Inside: inside})
		pl.Stages = append(pl.Stages, plan.PipelineStage{ID: "dump", Kind: "postprocess", Input: "own", Post: &plan.Post{Kind: "raw"}})
		sum, lines, _, err := runCustom(t, pl, 3)
		if err != nil {
			t.Fatal(err)
		}
		if sum.Frames.Done != 3 || !strings.Contains(lines[2], `"shape":[1,3],"values":[2,2,2]`) {
			t.Errorf("%+v %v", sum.Frames, lines)
		}
		// The compiler predicts the copies that the runtime makes for each frame.
		want := budget.Compute(pl, func(string, string) *onnx.Model { return nil }).Copies
		if got := sum.Copies[copyRead] + sum.Copies[copyBatch]; got != 3*uint64(want) {
			t.Errorf("inside %v: %d copies of 3 frames, the compiler predicts %d for each", inside, got, want)
		}
	}
}

// doubling doubles uint8 elements to int64.
const doubling = `
#include "yoctune_stage.h"
#include <stdio.h>
const uint32_t yoctune_stage_flags = YOCTUNE_ANY_DTYPE;
static uint64_t elements;
static int open_stage(void **s, const yoctune_port *in, const yoctune_port *out, const char *o, const yoctune_host *h, char *e, size_t n)
{
	(void)s; (void)o; (void)h;
	if (in->dtype != YOCTUNE_U8 || out->dtype != YOCTUNE_I64) { snprintf(e, n, "types %u and %u", in->dtype, out->dtype); return 1; }
	elements = in->bytes;
	return 0;
}
static int run(void *s, yoctune_item *i, char *e, size_t n)
{
	(void)s; (void)e; (void)n;
	for (uint64_t k = 0; k < elements; k++)
		((int64_t *)i->out)[k] = 2 * ((const uint8_t *)i->in)[k];
	return 0;
}
const yoctune_stage *yoctune_stage_entry(uint32_t abi)
{
	static const yoctune_stage st = { sizeof st, YOCTUNE_STAGE_ABI, "doubling", open_stage, run, NULL };
	return abi == YOCTUNE_STAGE_ABI ? &st : NULL;
}
`

// A plug-in that reads the types of elements gets and gives them. One that was built for float32, and
// a program that does not read them, are refused when the pipeline starts.
func TestACustomStageTakesElementsOfOtherTypes(t *testing.T) {
	typed, old := compile(t, "doubling.c", doubling), compile(t, "bad.c", misbehaving)
	typedPlan := func(c plan.Custom) plan.Pipeline {
		c.Shape, c.DType = []int64{1, 6}, "i64"
		pl := customPlan(c)
		pl.Stages = []plan.PipelineStage{
			{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 2, Height: 1, DType: "u8"}},
			{ID: "own", Kind: "custom", Input: "pre", Custom: &c},
			{ID: "dump", Kind: "postprocess", Input: "own", Post: &plan.Post{Kind: "raw"}},
		}
		return pl
	}
	pixels := typedPlan(plan.Custom{})
	pixels.Stages = []plan.PipelineStage{pixels.Stages[0], {ID: "dump", Kind: "postprocess", Input: "pre", Post: &plan.Post{Kind: "raw"}}}
	values := func(line string) (all []float64) {
		var r struct{ Results []struct{ Values []float64 } }
		if err := json.Unmarshal([]byte(line), &r); err != nil || len(r.Results) != 1 {
			t.Fatalf("%v in %s", err, line)
		}
		return r.Results[0].Values
	}
	_, want, _, err := runCustom(t, pixels, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, inside := range []bool{false, true} {
		_, got, _, err := runCustom(t, typedPlan(plan.Custom{Plugin: typed, Inside: inside}), 3)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			for i, v := range values(got[n]) {
				if exact := 2 * values(want[n])[i]; v != exact {
					t.Errorf("inside %v: frame %d has %v at %d, want %v", inside, n, v, i, exact)
				}
			}
		}
		if _, _, _, err := runCustom(t, typedPlan(plan.Custom{Plugin: old, Options: "tensor", Inside: inside}), 3); err == nil || !strings.Contains(err.Error(), "takes and gives float32 tensors only") {
			t.Errorf("inside %v: a plug-in for float32: %v", inside, err)
		}
	}
}

// A custom stage may process results, and another one may follow it.
func TestACustomStageReadsResults(t *testing.T) {
	so := compile(t, "bad.c", misbehaving)
	for _, inside := range []bool{false, true} {
		pl := customPlan(plan.Custom{Plugin: so, Inside: inside})
		own := pl.Stages[0]
		own.Input = "dump"
		twice := plan.PipelineStage{ID: "twice", Kind: "custom", Input: "own", Custom: &plan.Custom{Plugin: so, Inside: inside}}
		pl.Stages = []plan.PipelineStage{
			{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 1, Height: 1, Fit: "stretch"}},
			{ID: "dump", Kind: "postprocess", Input: "pre", Post: &plan.Post{Kind: "raw"}}, own, twice,
		}
		sum, lines, _, err := runCustom(t, pl, 3)
		if err != nil || sum.Frames.Done != 3 || sum.Copies[copyBatch] != 0 {
			t.Fatalf("%+v %v %v", sum.Frames, sum.Copies, err)
		}
		if !strings.Contains(lines[2], `"results":[{"frame":2,"took":[{"frame":2,"took":[{"shape":[1,3,1,1],"values":[0.`) {
			t.Errorf("%s", lines[2])
		}
		pl.Stages[3] = plan.PipelineStage{ID: "follow", Kind: "track", Input: "own", Track: &plan.Track{}}
		if _, _, _, err := runCustom(t, pl, 1); !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), "follows the boxes of a postprocess stage") {
			t.Errorf("a tracker of its output: %v", err)
		}
	}
}

// A program gets the descriptor of the driver's memory instead of a copy, also after the
// camera was reopened. A program that does not accept descriptors gets a copy.
func TestACameraBufferIsPassedToAStage(t *testing.T) {
	so := compile(t, "../../../examples/custom-stage/brightness.c", "")
	python, err := exec.LookPath("python3")
	needs(t, err)
	script, err := filepath.Abs("../../../examples/custom-stage/brightness.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		c      plan.Custom
		copies uint64
	}{
		{"plug-in", plan.Custom{Plugin: so}, 0},
		{"inside", plan.Custom{Plugin: so, Inside: true}, 0},
		{"program", plan.Custom{Exec: []string{python, script}}, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			cam := greyCamera()
			cam.Script = func(_, n int) v4l2test.Fault {
				if n == 10 {
					return v4l2test.Gone
				}
				return v4l2test.None
			}
			pl := cameraPlan("grey")
			pl.Stages = []plan.PipelineStage{{ID: "own", Kind: "custom", Input: "source", Custom: &c.c}}
			var got []string
			p, err := New(Options{Name: "cam", Plan: pl, Frames: 20, system: cam, host: host(), Sink: sinkFunc(func(r *result.Record) error {
				got = append(got, string(r.Results[0].JSON))
				return nil
			})})
			if err != nil {
				t.Fatal(err)
			}
			sum, err := p.Run(context.Background())
			if err = errors.Join(err, p.Close()); err != nil {
				t.Fatal(err)
			}
			if sum.Frames.Done != 20 || sum.Copies[copyRead] != 0 || sum.Copies[copyBatch] != c.copies {
				t.Errorf("%+v, copies %v, %s", sum.Frames, sum.Copies, joinEvents(sum))
			}
			for n, text := range got {
				shown := n // the fake writes the frame's number into every byte
				if n >= 10 {
					shown++
				}
				if text = strings.ReplaceAll(text, " ", ""); !strings.HasPrefix(text, fmt.Sprintf(`{"brightness":%d,`, shown)) {
					t.Errorf("frame %d: %s", n, text)
				}
			}
		})
	}
}

func TestInvalidCustomStagesAreRefused(t *testing.T) {
	old := compile(t, "old.c", strings.Replace(misbehaving, "sizeof st, YOCTUNE_STAGE_ABI", "sizeof st, 7", 1))
	newer := compile(t, "new.c", strings.Replace(misbehaving, "abi == YOCTUNE_STAGE_ABI ? &st : NULL", "abi == 9 ? &st : NULL", 1))
	good := compile(t, "bad.c", misbehaving)
	empty := compile(t, "empty.c", "int nothing;\n")
	for _, c := range []struct {
		name     string
		c        plan.Custom
		wantText string
	}{
		{"neither", plan.Custom{}, "either plugin or exec"},
		{"both", plan.Custom{Plugin: good, Exec: []string{"x"}}, "either plugin or exec"},
		{"a program inside", plan.Custom{Exec: []string{"x"}, Inside: true}, "only a plug-in"},
		{"absent", plan.Custom{Plugin: "/absent.so"}, "/absent.so"},
		{"absent, inside", plan.Custom{Plugin: "/absent.so", Inside: true}, "/absent.so"},
		{"another version", plan.Custom{Plugin: old}, "it is of version 7, this program of 1"},
		{"another version, inside", plan.Custom{Plugin: old, Inside: true}, "it is of version 7, this program of 1"},
		{"it refuses this version", plan.Custom{Plugin: newer}, "for another version than 1"},
		{"no entry", plan.Custom{Plugin: empty}, "no yoctune_stage_entry"},
		{"it refuses", plan.Custom{Plugin: good, Options: "refuse"}, "no licence"},
		{"no program", plan.Custom{Exec: []string{"/absent/program"}}, "no such file"},
		{"a program that speaks otherwise", plan.Custom{Exec: []string{"sh", "-c", "echo hello, this is not the protocol; cat >/dev/null"}}, "reserved for messages"},
		{"a program that ends", plan.Custom{Exec: []string{"true"}}, "the program exited: exit status 0"},
		{"an impossible tensor", plan.Custom{Plugin: good, Shape: []int64{1 << 30, 1 << 30}}, "tensor of shape"},
		{"too many dimensions", plan.Custom{Plugin: good, Shape: []int64{1, 1, 1, 1, 1, 1, 1, 1, 1}}, "at most 8 dimensions"},
	} {
		pl := customPlan(c.c)
		if c.c.Shape != nil {
			pl.Stages = append(pl.Stages, plan.PipelineStage{ID: "dump", Kind: "postprocess", Input: "own", Post: &plan.Post{Kind: "raw"}})
		}
		_, _, _, err := runCustom(t, pl, 1)
		if !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// BenchmarkCustomStage compares a plug-in in a child process with the same plug-in in this
// process. The difference is two copies and two messages.
func BenchmarkCustomStage(b *testing.B) {
	so := compile(b, "bad.c", misbehaving)
	in := custom.Port{Kind: custom.Frame, Width: 1280, Height: 720, Bytes: 1280 * 720 * 3 / 2}
	out := custom.Port{Kind: custom.Tensor, Shape: []int64{1, 3}, Bytes: 12}
	frame := make([]byte, in.Bytes)
	b.Run("process", func(b *testing.B) {
		c, err := custom.Start(custom.Options{Argv: append(host(), so), In: in, Out: out, Options: "tensor"})
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		for b.Loop() {
			if _, _, err := c.Run(custom.Item{Frame: 1, In: frame}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("inside", func(b *testing.B) {
		p, err := plugin.Load(so, in, out, "tensor", custom.Reports{})
		if err != nil {
			b.Fatal(err)
		}
		defer p.Close()
		made := make([]byte, out.Bytes)
		for b.Loop() {
			if _, err := p.Run(custom.Item{Frame: 1, In: frame}, made); err != nil {
				b.Fatal(err)
			}
		}
	})
}
