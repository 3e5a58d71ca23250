package conform

import (
	"slices"
	"strings"
)

// places lists where else in the language a field of this name belongs, such as
// services.NAME.memoryMax. HCL's memory_max is the same name.
func (s *Schema) places(name, from string) []string {
	name = strings.ReplaceAll(name, "_", "")
	var found []string
	var walk func(sh *shape, path string, inside []string)
	structure := func(o *structure, path string, inside []string) {
		for _, m := range s.gather(o, takenBranches(nil)).fields {
			below := strings.TrimPrefix(path+"."+m.name, ".")
			if strings.EqualFold(m.name, name) {
				if strings.HasPrefix(from, "targets.") {
					below = strings.TrimPrefix(below, "targets.NAME.")
				}
				found = append(found, below)
			}
			walk(m.value, below, inside)
		}
		for _, p := range o.patterns {
			walk(p.value, path+".NAME", inside)
		}
	}
	walk = func(sh *shape, path string, inside []string) {
		switch {
		case sh == nil || strings.HasPrefix(path, "profiles"):
		case sh.def != "":
			if d := s.def(sh.def); d != nil && !slices.Contains(inside, sh.def) {
				walk(d.value, path, append(slices.Clone(inside), sh.def))
			}
		case sh.obj != nil:
			structure(sh.obj, path, inside)
		default:
			for _, p := range sh.parts {
				walk(p, path, inside)
			}
		}
	}
	walk(s.def("#Config").value, "", nil)
	slices.Sort(found)
	return slices.Compact(found)
}
