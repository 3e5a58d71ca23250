package review

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/yoctune/yoctune/compiler/report/graph"
	"github.com/yoctune/yoctune/compiler/report/htmlpage"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed review.html.tmpl
var parts string

// WriteHTML writes the review as one page: summary, changes, pictures, and every
// file side by side.
func (r *Review) WriteHTML(w io.Writer) error {
	return htmlpage.Report{
		Title: fmt.Sprintf("Review of %s: %s", r.Layer, count(r.Changes(), "change")),
		Parts: parts,
		Funcs: template.FuncMap{
			"count": count, "place": FormatPosition, "pictures": r.pictures(), "visible": printable.Line, "gravest": r.gravestChanges,
			"sides": compareSides, "side": func(c cell, class string) sided { return sided{c, class} }, "folders": folders, "sign": Kind.sign, "open": open,
		},
		Data: r,
	}.Write(w)
}

// open reports whether a file is shown expanded. Long files and files that repeat the
// others are collapsed.
func open(f File) bool {
	return f.Path != "README.md" && !strings.HasSuffix(f.Path, "origins.json") && len(f.Was)+len(f.Now) < 24<<10
}

// figure is a picture of a target before and after.
type figure struct {
	Caption  string
	Was, Now template.HTML // Was is empty where nothing changed
	Wide     bool          // too wide for two beside each other
}

// album are the pictures of a target, or the name of an earlier one that has the
// same.
type album struct {
	Figures []figure
	As      string
}

func (r *Review) pictures() func(Target) album {
	first := map[[sha256.Size]byte]string{}
	return func(t Target) album {
		a := album{Figures: pictures(t)}
		key := sha256.Sum256(fmt.Append(nil, a.Figures))
		if name, ok := first[key]; ok && len(a.Figures) > 0 {
			return album{As: name}
		}
		first[key] = t.Name
		return a
	}
}

// grave is a change of high risk and the section that it is in.
type grave struct {
	Change
	Anchor, Where string
}

// gravestChanges returns the changes to review first.
func (r *Review) gravestChanges() []grave {
	var out []grave
	from := func(list []Change, anchor, where string) {
		for _, c := range list {
			if c.Risk == high {
				out = append(out, grave{c, anchor, where})
			}
		}
	}
	from(r.Build, "build", "build settings")
	from(r.Shared, "shared", "every target")
	for i, t := range r.Targets {
		from(t.Own, fmt.Sprintf("target-%d", i), t.Name)
	}
	return out
}

// pictures draws what helps to see a target's changes.
func pictures(t Target) []figure {
	if t.now == nil {
		return nil
	}
	before := [4]*graph.Drawing{}
	if t.was != nil {
		units := t.was.graphUnits()
		before = [4]*graph.Drawing{nil, graph.Cores(t.was.Plan, units), graph.Pipelines(t.was.Plan), graph.Units(units)}
	}
	units := t.now.graphUnits()
	captions := [4]string{
		"Power modes: clock limits. Grey: stock modes and earlier values; • the default",
		"Use of the cores",
		"Pipelines",
		"Unit order. Solid: Wants= or Requires=; dashed: ordering only, or not part of the layer",
	}
	var out []figure
	for i, d := range []*graph.Drawing{graph.Power(t.now.Plan, planOf(t.was)), graph.Cores(t.now.Plan, units), graph.Pipelines(t.now.Plan), graph.Units(units)} {
		f := figure{Caption: captions[i], Now: htmlpage.Picture(d), Wide: d.Width() > 620}
		if was := htmlpage.Picture(before[i]); was != f.Now {
			f.Was = was
		}
		if f.Now != "" {
			out = append(out, f)
		}
	}
	return out
}

// graphUnits are the units of a target in the form of package graph. Drop-ins for
// foreign units count if they set order or cores.
func (t *target) graphUnits() []graph.Unit {
	var out []graph.Unit
	eachKey(t.units, nil, func(name string) {
		u := t.units[name]
		cpus := u.get("Service.AllowedCPUs")
		if cpus == "" {
			cpus = u.get("Slice.AllowedCPUs")
		}
		unit := graph.Unit{Name: name, Slice: u.get("Service.Slice"), CPUs: cpus,
			After: strings.Fields(u.get("Unit.After")), Wants: strings.Fields(u.get("Unit.Wants")), Requires: strings.Fields(u.get("Unit.Requires"))}
		if stem, ok := strings.CutSuffix(name, ".timer"); ok {
			unit.Wants = append(unit.Wants, stem+".service")
		}
		if base, _, ok := strings.Cut(name, ".d-"); ok {
			if unit.Name = base; unit.Slice+unit.CPUs == "" && len(unit.After)+len(unit.Wants)+len(unit.Requires) == 0 {
				return
			}
		}
		out = append(out, unit)
	})
	return out
}

// folder is a node of the tree of files. A folder that contains only another folder is merged
// with it.
type folder struct {
	Name    string
	Folders []*folder
	Files   []entry
}

type entry struct {
	File
	Number int // of the anchor
	Name   string
}

// folders makes the tree of files that are sorted by path.
func folders(files []File) *folder {
	root := &folder{}
	for i, f := range files {
		at := root
		dir, name := path.Split(f.Path)
		for part := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
			if part == "" {
				continue
			}
			at = at.child(part)
		}
		at.Files = append(at.Files, entry{f, i, name})
	}
	root.join()
	return root
}

func (f *folder) child(name string) *folder {
	for _, c := range f.Folders {
		if c.Name == name {
			return c
		}
	}
	c := &folder{Name: name}
	f.Folders = append(f.Folders, c)
	return c
}

func (f *folder) join() {
	for _, c := range f.Folders {
		c.join()
		for len(c.Folders) == 1 && len(c.Files) == 0 {
			only := c.Folders[0]
			c.Name, c.Folders, c.Files = c.Name+"/"+only.Name, only.Folders, only.Files
		}
	}
}

// row is a line of both sides; a Gap stands for lines left out.
type row struct {
	Gap      bool
	Was, Now cell
}

// cell is one side of a row: a line with what differs from the other marked.
type cell struct {
	No                  int // 0: nothing on this side
	Before, Mark, After string
	Changed             bool
}

// sided is a cell with its side, "old" or "new".
type sided struct {
	cell
	Class string
}

// maxRows bounds how much of one file a page shows.
const maxRows = 4000

// compareSides sets the lines of two texts beside each other.
func compareSides(f File) []row {
	if !utf8.Valid(f.Was) || !utf8.Valid(f.Now) {
		return nil
	}
	var out []row
	for i, h := range hunks(lines(string(f.Was), string(f.Now))) {
		if i > 0 {
			out = append(out, row{Gap: true})
		}
		out = append(out, h.rows()...)
		if len(out) > maxRows {
			return append(out[:maxRows], row{Gap: true})
		}
	}
	return out
}

func (h hunk) rows() []row {
	var out []row
	a, b := h.from, h.to
	for i := 0; i < len(h.lines); {
		if h.lines[i].sign == ' ' {
			text := visibleLine(h.lines[i].text)
			out = append(out, row{Was: cell{No: a, Before: text}, Now: cell{No: b, Before: text}})
			a, b, i = a+1, b+1, i+1
			continue
		}
		var gone, come []string
		for ; i < len(h.lines) && h.lines[i].sign != ' '; i++ {
			if h.lines[i].sign == '-' {
				gone = append(gone, visibleLine(h.lines[i].text))
			} else {
				come = append(come, visibleLine(h.lines[i].text))
			}
		}
		for n := range max(len(gone), len(come)) {
			var r row
			if n < len(gone) {
				r.Was = cell{No: a, Mark: gone[n], Changed: true}
				a++
			}
			if n < len(come) {
				r.Now = cell{No: b, Mark: come[n], Changed: true}
				b++
			}
			if n < len(gone) && n < len(come) {
				r.Was.Before, r.Was.Mark, r.Was.After, r.Now.Mark = splitDifference(gone[n], come[n])
				r.Now.Before, r.Now.After = r.Was.Before, r.Was.After
			} else {
				// A line without a counterpart is entirely new, as the row's colour shows.
				r.Was.Before, r.Was.Mark = r.Was.Mark, ""
				r.Now.Before, r.Now.Mark = r.Now.Mark, ""
			}
			out = append(out, r)
		}
	}
	return out
}

// splitDifference splits two lines into what they begin with, what differs, and how they
// end.
func splitDifference(a, b string) (before, was, after, now string) {
	x, y := []rune(a), []rune(b)
	i := 0
	for i < len(x) && i < len(y) && x[i] == y[i] {
		i++
	}
	j := 0
	for j < len(x)-i && j < len(y)-i && x[len(x)-1-j] == y[len(y)-1-j] {
		j++
	}
	return string(x[:i]), string(x[i : len(x)-j]), string(x[len(x)-j:]), string(y[i : len(y)-j])
}

func visibleLine(s string) string {
	s = strings.TrimSuffix(s, "\n")
	return printable.Line(strings.ReplaceAll(s, "\t", "    "))
}

func planOf(t *target) *plan.Plan {
	if t == nil {
		return nil
	}
	return t.Plan
}
