package synthetic_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/synthetic"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/plan"
)

// A board either has a device with the nodes of its own facts, or the reason is stated.
func TestEveryBoardHasADeviceOrAReason(t *testing.T) {
	some := synthetic.Boards()
	if len(some) < 11 {
		t.Errorf("only %v", some)
	}
	made := map[string]bool{}
	for _, id := range some {
		made[id] = true
	}
	for _, id := range board.IDs() {
		dir := filepath.Join(t.TempDir(), "device")
		tree, err := synthetic.New(id)
		if !made[id] {
			if err == nil || !strings.Contains(err.Error(), id+": its facts have no ") {
				t.Errorf("%s: %v", id, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if err := tree.Write(dir); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		facts, _ := board.Lookup(id)
		for _, p := range facts.Policies {
			name := "/sys/devices/system/cpu/cpufreq/" + "policy" + string(rune('0'+p.First%10)) + "/scaling_available_frequencies"
			if p.First < 10 && tree.Text(name) == "" {
				t.Errorf("%s: no %s", id, name)
			}
		}
		for name, want := range map[string]string{"/sys/firmware/devicetree/base/compatible": facts.SoC + "\x00", "/proc/device-tree/model": facts.Name} {
			if got := tree.Text(name); !strings.Contains(got, want) {
				t.Errorf("%s: %s is %q, without %q", id, name, got, want)
			}
		}
	}
}

// No link leads out of the tree or to nothing: yoctuned would refuse the node.
func TestLinksStayInside(t *testing.T) {
	for _, id := range synthetic.Boards() {
		dir := filepath.Join(t.TempDir(), "device")
		tree, err := synthetic.New(id)
		if err == nil {
			err = tree.Write(dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.Type() != fs.ModeSymlink {
				return err
			}
			below, err := filepath.Rel(dir, name)
			if err != nil {
				return err
			}
			if real, ok := tree.Resolve("/" + filepath.ToSlash(below)); !ok {
				t.Errorf("%s: %s leads to %s, which is not there", id, below, real)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestTreeNeedsAnEmptyFolder(t *testing.T) {
	tree, err := synthetic.New("orin-nano-8gb")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := tree.Write(dir); !errors.Is(err, synthetic.ErrNotEmpty) {
		t.Errorf("%v", err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v %v", names, err)
	}
}

// A loaded tree is what was written, and nodes that a plan names stay below /sys.
func TestPlanIsInstalledInALoadedTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "device")
	tree, err := synthetic.New("orin-nano-8gb")
	if err == nil {
		err = tree.Write(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := synthetic.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Files() != tree.Files() {
		t.Errorf("%d files, %d were written", loaded.Files(), tree.Files())
	}
	p := &plan.Plan{Settings: []plan.Setting{{ID: "kernel.args.quiet", Type: plan.TypePresent, Want: "1", Select: plan.Select{Class: "cmdline", Name: "quiet"}}}}
	if err := loaded.Install(p); err != nil {
		t.Fatal(err)
	}
	if err := loaded.Save(dir); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "proc/cmdline")); err != nil || !strings.HasSuffix(string(text), " quiet\n") {
		t.Errorf("%q %v", text, err)
	}
	hostile := &plan.Plan{Settings: []plan.Setting{{ID: "evil", Domain: plan.DomainKernel, Select: plan.Select{Path: "/sys/../../etc/passwd"}}}}
	if err := loaded.Install(hostile); err == nil {
		t.Error("a path that leaves /sys was accepted")
	}
}
