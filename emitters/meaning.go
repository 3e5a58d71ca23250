package emitters

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/plan"
)

// Meaning is one thing that a file of the layer does to a build or to a device.
// Emitters state it together with the file; the layer's manifest records it, so
// that review, check-layer and others need not parse the file.
type Meaning struct {
	Kind    Kind   `json:"kind"`
	Name    string `json:"name"`              // in the terms of the format: a sysctl key, a unit, a package
	Value   string `json:"value,omitempty"`   // what the file makes of it; see [Kind]
	Op      string `json:"op,omitempty"`      // of a variable; "" is "="
	Line    int    `json:"line,omitempty"`    // of a variable: its line in the file
	SHA256  string `json:"sha256,omitempty"`  // of what is fetched under the name
	Machine string `json:"machine,omitempty"` // "" for the machine of the file, or for every machine
	With    string `json:"with,omitempty"`    // collection without which it has no effect
	ID      string `json:"id,omitempty"`      // part of the configuration, as in plan.Origins; "" if it is the name
	From    string `json:"from,omitempty"`    // FILE:LINE of the configuration, "" if no line caused it
}

// Kind is what a meaning is about. Readers refuse unknown kinds.
type Kind string

// The kinds, with what Value holds.
const (
	Setting  Kind = "setting"  // a value that the device enforces: the wanted value
	Argument Kind = "argument" // kernel argument: its value, "" for a flag
	Option   Kind = "option"   // kernel option, without CONFIG_: y, m, n or the text after =
	Mode     Kind = "mode"     // power mode: "default", or its number
	Profile  Kind = "profile"  // fan profile
	Module   Kind = "module"   // kernel module: load or blacklist
	Unit     Kind = "unit"     // systemd unit: "unit", "drop-in", or "enabled" for an instance of a unit of another recipe
	Pipeline Kind = "pipeline" // inference pipeline: kind of its source
	Package  Kind = "package"  // install, recommend or exclude
	Model    Kind = "model"    // file of a pipeline: the address it is fetched from
	Key      Kind = "key"      // public key that plans are signed with: its minisign id
	Program  Kind = "program"  // program of the runtime: its version
	Licences Kind = "licences" // licence texts of a program: SPDX identifiers
	Plan     Kind = "plan"     // plan of a target: its digest
	Variable Kind = "variable" // bitbake variable with overrides and flags: the value as written
	Recipe   Kind = "recipe"   // the classes it inherits
	Append   Kind = "append"   // bbappend for a recipe: the file beside it that has the content
	Layer    Kind = "layer"    // collection: LAYERVERSION
)

// Kinds lists every kind.
func Kinds() []Kind {
	return []Kind{Setting, Argument, Option, Mode, Profile, Module, Unit, Pipeline, Package, Model, Key, Program, Licences, Plan, Variable, Recipe, Append, Layer}
}

// Part is the part of the configuration that a meaning comes from.
func (m Meaning) Part() string {
	if m.ID == "" {
		return m.Name
	}
	return m.ID
}

// ReadVariables adds to files the meaning of their bitbake variables, once.
func ReadVariables(l *plan.Layer, files []File) {
	machines := map[string]bool{}
	for _, t := range l.Targets {
		machines[t.Machine] = true
	}
	for i := range files {
		if f := &files[i]; !f.read {
			f.Means, f.read = append(f.Means, readBitBake(f.Path, f.Data, machines, f.causes)...), true
			f.causes = nil
		}
	}
}

// Complete adds to each file what depends on the whole layer: the meaning of its bitbake
// variables, and the lines of the configuration that caused it.
func Complete(l *plan.Layer, files []File) {
	ReadVariables(l, files)
	targets := map[string]string{} // by machine
	for _, t := range l.Targets {
		targets[t.Machine] = t.Name
	}
	for i := range files {
		f := &files[i]
		stated := map[string]bool{}
		for j := range f.Means {
			m := &f.Means[j]
			machine := cmp.Or(m.Machine, f.Machine)
			if p, ok := Position(l, Ref{Target: targets[machine], ID: m.Part()}); ok {
				m.From = Line(p)
				stated[m.From] = true
			}
		}
		f.From = slices.DeleteFunc(Lines(l, f.Origins), func(at string) bool { return stated[at] })
	}
}

// PlanFile is the base name of the plan.
const PlanFile = "plan.json"

// Holders finds the files that put the parts of plans in force without yoctuned. The plan
// itself and the keys it is signed with do nothing alone.
type Holders struct {
	files []File
	means map[string][]means // by machine; "" for every machine
}

// means is a meaning of a file, by their indices.
type means struct{ file, meaning int }

// HoldersAmong returns the finder for the files of a layer.
func HoldersAmong(files []File) Holders {
	h := Holders{files, map[string][]means{}}
	for i := range files {
		f := &files[i]
		if path.Base(f.Path) == PlanFile {
			continue
		}
		for j := range f.Means {
			if m := &f.Means[j]; m.Kind != Package { // which is needed by what holds the part
				machine := cmp.Or(m.Machine, f.Machine)
				h.means[machine] = append(h.means[machine], means{i, j})
			}
		}
	}
	return h
}

// Find returns the files that hold each part of a target's plan, by part.
func (h Holders) Find(t *plan.Target) map[string][]*File {
	found := slices.Concat(h.means[""], h.means[t.Machine])
	slices.SortFunc(found, func(a, b means) int { return cmp.Or(a.file-b.file, a.meaning-b.meaning) })
	out := map[string][]*File{}
	for _, m := range found {
		f := &h.files[m.file]
		part := f.Means[m.meaning].Part()
		if list := out[part]; len(list) == 0 || list[len(list)-1] != f {
			out[part] = append(list, f)
		}
	}
	return out
}

// ByMachine returns the files of each machine, in their order; those for every machine are
// under "".
func ByMachine(files []File) map[string][]*File {
	out := map[string][]*File{}
	for i := range files {
		f := &files[i]
		out[f.Machine] = append(out[f.Machine], f)
	}
	return out
}

// Unheld returns the parts of each target's plan that no file of the layer puts in force
// without yoctuned.
func Unheld(l *plan.Layer, files []File) []Ref {
	var out []Ref
	holders, own := HoldersAmong(files), ByMachine(files)
	for _, t := range l.Targets {
		held := holders.Find(t)
		for _, f := range own[t.Machine] {
			if path.Base(f.Path) != PlanFile {
				continue
			}
			for _, m := range f.Means {
				if m.Kind != Plan && len(held[m.Part()]) == 0 {
					out = append(out, Ref{Target: t.Name, ID: m.Part()})
				}
			}
		}
	}
	return out
}

// Lines returns the configuration lines of refs, sorted and without duplicates.
func Lines(l *plan.Layer, refs []Ref) []string {
	var places []plan.Position
	for _, ref := range refs {
		if p, ok := Position(l, ref); ok {
			p.Column = 0
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b plan.Position) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	var out []string
	for _, p := range slices.Compact(places) {
		out = append(out, Line(p))
	}
	return out
}

// Line writes a position as FILE:LINE.
func Line(p plan.Position) string {
	if p.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}
