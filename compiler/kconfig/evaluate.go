package kconfig

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/kernel"
)

// Tri is a tristate: n, m or y. A condition is as true as its value is high.
type Tri uint8

// The three values, in order.
const (
	N Tri = iota
	M
	Y
)

func (t Tri) String() string { return "nmy"[t : t+1] }

// edge is one select or imply as its target sees it.
type edge struct {
	from int32
	dep  kernel.ExprID // the definition's dependencies
	cond kernel.ExprID // the line's own condition
	in   int32         // the choice whose mode bounds it, or -1
}

// Kernel is a tree prepared for evaluation. It is immutable and may be used by
// several goroutines at once.
type Kernel struct {
	*kernel.Tree
	selects [][]edge // by target
	implies [][]edge
	choice  []int32 // the choice a symbol is a member of, or -1
	modules int32   // the symbol MODULES, or -1
	strict  bool    // a line "is not set" must end there
}

// Prepare makes a tree ready for evaluation.
func Prepare(t *kernel.Tree) *Kernel {
	k := &Kernel{
		Tree:    t,
		selects: make([][]edge, len(t.Symbols)),
		implies: make([][]edge, len(t.Symbols)),
		choice:  make([]int32, len(t.Symbols)),
		modules: -1,
		strict:  !versionOf(t.Release).isBefore(6, 8) || t.Release == "",
	}
	if i, ok := t.Lookup("MODULES"); ok {
		k.modules = i
	}
	for i := range t.Symbols {
		k.choice[i] = -1
		for j := range t.Symbols[i].Defs {
			d := &t.Symbols[i].Defs[j]
			if d.Choice >= 0 && k.choice[i] < 0 {
				k.choice[i] = d.Choice
			}
			in := int32(-1)
			if !t.ChoiceByOrder {
				in = d.Choice
			}
			addEdges := func(edges [][]edge, targets []kernel.Target) {
				for _, t := range targets {
					if t.Symbol.IsSymbol() {
						edges[t.Symbol] = append(edges[t.Symbol], edge{int32(i), d.Depends, t.If, in})
					}
				}
			}
			addEdges(k.selects, d.Selects)
			addEdges(k.implies, d.Implies)
		}
	}
	return k
}

// state is the state of a symbol during an evaluation.
type state struct {
	tri      Tri    // of a bool or tristate
	text     string // of the others
	visible  Tri
	selected Tri // the strongest select
	implied  Tri
	depends  Tri
	user     Tri
	hasUser  bool
	userText string
	valid    bool
	written  bool // there is a line for it in .config
}

type choiceState struct {
	tri, visible Tri
	user         Tri
	userMember   int32 // the last =y line's symbol, or -1
	inconsistent bool
	chosen       int32
	valid        bool
	priority     []int32 // ChoiceByOrder: last assigned first
}

// Result is an evaluated configuration.
type Result struct {
	k       *Kernel
	sym     []state
	choices []choiceState
	modules Tri
}

// Evaluate gives every symbol the value that `conf --alldefconfig` gives it when
// cfg is its KCONFIG_ALLCONFIG, which is how merge_config.sh and kernel-yocto
// turn a defconfig and fragments into a .config. It follows the order in which
// that program computes, because with circular defaults the order decides.
func (k *Kernel) Evaluate(cfg *Config) *Result {
	r := k.prepareEvaluation(cfg)
	for i := range k.Symbols {
		r.value(int32(i))
	}
	return r
}

// prepareEvaluation prepares an evaluation that computes symbols on demand.
func (k *Kernel) prepareEvaluation(cfg *Config) *Result {
	r := &Result{k: k, sym: make([]state, len(k.Symbols)), choices: make([]choiceState, len(k.Choices)), modules: Y}
	for i := range r.choices {
		r.choices[i].userMember, r.choices[i].chosen = -1, -1
		if k.ChoiceByOrder {
			r.choices[i].priority = slices.Clone(k.Choices[i].Members)
		}
	}
	for _, l := range cfg.Lines {
		r.assign(l)
	}
	if k.modules >= 0 {
		r.modules = N
		r.value(k.modules)
		r.modules = r.sym[k.modules].tri
	} else if k.ChoiceByOrder {
		r.modules = N
	}
	return r
}

// assign records a line as the user's value, if the type accepts it.
func (r *Result) assign(l Line) {
	i, ok := r.k.Lookup(l.Symbol)
	if !ok || l.Loose && r.k.strict {
		return
	}
	s := &r.sym[i]
	sym := &r.k.Symbols[i]
	v, problem := parseValue(sym.Type, l.Value)
	if problem != "" {
		return
	}
	s.hasUser = true
	s.userText = v
	if sym.Type.Logical() {
		s.user = parseTri(v)
	}
	c := r.k.choice[i]
	if c < 0 {
		return
	}
	g := &r.choices[c]
	if r.k.ChoiceByOrder {
		if j := slices.Index(g.priority, i); j >= 0 {
			copy(g.priority[1:j+1], g.priority[:j])
			g.priority[0] = i
		}
		return
	}
	switch s.user {
	case M:
		if g.user == Y {
			g.inconsistent = true
		}
	case Y:
		g.userMember = i
	}
	g.user = max(g.user, s.user)
}

func parseTri(v string) Tri {
	switch v {
	case "y":
		return Y
	case "m":
		return M
	}
	return N
}

// parseValue returns the value that a line gives a symbol of type t, or the reason why
// Kconfig ignores it. Only the first letter of a bool or tristate counts.
func parseValue(t kernel.Type, v string) (value, problem string) {
	switch t {
	case kernel.Tristate, kernel.Bool:
		switch {
		case strings.HasPrefix(v, "y"):
			return "y", ""
		case strings.HasPrefix(v, "n"):
			return "n", ""
		case strings.HasPrefix(v, "m"):
			if t == kernel.Tristate {
				return "m", ""
			}
			return "", "=m on a bool: the whole line is ignored"
		}
		if t == kernel.Tristate {
			return "", "a tristate takes y, m or n, in lower case"
		}
		return "", "a bool takes y or n, in lower case"
	case kernel.String:
		s, _, ok := unquote(v)
		if !ok {
			return "", "a string must stand in double quotes"
		}
		return s, ""
	case kernel.Int:
		if !validInt(v) {
			return "", "an int takes a decimal number"
		}
		return v, ""
	case kernel.Hex:
		if !validHex(v) {
			return "", "a hex takes a hexadecimal number"
		}
		return v, ""
	}
	return "", "the symbol has no type"
}

// unquote reads a quoted string as conf does; the rest behind the closing quote is
// dropped by it.
func unquote(v string) (text, rest string, ok bool) {
	if !strings.HasPrefix(v, `"`) {
		return "", "", false
	}
	var b strings.Builder
	for i := 1; i < len(v); i++ {
		switch v[i] {
		case '"':
			return b.String(), v[i+1:], true
		case '\\':
			i++
			if i == len(v) {
				return "", "", false
			}
		}
		b.WriteByte(v[i])
	}
	return "", "", false
}

func validInt(v string) bool {
	d := strings.TrimPrefix(v, "-")
	if d == "" || d[0] == '0' && len(d) > 1 {
		return false
	}
	return strings.Trim(d, "0123456789") == ""
}

func validHex(v string) bool {
	if len(v) > 1 && v[0] == '0' && (v[1] == 'x' || v[1] == 'X') {
		v = v[2:]
	}
	return v != "" && strings.Trim(v, "0123456789abcdefABCDEF") == ""
}

// tri evaluates a condition. Both sides are always evaluated, as the real
// program does.
func (r *Result) tri(id kernel.ExprID) Tri {
	e := r.k.Exprs[id]
	switch e.Op {
	case kernel.True:
		return Y
	case kernel.Symbol:
		return r.operand(kernel.Ref(e.A))
	case kernel.Not:
		return Y - r.tri(kernel.ExprID(e.A))
	case kernel.And:
		a := r.tri(kernel.ExprID(e.A))
		return min(a, r.tri(kernel.ExprID(e.B)))
	case kernel.Or:
		a := r.tri(kernel.ExprID(e.A))
		return max(a, r.tri(kernel.ExprID(e.B)))
	}
	if r.compare(e) {
		return Y
	}
	return N
}

// defaultTri evaluates the value of a default line. Unlike in a condition, m there does
// not depend on MODULES.
func (r *Result) defaultTri(id kernel.ExprID) Tri {
	e := r.k.Exprs[id]
	if x := kernel.Ref(e.A); e.Op == kernel.Symbol && !x.IsSymbol() && !r.k.Literals[^x].Word && r.k.Literals[^x].Text == "m" {
		return M
	}
	return r.tri(id)
}

func (r *Result) operand(x kernel.Ref) Tri {
	if x.IsSymbol() {
		if !r.k.Symbols[x].Type.Logical() {
			return N
		}
		return r.value(int32(x)).tri
	}
	switch l := r.k.Literals[^x]; {
	case l.Word:
		return N
	case l.Text == "y":
		return Y
	case l.Text == "m":
		return min(M, r.modules)
	}
	return N
}

// text returns the operand's value as a string, and the type by which it is compared.
func (r *Result) text(x kernel.Ref) (string, kernel.Type) {
	if x.IsSymbol() {
		t := r.k.Symbols[x].Type
		s := r.value(int32(x))
		if t.Logical() {
			return s.tri.String(), t
		}
		if t == kernel.Unknown {
			return r.k.Symbols[x].Name, t
		}
		return s.text, t
	}
	l := r.k.Literals[^x]
	if l.Text == "y" || l.Text == "m" || l.Text == "n" {
		return l.Text, kernel.Tristate
	}
	return l.Text, kernel.Unknown
}

func (r *Result) compare(e kernel.Expr) bool {
	a, ta := r.text(kernel.Ref(e.A))
	b, tb := r.text(kernel.Ref(e.B))
	c := 0
	na, oka := number(a, ta)
	nb, okb := number(b, tb)
	switch {
	case ta == kernel.String && tb == kernel.String, !oka, !okb:
		c = strings.Compare(a, b)
	case ta == kernel.Hex || tb == kernel.Hex:
		c = cmp.Compare(uint64(na), uint64(nb))
	default:
		c = cmp.Compare(na, nb)
	}
	switch e.Op {
	case kernel.Equal:
		return c == 0
	case kernel.Unequal:
		return c != 0
	case kernel.Less:
		return c < 0
	case kernel.LessEqual:
		return c <= 0
	case kernel.Greater:
		return c > 0
	case kernel.GreaterEqual:
		return c >= 0
	}
	return false
}

// number reads a value the way strtoll does for the type.
func number(s string, t kernel.Type) (int64, bool) {
	switch t {
	case kernel.Bool, kernel.Tristate:
		return int64(parseTri(s)), true
	case kernel.Int:
		n, err := strconv.ParseInt(s, 10, 64)
		return n, err == nil
	case kernel.Hex:
		n, err := strconv.ParseUint(trimHex(s), 16, 64)
		return int64(n), err == nil
	}
	d, base := s, 10
	neg := strings.HasPrefix(d, "-")
	d = strings.TrimPrefix(d, "-")
	if h := trimHex(d); h != d {
		d, base = h, 16
	} else if len(d) > 1 && d[0] == '0' {
		base = 8
	}
	n, err := strconv.ParseInt(d, base, 64)
	if neg {
		n = -n
	}
	return n, err == nil
}

func trimHex(s string) string {
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		return s[2:]
	}
	return s
}

func (r *Result) choiceBound(in int32) Tri {
	if in < 0 {
		return Y
	}
	return r.choiceValue(in)
}

// evaluateConditions evaluates the conditions of a line of a definition.
func (r *Result) evaluateConditions(d *kernel.Def, cond kernel.ExprID) Tri {
	v := Y
	if !r.k.ChoiceByOrder {
		v = r.choiceBound(d.Choice)
	}
	return min(v, r.tri(d.Depends), r.tri(cond))
}

// isBinary reports whether the symbol can currently be n or y only.
func (r *Result) isBinary(i int32) bool {
	t := r.k.Symbols[i].Type
	if t != kernel.Tristate {
		return t == kernel.Bool
	}
	return r.modules == N || !r.k.ChoiceByOrder && r.k.choice[i] >= 0 && r.sym[i].visible == Y
}

func (r *Result) promoteModule(i int32, t Tri) Tri {
	if t == M && r.isBinary(i) {
		return Y
	}
	return t
}

func (r *Result) computeVisibility(i int32) {
	sym := &r.k.Symbols[i]
	v := N
	c := r.k.choice[i]
	for j := range sym.Defs {
		d := &sym.Defs[j]
		if !d.Prompt {
			continue
		}
		p := r.evaluateConditions(d, d.Visible)
		if c >= 0 && !r.k.ChoiceByOrder {
			mode := r.choices[c].tri
			switch {
			case sym.Type == kernel.Tristate && p == M && mode == Y:
				p = N
			case sym.Type == kernel.Bool && r.k.Choices[c].Type == kernel.Tristate && mode != Y:
				p = N
			}
		}
		v = max(v, p)
	}
	if v == M && (sym.Type != kernel.Tristate || r.modules == N) {
		v = Y
	}
	s := &r.sym[i]
	s.visible = v
	if c >= 0 {
		return
	}
	// Only definitions that have dependencies count; with none at all it is y.
	dep, any := N, false
	for j := range sym.Defs {
		if d := &sym.Defs[j]; d.Depends != kernel.Always {
			dep, any = max(dep, r.tri(d.Depends)), true
		}
	}
	if !any {
		dep = Y
	}
	dep = r.promoteModule(i, dep)
	sel := r.promoteModule(i, r.strongestEdge(r.k.selects[i]))
	imp := r.promoteModule(i, r.strongestEdge(r.k.implies[i]))
	s = &r.sym[i]
	s.depends, s.selected, s.implied = dep, sel, imp
}

func (r *Result) strongestEdge(edges []edge) Tri {
	v := N
	for _, e := range edges {
		v = max(v, r.edge(e))
	}
	return v
}

func (r *Result) edge(e edge) Tri {
	v := r.operand(kernel.Ref(e.from))
	return min(v, r.choiceBound(e.in), r.tri(e.dep), r.tri(e.cond))
}

// value computes a symbol once. During its own computation its value is n or empty.
func (r *Result) value(i int32) *state {
	s := &r.sym[i]
	if s.valid {
		return s
	}
	c := r.k.choice[i]
	if c >= 0 && !r.k.ChoiceByOrder {
		r.choiceValue(c)
		if s.valid {
			return s
		}
	}
	s.valid = true
	sym := &r.k.Symbols[i]
	if sym.Type == kernel.Unknown {
		return s
	}
	if r.k.ZeroDefaults {
		switch sym.Type {
		case kernel.Int:
			s.text = "0"
		case kernel.Hex:
			s.text = "0x0"
		}
	}
	r.computeVisibility(i)
	s.written = s.visible != N
	if sym.Type.Logical() {
		r.evaluateLogical(i, c)
		return s
	}
	r.evaluateText(i)
	return s
}

func (r *Result) evaluateLogical(i, c int32) {
	s := &r.sym[i]
	switch {
	case c >= 0 && r.k.ChoiceByOrder:
		r.pickMemberByOrder(c)
		s.tri = N
		if s.visible != N && r.choices[c].chosen == i {
			s.tri = Y
		}
		s.written = s.written || s.visible != N
		return
	case c >= 0 && s.visible == Y:
		s.tri = N
		if r.choices[c].chosen == i {
			s.tri = Y
		}
		return
	}
	v := N
	if s.visible != N && s.hasUser {
		v = min(s.user, s.visible)
	} else {
		if s.selected != N {
			s.written = true
		}
		if d, cond := r.firstDefault(i); d != nil {
			v = min(r.defaultTri(d.Value), cond)
			if v != N {
				s.written = true
			}
		}
		if s.implied != N {
			s.written = true
			v = min(max(v, s.implied), s.depends)
		}
	}
	v = max(v, s.selected)
	if v == M && r.isBinary(i) {
		v = Y
	}
	s.tri = v
}

func (r *Result) firstDefault(i int32) (*kernel.Default, Tri) {
	sym := &r.k.Symbols[i]
	for j := range sym.Defs {
		d := &sym.Defs[j]
		for n := range d.Defaults {
			if v := r.evaluateConditions(d, d.Defaults[n].If); v != N {
				return &d.Defaults[n], v
			}
		}
	}
	return nil, N
}

func (r *Result) evaluateText(i int32) {
	s := &r.sym[i]
	v := s.text
	if s.visible != N && s.hasUser {
		v = s.userText
	} else if d, _ := r.firstDefault(i); d != nil {
		if e := r.k.Exprs[d.Value]; e.Op == kernel.Symbol {
			s.written = true
			v = r.defaultText(kernel.Ref(e.A))
		}
	}
	s.text = v
	if t := r.k.Symbols[i].Type; t == kernel.Int || t == kernel.Hex {
		s.text = r.clamp(i, v)
	}
}

// defaultText is the value that a default line copies.
func (r *Result) defaultText(x kernel.Ref) string {
	if x.IsSymbol() && r.k.Symbols[x].Type.Logical() {
		// A bool has no text: the real program copies an empty one.
		r.value(int32(x))
		return ""
	}
	t, _ := r.text(x)
	return t
}

// activeRange is the first range whose condition holds.
func (r *Result) activeRange(i int32) *kernel.Range {
	sym := &r.k.Symbols[i]
	for j := range sym.Defs {
		d := &sym.Defs[j]
		for n := range d.Ranges {
			if r.evaluateConditions(d, d.Ranges[n].If) != N {
				return &d.Ranges[n]
			}
		}
	}
	return nil
}

func (r *Result) clamp(i int32, v string) string {
	rg := r.activeRange(i)
	if rg == nil {
		return v
	}
	base := 10
	if r.k.Symbols[i].Type == kernel.Hex {
		base = 16
	}
	n := strtoll(v, base)
	low, high := r.rangeEnd(rg.Low, base), r.rangeEnd(rg.High, base)
	switch {
	case n < low.n:
		return low.text
	case n > high.n:
		return high.text
	}
	return v
}

type rangeEnd struct {
	text string
	n    int64
}

func (r *Result) rangeEnd(x kernel.Ref, base int) rangeEnd {
	t, typ := r.text(x)
	switch typ {
	case kernel.Int:
		base = 10
	case kernel.Hex:
		base = 16
	}
	return rangeEnd{t, strtoll(t, base)}
}

// strtoll reads the number a text starts with; zero if there is none.
func strtoll(s string, base int) int64 {
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	if base == 16 {
		s = trimHex(s)
	}
	end := 0
	for end < len(s) && strings.IndexByte("0123456789abcdef"[:base], s[end]|0x20) >= 0 || end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, _ := strconv.ParseInt(s[:end], base, 64)
	if neg {
		n = -n
	}
	return n
}

// choiceValue computes the mode of a choice as Linux before 6.11 does: y means
// that exactly one member is on, m that tristate members may be modules.
func (r *Result) choiceValue(c int32) Tri {
	g := &r.choices[c]
	if g.valid {
		return g.tri
	}
	g.valid = true
	def := &r.k.Choices[c]
	tristate := def.Type == kernel.Tristate && r.modules != N
	vis := N
	if def.Prompt {
		vis = min(r.tri(def.Depends), r.tri(def.Visible))
	}
	if vis == M && !tristate {
		vis = Y
	}
	g.visible = vis
	v := N
	if vis != N && !g.inconsistent {
		v = min(g.user, vis)
	}
	if !def.Optional {
		sel := min(vis, M)
		if sel == M && !tristate {
			sel = Y
		}
		v = max(v, sel)
	}
	if v == M && !tristate {
		v = Y
	}
	g.tri = v
	if v == Y {
		r.pickMember(c)
	}
	return g.tri
}

func (r *Result) pickMember(c int32) {
	g := &r.choices[c]
	def := &r.k.Choices[c]
	for _, m := range def.Members {
		r.computeVisibility(m)
	}
	if m := g.userMember; m >= 0 && r.sym[m].visible != N {
		g.chosen = m
		return
	}
	g.chosen = r.choiceDefault(c)
	if g.chosen < 0 {
		g.tri = N
	}
}

func (r *Result) choiceDefault(c int32) int32 {
	def := &r.k.Choices[c]
	for _, d := range def.Defaults {
		v := min(r.tri(def.Depends), r.tri(d.If))
		if v != N && d.Symbol.IsSymbol() && r.sym[d.Symbol].visible != N {
			return int32(d.Symbol)
		}
	}
	for _, m := range def.Members {
		if r.sym[m].visible != N {
			return m
		}
	}
	return -1
}

// pickMemberByOrder picks the member of a choice as Linux 6.11 and later do.
func (r *Result) pickMemberByOrder(c int32) {
	g := &r.choices[c]
	if g.valid {
		return
	}
	g.valid = true
	def := &r.k.Choices[c]
	for _, m := range g.priority {
		r.computeVisibility(m)
	}
	for _, m := range g.priority {
		if s := &r.sym[m]; s.visible != N && s.hasUser && s.user == Y {
			g.chosen = m
			return
		}
	}
	m := r.choiceDefault(c)
	if m >= 0 && !(r.sym[m].hasUser && r.sym[m].user == N) {
		g.chosen = m
		return
	}
	for _, m := range def.Members {
		if s := &r.sym[m]; s.visible != N && !s.hasUser {
			g.chosen = m
			return
		}
	}
	for j := len(g.priority) - 1; j >= 0; j-- {
		if m := g.priority[j]; r.sym[m].visible != N {
			g.chosen = m
			return
		}
	}
}
