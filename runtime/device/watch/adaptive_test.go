package watch_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/histogram"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/schema/plan"
)

const (
	gpuLoad = "/sys/devices/platform/bus@0/17000000.gpu/load"
	gpuMax  = "/sys/devices/platform/bus@0/17000000.gpu/devfreq/17000000.gpu/max_freq"
	cooler  = "/sys/class/thermal/cooling_device1/cur_state" // of the first CPU policy
)

func ladderPlan(ladder ...string) *plan.Plan {
	const quick = int64(100 * time.Millisecond)
	return &plan.Plan{
		Layer: "vision", Target: "line-camera", Settings: []plan.Setting{sysctl("vm.swappiness", "10", plan.Enforce)},
		Power: &plan.Power{Table: "stock", Default: ladder[0], Modes: []plan.PowerMode{}, Adaptive: &plan.Adaptive{
			UpLoad: 80, UpFor: quick, DownLoad: 40, DownFor: quick, Ladder: ladder,
		}},
	}
}

func set(t *testing.T, root *rootfs.Root, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root.Dir(), name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (h *recorder) waitForSwitch(t *testing.T) watch.Event {
	t.Helper()
	late := time.After(2 * patience)
	for {
		select {
		case e := <-h.events:
			if e.Type == watch.Switched {
				return e
			}
		case err := <-h.problems:
			t.Logf("problem: %v", err)
		case <-late:
			t.Fatal("the power mode was not switched")
		}
	}
}

func TestPowerModeFollowsLoadAndHeat(t *testing.T) {
	root := tree(t)
	set(t, root, gpuLoad, "900\n")
	p := ladderPlan("15W", "25W")
	t.Run("enforced", func(t *testing.T) {
		h := startPlan(t, root, p)
		if e := h.waitForSwitch(t); e.Wanted != "25W" || e.Found != "15W" || e.Outcome != outcome.OK || !strings.Contains(e.Message, "load was 80 % or more") {
			t.Errorf("%+v", e)
		}
		if c, err := root.Read(gpuMax); err != nil || strings.TrimSpace(c.Text) != "918000000" {
			t.Errorf("%q %v", c.Text, err)
		}
		// Verify of another process compares with the mode in force.
		if results := enforce.Verify(root, p, enforce.Options{Root: true}); !enforce.Satisfied(results) {
			t.Errorf("%+v", results)
		}
		if c, err := root.Read("/var/lib/nvpmodel/status"); err != nil || strings.TrimSpace(c.Text) != "pmode:0000" {
			t.Errorf("the next boot starts in %q, %v", c.Text, err)
		}
		set(t, root, cooler, "3\n")
		if e := h.waitForSwitch(t); e.Wanted != "15W" || !strings.Contains(e.Message, "heat") {
			t.Errorf("%+v", e)
		}
	})
	set(t, root, cooler, "0\n")
	if c, err := root.Read(gpuMax); err != nil || strings.TrimSpace(c.Text) != "612000000" {
		t.Errorf("afterwards: %q %v", c.Text, err)
	}
}

func TestLatePipelineRaisesThePowerMode(t *testing.T) {
	root := tree(t)
	set(t, root, gpuLoad, "0\n")
	p := ladderPlan("15W", "25W")
	p.Pipelines = map[string]plan.Pipeline{"door": {SLO: &plan.PipelineSLO{LatencyP95: 33e6}}}
	// Between two readings the pipeline finishes ten frames of 50 ms each.
	serveProgress(t, pipelines.Path(filepath.Join(root.Dir(), pipelines.Dir), "door"), func(n uint64) pipelines.Progress {
		return pipelines.Progress{
			Type: "pipeline", Pipeline: "door", PID: 7, At: int64(n) * 1e9, Up: int64(n) * 1e9, Target: new(int64(33e6)),
			Latency: histogram.Histogram{Count: 10 * n, Sum: int64(n) * 500e6, Buckets: [][2]uint64{{uint64(histogram.Bucket(50e6)), 10 * n}}},
		}
	})
	h := startPlan(t, root, p)
	if e := h.waitForSwitch(t); e.Wanted != "25W" || !strings.Contains(e.Message, `pipeline "door" missed its latency`) {
		t.Errorf("%+v", e)
	}
}

// serveProgress answers each connection to a socket, the n-th with make(n).
func serveProgress(t *testing.T, path string, make func(n uint64) pipelines.Progress) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for n := uint64(1); ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = json.NewEncoder(conn).Encode(make(n))
			_ = conn.Close()
		}
	}()
}

func TestStepThatNeedsARebootIsSkipped(t *testing.T) {
	root := tree(t)
	conf := filepath.Join(root.Dir(), "etc/nvpmodel.conf")
	b, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	// The last mode gates another part of the GPU.
	i := strings.LastIndex(string(b), "TPC_PG_MASK 240")
	if err := os.WriteFile(conf, []byte(string(b[:i])+"TPC_PG_MASK 252"+string(b[i+len("TPC_PG_MASK 240"):])), 0o644); err != nil {
		t.Fatal(err)
	}
	h := startPlan(t, root, ladderPlan("15W", "MAXN_SUPER"))
	for _, want := range []string{"mode MAXN_SUPER is left out: needs a reboot: ", "fewer than two modes"} {
		select {
		case err := <-h.problems:
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		case <-time.After(patience):
			t.Fatalf("no problem was reported about %q", want)
		}
	}
}
