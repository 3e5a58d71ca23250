package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/cli"
)

func runFacts(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), append([]string{"facts"}, args...), &out, &errOut)
	return out.String(), errOut.String(), code
}

func TestFactsShowMarksWhatIsNotVerified(t *testing.T) {
	for _, c := range []struct{ id, want string }{
		{"orin-nano-8gb", "NOT VERIFIED"},
		{"orin-nano-8gb", "1 25W*"},
		{"orin-nano-8gb", `modes of "R36.4 Super", verified`},
		{"agx-orin-64gb", "from L4T 35.3.1; not verified for this release"},
		{"agx-orin-32gb", "machine-installs-64gb-file (verified)"},
		{"tx1", "no facts about its stock modes"},
		{"wrynose", "linux-noble-nvidia-tegra-rt"},
		{"walnascar", "debug-tweaks"},
		{"vm.swappiness", "0 to 200"},
		{"kernel.sched_latency_ns", "absent"},
	} {
		out, stderr, code := runFacts(t, "show", c.id)
		if code != cli.ExitDone {
			t.Errorf("show %s: exit %d: %s", c.id, code, stderr)
		}
		if !strings.Contains(out, c.want) {
			t.Errorf("show %s does not contain %q:\n%s", c.id, c.want, out)
		}
	}
}

func TestFactsShowSuggestsTheNearestName(t *testing.T) {
	for id, want := range map[string]string{
		"orin-nano":    "choose one of orin-nano-",
		"vm.swapiness": "vm.swappiness",
		"scarthgab":    "scarthgap",
		"\x1b[31mred":  "no facts about",
	} {
		out, stderr, code := runFacts(t, "show", id)
		if code != cli.ExitFailed || !strings.Contains(stderr, want) {
			t.Errorf("show %q: exit %d: %q, want an error with %q", id, code, stderr, want)
		}
		if out != "" || strings.Contains(stderr, "\x1b") {
			t.Errorf("show %q: output %q, error %q", id, out, stderr)
		}
	}
}

func TestFactsCheckFindsNoProblem(t *testing.T) {
	out, stderr, code := runFacts(t, "check")
	if code != cli.ExitDone || !strings.Contains(out, " 0 problems") {
		t.Errorf("check: exit %d: %s\n%s", code, stderr, out)
	}
}

func TestFactsJSONHasTypedLinesAndASummaryLast(t *testing.T) {
	for _, args := range [][]string{
		{"list"}, {"list", "sysctls"}, {"show", "agx-xavier"}, {"show", "master"}, {"show", "vm.dirty_ratio"}, {"check"},
	} {
		out, stderr, code := runFacts(t, append(args, "--format", "json")...)
		if code != cli.ExitDone {
			t.Errorf("%v: exit %d: %s", args, code, stderr)
			continue
		}
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		for i, line := range lines {
			var o struct {
				Type string `json:"type"`
			}
			if err := json.Unmarshal([]byte(line), &o); err != nil || o.Type == "" {
				t.Errorf("%v, line %d: %v in %.80s", args, i+1, err, line)
			}
			if (o.Type == "summary") != (i == len(lines)-1) {
				t.Errorf("%v, line %d of %d: type %s", args, i+1, len(lines), o.Type)
			}
		}
	}
}

func TestFactsUsageErrors(t *testing.T) {
	for _, args := range [][]string{
		{"list", "--format", "xml"}, {"list", "carriers"}, {"show"}, {"show", "a", "b"}, {"check", "x"}, {"nope"},
	} {
		if out, _, code := runFacts(t, args...); code != cli.ExitUsage || out != "" {
			t.Errorf("%v: exit %d, output %q, want %d and nothing", args, code, out, cli.ExitUsage)
		}
	}
}
