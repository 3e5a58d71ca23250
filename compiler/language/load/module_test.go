package load

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler/diag"
)

// writeModule makes a module with files, and returns its folder.
func writeModule(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files[moduleFile] = "module: \"example.com/m@v0\"\n"
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func loadDir(t *testing.T, dir string) (*Config, []diag.Diagnostic) {
	t.Helper()
	cfg, report, err := Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, report.All()
}

func TestImportedPackagesAreBounded(t *testing.T) {
	main := func(paths ...string) string {
		var b strings.Builder
		b.WriteString("package a\n")
		for i, p := range paths {
			fmt.Fprintf(&b, "import p%d %q\n", i, p)
		}
		for i := range paths {
			fmt.Fprintf(&b, "x%d: p%d.x\n", i, i)
		}
		return b.String()
	}
	many := map[string]string{}
	var paths []string
	for i := range maxPackages + 1 {
		many[fmt.Sprintf("p%d/x.cue", i)] = fmt.Sprintf("package p%d\nx: 1\n", i)
		paths = append(paths, fmt.Sprintf("example.com/m/p%d", i))
	}
	many["c/config.cue"] = main(paths...)
	files := map[string]string{"c/config.cue": main("example.com/m/p"), "p/x.cue": "package p\nx: 1\n"}
	for i := range maxImported {
		files[fmt.Sprintf("p/f%d.cue", i)] = "package p\n"
	}
	for what, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"packages": {many, "YT0003 the configuration imports more than 200 packages"},
		"files":    {files, "YT0006 the packages of the configuration have more than 1000 files"},
		"size": {map[string]string{"c/config.cue": main("example.com/m/p"), "p/x.cue": "package p\nx: 1\n" + strings.Repeat("// filler\n", MaxSource/10)},
			"YT0006 the configuration and its packages are larger than 4 MiB"},
		"depth": {map[string]string{"c/config.cue": main("example.com/m/p"), "p/x.cue": "package p\nx: " + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "\n"},
			"YT0006 brackets are nested more than 200 deep"},
		"encoding": {map[string]string{"c/config.cue": main("example.com/m/p"), "p/x.cue": "\xff\xfep\x00"},
			"YT0001 the file is encoded in UTF-16"},
		"attribute": {map[string]string{"c/config.cue": main("example.com/m/p"), "p/x.cue": "@extern(embed)\npackage p\nx: _ @embed(file=\"a.json\")\n"},
			"YT0004 attribute @extern is not allowed: it reads other files"},
		"itself": {map[string]string{"p/config.cue": "package p\nimport q \"example.com/m/p\"\nx: q.x\n"},
			"YT0003 packages import each other: example.com/m/p:p imports example.com/m/p:p"},
		"value": {map[string]string{"c/config.cue": main("example.com/m/p") + "x0: 2\n", "p/x.cue": "package p\nx: 1\n"},
			"YT0105 two values that cannot both hold"},
		"module": {map[string]string{"c/cue.mod/module.cue": "module: 1\n", "c/config.cue": main("example.com/m/p")},
			"YT0003 reading the module: a line such as module: \"example.com/robots@v0\" is missing"},
	} {
		dir := filepath.Join(writeModule(t, c.files), "c")
		if _, ok := c.files["c/config.cue"]; !ok {
			dir = filepath.Join(filepath.Dir(dir), "p")
		}
		cfg, found := loadDir(t, dir)
		if len(found) == 0 || found[0].ID+" "+found[0].Message != c.want {
			t.Errorf("%s: %+v, want %s", what, found, c.want)
		}
		if cfg != nil && cfg.Root != nil {
			t.Errorf("%s: the configuration has a value", what)
		}
	}
}

// A file beyond a link of the module's folders is not read, however the link is placed.
func TestLinksDoNotLeadOutOfAModule(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "lib")
	if err := os.Mkdir(secret, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(secret, "x.cue"), []byte("package lib\nx: \"secretword\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	config := "package c\nimport \"example.com/m/lib\"\nx: lib.x\n"
	for what, link := range map[string]func(dir string) error{
		"folder": func(dir string) error { return os.Symlink(secret, filepath.Join(dir, "lib")) },
		"file": func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "lib"), 0o755), os.Symlink(filepath.Join(secret, "x.cue"), filepath.Join(dir, "lib", "x.cue")))
		},
	} {
		dir := writeModule(t, map[string]string{"c/config.cue": config})
		if err := link(dir); err != nil {
			t.Fatal(err)
		}
		cfg, found := loadDir(t, filepath.Join(dir, "c"))
		if len(found) != 1 || found[0].ID != "YT0003" || strings.Contains(fmt.Sprint(found), "secretword") || cfg.Root != nil {
			t.Errorf("%s: %+v", what, found)
		}
	}
	// Within the module, links are fine.
	dir := writeModule(t, map[string]string{"c/config.cue": config, "shared/x.cue": "package lib\nx: 1\n"})
	if err := os.Symlink("shared", filepath.Join(dir, "lib")); err != nil {
		t.Fatal(err)
	}
	if cfg, found := loadDir(t, filepath.Join(dir, "c")); len(found) > 0 || cfg.Root.Get("x").Text != "1" {
		t.Errorf("inside: %+v", found)
	}
}
