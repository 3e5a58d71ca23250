package resolve

import (
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/plan"
)

// layered is a struct that a profile or a target contributes.
type layered struct {
	profile string // "" for the target itself
	node    *load.Node
}

// merger unifies the profiles of a target and lets the target's own fields win.
type merger struct {
	report    *diag.Report
	overrides []Override
}

// Override is a field of a profile that the target's own field replaced.
type Override struct {
	plan.Override
	Was, Now string // as a message shows the values
	NowAt    plan.Position
}

// merge returns the union of the profiles, in order, under the target's own
// fields. What only one of them wrote is shared, not copied.
func (m *merger) merge(path, id string, own *load.Node, profiles []layered) *load.Node {
	switch {
	case len(profiles) == 0:
		return own
	case own == nil && len(profiles) == 1:
		return profiles[0].node
	}
	out := &load.Node{Kind: load.Struct, Pos: profiles[0].node.Pos}
	if own != nil {
		out.Pos = own.Pos
	}
	place := map[string]int{}
	add := func(f load.Field) {
		if _, ok := place[f.Name]; !ok {
			place[f.Name] = len(out.Fields)
			out.Fields = append(out.Fields, f)
		}
	}
	if own != nil {
		for _, f := range own.Fields {
			add(f)
		}
	}
	for _, p := range profiles {
		for _, f := range p.node.Fields {
			add(f)
		}
	}
	for i := range out.Fields {
		f := &out.Fields[i]
		var from []layered
		for _, p := range profiles {
			if v := p.node.Get(f.Name); v != nil {
				from = append(from, layered{p.profile, v})
			}
		}
		f.Value = m.field(load.PathOf(path, f.Name), strings.TrimPrefix(id+"."+f.Name, "."), own.Get(f.Name), from)
	}
	return out
}

func (m *merger) field(path, id string, own *load.Node, from []layered) *load.Node {
	structs := own == nil || own.Kind == load.Struct
	for _, p := range from {
		structs = structs && p.node.Kind == load.Struct
	}
	if structs {
		return m.merge(path, id, own, from)
	}
	if own != nil {
		for _, p := range from {
			if !p.node.Equal(own) {
				m.overrides = append(m.overrides, Override{
					Override: plan.Override{ID: id, Profile: p.profile, Position: p.node.Pos},
					Was:      p.node.Show(), Now: own.Show(), NowAt: own.Pos,
				})
			}
		}
		return own
	}
	first := from[0]
	for _, p := range from[1:] {
		if p.node.Equal(first.node) {
			continue
		}
		m.report.Add(diag.Diagnostic{
			ID: "YT0105", Severity: diag.Error, Pos: p.node.Pos, Path: path,
			Message: "profiles " + first.profile + " and " + p.profile + " disagree",
			Related: []diag.Related{{Pos: first.node.Pos, Message: "profile " + first.profile + " sets " + first.node.Show()}},
			Got:     p.node.Show() + " in profile " + p.profile + ", " + first.node.Show() + " in profile " + first.profile,
			Help:    "give both profiles the same value, or decide in the target itself: its own fields win",
		})
	}
	return first.node
}
