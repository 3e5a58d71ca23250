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
	if len(args) == 0 && len(modules) == 0 {
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
		return true, nil
	}
	return true, writeName(p, name, args, modules)
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
