package editor

import (
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/conform"
	"github.com/yoctune/yoctune/compiler/language/hcl"
)

// scope is a place of the language: the names of the schema that lead there, and what it accepts.
type scope struct {
	names []string
	shape conform.Shape
	// elsewhere is set below a definition or a variable of the user's: where it will be used
	// is not known, and the names are those that a target would have.
	elsewhere bool
}

// resolveScope finds the place that some fields of a text lead to. ok is false where the language has
// none of that name.
func resolveScope(lang *conform.Schema, language string, around []string) (s scope, ok bool) {
	root := scope{shape: lang.Root()}
	if s, ok := root.walk(language, around); ok {
		return s, true
	}
	if len(around) == 0 {
		return scope{}, false
	}
	target, ok := root.walk(language, entryOf(language, "targets"))
	if !ok {
		return scope{}, false
	}
	s, ok = target.walk(language, around[1:])
	s.elsewhere = true
	return s, ok
}

// entryOf returns the names of an entry, without a name of its own, of a map at the top.
func entryOf(language, field string) []string {
	if language == hcl.Extension {
		return []string{strings.TrimSuffix(field, "s"), ""}
	}
	return []string{field, ""}
}

// walk follows names of a text.
func (s scope) walk(language string, around []string) (scope, bool) {
	for i := 0; i < len(around); i++ {
		name := around[i]
		if item := s.shape.Items(); item != (conform.Shape{}) && !s.shape.IsStruct() {
			s.shape = item
		}
		if values, isMap := s.shape.Values(); isMap {
			s = scope{append(slices.Clip(s.names), name), values, s.elsewhere}
			continue
		}
		if language == hcl.Extension {
			n, ok := findName(s.shape, name)
			if !ok {
				return s, false
			}
			s = scope{append(slices.Clip(s.names), n.Field), n.Shape, s.elsewhere}
			if n.IsLabelled && i+1 < len(around) {
				i++
				s.names = append(s.names, around[i])
			}
			continue
		}
		fields := s.shape.Fields()
		at := slices.IndexFunc(fields, func(f conform.FieldShape) bool { return f.Name == name })
		if at < 0 {
			return s, false
		}
		s = scope{append(slices.Clip(s.names), name), fields[at].Shape, s.elsewhere}
	}
	return s, true
}

// findName finds the attribute or the block of a name; a block of both.
func findName(sh conform.Shape, written string) (hcl.Name, bool) {
	names := hcl.NamesOf(sh)
	i := slices.IndexFunc(names, func(n hcl.Name) bool { return n.Written == written })
	if i < 0 {
		return hcl.Name{}, false
	}
	return names[i], true
}
