package pipeline

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/backoff"
	"github.com/yoctune/yoctune/runtime/engine/jpeg"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/ring"
	"github.com/yoctune/yoctune/schema/plan"
)

// pipe creates a named pipe without a writer.
func pipe(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A stop ends the wait for a pipe without a writer, and for a program without output.
func TestAStopEndsTheWaitForASource(t *testing.T) {
	_, err := jpeg.Open("")
	needs(t, err)
	silent := pipe(t)
	w, err := os.OpenFile(silent, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for name, s := range map[string]plan.PipelineSource{
		"a pipe without a writer":              {Kind: "file", Path: pipe(t), Format: "nv12", Width: 32, Height: 16},
		"a pipe without a header":              {Kind: "file", Path: silent, Format: "y4m"},
		"a program without output":             {Kind: "command", Exec: []string{"sleep", "1000"}, Format: "y4m"},
		"one that only complains":              {Kind: "command", Exec: []string{"sh", "-c", "yes >&2"}, Format: "mjpeg"},
		"one that does not want to end":        {Kind: "command", Exec: []string{"sh", "-c", "trap '' TERM; while :; do sleep 1; done"}, Format: "y4m"},
		"one that leaves something behind":     {Kind: "command", Exec: []string{"sh", "-c", "(trap '' TERM; sleep 1000) & exit 0"}, Format: "mjpeg"},
		"one that would be started once again": {Kind: "command", Exec: []string{"sleep", "1000"}, Format: "y4m", Live: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			isStopped(t, dump(s))
		})
	}
	t.Run("a stage that is never ready", func(t *testing.T) {
		t.Parallel()
		isStopped(t, customPlan(plan.Custom{Exec: []string{"sleep", "1000"}}))
	})
}

// isStopped has a pipeline stopped while it is being made.
func isStopped(t *testing.T, pl plan.Pipeline) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := New(Options{Name: "late", Plan: pl, Sink: &records{}, Start: ctx})
		done <- err
	}()
	time.AfterFunc(50*time.Millisecond, stop) // in the middle, or before
	if err := <-done; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stopped before it began") {
		t.Errorf("%v", err)
	}
}

// A stop also ends the wait for a program that does not start again.
func TestAStopEndsTheWaitForARestart(t *testing.T) {
	state := filepath.Join(t.TempDir(), "was here")
	// A frame the first time, nothing the second.
	script := "test -e '" + state + "' && exec sleep 1000; : >'" + state + "'; printf 'YUV4MPEG2 W4 H2\\nFRAME\\nabcdefghijkl'"
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p, err := New(Options{
		Name: "again", Sink: &records{}, Tell: func(e Event) {
			if strings.Contains(e.Why, "restarting it") {
				time.AfterFunc(2*backoff.First, stop) // whether it has been by then or not
			}
		},
		Plan: dump(plan.PipelineSource{Kind: "command", Exec: []string{"sh", "-c", script}, Format: "y4m", Live: true, FPSNum: 10, Restart: "always"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := p.Run(ctx)
	if err = errors.Join(err, p.Close()); err != nil || sum.Ended != reasonStopped || sum.Frames.Done != 1 {
		t.Errorf("%+v %s: %v", sum.Frames, sum.Ended, err)
	}
}

func TestAnEmptyFileAndAnImpossibleRateAreRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		s        plan.PipelineSource
		want     error
		wantText string
	}{
		"empty":     {plan.PipelineSource{Kind: "file", Path: empty, Format: "nv12", Width: 32, Height: 16}, frame.ErrFormat, "is empty"},
		"too slow":  {plan.PipelineSource{Kind: "synthetic", Width: 32, Height: 16, Live: true, FPSNum: 1, FPSDen: 1 << 40}, ErrPlan, "invalid frame rate 1/1099511627776"},
		"too fast":  {plan.PipelineSource{Kind: "synthetic", Width: 32, Height: 16, Live: true, FPSNum: 1 << 40}, ErrPlan, "invalid frame rate 1099511627776/1"},
		"backwards": {plan.PipelineSource{Kind: "synthetic", Width: 32, Height: 16, Live: true, FPSNum: -1}, ErrPlan, "invalid frame rate -1/0"},
	} {
		if _, err := New(Options{Name: "x", Plan: dump(c.s), Sink: &records{}}); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The writer of a ring controls the number of lost records that a reader computes.
func TestImplausibleLossCountsAreCapped(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ring")
	w, err := ring.Create(name, 4, 32*16)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	// A writer whose header counts record n as written, in slot 0.
	put := func(n uint64) {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, word := range []struct {
			at    int64
			value uint64
		}{{64 + 8, 32 * 16}, {64, 2*n + 2}, {16, n + 1}} {
			if _, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, word.value), word.at); err != nil {
				t.Fatal(err)
			}
		}
	}
	pl := dump(plan.PipelineSource{Kind: "shm", Path: name, Format: "grey", Width: 32, Height: 16, Live: true, FPSNum: 10})
	p, err := New(Options{Name: "ring", Plan: pl, Sink: &records{}, Frames: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	put(1 << 50)
	ctx, stop := context.WithCancel(t.Context())
	p.tell = func(e Event) { stop() } // no more frames come
	sum, err := p.Run(ctx)
	if err = errors.Join(err, p.Close()); err != nil || sum.Frames.Done != 1 || sum.Drops[reasonLost] == 0 || sum.Frames.Read != sum.Frames.Done+sum.Frames.Dropped {
		t.Errorf("%+v %v: %v", sum.Frames, sum.Drops, err)
	}
}
