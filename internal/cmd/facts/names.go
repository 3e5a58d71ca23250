package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/internal/kernelsource"
	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/facts/nametable"
	"github.com/yoctune/yoctune/schema/facts/release"
)

// writeNames writes the tables of kernel arguments and modules. mirror holds the
// repositories of linux.Sources, each as OWNER+NAME or OWNER+NAME/repo, and Debian's
// sources unpacked. metaTegra names what the BSP builds outside of the kernel.
func writeNames(mirror, metaTegra, out string) error {
	args, modules := nameTable{}, nameTable{}
	for n, set := range kernel.Sets() {
		for _, s := range linux.Sources() {
			if s.Kernel != set.Name {
				continue
			}
			tree, err := readSource(mirror, s)
			if err != nil {
				return err
			}
			if err := addTree(args, modules, tree, s, n); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "facts: %s %s: %d arguments, %d modules so far\n", set.Name, s.Repository, len(args), len(modules))
		}
	}
	if err := addPrograms(args, mirror); err != nil {
		return err
	}
	if err := addBSP(args, modules, repository(metaTegra)); err != nil {
		return err
	}
	return writeTables(out, map[string]nameTable{"args.bin": args, "modules.bin": modules})
}

func writeTables(out string, tables map[string]nameTable) error {
	for file, t := range tables {
		data, err := nametable.Encode(t.lines())
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(out, file), data); err != nil {
			return err
		}
	}
	return nil
}

func folder(mirror, repo string) string {
	dir := filepath.Join(mirror, strings.ReplaceAll(repo, "/", "+"))
	if inner := filepath.Join(dir, "repo"); isFolder(inner) {
		return inner
	}
	return dir
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func readSource(mirror string, s linux.Source) (*kernelsource.Tree, error) {
	dir := folder(mirror, s.Repository)
	if strings.Contains(s.Repository, "/") {
		return kernelsource.ReadCommit(dir, s.Commit, s.Roots...)
	}
	tree, err := kernelsource.ReadFolder(dir)
	if err == nil && !strings.HasPrefix(s.Commit, tree.Version()) {
		err = fmt.Errorf("%s is Linux %s, not %s", dir, tree.Version(), s.Commit)
	}
	return tree, err
}

// nameTable holds the variants of each name: what follows the mask of kernels, and the mask.
type nameTable map[string]map[string]uint16

func (t nameTable) add(name, variant string, n int) {
	if t[name] == nil {
		t[name] = map[string]uint16{}
	}
	t[name][variant] |= 1 << n
}

func (t nameTable) lines() []string {
	var lines []string
	for name, variants := range t {
		var all []string
		for v, mask := range variants {
			all = append(all, fmt.Sprintf("%x;%s", mask, v))
		}
		slices.Sort(all)
		lines = append(lines, name+"\t"+strings.Join(all, "\t"))
	}
	slices.Sort(lines)
	return lines
}

func addTree(args, modules nameTable, tree *kernelsource.Tree, s linux.Source, n int) error {
	facts, _, err := kernel.Open(s.Kernel)
	if err != nil {
		return err
	}
	p := findPossible(facts)
	objects := tree.Objects()
	params := map[string][]kernelsource.Param{}
	for _, param := range tree.Params(objects) {
		name := linux.Fold(param.Name)
		params[name] = append(params[name], param)
	}
	docs := map[string]string{}
	for _, d := range tree.Documented() {
		docs[linux.Fold(d.Name)] = d.Arch
	}
	for name, list := range params {
		a := merge(list, p, docs[name], s.OutOfTree)
		args.add(name, a.variant(), n)
	}
	for name, arch := range docs {
		if params[name] == nil {
			args.add(name, argument{kinds: "d", arch: arch}.variant(), n)
		}
	}
	if tree.Contains("fs/proc/proc_sysctl.c", `"sysctl."`) || tree.Contains("fs/proc/proc_sysctl.c", "process_sysctl_arg") {
		args.add("!sysctl", argument{}.variant(), n)
	}
	if size := tree.CommandLineSize(); size != "" && !s.OutOfTree {
		args.add("!cmdline", argument{value: size}.variant(), n)
	}
	for _, file := range []string{"lib/bitmap.c", "lib/bitmap-str.c"} {
		if tree.Contains(file, `== 'N'`) {
			args.add("!cpulist.N", argument{}.variant(), n)
		}
		if tree.Contains(file, `"all"`) {
			args.add("!cpulist.all", argument{}.variant(), n)
		}
	}
	addModules(modules, tree, objects, p, s, n)
	return nil
}

func addModules(modules nameTable, tree *kernelsource.Tree, objects []kernelsource.Object, p *possible, s linux.Source, n int) {
	options := map[string][]string{}
	for _, o := range objects {
		switch {
		case s.OutOfTree:
			options[o.Module] = []string{}
		case o.Loadable && p.tristate[o.Gate] && p.all(o.Needs):
			options[o.Module] = append(options[o.Module], o.Gate)
		}
	}
	built := map[string][]string{} // by the option
	for name, list := range options {
		list = sorted(list)
		modules.add(name, strings.Join(list, "/")+";", n)
		for _, option := range list {
			built[option] = append(built[option], name)
		}
	}
	for option, list := range built {
		modules.add("CONFIG_"+option, ";"+strings.Join(sorted(list), "/"), n)
	}
	for alias, of := range tree.Aliases(objects) {
		of = slices.DeleteFunc(of, func(m string) bool { return options[m] == nil })
		if alias = linux.Fold(alias); len(of) > 0 && options[alias] == nil {
			modules.add(alias, ";"+strings.Join(of, "/"), n)
		}
	}
}

// argument is what the registrations of one name in one kernel amount to.
type argument struct {
	kinds, value, needs, arch, by string
}

func (a argument) variant() string {
	return strings.Join([]string{a.kinds, a.value, a.needs, a.arch, a.by}, ";")
}

var macroKind = map[string]string{
	"__setup=": "s", "__setup": "p", "early_param": "e", "early_param_on_off": "e", "core_param": "c", "module_param": "m", "override": "o",
}

// merge joins the registrations of a name. Those that no arm64 kernel can have count only
// if they are the only ones.
func merge(list []kernelsource.Param, p *possible, docArch string, outOfTree bool) argument {
	var a argument
	var needs [][]string
	var kinds, values, archs []string
	var lost []kernelsource.Param // of an option that arm64 cannot have, for whatever reason
	take := func(r kernelsource.Param) {
		kinds = append(kinds, macroKind[r.Macro])
		values = append(values, r.Value)
		need := slices.Clone(r.Needs)
		if i := slices.Index(need, r.Gate); i >= 0 && r.Macro != "module_param" && p.tristate[r.Gate] {
			need[i] += "=y" // a module has no command line of its own
		}
		needs = append(needs, need)
	}
	for _, r := range list {
		if outOfTree || r.Built && p.all(r.Needs) {
			take(r)
			continue
		}
		arch := archOf(r, p, docArch)
		if archs = append(archs, arch); r.Built && arch == "other" {
			lost = append(lost, r)
		}
	}
	if len(kinds) == 0 { // then the option is what lacks, not the architecture
		for _, r := range lost {
			take(r)
		}
	}
	if len(kinds) == 0 {
		archs = sorted(archs)
		return argument{kinds: "d", arch: archs[len(archs)-1]}
	}
	a.kinds = strings.Join(sorted(kinds), "")
	if values = sorted(values); len(values) == 1 {
		a.value = values[0]
	}
	if !outOfTree {
		a.needs = alternatives(needs)
	}
	return a
}

// alternatives writes the shortest lists of options; "" where one is empty or there are many.
func alternatives(needs [][]string) string {
	slices.SortFunc(needs, func(x, y []string) int { return len(x) - len(y) })
	var kept [][]string
	for _, n := range needs {
		if len(n) == 0 {
			return ""
		}
		covered := slices.ContainsFunc(kept, func(k []string) bool {
			return !slices.ContainsFunc(k, func(o string) bool { return !slices.Contains(n, o) })
		})
		if !covered {
			kept = append(kept, n)
		}
	}
	if len(kept) > 4 {
		return ""
	}
	var texts []string
	for _, k := range kept {
		texts = append(texts, strings.Join(k, "&"))
	}
	return strings.Join(sorted(texts), "/")
}

func archOf(r kernelsource.Param, p *possible, docArch string) string {
	if r.Arch != "" {
		return r.Arch
	}
	for _, option := range r.Needs {
		if arch := p.arch(option, 0); arch != "" {
			return arch
		}
	}
	if docArch != "" {
		return docArch
	}
	return "other"
}

func sorted(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

var (
	manTerm   = regexp.MustCompile(`<term><varname>([\w.\-]+)(=?)`)
	adocTerm  = regexp.MustCompile(`\*\*([\w.\-]+)(=?)[^*]*\*\*`)
	wholeWord = regexp.MustCompile(`\bkernel-module-([a-z0-9][a-z0-9-]*)`)
)

// addPrograms adds what systemd and dracut document. A name that the kernels have stays theirs.
func addPrograms(args nameTable, mirror string) error {
	for _, p := range linux.Programs() {
		text, err := repository(folder(mirror, p.Repository)).show(p.Commit, p.File)
		if err != nil {
			return err
		}
		term := manTerm
		if strings.HasSuffix(p.File, ".adoc") {
			term = adocTerm
		}
		for line := range strings.Lines(text) {
			if term == adocTerm && !strings.Contains(line, "::") {
				continue
			}
			for _, m := range term.FindAllStringSubmatch(line, -1) {
				addUser(args, m[1], p.Name, 1<<len(kernel.Sets())-1)
			}
		}
	}
	return nil
}

// addUser adds an argument of a program to the kernels of mask that have none of that name.
func addUser(args nameTable, name, by string, mask uint16) {
	name = linux.Fold(strings.TrimPrefix(name, "-"))
	for _, has := range args[name] {
		mask &^= has
	}
	for n := range kernel.Sets() {
		if mask>>n&1 == 1 {
			args.add(name, argument{kinds: "u", by: by}.variant(), n)
		}
	}
}

// addBSP adds the modules that meta-tegra's recipes and machines name, and the arguments of
// its machines and of its initial file system that nothing else has.
func addBSP(args, modules nameTable, metaTegra repository) error {
	sets := kernel.Sets()
	for _, branch := range release.Names() {
		r, _ := release.Lookup(branch)
		n := slices.IndexFunc(sets, func(s kernel.Set) bool { return s.Name == r.Kernel })
		commit := strings.TrimSuffix(strings.Fields(r.Read)[1], ",")
		text, err := metaTegra.git("grep", "-hI", "kernel-module-", commit)
		if err != nil {
			return err
		}
		for _, m := range wholeWord.FindAllStringSubmatch(text, -1) {
			if name := linux.Fold(m[1]); !strings.HasSuffix(name, "_") && !hasKernel(modules[name], n) {
				modules.add(name, ";", n)
			}
		}
		for _, m := range r.Machines() {
			for word := range strings.FieldsSeq(m.KernelArgs) {
				name, _, _ := strings.Cut(word, "=")
				addUser(args, name, "L4T", 1<<n)
			}
		}
	}
	return nil
}

func hasKernel(variants map[string]uint16, n int) bool {
	for _, mask := range variants {
		if mask>>n&1 == 1 {
			return true
		}
	}
	return false
}
