package conform

import (
	"fmt"
	"go/format"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler/language/load"
)

// Package config has a struct for every struct of the schema.
func TestTheStructsOfConfigAreTheSchema(t *testing.T) {
	g := &structs{schema: readLanguage(t), seen: map[string]bool{}}
	g.f("// Code generated from schema/*.cue by go test ./compiler/language/conform -update. DO NOT EDIT.\n\npackage config\n\n")
	g.emit("Config", g.schema.def("#Config").value.obj)
	want, err := format.Source(g.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	compareGenerated(t, "../config/language.go", want)
}

// structs writes the schema as Go types.
type structs struct {
	printer
	schema *Schema
	seen   map[string]bool
	queue  []func()
}

// emit writes a struct and its decoder, then those of its fields.
func (g *structs) emit(name string, st *structure) {
	if g.seen[name] {
		return
	}
	g.seen[name] = true
	fields := g.fields(st)
	types := make([]string, len(fields))
	for i, m := range fields {
		types[i] = g.goType(m.value, name+goName(m.name))
	}
	g.f("// %s is a struct of the language.\ntype %s struct {\n", name, name)
	if len(st.embeds) == 0 {
		g.f("Place\n")
	}
	for _, e := range st.embeds {
		g.f("%s\n", e[1:])
		g.queue = append(g.queue, func() { g.emit(e[1:], g.schema.def(e).value.obj) })
	}
	for i, m := range fields {
		g.f("%s %s\n", goName(m.name), types[i])
	}
	g.f("}\n\nfunc (c *%s) decode(p Place) {\n", name)
	if len(st.embeds) == 0 {
		g.f("c.Place = p\n")
	}
	for _, e := range st.embeds {
		g.f("c.%s.decode(p)\n", e[1:])
	}
	for _, m := range fields {
		g.f("c.%s.decode(c.field(%q))\n", goName(m.name), m.name)
	}
	g.f("}\n\n")
	for len(g.queue) > 0 {
		next := g.queue[0]
		g.queue = g.queue[1:]
		next()
	}
}

// fields lists the fields of a struct and of its branches, each name once.
func (g *structs) fields(st *structure) []*member {
	all := slices.Clone(st.fields)
	for _, b := range st.branches {
		all = append(all, g.schema.gather(b.then, func(branch) bool { return true }).fields...)
	}
	var out []*member
	for _, m := range all {
		if !slices.ContainsFunc(out, func(o *member) bool { return o.name == m.name }) {
			out = append(out, m)
		}
	}
	return out
}

// goType is the type of a field. A struct without a name of its own is named after
// the field.
func (g *structs) goType(sh *shape, name string) string {
	switch sh.op {
	case named:
		switch sh.def {
		case "#Frequency", "#Size", "#Rate", "#Duration", "#Decimal":
			return sh.def[1:]
		case "#FrequencyCap":
			return "Frequency"
		}
		return g.goType(g.schema.def(sh.def).value, sh.def[1:])
	case list:
		return "List[" + g.goType(sh.elem, name) + "]"
	case object:
		if len(sh.obj.fields) == 0 && len(sh.obj.patterns) == 1 {
			return "Map[" + g.goType(sh.obj.patterns[0].value, name) + "]"
		}
		g.queue = append(g.queue, func() { g.emit(name, sh.obj) })
		return name
	case either:
		if i := slices.IndexFunc(sh.parts, func(p *shape) bool { return isNameOf(g.schema.structOf(p)) }); i >= 0 {
			rest := *sh
			rest.parts = slices.Delete(slices.Clone(sh.parts), i, i+1)
			return "Named" + g.goType(&rest, name)
		}
		if i := slices.IndexFunc(sh.parts, func(p *shape) bool { return g.schema.structOf(p) != nil }); i >= 0 && len(sh.parts) == 2 {
			return fmt.Sprintf("Either[%s, %s]", g.goType(sh.parts[1-i], name), g.goType(sh.parts[i], name))
		}
	}
	switch kinds := g.kinds(sh); {
	case len(kinds) > 1:
		return "Scalar"
	case kinds[load.Bool]:
		return "Bool"
	case kinds[load.Int]:
		return "Int"
	}
	return "String"
}

// isNameOf reports whether a struct is the long form of a name: its value, and whether a layer
// of the user's defines it.
func isNameOf(st *structure) bool {
	return st != nil && len(st.fields) == 2 && st.fields[0].name == "value" && st.fields[1].name == "external"
}

// kinds lists the kinds of the scalars that a shape accepts.
func (g *structs) kinds(sh *shape) map[load.Kind]bool {
	kinds := map[load.Kind]bool{}
	switch sh.op {
	case basic:
		kinds[sh.kind] = true
	case exactly:
		kinds[sh.literal.Kind] = true
	case matches, minRunes, maxRunes:
		kinds[load.String] = true
	case bound:
		kinds[load.Int] = true
	case named:
		return g.kinds(g.schema.def(sh.def).value)
	case either, all:
		for _, p := range sh.parts {
			for k := range g.kinds(p) {
				kinds[k] = true
			}
		}
	}
	return kinds
}

// goName writes a field's name as Go does.
func goName(field string) string {
	name := strings.ToUpper(field[:1]) + field[1:]
	for _, s := range [][2]string{
		{"Io", "IO"}, {"Cpu", "CPU"}, {"Gpu", "GPU"}, {"Irq", "IRQ"}, {"Uri", "URI"}, {"Url", "URL"}, {"Sha256", "SHA256"},
		{"Emc", "EMC"}, {"L4t", "L4T"}, {"Slo", "SLO"}, {"Fps", "FPS"}, {"Iou", "IoU"}, {"Ksm", "KSM"}, {"Thp", "THP"},
		{"Mglru", "MGLRU"}, {"Cuda", "CUDA"}, {"Zram", "ZRAM"}, {"Smt", "SMT"}, {"Epp", "EPP"}, {"Pwm", "PWM"}, {"Rpm", "RPM"}, {"Mtu", "MTU"},
		{"Rps", "RPS"}, {"Xps", "XPS"}, {"Sstate", "SState"}, {"Roi", "ROI"}, {"Oom", "OOM"}, {"Dtype", "DType"}, {"Pcie", "PCIe"}, {"Usb", "USB"}, {"Aspm", "ASPM"}, {"Tls", "TLS"}, {"Ca", "CA"},
	} {
		if rest, ok := strings.CutPrefix(name, s[0]); ok && (rest == "" || rest == "s" || strings.ToUpper(rest[:1]) == rest[:1]) {
			name = s[1] + rest
		}
		if head, ok := strings.CutSuffix(name, s[0]); ok {
			name = head + s[1]
		}
	}
	return name
}
