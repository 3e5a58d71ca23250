package kconfig

import (
	"bytes"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"
)

// treeFS is a kernel source made of a test's files. Version decides the rules.
func treeFS(files []txtar.File, version string) []fs.FS {
	m := fstest.MapFS{}
	for _, f := range files {
		m[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	if version != "" {
		major, minor, _ := strings.Cut(version, ".")
		m["Makefile"] = &fstest.MapFile{Data: fmt.Appendf(nil, "VERSION = %s\nPATCHLEVEL = %s\n", major, minor)}
	}
	return []fs.FS{m}
}

// The wanted results in testdata/trees were written by the kernels' own conf.
func TestSmallTreesMatchKconfig(t *testing.T) {
	files, err := filepath.Glob("testdata/trees/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d trees: %v", len(files), err)
	}
	for _, f := range files {
		a, err := txtar.ParseFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var in []byte
		for _, file := range a.Files {
			if file.Name == "in.config" {
				in = file.Data
			}
		}
		for _, want := range a.Files {
			version, ok := strings.CutPrefix(want.Name, "want-")
			if !ok {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(f), ".txtar")+"/"+version, func(t *testing.T) {
				x, err := index(treeFS(a.Files, version), "/src", Options{})
				if err != nil {
					t.Fatal(err)
				}
				cfg, _ := ReadFragment("in.config", in)
				r := Prepare(x.Tree).Evaluate(cfg)
				var got strings.Builder
				for _, s := range x.Tree.Symbols {
					if v, present := r.Get(s.Name); present {
						got.WriteString(Line{Symbol: s.Name, Value: v}.String() + "\n")
					}
				}
				if got.String() != string(want.Data) {
					t.Errorf("got:\n%s\nwant:\n%s", got.String(), want.Data)
				}
			})
		}
	}
}

func TestBrokenKconfigIsReportedWithItsPosition(t *testing.T) {
	for name, c := range map[string]struct{ files, want string }{
		"missing file":         {"-- Kconfig --\nsource \"no/Kconfig\"\n", `Kconfig:1:8: can't open file "no/Kconfig"`},
		"recursive inclusion":  {"-- Kconfig --\nsource \"a\"\n-- a --\nsource \"Kconfig\"\n", `a:1:8: recursive inclusion of "Kconfig": Kconfig > a > Kconfig`},
		"no such overlay":      {"-- Kconfig --\nsource \"$(srctree)/../nvidia/Kconfig\"\n", `Kconfig:1:8: source "../nvidia/Kconfig" leads out of the tree`},
		"out of the tree":      {"-- Kconfig --\nsource \"../../etc/passwd\"\n", "leads out of the tree"},
		"if without endif":     {"-- Kconfig --\nif A\nconfig B\n\tbool\n", "Kconfig:1:1: if without endif in this file"},
		"end without begin":    {"-- Kconfig --\n\nendmenu\n", "Kconfig:2:1: endmenu without menu"},
		"wrong end":            {"-- Kconfig --\nmenu \"m\"\nendif\nendmenu\n", "Kconfig:2:1: unexpected endif: the menu of Kconfig:1 is open"},
		"end in another file":  {"-- Kconfig --\nif A\nsource \"b\"\n-- b --\nendif\n", "b:1:1: endif in another file than its if at Kconfig:1"},
		"open parenthesis":     {"-- Kconfig --\nconfig A\n\tbool \"a\"\n\tdepends on (B && C\n", "Kconfig:3:13: ( without )"},
		"two operators":        {"-- Kconfig --\nconfig A\n\tbool\n\tdepends on B && && C\n", `Kconfig:3:18: unexpected "&&" in an expression`},
		"nothing after on":     {"-- Kconfig --\nconfig A\n\tbool\n\tdepends on\n", "Kconfig:3:1: expression expected"},
		"unknown statement":    {"-- Kconfig --\nconfgi A\n", `Kconfig:1:1: unknown statement "confgi"`},
		"unknown option":       {"-- Kconfig --\nconfig A\n\tbool \"a\"\n\tdepnds on B\n", `Kconfig:3:2: unknown option "depnds"`},
		"select in a choice":   {"-- Kconfig --\nchoice\n\tprompt \"c\"\n\tselect A\nendchoice\n", "Kconfig:3:2: select cannot stand in a choice"},
		"bad symbol name":      {"-- Kconfig --\nconfig A-B\n\tbool\n", `Kconfig:1:8: "A-B" is not a symbol name`},
		"unquoted prompt":      {"-- Kconfig --\nconfig A\n\tbool a\n", "Kconfig:2:7: a prompt must be quoted"},
		"prompt of nothing":    {"-- Kconfig --\nconfig A\n\tprompt\n", "Kconfig:2:2: prompt takes one quoted text"},
		"open reference":       {"-- Kconfig --\nconfig A\n\tdef_bool $(foo\n", "Kconfig:2:11: unterminated reference $(foo: missing )"},
		"self reference":       {"-- Kconfig --\na = $(a)\nconfig A\n\tdef_bool $(a)\n", `variable "a" refers to itself`},
		"error-if":             {"-- Kconfig --\n$(error-if,y,no compiler)\n", "no compiler"},
		"exploding macro":      {"-- Kconfig --\na = $(1)$(1)$(1)$(1)$(1)$(1)$(1)$(1)\nb = $(a,$(a,$(a,$(1))))\nconfig A\n\tstring\n\tdefault \"$(b,$(b,$(b,$(b,xxxxxxxxxx))))\"\n", "expansion of more than"},
		"recursion":            {"-- Kconfig --\nconfig A\n\tbool \"a\"\n\tdepends on B\nconfig B\n\tbool \"b\"\n\tdepends on A\n", "Kconfig:1:1: recursive dependency detected:\n\tsymbol A depends on B (Kconfig:1)\n\tsymbol B depends on A (Kconfig:4)"},
		"default recursion":    {"-- Kconfig --\nconfig A\n\tbool \"a\"\n\tdefault B\nconfig B\n\tbool \"b\"\n\tdefault A\n", "symbol A default value contains B"},
		"choice on its member": {"-- Kconfig --\nchoice\n\tprompt \"c\"\n\tdepends on A\nconfig A\n\tbool \"a\"\nconfig B\n\tbool \"b\"\nendchoice\n", "symbol A depends on A"},
		"through a choice":     {"-- Kconfig --\nchoice\n\tprompt \"c\"\nconfig A\n\tbool \"a\"\n\tdepends on X\nconfig B\n\tbool \"b\"\nendchoice\nconfig X\n\tbool \"x\"\n\tdepends on B\n", "symbol X depends on B"},
		"select recursion":     {"-- Kconfig --\nconfig A\n\tbool \"a\"\n\tselect B\nconfig B\n\tbool \"b\"\n\tdepends on A\n\tselect A\n", "is selected by"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := index(treeFS(txtar.Parse([]byte(c.files)).Files, "6.12"), "/src", Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

// What looks circular and is not: conf accepts each of these.
func TestHarmlessLoopsAreAccepted(t *testing.T) {
	for name, text := range map[string]string{
		"selects what needs it": "config A\n\tbool \"a\"\n\tdepends on B\nconfig B\n\tbool\n\tselect A\n",
		"implies what needs it": "config A\n\tbool \"a\"\n\tdepends on B\nconfig B\n\tbool \"b\"\n\timply A\n",
		"range and default":     "config A\n\tint \"a\"\n\trange 1 B\nconfig B\n\tint \"b\"\n\tdefault A\n",
	} {
		if _, err := index(treeFS([]txtar.File{{Name: "Kconfig", Data: []byte(text)}}, "6.12"), "/src", Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLineEndingsAreTolerated(t *testing.T) {
	for name, text := range map[string]string{
		"no newline":         "config A\n\tdef_bool y",
		"windows":            "config A\r\n\tdef_bool y\r\n\thelp\r\n\t  text\r\n\r\nconfig B\r\n\tdef_bool y\r\n",
		"trailing backslash": "config A\n\tdef_bool y \\",
		"comment backslash":  "# a comment \\\nconfig A\n\tdef_bool y\n",
	} {
		x, err := index(treeFS([]txtar.File{{Name: "Kconfig", Data: []byte(text)}}, "6.12"), "/src", Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if v, _ := Prepare(x.Tree).Evaluate(&Config{}).Get("A"); v != "y" {
			t.Errorf("%s: A is %q", name, v)
		}
	}
}

func TestOverlaysAreReadAfterTheTree(t *testing.T) {
	tree := treeFS([]txtar.File{{Name: "Kconfig", Data: []byte("source \"drivers/Kconfig\"\n")}, {Name: "drivers/Kconfig", Data: []byte("config A\n\tdef_bool y\n")}}, "4.9")
	overlay := treeFS([]txtar.File{{Name: "drivers/Kconfig", Data: []byte("config B\n\tdef_bool y\n")}}, "")
	x, err := index(append(tree, overlay...), "/src", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Tree.Symbols) != 2 || x.Tree.Symbols[0].Name != "A" || x.Tree.Symbols[1].Name != "B" {
		t.Errorf("got %v", x.Tree.Symbols)
	}
}

func TestOldFilesUseOldRules(t *testing.T) {
	text := `mainmenu "Linux/$ARCH $KERNELVERSION Kernel Configuration"
config SRCARCH
	string
	option env="SRCARCH"
source "arch/$SRCARCH/Kconfig"
config OLD
	boolean "old"
	default y
	---help---
	  config NOT_ME
config FILE
	string
	default "arch/$ARCH/defconfig"
`
	x, err := index(treeFS([]txtar.File{{Name: "Kconfig", Data: []byte(text)}, {Name: "arch/arm64/Kconfig", Data: []byte("config ARM64\n\tdef_bool y\n")}}, "4.9"), "/src", Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := Prepare(x.Tree).Evaluate(&Config{})
	for name, want := range map[string]string{"SRCARCH": `"arm64"`, "ARM64": "y", "OLD": "y", "FILE": `"arch/arm64/defconfig"`, "NOT_ME": ""} {
		if got, _ := r.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// NVIDIA's kernels 4.9 and 5.10 keep drivers in overlays next to the kernel. Each overlay has a
// Kconfig file of the same name, in the syntax before 4.18. The trees in testdata/overlays
// are synthetic.
func TestTreesWithOverlays(t *testing.T) {
	files, err := filepath.Glob("testdata/overlays/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no trees: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(f)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string][]txtar.File{}
			var in, want []byte
			for _, file := range a.Files {
				switch folder, rest, _ := strings.Cut(file.Name, "/"); folder {
				case "in.config":
					in = file.Data
				case "want":
					want = file.Data
				default:
					parts[folder] = append(parts[folder], txtar.File{Name: rest, Data: file.Data})
				}
			}
			trees := treeFS(parts["kernel"], strings.TrimSpace(string(a.Comment[bytes.LastIndexByte(bytes.TrimSpace(a.Comment), '\n')+1:])))
			var o Options
			for _, overlay := range []string{"nvidia", "nvgpu"} {
				if parts[overlay] != nil {
					trees = append(trees, treeFS(parts[overlay], "")...)
					o.Overlays = append(o.Overlays, "/l4t/"+overlay)
				}
			}
			x, err := index(trees, "/src", o)
			if err != nil {
				t.Fatal(err)
			}
			cfg, _ := ReadFragment("in.config", in)
			r := Prepare(x.Tree).Evaluate(cfg)
			for line := range strings.Lines(string(want)) {
				symbol, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				if got, _ := r.Get(symbol); got != value {
					t.Errorf("%s is %q, want %q", symbol, got, value)
				}
			}
		})
	}
}

func FuzzIndex(f *testing.F) {
	files, _ := filepath.Glob("testdata/trees/*.txtar")
	for _, name := range files {
		if a, err := txtar.ParseFile(name); err == nil {
			f.Add(string(a.Files[0].Data), "CONFIG_A=y\n", true)
			f.Add(string(a.Files[0].Data), "# CONFIG_B is not set\n", false)
		}
	}
	f.Fuzz(func(t *testing.T, text, fragment string, recent bool) {
		version := "5.10"
		if recent {
			version = "6.12"
		}
		x, err := index(treeFS([]txtar.File{{Name: "Kconfig", Data: []byte(text)}}, version), "/src", Options{})
		if err != nil {
			return
		}
		// Looking for a missing symbol in the embedded kernels is slow and
		// not what is tested here.
		read, _ := ReadFragment("f", []byte(fragment))
		cfg := &Config{}
		for _, l := range read.Lines {
			if _, ok := x.Tree.Lookup(l.Symbol); ok {
				cfg.Lines = append(cfg.Lines, l)
			}
		}
		facts := FromTree(x.Tree, &Config{})
		for _, p := range facts.PredictFragments(cfg).Predictions {
			if (p.Outcome == Kept) != (p.Cause == "") {
				t.Errorf("%s is %s, cause %q", p.Symbol, p.Outcome, p.Cause)
			}
		}
	})
}

func FuzzReadFragment(f *testing.F) {
	for _, s := range []string{"CONFIG_A=y\n# CONFIG_B is not set\n", "CONFIG_A=\"x\\\"y\"", "\ufeffCONFIG_A=y\r\n", "# CONFIG_ is not set", "CONFIG_=", " CONFIG_A=m"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, problems := ReadFragment("f", data)
		lines := bytes.Count(data, []byte("\n")) + 1
		for _, l := range c.Lines {
			if !validName(l.Symbol) || l.Line < 1 || l.Line > lines {
				t.Errorf("line %+v", l)
			}
		}
		for _, p := range problems {
			if p.Line < 1 || p.Line > lines || p.Column < 1 {
				t.Errorf("problem %+v", p)
			}
		}
	})
}
