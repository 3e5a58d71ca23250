package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/variable"
)

// shownArg and shownModule are the facts about a name in one kernel.
type shownArg struct {
	Kernel string     `json:"kernel"`
	Reader string     `json:"read_by"`
	Value  string     `json:"value,omitempty"`
	Needs  [][]string `json:"needs,omitempty"`
}

type shownModule struct {
	Kernel  string   `json:"kernel"`
	Options []string `json:"options,omitempty"`
	Alias   []string `json:"alias_of,omitempty"`
	Package string   `json:"package,omitempty"`
}

// showName shows a kernel argument, a module, or both; ok is false for any other name.
func showName(p cli.Printer, name string) (ok bool, err error) {
	var args []shownArg
	var modules []shownModule
	for _, set := range kernel.Sets() {
		if a, ok := linux.FindArg(set.Name, name); ok && !strings.HasPrefix(name, "!") {
			args = append(args, shownArg{set.Name, readerOf(a), a.Value, a.Needs})
		}
		if m, ok := linux.FindModule(set.Name, name); ok {
			s := shownModule{Kernel: set.Name, Options: m.Options, Alias: m.Of}
			if len(m.Of) == 0 {
				s.Package = linux.PackageOf(m.Name)
			}
			modules = append(modules, s)
		}
	}
	var variables []shownVariable
	for _, r := range release.Names() {
		if f, ok := variable.Lookup(r, name); ok {
			variables = append(variables, shownVariable{r, scopeNames[f.Scope], f.List, f.Separator, f.Lost, f.Where})
		}
	}
	if len(args) == 0 && len(modules) == 0 && len(variables) == 0 {
		return false, nil
	}
	if p.JSON {
		if len(args) > 0 {
			p.Line("argument", struct {
				Name    string     `json:"name"`
				Kernels []shownArg `json:"kernels"`
			}{name, args})
		}
		if len(modules) > 0 {
			p.Line("module", struct {
				Name    string        `json:"name"`
				Kernels []shownModule `json:"kernels"`
			}{name, modules})
		}
		if len(variables) > 0 {
			p.Line("variable", struct {
				Name     string          `json:"name"`
				Releases []shownVariable `json:"releases"`
			}{name, variables})
		}
		return true, nil
	}
	if err := writeName(p, name, args, modules); err != nil || len(variables) == 0 {
		return true, err
	}
	return true, writeVariable(p, name, variables)
}

// shownVariable is a variable of bitbake in one release.
type shownVariable struct {
	Release   string `json:"release"`
	Scope     string `json:"scope"`
	List      bool   `json:"list"`
	Separator string `json:"separator,omitempty"`
	Lost      string `json:"lost,omitempty"`
	Where     string `json:"where,omitempty"`
}

var scopeNames = map[variable.Scope]string{variable.Global: "configuration", variable.Machine: "machine", variable.Recipe: "one recipe"}

func writeVariable(out io.Writer, name string, releases []shownVariable) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s, a variable of bitbake\n  release\tset in\tvalue\tassigned later by\tused by\n", name)
	for _, v := range releases {
		value := "text"
		if v.List {
			value = fmt.Sprintf("list, separated by %q", v.Separator)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", v.Release, v.Scope, value, cmp.Or(v.Lost, "-"), cmp.Or(v.Where, "-"))
	}
	return w.Flush()
}

// suggestName finds an argument, a module or a variable that a name was meant to be, as the end of a
// message; "" if none is near.
func suggestName(name string) string {
	sets, releases := kernel.Sets(), release.Names()
	line := sets[len(sets)-1].Name
	if near, distance := linux.NearestArg(line, name); near != "" && distance <= 2 {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	for _, near := range []string{linux.NearestModule(line, name), variable.Nearest(releases[len(releases)-1], name)} {
		if near != "" {
			return fmt.Sprintf(": did you mean %q?", near)
		}
	}
	return ""
}

func writeName(out io.Writer, name string, args []shownArg, modules []shownModule) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(args) > 0 {
		fmt.Fprintf(w, "%s, a kernel argument\n  kernel\tread by\tvalue\tneeds\n", name)
	}
	for _, a := range args {
		var needs []string
		for _, n := range a.Needs {
			needs = append(needs, strings.Join(n, ", "))
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", a.Kernel, a.Reader, cmp.Or(a.Value, "-"), cmp.Or(strings.Join(needs, "; or "), "-"))
	}
	if len(modules) > 0 {
		fmt.Fprintf(w, "%s, a kernel module\n  kernel\tbuilt by\tpackage\n", name)
	}
	for _, m := range modules {
		by := "a recipe of the BSP"
		switch {
		case len(m.Alias) > 0:
			by = "alias of " + strings.Join(m.Alias, ", ")
		case len(m.Options) > 0:
			by = strings.Join(m.Options, " or ")
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", m.Kernel, by, cmp.Or(m.Package, "-"))
	}
	return w.Flush()
}

func readerOf(a linux.Arg) string {
	switch {
	case a.By != "":
		return a.By
	case a.Arch == "other":
		return "no kernel for arm64"
	case a.Arch != "":
		return "kernels for " + strings.ReplaceAll(a.Arch, ",", ", ")
	case a.Kinds == string(linux.Documented):
		return "the kernel, as documented"
	case a.Kinds == string(linux.Module):
		return "module " + strings.SplitN(a.Name, ".", 2)[0]
	}
	return "the kernel"
}
