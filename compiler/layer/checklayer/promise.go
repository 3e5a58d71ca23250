package checklayer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/formats/bitbake"
	"github.com/yoctune/yoctune/schema/plan"
)

// line is one assignment of a configuration or recipe file.
type line struct {
	File     string // relative to the layer
	Number   int    // from 1
	Variable string
	Over     []string // overrides, without append, prepend and remove
	Op       string   // = := += =+ .= =. append prepend remove
	Value    string
}

func (l line) position() string { return fmt.Sprintf("%s:%d", l.File, l.Number) }

// linesOf returns the assignments of a file, apart from those to flags and to
// variables whose name contains an expression.
func linesOf(f emitters.File) []line {
	var out []line
	for _, m := range f.Means {
		if m.Kind != emitters.Variable || strings.ContainsAny(m.Name, "[$") {
			continue
		}
		a := line{File: f.Path, Number: m.Line, Value: m.Value}
		a.Variable, a.Op, a.Over = bitbake.Assignment{Name: m.Name, Op: cmp.Or(m.Op, "=")}.Split()
		out = append(out, a)
	}
	return out
}

// A promise is an expectation about the final value of a variable.
type promise struct {
	Variable string
	Words    []string // each must be a word of the value, or none of them with Absent
	Absent   bool
	Value    string // whole value, when Words is nil
	Args     bool   // the words are kernel arguments that the kernel must use
	Source   string // position of the assignment
}

// explainBroken explains how value breaks the promise, or returns "".
func (p promise) explainBroken(value string, set bool) string {
	if p.Words == nil {
		if strings.Join(strings.Fields(value), " ") != strings.Join(strings.Fields(p.Value), " ") {
			return fmt.Sprintf("%s is %q, but %s sets %q", p.Variable, value, p.Source, p.Value)
		}
		return ""
	}
	if !set && !p.Absent {
		return fmt.Sprintf("%s is not set, but %s adds %q", p.Variable, p.Source, strings.Join(p.Words, " "))
	}
	have := strings.Fields(value)
	if p.Absent && p.Args { // whatever its value
		for i, word := range have {
			have[i] = argName(word)
		}
	}
	for _, w := range p.Words {
		if slices.Contains(have, w) == p.Absent {
			if p.Absent {
				return fmt.Sprintf("%s still has %q, which %s removes; its value is %q", p.Variable, w, p.Source, value)
			}
			return fmt.Sprintf("%s lacks %q, which %s sets; its value is %q", p.Variable, w, p.Source, value)
		}
	}
	if p.Args && !p.Absent {
		return p.explainOverruled(have, value)
	}
	return ""
}

// argName returns the name of a kernel argument, as the kernel compares it.
func argName(word string) string {
	name, _, _ := strings.Cut(word, "=")
	return strings.ReplaceAll(name, "-", "_") // kernel/params.c: dash2underscore
}

// explainOverruled finds why the kernel ignores an argument that is present: a later value of
// it, or an earlier "--", after which all arguments go to init.
func (p promise) explainOverruled(have []string, value string) string {
words:
	for _, w := range p.Words {
		last := -1
		for i, h := range have {
			switch {
			case h == "--" && last < 0:
				return fmt.Sprintf("%s has %q after --, where only init reads it, so %s has no effect; its value is %q", p.Variable, w, p.Source, value)
			case h == "--":
				continue words
			case h == w:
				last = i
			case last >= 0 && argName(h) == argName(w):
				return fmt.Sprintf("%s has %q after %q, and the kernel takes the last one, which overrides %s; its value is %q", p.Variable, h, w, p.Source, value)
			}
		}
	}
	return ""
}

// collectPromises turns assignments into promises about the final values on a machine with
// the given overrides. A later plain assignment to the same variable replaces the earlier
// promise. Values that refer to other variables are not checked.
func collectPromises(lines []line, overrides []string) []promise {
	var out []promise
	for _, l := range lines {
		if !slices.ContainsFunc(l.Over, func(o string) bool { return !slices.Contains(overrides, o) }) {
			out = applyLine(out, l)
		}
	}
	return out
}

func applyLine(out []promise, l line) []promise {
	p := promise{Variable: l.Variable, Source: l.position()}
	switch l.Op {
	case "=", ":=":
		// bitbake replaces "auto" by the address of the server it starts.
		if strings.Contains(l.Value, "${") || l.Variable == "BB_HASHSERVE" && l.Value == "auto" {
			return out
		}
		if !slices.ContainsFunc(out, func(q promise) bool { return q.Variable == l.Variable && q.Words != nil }) {
			p.Value = l.Value
			out = slices.DeleteFunc(out, func(q promise) bool { return q.Variable == l.Variable })
			return append(out, p)
		}
		fallthrough // other lines add to the value: only the words are certain
	case "append", "prepend", "+=", "=+", ".=", "=.":
		// Appended without a space, the text may not begin a word.
		glued := (l.Op == "append" || l.Op == ".=") && !strings.HasPrefix(l.Value, " ") ||
			(l.Op == "prepend" || l.Op == "=.") && !strings.HasSuffix(l.Value, " ")
		if glued {
			return out
		}
		for i, q := range out {
			if q.Variable == l.Variable && q.Words == nil {
				out[i].Words = strings.Fields(q.Value)
			}
		}
		for _, w := range strings.Fields(l.Value) {
			if !strings.Contains(w, "${") {
				p.Words = append(p.Words, w)
			}
		}
	case "remove":
		p.Absent = true
		for _, w := range strings.Fields(l.Value) {
			if !strings.Contains(w, "${") {
				p.Words = append(p.Words, w)
			}
		}
	}
	if len(p.Words) > 0 {
		out = append(out, p)
	}
	return out
}

// planPromises returns promises about the kernel arguments of the plan, which the device
// looks for in /proc/cmdline, and about the feature that enables the layer.
func planPromises(plans []*plan.Plan) []promise {
	var out []promise
	for _, p := range plans {
		out = append(out, promise{Variable: "DISTRO_FEATURES", Words: []string{"yoctune-" + p.Layer}, Source: "plan.json of " + p.Target})
		for _, s := range p.Settings {
			if s.Domain != plan.DomainKernel || s.Select.Class != "cmdline" {
				continue
			}
			arg := s.Select.Name
			if s.IsRemoval() {
				out = append(out, promise{Variable: argVariable(p), Words: []string{argName(arg)}, Absent: true, Args: true, Source: "setting " + s.ID + " of plan.json"})
				continue
			}
			if s.Type != plan.TypePresent {
				arg += "=" + s.Want
			}
			out = append(out, promise{Variable: argVariable(p), Words: []string{arg}, Args: true, Source: "setting " + s.ID + " of plan.json"})
		}
	}
	return out
}

// explainMissedKernel explains that the machine's kernel is built by a recipe that the layer
// does not append to, so that no kernel has the options of the plan, or returns "".
func (l *layer) explainMissedKernel(values map[string]string) string {
	const variable = "PREFERRED_PROVIDER_virtual/kernel"
	kernel := values[variable]
	if kernel == "" || slices.Contains(l.appended(), kernel) {
		return ""
	}
	for _, p := range l.Plans {
		for _, s := range p.Settings {
			if s.Domain == plan.DomainKernel && s.Select.Class == "config" {
				return fmt.Sprintf("%s is %q, and the layer appends to other kernels only: the kernel gets no option of the configuration, such as %s", variable, kernel, s.ID)
			}
		}
	}
	return ""
}

// argVariable returns the variable of kernel arguments in the boot configuration of the
// plan's machine.
func argVariable(p *plan.Plan) string {
	r, known := release.Lookup(p.Release)
	b, has := board.Lookup(p.Board)
	if !known || !has {
		return "KERNEL_ARGS"
	}
	return r.ArgPath(b.SoC).Variable
}
