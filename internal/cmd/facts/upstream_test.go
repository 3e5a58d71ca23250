package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/system"
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

func TestTheUnitsAndAccountsAreWhatTheGeneratorWrites(t *testing.T) {
	_, folder := upstream(t)
	trees, err := filepath.Glob(filepath.Join(folder, "systemd", "*"))
	if err != nil || len(trees) == 0 {
		t.Skipf("%s/systemd has no unpacked sources of systemd, each under its version: %v", folder, err)
	}
	root := t.TempDir()
	out := filepath.Join(root, "schema", "facts", "system")
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"system", "-root", root, "-base-passwd", filepath.Join(folder, "base-passwd")}
	for _, tree := range trees {
		args = append(args, "-systemd", filepath.Base(tree)+"="+tree)
	}
	for _, name := range []string{"bitbake", "oe-core", "meta-tegra", "meta-openembedded", "meta-tegra-community", "meta-virtualization"} {
		args = append(args, "-"+name, filepath.Join(folder, name))
	}
	if err := run(args); err != nil {
		t.Fatal(err)
	}
	compareFiles(t, filepath.Join(out, "system.bin"), "../../../schema/facts/system/system.bin")
}

// An independent count: each literal unit of SYSTEMD_SERVICE and the last word of each useradd
// and groupadd command, found line by line.
func TestDeclaredUnitsAndAccountsAreInTheTable(t *testing.T) {
	of, folder := upstream(t)
	line := regexp.MustCompile(`(?m)^(SYSTEMD_SERVICE|USERADD_PARAM|GROUPADD_PARAM)[^\n=]*=\s*"([^"]*)"`)
	account := regexp.MustCompile(`(?:^|[ ;])([a-z_][a-z0-9_-]*)\s*(?:;|$)`)
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		total, lacking, computed := map[string]int{}, map[string]int{}, 0
		for _, s := range packageSources(r, map[string]repository{"meta-virtualization": repository(filepath.Join(folder, "meta-virtualization"))}) {
			files, err := of(s[0]).readFiles(s[1], func(n string) bool { return isRecipeFile(n) && filepath.Ext(n) != ".bbclass" })
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range files {
				for _, m := range line.FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", " "), -1) {
					if strings.Contains(m[2], "${") {
						computed++
						continue
					}
					kind, words := system.Unit, strings.Fields(m[2])
					if m[1] != "SYSTEMD_SERVICE" {
						words = nil
						for _, w := range account.FindAllStringSubmatch(strings.TrimSpace(m[2]), -1) {
							words = append(words, w[1])
						}
						if kind = system.User; m[1] == "GROUPADD_PARAM" {
							kind = system.Group
						}
					}
					for _, word := range words {
						total[m[1]]++
						if _, ok := system.Find(name, kind, word); !ok {
							lacking[m[1]]++
							t.Errorf("%s: %s %s has %s, the table lacks it", name, s[0], file, word)
						}
					}
				}
			}
		}
		t.Logf("%s: in the sources %v, not in the table %v; %d values need an expansion", name, total, lacking, computed)
	}
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
