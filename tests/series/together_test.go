package series

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/tests/bitbake/bbref"
)

// builtLayer compiles a layer for one machine and writes it to a folder.
func builtLayer(t *testing.T, branch, name, board, machine, runtime string) string {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(`package together

import "github.com/yoctune/yoctune/schema"

schema.#Config & {
	layer: {name: %q, maintainer: "A <a@example.com>", description: "One of two layers"}
	targets: edge: {board: %q, machine: %q, release: %q, sysctl: "vm.swappiness": 10, runtime: {%s}}
}
`, name, board, machine, branch, runtime)
	if err := os.WriteFile(filepath.Join(dir, "config.cue"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile("config/dist-manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "dist-manifest.json"), manifest, 0o644); err != nil {
		t.Fatal(err)
	}
	ls := layersOf(t, dir)
	if len(ls) != 1 {
		t.Fatalf("the configuration gives %d layers, want 1", len(ls))
	}
	return writeLayer(t, ls[0])
}

// bitbake combines layers without a message, so parsing stops where two of them change one device,
// and where the programs of two layers differ.
func TestLayersThatCollideStopParsing(t *testing.T) {
	const (
		orin  = "jetson-agx-orin-devkit"
		other = "another machine"
		old   = `manifest: "dist-manifest.json"`
		none  = `form: "none"`
	)
	for _, tc := range []struct {
		name, machine, runtime string // of the second layer
		off                    bool
		want                   []string // parts of the message; none if the layers fit together
	}{
		{name: "one machine", machine: orin, want: []string{"door, gate", orin, "one plan", "Merge", "bblayers.conf"}},
		{name: "one machine without yoctuned", machine: orin, runtime: none, want: []string{"door, gate", orin}},
		{name: "one machine with layers off", machine: orin, off: true},
		{name: "two machines", machine: other},
		{name: "two machines and one layer without yoctuned", machine: other, runtime: none},
		{name: "two machines and two versions", machine: other, runtime: old, want: []string{"gate", "yoctuned 0.2.0", "door (0.1.0)", orin, "one version of yoctune"}},
		{name: "two machines and two versions with layers off", machine: other, runtime: old, off: true},
	} {
		for _, branch := range []string{"kirkstone", "scarthgap", "master"} {
			t.Run(branch+"/"+tc.name, func(t *testing.T) {
				r, ok := release.Lookup(branch)
				if !ok {
					t.Fatalf("no facts of release %s", branch)
				}
				board, machine := "agx-orin-64gb", tc.machine
				if machine == other {
					board, machine = "orin-nx-16gb", "p3768-0000-p3767-0000"
				}
				first := builtLayer(t, branch, "gate", "agx-orin-64gb", orin, "")
				request := bbref.Request{
					Dir: first, Machine: orin, Overrides: "cuda:tegra:aarch64:tegra234", Enable: !tc.off,
					Fragments: r.Fragments,
					Beside:    []string{builtLayer(t, branch, "door", board, machine, tc.runtime)},
				}
				_, problems := bbref.TryRecipes(t, request, r.Series)
				var b strings.Builder
				for _, p := range problems {
					fmt.Fprintln(&b, p)
				}
				if len(tc.want) == 0 && b.Len() > 0 {
					t.Errorf("bitbake refuses layers that fit together:\n%s", b.String())
				}
				for _, part := range tc.want {
					if !strings.Contains(b.String(), part) {
						t.Errorf("the message lacks %q:\n%s", part, b.String())
					}
				}
			})
		}
	}
}
