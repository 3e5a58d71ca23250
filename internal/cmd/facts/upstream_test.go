package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/directive"
	"github.com/yoctune/yoctune/schema/facts/linux"
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

// TestTheGeneratorWritesTheSameBytes makes each table whose sources are there again.
func TestTheGeneratorWritesTheSameBytes(t *testing.T) {
	_, folder := upstream(t)
	mirror := os.Getenv("YOCTUNE_MIRRORS")
	layers := func(names ...string) (args []string) {
		for _, name := range names {
			args = append(args, "-"+name, filepath.Join(folder, name))
		}
		return args
	}
	core := []string{"bitbake", "oe-core", "meta-tegra", "meta-openembedded", "meta-tegra-community"}
	all := append(slices.Clone(core), "meta-virtualization")
	var systemd, tags []string
	for _, v := range directive.Versions("systemd") {
		systemd = append(systemd, "-systemd", v+"="+filepath.Join(folder, "systemd", v))
	}
	for _, v := range directive.Versions("kmod") {
		tags = append(tags, "-kmod-tag", "v"+v)
	}
	for _, v := range directive.Versions("glibc") {
		tags = append(tags, "-glibc-tag", "glibc-"+v)
	}
	for _, tc := range []struct {
		command string
		args    []string
		files   []string // below schema/facts
	}{
		{"variables", layers(core...), []string{"variable/data/variables.txt"}},
		{"packages", layers(all...), []string{"recipe/recipes.bin", "recipe/options.bin"}},
		{"system", slices.Concat(layers(all...), systemd, layers("base-passwd")), []string{"system/system.bin"}},
		{"directives", slices.Concat(systemd, layers("kmod", "glibc"), tags), []string{"directive/data/directives.txt"}},
		{"tuned", layers("tuned"), []string{"tuned/data/tuned.txt"}},
		{"containers", layers("docker", "podman"), []string{"container/data/options.txt"}},
		{"machines", layers("meta-tegra"), []string{"release/data/machines.json"}},
		{"units", layers("meta-tegra"), []string{"release/data/units.json"}},
		{"renamed", layers("oe-core", "bitbake"), []string{"release/data/renamed.json"}},
		{"kernel-recipes", layers("oe-core"), []string{"release/data/kernels.json"}},
		{"idle", []string{"-sources", mirror}, []string{"idle/data/idle.txt"}},
		{"interfaces", append(layers("meta-tegra"), "-sources", mirror), []string{"netif/data/interfaces.txt"}},
		{"names", append(layers("meta-tegra"), "-sources", mirror), []string{"linux/args.bin", "linux/modules.bin"}},
		{"threads", []string{"-sources", mirror}, []string{"linux/threads.bin", "linux/features.bin", "linux/disks.bin"}},
	} {
		t.Run(tc.command, func(t *testing.T) {
			for i, arg := range tc.args {
				if i%2 == 0 {
					continue
				}
				_, path, ok := strings.Cut(arg, "=")
				if !ok {
					path = arg
				}
				if _, err := os.Stat(path); !strings.HasSuffix(tc.args[i-1], "-tag") && (path == "" || err != nil) {
					t.Skipf("%s needs %s %s", tc.command, tc.args[i-1], arg)
				}
			}
			if slices.Contains(tc.args, "-sources") {
				if lacking := lackingSources(tc.command, mirror); lacking != "" {
					t.Skip(lacking)
				}
			}
			root := t.TempDir()
			const facts = "schema/facts"
			for _, name := range tc.files {
				if err := os.MkdirAll(filepath.Join(root, facts, filepath.Dir(name)), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := run(append([]string{tc.command, "-root", root}, tc.args...)); err != nil {
				t.Fatal(err)
			}
			for _, name := range tc.files {
				compareFiles(t, filepath.Join(root, facts, name), filepath.Join("../../..", facts, name))
			}
		})
	}
}

// lackingSources names the kernels that a command reads and the folder lacks; "" where it has all.
func lackingSources(command, mirror string) string {
	var lacking []string
	newest := ""
	for _, s := range linux.Sources() {
		if !s.OutOfTree {
			newest = s.Repository
		}
	}
	for _, s := range linux.Sources() {
		needed := command == "names" || command == "threads" || command == "idle" && strings.HasPrefix(s.Note, "L4T ") || command == "interfaces" && s.Repository == newest
		if needed && !isFolder(folder(mirror, s.Repository)) {
			lacking = append(lacking, s.Repository)
		}
	}
	if len(lacking) == 0 {
		return ""
	}
	return "YOCTUNE_MIRRORS lacks " + strings.Join(slices.Compact(lacking), ", ")
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
