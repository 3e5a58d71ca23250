package compiler

import (
	"fmt"
	"strings"

	"github.com/yoctune/yoctune/compiler/check"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/variable"
	"github.com/yoctune/yoctune/schema/units"
)

// describeBoard lists the facts about a board by which people tell boards apart.
func describeBoard(id string) []string {
	b, ok := board.Lookup(id)
	if !ok {
		return nil
	}
	notes := []string{b.Name + ", " + b.SoC}
	if b.Cores > 0 {
		notes = append(notes, fmt.Sprintf("%d cores", b.Cores))
	}
	if b.RAMBytes > 0 {
		notes = append(notes, units.Size(b.RAMBytes)+" of memory")
	}
	for _, name := range release.Names() {
		if r, ok := b.Releases[name]; ok && len(r.Machines) > 0 {
			notes = append(notes, name+": machine "+r.Machines[0])
		}
	}
	return notes
}

// describeRelease lists the versions that a release brings.
func describeRelease(name string) []string {
	r, ok := release.Lookup(name)
	if !ok {
		return nil
	}
	var notes []string
	for _, v := range [][2]string{
		{"L4T", r.L4T}, {"kernel", r.KernelVersion}, {"CUDA", r.CUDA}, {"TensorRT", r.TensorRT}, {"systemd", r.Systemd}, {"bitbake", r.BitBake},
	} {
		if v[1] != "" {
			notes = append(notes, v[0]+" "+v[1])
		}
	}
	return notes
}

// describeArg lists the facts about a kernel argument.
func describeArg(line, name string) []string {
	a, ok := linux.FindArg(line, name)
	if !ok {
		return nil
	}
	var notes []string
	switch {
	case a.By != "":
		notes = append(notes, "read by "+a.By)
	case a.Arch != "":
		notes = append(notes, "read by kernels for "+strings.ReplaceAll(a.Arch, ",", ", ")+" only")
	case a.Takes(string(linux.Module)):
		notes = append(notes, "a parameter of module "+strings.SplitN(a.Name, ".", 2)[0])
	default:
		notes = append(notes, "read by kernel "+line)
	}
	if a.Value != "" {
		notes = append(notes, "takes "+describeArgValue(a.Value))
	}
	for _, needs := range a.Needs {
		notes = append(notes, "needs "+strings.Join(needs, ", ")+" in the kernel")
	}
	return notes
}

// describeArgValue describes a kind of value of package linux.
func describeArgValue(kind string) string {
	if words, ok := strings.CutPrefix(kind, "words:"); ok {
		return strings.ReplaceAll(words, "|", " or ")
	}
	switch kind {
	case "size":
		return "a size"
	case "size@":
		return "a size, or size@address"
	case "cores", "cores,":
		return "a list of cores"
	case "number":
		return "a number"
	}
	return kind
}

// describeModule lists the facts about a kernel module.
func describeModule(line, name string) []string {
	m, ok := linux.FindModule(line, name)
	if !ok {
		return nil
	}
	var notes []string
	switch {
	case len(m.Of) > 0:
		notes = append(notes, "an alias of "+strings.Join(m.Of, ", "))
	case m.OutOfTree():
		notes = append(notes, "built by a recipe of the BSP")
	default:
		notes = append(notes, "built by "+strings.Join(m.Options, " or "))
	}
	if len(m.Of) == 0 {
		notes = append(notes, "package "+linux.PackageOf(m.Name))
	}
	return notes
}

// describeVariable lists the facts about a variable of bitbake's metadata.
func describeVariable(rel, name string) []string {
	f, ok := variable.Lookup(rel, name)
	if !ok {
		return nil
	}
	var notes []string
	switch f.Scope {
	case variable.Global:
		notes = append(notes, "acts in configuration files")
	case variable.Machine:
		notes = append(notes, "describes a machine: machine configurations set it")
	case variable.Recipe:
		notes = append(notes, strings.TrimSuffix("describes one recipe, such as "+f.Where, ", such as "))
	}
	switch {
	case f.List && f.Separator == " ":
		notes = append(notes, "a list of words")
	case f.List:
		notes = append(notes, fmt.Sprintf("a list, separated by %q", f.Separator))
	}
	if f.Lost != "" {
		lost := f.Lost + " assigns it after the layer's settings"
		if len(f.Machines) > 0 {
			lost += ", for " + strings.Join(f.Machines, ", ")
		}
		notes = append(notes, lost)
	}
	if field := variable.Field(name); field != "" {
		notes = append(notes, "the field "+field+" stands for it")
	}
	if why := variable.Reserved(name, true); why != "" {
		notes = append(notes, "not for layers: "+why)
	} else if why := variable.Reserved(name, false); why != "" {
		notes = append(notes, "take append or remove: "+why)
	}
	return notes
}

// NameKind is a kind of names that users write and facts describe.
type NameKind int

// The kinds of names.
const (
	BoardName NameKind = iota
	ReleaseName
	SysctlName
	OptionName
	ArgName
	ModuleName
	VariableName
)

// DescribeName lists the facts about a name, as they hold for a target. Without a target it lists
// what holds for all.
func (p *Project) DescribeName(kind NameKind, name string, t *resolve.Target) []string {
	switch {
	case kind == BoardName:
		return describeBoard(name)
	case kind == ReleaseName:
		return describeRelease(name)
	case t == nil:
		return nil
	}
	switch kind {
	case SysctlName:
		var a Account
		addSysctlFacts(&a, t, name)
		if a.Doc != "" {
			a.Notes = append([]string{a.Doc}, a.Notes...)
		}
		if a.Expected != "" {
			a.Notes = append([]string{"takes " + a.Expected}, a.Notes...)
		}
		return append(a.Notes, a.Touches...)
	case OptionName:
		if value, known := check.ValueOf(t, p.book, name); known {
			if value == "" {
				return []string{"is not in .config of kernel " + t.Release.Kernel + ": what it depends on is off"}
			}
			return []string{"will be " + value + " in kernel " + t.Release.Kernel}
		}
	case ArgName:
		return describeArg(t.Release.Kernel, name)
	case ModuleName:
		return describeModule(t.Release.Kernel, name)
	case VariableName:
		return describeVariable(t.Release.Name, name)
	}
	return nil
}
