package series

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/tests/bitbake/bbref"
)

// Every module on every machine of every release it has: each is built, and
// bitbake's parser reads a layer of all machines of a release.
func TestEveryMachineOfEveryReleaseBuilds(t *testing.T) {
	raw, err := os.ReadFile("config/config.cue")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	begin, end := strings.Index(text, "\ttargets: {\n"), strings.Index(text, "\tprofiles: {\n")
	if begin < 0 || end < begin {
		t.Fatal("config.cue has no targets before its profiles")
	}
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		var targets strings.Builder
		taken := map[string]bool{}
		for _, id := range board.IDs() {
			b, _ := board.Lookup(id)
			for _, machine := range b.Releases[name].Machines {
				// Two modules may share a machine; a layer has room for one of them.
				if taken[machine] {
					continue
				}
				taken[machine] = true
				fmt.Fprintf(&targets, "\t\t%q: {board: %q, machine: %q, release: %q, use: [\"common\"]}\n", id+"-"+machine, id, machine, name)
			}
		}
		for _, m := range r.Machines() {
			if !taken[m.Name] {
				t.Errorf("%s: no module's facts name machine %s", name, m.Name)
			}
		}

		config := text[:begin] + "\ttargets: {\n" + targets.String() + "\t}\n" + text[end:]
		manifest, err := os.ReadFile("config/dist-manifest.json")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for file, data := range map[string][]byte{"config.cue": []byte(config), "dist-manifest.json": manifest} {
			if err := os.WriteFile(dir+"/"+file, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		p, err := compiler.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		ls := p.Layers(compiler.Selection{Release: name})
		if p.Report.Failed() || len(ls) != 1 {
			var b strings.Builder
			if err := diag.WriteText(&b, p.Report, p.Config.Sources, false); err != nil {
				t.Fatal(err)
			}
			t.Errorf("%s does not build:\n%s", name, b.String())
			continue
		}
		// The parser is asked once a release: what differs between machines are
		// overrides, which it reads all the same.
		machine := ls[0].Targets[len(ls[0].Targets)-1]
		layer := bbref.ParseLayer(t, bbref.Request{
			Dir: written(t, ls[0]), Machine: machine.Machine, Overrides: "cuda:tegra:aarch64:" + soc(t, machine),
			UnpackDir: r.UnpackDir, Fragments: r.Fragments, Enable: true,
		})
		for _, problem := range layer.Problems {
			t.Errorf("%s: %s", name, problem)
		}
	}
}
