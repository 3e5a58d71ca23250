package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/cli"
)

// benchRun is a session with bench, and what it printed.
func benchRun(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), append([]string{"bench"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

// edit changes a baseline.
func edit(t *testing.T, from, to string, change func(map[string]any)) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var b map[string]any
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	change(b)
	if data, err = json.Marshal(b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestBenchBaselineDecidesTheExitCode(t *testing.T) {
	dir := t.TempDir()
	base, out := filepath.Join(dir, "base.json"), filepath.Join(dir, "out.json")
	common := []string{"latency", "--backend", "cpu", "--samples", "12", "--format", "json"}
	code, stdout, stderr := benchRun(t, append(common, "--save-baseline", base, "-o", out)...)
	if code != cli.ExitDone || stdout != "" || !strings.Contains(stderr, "1 of 8: submit a list of 1") {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	written, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(written)) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		fields := []string{"name", "backend", "device", "bytes", "flops", "p50_ns", "p95_ns", "p99_ns", "reference", "ratio", "state", "clock"}
		if row["type"] == "summary" {
			fields = []string{"command", "device", "before", "after", "ceilings", "references", "missing", "measurements"}
		}
		for _, f := range fields {
			if _, ok := row[f]; !ok {
				t.Errorf("no %s in %s", f, line)
			}
		}
	}
	if !strings.Contains(string(written), `"type":"summary"`) {
		t.Errorf("no summary:\n%s", written)
	}

	// Four times as fast as before: noise cannot cause that, because the references were
	// measured in the same rounds.
	quick := filepath.Join(dir, "quick.json")
	edit(t, base, quick, func(b map[string]any) {
		for _, m := range b["measurements"].([]any) {
			times := m.(map[string]any)["times_ns"].([]any)
			for i, v := range times {
				times[i] = int64(v.(float64)) / 4
			}
		}
	})
	code, stdout, stderr = benchRun(t, append(common, "-q", "--baseline", quick)...)
	if code != cli.ExitNo || !strings.Contains(stdout, `"verdict":"slower"`) || !strings.Contains(stdout, `"exit":3`) || stderr != "" {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	// And when only ten times as long counts, nothing is slower.
	if code, stdout, _ = benchRun(t, append(common, "-q", "--baseline", base, "--min-effect", "900")...); code != cli.ExitDone || strings.Contains(stdout, `"verdict":"slower"`) {
		t.Errorf("exit %d\n%s", code, stdout)
	}

	other := filepath.Join(dir, "other.json")
	edit(t, base, other, func(b map[string]any) { b["device"].(map[string]any)["name"] = "Orin" })
	code, stdout, stderr = benchRun(t, append(common, "-q", "--baseline", other)...)
	if code != cli.ExitFailed || !strings.Contains(stderr, "cannot be compared with this run: device: Orin in the baseline") || !strings.Contains(stdout, `"type":"error"`) {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr = benchRun(t, "latency", "--baseline", filepath.Join(dir, "none")); code != cli.ExitFailed || !strings.Contains(stderr, "read the baseline") {
		t.Errorf("exit %d %s", code, stderr)
	}
	for _, args := range [][]string{{}, {"speed"}, {"latency", "--samples", "0"}, {"latency", "--min-effect", "-1"}, {"latency", "--backend", "metal"}} {
		if code, _, stderr := benchRun(t, args...); code != cli.ExitUsage {
			t.Errorf("%v: exit %d %s", args, code, stderr)
		}
	}
}

func TestBenchTextShowsCeilingsStateAndVerdicts(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base.json")
	code, stdout, stderr := benchRun(t, "bandwidth", "--backend", "cpu", "--samples", "1", "-q", "--save-baseline", base)
	if code != cli.ExitDone {
		t.Fatalf("exit %d %s", code, stderr)
	}
	for _, want := range []string{"copy host to host, 16 KiB", "memcpy of libc", "read, 64 MiB", "memory ceiling, up to 32 KiB", "arithmetic ceiling, f32", "state before: ", "state after:  "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}
