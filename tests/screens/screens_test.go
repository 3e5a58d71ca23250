package screens

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/schema/plan"
)

func TestMonitorDrawsThePagesAndRestoresTheTerminal(t *testing.T) {
	tree := board(t, "agx-orin-64gb")
	write(t, tree, "proc/sys/kernel/hostname", "bench-7\n")
	write(t, tree, "proc/812/stat", "812 (vision) S 1 1 1 0 -1 4194560 9 0 0 0 1 2 0 0 20 0 3 0 5 99999 10000 184\n")
	write(t, tree, "sys/block/zram0/mm_stat", "1073741824 268435456 289406976 0 289406976 0 0 0\n")
	p := start(t, 100, 40, nil, "yoctuned", "monitor", "--root", tree, "--interval", "100ms")
	text := p.sees("history")
	for _, want := range []string{
		"bench-7  NVIDIA Jetson AGX Orin", "L4T 36.4.0  kernel 5.15.148-l4t",
		"power mode MODE_30W", "VIN_SYS_5V0 1.61 W", "612 MHz", "slowed at 99 °C, off at 104.5 °C", "zram 1 GiB in 276 MiB", "enforcer no plan is installed",
		"vision", "39 MiB", "q quit  ? help  p pause",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	p.await("the curve grows", regexp.MustCompile(`gpu load +[▁▂▃▄▅▆▇█ ]{3,} `).MatchString)
	// A serial line is slow: what does not change is written once.
	if n := strings.Count(p.printed(), "VDD_GPU_SOC"); n != 1 {
		t.Errorf("the row of rails was written %d times", n)
	}
	p.press("?")
	p.sees("quit; also Escape, Ctrl-C")
	p.press("2")
	p.await("page of processes", func(s string) bool {
		return strings.Contains(s, "(by CPU)") && !strings.Contains(s, "VIN_SYS_5V0")
	})
	p.press("m")
	p.sees("(by memory)")
	p.press("\t")
	p.await("page of history", func(s string) bool {
		return strings.Contains(s, "rail VIN_SYS_5V0") && !strings.Contains(s, "(by memory)")
	})
	p.press("p")
	p.sees("PAUSED: p continues")
	p.press("q")
	if code := p.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.restored()
}

// What ends a screen restores the terminal; a signal too.
func TestEveryEndRestoresTheTerminal(t *testing.T) {
	for name, end := range map[string]func(*pane){
		"q":       func(p *pane) { p.press("q") },
		"Ctrl-C":  func(p *pane) { p.press("\x03") },
		"Escape":  func(p *pane) { p.press("\x1b") },
		"SIGTERM": func(p *pane) { _ = p.cmd.Process.Signal(unix.SIGTERM) },
		"SIGHUP":  func(p *pane) { _ = p.cmd.Process.Signal(unix.SIGHUP) },
	} {
		for _, args := range [][]string{{"monitor"}, {"pipeline", "top"}, {"pipeline", "top", "door"}} {
			t.Run(name+" "+strings.Join(args, " "), func(t *testing.T) {
				t.Parallel()
				p := start(t, 80, 24, nil, append([]string{"yoctuned", "--root", board(t, "orin-nano-8gb")}, args...)...)
				p.sees("q quit")
				end(p)
				if code := p.exits(); code != 0 {
					t.Errorf("exit code %d", code)
				}
				p.restored()
			})
		}
	}
}

func TestPipelineTopShowsWhatItWaitsFor(t *testing.T) {
	tree := board(t, "orin-nano-8gb")
	p := start(t, 70, 24, nil, "yoctuned", "pipeline", "top", "door", "--root", tree)
	p.await("where it looks", func(text string) bool {
		return strings.Contains(text, `waiting for pipeline "door": nobody listens on`) && strings.Contains(text, "/run/yoctune-pipeline/door/socket")
	})
}

// The pane follows the enforcer: it runs, it is killed.
func TestMonitorShowsWhoEnforces(t *testing.T) {
	tree := board(t, "orin-nano-8gb")
	file := makePlan(t, tree, "/proc/sys/vm/swappiness\t11\n")
	enforcer := exec.Command(filepath.Join(bin, "yoctuned"), "enforce", "--root", tree, file)
	if err := enforcer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = enforcer.Process.Kill() })
	p := start(t, 120, 30, nil, "yoctuned", "monitor", "--root", tree, "--interval", "100ms")
	p.sees(fmt.Sprintf("enforcer by pid %d; 0 drifts", enforcer.Process.Pid))
	write(t, tree, "proc/sys/vm/swappiness", "77\n")
	p.sees("vm.swappiness 77 by ")
	_ = enforcer.Process.Kill()
	_ = enforcer.Wait()
	p.sees(fmt.Sprintf("enforcer no longer; nobody enforces the plan: pid %d ended unexpectedly; its last state is ", enforcer.Process.Pid))
	if strings.Contains(p.text(), "by pid") {
		t.Error(p.text())
	}
}

const slowPipeline = `{"layer": "demo", "target": "cam", "board": "orin-nano-8gb", "release": "scarthgap", "l4t": "36.4.0", "serial": 7, "settings": [],
 "pipelines": {"slow": {
  "source": {"kind": "synthetic", "format": "nv12", "width": 320, "height": 240, "fps_num": 30, "fps_den": 1, "live": true},
  "queue": {}, "slo": {"latency_p95": 1000, "min_fps": 1000},
  "stages": [{"id": "pre", "kind": "preprocess", "input": "source", "preprocess": {"width": 32, "height": 32}},
             {"id": "out", "kind": "postprocess", "input": "pre", "post": {"kind": "raw"}}],
  "sink": {"kind": "ndjson", "path": "/dev/null"}}}}`

// The pane waits for the pipeline, marks the objectives that it misses, and shows its end.
func TestPipelineTopMarksMissedObjectives(t *testing.T) {
	tree := board(t, "orin-nano-8gb")
	var pl plan.Plan
	if err := json.Unmarshal([]byte(slowPipeline), &pl); err != nil {
		t.Fatal(err)
	}
	if err := pl.Seal(); err != nil {
		t.Fatal(err)
	}
	b, err := pl.Encode()
	if err != nil {
		t.Fatal(err)
	}
	write(t, tree, "slow.json", string(b))
	p := start(t, 100, 40, nil, "yoctuned", "pipeline", "top", "slow", "--root", tree, "--interval", "200ms")
	p.sees("no pipeline is running")
	pipeline := exec.Command(filepath.Join(bin, "yoctuned"), "pipeline", "run", "--root", tree, filepath.Join(tree, "slow.json"))
	if err := pipeline.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pipeline.Process.Kill() })
	text := p.sees("slo      MISSED")
	for _, want := range []string{"1 pipeline running", "at most 0.00 ms wanted", "fps, at least 1000 wanted", "source ", "pre "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if !strings.Contains(p.printed(), "\x1b[31mMISSED") {
		t.Error("a missed objective is not red")
	}
	_ = pipeline.Process.Kill()
	_ = pipeline.Wait()
	p.sees(`waiting for pipeline "slow"`)
	p.press("q")
	if code := p.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.restored()
}

// makePlan makes a plan of kernel files and values.
func makePlan(t *testing.T, tree, table string) (file string) {
	t.Helper()
	write(t, tree, "plan.tsv", table)
	file = filepath.Join(tree, "plan.json")
	run(t, "plan", filepath.Join(bin, "yoctune"), "plan", "--knobs", filepath.Join(tree, "plan.tsv"), "-o", file)
	return file
}

// Lines fit every width, and follow a resize.
func TestMonitorFollowsTheSizeOfTheTerminal(t *testing.T) {
	tree := board(t, "agx-orin-64gb")
	p := start(t, 80, 24, nil, "yoctuned", "monitor", "--root", tree, "--interval", "100ms")
	p.sees("q quit")
	for _, columns := range []int{40, 60, 80, 120, 200, 40} {
		rows := 30
		p.resize(columns, rows)
		text := p.await(fmt.Sprintf("%d columns", columns), func(text string) bool {
			lines := strings.Split(text, "\n")
			return len(lines) == rows && strings.Contains(lines[rows-1], "q quit") && strings.Contains(lines[0], "NVIDIA Jetson AGX")
		})
		// A broken line would begin with the rest of a row in place of a label.
		for _, line := range strings.Split(text, "\n") {
			if !regexp.MustCompile(`^$|^ {9}|^(cpu|gpu|emc|memory|power|temp|fan|slowed|waits|enforcer|process|history) `).MatchString(line) {
				t.Errorf("%d columns: %q in\n%s", columns, line, text)
			}
		}
	}
	p.resize(40, 12)
	p.await("that more lines are below", regexp.MustCompile(`↓ \d+ more`).MatchString)
	p.press("\x1b[6~\x1b[6~\x1b[6~\x1b[6~\x1b[6~\x1b[6~")
	p.await("the last lines", func(text string) bool { return !strings.Contains(text, "↓") && strings.Contains(text, "history") })
	p.press("q")
	p.exits()
	p.restored()
}

// A locale without UTF-8 has no blocks and degrees.
func TestScreenOfACLocaleIsASCII(t *testing.T) {
	p := start(t, 80, 30, []string{"LANG=C"}, "yoctuned", "monitor", "--root", board(t, "orin-nano-8gb"), "--interval", "100ms")
	text := p.sees("##........")
	p.press("q")
	p.exits()
	for _, r := range p.printed() {
		if r > 126 {
			t.Fatalf("%q in\n%s", r, text)
		}
	}
}

// A terminal that cannot move its cursor gets lines.
func TestDumbTerminalGetsPlainLines(t *testing.T) {
	p := start(t, 200, 30, []string{"TERM=dumb"}, "yoctuned", "monitor", "--root", board(t, "orin-nano-8gb"), "--interval", "100ms", "--duration", "500ms")
	p.sees("gpu load 12.5 %")
	if code := p.exits(); code != 0 || strings.Contains(p.printed(), "\x1b") {
		t.Errorf("exit code %d, %q", code, p.printed())
	}
}

// Without a terminal each sample is a line; nothing moves the cursor.
func TestPipeGetsPlainLines(t *testing.T) {
	tree := board(t, "orin-nano-8gb")
	for _, args := range [][]string{
		{"monitor", "--interval", "100ms", "--duration", "400ms"}, {"pipeline", "top", "--interval", "100ms", "--timeout", "300ms"},
	} {
		cmd := exec.Command(filepath.Join(bin, "yoctuned"), append(args, "--root", tree)...)
		cmd.Env = []string{"TERM=xterm", "LANG=C.UTF-8"}
		out, _ := cmd.CombinedOutput() // pipeline top ends with 1: none was running
		if text := string(out); strings.Contains(text, "\x1b") || !regexp.MustCompile(`gpu load 12.5 %|waiting for a pipeline: nobody listens on`).MatchString(text) {
			t.Errorf("%v: %q", args, text)
		}
	}
}

// Colours are there on a terminal, and each of them stands beside a word or sign.
func TestColoursOfTables(t *testing.T) {
	tree, project := board(t, "orin-nano-8gb"), t.TempDir()
	file := makePlan(t, tree, "/proc/sys/vm/swappiness\t11\n/proc/sys/vm/dirty_ratio\t20\n")
	run(t, "init", filepath.Join(bin, "yoctune"), "init", project, "--name", "demo")
	broken := t.TempDir()
	run(t, "init", filepath.Join(bin, "yoctune"), "init", broken, "--name", "broken")
	write(t, broken, "wrong.cue", "package broken\n\ntargets: device: cpu: governor: 7\n")
	layer := filepath.Join(project, "layer")
	run(t, "build", filepath.Join(bin, "yoctune"), "build", project, "-o", layer, "--runtime", programs)
	config, err := os.ReadFile(filepath.Join(project, "config.cue"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, project, "config.cue", strings.Replace(string(config), `"vm.dirty_ratio":            10`, `"vm.swappiness":             10`, 1))
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"yoctuned", "verify", file, "--root", tree}, []string{"\x1b[1moutcome", "\x1b[31mdiffers", "\x1b[32mok"}},
		{[]string{"yoctuned", "doctor", "--root", tree, "--duration", "100ms"}, []string{"\x1b[32mok "}},
		{[]string{"yoctune", "vet", broken}, []string{"\x1b[1m\x1b[31merror["}},
		{[]string{"yoctune", "review", project, layer, "--runtime", programs}, []string{"\x1b[1m", "\x1b[32m+ ", "\x1b[31m- "}},
		{[]string{"yoctune", "diff", project, layer, "--runtime", programs}, []string{"\x1b[1m+++ ", "\x1b[32m+", "\x1b[31m-", "\x1b[36m@@ "}},
	} {
		t.Run(strings.Join(c.args[:2], " "), func(t *testing.T) {
			p := start(t, 60, 200, nil, c.args...)
			p.exits()
			for _, want := range c.want {
				p.await(fmt.Sprintf("%q in %q", want, p.printed()), func(string) bool { return strings.Contains(p.printed(), want) })
			}
			plain := start(t, 60, 200, []string{"NO_COLOR=1"}, c.args...)
			plain.exits()
			plain.await("output", func(text string) bool { return text != "" })
			if strings.Contains(plain.printed(), "\x1b") {
				t.Errorf("NO_COLOR: %q", plain.printed())
			}
		})
	}
}

// Tables are as wide as the terminal.
func TestTablesFitTheTerminal(t *testing.T) {
	tree := board(t, "orin-nano-8gb")
	file := makePlan(t, tree, "/proc/sys/vm/swappiness\t11\n/proc/sys/net/ipv4/tcp_rmem\t4096 131072 99999999\n/proc/sys/kernel/no_such_parameter_of_any_kernel\t1\n")
	for _, args := range [][]string{{"verify", file}, {"doctor", "--duration", "100ms"}} {
		for _, columns := range []int{40, 60, 200} {
			p := start(t, columns, 200, []string{"NO_COLOR=1"}, append([]string{"yoctuned", "--root", tree}, args...)...)
			p.exits()
			p.await("the table", func(string) bool { return strings.Contains(p.printed(), "\n"+args[0]+":") })
			for _, line := range strings.Split(p.printed(), "\r\n") { // the pane would break longer ones
				// The last line is a sentence, which the terminal breaks, as a long word.
				if n := len([]rune(line)); n > columns && !strings.HasPrefix(line, args[0]+":") && len(strings.Fields(line)) > 1 {
					t.Errorf("%v in %d columns: %d in %q", args, columns, n, line)
				}
			}
		}
	}
}

// programs is a folder of stand-ins for the programs that a layer contains.
const programs = "../../golden/runtime"

func write(t *testing.T, tree, name, text string) {
	t.Helper()
	file := filepath.Join(tree, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, what string, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, out)
	}
}
