package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// TestMain lets the test's program be its own workers, good and bad.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case Command:
			os.Exit(Serve())
		case "slow":
			for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(time.Millisecond) {
				if _, err := os.Stat(os.Args[2]); err == nil {
					os.Exit(Serve())
				}
			}
			os.Exit(1)
		case "hostile":
			hostile(os.Args[2])
		case "parent":
			parent()
		}
	}
	os.Exit(m.Run())
}

const limit = 30 * time.Second // for any expected event; a loaded machine is slow

// start starts a client with a worker on the CPU backend and waits for it.
func start(t testing.TB, o Options) *Client {
	t.Helper()
	c := begin(t, o)
	ready(t, c)
	return c
}

func begin(t testing.TB, o Options) *Client {
	t.Helper()
	if o.Device.Backend == "" {
		o.Device.Backend = core.CPU
	}
	o.Device.Threads = max(o.Device.Threads, 2)
	o.Bytes, o.Lanes = max(o.Bytes, 1<<16), max(o.Lanes, 1)
	if o.Command == nil {
		o.Command = []string{os.Args[0], Command}
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Alloc(o.Bytes); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	c.Start()
	return c
}

func ready(t testing.TB, c *Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
}

// waitUntil waits for a condition.
func waitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, limit)
		}
	}
}

// fill returns a list that copies n bytes of one value to off, from the other half of the memory.
func fill(c *Client, off, n int, v byte) *core.List {
	from := len(c.Memory())/2 + off
	copy(c.Memory()[from:], bytes.Repeat([]byte{v}, n))
	return c.Draft().List().Copy(c.Region(off, n), c.Region(from, n))
}

// checkWorks checks that the worker executes commands.
func checkWorks(t testing.TB, c *Client) {
	t.Helper()
	v := byte(rand.IntN(255) + 1)
	clear(c.Memory()[:256])
	waitUntil(t, "a list runs", func() bool {
		err := c.Run(0, fill(c, 0, 256, v), limit)
		if err != nil && !IsWorkerFault(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	if c.Memory()[0] != v || c.Memory()[255] != v {
		t.Fatalf("memory holds %d and %d, not %d", c.Memory()[0], c.Memory()[255], v)
	}
}

func TestAListGivesTheSameResultAsInProcess(t *testing.T) {
	for _, access := range []Access{AccessDirect, AccessStaged, AccessCopied} {
		t.Run(string(access), func(t *testing.T) {
			const w, h, ow, oh = 70, 46, 33, 41
			frame := core.FrameBytes(core.NV12, w, h)
			at := func(n int) int { return (n + 255) / 256 * 256 }
			tensorAt, sumAt, boxesAt := at(frame), at(frame)+at(3*4*ow*oh), at(frame)+at(3*4*ow*oh)+256
			c := start(t, Options{Bytes: 1 << 20, Access: access})
			if got := c.Status().Access; got != access {
				t.Fatalf("access is %q", got)
			}
			for i := range c.Memory() {
				c.Memory()[i] = byte(rand.Uint32())
			}
			p := core.Preprocess{Format: core.NV12, Width: w, Height: h, OutW: ow, OutH: oh, Fit: core.Letterbox, Pad: 9}
			luma := w * h
			planes := [3]core.Region{c.Region(0, luma), c.Region(luma, frame-luma)}
			boxes := []core.Box{{X1: 10, Y1: 10, Score: 0.5}, {X1: 10, Y1: 9, Score: 0.4, Anchor: 1}, {X0: 20, X1: 30, Y1: 9, Score: 0.3, Anchor: 2}}
			if err := core.PutBoxes(c.Memory()[boxesAt:], boxes); err != nil {
				t.Fatal(err)
			}
			kept := c.Memory()[boxesAt+1024:][:core.BoxesBytes(8)]
			for i := range kept {
				kept[i] = 0x5a
			}
			before := bytes.Clone(c.Memory())
			list := c.Draft().List().
				Preprocess(c.Region(tensorAt, 3*4*ow*oh), planes, &p).
				Reduce(c.Region(sumAt, 4), c.Region(tensorAt, 3*4*ow*oh), core.Sum).
				NMS(c.Region(boxesAt+1024, core.BoxesBytes(8)), c.Region(boxesAt, core.BoxesBytes(3)), core.NMSArgs{InMax: 3, Max: 8, Batch: 1, IoU: 0.5})
			if err := c.Run(0, list, limit); err != nil {
				t.Fatal(err)
			}

			dev, err := core.Open(core.Options{Backend: core.CPU})
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			here := newBufferWith(t, dev, before)
			s, err := dev.NewStream()
			if err != nil {
				t.Fatal(err)
			}
			hp := [3]core.Region{here.At(0, luma), here.At(luma, frame-luma)}
			err = s.List().Preprocess(here.At(tensorAt, 3*4*ow*oh), hp, &p).
				Reduce(here.At(sumAt, 4), here.At(tensorAt, 3*4*ow*oh), core.Sum).
				NMS(here.At(boxesAt+1024, core.BoxesBytes(8)), here.At(boxesAt, core.BoxesBytes(3)), core.NMSArgs{InMax: 3, Max: 8, Batch: 1, IoU: 0.5}).
				Submit()
			if err == nil {
				err = s.Wait(context.Background())
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(c.Memory(), here.Bytes()) {
				for i := range here.Bytes() {
					if here.Bytes()[i] != c.Memory()[i] {
						t.Fatalf("byte %d (tensor at %d, sum at %d, boxes at %d) is %d in the worker, %d here", i, tensorAt, sumAt, boxesAt, c.Memory()[i], here.Bytes()[i])
					}
				}
			}
		})
	}
}

// Resident memory stays with the device: only what a list names as shared is copied, once in each
// direction, and the counts are the device's own.
func TestResidentMemoryIsNotCopied(t *testing.T) {
	for _, tc := range []struct {
		backend string
		access  Access
		copies  bool
	}{{core.CPU, AccessDirect, false}, {core.CPU, AccessCopied, true}, {core.CPU, AccessStaged, true}, {core.Strict, "", true}} {
		c := start(t, Options{Device: core.Options{Backend: tc.backend}, Access: tc.access})
		const n, in, mid, out = 4096, 0, 8192, 16384
		for i := range n {
			c.Memory()[in+i], c.Memory()[mid+i] = byte(i), 7
		}
		was := c.Status().Copied
		for _, l := range []*core.List{
			c.Draft().List().Copy(c.Resident(mid, n), c.Region(in, n)),
			c.Draft().List().Copy(c.Resident(mid+n, n), c.Resident(mid, n)),
			c.Draft().List().Copy(c.Region(out, n), c.Resident(mid+n, n)),
		} {
			if err := c.Run(0, l, limit); err != nil {
				t.Fatal(err)
			}
		}
		if got := c.Memory()[out : out+n]; !bytes.Equal(got, c.Memory()[in:in+n]) {
			t.Errorf("%+v: the result is %v ...", tc, got[:8])
		}
		now := c.Status().Copied
		got := Copied{now.ToDevice - was.ToDevice, now.ToHost - was.ToHost, now.OnDevice - was.OnDevice}
		if want := (Copied{n, n, got.OnDevice}); tc.copies && (got != want || c.Memory()[mid] != 7) {
			t.Errorf("%+v: copied %+v, want %+v; resident memory in this process: %d", tc, got, want, c.Memory()[mid])
		}
		if !tc.copies && got.ToDevice+got.ToHost != 0 {
			t.Errorf("%+v: copied %+v", tc, got)
		}
	}
}

func newBufferWith(t *testing.T, dev *core.Device, data []byte) *core.Buffer {
	t.Helper()
	b, err := dev.Alloc(len(data), core.MemMapped)
	if err != nil {
		t.Fatal(err)
	}
	copy(b.Bytes(), data)
	return b
}

func TestAnInvalidListDoesNotEndTheWorker(t *testing.T) {
	c := start(t, Options{})
	dr := c.Draft()
	for name, l := range map[string]*core.List{
		"beyond the memory":     dr.List().Copy(c.Region(1<<16-8, 16), c.Region(0, 16)),
		"a buffer there is not": dr.List().Copy(dr.Buffer(99, 8, nil).All(), c.Region(0, 8)),
		"overlapping":           dr.List().Copy(c.Region(0, 8), c.Region(4, 8)),
	} {
		if err := c.Run(0, l, limit); !errors.Is(err, core.ErrInvalid) || IsWorkerFault(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := fill(c, 0, 8, 1).Submit(); !errors.Is(err, core.ErrClosed) {
		t.Errorf("a draft runs here: %v", err)
	}
	checkWorks(t, c)
	if st := c.Status(); st.Starts != 1 {
		t.Errorf("%d starts", st.Starts)
	}
}

// recorder remembers events.
type recorder struct {
	mu     sync.Mutex
	events []Event
}

func (r *recorder) tell(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) kinds() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var s []string
	for _, e := range r.events {
		k := string(e.Kind)
		if e.Cause != "" {
			k += ":" + string(e.Cause)
		}
		s = append(s, k)
	}
	return strings.Join(s, " ")
}

func TestALostWorkerIsReplaced(t *testing.T) {
	for _, tc := range []struct {
		name, faults string
		want         error
		cause        Cause
	}{
		{"hang", "launch:hang=2s", ErrTimeout, CauseHang},
		{"illegal address", "launch:fault", ErrSticky, CauseSticky},
		{"device lost", "device:lost", ErrSticky, CauseLost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var r recorder
			c := start(t, Options{OnEvent: r.tell})
			checkWorks(t, c)
			patience := limit
			if tc.cause == CauseHang {
				patience = 60 * time.Millisecond
			}
			err := c.InjectFaults(0, tc.faults, limit)
			if err == nil { // a lost device does not even take that
				err = c.Run(0, fill(c, 0, 8, 1), patience)
			}
			if !errors.Is(err, tc.want) || !IsWorkerFault(err) {
				t.Fatalf("unexpected error: %v", err)
			}
			checkWorks(t, c)
			st := c.Status()
			if st.Losses[tc.cause] != 1 || len(st.Losses) != 1 || st.Starts != 2 || !st.Healthy() || st.Cause != tc.cause {
				t.Errorf("status %+v", st)
			}
			want := fmt.Sprintf("started lost:%s started trusted", tc.cause)
			waitUntil(t, want, func() bool { return r.kinds() == want })
		})
	}
}

// A sticky error must not leave a process that only answers errors, whether it is
// killed or not.
func TestAWorkerWithALostDeviceExits(t *testing.T) {
	c := begin(t, Options{})
	var immortal atomic.Pointer[incarnation]
	c.launch = func(c *Client) (*incarnation, error) {
		in, err := c.spawnWrapped(func(p process) process { return unkillable{p} })
		if err == nil {
			immortal.CompareAndSwap(nil, in)
		}
		return in, err
	}
	ready(t, c)
	if err := c.InjectFaults(0, "launch:fault", limit); err != nil {
		t.Fatal(err)
	}
	if err := c.Run(0, fill(c, 0, 8, 1), limit); !errors.Is(err, ErrSticky) {
		t.Fatal(err)
	}
	// Without a kill only the worker itself can have ended it.
	waitUntil(t, "the worker ends", func() bool {
		select {
		case <-immortal.Load().reaped:
			return true
		default:
			return false
		}
	})
	checkWorks(t, c)
}

type unkillable struct{ process }

func (unkillable) kill() {}

func TestAKilledWorkerIsNoticedWithoutADeadline(t *testing.T) {
	c := start(t, Options{})
	if err := c.InjectFaults(0, "launch:hang=2s", limit); err != nil {
		t.Fatal(err)
	}
	done, began := make(chan error, 1), make(chan bool)
	go func() {
		done <- c.withWorker(func(in *incarnation) error {
			close(began)
			return c.runOn(in, 0, fill(c, 0, 8, 1), time.Hour)
		})
	}()
	<-began
	if err := unix.Kill(c.Status().PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrDied) || !strings.Contains(err.Error(), "killed") {
		t.Fatal(err)
	}
	checkWorks(t, c)
	if st := c.Status(); st.Losses[CauseSignal] != 1 {
		t.Errorf("status %+v", st)
	}
	// And when it does nothing.
	if err := unix.Kill(c.Status().PID, unix.SIGSEGV); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "it is noticed", func() bool { return c.Status().Losses[CauseSignal]+c.Status().Losses[CauseExit] == 2 })
	checkWorks(t, c)
}

func TestCallsFailAtOnceWhileAWorkerStarts(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "go")
	c := begin(t, Options{Command: []string{os.Args[0], "slow", gate}})
	list := fill(c, 0, 8, 1)
	for range 100 {
		if err := c.Run(0, list, time.Hour); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("a worker that is not there answers: %v", err)
		}
	}
	if st := c.Status(); st.State != StateStarting || st.Refused != 100 || !st.Healthy() {
		t.Errorf("status %+v", st)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ready(t, c)
	checkWorks(t, c)
}

func TestASlowStartIsALoss(t *testing.T) {
	c := begin(t, Options{
		Command: []string{os.Args[0], "slow", filepath.Join(t.TempDir(), "never")}, Start: 20 * time.Millisecond,
		Backoff: Backoff{First: time.Hour},
	})
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := c.WaitReady(ctx); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "not ready within 20ms") {
		t.Fatal(err)
	}
}

func TestAFailedStartReportsItsReason(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    Options
		want string
	}{
		{"device", Options{Device: core.Options{Faults: "init:fail"}}, "no backend"},
		{"memory", Options{Device: core.Options{Faults: "alloc:oom@bytes>1M"}, Bytes: 2 << 20, Access: AccessStaged}, "out of memory"},
		{"library", Options{Library: "/none", Models: []Model{{Path: "m.onnx"}}}, "no usable ONNX Runtime library"},
		{"program", Options{Command: []string{"/none/of/that/name"}}, "no such file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.o.Backoff = Backoff{First: time.Hour}
			c := begin(t, tc.o)
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			if err := c.WaitReady(ctx); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), tc.want) {
				t.Fatal(err)
			}
			if st := c.Status(); st.Losses[CauseStart] == 0 {
				t.Errorf("status %+v", st)
			}
		})
	}
}

func TestTooManyLossesStopTheBreaker(t *testing.T) {
	var r recorder
	c := begin(t, Options{
		Command: []string{"/bin/false"}, OnEvent: r.tell,
		Backoff: Backoff{First: time.Millisecond, Max: 4 * time.Millisecond, Limit: 7},
	})
	waitUntil(t, "it gives up", func() bool { return c.Status().State == StateFailed })
	st := c.Status()
	if st.Losses[CauseExit] != 8 || st.Starts != 0 || st.Healthy() || !strings.Contains(st.Why, "8 workers were lost") {
		t.Errorf("status %+v", st)
	}
	if err := c.Run(0, fill(c, 0, 8, 1), time.Hour); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	if n := strings.Count(r.kinds(), "lost"); n != 8 || !strings.HasSuffix(r.kinds(), "failed:exit") {
		t.Errorf("events: %s", r.kinds())
	}
}

func TestTheBreakerBacksOffExponentially(t *testing.T) {
	b := Backoff{}.withDefaults()
	var got []int
	for n := 1; n <= 9; n++ {
		got = append(got, int(b.wait(n)/time.Second))
	}
	if want := "[0 1 2 4 8 16 32 60 60]"; fmt.Sprint(got) != want {
		t.Errorf("seconds: %v, want %s", got, want)
	}
}

func TestANewWorkerIsTriedWithOneCall(t *testing.T) {
	c := start(t, Options{Lanes: 2})
	checkWorks(t, c)
	if err := unix.Kill(c.Status().PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "another is there", func() bool { return c.Status().State == StateTrial })
	in, out := make(chan bool), make(chan error)
	go c.withWorker(func(*incarnation) error { close(in); return <-out })
	<-in
	list := fill(c, 0, 8, 1)
	if err := c.Run(1, list, limit); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a second call beside the trial: %v", err)
	}
	out <- nil
	waitUntil(t, "it is trusted", func() bool { return c.Status().State == StateReady })
	if err := c.Run(1, list, limit); err != nil {
		t.Error(err)
	}
}

// stuck is a process that does not end when it is killed, as one that waits in a
// driver does.
type stuck struct {
	process
	end chan bool
}

func (s stuck) wait() (Cause, string) {
	cause, how := s.process.wait()
	<-s.end
	return cause, how
}

func TestCallersDoNotWaitForAStuckWorker(t *testing.T) {
	end := make(chan bool)
	c := begin(t, Options{})
	c.launch = func(c *Client) (*incarnation, error) {
		return c.spawnWrapped(func(p process) process { return stuck{p, end} })
	}
	ready(t, c)
	if err := c.InjectFaults(0, "launch:hang=2s", limit); err != nil {
		t.Fatal(err)
	}
	list := fill(c, 0, 8, 1)
	if err := c.Run(0, list, 10*time.Millisecond); !errors.Is(err, ErrTimeout) {
		t.Fatal(err)
	}
	if err := c.Run(0, list, time.Hour); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	waitUntil(t, "it is stuck", func() bool { return c.Status().State == StateStuck })
	if st := c.Status(); st.Healthy() || st.Starts != 1 {
		t.Errorf("status %+v", st)
	}
	close(end)
	checkWorks(t, c)
}

// hostile is a worker that attaches correctly and then violates the protocol.
func hostile(how string) {
	s := &server{exit: make(chan int, 1)}
	if err := s.mapMemory(); err != nil {
		os.Exit(exitProtocol)
	}
	go s.exitWithParent()
	h := headerAt(s.control)
	s.writeReport(startReport{Access: AccessDirect})
	switch how {
	case "hello":
		copy(answerOf(s.control), "{]")
	case "hello-long":
		atomic.StoreUint32(&h.answer, 1<<31)
	case "state":
		ringBell(&h.state, 7)
		select {}
	}
	ringBell(&h.state, stateReady)
	l := laneOf(s.control, 0)
	last := uint32(0)
	for {
		bell := atomic.LoadUint32(&l.req.bell)
		if bell == last {
			futexWait(&l.req.bell, last, -1)
			continue
		}
		last = bell
		a := &answer{seq: l.req.seq}
		switch how {
		case "bell":
			ringBell(&l.ans.bell, bell+17)
			continue
		case "seq":
			a.seq += 3
		case "code":
			a.code = -7
		case "length":
			a.bytes = 1 << 30
		case "sticky":
			a.sticky = 1
		case "text":
			a.code = 13
			for i := range a.msg {
				a.msg[i] = byte(200 + i%56)
			}
		}
		a.crc = a.sum(nil)
		if how == "sum" {
			a.crc++
		}
		if how == "noise" {
			rnd := rand.New(rand.NewPCG(1, uint64(bell)))
			b := bytesOf(l.ans)
			for i := range b {
				b[i] = byte(rnd.Uint32())
			}
			for i := range l.room {
				l.room[i] = byte(rnd.Uint32())
			}
			ringBell(&l.ans.bell, bell)
			continue
		}
		a.bell = atomic.LoadUint32(&l.ans.bell)
		*l.ans = *a
		ringBell(&l.ans.bell, bell)
	}
}

func TestMalformedAnswersAreDetected(t *testing.T) {
	for _, how := range []string{"hello", "hello-long", "state", "bell", "seq", "code", "length", "sticky", "sum", "noise"} {
		t.Run(how, func(t *testing.T) {
			c := begin(t, Options{Command: []string{os.Args[0], "hostile", how}, Backoff: Backoff{First: time.Millisecond, Limit: 3}})
			list := fill(c, 0, 8, 1)
			waitUntil(t, "it is given up", func() bool {
				if err := c.Run(0, list, limit); !IsWorkerFault(err) {
					t.Fatalf("it was believed: %v", err)
				}
				return c.Status().State == StateFailed
			})
			if st := c.Status(); st.Losses[CauseGarbage]+st.Losses[CauseStart] != 4 {
				t.Errorf("status %+v", st)
			}
		})
	}
	c := start(t, Options{Command: []string{os.Args[0], "hostile", "text"}})
	err := c.Run(0, fill(c, 0, 8, 1), limit)
	if err == nil || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == '�' }) {
		t.Errorf("words that are none are passed on: %q", err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(bytesOf(&answer{seq: 1}), []byte{})
	f.Fuzz(func(t *testing.T, b, room []byte) {
		var a answer
		copy(bytesOf(&a), b)
		if len(room) > roomBytes {
			room = room[:roomBytes]
		}
		if a.check(1, room) != nil {
			return
		}
		if a.seq != 1 || int(a.bytes) > len(room) {
			t.Fatalf("believed: %+v", a)
		}
		_ = a.sum(room[:a.bytes])
		if err := a.deviceError("op"); (err == nil) != (a.code == 0) {
			t.Fatalf("code %d is %v", a.code, err)
		}
	})
}

// parent is a program with a worker that is killed.
func parent() {
	c, err := New(Options{Device: core.Options{Backend: core.CPU}, Bytes: 4096, Lanes: 1, Command: []string{os.Args[0], Command}})
	if err != nil {
		os.Exit(1)
	}
	if _, err := c.Alloc(4096); err != nil {
		os.Exit(1)
	}
	c.Start()
	if c.WaitReady(context.Background()) != nil {
		os.Exit(1)
	}
	fmt.Println(c.Status().PID)
	select {}
}

func TestAWorkerExitsWithItsParent(t *testing.T) {
	cmd := exec.Command(os.Args[0], "parent")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var line [32]byte
	n, err := out.Read(line[:])
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil || !isRunning(pid) {
		t.Fatalf("worker %d: %v", pid, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	waitUntil(t, "the worker ends", func() bool { return !isRunning(pid) })
}

// A worker whose parent's thread ends without a signal has the pipe.
func TestAWorkerExitsWhenItsPipeCloses(t *testing.T) {
	c := start(t, Options{})
	in := c.now.Load()
	_ = in.proc.(*child).alive.Close()
	<-in.reaped
	if in.cause != CauseExit || !strings.Contains(in.why, "exit status 0") {
		t.Errorf("%s: %s", in.cause, in.why)
	}
}

// isRunning reports whether a process exists and is not a zombie.
func isRunning(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func TestAWorkerHasFewRightsAndIsKilledFirst(t *testing.T) {
	c := start(t, Options{})
	proc := fmt.Sprintf("/proc/%d/", c.Status().PID)
	for file, want := range map[string]string{
		"status": "NoNewPrivs:\t1\n", "oom_score_adj": strconv.Itoa(oomScore) + "\n", "limits": "Max core file size        0                    0 ",
	} {
		b, err := os.ReadFile(proc + file)
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s has no %q: %v\n%s", file, want, err, b)
		}
	}
	own, err := os.ReadFile("/proc/self/status")
	if err != nil || !strings.Contains(string(own), "NoNewPrivs:\t0\n") {
		t.Logf("the parent may not gain privileges either: %v", err)
	}
}

func TestLanesRunConcurrently(t *testing.T) {
	const lanes, rounds = 4, 50
	c := start(t, Options{Lanes: lanes})
	var wg sync.WaitGroup
	for n := range lanes {
		wg.Go(func() {
			for r := range rounds {
				v := byte(n*rounds + r)
				if err := c.Run(n, fill(c, n*4096, 4096, v), limit); err != nil {
					t.Error(err)
					return
				}
				if got := c.Memory()[n*4096:][:4096]; bytes.Count(got, []byte{v}) != 4096 {
					t.Errorf("lane %d: memory of another", n)
				}
			}
		})
	}
	wg.Wait()
	if a := c.Status().Answers; a != lanes*rounds {
		t.Errorf("%d answers", a)
	}
}

func TestCloseEndsCallsInProgress(t *testing.T) {
	c := start(t, Options{})
	if err := c.InjectFaults(0, "launch:hang=2s", limit); err != nil {
		t.Fatal(err)
	}
	pid := c.Status().PID
	done := make(chan error, 1)
	began := make(chan bool)
	go func() {
		close(began)
		done <- c.Run(0, fill(c, 0, 8, 1), time.Hour)
	}()
	<-began
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if isRunning(pid) {
		t.Error("the worker still runs")
	}
	if err := c.Run(0, c.Draft().List(), time.Hour); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestAMessageAllocatesNothing(t *testing.T) {
	c := start(t, Options{})
	list := fill(c, 0, 8, 1)
	if n := testing.AllocsPerRun(100, func() {
		if err := c.Run(0, list, limit); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// The report that a worker makes at start has its memory: what it shares, and the device's own.
func TestAWorkerReportsItsMemory(t *testing.T) {
	m := start(t, Options{Access: AccessStaged}).Status().Memory
	if m == nil || m.InUse != 2<<16 || m.Peak != 2<<16 || len(m.Modes) != 2 {
		t.Errorf("%+v", m)
	}
}

// InjectFaults replaces the faults of the worker's device. The next worker starts with
// those of Options.Device again.
func (c *Client) InjectFaults(lane int, spec string, limit time.Duration) error {
	return c.withWorker(func(in *incarnation) error {
		_, err := in.call(lane, opInject, []byte(spec), limit)
		return err
	})
}

func TestEveryWorkerIsWarmedUp(t *testing.T) {
	o := Options{Device: core.Options{Backend: core.CPU, Threads: 1}, Bytes: 4096, Lanes: 1, Command: []string{os.Args[0], Command}}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Alloc(4096); err != nil {
		t.Fatal(err)
	}
	c.Warm(fill(c, 0, 8, 7))
	c.Start()
	for range 2 {
		ready(t, c)
		if c.Memory()[0] != 7 {
			t.Error("ready before it was warm")
		}
		c.Memory()[0] = 0
		was := c.Status().Starts
		if err := unix.Kill(c.Status().PID, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, "another", func() bool { return c.Status().Starts > was })
	}
}

// footprint returns the figures that a leak would increase.
func footprint(t *testing.T) (files, maps int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	m, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds), strings.Count(string(m), "memfd:yoctune")
}

// TestRestartsLeakNothing restarts 20 times, or YOCTUNE_RESTARTS times.
func TestRestartsLeakNothing(t *testing.T) {
	rounds := 20
	if v := os.Getenv("YOCTUNE_RESTARTS"); v != "" {
		var err error
		if rounds, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	c := start(t, Options{Backoff: Backoff{First: time.Microsecond, Max: time.Microsecond, Limit: rounds + 1}})
	checkWorks(t, c)
	files, maps := footprint(t)
	rss := resident(t)
	for range rounds {
		was := c.Status().Starts
		if err := unix.Kill(c.Status().PID, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, "another worker", func() bool { return c.Status().Starts > was })
		checkWorks(t, c)
	}
	waitUntil(t, "as many files and maps as before", func() bool {
		f, m := footprint(t)
		return f <= files && m <= maps
	})
	if now := resident(t); now > rss+16<<20 {
		t.Errorf("resident memory grew from %d to %d bytes in %d restarts", rss, now, rounds)
	}
	t.Logf("%d restarts: %d files, %d maps, %d kB resident before, %d kB after", rounds, files, maps, rss>>10, resident(t)>>10)
}

func resident(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		t.Fatal(err)
	}
	return n * os.Getpagesize()
}
