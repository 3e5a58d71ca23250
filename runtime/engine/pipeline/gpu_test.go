package pipeline_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// TestMain makes the test's program serve as GPU worker.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == worker.Command {
		os.Exit(worker.Serve())
	}
	os.Exit(m.Run())
}

// soon is a breaker that does not keep tests waiting.
var soon = worker.Backoff{First: time.Millisecond, Max: time.Millisecond, Limit: 1 << 20}

// standIn lets the CPU stand in for the GPU, with memory that only kernels and models can access.
func standIn(faults string) core.Options {
	return core.Options{Backend: core.Strict, Threads: 1, Faults: faults}
}

// dumps is a sink that remembers tensors; at is called with each.
type dumps struct {
	all []string
	at  func(n int)
}

func (d *dumps) Write(r *result.Record) error {
	if d.at != nil {
		d.at(len(d.all))
	}
	b, err := json.Marshal(r.Results[0])
	d.all = append(d.all, string(b))
	return err
}

func (d *dumps) Close() error { return nil }

// run runs a pipeline to its end and checks that every frame is accounted for.
func run(t testing.TB, o pipeline.Options) *pipeline.Summary {
	t.Helper()
	p, err := pipeline.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	sum, err := p.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if f := sum.Frames; f.Read != f.Done+f.Dropped+f.Skipped+f.Failed {
		t.Errorf("frames are lost: %+v", f)
	}
	return sum
}

func onGPU(pl plan.Pipeline, deadline time.Duration, fallback string, stages ...string) plan.Pipeline {
	pl.Stages = slices.Clone(pl.Stages)
	for i := range pl.Stages {
		if s := &pl.Stages[i]; slices.Contains(stages, s.ID) {
			s.Device, s.Deadline, s.Fallback = "gpu", int64(deadline), fallback
		}
	}
	return pl
}

func TestGPUResultsEqualThoseOfTheCPU(t *testing.T) {
	dir, library := models.Dir(t), models.Library(t)
	o := pipeline.Options{Plan: labelReader(), Dir: "testdata", Models: dir, Library: library, Frames: 4}
	want := &lines{}
	o.Sink = want
	run(t, o)
	for _, tc := range []struct {
		stages  []string
		buckets []int
		backend string
	}{
		{[]string{"pre"}, nil, core.Strict},
		{[]string{"pre", "read"}, nil, core.Strict},
		{[]string{"pre", "read"}, nil, core.CPU},
		{[]string{"read"}, []int{1, 2}, core.Strict},
		{[]string{"pre", "read"}, []int{1, 2}, core.Strict},
	} {
		o.Plan = onGPU(labelReader(), time.Minute, "", tc.stages...)
		if tc.buckets != nil {
			model := *o.Plan.Stages[1].Model
			model.Batch = &plan.ModelBatch{Buckets: tc.buckets, Delay: int64(time.Second)}
			o.Plan.Stages[1].Model = &model
		}
		got := &lines{}
		o.Sink, o.GPU = got, standIn("")
		o.GPU.Backend = tc.backend
		sum := run(t, o)
		if !slices.Equal(got.text, want.text) || tc.buckets == nil && !slices.Equal(got.score, want.score) {
			t.Errorf("%v in the worker read %v %v, here %v %v", tc.stages, got.text, got.score, want.text, want.score)
		}
		for stage, n := range sum.Fallbacks {
			if n > 0 {
				t.Errorf("the CPU did %d frames of %s", n, stage)
			}
		}
		if w := sum.Runtime.Worker; w == nil || w.Starts != 1 || w.Answers < 5 {
			t.Errorf("%v: worker %+v", tc.stages, w)
		}
		if tc.buckets != nil && sum.Copies["batch"] == 0 {
			t.Error("no batch of two was made")
		}
	}
}

// A frame is uploaded once, and only the model's output comes back: the tensor between the stages
// crosses in neither direction. The strict device counts.
func TestATensorBetweenGPUStagesIsNotCopied(t *testing.T) {
	copied := func(frames uint64, buckets []int, stages ...string) worker.Copied {
		o := pipeline.Options{
			Plan: onGPU(labelReader(), time.Minute, "", stages...), Dir: "testdata", Models: models.Dir(t), Library: models.Library(t),
			Frames: frames, Sink: &lines{}, GPU: standIn(""),
		}
		if buckets != nil {
			model := *o.Plan.Stages[1].Model
			model.Batch = &plan.ModelBatch{Buckets: buckets, Delay: int64(time.Second)}
			o.Plan.Stages[1].Model = &model
		}
		return run(t, o).Runtime.Worker.Copied
	}
	perFrame := func(buckets []int, stages ...string) worker.Copied {
		some, more := copied(2, buckets, stages...), copied(4, buckets, stages...)
		return worker.Copied{
			ToDevice: (more.ToDevice - some.ToDevice) / 2, ToHost: (more.ToHost - some.ToHost) / 2, OnDevice: (more.OnDevice - some.OnDevice) / 2,
		}
	}
	pre, read := perFrame(nil, "pre"), perFrame(nil, "read")
	pixels, tensor, output := pre.ToDevice, pre.ToHost, read.ToHost
	if pixels == 0 || tensor == 0 || output == 0 || read.ToDevice != tensor {
		t.Fatalf("the preprocess alone copies %+v, the model alone %+v", pre, read)
	}
	if got, want := perFrame(nil, "pre", "read"), (worker.Copied{ToDevice: pixels, ToHost: output}); got != want {
		t.Errorf("both stages copy %+v a frame, want %+v", got, want)
	}
	if got, want := perFrame([]int{1, 2}, "pre", "read"), (worker.Copied{ToDevice: pixels, ToHost: output, OnDevice: tensor}); got != want {
		t.Errorf("both stages copy %+v a frame in batches of two, want %+v", got, want)
	}
}

// The tensor of a frame is lost with the worker that holds it: the CPU makes it again.
func TestNoFrameIsLostWithItsTensor(t *testing.T) {
	o := pipeline.Options{Plan: labelReader(), Dir: "testdata", Models: models.Dir(t), Library: models.Library(t)}
	want := &lines{}
	o.Sink = want
	run(t, o)
	for _, faults := range []string{"launch:fault@n=4", "launch:fault@n=5", "device:lost@n=9", "device:lost@n=12", "launch:hang=2s@kernel=pre@n=7"} {
		got := &lines{}
		o.Plan, o.Sink, o.GPU, o.Backoff = onGPU(labelReader(), 100*time.Millisecond, "", "pre", "read"), got, standIn(faults), soon
		sum := run(t, o)
		if sum.Frames.Done != sum.Frames.Read || !slices.Equal(got.text, want.text) {
			t.Errorf("%s: %+v read %v, without faults %v", faults, sum.Frames, got.text, want.text)
		}
		if w := sum.Runtime.Worker; len(w.Losses) == 0 || sum.Fallbacks["pre"]+sum.Fallbacks["read"] == 0 {
			t.Errorf("%s: worker %+v, fallbacks %v", faults, w, sum.Fallbacks)
		}
	}
}

func TestNoFrameIsLostWithTheGPU(t *testing.T) {
	const frames = 60
	want := &dumps{}
	run(t, pipeline.Options{Plan: tensorDump(), Frames: frames, Sink: want})
	for _, tc := range []struct {
		name, faults string
		cause        worker.Cause
		kill         bool
	}{
		{"a kernel that hangs", "launch:hang=2s@kernel=pre@n=12", worker.CauseHang, false},
		{"an illegal address", "launch:fault@n=12", worker.CauseSticky, false},
		{"a device that is lost", "device:lost@n=60", worker.CauseLost, false},
		{"kill -9", "", worker.CauseSignal, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, deadline := &dumps{}, time.Minute
			if tc.cause == worker.CauseHang {
				deadline = 60 * time.Millisecond
			}
			o := pipeline.Options{
				Plan: onGPU(tensorDump(), deadline, "", "pre"), Frames: frames, Sink: got, GPU: standIn(tc.faults), Backoff: soon,
			}
			p, err := pipeline.New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if tc.kill {
				got.at = func(n int) {
					if w := p.Snapshot().Worker; n%20 == 10 && w.PID != 0 {
						if err := unix.Kill(w.PID, unix.SIGKILL); err != nil {
							t.Error(err)
						}
					}
				}
			}
			sum, err := p.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if sum.Frames.Done != frames || !slices.Equal(got.all, want.all) {
				t.Errorf("%+v, and the tensors are the same: %v", sum.Frames, slices.Equal(got.all, want.all))
			}
			w := sum.Runtime.Worker
			if w.Losses[tc.cause] == 0 || sum.Fallbacks["pre"] == 0 {
				t.Errorf("worker %+v, %d frames on the CPU", w, sum.Fallbacks["pre"])
			}
			if !slices.ContainsFunc(sum.Events, func(e pipeline.Event) bool {
				return e.Kind == pipeline.EventWorker && strings.HasPrefix(e.Why, "lost, "+string(tc.cause))
			}) {
				t.Errorf("no event reports it: %v", sum.Events)
			}
		})
	}
}

func TestFramesWithoutFallbackAreDroppedWithoutTheGPU(t *testing.T) {
	const frames = 40
	got := &dumps{}
	sum := run(t, pipeline.Options{
		Plan: onGPU(tensorDump(), 30*time.Millisecond, "drop", "pre"), Frames: frames, Sink: got,
		GPU: standIn("launch:hang=2s@kernel=pre@n=12"), Backoff: worker.Backoff{Limit: 1, First: time.Hour},
	})
	if sum.Drops["deadline:pre"] == 0 || sum.Drops["no-device:pre"] == 0 || sum.Frames.Failed != 0 || sum.Fallbacks["pre"] != 0 {
		t.Errorf("%+v, drops %v, fallbacks %v", sum.Frames, sum.Drops, sum.Fallbacks)
	}
}

func TestAMissingGPUIsReported(t *testing.T) {
	var notes []string
	o := pipeline.Options{
		Plan: onGPU(tensorDump(), 0, "", "pre"), Frames: 5, Sink: &dumps{}, GPU: core.Options{Library: "/none/libyoctune_cuda.so"},
		Note: func(err error) { notes = append(notes, err.Error()) },
	}
	sum := run(t, o)
	if sum.Frames.Done != 5 || sum.Fallbacks["pre"] != 5 || len(notes) != 1 || !strings.Contains(notes[0], "/none/libyoctune_cuda.so") {
		t.Errorf("%+v, fallbacks %v, notes %q", sum.Frames, sum.Fallbacks, notes)
	}
	o.Plan = onGPU(tensorDump(), 0, "drop", "pre")
	if _, err := pipeline.New(o); err == nil || !strings.Contains(err.Error(), "/none/libyoctune_cuda.so") {
		t.Errorf("a pipeline that only the GPU may run starts without one: %v", err)
	}
	o.Plan.Isolation = "none"
	if _, err := pipeline.New(o); err == nil || !strings.Contains(err.Error(), "isolation none") {
		t.Errorf("with isolation none: %v", err)
	}
}

func TestIsolationNoneRunsInThisProcess(t *testing.T) {
	want, got := &dumps{}, &dumps{}
	run(t, pipeline.Options{Plan: tensorDump(), Frames: 5, Sink: want})
	pl := onGPU(tensorDump(), 0, "", "pre")
	pl.Isolation = "none"
	sum := run(t, pipeline.Options{Plan: pl, Frames: 5, Sink: got, GPU: standIn("")})
	if !slices.Equal(got.all, want.all) || sum.Runtime.Worker != nil {
		t.Errorf("worker %+v, same tensors: %v", sum.Runtime.Worker, slices.Equal(got.all, want.all))
	}
}

func TestAStopDoesNotWaitForTheGPU(t *testing.T) {
	p, err := pipeline.New(pipeline.Options{
		Plan: onGPU(tensorDump(), time.Hour, "", "pre"), Sink: &dumps{}, GPU: standIn("launch:hang=2s@kernel=pre@n=12"), Drain: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	time.AfterFunc(50*time.Millisecond, cancel)
	sum, err := p.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if f := sum.Frames; f.Read != f.Done+f.Dropped+f.Skipped+f.Failed || f.Failed > 0 {
		t.Errorf("%+v %v", f, sum.Errors)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// Workers hang and are killed at random during 400 frames, or YOCTUNE_GPU_FRAMES.
func TestLossesInALongRun(t *testing.T) {
	frames := uint64(400)
	if v := os.Getenv("YOCTUNE_GPU_FRAMES"); v != "" {
		var err error
		if frames, err = strconv.ParseUint(v, 10, 32); err != nil {
			t.Fatal(err)
		}
	}
	want, got := &dumps{}, &dumps{}
	run(t, pipeline.Options{Plan: tensorDump(), Frames: frames, Sink: want})
	pl := onGPU(tensorDump(), 50*time.Millisecond, "", "pre")
	pl.Stages[0].Instances = 3
	o := pipeline.Options{
		Plan: pl, Frames: frames, Sink: got, Backoff: soon,
		GPU: standIn("launch:hang=2s@n=60,launch:fault@n=80"),
	}
	p, err := pipeline.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rng := rand.New(rand.NewPCG(7, 7))
	got.at = func(n int) {
		// The GPU has to have its share: the CPU alone is through before a worker is back.
		time.Sleep(500 * time.Microsecond)
		if pid := p.Snapshot().Worker.PID; (rng.IntN(100) == 0 || n == 20) && pid != 0 {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended by itself
		}
	}
	sum, err := p.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if sum.Frames.Done != frames || !slices.Equal(got.all, want.all) {
		t.Errorf("%+v, and the tensors are the same: %v", sum.Frames, slices.Equal(got.all, want.all))
	}
	w := sum.Runtime.Worker
	if len(w.Losses) == 0 {
		t.Errorf("%+v", w)
	}
	t.Logf("%d frames, %d by the CPU; %d workers, lost %v", frames, sum.Fallbacks["pre"], w.Starts, w.Losses)
}
