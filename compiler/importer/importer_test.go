package importer_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/importer"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/tuned"
)

// -update rewrites the expected results in testdata.
var update = flag.Bool("update", false, "rewrite testdata")

func check(files map[string][]byte) *diag.Report {
	p := compiler.OpenFiles(files)
	p.Verify()
	return p.Report
}

// Each archive in testdata is a case: options in the comment, the files as a user
// has them, the configuration that comes out, and what became of every line.
func TestImport(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no cases", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			o := importer.Options{Check: check}
			for line := range strings.Lines(string(a.Comment)) {
				if args, ok := strings.CutPrefix(line, "options:"); ok {
					setOptions(t, &o, strings.Fields(args))
				}
			}
			var sources []importer.Source
			var want [2]string
			var inputs []txtar.File
			for _, f := range a.Files {
				switch f.Name {
				case "want/config.cue":
					want[0] = string(f.Data)
				case "want/report":
					want[1] = string(f.Data)
				default:
					inputs = append(inputs, f)
					sources = append(sources, importer.Source{Name: f.Name, Text: f.Data})
				}
			}
			r, err := importer.Import(sources, o)
			if err != nil {
				t.Fatal(err)
			}
			assertLinesAccounted(t, sources, r)
			got := [2]string{string(r.Config), report(r)}
			if *update {
				a.Files = append(inputs, txtar.File{Name: "want/config.cue", Data: []byte(got[0])}, txtar.File{Name: "want/report", Data: []byte(got[1])})
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(want[0], got[0]); d != "" {
				t.Errorf("configuration:\n%s", d)
			}
			if d := cmp.Diff(want[1], got[1]); d != "" {
				t.Errorf("report:\n%s", d)
			}
		})
	}
}

func setOptions(t *testing.T, o *importer.Options, args []string) {
	t.Helper()
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		switch k {
		case "board":
			o.Board = v
		case "release":
			o.Release = v
		case "machine":
			o.Machine = v
		case "kind":
			o.Kind = importer.Kind(v)
		default:
			t.Fatalf("option %s", k)
		}
	}
}

func report(r *importer.Result) string {
	var b strings.Builder
	for _, l := range r.Lines {
		if l.Verdict == importer.Comment {
			continue
		}
		fmt.Fprintf(&b, "%s:%d:%d %s", l.File, l.Line, l.Column, l.Verdict)
		for _, t := range l.Traps {
			fmt.Fprintf(&b, " (%s)", t)
		}
		if l.Path != "" {
			b.WriteString(" -> " + l.Path)
		}
		if l.Why != "" {
			b.WriteString(": " + l.Why)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// assertLinesAccounted asserts what holds for every import: each line of each text file is
// in the report once, with a verdict, and a line that is left has a reason; the
// configuration passes the checks.
func assertLinesAccounted(t testing.TB, sources []importer.Source, r *importer.Result) {
	t.Helper()
	seen := map[string]int{}
	for _, l := range r.Lines {
		seen[l.File]++
		switch l.Verdict {
		case importer.Left, importer.Adjusted:
			if l.Why == "" {
				t.Errorf("%s:%d is %s without a reason", l.File, l.Line, l.Verdict)
			}
		case importer.Understood, importer.Comment:
		default:
			t.Errorf("%s:%d has verdict %q", l.File, l.Line, l.Verdict)
		}
		if l.Verdict == importer.Left && l.Path != "" {
			t.Errorf("%s:%d is left, and set %s", l.File, l.Line, l.Path)
		}
	}
	for _, s := range sources {
		if n := bytes.Count(s.Text, []byte("\n")); seen[s.Name] < n && seen[s.Name] != 1 {
			t.Errorf("%s: %d lines in the report, %d in the file", s.Name, seen[s.Name], n)
		}
	}
	if rep := check(map[string][]byte{"config.cue": r.Config}); rep.Failed() {
		t.Errorf("the configuration does not pass the checks: %+v\n%s", rep.All(), r.Config)
	}
}

func TestBoardAndReleaseMustBeKnown(t *testing.T) {
	sysctl := []importer.Source{{Name: "a.conf", Text: []byte("vm.swappiness=1\n"), Kind: importer.Sysctl}}
	for _, tt := range []struct {
		name     string
		sources  []importer.Source
		o        importer.Options
		want     error
		wantText string
	}{
		{"no release", sysctl, importer.Options{}, importer.ErrWhich, "--release"},
		{"no board", sysctl, importer.Options{Release: "scarthgap"}, importer.ErrWhich, "--board"},
		{"an unknown board", sysctl, importer.Options{Release: "scarthgap", Board: "orin"}, importer.ErrUnknown, "orin-nano-8gb"},
		{"an unknown release", sysctl, importer.Options{Release: "rocko", Board: "orin-nano-8gb"}, importer.ErrUnknown, "scarthgap"},
		{"a board the release lacks", sysctl, importer.Options{Release: "scarthgap", Board: "nano-4gb"}, importer.ErrUnknown, "nano-4gb"},
		{"the machine of another board", []importer.Source{{Name: "conf/local.conf", Text: []byte("MACHINE = \"jetson-agx-orin-devkit\"\n")}},
			importer.Options{Release: "scarthgap", Board: "orin-nano-8gb"}, importer.ErrWhich, "agx-orin-64gb"},
	} {
		_, err := importer.Import(tt.sources, tt.o)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.wantText) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestKindOf(t *testing.T) {
	for name, want := range map[string]importer.Kind{
		"etc/nvpmodel.conf":                             importer.NVPModel,
		"nvfancontrol_p3767_0000.conf":                  importer.NVFanControl,
		"recipes-core/x/files/sysctl.d/10-a.conf":       importer.Sysctl,
		"files/50-sysctl.conf":                          importer.Sysctl,
		"files/tuning.cfg":                              importer.Kconfig,
		"tegra_defconfig":                               importer.Kconfig,
		"conf/local.conf":                               importer.BitBake,
		"conf/distro/include/a.inc":                     importer.BitBake,
		"recipes-kernel/linux/linux-tegra_%.bbappend":   importer.BitBake,
		"files/app.service":                             importer.Systemd,
		"etc/systemd/system/app.service.d/10-cpus.conf": importer.Systemd,
		"files/60-disk.rules":                           importer.Udev,
		"etc/modules-load.d/a.conf":                     importer.ModulesLoad,
		"etc/modprobe.d/a.conf":                         importer.Modprobe,
		"files/tune.sh":                                 importer.Script,
		"boot/extlinux/extlinux.conf":                   importer.Cmdline,
		"notes":                                         importer.Other,
	} {
		text := "CONFIG_A=y\n"
		if strings.HasSuffix(name, "local.conf") {
			text = "MACHINE = \"x\"\n"
		}
		if got := importer.KindOf(name, []byte(text)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for text, want := range map[string]importer.Kind{
		"# net\nnet.core.rmem_max = 1\n":                  importer.Sysctl,
		"BB_NUMBER_THREADS = \"4\"\n":                     importer.BitBake,
		"blacklist nouveau\noptions nvgpu a=1\n":          importer.Modprobe,
		"< POWER_MODEL ID=0 NAME=A >\n< PARAM TYPE=X >\n": importer.NVPModel,
		"\x00binary": importer.Other,
	} {
		if got := importer.KindOf("a.conf", []byte(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// A file with the stock modes of a board adds nothing to the configuration.
func TestStockPowerModesNeedNoConfiguration(t *testing.T) {
	tried := 0
	for _, id := range board.IDs() {
		b, _ := board.Lookup(id)
		for rel := range b.Releases {
			table, _, err := b.StockTable(rel)
			if err != nil || table.Partial {
				continue
			}
			r, err := importer.Import([]importer.Source{{Name: "nvpmodel.conf", Text: stockFile(table), Kind: importer.NVPModel}},
				importer.Options{Board: id, Release: rel, Check: check})
			if err != nil {
				t.Fatalf("%s %s: %v", id, rel, err)
			}
			if strings.Contains(string(r.Config), "modes:") {
				t.Errorf("%s %s: modes of its own:\n%s", id, rel, r.Config)
			}
			for _, l := range r.Lines {
				if l.Verdict == importer.Left {
					t.Errorf("%s %s: line %d %q is left: %s", id, rel, l.Line, l.Text, l.Why)
				}
			}
			tried++
		}
	}
	if tried < 20 {
		t.Errorf("only %d boards and releases", tried)
	}
}

// stockFile writes a file as facts know the stock one.
func stockFile(table board.Table) []byte {
	var b strings.Builder
	for _, p := range table.Params {
		fmt.Fprintf(&b, "< PARAM TYPE=%s NAME=%s >\n", p.Type, p.Name)
		for _, a := range p.Args {
			path := p.Paths[a]
			if path == "" {
				path = "/sys/" + p.Name + "/" + a
			}
			if p.Type == "HWMON" && !strings.Contains(path, " ") {
				path += " curr1_max"
			}
			fmt.Fprintf(&b, "%s %s\n", a, path)
		}
	}
	for _, m := range table.Modes {
		fmt.Fprintf(&b, "< POWER_MODEL ID=%d NAME=%s >\n", m.ID, m.Name)
		for _, s := range m.Settings {
			fmt.Fprintf(&b, "%s %s %s\n", s[0], s[1], s[2])
		}
	}
	for _, m := range table.Modes {
		if m.Default {
			fmt.Fprintf(&b, "< PM_CONFIG DEFAULT=%d >\n", m.ID)
		}
	}
	return []byte(b.String())
}

func TestEveryTrapIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/import.md")
	if err != nil {
		t.Fatal(err)
	}
	for trap, text := range importer.Traps() {
		if !strings.Contains(string(page), "| `"+string(trap)+"` | "+text+" |") {
			t.Errorf("docs/import.md has no row: | `%s` | %s |", trap, text)
		}
	}
}

func TestEveryTrapIsTested(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	for trap := range importer.Traps() {
		if !bytes.Contains(all, []byte(" ("+string(trap)+")")) {
			t.Errorf("no case in testdata meets %s", trap)
		}
	}
}

func TestReadIsBoundedAndStaysInside(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, text []byte) {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("conf/layer.conf", []byte("BBFILE_COLLECTIONS += \"a\"\n"))
	write("README.md", []byte("text\n"))
	write(".git/config", []byte("x\n"))
	write("big.cfg", bytes.Repeat([]byte("CONFIG_A=y\n"), importer.MaxFile/11+1))
	for name, target := range map[string]string{
		"passwd.conf": "/etc/passwd", "conf/again.conf": "layer.conf", "gone.conf": "nowhere", "loop": ".", "self.conf": "self.conf", "null.conf": "/dev/null",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	sources, skipped, err := importer.Read([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range sources {
		rel, _ := filepath.Rel(dir, s.Name)
		names = append(names, rel+" "+s.Link+" "+s.Unread)
	}
	slices.Sort(names)
	want := []string{
		"big.cfg  the file has 2097161 bytes; at most 2 MiB are read",
		"conf/again.conf layer.conf ",
		"gone.conf nowhere a link to nowhere, which does not exist",
		"loop . a link to the folder .; give that folder to import it",
		"null.conf /dev/null a link to /dev/null, which is not a regular file",
		"passwd.conf /etc/passwd ",
		"self.conf self.conf a link to self.conf: too many levels of symbolic links",
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
	names = nil
	for _, s := range skipped {
		rel, _ := filepath.Rel(dir, s.File)
		names = append(names, rel+": "+strings.ReplaceAll(s.Why, dir+"/", ""))
	}
	if d := cmp.Diff([]string{".git: data of version control", "README.md: files of this kind hold no settings", "conf/layer.conf: the same file as conf/again.conf"}, names); d != "" {
		t.Error(d)
	}
	if _, _, err := importer.Read([]string{"/dev/null"}); err == nil {
		t.Error("a device was read")
	}
}

// Every option that a plugin of tuned declares is imported or named.
func TestEveryOptionOfTunedIsAccountedFor(t *testing.T) {
	var text strings.Builder
	n := 0
	for _, plugin := range tuned.Plugins() {
		options, _ := tuned.Options(plugin)
		fmt.Fprintf(&text, "[%s]\n", plugin)
		for _, o := range options {
			fmt.Fprintf(&text, "%s=1\n", o)
			n++
		}
	}
	r, err := importer.Import([]importer.Source{{Name: "x/tuned.conf", Text: []byte(text.String())}}, importer.Options{Board: "orin-nano-8gb", Release: "scarthgap", Check: check})
	if err != nil {
		t.Fatal(err)
	}
	if n < 60 || len(tuned.Plugins()) < 20 {
		t.Errorf("only %d options of %d plugins", n, len(tuned.Plugins()))
	}
	for _, l := range r.Lines {
		if strings.Contains(l.Why, "tuned has no") || strings.Contains(l.Why, "has no option") || l.Verdict != importer.Understood && l.Why == "" {
			t.Errorf("line %d, %s: %s %s", l.Line, l.Text, l.Verdict, l.Why)
		}
	}
}

// Whatever the files say, each line is accounted for and the configuration passes
// the checks.
func FuzzImport(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range seeds {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			if !strings.HasPrefix(file.Name, "want/") {
				kind := slices.Index(importer.Kinds(), string(importer.KindOf(file.Name, file.Data)))
				f.Add(uint8(max(kind, 0)), file.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, text []byte) {
		if len(text) > 4096 {
			return
		}
		sources := []importer.Source{{Name: "x.service", Text: text, Kind: importer.Kind(importer.Kinds()[int(kind)%len(importer.Kinds())])}}
		r, err := importer.Import(sources, importer.Options{Board: "orin-nano-8gb", Release: "scarthgap", Machine: "jetson-orin-nano-devkit", Check: check})
		if err != nil {
			t.Fatal(err)
		}
		assertLinesAccounted(t, sources, r)
	})
}
