package inference

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// bench pipeline sends requests of its own, judges the objectives, and exits 3 for one that is missed.
func TestBenchJudgesTheObjectivesOfRequests(t *testing.T) {
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.onnx"), identity(4, false), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		slo  plan.PipelineSLO
		exit int
		want []string
	}{
		{plan.PipelineSLO{LatencyP50: 10e9, LatencyP99: 10e9, MinFPS: 1, Memory: 8 << 30}, 0, []string{"slo latency p50: met", "slo latency p99: met", "slo rate: met", "slo memory: met"}},
		{plan.PipelineSLO{LatencyP95: 1, MinFPS: 1}, 3, []string{"slo latency p95: missed", "slo rate: met"}},
	} {
		p := id4(1, 2)
		p.Sink.Kind, p.Source.Kind, p.SLO = "reply", "request", &c.slo
		p.Source.Request.Model = "m"
		whole := plan.Plan{Board: "orin-nano-8gb", Layer: "t", Target: "t", Release: "scarthgap", Pipelines: map[string]plan.Pipeline{"m": p}}
		if err := whole.Seal(); err != nil {
			t.Fatal(err)
		}
		text, err := whole.Encode()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "plan.json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(bin, "yoctuned"), "bench", "pipeline", file, "--callers", "3", "--duration", "1s", "--library", models.Library(t))
		cmd.Env = append(os.Environ(), "RUNTIME_DIRECTORY="+dir)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != c.exit {
			t.Errorf("exit %d, want %d: %s", cmd.ProcessState.ExitCode(), c.exit, out)
		}
		for _, want := range append(c.want, "0 dropped, 0 failed") {
			if !strings.Contains(string(out), want) {
				t.Errorf("no %q in %s", want, out)
			}
		}
	}
}
