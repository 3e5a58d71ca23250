package licence

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A module whose text changes, or a new one with an unknown text, stops here
// before a release is made of it.
func TestEveryModuleHasAKnownLicence(t *testing.T) {
	for _, tc := range []struct {
		program, tags string
		want          []string
		parts         map[string][]string // read by a person
	}{
		{"yoctuned", "", []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT"}, map[string][]string{
			"aead.dev/minisign": {"MIT"}, "github.com/godbus/dbus/v5": {"BSD-2-Clause"}, "github.com/spf13/cobra": {"Apache-2.0"}, "github.com/spf13/pflag": {"BSD-3-Clause"},
			"github.com/yoctune/yoctune": {"Apache-2.0"}, "golang.org/x/sys": {"BSD-3-Clause"}, "std": {"BSD-3-Clause"},
		}},
		{"yoctuned-serve", "serve", []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT", "blessing"}, map[string][]string{
			"github.com/yoctune/yoctune":          {"Apache-2.0", "MIT"}, // the charts of the page
			"github.com/prometheus/client_golang": {"Apache-2.0", "BSD-3-Clause"},
			"go.yaml.in/yaml/v2":                  {"Apache-2.0", "MIT"},
			"modernc.org/libc":                    {"BSD-2-Clause", "BSD-3-Clause", "MIT"},
			"modernc.org/sqlite":                  {"BSD-3-Clause", "blessing"},
		}},
	} {
		parts, err := Parts(t.Context(), "github.com/yoctune/yoctune/cmd/yoctuned", tc.tags)
		if err != nil {
			t.Fatalf("%s: %v", tc.program, err)
		}
		if got := IDs(parts); !slices.Equal(got, tc.want) {
			t.Errorf("%s is under %v, want %v", tc.program, got, tc.want)
		}
		if got := example(t, tc.program+"-licenses"); !slices.Equal(got, tc.want) {
			t.Errorf("the manifest of the example names %v for %s, want %v", got, tc.program, tc.want)
		}
		text := string(Text(tc.program, parts))
		for path, want := range tc.parts {
			i := slices.IndexFunc(parts, func(p Part) bool { return p.Path == path })
			if i < 0 {
				t.Errorf("%s is not linked from %s", tc.program, path)
				continue
			}
			if !slices.Equal(parts[i].IDs, want) {
				t.Errorf("%s is under %v, want %v", path, parts[i].IDs, want)
			}
			for _, f := range parts[i].Files {
				if !strings.Contains(text, strings.TrimRight(string(f.Text), "\n")) {
					t.Errorf("the texts of %s lack %s of %s", tc.program, f.Path, path)
				}
			}
		}
	}
}

// example is what the golden runtime folder names as the licences of a program.
func example(t *testing.T, file string) []string {
	t.Helper()
	raw, err := os.ReadFile("../../golden/runtime/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Files []struct {
			Name     string
			Licenses []string
		}
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Files {
		if f.Name == file {
			return f.Licenses
		}
	}
	return nil
}

func TestUnknownLicenceTextIsRefused(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "LICENSE"), []byte("Do with it what you like, but not on Fridays.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var p Part
	if err := p.addFolders(root, root); !errors.Is(err, errUnknown) || !strings.Contains(err.Error(), "LICENSE") {
		t.Errorf("got %v", err)
	}
}
