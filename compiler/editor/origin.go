package editor

import (
	"cmp"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/cursor"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/plan"
)

// origins lists where a subject comes from: the entry that a value names, otherwise the lines that
// set the field. A line of a profile that a target overrides comes after the target's.
func (v *view) origins(about subject) []plan.Position {
	root := v.values().Root
	if !about.cursor.IsKey {
		if f := v.entry(about.paths[0], about.cursor.Token.Text); f != nil {
			return []plan.Position{f.Pos}
		}
	}
	var found []plan.Position
	add := func(pos plan.Position) {
		if pos.File != "" && !slices.Contains(found, pos) {
			found = append(found, pos)
		}
	}
	for _, names := range about.paths {
		for _, target := range v.targetsOf(names) {
			if n := target.Node.At(names[2:]...); n != nil {
				add(n.Pos)
			}
			id := strings.Join(names[2:], ".")
			for _, o := range target.Replaced {
				if o.ID == id {
					add(o.Position)
				}
			}
		}
		if n := root.At(names...); n != nil && len(found) == 0 {
			add(n.Pos)
		}
	}
	// The place itself is the least of what was asked for.
	if len(found) > 1 {
		found = slices.DeleteFunc(found, func(pos plan.Position) bool { return v.isAt(pos, about.cursor) })
	}
	return found
}

// isAt reports whether a position is in the line of a cursor.
func (v *view) isAt(pos plan.Position, c cursor.Cursor) bool {
	at := newLines(v.text).place(c.Token.Start, utf8Units)
	return v.good.path(pos.File) == v.path && pos.Line == at.Line+1
}

// entry returns the entry of the configuration that a value names: a profile, a board, a power mode or a model.
func (v *view) entry(names []string, word string) *load.Field {
	root := v.values().Root
	switch names[len(names)-1] {
	case "use":
		return root.Get("profiles").Field(word)
	case "board":
		return root.Get("boards").Field(word)
	}
	if isModeName(scope{names: names}) {
		if t := v.targetOf(names); t != nil {
			return t.Node.At("power", "modes").Field(word)
		}
	}
	if isModelName(scope{names: names}) {
		if t := v.targetOf(names); t != nil {
			return t.Node.Get("models").Field(word)
		}
	}
	return nil
}

// symbols lists the fields of a struct that the file sets, to the depth that an outline shows.
func (v *view) symbols(n *load.Node, depth int, units encoding) []documentSymbol {
	const deepest = 4
	list := []documentSymbol{}
	for _, f := range n.Members() {
		children := []documentSymbol{}
		if depth < deepest {
			children = v.symbols(f.Value, depth+1, units)
		}
		if v.good.path(f.Pos.File) != v.path {
			list = append(list, children...) // the struct began in another file
			continue
		}
		at := v.good.spanOf(f.Pos, 0, units)
		s := documentSymbol{Name: f.Name, Kind: kindOf(depth), Range: at, SelectionRange: at, Children: children}
		if f.Value.Kind != load.Struct {
			s.Detail = f.Value.Show()
		}
		for _, c := range children {
			s.Range.End = later(s.Range.End, c.Range.End)
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b documentSymbol) int {
		return cmp.Or(a.Range.Start.Line-b.Range.Start.Line, a.Range.Start.Character-b.Range.Start.Character)
	})
	return list
}

func later(a, b place) place {
	if b.Line > a.Line || b.Line == a.Line && b.Character > a.Character {
		return b
	}
	return a
}
