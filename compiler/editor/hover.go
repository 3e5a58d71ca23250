package editor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/language/conform"
	"github.com/yoctune/yoctune/compiler/language/cursor"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/plan"
)

// settle waits until the project's evaluation is of the last change, and returns the file's view then.
func (s *server) settle(ctx context.Context, uri string) (v view, ok bool, err error) {
	v, ok = s.view(uri)
	if !ok {
		return v, false, nil
	}
	s.mu.Lock()
	scheduled, settled := v.project.scheduled, v.project.settled
	s.mu.Unlock()
	if scheduled {
		select {
		case <-settled:
		case <-ctx.Done():
			return v, false, ctx.Err()
		}
	}
	v, ok = s.view(uri)
	return v, ok, nil
}

// subject is what a place of a text is about.
type subject struct {
	cursor cursor.Cursor
	names  []string // of the field, in the terms of the schema
	paths  [][]string
}

// subjectAt finds the field at a place. Where the evaluation is of this text, it is the field that
// is written there, also through references; otherwise the one that the text before the place shows.
func (v *view) subjectAt(offset int) (subject, bool) {
	s := subject{cursor: cursor.Find(v.language, v.text, offset)}
	switch s.cursor.Token.Kind {
	case cursor.Word, cursor.Quoted:
	default:
		return s, false
	}
	around := s.cursor.Around
	if s.cursor.IsKey {
		around = append(slices.Clip(around), s.cursor.Token.Text)
	}
	if sc, ok := resolveScope(conform.Language(), v.language, around); ok && !sc.elsewhere {
		s.names = sc.names
	}
	if v.good != nil && v.good.isCurrent(v.path, v.text) {
		s.paths = v.pathsAt(s.cursor.Token.Start)
	}
	if len(s.paths) == 0 && len(s.names) > 0 {
		s.paths = [][]string{s.names}
	}
	return s, len(s.paths) > 0
}

// pathsAt lists the fields of the configuration whose label or value is written at an offset.
func (v *view) pathsAt(offset int) [][]string {
	l := v.good.texts[v.path]
	p := l.place(offset, utf8Units)
	at := plan.Position{File: v.good.name(v.path), Line: p.Line + 1, Column: p.Character + 1}
	var found [][]string
	var walk func(n *load.Node, names []string)
	walk = func(n *load.Node, names []string) {
		for _, f := range n.Fields {
			sub := append(slices.Clip(names), f.Name)
			// An element of a list belongs to its field.
			if f.Pos == at || f.Value.Pos == at || slices.ContainsFunc(f.Value.Items, func(it *load.Node) bool { return it.Pos == at }) {
				found = append(found, sub)
			}
			walk(f.Value, sub)
		}
	}
	walk(v.values().Root, nil)
	// With "a: b: 1", the value of a begins where b does: the innermost field is meant.
	return slices.DeleteFunc(found, func(a []string) bool {
		return slices.ContainsFunc(found, func(b []string) bool { return len(b) > len(a) && slices.Equal(a, b[:len(a)]) })
	})
}

// hover answers textDocument/hover.
func (s *server) hover(ctx context.Context, p positionParams) (any, error) {
	v, ok, err := s.settle(ctx, p.TextDocument.URI)
	if err != nil || !ok {
		return nil, err
	}
	text := newLines(v.text)
	about, ok := v.subjectAt(text.offset(p.Position, s.units))
	if !ok {
		return nil, nil
	}
	var parts []string
	for _, a := range v.accounts(about) {
		parts = append(parts, v.show(a))
	}
	if len(parts) == 0 {
		return nil, nil
	}
	if name := v.describeValue(about); name != "" {
		parts = append([]string{name}, parts...)
	}
	t := about.cursor.Token
	return hover{markup{"markdown", strings.Join(parts, "\n\n---\n\n")}, text.span(t.Start, t.End, s.units)}, nil
}

// maxAccounts bounds how many fields a place explains: a shared value has one in every target.
const maxAccounts = 4

// accounts explains the fields of a subject. A field of a profile is explained by the targets that
// use the profile.
func (v *view) accounts(about subject) []compiler.Account {
	p := v.values()
	if p == nil {
		// Nothing could be evaluated yet: the language is known all the same.
		var found []compiler.Account
		if doc, ok := conform.Language().Describe(about.paths[0]); ok {
			found = append(found, compiler.Account{Path: joinPath(about.paths[0]), Doc: doc.Text, Expected: doc.Expected})
		}
		return found
	}
	v.good.mu.Lock()
	defer v.good.mu.Unlock()
	var found []compiler.Account
	for _, names := range about.paths {
		for _, path := range v.targetPaths(names) {
			if len(found) == maxAccounts {
				return found
			}
			if a, err := p.Explain(path); err == nil {
				found = append(found, a)
			}
		}
	}
	return found
}

func joinPath(names []string) string {
	path := ""
	for _, n := range names {
		path = load.PathOf(path, n)
	}
	return path
}

// targetPaths returns the paths by which a field is explained.
func (v *view) targetPaths(names []string) []string {
	var paths []string
	for _, t := range v.targetsOf(names) {
		paths = append(paths, joinPath(append([]string{"targets", t.Name}, names[2:]...)))
	}
	if len(paths) == 0 {
		paths = []string{joinPath(names)}
	}
	return paths
}

// targetsOf returns the targets that have a field: the one that it is in, or those that use the
// profile that it is in.
func (v *view) targetsOf(names []string) []*resolve.Target {
	if len(names) < 3 {
		return nil
	}
	var found []*resolve.Target
	for _, t := range v.values().Targets {
		if names[0] == "targets" && t.Name == names[1] ||
			names[0] == "profiles" && slices.Contains(v.usedProfiles(t), names[1]) && t.Node.At(names[2:]...) != nil {
			found = append(found, t)
		}
	}
	return found
}

// show writes an account as Markdown.
func (v *view) show(a compiler.Account) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n", escape(a.Path))
	if a.Doc != "" {
		fmt.Fprintf(&b, "\n%s\n", escape(a.Doc))
	}
	b.WriteString("\n")
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "- %s: %s\n", label, escape(text))
		}
	}
	line("takes", a.Expected)
	line("value", a.Value)
	if a.Pos != nil {
		place := compiler.FormatPosition(*a.Pos)
		if a.Profile != "" {
			place += ", profile " + a.Profile
		}
		line("set at", place)
	}
	for _, list := range []struct {
		label string
		texts []string
	}{{"replaces", a.Replaced}, {"fact", a.Notes}, {"implies", a.Implies}, {"touches", a.Touches}} {
		for _, text := range list.texts {
			line(list.label, text)
		}
	}
	line("kernel", a.Kernel)
	for _, f := range a.Files {
		line("file", f)
	}
	return strings.TrimSpace(b.String())
}

// escape writes text so that Markdown shows it as it is.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "[", `\[`, "#", `\#`, "\n", " ").Replace(text)
}

// describeValue describes the thing that a value names: a board, a release, a profile or a power
// mode.
func (v *view) describeValue(about subject) string {
	if about.cursor.IsKey || v.values() == nil {
		return ""
	}
	names, word := about.paths[0], about.cursor.Token.Text
	last := names[len(names)-1]
	var notes []string
	switch {
	case last == "board" || last == "base":
		notes = v.describe(compiler.BoardName, word, nil)
	case last == "release":
		notes = v.describe(compiler.ReleaseName, word, nil)
	case last == "use":
		for _, f := range v.values().Root.At("profiles", word).Members() {
			notes = append(notes, f.Name+" = "+f.Value.Show())
		}
	case isModeName(scope{names: names}):
		notes = describeMode(v.targetOf(names), word)
	}
	if len(notes) == 0 {
		return ""
	}
	return "**" + escape(word) + "**\n\n- " + strings.Join(escapeAll(notes), "\n- ")
}

func escapeAll(texts []string) []string {
	out := make([]string, 0, len(texts))
	for _, t := range texts {
		out = append(out, escape(t))
	}
	return out
}

// describeMode lists the settings of a power mode: a stock one, or one of the configuration.
func describeMode(t *resolve.Target, name string) []string {
	if t == nil {
		return nil
	}
	for _, m := range t.Stock.Modes {
		if m.Name != name {
			continue
		}
		notes := []string{fmt.Sprintf("stock mode %d", m.ID)}
		for _, s := range m.Settings {
			notes = append(notes, strings.TrimSpace(s[0]+" "+s[1])+" = "+s[2])
		}
		return notes
	}
	mode := t.Node.At("power", "modes", name)
	var notes []string
	for _, f := range mode.Members() {
		notes = append(notes, f.Name+" = "+f.Value.Show())
	}
	return notes
}
