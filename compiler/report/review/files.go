package review

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

// addUnexplained adds a change for every file that differs and that no other change explains, so that
// no difference is called none.
func (r *Review) addUnexplained(before, after *layer) {
	for _, f := range r.Files {
		was, now := before.files[f.Path], after.files[f.Path]
		known := known(f, was, now)
		at := slices.IndexFunc(r.Targets, func(t Target) bool { return known.Machine != "" && t.Machine == known.Machine })
		if describes(f) || r.explains(f, was, now, at) {
			continue
		}
		ch := Change{Area: "file", Name: f.Path, Kind: f.Kind, Details: changedLines(f), Need: reflash, Rebuild: recipesOf(was, now)}
		if strings.Contains(f.Path, "/files/") { // of a package
			ch.Need = reboot
		}
		if len(known.Origins) > 0 {
			ch.ID = known.Origins[0].ID
		}
		ch.Risk, ch.Why = risk(ch)
		if at < 0 {
			ch.Origin = findOrigin(after.origins, ch.ID)
			r.Build = append(r.Build, ch)
			continue
		}
		t := &r.Targets[at]
		ch.Origin = findOrigin(t.now.origins, ch.ID)
		t.Changes = append(t.Changes, ch)
	}
}

// describes reports whether only texts for people differ in a file.
func describes(f File) bool {
	base := path.Base(f.Path)
	switch {
	case strings.HasSuffix(base, ".md"), strings.HasPrefix(base, "COPYING"), base == ".yoctune-manifest.json", strings.HasSuffix(base, ".origins.json"):
		return true
	case f.Kind != Changed || isBinary(f.Was) || isBinary(f.Now):
		return false
	}
	return bytes.Equal(withoutComments(f.Was), withoutComments(f.Now))
}

// withoutComments returns a text without the lines that are comments in all formats of layers but
// JSON, where none begins like that.
func withoutComments(text []byte) []byte {
	var out []byte
	for l := range bytes.Lines(text) {
		if !bytes.HasPrefix(bytes.TrimSpace(l), []byte("#")) || bytes.HasPrefix(l, []byte("#!")) {
			out = append(out, l...)
		}
	}
	return out
}

// explains reports whether a change of the review is about the file. at is the target of the file, -1
// where it is for all of them.
func (r *Review) explains(f File, was, now emitters.File, at int) bool {
	changes := r.Build
	for i, t := range r.Targets {
		if at >= 0 && i != at {
			continue
		}
		if t.Kind != Changed {
			return true
		}
		changes = slices.Concat(changes, t.Changes)
	}
	if at >= 0 && path.Base(f.Path) == emitters.PlanFile {
		t := r.Targets[at]
		return sameButSerial(*t.was.Plan, *t.now.Plan) || slices.ContainsFunc(t.Changes, func(c Change) bool { return c.Area != "plan" })
	}
	if isUnit(known(f, was, now)) || !slices.Equal(comparedMeanings(f.Path, was), comparedMeanings(f.Path, now)) {
		return true
	}
	recipes := recipesOf(was, now)
	return slices.ContainsFunc(changes, func(c Change) bool {
		switch {
		case c.Area == "device", slices.ContainsFunc(recipes, func(pn string) bool { return slices.Contains(c.Rebuild, pn) }):
			return true
		}
		line := ""
		if c.Origin != nil {
			line = fmt.Sprintf("%s:%d", c.Origin.File, c.Origin.Line)
		}
		for _, side := range []emitters.File{was, now} {
			if line != "" && slices.Contains(side.From, line) {
				return true
			}
			if slices.ContainsFunc(side.Means, func(m emitters.Meaning) bool { return related(c.ID, m.Part()) || line != "" && m.From == line }) {
				return true
			}
		}
		return false
	})
}

// known is the side that has a file, the new one if both do.
func known(f File, was, now emitters.File) emitters.File {
	if f.Kind == Removed {
		return was
	}
	return now
}

// isUnit reports whether a file is a unit, whose text is compared key by key.
func isUnit(f emitters.File) bool {
	return slices.ContainsFunc(f.Means, func(m emitters.Meaning) bool {
		return m.Kind == emitters.Unit && m.Value != "enabled" && (f.Machine != "" || strings.HasPrefix(f.Path, programFiles))
	})
}

// comparedMeanings returns the meanings of a file that are compared one by one.
func comparedMeanings(name string, f emitters.File) []emitters.Meaning {
	var out []emitters.Meaning
	for _, m := range f.Means {
		switch m.Kind {
		case emitters.Recipe, emitters.Append, emitters.Layer:
			continue
		case emitters.Variable:
			if !strings.HasPrefix(name, settingsFiles) {
				continue
			}
		}
		m.Line, m.From, m.ID = 0, "", ""
		out = append(out, m)
	}
	return out
}

// sameButSerial reports whether two plans differ in their serials only.
func sameButSerial(a, b plan.Plan) bool {
	a.Serial, a.Digest = b.Serial, b.Digest
	return reflect.DeepEqual(a, b)
}

// related reports whether one part of a configuration contains the other.
func related(a, b string) bool {
	return a == b || a != "" && strings.HasPrefix(b, a+".") || b != "" && strings.HasPrefix(a, b+".")
}

// recipesOf returns the recipes that a file is, or is appended to.
func recipesOf(was, now emitters.File) []string {
	var out []string
	for _, m := range slices.Concat(was.Means, now.Means) {
		if (m.Kind == emitters.Recipe || m.Kind == emitters.Append) && !slices.Contains(out, m.Name) {
			out = append(out, m.Name)
		}
	}
	return out
}

// mostLines is the number of places up to which a file's differences are listed.
const mostLines = 8

// changedLines returns the differences of a text, nil if they are many.
func changedLines(f File) []Detail {
	if f.Kind != Changed || isBinary(f.Was) || isBinary(f.Now) {
		return nil
	}
	var out []Detail
	number, open := 0, false // of the new text
	for _, l := range lines(string(f.Was), string(f.Now)) {
		if l.sign != '-' {
			number++
		}
		if l.sign == ' ' {
			open = false
			continue
		}
		if !open {
			out, open = append(out, Detail{Name: fmt.Sprintf("line %d", max(number, 1))}), true
		}
		d, text := &out[len(out)-1], strings.TrimSpace(l.text)
		if l.sign == '-' {
			d.Was = strings.TrimPrefix(d.Was+"; "+text, "; ")
		} else {
			d.Now = strings.TrimPrefix(d.Now+"; "+text, "; ")
		}
	}
	if len(out) > mostLines {
		return nil
	}
	return slices.DeleteFunc(out, func(d Detail) bool { return cmp.Or(d.Was, d.Now) == "" })
}
