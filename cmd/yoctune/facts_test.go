package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func runFacts(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newFactsCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestFactsShowTellsWhatIsNotVerified(t *testing.T) {
	for _, c := range []struct{ id, want string }{
		{"orin-nano-8gb", "NOT VERIFIED"},
		{"orin-nano-8gb", "1 25W*"},
		{"orin-nano-8gb", `modes of "R36.4 Super", verified`},
		{"agx-orin-64gb", "read for L4T 35.3.1: not verified here"},
		{"agx-orin-32gb", "machine-installs-64gb-file (verified)"},
		{"tx1", "no facts about its stock modes"},
		{"wrynose", "linux-noble-nvidia-tegra-rt"},
		{"walnascar", "debug-tweaks"},
		{"vm.swappiness", "0 to 200"},
		{"kernel.sched_latency_ns", "absent"},
	} {
		out, err := runFacts(t, "show", c.id)
		if err != nil {
			t.Errorf("show %s: %v", c.id, err)
		}
		if !strings.Contains(out, c.want) {
			t.Errorf("show %s does not say %q:\n%s", c.id, c.want, out)
		}
	}
}

func TestFactsShowSuggestsWhatWasMeant(t *testing.T) {
	for id, want := range map[string]string{
		"orin-nano":    "orin-nano-4gb, orin-nano-8gb",
		"vm.swapiness": "vm.swappiness",
		"scarthgab":    "scarthgap",
		"\x1b[31mred":  "no facts about",
	} {
		out, err := runFacts(t, "show", id)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("show %q: %v, want an error with %q", id, err, want)
		}
		if out != "" || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("show %q: output %q, error %q", id, out, err)
		}
	}
}

func TestFactsCheckFindsNoProblem(t *testing.T) {
	out, err := runFacts(t, "check")
	if err != nil || !strings.Contains(out, " 0 problems") {
		t.Errorf("check: %v\n%s", err, out)
	}
}

func TestFactsJSONIsOneTypedObjectALineAndASummaryLast(t *testing.T) {
	for _, args := range [][]string{
		{"list"}, {"list", "sysctls"}, {"show", "agx-xavier"}, {"show", "master"}, {"show", "vm.dirty_ratio"}, {"check"},
	} {
		out, err := runFacts(t, append(args, "--format", "json")...)
		if err != nil {
			t.Errorf("%v: %v", args, err)
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

func TestFactsRefusesUnknownFormatsAndKinds(t *testing.T) {
	for _, args := range [][]string{{"list", "--format", "xml"}, {"list", "carriers"}, {"show"}, {"show", "a", "b"}, {"check", "x"}} {
		if _, err := runFacts(t, args...); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
