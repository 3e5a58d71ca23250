package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/variable"
)

// upstream is the folder with git directories of the upstream repositories, each under
// its name.
func upstream(t *testing.T) (func(name string) repository, string) {
	folder := os.Getenv("YOCTUNE_UPSTREAM")
	if folder == "" {
		t.Skip("set YOCTUNE_UPSTREAM to a folder with clones of bitbake, oe-core, meta-tegra, meta-openembedded, meta-tegra-community and meta-virtualization")
	}
	return func(name string) repository { return repository(filepath.Join(folder, name)) }, folder
}

func TestTheVariablesAreWhatTheGeneratorWrites(t *testing.T) {
	_, folder := upstream(t)
	root := t.TempDir()
	data := filepath.Join(root, "schema", "facts", "variable", "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"variables", "-root", root}
	for _, name := range []string{"bitbake", "oe-core", "meta-tegra", "meta-openembedded", "meta-tegra-community"} {
		args = append(args, "-"+name, filepath.Join(folder, name))
	}
	if err := run(args); err != nil {
		t.Fatal(err)
	}
	compareFiles(t, filepath.Join(data, "variables.txt"), "../../../schema/facts/variable/data/variables.txt")
}

func TestTheRecipesAreWhatTheGeneratorWrites(t *testing.T) {
	_, folder := upstream(t)
	root := t.TempDir()
	out := filepath.Join(root, "schema", "facts", "recipe")
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"packages", "-root", root}
	for _, name := range []string{"bitbake", "oe-core", "meta-tegra", "meta-openembedded", "meta-tegra-community", "meta-virtualization"} {
		args = append(args, "-"+name, filepath.Join(folder, name))
	}
	if err := run(args); err != nil {
		t.Fatal(err)
	}
	compareFiles(t, filepath.Join(out, "recipes.bin"), "../../../schema/facts/recipe/recipes.bin")
}

func compareFiles(t *testing.T, made, committed string) {
	t.Helper()
	got, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: the generator writes something else", committed)
	}
}

// An independent count: each variable that documentation.conf or bitbake's glossary names,
// and each that a line of a .conf file assigns, found by simpler patterns than the
// generator's.
func TestDocumentedVariablesAreInTheTable(t *testing.T) {
	of, _ := upstream(t)
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		for _, s := range metadataSources(r) {
			files, err := of(s[0]).readFiles(s[1], func(n string) bool {
				return filepath.Ext(n) == ".conf" && isMetadata(n) || n == bitbakeGlossary
			})
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			for _, text := range files {
				for _, m := range regexp.MustCompile("(?m)^(?: {3}:term:`|export )?([A-Z][A-Z0-9_]+)(?:`$|\\[doc\\]| *[?:.+]*= *[\"'])").FindAllStringSubmatch(text, -1) {
					found[m[1]] = true
				}
			}
			lacking := 0
			for v := range found {
				if _, known := variable.Lookup(name, v); !known {
					lacking++
					t.Errorf("%s: %s has %s, the table lacks it", name, s[0], v)
				}
			}
			t.Logf("%s: %s: %d names of .conf files and glossary, %d not in the table", name, s[0], len(found), lacking)
		}
	}
}
