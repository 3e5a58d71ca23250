package pipeline

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// shared is a preprocess on GPUs 0 and 1, for which virtual devices of the CPU stand in.
func shared(t *testing.T, frames uint64, faults ...string) (Options, *[]float32) {
	t.Helper()
	firsts := new([]float32)
	sink := sinkFunc(func(r *result.Record) error {
		*firsts = append(*firsts, r.Results[0].Values[2])
		return nil
	})
	return Options{
		Frames: frames, Sink: sink, faults: faults,
		GPU:     core.Options{Backend: core.CPU, Threads: 1, Devices: 2},
		Backoff: worker.Backoff{First: time.Millisecond, Max: time.Millisecond, Limit: 1 << 20},
		Plan: plan.Pipeline{
			GPUs:   []int{0, 1},
			Source: plan.PipelineSource{Kind: "synthetic", Format: "nv12", Width: 640, Height: 360},
			Stages: []plan.PipelineStage{
				{ID: "pre", Kind: "preprocess", Input: "source", Device: "gpu", Deadline: int64(time.Minute), Preprocess: &plan.Preprocess{Width: 32, Height: 8}},
				{ID: "dump", Kind: "postprocess", Input: "pre", Post: &plan.Post{Kind: "raw"}},
			},
		},
	}, firsts
}

func runShared(t *testing.T, o Options, during func(p *Pipeline)) *Summary {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	if during != nil {
		during(p)
	}
	s, err := p.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	balanced(t, s)
	if s.Frames.Done != o.Frames || len(s.Runtime.GPUs) != 2 {
		t.Fatalf("%+v, GPUs %+v", s.Frames, s.Runtime.GPUs)
	}
	return s
}

// Both GPUs work, the faster one does more, and the results equal those of one GPU.
func TestGPUsShareWorkBySpeed(t *testing.T) {
	o, want := shared(t, 400)
	o.Plan.GPUs, o.Plan.Stages[0].Device, o.Plan.Stages[0].Deadline = nil, "", 0
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}

	o, got := shared(t, 400, "", "slow:x50")
	s := runShared(t, o, nil)
	quick, slow := s.Runtime.GPUs[0], s.Runtime.GPUs[1]
	if quick.Frames["pre"]+slow.Frames["pre"] != 400 || slow.Frames["pre"] == 0 || quick.Frames["pre"] < 2*slow.Frames["pre"] {
		t.Errorf("the quick one did %d frames, the other one, 50 times as slow, %d", quick.Frames["pre"], slow.Frames["pre"])
	}
	if quick.Rates["pre"] <= slow.Rates["pre"] || quick.Worker.PID == slow.Worker.PID {
		t.Errorf("%+v\n%+v", quick, slow)
	}
	if !slices.Equal(*got, *want) {
		t.Error("the GPUs made other tensors, or in another order")
	}
}

// One GPU is lost for good. The other one does all further work; the CPU does only the frames
// that the lost GPU was processing, one per instance.
func TestAPipelineRunsWithoutOneOfItsGPUs(t *testing.T) {
	o, got := shared(t, 300)
	o.Backoff.First, o.Backoff.Max = time.Hour, time.Hour
	killed, last := 0, 0
	s := runShared(t, o, func(p *Pipeline) {
		sink := p.sink
		p.sink = sinkFunc(func(r *result.Record) error {
			if err := sink.Write(r); err != nil {
				return err
			}
			// The first loss is followed by a new process, the second by a rest.
			st := p.gpu.clients[1].Status()
			if r.Frame >= 20 && killed < 2 && st.PID > 0 && st.PID != last && (st.State == worker.StateReady || st.State == worker.StateTrial) {
				killed, last = killed+1, st.PID
				if err := unix.Kill(st.PID, unix.SIGKILL); !errors.Is(err, unix.ESRCH) { // it is not reaped yet
					return err
				}
			}
			return nil
		})
	})
	if s.Fallbacks["pre"] > 2*2 || s.Runtime.GPUs[0].Frames["pre"] == 0 || len(*got) != 300 {
		t.Errorf("the CPU did %d frames, the GPUs %v and %v", s.Fallbacks["pre"], s.Runtime.GPUs[0].Frames, s.Runtime.GPUs[1].Frames)
	}
}

func TestInvalidGPUListsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*plan.Pipeline){
		"twice":    func(p *plan.Pipeline) { p.GPUs = []int{1, 1} },
		"negative": func(p *plan.Pipeline) { p.GPUs = []int{-1} },
		"too many": func(p *plan.Pipeline) { p.GPUs = []int{registry.MaxGPUs} },
		"for none": func(p *plan.Pipeline) { p.Stages[0].Device = "" },
		"here":     func(p *plan.Pipeline) { p.Isolation = isolationNone },
	} {
		o, _ := shared(t, 1)
		change(&o.Plan)
		if _, err := New(o); !errors.Is(err, ErrPlan) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// One that is not there is said, and the other one works.
	o, _ := shared(t, 20)
	o.Plan.GPUs = []int{0, 7}
	var notes []error
	o.Note = func(err error) { notes = append(notes, err) }
	s := runShared(t, o, nil)
	if len(notes) == 0 || s.Runtime.GPUs[0].Frames["pre"] != 20 || s.Fallbacks["pre"] != 0 {
		t.Errorf("notes %v, %+v", notes, s.Runtime.GPUs)
	}
}
