package kconfig

import (
	"cmp"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/kernel"
)

// Bounds of the search for a fix. They keep an answer within some milliseconds;
// the deepest chains of real kernels need five steps.
const (
	maxFixDepth  = 7
	maxWays      = 8  // alternatives kept at each step
	maxFixLines  = 12 // longer fixes are not useful
	maxSelectors = 6
)

// assignment of a symbol that a fix adds.
type setting struct {
	sym   int32
	value Tri
}

// way is one set of settings that may satisfy a condition.
type way []setting

// fix searches the fewest lines that make a request hold. The result is verified
// by evaluation: the request holds, and every other request that held still does.
func (a *analysis) fix(i int32, l Line) []Line {
	if a.work > maxFixWork {
		return nil
	}
	if l.Loose && a.f.strict {
		exact := Line{Symbol: l.Symbol, Value: "n"}
		return a.search(i, exact, []Line{exact})
	}
	if _, problem := parseValue(a.f.Symbols[i].Type, l.Value); problem != "" {
		return a.correctValue(i, l)
	}
	return a.search(i, l, nil)
}

// search finds lines to add to l and the lines already with it.
func (a *analysis) search(i int32, l Line, already []Line) []Line {
	sym := &a.f.Symbols[i]
	v, _ := parseValue(sym.Type, l.Value)
	s := &solver{a: a, goal: i}
	var ways []way
	if sym.Type.Logical() {
		want := parseTri(v)
		if want > a.r.sym[i].tri {
			ways = s.findWaysOn(i, want, 0, nil)
		} else {
			ways = s.findWaysOff(i, 0, nil)
		}
	} else {
		ways = s.findWaysVisible(i, M, 0, nil)
	}
	for _, w := range ways {
		lines := append(already[:len(already):len(already)], a.lines(w, i)...)
		if len(lines) == 0 || len(lines) > maxFixLines || !a.verify(i, l, lines) {
			continue
		}
		return a.dropUnneededLines(i, l, lines)
	}
	return nil
}

// cost prefers few lines, and turning on to turning off.
func cost(w way) int {
	c := 0
	for _, s := range w {
		c += 2
		if s.value == N {
			c++
		}
	}
	return c
}

// correctValue offers the value that a misspelt line most likely meant.
func (a *analysis) correctValue(i int32, l Line) []Line {
	sym := &a.f.Symbols[i]
	to := ""
	switch lower := strings.ToLower(strings.Trim(strings.TrimSpace(l.Value), `"'`)); {
	case sym.Type == kernel.Bool && (lower == "m" || lower == "1"):
		to = "y"
	case sym.Type.Logical() && (lower == "y" || lower == "yes" || lower == "1" || lower == "true"):
		to = "y"
	case sym.Type == kernel.Tristate && lower == "m":
		to = "m"
	case sym.Type.Logical() && (lower == "0" || lower == "no" || lower == "false"):
		to = "n"
	case sym.Type == kernel.String && !strings.Contains(l.Value, `"`):
		to = quote(l.Value)
	default:
		return nil
	}
	fixed := Line{Symbol: l.Symbol, Value: to}
	if a.verify(i, fixed, []Line{fixed}) {
		return []Line{fixed}
	}
	return a.search(i, fixed, []Line{fixed})
}

// lines converts a way to lines to add, without the request itself.
func (a *analysis) lines(w way, goal int32) []Line {
	var out []Line
	for _, s := range w {
		if s.sym != goal {
			out = append(out, Line{Symbol: a.f.Symbols[s.sym].Name, Value: s.value.String()})
		}
	}
	return out
}

// verify evaluates with the lines added.
func (a *analysis) verify(i int32, l Line, add []Line) bool {
	a.work += len(a.requested) + 1000
	r := a.f.prepareEvaluation(Merge(a.cfg, &Config{Lines: add}))
	r.value(i)
	if !a.holds(r, i, l.Value) {
		return false
	}
	added := map[string]string{}
	for _, x := range add {
		added[x.Symbol] = x.Value
	}
	for name, v := range a.requested {
		j, ok := a.f.Lookup(name)
		if !ok || j == i {
			continue
		}
		if _, overruled := added[name]; overruled && added[name] != v {
			return false
		}
		if a.holds(a.r, j, v) {
			r.value(j)
			if !a.holds(r, j, v) {
				return false
			}
		}
	}
	return true
}

// dropUnneededLines leaves out every line that is not needed.
func (a *analysis) dropUnneededLines(i int32, l Line, lines []Line) []Line {
	for n := 0; n < len(lines) && len(lines) > 1; {
		fewer := slices.Concat(lines[:n], lines[n+1:])
		if a.verify(i, l, fewer) {
			lines = fewer
		} else {
			n++
		}
	}
	return lines
}

type solver struct {
	a    *analysis
	goal int32
	work int
}

// maxWork bounds the steps of one search.
const maxWork = 4000

var free = []way{nil}

// findWaysOn lists ways to raise a symbol to want.
func (s *solver) findWaysOn(i int32, want Tri, depth int, path []int32) []way {
	a := s.a
	sym := &a.f.Symbols[i]
	if !sym.Type.Logical() {
		return nil
	}
	if a.r.sym[i].tri >= want {
		return free
	}
	if s.work++; s.work > maxWork || depth > maxFixDepth || slices.Contains(path, i) {
		return nil
	}
	if v, requested := a.requested[sym.Name]; requested && i != s.goal && v == "n" {
		return nil // would contradict another request
	}
	set := want
	if sym.Type == kernel.Bool {
		set, want = Y, M // any condition that is not n is enough for a bool
	}
	path = append(path[:len(path):len(path)], i)
	var ways []way
	if hasPrompt(sym) {
		for _, w := range s.findWaysVisible(i, want, depth, path) {
			ways = append(ways, addSetting(w, setting{i, set}))
		}
	}
	n := 0
	if len(ways) == 0 || !hasPrompt(sym) {
		for _, e := range a.f.selects[i] {
			if n++; n > maxSelectors*4 || s.work > maxWork {
				break
			}
			from := s.findWaysOn(e.from, want, depth+1, path)
			if len(from) == 0 {
				continue
			}
			ways = append(ways, combineWays(from, combineWays(s.findWaysCond(e.dep, want, depth+1, path), s.findWaysCond(e.cond, want, depth+1, path)))...)
		}
		for j := range sym.Defs {
			d := &sym.Defs[j]
			for _, def := range d.Defaults {
				ways = append(ways, combineWays(s.findWaysCond(d.Depends, M, depth+1, path), combineWays(s.findWaysCond(def.If, M, depth+1, path), s.findWaysCond(def.Value, want, depth+1, path)))...)
			}
		}
	}
	return cheapestWays(ways)
}

// findWaysVisible lists ways to have a symbol's prompt offered.
func (s *solver) findWaysVisible(i int32, want Tri, depth int, path []int32) []way {
	a := s.a
	if a.r.sym[i].visible >= want {
		return free
	}
	sym := &a.f.Symbols[i]
	var ways []way
	for j := range sym.Defs {
		d := &sym.Defs[j]
		if !d.Prompt {
			continue
		}
		w := combineWays(s.findWaysCond(d.Depends, want, depth+1, path), s.findWaysCond(d.Visible, want, depth+1, path))
		if d.Choice >= 0 && !a.f.ChoiceByOrder {
			c := &a.f.Choices[d.Choice]
			w = combineWays(w, combineWays(s.findWaysCond(c.Depends, M, depth+1, path), s.findWaysCond(c.Visible, M, depth+1, path)))
		}
		ways = append(ways, w...)
	}
	return cheapestWays(ways)
}

// findWaysOff lists ways to turn a symbol off.
func (s *solver) findWaysOff(i int32, depth int, path []int32) []way {
	a := s.a
	if a.r.sym[i].tri == N {
		return free
	}
	if s.work++; s.work > maxWork || depth > maxFixDepth || slices.Contains(path, i) {
		return nil
	}
	sym := &a.f.Symbols[i]
	if v, requested := a.requested[sym.Name]; requested && i != s.goal && v != "n" {
		return nil
	}
	path = append(path[:len(path):len(path)], i)
	ways := free
	for _, e := range a.f.selects[i] {
		if a.r.edge(e) == N {
			continue
		}
		one := slices.Concat(s.findWaysOff(e.from, depth+1, path), s.findWaysCond(e.cond, N, depth+1, path))
		if ways = cheapestWays(combineWays(ways, cheapestWays(one))); len(ways) == 0 {
			return nil
		}
	}
	if c := a.f.choice[i]; c >= 0 {
		var out []way
		for _, m := range a.f.Choices[c].Members {
			if m != i && a.r.sym[m].visible != N {
				for _, w := range ways {
					out = append(out, addSetting(w, setting{m, Y}))
				}
			}
		}
		return cheapestWays(out)
	}
	if hasPrompt(sym) {
		var out []way
		for _, w := range ways {
			out = append(out, addSetting(w, setting{i, N}))
		}
		return cheapestWays(out)
	}
	// Without a prompt, its default must fail too.
	for j := range sym.Defs {
		d := &sym.Defs[j]
		for _, def := range d.Defaults {
			if a.r.tri(d.Depends) == N || a.r.tri(def.If) == N || a.r.tri(def.Value) == N {
				continue
			}
			one := slices.Concat(s.findWaysCond(d.Depends, N, depth+1, path), s.findWaysCond(def.If, N, depth+1, path), s.findWaysCond(def.Value, N, depth+1, path))
			ways = cheapestWays(combineWays(ways, cheapestWays(one)))
		}
	}
	return ways
}

// findWaysCond lists ways to raise a condition to want, or to make it n when want is n.
func (s *solver) findWaysCond(id kernel.ExprID, want Tri, depth int, path []int32) []way {
	a := s.a
	if v := a.r.tri(id); v == want || want != N && v > want {
		return free
	}
	if s.work++; s.work > maxWork {
		return nil
	}
	e := a.f.Exprs[id]
	l, r := kernel.ExprID(e.A), kernel.ExprID(e.B)
	switch e.Op {
	case kernel.And, kernel.Or:
		left, right := s.findWaysCond(l, want, depth, path), s.findWaysCond(r, want, depth, path)
		if needsBoth := (e.Op == kernel.And) == (want != N); needsBoth {
			return cheapestWays(combineWays(left, right))
		}
		return cheapestWays(slices.Concat(left, right))
	case kernel.Not:
		if want == N {
			return s.findWaysCond(l, Y, depth, path)
		}
		return s.findWaysCond(l, N, depth, path)
	case kernel.Symbol:
		switch x := kernel.Ref(e.A); {
		case !x.IsSymbol():
		case want == N:
			return s.findWaysOff(int32(x), depth, path)
		default:
			return s.findWaysOn(int32(x), want, depth, path)
		}
	case kernel.Equal, kernel.Unequal:
		return s.findWaysEqual(e, (e.Op == kernel.Equal) == (want != N), depth, path)
	}
	return nil
}

// findWaysEqual lists ways to make a comparison of a symbol with y, m or n true.
func (s *solver) findWaysEqual(e kernel.Expr, same bool, depth int, path []int32) []way {
	x, y := kernel.Ref(e.A), kernel.Ref(e.B)
	if !x.IsSymbol() || y.IsSymbol() || !s.a.f.Symbols[x].Type.Logical() {
		return nil
	}
	switch t := s.a.f.Literals[^y].Text; {
	case t == "y" && same:
		return s.findWaysOn(int32(x), Y, depth, path)
	case t == "n" && !same:
		return s.findWaysOn(int32(x), M, depth, path)
	case t == "n" && same, t == "y" && !same:
		return s.findWaysOff(int32(x), depth, path)
	}
	return nil
}

func addSetting(w way, s setting) way {
	if slices.Contains(w, s) {
		return w
	}
	return append(slices.Clone(w), s)
}

// combineWays joins every way of one list with every way of the other; ways that
// contradict themselves are dropped.
func combineWays(a, b []way) []way {
	var out []way
	for _, x := range a {
	next:
		for _, y := range b {
			w := slices.Clone(x)
			for _, s := range y {
				for _, have := range w {
					if have.sym == s.sym && have.value != s.value {
						continue next
					}
				}
				w = addSetting(w, s)
			}
			if len(w) <= maxFixLines {
				out = append(out, w)
			}
		}
	}
	return out
}

// cheapestWays keeps the cheapest ways.
func cheapestWays(ways []way) []way {
	slices.SortStableFunc(ways, func(x, y way) int { return cmp.Compare(cost(x), cost(y)) })
	return ways[:min(len(ways), maxWays)]
}
