package bbsetup_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/bbsetup"
	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/schema/plan"
)

// bitbake-setup passes the names of fragments and folders to a shell and creates the
// folder. A name either survives both unchanged or is refused at its line.
func TestHostileNameIsRefusedOrReadBackUnchanged(t *testing.T) {
	canary := filepath.Join(t.TempDir(), "canary")
	values := []string{
		"x; touch " + canary, "x && touch " + canary, "$(touch " + canary + ")", "`touch " + canary + "`", "'; touch " + canary + "; '",
		`"; touch ` + canary + `; "`, "x | touch " + canary, "x\ntouch " + canary, "../x", "..", ".", "a/b", "/etc", "-x", "--help", "~", "~root", "*", "[a]", "{a,b}",
		"${@1}", "$HOME", "%n", `\`, "a b", "", "a\u202eb", "a\x00b", "ü", "#x", "&", "a=b", "a:b", strings.Repeat("a", 300),
		"plain", "a-b", "a1", "A.b_c", "a+b", "a@b",
	}
	for _, sink := range []struct {
		name, id string
		set      func(*plan.Layer, string)
	}{
		{"layer", "layer.name", func(l *plan.Layer, v string) { l.Name = v }},
		{"target", "board", func(l *plan.Layer, v string) { l.Targets[0].Name = v }},
		{"machine", "machine", func(l *plan.Layer, v string) { l.Targets[0].Machine = v }},
	} {
		kept := 0
		for _, v := range values {
			l := emittest.Vision(t)
			l.Release, l.Build.BitBakeSetup = "whinlatter", true
			sink.set(l, v)
			files, err := bbsetup.Emit(l)
			if err != nil {
				var at *emitters.Error
				if !errors.As(err, &at) || at.Ref.ID != sink.id || files != nil {
					t.Errorf("%s %q: %d files, %v", sink.name, v, len(files), err)
				}
				continue
			}
			kept++
			for _, word := range words(t, files) {
				out, err := exec.Command("sh", "-c", "set -- "+word+`; printf '%s' "$*"`).Output()
				if err != nil || string(out) != word {
					t.Errorf("%s %q: a shell reads %q as %q, %v", sink.name, v, word, out, err)
				}
			}
		}
		if kept == 0 || kept == len(values) {
			t.Errorf("%d of %d values are taken as the name of a %s", kept, len(values), sink.name)
		}
	}
	if _, err := os.Lstat(canary); err == nil {
		t.Error("a name was run")
	}
}

// words are what bitbake-setup puts into commands and paths.
func words(t *testing.T, files []emitters.File) []string {
	t.Helper()
	var all []string
	for _, f := range files {
		var setup struct {
			BitBakeSetup struct {
				Configurations []struct {
					Dir       string   `json:"setup-dir-name"`
					Layers    []string `json:"bb-layers"`
					Fragments []string `json:"oe-fragments"`
				}
			} `json:"bitbake-setup"`
		}
		if err := json.Unmarshal(f.Data, &setup); err != nil {
			t.Fatalf("%s: %v", f.Path, err)
		}
		for _, c := range setup.BitBakeSetup.Configurations {
			all = append(append(append(all, c.Dir), c.Layers...), c.Fragments...)
		}
	}
	if len(all) == 0 {
		t.Fatal("nothing is set up")
	}
	return all
}
