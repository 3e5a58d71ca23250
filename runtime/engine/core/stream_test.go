package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

func queued(t *testing.T, d *core.Device) *core.Stream {
	t.Helper()
	s, err := d.OpenStream(core.StreamOptions{Queued: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func event(t *testing.T, d *core.Device) *core.Event {
	t.Helper()
	e, err := d.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func wait(t *testing.T, s *core.Stream) {
	t.Helper()
	if err := s.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func openWith(t *testing.T, o core.Options) *core.Device {
	t.Helper()
	o.Backend = core.CPU
	d, err := core.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !errors.Is(err, core.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

func submit(t *testing.T, l *core.List) {
	t.Helper()
	if err := l.Submit(); err != nil {
		t.Fatal(err)
	}
}

func TestWaitTimesOutWhileTheWorkContinues(t *testing.T) {
	d := openWith(t, core.Options{Faults: "launch:hang=2s@n=1"})
	s, b := stream(t, d), alloc(t, d, 8, core.MemAuto)
	e := event(t, d)
	clear(b.Bytes())
	submit(t, s.List().Fill(b.All(), 7).Record(e))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := s.Wait(ctx); !errors.Is(err, core.ErrTimeout) {
		t.Errorf("got %v", err)
	}
	if _, err := e.Since(e); !errors.Is(err, core.ErrNotReady) {
		t.Errorf("time of an event that did not pass: %v", err)
	}
	if err := b.Release(); !errors.Is(err, core.ErrBusy) {
		t.Errorf("released a buffer in use: %v", err)
	}
	if err := e.Release(); !errors.Is(err, core.ErrBusy) {
		t.Errorf("released an event in use: %v", err)
	}
	if err := d.InjectFaults(""); err != nil { // ends the hang
		t.Fatal(err)
	}
	wait(t, s)
	if b.Bytes()[0] != 7 {
		t.Error("the work was dropped")
	}
	if err := b.Release(); err != nil {
		t.Error(err)
	}
}

// A call on Go memory that gives up leaves the memory pinned for the work that still
// writes it; the next call is not confused by it.
func TestTimedOutCallLeavesTheStreamUsable(t *testing.T) {
	d := openWith(t, core.Options{Faults: "launch:hang=2s@n=1@kernel=reduce"})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if _, err := d.Reduce(ctx, core.Sum, []float32{1, 2}); !errors.Is(err, core.ErrTimeout) {
		t.Errorf("got %v", err)
	}
	if err := d.InjectFaults(""); err != nil { // ends the hang
		t.Fatal(err)
	}
	if got, err := d.Reduce(context.Background(), core.Sum, []float32{3, 4}); err != nil || got != 7 {
		t.Errorf("got %g, %v", got, err)
	}
}

func TestStreamLimitsItsPendingLists(t *testing.T) {
	d := openWith(t, core.Options{Threads: 1, Faults: "launch:hang=2s@n=1"})
	s, b := queued(t, d), alloc(t, d, 8, core.MemAuto)
	var err error
	n := 0
	for ; err == nil && n < 5000; n++ {
		err = s.List().Fill(b.All(), 1).Submit()
	}
	if !errors.Is(err, core.ErrBusy) || n < 1000 {
		t.Errorf("after %d lists: %v", n, err)
	}
	if err := d.InjectFaults(""); err != nil { // ends the hang
		t.Fatal(err)
	}
	wait(t, s)
}

// Many goroutines submit, free and allocate on one device. The race detector and the
// sanitizers report errors.
func TestStreamsAndBuffersInManyGoroutines(t *testing.T) {
	d := openCPU(t)
	var group sync.WaitGroup
	for worker := range 6 {
		group.Go(func() {
			s, err := d.OpenStream(core.StreamOptions{Queued: worker%2 == 0})
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 100 {
				a, err1 := d.Alloc(256, core.MemAuto)
				b, err2 := d.Alloc(256, core.MemAuto)
				if err := errors.Join(err1, err2); err != nil {
					t.Error(err)
					return
				}
				err := errors.Join(s.List().Fill(a.All(), byte(i)).Copy(b.All(), a.All()).Submit(), s.Wait(context.Background()))
				if err != nil || b.Bytes()[255] != byte(i) {
					t.Errorf("worker %d, round %d: %v", worker, i, err)
				}
				for _, x := range []*core.Buffer{a, b} {
					if err := x.Release(); err != nil {
						t.Errorf("worker %d, round %d: %v", worker, i, err)
					}
				}
			}
		})
	}
	group.Wait()
}

// However many there are: which a list uses is known exactly, not by a few bits.
func TestUnusedBuffersAreReleasedWhileListsRun(t *testing.T) {
	d := openCPU(t)
	used, err := d.Alloc(1<<20, core.MemAuto)
	if err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan error, 1)
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		l := s.List().Fill(used.All(), 1)
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if err := l.Submit(); err != nil {
				ended <- err
				return
			}
		}
	}()
	for range 20 {
		var idle []*core.Buffer
		for range 130 {
			b, err := d.Alloc(16, core.MemAuto)
			if err != nil {
				t.Fatal(err)
			}
			idle = append(idle, b)
		}
		for i, b := range idle {
			if err := b.Release(); err != nil {
				t.Fatalf("buffer %d: %v", i, err)
			}
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestCloseWaitsForACallInProgressAndEndsLaterOnes(t *testing.T) {
	for range 20 {
		d, err := core.Open(core.Options{Backend: core.CPU})
		if err != nil {
			t.Fatal(err)
		}
		s, b := stream(t, d), alloc(t, d, 1<<16, core.MemAuto)
		l := s.List().Fill(b.All(), 1)
		done := make(chan error)
		begun := make(chan struct{})
		go func() {
			for i := 0; ; i++ {
				if err := l.Submit(); err != nil {
					done <- err
					return
				}
				if i == 10 {
					close(begun)
				}
			}
		}()
		<-begun
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, core.ErrClosed) {
			t.Errorf("after close: %v", err)
		}
	}
}

func TestInjectedFaults(t *testing.T) {
	ctx := context.Background()
	work := func(t *testing.T, d *core.Device) error {
		s, err := d.OpenStream(core.StreamOptions{Name: "infer"})
		if err != nil {
			return err
		}
		b, err := d.Alloc(64, core.MemAuto)
		if err != nil {
			return err
		}
		if err := s.List().Fill(b.All(), 1).Submit(); err != nil {
			return err
		}
		return s.Wait(ctx)
	}
	for _, tc := range []struct {
		spec   string
		want   []error // of one call of work after another
		sticky bool
	}{
		{"alloc:oom@n=3", []error{nil, core.ErrOOM, nil}, false},
		{"alloc:oom@bytes>63", []error{core.ErrOOM, core.ErrOOM}, false},
		{"alloc:oom@bytes>64", []error{nil}, false},
		{"alloc:oom@bytes>1K", []error{nil}, false},
		{"launch:fault@n=2", []error{nil, core.ErrKernelFault, core.ErrKernelFault}, true},
		{"launch:fault@kernel=cop", []error{core.ErrKernelFault}, true},
		{"launch:fault@kernel=pre", []error{nil}, false},
		{"launch:fault@stage=infer", []error{core.ErrKernelFault}, true},
		{"launch:fault@stage=inf", []error{nil}, false},
		{"launch:fault@p=0", []error{nil, nil}, false},
		{"launch:fault@p=1", []error{core.ErrKernelFault}, true},
		{"device:lost@t=0s", []error{core.ErrDeviceLost}, true},
		{"device:lost@t=1000s", []error{nil}, false},
		{"slow:x1.5@stage=infer,launch:hang=1ms", []error{nil, nil}, false},
		{"", []error{nil}, false},
	} {
		t.Run(tc.spec, func(t *testing.T) {
			d := openWith(t, core.Options{Faults: tc.spec})
			for i, want := range tc.want {
				if err := work(t, d); !errors.Is(err, want) {
					t.Errorf("call %d: %v, want %v", i, err, want)
				}
			}
			var e *core.Error
			err := d.Health()
			if tc.sticky != (err != nil) || (err != nil && (!errors.As(err, &e) || !e.Sticky)) {
				t.Errorf("health: %v", err)
			}
			// Removing the cause does not bring a dead device back.
			if err := d.InjectFaults(""); err != nil {
				t.Error(err)
			}
			if err := d.Health(); tc.sticky != (err != nil) {
				t.Errorf("health without faults: %v", err)
			}
			if _, err := d.Reduce(ctx, core.Sum, []float32{1}); tc.sticky != (err != nil) {
				t.Errorf("work without faults: %v", err)
			}
		})
	}
	if _, err := core.Open(core.Options{Backend: core.CPU, Faults: "init:fail"}); !errors.Is(err, core.ErrNoBackend) {
		t.Errorf("init:fail: %v", err)
	}
}

func TestACorruptCopyDiffersInOneBit(t *testing.T) {
	d := openWith(t, core.Options{Faults: "copy:corrupt@n=2"})
	s := stream(t, d)
	a, b := alloc(t, d, 4096, core.MemAuto), alloc(t, d, 4096, core.MemAuto)
	clear(a.Bytes())
	for i, want := range []int{0, 1, 0} {
		submit(t, s.List().Copy(b.All(), a.All()))
		wait(t, s)
		wrong := 0
		for j := range a.Bytes() {
			for x := a.Bytes()[j] ^ b.Bytes()[j]; x != 0; x &= x - 1 {
				wrong++
			}
		}
		if wrong != want {
			t.Errorf("copy %d: %d bits are wrong, want %d", i, wrong, want)
		}
	}
}

func TestInvalidFaultsAreRefusedWithTheGrammar(t *testing.T) {
	for _, spec := range []string{"alloc", "alloc:oom@", "alloc:oom,", ",", "launch:hang", "launch:hang=3s", "launch:hang=1", "launch:hang=-1s",
		"alloc:oom@n=0", "alloc:oom@n=1.5", "alloc:oom@p=2", "slow:x0.5", "slow:x", "copy:corrupt@p=nan", "copy:corrupt@p=0x1",
		"device:lost@t=5", "launch:fault@kernel=", "launch:fault@kernel=much-too-long-for-a-name", "launch:fault@bytes>1", "alloc:oom@n=inf",
		"alloc:oom@@n=1", "ALLOC:oom", " alloc:oom", "alloc:oom ", strings.Repeat("alloc:oom,", 17) + "alloc:oom", "a\x00b"} {
		if err := core.CheckFaults(spec); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%q: %v", spec, err)
		}
	}
	if err := core.CheckFaults("gpu:melts"); !strings.Contains(fmt.Sprint(err), "use alloc:oom") {
		t.Errorf("%v does not give the grammar", err)
	}
	for _, spec := range []string{"alloc:oom@n=7", "alloc:oom@bytes>64M", "launch:hang=2s@kernel=pre", "launch:fault@n=100", "copy:corrupt@p=1e-4",
		"device:lost@t=5s", "init:fail", "slow:x3@stage=infer", "alloc:oom@n=1,launch:fault@n=2@kernel=reduce"} {
		if err := core.CheckFaults(spec); err != nil {
			t.Errorf("%q: %v", spec, err)
		}
	}
}

func FuzzFaults(f *testing.F) {
	for _, s := range []string{"", "alloc:oom@n=7", "launch:hang=2s@kernel=pre,slow:x3@stage=infer", "copy:corrupt@p=1e-4@bytes>64M", "device:lost@t=5s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		err := core.CheckFaults(spec)
		if err != nil && !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%q: %v", spec, err)
		}
		// One fault after a right one is right exactly when it is right alone.
		if err == nil && spec != "" && strings.Count(spec, ",") < 14 {
			if err := core.CheckFaults(spec + ",init:fail"); err != nil {
				t.Errorf("%q is right, with another fault: %v", spec, err)
			}
		}
	})
}
