// Package nats starts the built programs on declared plans whose results go to other machines, ends them at random
// moments, and lets others read what arrived: nats-py, a client that knows nothing of them, and an HTTPS server.
package nats

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/schema/plan"
)

// Variables of the environment: the first, set to 1, makes tests without the client fail instead of skipping; the
// second is the number of times that a process is killed.
const (
	requireVariable = "YOCTUNE_REQUIRE_NATS"
	killsVariable   = "YOCTUNE_NATS_KILLS"
)

// programs is the folder with the built programs, and a NATS server.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "nats-programs-")
	if err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{"-o", filepath.Join(dir, "yoctuned"), "../../cmd/yoctuned"},
		{"-tags", "serve", "-o", filepath.Join(dir, "yoctuned-serve"), "../../cmd/yoctuned"},
		{"-o", filepath.Join(dir, "nats-server"), "github.com/nats-io/nats-server/v2"},
	} {
		if out, err := exec.Command("go", append([]string{"build"}, args...)...).CombinedOutput(); err != nil {
			return dir, fmt.Errorf("%w\n%s", err, out)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := programs(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// device is a folder that stands for a device, with a plan.
type device struct {
	t    *testing.T
	root string
	bin  string
}

// fast gives about 5,000 results a second, of one number each.
func fast(p *plan.Plan) { feed(p, "while head -c 400 /dev/zero; do sleep 0.02; done", 1) }

// feed lets a shell command write tensors of n numbers.
func feed(p *plan.Plan, shell string, n int64) {
	door := p.Pipelines["door"]
	door.Source.Exec, door.Source.Shape = []string{"/bin/sh", "-c", shell}, []int64{1, n}
	p.Pipelines["door"] = door
}

// newDevice writes a plan with one pipeline, door. It fills in what change leaves.
func newDevice(t *testing.T, change func(*plan.Plan, *plan.Delivery)) *device {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("/tmp", "nats") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	d := &plan.Delivery{Stream: "door", Subject: "results.door", Size: 512 << 20}
	p := &plan.Plan{Board: "orin-nano-8gb", Layer: "t", Target: "t", Release: "scarthgap",
		Cluster: &plan.Cluster{Name: "plant", Store: plan.ClusterStore{Size: 1 << 30}},
		Pipelines: map[string]plan.Pipeline{"door": {
			Source: plan.PipelineSource{Kind: "command", Format: "tensor", FPSNum: 1000, FPSDen: 1},
			Stages: []plan.PipelineStage{{ID: "r", Kind: "postprocess", Input: "source", Post: &plan.Post{Kind: "raw"}}},
			Sink:   plan.PipelineSink{Kind: "nats", NATS: d},
			Queue:  plan.PipelineQueue{Capacity: 4, Policy: "block"},
		}}}
	fast(p)
	change(p, d)
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	text, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"plan.json": string(text), "etc/machine-id": "0123456789abcdef0123456789abcdef\n", "proc/sys/kernel/hostname": "box\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(pipelines.Path(filepath.Join(root, pipelines.Dir), "door")), 0o755); err != nil {
		t.Fatal(err)
	}
	return &device{t, root, bin}
}

// process is a program that runs.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	log   *lockedText
	ended chan struct{}
}

type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func start(t *testing.T, env []string, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(program, args...), log: &lockedText{}, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.Env = append(append(os.Environ(), "GOMAXPROCS=2"), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	t.Cleanup(p.kill)
	return p
}

// kill ends the process as SIGKILL does, with the programs that it started.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
}

// stop ends the process as the service manager does.
func (p *process) stop() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		p.kill()
		p.t.Errorf("it did not stop:\n%s", p.log)
	}
}

func (d *device) cluster() *process {
	d.t.Helper()
	p := start(d.t, nil, filepath.Join(d.bin, "yoctuned-serve"), "cluster", "run", filepath.Join(d.root, "plan.json"), "--root", d.root)
	d.until("the server starts", p, func() bool { return strings.Contains(p.log.String(), " serves on ") })
	return p
}

// pipeline starts the smaller program, which starts the larger one.
func (d *device) pipeline(args ...string) *process {
	d.t.Helper()
	return start(d.t, nil, filepath.Join(d.bin, "yoctuned"),
		append([]string{"pipeline", "run", filepath.Join(d.root, "plan.json"), "door", "--root", d.root}, args...)...)
}

// delivery asks the pipeline for the state of its sink; nil while it does not answer.
func (d *device) delivery() *live.Delivery {
	s, err := pipelines.Read(pipelines.Path(filepath.Join(d.root, pipelines.Dir), "door"), live.Decode)
	if err != nil {
		return nil
	}
	return s.Delivery
}

func (d *device) until(what string, p *process, met func() bool) {
	d.t.Helper()
	for end := time.Now().Add(60 * time.Second); !met(); time.Sleep(20 * time.Millisecond) {
		select {
		case <-p.ended:
			d.t.Fatalf("%s: it ended:\n%s", what, p.log)
		default:
		}
		if time.Now().After(end) {
			d.t.Fatalf("not within a minute: %s\n%s", what, p.log)
		}
	}
}

// status is a part of what `cluster status` prints.
type status struct {
	Exit   int
	Remote struct{ State, Why string }
	Used   uint64 `json:"store_bytes"`

	Deliveries []struct {
		Batches, Bytes, Stored, Sent, Waiting, Lost uint64
		Why                                         string
	}
}

func (d *device) status(args ...string) (s status, ok bool) {
	d.t.Helper()
	out, err := exec.Command(filepath.Join(d.bin, "yoctuned-serve"), append([]string{"cluster", "status", "--root", d.root, "--format", "json"}, args...)...).Output()
	var failed *exec.ExitError
	if err != nil && (!errors.As(err, &failed) || failed.ExitCode() != 3) {
		return s, false
	}
	if err := json.Unmarshal(out, &s); err != nil || len(s.Deliveries) != 1 {
		d.t.Fatalf("%v: %s", err, out)
	}
	return s, true
}

// arrived is what the reader found.
type arrived struct {
	Messages, Results, First, Last, Doubled, Missing, Reversed, Dropped, IDs, Bytes uint64

	Encodings map[string]int
	Subjects  []string
}

// read reads a stream with nats-py.
func read(t *testing.T, url string, more ...string) arrived {
	t.Helper()
	python, err := filepath.Abs("../../build/nats-venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		if os.Getenv(requireVariable) == "1" {
			t.Fatal(err)
		}
		t.Skipf("%v: run scripts/setup.sh python", err)
	}
	cmd := exec.Command(python, append([]string{"reader.py", url, "door"}, more...)...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	var a arrived
	if err == nil {
		err = json.Unmarshal(out, &a)
	}
	if err != nil {
		t.Fatalf("nats-py: %v %s\n%s", err, out, complaint.String())
	}
	return a
}

// whole checks that every result up to the last arrived once, in order.
func (a arrived) whole(t *testing.T) {
	t.Helper()
	if a.First != 1 || a.Last != a.Results || a.Doubled+a.Missing+a.Reversed > 0 || a.IDs != a.Messages {
		t.Errorf("not every result arrived once in order: %+v", a)
	}
}

func kills(t *testing.T) int {
	n := 20
	if text := os.Getenv(killsVariable); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// freePort is an address that nothing uses.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// embedded is a change of the plan: the streams are on the device.
func embedded(address string) func(*plan.Plan, *plan.Delivery) {
	return func(p *plan.Plan, _ *plan.Delivery) {
		p.Cluster.Embedded, p.Cluster.Listen, p.Cluster.Plain = true, address, true
	}
}

// What the stream has acknowledged is there after the pipeline was killed, once and in order, and the next run
// continues the numbers.
func TestResultsArriveOnceAlthoughThePipelineIsKilled(t *testing.T) {
	address := freePort(t)
	d := newDevice(t, embedded(address))
	server := d.cluster()
	stored, total := uint64(0), kills(t)
	for range total {
		p := d.pipeline()
		d.until("results are stored", p, func() bool { s := d.delivery(); return s != nil && s.Stored > stored })
		for end := time.Now().Add(rand.N(150 * time.Millisecond)); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if s := d.delivery(); s != nil {
				stored = max(stored, s.Stored)
			}
		}
		p.kill()
	}
	a := read(t, "nats://"+address)
	a.whole(t)
	if a.Last < stored {
		t.Errorf("%d results were acknowledged, and the stream ends with %d", stored, a.Last)
	}
	if len(a.Subjects) != 1 || a.Subjects[0] != "results.door.82cf6b85a52b9496" {
		t.Errorf("subjects %v", a.Subjects)
	}
	server.stop()
	t.Logf("%d kills, %d results in %d messages", total, a.Results, a.Messages)
}

// While the server is away results wait in the pipeline, which loses none.
func TestResultsArriveOnceAlthoughTheServerIsKilled(t *testing.T) {
	address := freePort(t)
	d := newDevice(t, embedded(address))
	server, p := d.cluster(), d.pipeline()
	total := kills(t)
	for range total {
		before := d.delivery()
		d.until("results are stored", p, func() bool { s := d.delivery(); return s != nil && (before == nil || s.Stored > before.Stored) })
		time.Sleep(rand.N(150 * time.Millisecond))
		server.kill()
		server = d.cluster()
	}
	p.stop()
	out := p.log.String()
	a := read(t, "nats://"+address)
	a.whole(t)
	var frames, done int
	if _, err := fmt.Sscanf(out[strings.Index(out, "door: ")+6:], "%d frames read: %d done", &frames, &done); err != nil || done != int(a.Results) {
		t.Errorf("%d frames were done, and %d results arrived: %v\n%s", done, a.Results, err, out)
	}
	t.Logf("%d kills, %d results in %d messages", total, a.Results, a.Messages)
}

// hub starts a NATS server that knows nothing of yoctune.
func hub(t *testing.T, bin, dir, address string, more ...string) *process {
	t.Helper()
	host, port, _ := net.SplitHostPort(address)
	p := start(t, nil, filepath.Join(bin, "nats-server"), append([]string{"-a", host, "-p", port, "-js", "-sd", dir}, more...)...)
	for end := time.Now().Add(20 * time.Second); !strings.Contains(p.log.String(), "Server is ready"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the hub did not start:\n%s", p.log)
		}
	}
	return p
}

// Results wait on the device until the cluster has them, whichever of the three programs is killed.
func TestResultsReachAClusterElsewhereOnce(t *testing.T) {
	address, dir := freePort(t), t.TempDir()
	d := newDevice(t, func(p *plan.Plan, n *plan.Delivery) {
		p.Cluster.URL = "nats://" + address
		n.Codec, n.Level = "zstd", 2
	})
	server, p := d.cluster(), d.pipeline()
	// No cluster at first.
	d.until("results wait", server, func() bool {
		s, ok := d.status()
		return ok && s.Exit == 3 && s.Remote.State == "disconnected" && s.Remote.Why != "" && s.Deliveries[0].Waiting > 2000
	})
	far := hub(t, d.bin, dir, address)
	for i := range kills(t) {
		before, _ := d.status()
		d.until("results are sent", server, func() bool {
			s, ok := d.status()
			return ok && len(before.Deliveries) == 1 && s.Deliveries[0].Sent > before.Deliveries[0].Sent
		})
		time.Sleep(rand.N(100 * time.Millisecond))
		switch i % 3 {
		case 0:
			far.kill()
			far = hub(t, d.bin, dir, address)
		case 1:
			server.kill()
			server = d.cluster()
		case 2:
			p.kill()
			p = d.pipeline()
		}
	}
	p.stop()
	out, err := exec.Command(filepath.Join(d.bin, "yoctuned-serve"), "cluster", "drain", "--root", d.root, "--timeout", "30s").CombinedOutput()
	if err != nil {
		t.Fatalf("drain: %v\n%s\n%s", err, out, server.log)
	}
	s, _ := d.status()
	a := read(t, "nats://"+address)
	a.whole(t)
	if a.Last != s.Deliveries[0].Stored || s.Deliveries[0].Batches != 1 {
		t.Errorf("the device has %+v, and the cluster ends with %d", s.Deliveries[0], a.Last)
	}
	if a.Encodings["zstd"] == 0 {
		t.Errorf("encodings %v", a.Encodings)
	}
	t.Logf("%d results in %d messages, %v", a.Results, a.Messages, a.Encodings)
}

// A full outbox drops the oldest results, counts them, and the rest arrives in order.
func TestAFullOutboxDropsTheOldest(t *testing.T) {
	address := freePort(t)
	d := newDevice(t, func(p *plan.Plan, n *plan.Delivery) {
		p.Cluster.URL = "nats://" + address
		n.Outbox, n.Records = 4<<20, 10
		feed(p, "while head -c 400000 /dev/zero; do sleep 0.02; done", 1000)
	})
	server, p := d.cluster(), d.pipeline()
	var full status
	d.until("the outbox is full", server, func() bool {
		s, ok := d.status()
		full = s
		return ok && s.Deliveries[0].Stored > 8000
	})
	p.stop()
	if full.Deliveries[0].Bytes > 4<<20 {
		t.Errorf("the outbox has %d bytes", full.Deliveries[0].Bytes)
	}
	hub(t, d.bin, t.TempDir(), address)
	out, _ := exec.Command(filepath.Join(d.bin, "yoctuned-serve"), "cluster", "drain", "--root", d.root, "--timeout", "30s").CombinedOutput()
	s, _ := d.status()
	a := read(t, "nats://"+address)
	if s.Deliveries[0].Lost == 0 || a.First != s.Deliveries[0].Lost+1 || a.Last != s.Deliveries[0].Stored || a.Doubled+a.Missing+a.Reversed > 0 {
		t.Errorf("lost %d, arrived %+v\n%s", s.Deliveries[0].Lost, a, out)
	}
}
