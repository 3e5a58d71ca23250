// Package threeways holds one configuration in the three languages and the
// mistakes that people make in each.
package threeways

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/sandbox"
	"github.com/yoctune/yoctune/compiler/report/review"
	"github.com/yoctune/yoctune/schema/plan"
)

func TestMain(m *testing.M) {
	if sandbox.IsChild(os.Args[1:]) {
		os.Exit(sandbox.Serve(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// ways are folders with the same configuration.
var ways = []string{"../../examples/video-analytics", "hcl", "jsonnet"}

func open(t *testing.T, dir string) *compiler.Project {
	t.Helper()
	folder := dir
	if slices.Contains(ways[1:], dir) {
		// With the files that the layer carries, which are in the repository once.
		folder = t.TempDir()
		for _, from := range []string{dir, ways[0]} {
			copyMissing(t, folder, from)
		}
	}
	p, err := compiler.Options{Runtime: "../runtime"}.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	if p.Report.Failed() {
		t.Fatalf("%s:\n%s", dir, formatReport(t, p))
	}
	return p
}

// copyMissing copies the files of a folder that are missing in another, except CUE's.
func copyMissing(t *testing.T, to, from string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(from), ".", func(name string, d fs.DirEntry, err error) error {
		target := filepath.Join(to, name)
		if err != nil || d.IsDir() || filepath.Ext(name) == ".cue" {
			return err
		}
		if _, err := os.Stat(target); err == nil {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func formatReport(t *testing.T, p *compiler.Project) string {
	t.Helper()
	var b strings.Builder
	if err := diag.WriteText(&b, p.Report, p.Config.Sources, false); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestThreeLanguagesGiveTheSamePlan(t *testing.T) {
	var first []byte
	var ids []string
	for _, dir := range ways {
		doc, origins := open(t, dir).Document("")
		if doc == nil {
			t.Fatalf("%s: no plan", dir)
		}
		text, err := doc.Encode()
		if err != nil {
			t.Fatal(err)
		}
		keys := slices.Sorted(maps.Keys(origins))
		if first == nil {
			first, ids = text, keys
		}
		if !bytes.Equal(text, first) {
			t.Errorf("%s gives another plan than %s; change the three together:\n%s", dir, ways[0], review.UnifiedDiff(first, text, ways[0], dir))
		}
		if !slices.Equal(keys, ids) {
			t.Errorf("%s has positions of %v, want %v", dir, keys, ids)
		}
	}
}

// place matches a position in a configuration, as text and as JSON. Lists of positions also
// differ in length: a language may need two lines where another needs one.
var place = regexp.MustCompile("(`[a-z]+[.](cue|hcl|jsonnet|libsonnet):[^`]*`(, )?)+|" + `[a-z]+\.(cue|hcl|jsonnet|libsonnet):\d+(:\d+)?|"file": ?"[a-z.]+"|"(line|column)": ?\d+`)

func TestThreeLanguagesGiveTheSameLayer(t *testing.T) {
	var first map[string]string
	for _, dir := range ways {
		layers := open(t, dir).Layers(compiler.Selection{})
		if len(layers) != 1 {
			t.Fatalf("%s: %d layers", dir, len(layers))
		}
		files := map[string]string{}
		for _, f := range layers[0].Files {
			files[f.Path] = place.ReplaceAllString(string(f.Data), "PLACE")
		}
		if first == nil {
			first = files
		}
		if len(files) != len(first) {
			t.Errorf("%s writes %d files, %s %d", dir, len(files), ways[0], len(first))
		}
		for path, text := range first {
			if files[path] != text {
				t.Errorf("%s writes another %s:\n%s", dir, path, review.UnifiedDiff([]byte(text), []byte(files[path]), ways[0], dir))
			}
		}
	}
}

// An origin must name the line that a person would point at.
func TestEverySettingNamesItsOrigin(t *testing.T) {
	for _, dir := range ways {
		p := open(t, dir)
		doc, origins := p.Document("")
		checked := 0
		for _, s := range doc.Settings {
			at, ok := origins[s.ID]
			line, known := p.Config.Sources.Line(at.File, at.Line)
			if !ok || !known {
				t.Errorf("%s: the place of %s is %v", dir, s.ID, at)
				continue
			}
			name, isSysctl := strings.CutPrefix(s.ID, "sysctl.")
			if !isSysctl {
				continue
			}
			checked++
			if !strings.Contains(line, strings.Trim(name, `"`)) {
				t.Errorf("%s: %s is said to come from %s:%d:%d, which reads %q", dir, s.ID, at.File, at.Line, at.Column, line)
			}
		}
		if checked < 10 {
			t.Errorf("%s: only %d sysctls", dir, checked)
		}
	}
}

// Places of a mistake are marked in its text: › stands before what the message
// points at, » before the other side of a conflict.
const here, there = "›", "»"

// removeMarks removes the marks from text and returns their positions.
func removeMarks(name, text string) (clean string, pos, related plan.Position) {
	for i, line := range strings.Split(text, "\n") {
		for _, mark := range []string{here, there} {
			j := strings.Index(line, mark)
			if j < 0 {
				continue
			}
			line = line[:j] + line[j+len(mark):]
			at := plan.Position{File: name, Line: i + 1, Column: j + 1}
			if mark == here {
				pos = at
			} else {
				related = at
			}
		}
		clean += line + "\n"
	}
	return clean, pos, related
}

var heads = map[string]string{
	"cue":     "package box\nlayer: {name: \"box\", maintainer: \"A <a@example.com>\"}\n",
	"hcl":     "layer {\n  name = \"box\"\n  maintainer = \"A <a@example.com>\"\n}\n",
	"jsonnet": "{ layer: { name: 'box', maintainer: 'A <a@example.com>' } } + ",
}

func TestFaultsAreTheSameInEveryLanguage(t *testing.T) {
	for _, c := range []struct {
		claim, id, path    string
		help               string // of CUE and Jsonnet
		hclHelp            string // where HCL has another name
		cue, hcl, jsonnet  string
		expected, got, msg string
	}{
		{
			claim: "wrong type", id: "YT0101", path: "targets.cam.memory.ksm", expected: "true or false", got: `"yes" (string)`,
			cue: `targets: cam: {board: "orin-nano-8gb", release: "scarthgap", memory: ksm: ›"yes"}`,
			hcl: `target "cam" {
  board   = "orin-nano-8gb"
  release = "scarthgap"
  memory {
    ksm = ›"yes"
  }
}`,
			jsonnet: `{ targets: { cam: { board: 'orin-nano-8gb', release: 'scarthgap', memory: { ksm: ›'yes' } } } }`,
		},
		{
			claim: "unknown field", id: "YT0102", path: "targets.cam.memory.thpDefrg", help: `did you mean "thpDefrag"?`, hclHelp: `did you mean "thp_defrag"?`,
			cue: `targets: cam: {board: "orin-nano-8gb", release: "scarthgap", memory: ›thpDefrg: "madvise"}`,
			hcl: `target "cam" {
  board   = "orin-nano-8gb"
  release = "scarthgap"
  memory {
    ›thp_defrg = "madvise"
  }
}`,
			jsonnet: `{ targets: { cam: { board: 'orin-nano-8gb', release: 'scarthgap', memory: { ›thpDefrg: 'madvise' } } } }`,
		},
		{
			claim: "missing field", id: "YT0104", path: "targets.cam.release", msg: `"release" is missing`,
			cue: `targets: cam: ›{board: "orin-nano-8gb"}`,
			hcl: `›target "cam" {
  board = "orin-nano-8gb"
}`,
			jsonnet: `{ targets: { cam: ›{ board: 'orin-nano-8gb' } } }`,
		},
		{
			claim: "value not in the list", id: "YT0103", path: `targets.cam.storage."nvme*".scheduler`, help: `did you mean "mq-deadline"?`, got: `"deadline" (string)`,
			cue: `targets: cam: {board: "orin-nano-8gb", release: "scarthgap", storage: "nvme*": scheduler: ›"deadline"}`,
			hcl: `target "cam" {
  board   = "orin-nano-8gb"
  release = "scarthgap"
  storage "nvme*" {
    scheduler = ›"deadline"
  }
}`,
			jsonnet: `{ targets: { cam: { board: 'orin-nano-8gb', release: 'scarthgap', storage: { 'nvme*': { scheduler: ›'deadline' } } } } }`,
		},
		{
			claim: "board that does not exist", id: "YT0201", path: "targets.cam.board",
			cue: `targets: cam: {board: ›"orin-nano-9gb", release: "scarthgap"}`,
			hcl: `target "cam" {
  board   = ›"orin-nano-9gb"
  release = "scarthgap"
}`,
			jsonnet: `{ targets: { cam: { board: ›'orin-nano-9gb', release: 'scarthgap' } } }`,
		},
		{
			claim: "number out of bounds", id: "YT0106", path: "targets.cam.cpu.isolate[1]", got: "300 (integer)",
			cue: `targets: cam: {board: "orin-nano-8gb", release: "scarthgap", cpu: isolate: [4, ›300]}`,
			hcl: `target "cam" {
  board   = "orin-nano-8gb"
  release = "scarthgap"
  cpu {
    isolate = [4, ›300]
  }
}`,
			jsonnet: `{ targets: { cam: { board: 'orin-nano-8gb', release: 'scarthgap', cpu: { isolate: [4, ›300] } } } }`,
		},
		{
			claim: "frequency that the module does not have", id: "power-frequency", path: "targets.cam.power.modes.A.gpu.max",
			cue: `targets: cam: {board: "orin-nano-8gb", release: "scarthgap", power: {default: "A", modes: A: {from: "15W", gpu: max: ›"917MHz"}}}`,
			hcl: `target "cam" {
  board   = "orin-nano-8gb"
  release = "scarthgap"
  power {
    default = "A"
    mode "A" {
      from = "15W"
      gpu {
        max = ›"917MHz"
      }
    }
  }
}`,
			jsonnet: `{ targets: { cam: { board: 'orin-nano-8gb', release: 'scarthgap', power: { default: 'A', modes: { A: { from: '15W', gpu: { max: ›'917MHz' } } } } } } }`,
		},
		{
			claim: "profiles that disagree", id: "YT0105", path: "targets.cam.cpu.governor",
			cue: `profiles: {
	a: cpu: governor: »"schedutil"
	b: cpu: governor: ›"performance"
}
targets: cam: {board: "orin-nano-8gb", release: "scarthgap", use: ["a", "b"]}`,
			hcl: `profile "a" {
  cpu {
    governor = »"schedutil"
  }
}
profile "b" {
  cpu {
    governor = ›"performance"
  }
}
target "cam" {
  board   = "orin-nano-8gb"
  release = "scarthgap"
  use     = ["a", "b"]
}`,
			jsonnet: `{
  profiles: {
    a: { cpu: { governor: »'schedutil' } },
    b: { cpu: { governor: ›'performance' } },
  },
  targets: { cam: { board: 'orin-nano-8gb', release: 'scarthgap', use: ['a', 'b'] } },
}`,
		},
		{
			claim: "name that is not defined", id: "YT0005",
			cue: `targets: cam: {board: "orin-nano-8gb", release: "scarthgap", cpu: governor: ›schedutil}`,
			hcl: `target "cam" {
  board   = "orin-nano-8gb"
  release = "scarthgap"
  cpu {
    governor = ›schedutil
  }
}`,
			jsonnet: `{ targets: { cam: { board: 'orin-nano-8gb', release: 'scarthgap', cpu: { governor: ›schedutil } } } }`,
		},
	} {
		for _, l := range []struct{ ext, text string }{{"cue", c.cue}, {"hcl", c.hcl}, {"jsonnet", c.jsonnet}} {
			t.Run(c.claim+"/"+l.ext, func(t *testing.T) {
				name := "config." + l.ext
				text, pos, related := removeMarks(name, heads[l.ext]+l.text)
				p := compiler.OpenFiles(map[string][]byte{name: []byte(text)})
				all := p.Report.All()
				i := slices.IndexFunc(all, func(d diag.Diagnostic) bool { return d.ID == c.id })
				if i < 0 {
					t.Fatalf("no %s:\n%s", c.id, formatReport(t, p))
				}
				d := all[i]
				if d.Pos != pos || d.Path != c.path && c.path != "" {
					t.Errorf("%s at %v, want %s at %v", d.Path, d.Pos, c.path, pos)
				}
				if related.File != "" && (len(d.Related) != 1 || d.Related[0].Pos != related) {
					t.Errorf("the other side is at %v, want %v", d.Related, related)
				}
				if n := p.Report.Count(diag.Error); n != 1 {
					t.Errorf("%d errors:\n%s", n, formatReport(t, p))
				}
				help := c.help
				if l.ext == "hcl" && c.hclHelp != "" {
					help = c.hclHelp
				}
				for _, want := range []struct{ what, want, got string }{
					{"help", help, d.Help}, {"expected", c.expected, d.Expected}, {"got", c.got, d.Got}, {"message", c.msg, d.Message},
				} {
					if want.want != "" && want.got != want.want {
						t.Errorf("%s: %q, want %q", want.what, want.got, want.want)
					}
				}
			})
		}
	}
}

// The files of a folder are one configuration, in any mix of languages.
func TestFilesOfSeveralLanguagesUnify(t *testing.T) {
	for _, c := range []struct {
		claim        string
		files        map[string]string
		id           string // "" when it is sound
		path         string
		pos, related string
		value, at    string // path and where it was written
	}{
		{
			claim: "each language sets its part",
			files: map[string]string{
				"layer.cue":       "package box\nlayer: {name: \"box\", maintainer: \"A <a@example.com>\"}\n",
				"target.hcl":      "target \"cam\" {\n  board   = \"orin-nano-8gb\"\n  release = \"scarthgap\"\n  use     = [\"calm\"]\n}\n",
				"profile.jsonnet": "{ profiles: { calm: { sysctl: { 'vm.swappiness': 10 } } } }\n",
			},
			value: "profiles.calm.sysctl", at: "profile.jsonnet:1:31",
		},
		{
			claim: "the same value twice is one value",
			files: map[string]string{
				"a.hcl": "layer {\n  name = \"box\"\n  maintainer = \"A <a@example.com>\"\n}\ntarget \"cam\" {\n  board = \"orin-nano-8gb\"\n  release = \"scarthgap\"\n  sysctl = { \"vm.swappiness\" = 10 }\n}\n",
				"b.cue": "package box\ntargets: cam: sysctl: \"vm.swappiness\": 10\n",
			},
		},
		{
			claim: "two values conflict at both places",
			files: map[string]string{
				"a.hcl": "layer {\n  name = \"box\"\n  maintainer = \"A <a@example.com>\"\n}\ntarget \"cam\" {\n  board = \"orin-nano-8gb\"\n  release = \"scarthgap\"\n  sysctl = { \"vm.swappiness\" = 10 }\n}\n",
				"b.cue": "package box\ntargets: cam: sysctl: \"vm.swappiness\": 20\n",
			},
			id: "YT0105", path: `targets.cam.sysctl."vm.swappiness"`, pos: "a.hcl:8:32", related: "b.cue:2:40",
		},
		{
			claim: "HCL against Jsonnet, without CUE",
			files: map[string]string{
				"a.hcl":     "layer {\n  name = \"box\"\n  maintainer = \"A <a@example.com>\"\n}\ntarget \"cam\" {\n  board = \"orin-nano-8gb\"\n  release = \"scarthgap\"\n  cpu {\n    governor = \"schedutil\"\n  }\n}\n",
				"b.jsonnet": "{ targets: { cam: { cpu: { governor: 'performance' } } } }\n",
			},
			id: "YT0105", path: "targets.cam.cpu.governor", pos: "a.hcl:9:16", related: "b.jsonnet:1:38",
		},
		{
			claim: "two HCL files unify as two CUE files do",
			files: map[string]string{
				"a.hcl": "layer {\n  name = \"box\"\n  maintainer = \"A <a@example.com>\"\n}\ntarget \"cam\" {\n  board = \"orin-nano-8gb\"\n  release = \"scarthgap\"\n}\n",
				"b.hcl": "target \"cam\" {\n  cpu {\n    governor = \"schedutil\"\n  }\n}\n",
			},
			value: "targets.cam.cpu.governor", at: "b.hcl:3:16",
		},
		{
			claim: "CUE enforces a policy on the others",
			files: map[string]string{
				"a.hcl":      "layer {\n  name = \"box\"\n  maintainer = \"A <a@example.com>\"\n}\ntarget \"cam\" {\n  board = \"orin-nano-8gb\"\n  release = \"master\"\n}\n",
				"policy.cue": "package box\ntargets: [string]: release: \"scarthgap\"\n",
			},
			id: "YT0105", path: "targets.cam.release", pos: "a.hcl:7:13", related: "policy.cue:2:29",
		},
		{
			claim: "CUE refers to a value of another language",
			files: map[string]string{
				"a.jsonnet": "{ layer: { name: 'box', maintainer: 'A <a@example.com>' }, profiles: { calm: { sysctl: { 'vm.swappiness': 10 } } } }\n",
				"b.cue":     "package box\ntargets: cam: {board: \"orin-nano-8gb\", release: \"scarthgap\", sysctl: profiles.calm.sysctl}\n",
			},
			value: "targets.cam.sysctl", at: "b.cue:2:70",
		},
	} {
		t.Run(c.claim, func(t *testing.T) {
			files := map[string][]byte{}
			for name, text := range c.files {
				files[name] = []byte(text)
			}
			p := compiler.OpenFiles(files)
			if c.id == "" {
				if p.Report.Failed() {
					t.Fatalf("refused:\n%s", formatReport(t, p))
				}
				if c.value != "" {
					a, err := p.Explain(c.value)
					if err != nil || a.Pos == nil || compiler.FormatPosition(*a.Pos) != c.at {
						t.Errorf("%s is at %v (%v), want %s", c.value, a.Pos, err, c.at)
					}
				}
				return
			}
			all := p.Report.All()
			if len(all) != 1 || all[0].ID != c.id || all[0].Path != c.path {
				t.Fatalf("want one %s for %s:\n%s", c.id, c.path, formatReport(t, p))
			}
			d := all[0]
			places := []string{compiler.FormatPosition(d.Pos)}
			for _, r := range d.Related {
				places = append(places, compiler.FormatPosition(r.Pos))
			}
			slices.Sort(places)
			if want := []string{c.pos, c.related}; !slices.Equal(places, want) {
				t.Errorf("places %v, want %v", places, want)
			}
		})
	}
}

// The three examples of the guide describe the same configuration.
func TestGuideExamplesAreEquivalent(t *testing.T) {
	guide, err := os.ReadFile("../../docs/languages.md")
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	for _, ext := range []string{"cue", "hcl", "jsonnet"} {
		_, rest, ok := strings.Cut(string(guide), "```"+ext+"\n")
		text, _, closed := strings.Cut(rest, "```\n")
		if !ok || !closed {
			t.Fatalf("the guide has no example in %s", ext)
		}
		p := compiler.OpenFiles(map[string][]byte{"config." + ext: []byte(text)})
		doc, _ := p.Document("")
		if doc == nil {
			t.Fatalf("%s:\n%s", ext, formatReport(t, p))
		}
		plan, err := doc.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = plan
		}
		if !bytes.Equal(plan, first) {
			t.Errorf("%s gives another plan:\n%s", ext, review.UnifiedDiff(first, plan, "cue", ext))
		}
	}
}
