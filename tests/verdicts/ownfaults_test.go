package verdicts

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/compiler"
)

// states are the folders of this machine that yoctuned keeps its state in.
var states = []string{"/run/yoctune", "/var/lib/yoctune", "/etc/yoctune", "/usr/lib/yoctune"}

// listStates returns every file of the folders with its time.
func listStates(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for _, dir := range states {
		err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil // absent, or another program removed it
			}
			if info, err := e.Info(); err == nil {
				fmt.Fprintf(&out, "%s %v %d\n", name, info.ModTime(), info.Size())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// With --root, every command of the program leaves the state of this machine as it is.
func TestCommandsWithARootDoNotWriteToThisMachine(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"yoctune", "yoctuned"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, name), "../../cmd/"+name).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	root, plan := filepath.Join(dir, "root"), filepath.Join(dir, "plan.json")
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, name), args...)
		out, _ := cmd.CombinedOutput() // some of them refuse, and must not write either
		return string(out)
	}
	if out := run("yoctune", "facts", "tree", "orin-nano-8gb", "-o", root); !strings.Contains(out, "synthetic device") {
		t.Fatal(out)
	}
	if out := run("yoctune", "plan", "../../examples/video-analytics", "-o", plan); !strings.Contains(out, "settings") {
		t.Fatal(out)
	}
	before := listStates(t)
	for _, args := range [][]string{
		{"status"}, {"doctor"}, {"apply", plan}, {"verify", plan}, {"status", plan}, {"why", "vm.swappiness"}, {"rollback"},
		{"apply", "--try", "1s", plan}, {"confirm"}, {"rollback"}, {"probe"}, {"monitor", "--once"}, {"keygen"}, {"tiers"},
	} {
		run("yoctuned", append(args, "--root", root)...)
	}
	enforcer := exec.Command(filepath.Join(dir, "yoctuned"), "enforce", plan, "--root", root)
	if err := enforcer.Start(); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(root, "run/yoctune/watch.json")
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(own); err == nil {
			break
		}
	}
	_ = enforcer.Process.Signal(os.Interrupt)
	_ = enforcer.Wait()
	if _, err := os.Stat(filepath.Join(root, "run/yoctune")); err != nil {
		t.Errorf("the commands kept no state below their root: %v", err)
	}
	if after := listStates(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// Functions and tasks are in a layer once, however many machines it has. What a machine has of its own
// are values and lists, among them that of the files of pipelines to install, under its override.
func TestMachinesShareTheFunctionsOfALayer(t *testing.T) {
	example, err := os.ReadFile("../../examples/video-analytics/config.cue")
	if err != nil {
		t.Fatal(err)
	}
	machines := func(n int) map[string][]byte {
		files := map[string][]byte{}
		err := fs.WalkDir(os.DirFS("../../examples/video-analytics"), ".", func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(name) == ".go" {
				return err
			}
			files[name], err = os.ReadFile(filepath.Join("../../examples/video-analytics", name))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		head, rest, ok := strings.Cut(string(example), "\ttargets:")
		use := regexp.MustCompile(`use:\s*(\[[^]]*\])`).FindStringSubmatch(rest)
		_, profiles, found := strings.Cut(rest, "\n\tprofiles:")
		if !ok || !found || use == nil {
			t.Fatal("the example has no targets, profiles and use at one tab")
		}
		var targets, names []string
		for i := range n {
			name := fmt.Sprintf("unit-%d", i)
			targets = append(targets, fmt.Sprintf("%q: {board: \"carrier\", release: \"scarthgap\", machine: %q, use: %s}", name, name, use[1]))
			names = append(names, fmt.Sprintf("%q", name))
		}
		files["config.cue"] = fmt.Appendf(nil, "%s\ttargets: {%s}\n\tboards: carrier: {base: \"orin-nano-8gb\", machines: scarthgap: [%s]}\n\n\tprofiles:%s",
			head, strings.Join(targets, ", "), strings.Join(names, ", "), profiles)
		return files
	}
	functions := func(n int) (all []string) {
		p := compiler.OpenFiles(machines(n))
		layers := p.Outlines(compiler.Selection{})
		if len(layers) != 1 || len(layers[0].Targets) != n {
			t.Fatalf("%d machines: %v", n, p.Report.All())
		}
		begins := regexp.MustCompile(`(?m)^(?:def \w+|(?:fakeroot |python )*[\w:\-${}]*\s*\(\)) *[:{(]?`)
		for _, f := range layers[0].Files {
			switch filepath.Ext(f.Path) {
			case ".bb", ".bbappend", ".bbclass", ".conf", ".inc", ".py":
				for _, m := range begins.FindAllString(string(f.Data), -1) {
					if !strings.Contains(m, ":append:yoctune-on-") {
						all = append(all, f.Path+": "+m)
					}
				}
			}
		}
		slices.Sort(all)
		return all
	}
	one, five := functions(1), functions(5)
	if len(one) < 5 {
		t.Errorf("only %d functions were found: %v", len(one), one)
	}
	if !slices.Equal(one, five) {
		t.Errorf("functions for one machine:\n%s\nfor five:\n%s", strings.Join(one, "\n"), strings.Join(five, "\n"))
	}
	if len(slices.Compact(slices.Clone(five))) != len(five) {
		t.Errorf("a function is repeated: %s", strings.Join(five, "\n"))
	}
}
