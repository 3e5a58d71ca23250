package pipeline_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

func runLabels(t *testing.T, edit func(*plan.Pipeline)) (*lines, *pipeline.Summary) {
	t.Helper()
	pl := labelReader()
	edit(&pl)
	seen := &lines{}
	p, err := pipeline.New(pipeline.Options{
		Name: "labels", Plan: pl, Dir: "testdata", Models: models.Dir(t), Library: models.Library(t), Sink: seen,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sum, err := p.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return seen, sum
}

// The recogniser accepts any batch size. Batches and parallel instances give the results of
// single frames, in the same order.
func TestBatchesAndInstancesGiveTheSameResults(t *testing.T) {
	single, _ := runLabels(t, func(*plan.Pipeline) {})
	for name, edit := range map[string]func(*plan.Pipeline){
		"batches":   func(p *plan.Pipeline) { p.Stages[1].Model.Batch = &plan.ModelBatch{Buckets: []int{1, 2, 4}} },
		"instances": func(p *plan.Pipeline) { p.Stages[1].Instances, p.Stages[2].Instances = 2, 2 },
	} {
		got, sum := runLabels(t, edit)
		if !slices.Equal(got.text, single.text) {
			t.Errorf("%s: read %v, single frames %v", name, got.text, single.text)
		}
		if batched := sum.Copies["batch"]; (name == "batches") != (batched > 0) {
			t.Errorf("%s: copies %v", name, sum.Copies)
		}
	}
}

func TestInvalidLaddersAreRefused(t *testing.T) {
	step := func(s plan.DegradeStep) func(*plan.Pipeline) {
		return func(p *plan.Pipeline) { p.Degrade.Ladder = []plan.DegradeStep{s} }
	}
	for _, c := range []struct {
		name     string
		edit     func(*plan.Pipeline)
		wantText string
	}{
		{"a file", func(p *plan.Pipeline) { p.Source.Live = false }, "only a live source"},
		{"no such stage", step(plan.DegradeStep{Sizes: []plan.StageSize{{Stage: "infer", Width: 2, Height: 2}}}), `no preprocess stage "infer"`},
		{"a model for preprocess", step(plan.DegradeStep{Models: []plan.StageModel{{Stage: "pre", Path: "x"}}}), `no model stage "pre"`},
		{"no tensor", step(plan.DegradeStep{Sizes: []plan.StageSize{{Stage: "pre"}}}), "step 1: stage pre"},
		{"negative rate", step(plan.DegradeStep{FPS: -1}), "-1 fps"},
		{"too many instances", func(p *plan.Pipeline) { p.Stages[0].Instances = 65 }, "1 to 64 instances"},
		{"negative deadline", func(p *plan.Pipeline) { p.Stages[0].Deadline = -1 }, "deadline of -1ns"},
		{"negative age", func(p *plan.Pipeline) { p.Queue.MaxAge = -1 }, "max age"},
		{"negative credits", func(p *plan.Pipeline) { p.Queue.InFlight = -1 }, "-1 frames in flight"},
		{"sink queue", func(p *plan.Pipeline) { p.Sink.Capacity = 1 << 20 }, "sink queue capacity"},
		{"ring", func(p *plan.Pipeline) { p.Sink = plan.PipelineSink{Kind: "shm", Path: "/dev/shm/x", Slots: -1} }, "a ring of -1 slots"},
		{"rotation", func(p *plan.Pipeline) { p.Sink.Rotate = &plan.Rotate{} }, "rotate at 0 bytes"},
	} {
		pl := tensorDump()
		pl.Source.Live = true
		pl.Degrade = &plan.PipelineDegrade{Ladder: []plan.DegradeStep{{FPS: 5}}}
		c.edit(&pl)
		p, err := pipeline.New(pipeline.Options{Name: "bad", Plan: pl, Sink: &lines{}})
		if err == nil {
			p.Close()
		}
		if !errors.Is(err, pipeline.ErrPlan) || !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// With an unattainable latency objective every step is taken: fewer frames, then smaller
// tensors.
func TestLadderChangesRateAndSize(t *testing.T) {
	pl := tensorDump()
	pl.Source.Live = true
	pl.SLO = &plan.PipelineSLO{LatencyP95: 1}
	pl.Degrade = &plan.PipelineDegrade{Ladder: []plan.DegradeStep{
		{FPS: 100, Sizes: []plan.StageSize{{Stage: "pre", Width: 2, Height: 2}}},
	}}
	var out strings.Builder
	p, err := pipeline.New(pipeline.Options{Name: "bend", Plan: pl, Frames: 300, Stdout: &out, Flight: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sum, err := p.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	whole, small := strings.Count(out.String(), `"shape":[1,3,2,4]`), strings.Count(out.String(), `"shape":[1,3,2,2]`)
	if whole == 0 || small == 0 || sum.Drops["degraded:fps"] == 0 || len(sum.Events) == 0 {
		t.Errorf("%d whole, %d small, drops %v, events %+v", whole, small, sum.Drops, sum.Events)
	}
}
