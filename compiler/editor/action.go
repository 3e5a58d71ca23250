package editor

import (
	"context"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
)

// act answers textDocument/codeAction: the changes that `yoctune vet --fix` would make.
func (s *server) act(ctx context.Context, p codeActionParams) (any, error) {
	v, ok, err := s.settle(ctx, p.TextDocument.URI)
	if err != nil || !ok {
		return nil, err
	}
	s.mu.Lock()
	e, options, units := v.project.last, s.options, s.units
	options.Changed = s.texts(v.project.dir)
	s.mu.Unlock()
	if e == nil || e.project == nil || !e.isCurrent(v.path, v.text) {
		return nil, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	actions := []codeAction{}
	if wants(p.Context.Only, quickFix) {
		for _, d := range e.project.Report.Findings() {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			shown := e.convert(d, units)
			if len(d.Edits) == 0 || e.path(d.Pos.File) != v.path || !shown.Range.touches(p.Range) {
				continue
			}
			if changed := options.FixOne(e.dir, e.project, d); changed != nil {
				actions = append(actions, codeAction{nameEdits(d.Edits), quickFix, []diagnostic{shown}, true, s.edit(e, changed, units)})
			}
		}
	}
	if len(p.Context.Only) > 0 && wants(p.Context.Only, fixAll) {
		if fixed := options.Fix(e.dir, e.project); fixed.Made > 0 {
			actions = append(actions, codeAction{Title: "make all changes that yoctune proposes", Kind: fixAll, Edit: s.edit(e, fixed.Files, units)})
		}
	}
	return actions, nil
}

// wants reports whether a kind of actions was asked for: all are where none is named.
func wants(only []string, kind string) bool {
	return len(only) == 0 || slices.ContainsFunc(only, func(o string) bool { return o == kind || strings.HasPrefix(kind, o+".") })
}

// touches reports whether two ranges have a place in common.
func (r span) touches(o span) bool {
	before := func(a, b place) bool { return a.Line < b.Line || a.Line == b.Line && a.Character < b.Character }
	return !before(r.End, o.Start) && !before(o.End, r.Start)
}

// nameEdits describes edits in a few words.
func nameEdits(edits []diag.Edit) string {
	var parts []string
	for _, e := range edits {
		verb := map[diag.EditKind]string{diag.AddField: "add ", diag.ReplaceText: "replace by ", diag.RenameField: "rename to "}[e.Kind]
		if part := verb + e.Text; !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// edit is the change of some files, by name, from the texts of an evaluation.
func (s *server) edit(e *evaluation, changed map[string][]byte, units encoding) workspaceEdit {
	w := workspaceEdit{map[string][]textEdit{}}
	for name, text := range changed {
		path := e.path(name)
		uri := uriOf(path)
		s.mu.Lock()
		if d := s.documents[path]; d != nil {
			uri = d.uri
		}
		s.mu.Unlock()
		w.Changes[uri] = []textEdit{replace(e.texts[path], string(text), units)}
	}
	return w
}

// replace is the edit that turns a text into another one: of the part between what both begin
// and end with, in whole lines.
func replace(was *lines, now string, units encoding) textEdit {
	from := 0
	for from < min(len(was.text), len(now)) && was.text[from] == now[from] {
		from++
	}
	from = strings.LastIndexByte(was.text[:from], '\n') + 1
	tail := 0
	for tail < min(len(was.text), len(now))-from && was.text[len(was.text)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	if i := strings.IndexByte(was.text[len(was.text)-tail:], '\n'); i >= 0 {
		tail -= i
	} else {
		tail = 0
	}
	return textEdit{was.span(from, len(was.text)-tail, units), now[from : len(now)-tail]}
}

// define answers textDocument/definition: where the value of a field is set, or what a name in a
// value refers to.
func (s *server) define(ctx context.Context, p positionParams) (any, error) {
	v, ok, err := s.settle(ctx, p.TextDocument.URI)
	if err != nil || !ok || v.values() == nil {
		return nil, err
	}
	about, ok := v.subjectAt(newLines(v.text).offset(p.Position, s.units))
	if !ok {
		return nil, nil
	}
	found := v.origins(about)
	locations := make([]location, 0, len(found))
	for _, pos := range found {
		locations = append(locations, v.good.locate(pos, s.units))
	}
	return locations, nil
}

// kindOf is the kind of a symbol.
func kindOf(depth int) int {
	const class, property = 5, 7
	if depth < 2 {
		return class
	}
	return property
}

// outline answers textDocument/documentSymbol: the fields that the file sets.
func (s *server) outline(ctx context.Context, p documentParams) (any, error) {
	v, ok, err := s.settle(ctx, p.TextDocument.URI)
	if err != nil || !ok || v.good == nil || !v.good.isCurrent(v.path, v.text) {
		return nil, err
	}
	return v.symbols(v.values().Root, 0, s.units), nil
}
