package kconfig

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/kernel"
)

// maxChain bounds how far a cause is followed.
const maxChain = 4

// explainFailure explains why a line does not hold.
func (a *analysis) explainFailure(i int32, l Line) string {
	sym := &a.f.Symbols[i]
	s := &a.r.sym[i]
	if l.Loose && a.f.strict {
		return "text after \"is not set\": this kernel ignores the line"
	}
	v, problem := parseValue(sym.Type, l.Value)
	if problem != "" {
		if got, present := a.r.get(i); present {
			problem += ", so " + sym.Name + " takes its default, " + got
		}
		return problem
	}
	if !hasPrompt(sym) {
		return a.explainNoPrompt(i)
	}
	if _, rest, ok := unquote(l.Value); ok && sym.Type == kernel.String && rest != "" && s.visible > N {
		return fmt.Sprintf("%s is read as %s: a quote inside is written \\\"", l.Value, quote(v))
	}
	if sym.Type.Logical() {
		want := parseTri(v)
		if !validTri(l.Value) {
			return fmt.Sprintf("%q is read as %s: write %s", l.Value, v, v)
		}
		if want < s.tri {
			return a.explainTooHigh(i, want)
		}
		if c := a.f.choice[i]; c >= 0 {
			return a.choiceCause(i, c)
		}
		if s.visible < want {
			return a.describeUnmet(i, want, map[int32]bool{})
		}
	} else if s.visible == N {
		return a.describeUnmet(i, M, map[int32]bool{})
	}
	if rg := a.r.activeRange(i); rg != nil {
		lo, _ := a.r.text(rg.Low)
		hi, _ := a.r.text(rg.High)
		return fmt.Sprintf("out of range %s to %s: the nearest end is taken, without a message", lo, hi)
	}
	return "another line of the configuration decides"
}

func hasPrompt(s *kernel.Sym) bool {
	return slices.ContainsFunc(s.Defs, func(d kernel.Def) bool { return d.Prompt })
}

// explainKept describes a request that holds for another reason than its line.
func (a *analysis) explainKept(i int32) string {
	sym := &a.f.Symbols[i]
	if hasPrompt(sym) || !sym.Type.Logical() {
		return ""
	}
	return a.explainNoPrompt(i)
}

func (a *analysis) explainNoPrompt(i int32) string {
	by := a.activeSelects(i, M)
	if len(by) > 0 {
		return "no prompt: it cannot be set; selected by " + joinNames(by, 3) + ", do not set"
	}
	var from []string
	for _, e := range a.f.selects[i] {
		from = append(from, a.f.Symbols[e.from].Name)
	}
	if len(from) > 0 {
		return "no prompt: it cannot be set, only selected, by " + joinNames(from, 3)
	}
	return "no prompt: it cannot be set; its default decides"
}

// activeSelects names the symbols that select i with at least min.
func (a *analysis) activeSelects(i int32, min Tri) []string {
	var by []string
	for _, e := range a.f.selects[i] {
		if a.r.edge(e) >= min {
			by = append(by, a.f.Symbols[e.from].Name)
		}
	}
	return by
}

func joinNames(all []string, n int) string {
	var list []string
	for _, s := range all {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	if len(list) > n {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:n], ", "), len(list)-n)
	}
	return strings.Join(list, ", ")
}

// explainTooHigh explains a symbol whose value is higher than requested.
func (a *analysis) explainTooHigh(i int32, want Tri) string {
	if want == M && a.r.modules == N {
		return "MODULES is off, so m becomes y"
	}
	if by := a.activeSelects(i, want+1); len(by) > 0 {
		return fmt.Sprintf("selected by %s, do not set", joinNames(by, 3))
	}
	if c := a.f.choice[i]; c >= 0 && a.r.choices[c].chosen == i {
		return "choice: one member must be on, and no other is requested: enable another member instead"
	}
	if a.r.sym[i].visible == N {
		return a.describeUnmet(i, M, map[int32]bool{}) + "; its default decides"
	}
	return "its default decides"
}

// choiceCause explains a member of a choice that was not taken.
func (a *analysis) choiceCause(i, c int32) string {
	g := &a.r.choices[c]
	taken := "no member"
	if g.chosen >= 0 {
		taken = a.f.Symbols[g.chosen].Name
	}
	if a.r.sym[i].visible == N {
		why := a.describeUnmet(i, M, map[int32]bool{})
		if g.chosen >= 0 {
			return fmt.Sprintf("%s; choice: %s is not visible, so the group falls back to %s", why, a.f.Symbols[i].Name, taken)
		}
		return why
	}
	if g.chosen < 0 {
		return "choice: it is not offered in this configuration"
	}
	if !a.f.ChoiceByOrder && g.userMember >= 0 && g.userMember != i && g.chosen != g.userMember {
		last := a.f.Symbols[g.userMember].Name
		return fmt.Sprintf("choice: only its last line counts, and the later %s is not visible, so the group falls back to %s", last, taken)
	}
	return fmt.Sprintf("choice: the later line %s takes its place", a.appendPosition(taken, taken))
}

// appendPosition appends the position of the line that sets a symbol to text.
func (a *analysis) appendPosition(symbol, text string) string {
	if i, ok := a.last[symbol]; ok && a.cfg.Lines[i].Line > 0 {
		return fmt.Sprintf("%s (%s:%d)", text, a.cfg.Lines[i].File, a.cfg.Lines[i].Line)
	}
	return text
}

// describeUnmet describes why a symbol's prompt is invisible, as a chain that ends at something
// that can be set. Of several definitions, it describes the one with the fewest obstacles.
func (a *analysis) describeUnmet(i int32, want Tri, seen map[int32]bool) string {
	seen[i] = true
	var best []string
	found := false
	sym := &a.f.Symbols[i]
	for j := range sym.Defs {
		d := &sym.Defs[j]
		if !d.Prompt {
			continue
		}
		var why []string
		a.collectObstacles(d.Depends, want, seen, &why)
		a.collectObstacles(d.Visible, want, seen, &why)
		if c := d.Choice; c >= 0 && !a.f.ChoiceByOrder && a.r.choices[c].tri == N {
			a.collectObstacles(a.f.Choices[c].Depends, want, seen, &why)
			a.collectObstacles(a.f.Choices[c].Visible, want, seen, &why)
		}
		if len(why) > 0 && (!found || len(why) < len(best)) {
			best, found = why, true
		}
	}
	if !found {
		return "its prompt is not offered in this configuration"
	}
	return "needs " + joinReasons(best)
}

// joinReasons joins reasons that may hold commas themselves.
func joinReasons(why []string) string {
	var list []string
	for _, w := range why {
		if !slices.Contains(list, w) && (w != notOffered || len(why) == 1) {
			list = append(list, w)
		}
	}
	if len(list) > 6 {
		list = append(list[:6:6], fmt.Sprintf("%d more", len(list)-6))
	}
	return strings.Join(list, ", and ")
}

// collectObstacles collects the false operands of a condition, split at &&.
func (a *analysis) collectObstacles(id kernel.ExprID, want Tri, seen map[int32]bool, out *[]string) {
	if a.r.tri(id) >= want {
		return
	}
	e := a.f.Exprs[id]
	switch e.Op {
	case kernel.And:
		a.collectObstacles(kernel.ExprID(e.A), want, seen, out)
		a.collectObstacles(kernel.ExprID(e.B), want, seen, out)
	case kernel.Symbol:
		*out = append(*out, a.describeNeed(kernel.Ref(e.A), want, seen))
	case kernel.Not:
		in := a.f.Exprs[e.A]
		if in.Op == kernel.Symbol && kernel.Ref(in.A).IsSymbol() {
			*out = append(*out, a.explainNeedsOff(in.A))
			return
		}
		*out = append(*out, a.render(id))
	case kernel.Or:
		*out = append(*out, a.describeAlternatives(id, want, seen))
	default:
		*out = append(*out, a.render(id))
	}
}

// describeAlternatives describes the nearest alternative of a condition, and names the others.
func (a *analysis) describeAlternatives(id kernel.ExprID, want Tri, seen map[int32]bool) string {
	var all []kernel.ExprID
	var split func(kernel.ExprID)
	split = func(x kernel.ExprID) {
		if e := a.f.Exprs[x]; e.Op == kernel.Or && len(all) < 8 {
			split(kernel.ExprID(e.A))
			split(kernel.ExprID(e.B))
			return
		}
		all = append(all, x)
	}
	split(id)
	var best []string
	at := -1
	for n, x := range all {
		// Alternatives must not hide each other's reasons.
		var why []string
		a.collectObstacles(x, want, maps.Clone(seen), &why)
		if len(why) > 0 && (at < 0 || len(why) < len(best)) {
			best, at = why, n
		}
	}
	if at < 0 {
		return a.render(id)
	}
	var others []string
	for n, x := range all {
		if n != at {
			others = append(others, a.render(x))
		}
	}
	return strings.Join(best, " and ") + ", or else " + joinNames(others, 3)
}

// notOffered describes a condition that was n when the files were read: most often a
// probe of the compiler.
const notOffered = "what this toolchain does not offer"

// describeNeed describes a symbol that should be enabled, and why it is not.
func (a *analysis) describeNeed(x kernel.Ref, want Tri, seen map[int32]bool) string {
	if !x.IsSymbol() {
		if a.f.Literals[^x].Word {
			return a.f.Literals[^x].Text + ", which this kernel does not have"
		}
		return notOffered
	}
	sym := &a.f.Symbols[x]
	s := &a.r.sym[x]
	name := sym.Name
	if s.tri == M && want == Y {
		return name + "=y (it is m)"
	}
	if seen[int32(x)] || len(seen) > maxChain {
		return name
	}
	if !hasPrompt(sym) {
		return name + ", which " + a.explainOff(int32(x), seen)
	}
	if s.visible == N {
		return name + ", which " + a.describeUnmet(int32(x), want, seen)
	}
	if c := a.f.choice[x]; c >= 0 && a.r.choices[c].chosen >= 0 {
		return fmt.Sprintf("%s, in whose choice %s is taken", name, a.f.Symbols[a.r.choices[c].chosen].Name)
	}
	if i, ok := a.last[name]; ok {
		if _, problem := parseValue(sym.Type, a.cfg.Lines[i].Value); problem != "" {
			return fmt.Sprintf("%s, whose line is ignored", a.appendPosition(name, name))
		}
		if _, mine := a.requested[name]; mine {
			return name + ", which " + a.appendPosition(name, "a requested line") + " turns off"
		}
	}
	if a.base.value(int32(x)).tri > s.tri {
		return name + ", whose default is off now"
	}
	return name + ", which is off in the base configuration"
}

// explainOff explains a symbol without prompt that is off: nothing that selects it
// is on.
func (a *analysis) explainOff(i int32, seen map[int32]bool) string {
	seen[i] = true
	var only, others []string
	for _, e := range a.f.selects[i] {
		from := a.f.Symbols[e.from].Name
		if a.r.sym[e.from].tri == N {
			others = append(others, from)
			continue
		}
		var why []string
		a.collectObstacles(e.dep, M, seen, &why)
		a.collectObstacles(e.cond, M, seen, &why)
		if len(why) > 0 {
			only = append(only, from+" selects only with "+strings.Join(why, " and "))
		}
	}
	switch {
	case len(only) == 1:
		return only[0]
	case len(only) > 1:
		return "one of these must select: " + joinNames(only, 2)
	}
	for j := range a.f.Symbols[i].Defs {
		d := &a.f.Symbols[i].Defs[j]
		for _, def := range d.Defaults {
			var why []string
			a.collectObstacles(d.Depends, M, seen, &why)
			a.collectObstacles(def.If, M, seen, &why)
			a.collectObstacles(def.Value, M, seen, &why)
			if len(why) == 1 && why[0] == notOffered {
				return "this toolchain does not offer"
			}
			if len(why) > 0 {
				return "needs " + joinReasons(why)
			}
		}
	}
	if len(others) > 0 {
		return "only " + joinNames(others, 3) + " can select"
	}
	return "nothing in this kernel turns on"
}

func (a *analysis) explainNeedsOff(x int32) string {
	name := a.f.Symbols[x].Name
	if by := a.activeSelects(x, M); len(by) > 0 {
		return fmt.Sprintf("%s off, but %s selects it", name, joinNames(by, 2))
	}
	if i, ok := a.last[name]; ok && a.cfg.Lines[i].Value != "n" {
		if _, mine := a.requested[name]; mine {
			return name + " off, but it is requested"
		}
		return name + " off, but the base configuration turns it on"
	}
	return name + " off, but it is on by default"
}

// render writes a condition in Kconfig syntax, with the current values of compared symbols.
func (a *analysis) render(id kernel.ExprID) string {
	return a.renderIn(id, kernel.Or, 0)
}

func (a *analysis) renderIn(id kernel.ExprID, outer kernel.Op, depth int) string {
	if depth > 12 {
		return "…"
	}
	e := a.f.Exprs[id]
	switch e.Op {
	case kernel.True:
		return "y"
	case kernel.Symbol:
		return a.formatRef(kernel.Ref(e.A))
	case kernel.Not:
		return "!" + a.renderIn(kernel.ExprID(e.A), kernel.Not, depth+1)
	case kernel.And, kernel.Or:
		op := " && "
		if e.Op == kernel.Or {
			op = " || "
		}
		s := a.renderIn(kernel.ExprID(e.A), e.Op, depth+1) + op + a.renderIn(kernel.ExprID(e.B), e.Op, depth+1)
		if outer == kernel.Not || outer == kernel.And && e.Op == kernel.Or {
			return "(" + s + ")"
		}
		return s
	}
	s := a.formatRef(kernel.Ref(e.A))
	for text, op := range comparisons {
		if op == e.Op {
			s += text
		}
	}
	s += a.formatRef(kernel.Ref(e.B))
	if x := kernel.Ref(e.A); x.IsSymbol() {
		if v, _ := a.r.text(x); v != "" {
			s += " (it is " + v + ")"
		}
	}
	return s
}

func (a *analysis) formatRef(x kernel.Ref) string {
	if x.IsSymbol() {
		return a.f.Symbols[x].Name
	}
	return a.f.Literals[^x].Text
}

// maxEffects bounds the list of side effects.
const maxEffects = 50

// effects lists symbols that were enabled or set before the fragments and change without a
// line of their own.
func (a *analysis) effects() []Effect {
	var out []Effect
	for i := range a.f.Symbols {
		sym := &a.f.Symbols[i]
		if _, requested := a.requested[sym.Name]; requested || !hasPrompt(sym) {
			continue
		}
		a.base.value(int32(i))
		was, had := a.base.get(int32(i))
		is, has := a.r.get(int32(i))
		switch {
		case !had || had && has && was == is:
			continue
		case sym.Type.Logical() && was == "n":
			continue
		case !sym.Type.Logical() && !has:
			continue // its value disappears with the option that it depends on
		}
		e := Effect{Symbol: sym.Name, Before: was}
		if has {
			e.After = is
		}
		e.Cause = a.effectCause(int32(i))
		out = append(out, e)
	}
	// Requests of the base configuration come first.
	sort.SliceStable(out, func(x, y int) bool {
		_, inX := a.last[out[x].Symbol]
		_, inY := a.last[out[y].Symbol]
		return inX && !inY
	})
	if len(out) > maxEffects {
		out = out[:maxEffects]
	}
	return out
}

func (a *analysis) effectCause(i int32) string {
	if c := a.f.choice[i]; c >= 0 && a.r.sym[i].visible != N {
		if m := a.r.choices[c].chosen; m >= 0 && m != i {
			name := a.f.Symbols[m].Name
			if _, requested := a.requested[name]; requested {
				return "choice: " + a.appendPosition(name, name) + " takes its place"
			}
			return "choice: the group falls back to " + name
		}
	}
	if a.f.Symbols[i].Type.Logical() && a.r.sym[i].visible == N {
		return a.describeUnmet(i, M, map[int32]bool{})
	}
	if a.base.sym[i].tri == M && a.r.sym[i].tri == Y && a.r.modules == N {
		return "MODULES is off, so m becomes y"
	}
	for _, e := range a.f.selects[i] {
		if a.base.edge(e) > a.r.edge(e) {
			from := a.f.Symbols[e.from].Name
			var why []string
			if a.r.sym[e.from].tri != N {
				a.collectObstacles(e.cond, M, map[int32]bool{i: true}, &why)
			}
			if len(why) > 0 {
				return from + " selects it only with " + joinReasons(why)
			}
			return from + " no longer selects it"
		}
	}
	for _, e := range a.f.implies[i] {
		if a.base.edge(e) > a.r.edge(e) {
			return a.f.Symbols[e.from].Name + " no longer implies it"
		}
	}
	for j := range a.f.Symbols[i].Defs {
		d := &a.f.Symbols[i].Defs[j]
		for _, def := range d.Defaults {
			if min(a.base.tri(def.If), a.base.defaultTri(def.Value)) == N {
				continue
			}
			var why []string
			a.collectObstacles(d.Depends, M, map[int32]bool{i: true}, &why)
			a.collectObstacles(def.If, M, map[int32]bool{i: true}, &why)
			a.collectObstacles(def.Value, M, map[int32]bool{i: true}, &why)
			if len(why) > 0 {
				return "its default needs " + joinReasons(why)
			}
		}
	}
	if !a.f.Symbols[i].Type.Logical() {
		return "its default or range changed"
	}
	return "its default changed"
}
