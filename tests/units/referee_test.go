// Package units tests that an imported unit behaves as before: systemd itself reads the unit and
// what the layer has in its place, and lists what it makes of them.
package units

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/importer"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/assemble"
)

const systemd = "/usr/lib/systemd/systemd"

// outcome is what became of a unit.
type outcome struct {
	file, name   string
	before       []byte
	after        []byte // nil: the unit stays
	why          string // it stays
	isSettings   bool   // settings replace it
	isFaulty     bool   // systemd refuses it
	differences  []string
	withoutOwner []string // lines that are left
}

func check(files map[string][]byte) *diag.Report {
	p := compiler.OpenFiles(files)
	p.Verify()
	return p.Report
}

// busName is the name on the bus that a unit takes: systemd loads one unit of each.
func busName(o outcome) string {
	for line := range strings.Lines(string(o.before)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "BusName="); ok {
			return name
		}
	}
	return ""
}

// importUnit imports one unit and builds the layer.
func importUnit(t *testing.T, file string, text []byte) outcome {
	t.Helper()
	o := outcome{file: file, name: filepath.Base(file), before: text}
	r, err := importer.Import([]importer.Source{{Name: o.name, Text: text}}, importer.Options{
		Kind: importer.Systemd, Board: "orin-nano-8gb", Release: "scarthgap", Check: check})
	if err != nil {
		o.why = "no configuration: " + err.Error()
		return o
	}
	p := compiler.OpenFiles(map[string][]byte{"config.cue": r.Config})
	report := &diag.Report{}
	files, err := assemble.Emit(p.Layer(p.Targets, nil, report))
	if err != nil || report.Failed() {
		t.Errorf("%s: %v %v", file, err, report.All())
		return o
	}
	if i := slices.IndexFunc(files, func(f emitters.File) bool { return path.Base(f.Path) == o.name }); i >= 0 {
		o.after = files[i].Data
	}
	for _, l := range r.Lines {
		if l.Verdict == importer.Left {
			o.withoutOwner = append(o.withoutOwner, l.Text)
		}
		if o.after == nil && o.why == "" && l.Verdict == importer.Left {
			o.why = l.Why
		}
		o.isSettings = o.isSettings || strings.Contains(l.Why, "the settings replace the unit")
	}
	return o
}

// listUnits returns what systemd makes of the units of a folder, by name.
func listUnits(t *testing.T, units map[string][]byte) map[string][]string {
	t.Helper()
	folder, err := os.MkdirTemp("", "units")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	files := map[string][]byte{"all.target": []byte("[Unit]\nDefaultDependencies=no\n")}
	for name, text := range units {
		files[name] = text
		files["all.target"] = append(files["all.target"], "Wants="+name+"\n"...)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(systemd, "--test", "--system", "--unit=all.target", "--log-target=console")
	cmd.Env = []string{"SYSTEMD_UNIT_PATH=" + folder, "XDG_RUNTIME_DIR=" + folder, "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	if os.Getuid() == 0 {
		const nobody = 65534 // systemd --test refuses to run as root
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("systemd --test: %v\n%s", err, faults.Bytes())
	}
	all := map[string][]string{}
	name := ""
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		unit, isUnit := strings.CutPrefix(line, "\t-> Unit ")
		switch {
		case isUnit:
			name = strings.TrimSuffix(unit, ":")
		case !strings.HasPrefix(line, "\t\t") || strings.HasPrefix(line, "\t\t-> Job"):
			name = ""
		case units[name] != nil:
			line = strings.ReplaceAll(line, folder, "")
			if words := strings.Fields(line); len(words) > 1 && words[0] == "SystemCallFilter:" {
				words[1] = strings.TrimPrefix(words[1], "~")
				slices.Sort(words) // a set
				line = strings.Join(words, " ")
			}
			all[name] = append(all[name], line)
		}
	}
	return all
}

// What depends on the run, and the references of other units, which name the directives' places.
var volatile = regexp.MustCompile(`^\s*(Fragment Path|References|ReferencedBy|.*Timestamp|May GC|Need Daemon Reload|CGroup.*|Source Path|Load Error Code):`)

// compareUnits adds to the outcomes how systemd's view of the unit has changed.
func compareUnits(t *testing.T, all []outcome) {
	t.Helper()
	before, after := map[string][]byte{}, map[string][]byte{}
	for _, o := range all {
		before[o.name], after[o.name] = o.before, o.after
	}
	old, young := listUnits(t, before), listUnits(t, after)
	for i := range all {
		o := &all[i]
		if len(old[o.name]) == 0 {
			t.Errorf("%s: systemd has not listed it", o.file)
			continue
		}
		o.isFaulty = slices.ContainsFunc(old[o.name], func(l string) bool {
			return strings.Contains(l, "Load State: bad-setting") || strings.Contains(l, "Load State: error")
		})
		isNamed := bytes.Contains(o.before, []byte("Description="))
		keep := func(lines []string) []string {
			return slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
				return volatile.MatchString(l) || !isNamed && strings.Contains(l, "\tDescription:")
			})
		}
		a, b := keep(old[o.name]), keep(young[o.name])
		for _, l := range a {
			if !slices.Contains(b, l) {
				o.differences = append(o.differences, "-"+l)
			}
		}
		for _, l := range b {
			if !slices.Contains(a, l) {
				o.differences = append(o.differences, "+"+l)
			}
		}
		if len(o.differences) == 0 && !slices.Equal(commandsOf(a), commandsOf(b)) {
			o.differences = append(o.differences, "the order of the commands")
		}
		if x, y := installOf(o.before), installOf(o.after); !slices.Equal(x, y) {
			o.differences = append(o.differences, fmt.Sprintf("[Install] %q, was %q", y, x))
		}
	}
}

func commandsOf(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.Contains(l, "Command Line:") })
}

// installOf lists the words of the section [Install], which systemd reads only to enable a unit.
func installOf(text []byte) []string {
	var all []string
	section := ""
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		line = strings.TrimSpace(line)
		name, value, isAssignment := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(line, "["):
			section = line
		case section != "[Install]" || !isAssignment || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";"):
		default:
			for word := range strings.FieldsSeq(value) {
				all = append(all, strings.TrimSpace(name)+"="+word)
			}
		}
	}
	slices.Sort(all)
	return all
}

var placeholder = regexp.MustCompile(`@[A-Z][A-Z0-9_]*@`)

// unitFiles lists the services below folders, without templates and links.
func unitFiles(t *testing.T, folders ...string) []string {
	t.Helper()
	var all []string
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && strings.HasSuffix(file, ".service") && !strings.Contains(filepath.Base(file), "@") {
				all = append(all, file)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Each imported unit is to systemd what it was before. YOCTUNE_UNITS names folders with more units,
// separated by blanks.
func TestImportedUnitsBehaveAsBefore(t *testing.T) {
	if _, err := os.Stat(systemd); err != nil {
		t.Skipf("systemd reads no units here: %v", err)
	}
	files := unitFiles(t, append([]string{"testdata"}, strings.Fields(os.Getenv("YOCTUNE_UNITS"))...)...)
	var settings, stay int
	reasons := map[string]int{}
	var batches [][]outcome // of different names
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		key := filepath.Base(file) + string(text)
		if seen[key] {
			continue
		}
		seen[key] = true
		text = placeholder.ReplaceAll(text, []byte("/usr")) // as a recipe does
		o := importUnit(t, file, text)
		switch {
		case o.after != nil:
			at := slices.IndexFunc(batches, func(b []outcome) bool {
				return !slices.ContainsFunc(b, func(p outcome) bool { return p.name == o.name || busName(p) != "" && busName(p) == busName(o) })
			})
			if at < 0 {
				at = len(batches)
				batches = append(batches, nil)
			}
			batches[at] = append(batches[at], o)
		case o.isSettings:
			settings++
		default:
			stay++
			t.Logf("%s stays: %s", o.file, o.why)
			reasons[regexp.MustCompile(` \(line \d+\)|"[^"]*"|[a-zA-Z0-9_.-]+\.service`).ReplaceAllString(o.why, "…")]++
		}
	}
	var same, differ, faulty int
	for _, b := range batches {
		compareUnits(t, b)
		for _, o := range b {
			switch {
			case o.isFaulty && len(o.differences) == 0:
				faulty++
				t.Logf("systemd refuses %s", o.file)
			case len(o.differences) > 0:
				differ++
				t.Errorf("%s:\n%s\nleft: %q\n%s", o.file, strings.Join(o.differences, "\n"), o.withoutOwner, o.after)
			default:
				same++
			}
		}
	}
	t.Logf("%d units of %d files: %d imported and the same to systemd, %d different, %d that systemd refuses, %d became settings, %d stay", len(seen), len(files), same, differ, faulty, settings, stay)
	for _, why := range slices.SortedFunc(maps.Keys(reasons), func(a, b string) int { return reasons[b] - reasons[a] }) {
		t.Logf("%5d stay: %s", reasons[why], why)
	}
	if same == 0 {
		t.Error("no unit was imported")
	}
}
