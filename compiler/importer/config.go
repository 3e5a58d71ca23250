package importer

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema"
)

// configName is the name of the configuration's file.
const configName = "config.cue"

// profile is the name of the profile that imported settings go to.
const profile = "imported"

// entry is one value of the configuration.
type entry struct {
	scope string   // machine, or everywhere
	names []string // path below the profile, or below the root for build
	value string   // CUE
	words []string // of a list that several lines add to
	doc   []string
	lines []*Line // that it came from
}

type config struct {
	entries []*entry
}

func (c *config) find(e *entry) *entry {
	for _, o := range c.entries {
		if o.scope == e.scope && slices.Equal(o.names, e.names) {
			return o
		}
	}
	return nil
}

func (c *config) hasField(names ...string) bool {
	return slices.ContainsFunc(c.entries, func(e *entry) bool {
		return len(e.names) >= len(names) && slices.Equal(e.names[:len(names)], names)
	})
}

func (c *config) remove(e *entry) {
	if i := slices.Index(c.entries, e); i >= 0 {
		c.entries = slices.Delete(c.entries, i, i+1)
	}
}

// quoteCUE writes text as a CUE string.
func quoteCUE(s string) string { return literal.String.Quote(s) }

// formatScalar writes a whole number as one, everything else as text.
func formatScalar(s string) string {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(n, 10) == s {
		return s
	}
	return quoteCUE(s)
}

// list writes CUE values as a list.
func list(values []string) string { return "[" + strings.Join(values, ", ") + "]" }

func quotedList(values []string) string {
	out := make([]string, 0, len(values))
	for _, v := range values {
		out = append(out, quoteCUE(v))
	}
	return list(out)
}

func coreList(cores []int) string {
	out := make([]string, 0, len(cores))
	for _, c := range cores {
		out = append(out, strconv.Itoa(c))
	}
	return list(out)
}

func showPath(names []string) string {
	p := ""
	for _, n := range names {
		p = load.PathOf(p, n)
	}
	return p
}

// sectionOrder returns the place of a field among the sections, in the order of the schema.
func sectionOrder(names []string) int {
	if slices.Equal(names, []string{"power", "default"}) {
		return -1 // before the modes
	}
	i := slices.Index([]string{
		"power", "cpu", "gpu", "kernel", "sysctl", "memory", "tmpfs", "storage", "irq", "threads", "bus", "network", "modules",
		"services", "packages", "tools", "pipelines", "monitor", "runtime",
	}, names[0])
	if i < 0 {
		return 99
	}
	return i
}

// branch is a struct of the configuration being written.
type branch struct {
	name     string
	doc      []string
	value    string // of a leaf
	children []*branch
}

func (b *branch) child(name string) *branch {
	for _, c := range b.children {
		if c.name == name {
			return c
		}
	}
	c := &branch{name: name}
	b.children = append(b.children, c)
	return c
}

func (b *branch) insert(e *entry, names ...string) {
	at := b
	for _, n := range names {
		at = at.child(n)
	}
	at.value, at.doc = e.value, e.doc
}

// write writes a branch; chains of structs with one field become one line.
func (b *branch) write(w *strings.Builder) {
	for _, d := range b.doc {
		w.WriteString("// " + d + "\n")
	}
	at := b
	w.WriteString(label(at.name) + ": ")
	for len(at.children) == 1 && len(at.children[0].doc) == 0 {
		at = at.children[0]
		w.WriteString(label(at.name) + ": ")
	}
	if len(at.children) == 0 {
		w.WriteString(at.value + "\n")
		return
	}
	w.WriteString("{\n")
	for _, c := range at.children {
		c.write(w)
	}
	w.WriteString("}\n")
}

func label(name string) string {
	if load.PathOf("", name) == name && !isReservedLabel(name) {
		return name
	}
	return quoteCUE(name)
}

// isReservedLabel reports whether CUE reads a name as something else than a label.
func isReservedLabel(name string) bool {
	switch name {
	case "true", "false", "null", "for", "if", "in", "let", "package", "import", "func":
		return true
	}
	return strings.HasPrefix(name, "_")
}

// formatConfig is the configuration.
func (im *importer) formatConfig() []byte {
	root := &branch{}
	layer := root.child("layer")
	layer.child("name").value = quoteCUE(im.layerName())
	layer.child("maintainer").value = quoteCUE(cmp.Or(im.o.Maintainer, Nobody))
	layer.child("description").value = quoteCUE("Settings imported by yoctune")
	if im.priority != "" {
		layer.child("priority").value = im.priority
	}
	target := root.child("targets").child(im.targetName())
	boardName := im.board.ID
	if im.custom {
		b := &branch{name: "boards"}
		own := b.child(im.machine)
		own.child("base").value = quoteCUE(im.board.ID)
		own.child("machines").child(im.release.Name).value = quotedList([]string{im.machine})
		root.children = slices.Insert(root.children, 1, b)
		boardName = im.machine
	}
	target.child("board").value = quoteCUE(boardName)
	target.child("machine").value = quoteCUE(im.machine)
	target.child("release").value = quoteCUE(im.release.Name)
	use := target.child("use")
	shared := &branch{name: profile}
	sorted := slices.Clone(im.config.entries)
	slices.SortStableFunc(sorted, func(a, b *entry) int { return sectionOrder(a.names) - sectionOrder(b.names) })
	for _, e := range sorted {
		switch {
		case e.names[0] == "build":
			root.insert(e, e.names...)
		case e.scope == everywhere:
			shared.insert(e, e.names...)
		default:
			target.insert(e, e.names...)
		}
	}
	if len(shared.children) > 0 {
		use.value = quotedList([]string{profile})
		at := len(root.children)
		if i := slices.IndexFunc(root.children, func(b *branch) bool { return b.name == "build" }); i >= 0 {
			at = i // what the build needs comes last
		}
		root.children = slices.Insert(root.children, at, &branch{name: "profiles", children: []*branch{shared}})
	} else {
		target.children = slices.DeleteFunc(target.children, func(b *branch) bool { return b.name == "use" })
	}
	var w strings.Builder
	w.WriteString("package " + packageName(im.layerName()) + "\n\nimport " + quoteCUE(schema.ImportPath) + "\n\nschema.#Config & {\n")
	for i, b := range root.children {
		if i > 0 {
			w.WriteByte('\n')
		}
		b.write(&w)
	}
	w.WriteString("}\n")
	text := []byte(w.String())
	if formatted, err := format.Source(text); err == nil {
		text = formatted
	}
	return append(bytes.TrimRight(text, "\n"), '\n')
}

func packageName(layer string) string {
	name := strings.ReplaceAll(layer, "-", "_")
	if isReservedLabel(name) {
		return "config"
	}
	return name
}

// places maps lines of the configuration's text to their entries.
type places map[int][]*entry

// locateEntries finds the entries in the text.
func (c *config) locateEntries(text []byte) places {
	p := places{}
	f, err := parser.ParseFile(configName, text)
	if err != nil {
		return p
	}
	byPath := map[string]*entry{}
	for _, e := range c.entries {
		byPath[strings.Join(e.names, "\x00")+"\x00\x00"+scopeKey(e)] = e
	}
	var walk func(decls []ast.Decl, at []string) []*entry
	walk = func(decls []ast.Decl, at []string) []*entry {
		var all []*entry
		for _, d := range decls {
			switch d := d.(type) {
			case *ast.Field:
				name, _, err := ast.LabelName(d.Label)
				if err != nil {
					continue
				}
				path := append(slices.Clone(at), name)
				var below []*entry
				if e := entryAt(byPath, path); e != nil {
					below = []*entry{e}
				} else if s, ok := d.Value.(*ast.StructLit); ok {
					below = walk(s.Elts, path)
				}
				first, last := d.Pos().Line(), d.Value.End().Line()
				if _, isStruct := d.Value.(*ast.StructLit); isStruct {
					last = first
				}
				for line := first; line <= last; line++ {
					if len(p[line]) == 0 || len(below) < len(p[line]) {
						p[line] = below
					}
				}
				all = append(all, below...)
			case *ast.EmbedDecl:
				if b, ok := d.Expr.(*ast.BinaryExpr); ok {
					if s, ok := b.Y.(*ast.StructLit); ok {
						all = append(all, walk(s.Elts, at)...)
					}
				}
			}
		}
		return all
	}
	walk(f.Decls, nil)
	return p
}

func scopeKey(e *entry) string {
	switch {
	case e.names[0] == "build":
		return "root"
	case e.scope == everywhere:
		return "profile"
	}
	return "target"
}

func entryAt(byPath map[string]*entry, path []string) *entry {
	key := func(names []string, scope string) *entry { return byPath[strings.Join(names, "\x00")+"\x00\x00"+scope] }
	switch {
	case path[0] == "build":
		return key(path, "root")
	case path[0] == "profiles" && len(path) > 2:
		return key(path[2:], "profile")
	case path[0] == "targets" && len(path) > 2:
		return key(path[2:], "target")
	}
	return nil
}

// entriesFor returns the entries on the line of a diagnostic.
func (p places) entriesFor(d diag.Diagnostic) []*entry { return p[d.Pos.Line] }
