package editor

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/check"
	"github.com/yoctune/yoctune/compiler/language/conform"
	"github.com/yoctune/yoctune/compiler/language/cursor"
	"github.com/yoctune/yoctune/compiler/language/hcl"
	"github.com/yoctune/yoctune/compiler/language/jsonnet"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/directive"
	"github.com/yoctune/yoctune/schema/facts/idle"
	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/facts/recipe"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/sysctl"
	"github.com/yoctune/yoctune/schema/facts/variable"
)

// candidate is a name or a value that fits a place.
type candidate struct {
	name   string
	isKey  bool
	isText bool // a value that is text
	// form is what follows a name: hclBlock and hclLabel in HCL, otherwise a value.
	form  keyForm
	kind  int // of the protocol
	notes []string
	doc   string
}

type keyForm int

const (
	asValue keyForm = iota
	asBlock
	asLabelledBlock
)

// Kinds of completion items.
const (
	kindModule   = 9
	kindProperty = 10
	kindValue    = 12
	kindConstant = 21
)

// maxItems bounds a reply. The editor asks again when more letters are typed.
const maxItems = 200

// complete answers textDocument/completion. It does not wait for an evaluation: names that the
// configuration defines are those of the last one that succeeded.
func (s *server) complete(_ context.Context, p positionParams) (any, error) {
	v, ok := s.view(p.TextDocument.URI)
	if !ok {
		return nil, nil
	}
	text := newLines(v.text)
	offset := text.offset(p.Position, s.units)
	c := cursor.Find(v.language, v.text, offset)
	if c.Token.Kind == cursor.Comment {
		return nil, nil
	}
	prefix := strings.TrimLeft(v.text[c.Token.Start:min(offset, c.Token.End)], `"'`)
	return v.items(c, v.candidates(c, prefix), text, offset, s.units), nil
}

// view is what a request sees of a file: the text at its arrival, and the last good evaluation.
type view struct {
	language string
	path     string
	text     string
	project  *project
	good     *evaluation // nil before the first one
}

// view returns the view of an open file; ok is false for a file of no configuration.
func (s *server) view(uri string) (v view, ok bool) {
	path, err := pathOf(uri)
	if err != nil {
		return v, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.documents[path]
	if d == nil {
		return v, false
	}
	v = view{language: languageOf(path), path: path, text: d.text}
	for _, p := range s.projects {
		if p.reads(path) && (v.project == nil || p.dir < v.project.dir) {
			v.project, v.good = p, p.good
		}
	}
	return v, v.project != nil
}

// values is the last good evaluation's project; nil without one.
func (v *view) values() *compiler.Project {
	if v.good == nil {
		return nil
	}
	return v.good.project
}

// targetOf returns the target that a place belongs to: the one that it is in, one that uses the
// profile that it is in, or any. It is nil if there is none.
func (v *view) targetOf(names []string) *resolve.Target {
	p := v.values()
	if p == nil {
		return nil
	}
	for _, t := range p.Targets {
		if len(names) < 2 || names[0] == "targets" && t.Name == names[1] || names[0] == "profiles" && slices.Contains(v.usedProfiles(t), names[1]) {
			return t
		}
	}
	if names[0] == "targets" && slices.ContainsFunc(p.Root.Get("targets").Members(), func(f load.Field) bool { return f.Name == names[1] }) {
		return nil // its board or release is not known
	}
	if len(p.Targets) > 0 {
		return p.Targets[0]
	}
	return nil
}

// usedProfiles lists the profiles that a target uses.
func (v *view) usedProfiles(t *resolve.Target) []string {
	var names []string
	if use := v.values().Root.At("targets", t.Name, "use"); use != nil {
		for _, it := range use.Items {
			names = append(names, it.Word())
		}
	}
	return names
}

// candidates lists what fits a place, in the order in which it is shown.
func (v *view) candidates(c cursor.Cursor, prefix string) []candidate {
	sc, ok := resolveScope(conform.Language(), v.language, c.Around)
	if !ok {
		return nil
	}
	if c.IsKey {
		return v.keys(sc, prefix)
	}
	if v.language == hcl.Extension && len(c.Around) == 0 {
		return nil
	}
	if c.InList {
		sc.shape = sc.shape.Items()
	}
	found := v.valuesOf(sc, c)
	if v.language == ".cue" && !c.InList && (c.Token.Kind != cursor.Quoted || len(sc.shape.Fields()) == 0) {
		found = append(found, v.keys(sc, prefix)...) // "a: b: 1"
	}
	return found
}

// keys lists the names that a struct takes.
func (v *view) keys(sc scope, prefix string) []candidate {
	var found []candidate
	add := func(name string, form keyForm, sh conform.Shape, field string) {
		found = append(found, candidate{name: name, isKey: true, form: form, kind: kindProperty, doc: sc.shape.Doc(field), notes: []string{sh.Expected()}})
	}
	if v.language == hcl.Extension {
		for _, n := range hcl.NamesOf(sc.shape) {
			switch {
			case n.IsLabelled:
				add(n.Written, asLabelledBlock, n.Shape, n.Field)
			case n.IsBlock:
				add(n.Written, asBlock, n.Shape, n.Field)
			default:
				add(n.Written, asValue, n.Shape, n.Field)
			}
		}
	} else {
		for _, f := range sc.shape.Fields() {
			add(f.Name, asValue, f.Shape, f.Name)
		}
	}
	if len(found) == 0 {
		found = v.namesOf(sc, prefix)
	}
	return found
}

// section is the last part of a place, which decides the names that belong there: "kernel.args". The
// name of a target or of a profile, which may be any word, is not part of it.
func (sc scope) section(parts int) string {
	in := sc.names
	if len(in) > 1 && (in[0] == "targets" || in[0] == "profiles") {
		in = in[2:]
	}
	return strings.Join(in[max(0, len(in)-parts):], ".")
}

// isEntryOf reports whether a place is an entry of a map, given by the last parts of its place.
func (sc scope) isEntryOf(section string) bool {
	of := scope{names: sc.names[:max(0, len(sc.names)-1)]}
	return of.section(strings.Count(section, ".")+1) == section
}

// namesOf lists the keys of a map that the facts know.
func (v *view) namesOf(sc scope, prefix string) []candidate {
	t := v.targetOf(sc.names)
	line, rel := "", ""
	if t != nil {
		line, rel = t.Release.Kernel, t.Release.Name
	}
	switch {
	case sc.section(1) == "sysctl":
		return v.described(compiler.SysctlName, t, prefix, func(yield func(string) bool) {
			for _, key := range sysctl.Keys() {
				f, _ := sysctl.Lookup(key)
				if (line == "" || f.PresenceIn(line).State != sysctl.Absent) && !yield(key) {
					return
				}
			}
		})
	case sc.section(2) == "kernel.config":
		return v.described(compiler.OptionName, t, prefix, slices.Values(optionsOf(line)))
	case sc.section(2) == "kernel.args", sc.section(2) == "external.args":
		return v.described(compiler.ArgName, t, prefix, func(yield func(string) bool) {
			for a := range linux.Args(line) {
				if a.Arch == "" && !yield(a.Name) {
					return
				}
			}
		})
	case sc.section(1) == "modules":
		return v.described(compiler.ModuleName, t, prefix, func(yield func(string) bool) {
			for m := range linux.Modules(line) {
				if len(m.Of) == 0 && !yield(m.Name) {
					return
				}
			}
		})
	case sc.section(1) == "threads":
		return constants(prefix, func(yield func(string) bool) {
			for _, th := range linux.Threads(line) {
				if !yield(strings.ReplaceAll(th.Name, "#", "*")) {
					return
				}
			}
		})
	case sc.section(1) == "offloads":
		return constants(prefix, slices.Values(linux.NetFeatures(line)))
	case sc.section(1) == "packages":
		return constants(prefix, recipe.Names(rel, recipe.Package))
	case sc.section(2) == "build.packageConfig", sc.section(3) == "build.parallel.recipes":
		return constants(prefix, recipe.Names(rel, recipe.Recipe))
	case sc.section(2) == "cpu.idleStates" && t != nil:
		return constants(prefix, slices.Values(idle.States(t.Board.SoC, t.Release.Line())))
	case len(sc.names) > 1 && sc.names[len(sc.names)-2] == "unit" && t != nil:
		return constants(prefix, func(yield func(string) bool) {
			for _, name := range directive.Names(directive.Unit) {
				word, ok := strings.CutPrefix(name, last(sc.names)+".")
				if ok && directive.Lookup(directive.Unit, name, t.Release.Systemd).State == directive.Present && !yield(word) {
					return
				}
			}
		})
	case sc.section(2) == "build.variables":
		return v.described(compiler.VariableName, t, prefix, slices.Values(variable.Names(rel)))
	case len(sc.names) == 1 && sc.names[0] == "suppress":
		var found []candidate
		for _, r := range check.Rules() {
			found = append(found, candidate{name: r.ID, isKey: true, kind: kindConstant, doc: r.Title})
		}
		return found
	}
	return nil
}

func last(names []string) string { return names[len(names)-1] }

// constants lists names without further facts, as [view.described] does.
func constants(prefix string, names iter.Seq[string]) []candidate {
	list := matching(prefix, names)
	found := make([]candidate, 0, len(list))
	for _, name := range list {
		found = append(found, candidate{name: name, isKey: true, kind: kindConstant})
	}
	return found
}

// described lists names with their facts: those that begin with what is typed, then those that
// contain it, up to the bound.
func (v *view) described(kind compiler.NameKind, t *resolve.Target, prefix string, names iter.Seq[string]) []candidate {
	list := matching(prefix, names)
	found := make([]candidate, 0, len(list))
	for _, name := range list {
		found = append(found, candidate{name: name, isKey: true, kind: kindConstant, notes: v.describe(kind, name, t)})
	}
	return found
}

// matching lists the names that begin with what is typed, then those that contain it, up to the
// bound.
func matching(prefix string, names iter.Seq[string]) []string {
	var begin, contain []string
	lower := strings.ToLower(prefix)
	for name := range names {
		switch folded := strings.ToLower(name); {
		case strings.HasPrefix(folded, lower):
			begin = append(begin, name)
		case strings.Contains(folded, lower):
			contain = append(contain, name)
		}
		if len(begin) > maxItems {
			break
		}
	}
	list := append(begin, contain...)
	return list[:min(len(list), maxItems+1)] // one more shows that the list is cut
}

func (v *view) describe(kind compiler.NameKind, name string, t *resolve.Target) []string {
	p := v.values()
	if p == nil {
		return nil
	}
	v.good.mu.Lock()
	defer v.good.mu.Unlock()
	return p.DescribeName(kind, name, t)
}

// optionsOf lists the options of a kernel. The names are kept: reading them takes some 20 ms.
func optionsOf(line string) []string {
	known.Lock()
	defer known.Unlock()
	if known.line == line {
		return known.names
	}
	tree, _, err := kernel.Open(line)
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(tree.Symbols))
	for _, s := range tree.Symbols {
		if s.Type != kernel.Unknown && len(s.Defs) > 0 {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	known.line, known.names = line, names
	return names
}

// known are the options of the last kernel that was asked for.
var known struct {
	sync.Mutex
	line  string
	names []string
}

// valuesOf lists the values that a place takes.
func (v *view) valuesOf(sc scope, c cursor.Cursor) []candidate {
	var found []candidate
	text := func(kind int, names ...string) {
		for _, name := range names {
			found = append(found, candidate{name: name, isText: true, kind: kind})
		}
	}
	t := v.targetOf(sc.names)
	last := sc.section(1)
	switch {
	case last == "board" && len(sc.names) == 3, last == "base" && len(sc.names) == 3:
		if last == "board" {
			text(kindModule, v.members("boards")...)
		}
		for _, id := range board.IDs() {
			found = append(found, candidate{name: id, isText: true, kind: kindConstant, notes: v.describe(compiler.BoardName, id, nil)})
		}
	case last == "release" && len(sc.names) == 3:
		for _, name := range release.Names() {
			found = append(found, candidate{name: name, isText: true, kind: kindConstant, notes: v.describe(compiler.ReleaseName, name, nil)})
		}
	case last == "machine" && len(sc.names) == 3 && t != nil:
		text(kindConstant, t.Machines()...)
	case last == "use" && len(sc.names) == 3:
		text(kindModule, v.members("profiles")...)
	case isModeName(sc) && t != nil:
		text(kindConstant, modesOf(t, last != "from")...)
	case isModelName(sc) && t != nil:
		for _, f := range t.Node.Get("models").Members() {
			text(kindConstant, f.Name)
		}
	case sc.isEntryOf("kernel.config"):
		text(kindValue, "y", "m", "n")
	case sc.isEntryOf("kernel.args") && t != nil:
		if a, ok := linux.FindArg(t.Release.Kernel, last); ok {
			if words, ok := strings.CutPrefix(a.Value, "words:"); ok {
				text(kindValue, strings.Split(words, "|")...)
			}
		}
	}
	for _, n := range sc.shape.Literals() {
		found = append(found, candidate{name: literalText(n), isText: n.Kind == load.String, kind: kindValue})
	}
	if c.Token.Kind == cursor.Quoted { // only text fits between quotes
		found = slices.DeleteFunc(found, func(c candidate) bool { return !c.isText })
	}
	return found
}

func literalText(n *load.Node) string {
	switch n.Kind {
	case load.Bool:
		return strconv.FormatBool(n.True)
	case load.String:
		return n.Text
	}
	return n.Show()
}

// isModelName reports whether a place takes the name of a model.
func isModelName(sc scope) bool {
	return len(sc.names) > 3 && sc.names[2] == "pipelines" && sc.names[len(sc.names)-1] == "model"
}

// isModeName reports whether a place takes the name of a power mode.
func isModeName(sc scope) bool {
	if len(sc.names) < 4 || sc.names[2] != "power" { // targets.NAME.power or profiles.NAME.power
		return false
	}
	rest := strings.Join(sc.names[3:], ".")
	return rest == "default" || rest == "adaptive.ladder" || strings.HasPrefix(rest, "modes.") && strings.HasSuffix(rest, ".from")
}

// modesOf lists the power modes of a target: those of its board, and its own.
func modesOf(t *resolve.Target, own bool) []string {
	var names []string
	for _, m := range t.Stock.Modes {
		names = append(names, m.Name)
	}
	if own {
		for _, f := range t.Node.At("power", "modes").Members() {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// members lists the names of the entries of a map at the top of the configuration.
func (v *view) members(field string) []string {
	p := v.values()
	if p == nil {
		return nil
	}
	var names []string
	for _, f := range p.Root.Get(field).Members() {
		names = append(names, f.Name)
	}
	return names
}

// items writes candidates as the language does.
func (v *view) items(c cursor.Cursor, found []candidate, text *lines, offset int, units encoding) completionList {
	list := completionList{IsIncomplete: len(found) > maxItems, Items: []completionItem{}}
	start, stop := c.Token.Start, c.Token.End
	if c.Token.Open {
		stop = offset // the rest of the line is not part of the name
	}
	quote := ""
	if c.Token.Kind == cursor.Quoted {
		quote = c.Token.Quote
	}
	for i, f := range found[:min(len(found), maxItems)] {
		item := completionItem{
			Label: f.name, Kind: f.kind, SortText: sortKey(i), FilterText: quote + f.name,
			Detail: strings.Join(f.notes, "; "), TextEdit: textEdit{text.span(start, stop, units), v.write(f, quote, c.IsNamed)},
		}
		if f.doc != "" {
			item.Documentation = &markup{"markdown", f.doc}
		}
		list.Items = append(list.Items, item)
	}
	return list
}

// sortKey keeps the order of candidates, because editors sort by text.
func sortKey(i int) string {
	return string([]byte{'0' + byte(i/100%10), '0' + byte(i/10%10), '0' + byte(i%10)})
}

// write writes a candidate. quote is that of the string it replaces, and isNamed is set where what
// follows a name is there already.
func (v *view) write(f candidate, quote string, isNamed bool) string {
	name := f.name
	quoted := cmp.Or(quote, map[string]string{jsonnet.Extension: "'"}[v.language], `"`)
	switch {
	case !f.isKey && !f.isText:
		return name
	case !f.isKey, quote != "", !isIdentifier(name):
		name = quoted + name + quoted
	}
	switch {
	case !f.isKey || isNamed:
		return name
	case v.language != hcl.Extension:
		return name + ": "
	case f.form == asBlock:
		return name + " {"
	case f.form == asLabelledBlock:
		return name + ` "`
	}
	return name + " = "
}

// isIdentifier reports whether every language takes a name without quotes.
func isIdentifier(name string) bool {
	return load.PathOf("", name) == name
}
