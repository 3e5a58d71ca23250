package conform

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/spelling"
)

// Checker checks values and remembers those that passed: a value that several targets
// share is checked only once. It must not be used by two goroutines at the same time.
type Checker struct {
	schema *Schema
	report *diag.Report
	passed map[key]bool
	regexp map[*shape]*regexp.Regexp // compiled when first used: most are not
	def    string                    // the definition that is being checked
	trying bool                      // an alternative is tried: its faults may not be reported
}

type key struct {
	node    *load.Node
	shape   *shape
	partial bool
}

// NewChecker returns a checker that adds its faults to a report.
func NewChecker(s *Schema, r *diag.Report) *Checker {
	return &Checker{schema: s, report: r, passed: map[key]bool{}, regexp: map[*shape]*regexp.Regexp{}}
}

// Check checks a value against a definition such as "#Config". With partial, required
// fields may be absent: other profiles and the target complete a profile.
func (c *Checker) Check(n *load.Node, path, def string, partial bool) {
	d := c.schema.def(def)
	if d == nil || n == nil {
		return
	}
	c.def = def
	c.add(c.checkValue(n, d.value, path, partial))
}

func (c *Checker) add(found []diag.Diagnostic) {
	for _, d := range found {
		c.report.Add(d)
	}
}

// CheckField checks a value against one field of a definition.
func (c *Checker) CheckField(n *load.Node, path, def, field string, partial bool) {
	d := c.schema.def(def)
	if d == nil || n == nil || d.value.op != object {
		return
	}
	if m := c.schema.gather(d.value.obj, takenBranches(nil)).member(field); m != nil {
		c.def = def
		c.add(c.checkValue(n, m.value, path, partial))
	}
}

func (c *Checker) checkValue(n *load.Node, sh *shape, path string, partial bool) []diag.Diagnostic {
	composite := n.Kind == load.Struct || n.Kind == load.List
	k := key{n, sh, partial}
	if composite && c.passed[k] {
		return nil
	}
	found := c.checkShape(n, sh, path, partial)
	if composite && len(found) == 0 {
		c.passed[k] = true
	}
	return found
}

func (c *Checker) checkShape(n *load.Node, sh *shape, path string, partial bool) []diag.Diagnostic {
	switch sh.op {
	case anything:
		return nil
	case named:
		return c.checkDefinition(n, sh.def, path, partial)
	case all:
		return c.checkParts(n, sh, path, partial)
	case either:
		return c.checkAlternatives(n, sh, path, partial)
	case basic:
		if n.Kind == sh.kind || sh.any && n.Kind == load.Int {
			return nil
		}
	case exactly:
		if n.Equal(sh.literal) {
			return nil
		}
		if n.Kind == sh.literal.Kind {
			return c.newFault("YT0103", n, sh, path, "invalid value")
		}
	case bound:
		if v, ok := new(big.Rat).SetString(n.Text); ok && (n.Kind == load.Int || n.Kind == load.Number) {
			return c.checkBound(n, v, sh, path)
		}
	case matches, maxRunes, minRunes:
		if n.Kind == load.String {
			return c.checkText(n, sh, path)
		}
	case list:
		if n.Kind == load.List {
			var found []diag.Diagnostic
			for i, it := range n.Items {
				found = append(found, c.checkValue(it, sh.elem, path+"["+strconv.Itoa(i)+"]", partial)...)
			}
			return found
		}
	case object:
		if n.Kind == load.Struct {
			return c.checkStruct(n, sh, path, partial)
		}
	}
	return c.refuseType(n, sh, path)
}

// refuseType reports a value of another type. Where the same value in quotes, without them or in a
// list is right, the fault has the edit.
func (c *Checker) refuseType(n *load.Node, sh *shape, path string) []diag.Diagnostic {
	found := c.newFault("YT0101", n, sh, path, "wrong type")
	if c.trying {
		return found
	}
	c.trying = true
	defer func() { c.trying = false }()
	for _, form := range otherForms(n) {
		if len(c.checkShape(form.node, sh, path, false)) == 0 {
			found[0].Help = form.help
			found[0].Edits = []diag.Edit{{Kind: diag.ReplaceText, Pos: n.Pos, Text: form.text}}
			break
		}
	}
	return found
}

// form is a value written in another way.
type form struct {
	node       *load.Node
	text, help string
}

// otherForms returns the ways to write a scalar that are often taken for it.
func otherForms(n *load.Node) []form {
	text := n.Text
	if n.Kind == load.Bool {
		text = n.Show()
	}
	with := func(kind load.Kind) *load.Node {
		return &load.Node{Kind: kind, Text: text, True: text == "true", Pos: n.Pos}
	}
	var forms []form
	switch n.Kind {
	case load.Int, load.Number, load.Bool:
		forms = []form{{with(load.String), strconv.Quote(text), "write it in quotes: " + strconv.Quote(text)}}
	case load.String:
		kind := load.Bool
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			kind = load.Int
		} else if text != "true" && text != "false" {
			kind = load.String
		}
		if kind != load.String {
			forms = []form{{with(kind), text, "write it without quotes: " + text}}
		}
		text = strconv.Quote(text)
	default:
		return nil // of a struct or a list
	}
	text = "[" + text + "]"
	return append(forms, form{&load.Node{Kind: load.List, Items: []*load.Node{n}, Pos: n.Pos}, text, "write a list: " + text})
}

// checkDefinition checks a value against a definition. The comment of a definition
// explains more than the comments of its parts.
func (c *Checker) checkDefinition(n *load.Node, def, path string, partial bool) []diag.Diagnostic {
	d := c.schema.def(def)
	outer := c.def
	c.def = def
	found := c.checkValue(n, d.value, path, partial)
	c.def = outer
	if len(found) == 1 && found[0].Path == path && d.value.op != object && describesForm(d.doc) && found[0].ID != "YT0103" {
		found[0].Expected = d.doc
		found[0].See = seeSchema(def)
		if (def == "#URL" || def == "#MirrorURL") && strings.HasPrefix(n.Text, "/") {
			found[0].Help = fmt.Sprintf("did you mean %q?", "file://"+n.Text)
			found[0].Edits = []diag.Edit{{Kind: diag.ReplaceText, Pos: n.Pos, Text: strconv.Quote("file://" + n.Text)}}
		}
		if def == "#Frequency" && n.Text == "unlimited" {
			found[0].Help = "leave the field out: the clock then has the hardware's limit; limits of power modes take \"unlimited\""
		}
	}
	return found
}

// checkParts checks a value against each part, up to the first that refuses it.
func (c *Checker) checkParts(n *load.Node, sh *shape, path string, partial bool) []diag.Diagnostic {
	for _, p := range sh.parts {
		if found := c.checkValue(n, p, path, partial); len(found) > 0 {
			if found[0].ID == "YT0101" && found[0].Path == path {
				return c.refuseType(n, sh, path)
			}
			return c.expectWhole(found, sh, path)
		}
	}
	return nil
}

// expectWhole replaces the expected shape of a fault of the value itself: the whole
// shape, not only the part that refused it.
func (c *Checker) expectWhole(found []diag.Diagnostic, sh *shape, path string) []diag.Diagnostic {
	if len(found) == 1 && found[0].Path == path {
		found[0].Expected = c.schema.describeValues(sh)
	}
	return found
}

func (c *Checker) checkText(n *load.Node, sh *shape, path string) []diag.Diagnostic {
	length := int64(utf8.RuneCountInString(n.Text))
	switch {
	case sh.op == matches && c.compilePattern(sh).MatchString(n.Text) == sh.invert:
		found := c.newFault("YT0109", n, sh, path, "invalid text")
		if near := c.correctEnding(n.Text, sh); near != "" {
			found[0].Help = fmt.Sprintf("did you mean %q?", near)
		}
		return found
	case sh.op == maxRunes && length > sh.number, sh.op == minRunes && length < sh.number:
		return c.newFault("YT0109", n, sh, path, fmt.Sprintf("text of %d characters", length))
	}
	return nil
}

// endings are the alternatives at the end of a pattern, such as \.(service|socket)$.
var endings = lazyregexp.New(`\\\.\(([a-z|]+)\)\$$`)

// correctEnding returns a text with the ending that was probably meant, "" if none is near.
func (c *Checker) correctEnding(text string, sh *shape) string {
	known, dot := endings.FindStringSubmatch(sh.text), strings.LastIndexByte(text, '.')
	if known == nil || dot < 0 || sh.invert {
		return ""
	}
	near := text[:dot+1] + diag.Nearest(text[dot+1:], strings.Split(known[1], "|"))
	if !c.compilePattern(sh).MatchString(near) {
		return ""
	}
	return near
}

func (c *Checker) compilePattern(sh *shape) *regexp.Regexp {
	re := c.regexp[sh]
	if re == nil {
		re = regexp.MustCompile(sh.text)
		c.regexp[sh] = re
	}
	return re
}

func (c *Checker) newFault(id string, n *load.Node, sh *shape, path, what string) []diag.Diagnostic {
	return []diag.Diagnostic{{
		ID: id, Severity: diag.Error, Pos: n.Pos, Path: path,
		Message:  what + " for " + strconv.Quote(lastElement(path)),
		Expected: c.schema.describeValues(sh), Got: n.Show() + " (" + n.Kind.String() + ")",
		See: seeSchema(c.def),
	}}
}

// seeSchema returns the command that prints a definition such as "#CPU".
func seeSchema(def string) string {
	return strings.TrimSpace("yoctune schema " + strings.TrimPrefix(def, "#"))
}

func (c *Checker) checkBound(n *load.Node, v *big.Rat, sh *shape, path string) []diag.Diagnostic {
	order, ok := v.Cmp(new(big.Rat).SetInt64(sh.number)), false
	switch sh.rel {
	case "<":
		ok = order < 0
	case "<=":
		ok = order <= 0
	case ">":
		ok = order > 0
	case ">=":
		ok = order >= 0
	}
	if ok {
		return nil
	}
	return c.newFault("YT0106", n, sh, path, "number out of bounds")
}

// checkAlternatives accepts a value that one of the alternatives accepts. If none does, it
// reports the faults against the alternative with the same kind as the value, which the
// user most likely meant.
func (c *Checker) checkAlternatives(n *load.Node, sh *shape, path string, partial bool) []diag.Diagnostic {
	var likely []diag.Diagnostic
	var meant *shape
	var words []string
	outer := c.trying
	c.trying = true
	defer func() { c.trying = outer }()
	for _, p := range sh.parts {
		found := c.checkValue(n, p, path, partial)
		if len(found) == 0 {
			return nil
		}
		if p.op == exactly && p.literal.Kind == load.String {
			words = append(words, p.literal.Text)
		}
		if meant == nil && (len(found) > 1 || found[0].Path != path || found[0].ID != "YT0101" && found[0].ID != "YT0103") {
			likely, meant = found, p
		}
	}
	c.trying = outer
	if meant != nil {
		if !outer {
			likely = c.checkValue(n, meant, path, partial)
		}
		return c.expectWhole(likely, sh, path)
	}
	if n.Kind == load.String && len(words) > 0 {
		found := c.newFault("YT0103", n, sh, path, "invalid value")
		near := diag.Nearest(n.Text, words)
		if now := diag.CurrentName(n.Text); slices.Contains(words, now) {
			near = now
		}
		if near != "" {
			found[0].Help = fmt.Sprintf("did you mean %q?", near)
			if near == diag.CurrentName(n.Text) || diag.IsSafeFix(n.Text, near, words) {
				found[0].Edits = []diag.Edit{{Kind: diag.ReplaceText, Pos: n.Pos, Text: strconv.Quote(near)}}
			}
		}
		return found
	}
	for _, p := range sh.parts {
		if p.op == exactly && p.literal.Kind == n.Kind {
			return c.newFault("YT0103", n, sh, path, "invalid value")
		}
	}
	return c.refuseType(n, sh, path)
}

// view is a struct of the schema with its embeddings and some of its branches.
type view struct {
	fields   []*member
	patterns []pattern
}

func (v *view) member(name string) *member {
	for _, m := range v.fields {
		if m.name == name {
			return m
		}
	}
	return nil
}

// gather returns a struct with its embedded structs and the selected branches.
func (s *Schema) gather(st *structure, taken func(branch) bool) *view {
	v := &view{}
	var add func(st *structure)
	add = func(st *structure) {
		v.fields = append(v.fields, st.fields...)
		v.patterns = append(v.patterns, st.patterns...)
		for _, e := range st.embeds {
			add(s.def(e).value.obj)
		}
		for _, b := range st.branches {
			if taken(b) {
				add(b.then)
			}
		}
	}
	add(st)
	return v
}

// takenBranches reports for each branch whether a value takes it.
func takenBranches(n *load.Node) func(branch) bool {
	return func(b branch) bool { return n.Get(b.field).Word() == b.value }
}

// undecidedFields returns the fields of all branches whose selecting field is missing or
// invalid in n. They are not reported: only the selecting field is at fault.
func (c *Checker) undecidedFields(st *structure, n *load.Node, has *view, path string) *view {
	v := &view{}
	for _, b := range st.branches {
		tag, m := n.Get(b.field), has.member(b.field)
		if m != nil && m.required && (tag == nil || len(c.checkShape(tag, m.value, path, true)) > 0) {
			v.fields = append(v.fields, c.schema.gather(b.then, takenBranches(n)).fields...)
		}
	}
	return v
}

func (c *Checker) checkStruct(n *load.Node, sh *shape, path string, partial bool) []diag.Diagnostic {
	v := c.schema.gather(sh.obj, takenBranches(n))
	var found []diag.Diagnostic
	undecided := c.undecidedFields(sh.obj, n, v, path)
	for _, f := range n.Fields {
		sub := load.PathOf(path, f.Name)
		if m := v.member(f.Name); m != nil {
			found = append(found, c.checkValue(f.Value, m.value, sub, partial)...)
			continue
		}
		if undecided.member(f.Name) != nil {
			continue
		}
		found = append(found, c.checkUnlistedField(n, f, v, sub, partial)...)
	}
	if partial {
		return found
	}
	for _, m := range v.fields {
		if m.required && n.Get(m.name) == nil {
			found = append(found, diag.Diagnostic{
				ID: "YT0104", Severity: diag.Error, Pos: n.Pos, Length: 1, Path: load.PathOf(path, m.name),
				Message:  fmt.Sprintf("%q is missing", m.name),
				Expected: c.schema.describeValues(m.value), Help: m.doc, See: seeSchema(c.def),
			})
		}
	}
	return found
}

// checkUnlistedField checks a field that the struct does not name: an entry of a map, or
// an error.
func (c *Checker) checkUnlistedField(n *load.Node, f load.Field, v *view, sub string, partial bool) []diag.Diagnostic {
	name := &load.Node{Kind: load.String, Text: f.Name, Pos: f.Pos}
	for _, p := range v.patterns {
		if len(c.checkShape(name, p.key, sub, partial)) == 0 {
			return c.checkValue(f.Value, p.value, sub, partial)
		}
	}
	if len(v.patterns) > 0 && len(v.fields) == 0 {
		d := c.checkShape(name, v.patterns[0].key, sub, partial)
		d[0].Message = fmt.Sprintf("invalid name %q", f.Name)
		d[0].ID = "YT0109"
		for i, e := range d[0].Edits {
			near, _ := strconv.Unquote(e.Text)
			d[0].Edits[i] = diag.Edit{Kind: diag.RenameField, Pos: f.Pos, Text: diag.Label(near)}
		}
		if f.Name == "--" {
			d[0].Help = "leave it out: the kernel passes the arguments after -- to the first program, and the BSP's initial file system drops them"
		}
		return d[:1]
	}
	if reason, ok := removed(sub); ok {
		return []diag.Diagnostic{{
			ID: "YT0102", Severity: diag.Error, Pos: f.Pos, Path: sub, See: seeSchema(c.def),
			Message: fmt.Sprintf("field %q has no effect in this version: %s", f.Name, reason),
			Help:    "remove it",
		}}
	}
	names := make([]string, 0, len(v.fields))
	for _, m := range v.fields {
		if n.Get(m.name) == nil {
			names = append(names, m.name)
		}
	}
	slices.Sort(names)
	d := diag.Diagnostic{
		ID: "YT0102", Severity: diag.Error, Pos: f.Pos, Path: sub,
		Message: fmt.Sprintf("unknown field %q", f.Name), See: seeSchema(c.def),
	}
	switch places := c.schema.places(f.Name, sub); {
	case len(places) > 0 && len(places) <= 3 && !c.isSlipHere(f, v, sub, names) && !slices.Contains(names, diag.CurrentName(f.Name)):
		d.Help = "it is a field of another part: " + strings.Join(places, ", ")
	case !d.SuggestName(f.Name, names) && len(names) > 0:
		d.Help = "fields here: " + strings.Join(names, ", ")
	}
	return []diag.Diagnostic{d}
}

// isSlipHere reports whether the name of a field differs by one slip from a name of the struct, whose
// field takes the value.
func (c *Checker) isSlipHere(f load.Field, v *view, sub string, names []string) bool {
	return slices.ContainsFunc(v.fields, func(m *member) bool {
		return slices.Contains(names, m.name) && diag.IsSafeFix(f.Name, m.name, names) && spelling.Distance(f.Name, m.name) == 1 &&
			len(c.checkValue(f.Value, m.value, sub, false)) == 0
	})
}

// lastElement returns the last element of a path.
func lastElement(path string) string {
	if strings.HasSuffix(path, `"`) {
		if i := strings.LastIndex(path[:len(path)-1], `"`); i >= 0 {
			if s, err := strconv.Unquote(path[i:]); err == nil {
				return s
			}
		}
	}
	return path[strings.LastIndexByte(path, '.')+1:]
}

// WithReport returns a checker that adds to another report. It shares the values that
// passed with c.
func (c *Checker) WithReport(r *diag.Report) *Checker {
	return &Checker{schema: c.schema, report: r, passed: c.passed, regexp: c.regexp}
}

// CheckNames checks that the names of a struct match the pattern of a field of #Config,
// and that its members are structs.
func (c *Checker) CheckNames(n *load.Node, field string) {
	m := c.schema.gather(c.schema.def("#Config").value.obj, takenBranches(nil)).member(field)
	if m == nil || m.value.obj == nil || len(m.value.obj.patterns) == 0 {
		return
	}
	p := m.value.obj.patterns[0]
	for _, f := range n.Fields {
		sub := load.PathOf(field, f.Name)
		name := &load.Node{Kind: load.String, Text: f.Name, Pos: f.Pos}
		for _, d := range c.checkShape(name, p.key, sub, false) {
			d.Message = fmt.Sprintf("invalid name %q", f.Name)
			c.report.Add(d)
		}
		if f.Value.Kind != load.Struct {
			c.add(c.newFault("YT0101", f.Value, p.value, sub, "wrong type"))
		}
	}
}

// CheckExcept is Check, except that one field counts as present.
func (c *Checker) CheckExcept(n *load.Node, path, def, field string, present bool) {
	d := c.schema.def(def)
	for _, f := range c.checkValue(n, d.value, path, false) {
		if present && f.ID == "YT0104" && f.Path == load.PathOf(path, field) {
			continue
		}
		c.report.Add(f)
	}
}
