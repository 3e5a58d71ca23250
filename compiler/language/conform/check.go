package conform

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
)

// Checker checks values and remembers those that passed, so that what many
// targets share is checked once. It is for one goroutine.
type Checker struct {
	schema *Schema
	report *diag.Report
	passed map[key]bool
	regexp map[*shape]matcher // made when first used: most are not
	def    string             // the definition that is being checked
}

type key struct {
	node    *load.Node
	shape   *shape
	partial bool
}

// NewChecker returns a checker that adds what it finds to a report.
func NewChecker(s *Schema, r *diag.Report) *Checker {
	return &Checker{schema: s, report: r, passed: map[key]bool{}, regexp: map[*shape]matcher{}}
}

// Check holds a value against a definition such as "#Config". With partial,
// required fields may be absent: that is how a profile is checked, which other
// profiles and the target complete.
func (c *Checker) Check(n *load.Node, path, def string, partial bool) {
	d := c.schema.def(def)
	if d == nil || n == nil {
		return
	}
	c.def = def
	for _, f := range c.value(n, d.value, path, partial) {
		c.report.Add(f)
	}
}

// CheckField holds a value against one field of a definition.
func (c *Checker) CheckField(n *load.Node, path, def, field string, partial bool) {
	d := c.schema.def(def)
	if d == nil || n == nil || d.value.op != object {
		return
	}
	v := view{}
	c.schema.gather(d.value.obj, nil, &v)
	if m := v.member(field); m != nil {
		c.def = def
		for _, f := range c.value(n, m.value, path, partial) {
			c.report.Add(f)
		}
	}
}

func (c *Checker) value(n *load.Node, sh *shape, path string, partial bool) []diag.Diagnostic {
	composite := n.Kind == load.Struct || n.Kind == load.List
	k := key{n, sh, partial}
	if composite && c.passed[k] {
		return nil
	}
	found := c.examine(n, sh, path, partial)
	if composite && len(found) == 0 {
		c.passed[k] = true
	}
	return found
}

func (c *Checker) examine(n *load.Node, sh *shape, path string, partial bool) []diag.Diagnostic {
	switch sh.op {
	case anything:
		return nil
	case named:
		d := c.schema.def(sh.def)
		outer := c.def
		c.def = sh.def
		found := c.value(n, d.value, path, partial)
		c.def = outer
		// The definition's own words say more than its parts.
		if len(found) == 1 && found[0].Path == path && d.value.op != object && d.doc != "" && found[0].ID != "YT0103" {
			found[0].Expected = d.doc
			found[0].See = seeSchema(sh.def)
			if sh.def == "#URL" && strings.HasPrefix(n.Text, "/") {
				found[0].Help = fmt.Sprintf("did you mean %q?", "file://"+n.Text)
				found[0].Edits = []diag.Edit{{Kind: diag.ReplaceText, Pos: n.Pos, Text: strconv.Quote("file://" + n.Text)}}
			}
		}
		return found
	case basic:
		if n.Kind == sh.kind || sh.any && n.Kind == load.Int {
			return nil
		}
		return c.one("YT0101", n, sh, path, "wrong type")
	case exactly:
		if n.Equal(sh.literal) {
			return nil
		}
		if n.Kind != sh.literal.Kind {
			return c.one("YT0101", n, sh, path, "wrong type")
		}
		return c.one("YT0103", n, sh, path, "invalid value")
	case bound:
		return c.bound(n, sh, path)
	case matches:
		if n.Kind != load.String {
			return c.one("YT0101", n, sh, path, "wrong type")
		}
		if c.pattern(sh).MatchString(n.Text) != sh.invert {
			return nil
		}
		return c.one("YT0109", n, sh, path, "invalid text")
	case maxRunes, minRunes:
		if n.Kind != load.String {
			return c.one("YT0101", n, sh, path, "wrong type")
		}
		length := int64(utf8.RuneCountInString(n.Text))
		if sh.op == maxRunes && length <= sh.number || sh.op == minRunes && length >= sh.number {
			return nil
		}
		return c.one("YT0109", n, sh, path, fmt.Sprintf("text of %d characters", length))
	case all:
		for _, p := range sh.parts {
			if found := c.value(n, p, path, partial); len(found) > 0 {
				if len(found) == 1 && found[0].Path == path {
					found[0].Expected = c.schema.prose(sh)
				}
				return found
			}
		}
		return nil
	case either:
		return c.either(n, sh, path, partial)
	case list:
		if n.Kind != load.List {
			return c.one("YT0101", n, sh, path, "wrong type")
		}
		var found []diag.Diagnostic
		for i, it := range n.Items {
			found = append(found, c.value(it, sh.elem, path+"["+strconv.Itoa(i)+"]", partial)...)
		}
		return found
	case object:
		if n.Kind != load.Struct {
			return c.one("YT0101", n, sh, path, "wrong type")
		}
		return c.object(n, sh, path, partial)
	}
	return nil
}

func (c *Checker) pattern(sh *shape) matcher {
	m := c.regexp[sh]
	if m == nil {
		m = matching(sh.text)
		c.regexp[sh] = m
	}
	return m
}

func (c *Checker) one(id string, n *load.Node, sh *shape, path, what string) []diag.Diagnostic {
	return []diag.Diagnostic{{
		ID: id, Severity: diag.Error, Pos: n.Pos, Path: path,
		Message:  what + " for " + strconv.Quote(last(path)),
		Expected: c.schema.prose(sh), Got: n.Show() + " (" + n.Kind.String() + ")",
		See: seeSchema(c.def),
	}}
}

// seeSchema returns the command that prints a definition such as "#CPU".
func seeSchema(def string) string { return "yoctune schema " + strings.TrimPrefix(def, "#") }

func (c *Checker) bound(n *load.Node, sh *shape, path string) []diag.Diagnostic {
	if n.Kind != load.Int && n.Kind != load.Number {
		return c.one("YT0101", n, sh, path, "wrong type")
	}
	v, ok := new(big.Rat).SetString(n.Text)
	if !ok {
		return c.one("YT0101", n, sh, path, "wrong type")
	}
	order := v.Cmp(new(big.Rat).SetInt64(sh.number))
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
	return c.one("YT0106", n, sh, path, "number out of bounds")
}

// either accepts what one alternative accepts. When none does, it explains the
// alternative the user most likely meant: the one of the value's own kind.
func (c *Checker) either(n *load.Node, sh *shape, path string, partial bool) []diag.Diagnostic {
	var meant []diag.Diagnostic
	var words []string
	for _, p := range sh.parts {
		found := c.value(n, p, path, partial)
		if len(found) == 0 {
			return nil
		}
		if p.op == exactly && p.literal.Kind == load.String {
			words = append(words, p.literal.Text)
		}
		if meant == nil && (len(found) > 1 || found[0].ID != "YT0101" && found[0].ID != "YT0103") {
			meant = found
		}
	}
	if meant != nil {
		if len(meant) == 1 && meant[0].Path == path {
			meant[0].Expected = c.schema.prose(sh)
		}
		return meant
	}
	if n.Kind == load.String && len(words) > 0 {
		found := c.one("YT0103", n, sh, path, "invalid value")
		near := diag.Nearest(n.Text, words)
		if now := diag.Retired(n.Text); slices.Contains(words, now) {
			near = now
		}
		if near != "" {
			found[0].Help = fmt.Sprintf("did you mean %q?", near)
			if near == diag.Retired(n.Text) || diag.Sure(n.Text, near, words) {
				found[0].Edits = []diag.Edit{{Kind: diag.ReplaceText, Pos: n.Pos, Text: strconv.Quote(near)}}
			}
		}
		return found
	}
	for _, p := range sh.parts {
		if p.op == exactly && p.literal.Kind == n.Kind {
			return c.one("YT0103", n, sh, path, "invalid value")
		}
	}
	return c.one("YT0101", n, sh, path, "wrong type")
}

// view is a struct of the schema with its embeddings and the branches that the
// value chose.
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

func (s *Schema) gather(st *structure, n *load.Node, v *view) {
	v.fields = append(v.fields, st.fields...)
	v.patterns = append(v.patterns, st.patterns...)
	for _, e := range st.embeds {
		s.gather(s.def(e).value.obj, n, v)
	}
	for _, b := range st.branches {
		if tag := n.Get(b.field); tag != nil && tag.Kind == load.String && tag.Text == b.value {
			s.gather(b.then, n, v)
		}
	}
}

// undecided are the fields of the branches among which a value chooses by a field that is
// wrong itself: nothing more is wrong with them.
func (c *Checker) undecided(st *structure, n *load.Node, has *view, path string) *view {
	v := &view{}
	for _, b := range st.branches {
		tag, m := n.Get(b.field), has.member(b.field)
		if m != nil && m.required && (tag == nil || len(c.examine(tag, m.value, path, true)) > 0) {
			c.schema.gather(b.then, n, v)
		}
	}
	return v
}

func (c *Checker) object(n *load.Node, sh *shape, path string, partial bool) []diag.Diagnostic {
	var v view
	c.schema.gather(sh.obj, n, &v)
	var found []diag.Diagnostic
	open := c.undecided(sh.obj, n, &v, path)
	for _, f := range n.Fields {
		sub := load.PathOf(path, f.Name)
		if m := v.member(f.Name); m != nil {
			found = append(found, c.value(f.Value, m.value, sub, partial)...)
			continue
		}
		if open.member(f.Name) != nil {
			continue
		}
		found = append(found, c.byPattern(n, f, &v, sh, path, sub, partial)...)
	}
	if partial {
		return found
	}
	for _, m := range v.fields {
		if m.required && n.Get(m.name) == nil {
			found = append(found, diag.Diagnostic{
				ID: "YT0104", Severity: diag.Error, Pos: n.Pos, Length: 1, Path: load.PathOf(path, m.name),
				Message:  fmt.Sprintf("%q is missing", m.name),
				Expected: c.schema.prose(m.value), Help: m.doc, See: seeSchema(c.def),
			})
		}
	}
	return found
}

func (c *Checker) byPattern(n *load.Node, f load.Field, v *view, sh *shape, path, sub string, partial bool) []diag.Diagnostic {
	name := &load.Node{Kind: load.String, Text: f.Name, Pos: f.Pos}
	for _, p := range v.patterns {
		if len(c.examine(name, p.key, sub, partial)) == 0 {
			return c.value(f.Value, p.value, sub, partial)
		}
	}
	if len(v.patterns) > 0 && len(v.fields) == 0 {
		d := c.examine(name, v.patterns[0].key, sub, partial)
		d[0].Message = fmt.Sprintf("invalid name %q", diag.Visible(f.Name))
		d[0].ID = "YT0109"
		if f.Name == "--" {
			d[0].Help = "leave it out: the kernel hands what stands behind -- to the first program, and the BSP's initial file system passes nothing on"
		}
		return d[:1]
	}
	if reason, ok := removed(sub); ok {
		return []diag.Diagnostic{{
			ID: "YT0102", Severity: diag.Error, Pos: f.Pos, Path: sub, See: seeSchema(c.def),
			Message: fmt.Sprintf("field %q has no effect in this version: %s", diag.Visible(f.Name), reason),
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
		Message: fmt.Sprintf("unknown field %q", diag.Visible(f.Name)), See: seeSchema(c.def),
	}
	if near := diag.Nearest(f.Name, names); near != "" {
		d.Help = fmt.Sprintf("did you mean %q?", near)
		if diag.Sure(f.Name, near, names) {
			d.Edits = []diag.Edit{{Kind: diag.RenameField, Pos: f.Pos, Text: near}}
		}
	} else if len(names) > 0 {
		d.Help = "fields here: " + strings.Join(names, ", ")
	}
	return []diag.Diagnostic{d}
}

// last is the final member of a path.
func last(path string) string {
	if strings.HasSuffix(path, `"`) {
		if i := strings.LastIndex(path[:len(path)-1], `"`); i >= 0 {
			if s, err := strconv.Unquote(path[i:]); err == nil {
				return s
			}
		}
	}
	return path[strings.LastIndexByte(path, '.')+1:]
}

// Into returns a checker that shares what this one remembers and adds what it
// finds to another report.
func (c *Checker) Into(r *diag.Report) *Checker {
	return &Checker{schema: c.schema, report: r, passed: c.passed, regexp: c.regexp}
}

// CheckNames holds the names of a struct against the pattern of a field of
// #Config, and its members against being structs.
func (c *Checker) CheckNames(n *load.Node, field string) {
	v := view{}
	c.schema.gather(c.schema.def("#Config").value.obj, nil, &v)
	m := v.member(field)
	if m == nil || m.value.obj == nil || len(m.value.obj.patterns) == 0 {
		return
	}
	p := m.value.obj.patterns[0]
	for _, f := range n.Fields {
		sub := load.PathOf(field, f.Name)
		name := &load.Node{Kind: load.String, Text: f.Name, Pos: f.Pos}
		for _, d := range c.examine(name, p.key, sub, false) {
			d.Message = fmt.Sprintf("invalid name %q", diag.Visible(f.Name))
			c.report.Add(d)
		}
		if f.Value.Kind != load.Struct {
			for _, d := range c.one("YT0101", f.Value, p.value, sub, "wrong type") {
				c.report.Add(d)
			}
		}
	}
}

// CheckExcept is Check, except that one field counts as present.
func (c *Checker) CheckExcept(n *load.Node, path, def, field string, present bool) {
	d := c.schema.def(def)
	for _, f := range c.value(n, d.value, path, false) {
		if present && f.ID == "YT0104" && f.Path == load.PathOf(path, field) {
			continue
		}
		c.report.Add(f)
	}
}
