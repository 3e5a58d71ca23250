// Command prove counts names in the sources of the tables of facts, and compares them with the
// tables. The counts are searches for text, independent of the generators: they follow no Makefile,
// no condition and no include. -src counts the arguments that __setup, early_param and core_param
// register in unpacked kernel sources, and the modules of their Makefiles.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/linux"
)

var call = regexp.MustCompile(`\b(?:(?:__setup|early_param)\s*\(\s*"([A-Za-z0-9_][\w.\-]*)=?"|core_param\s*\(\s*(\w+))\s*,`)

// count is the result for one kernel.
type count struct {
	Kernel       string   `json:"kernel"`
	Source       string   `json:"source"`
	Registered   int      `json:"registered"`
	Read         int      `json:"read_by_arm64"`
	Foreign      int      `json:"of_another_architecture"`
	OtherFolders int      `json:"not_built_for_arm64"`
	Missing      []string `json:"missing"`
	Modules      int      `json:"modules_in_makefiles"`
	ModulesKnown int      `json:"modules_in_table"`
	ModulesLost  []string `json:"modules_missing,omitempty"`

	// Options of three states without a module in the table.
	OptionsWithout int      `json:"options_that_arm64_lacks,omitempty"`
	OptionsSample  []string `json:"options_sample,omitempty"`
	// Options that the kernel's own conf makes m, and those of them that a Makefile gives an object and the table
	// no module: of folders that the Makefiles do not enter for arm64.
	AllMod        int      `json:"options_of_allmodconfig,omitempty"`
	AllModWithout []string `json:"of_them_without_a_module,omitempty"`

	options map[string]bool // that a Makefile gives an object
}

func main() {
	var all []count
	out := flag.String("o", "", "`file` for the record")
	upstream := flag.String("upstream", "", "`folder` with clones of the layers, and sources of systemd and tuned")
	mirror := flag.String("mirror", "", "`folder` with clones of the kernels that linux.Sources names, each as OWNER+NAME")
	flag.Func("src", "compare `KERNEL=DIR`", func(s string) error {
		kernel, dir, ok := strings.Cut(s, "=")
		if !ok {
			return fmt.Errorf("want KERNEL=DIR")
		}
		c, err := compare(kernel, dir)
		all = append(all, c)
		return err
	})
	flag.Func("allmod", "compare with `KERNEL=FILE`, the .config that make ARCH=arm64 allmodconfig of the kernel wrote", func(s string) error {
		kernel, file, ok := strings.Cut(s, "=")
		i := slices.IndexFunc(all, func(c count) bool { return c.Kernel == kernel })
		if !ok || i < 0 {
			return fmt.Errorf("want KERNEL=FILE after -src of that kernel")
		}
		return all[i].compareConfig(file)
	})
	flag.Parse()
	tables, err := countTables(*upstream, *mirror)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	data, err := json.MarshalIndent(struct {
		Command string  `json:"command"`
		Real    string  `json:"real"`
		Kernels []count `json:"arguments and modules,omitempty"`
		Tables  []tally `json:"tables,omitempty"`
	}{"scripts/prove.sh facts", "the sources at the commits that the tables name", all, tables}, "", " ")
	if err == nil && *out != "" {
		err = os.WriteFile(*out, append(data, '\n'), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	failed := false
	for _, c := range all {
		fmt.Printf("%s: %d arguments in the source, %d missing; %d modules, %d missing; %d options of three states without a module\n", c.Kernel, c.Registered, len(c.Missing), c.Modules, len(c.ModulesLost), c.OptionsWithout)
		failed = failed || len(c.Missing) > 0 || len(c.ModulesLost) > 0
	}
	for _, t := range tables {
		fmt.Printf("%s, %s: %d in the source, %d in the table, out %v, missing %q\n", t.Table, t.Of, t.Source, t.Known, t.Out, t.Missing[:min(len(t.Missing), 20)])
		failed = failed || len(t.Missing) > 0
	}
	if failed {
		os.Exit(1)
	}
}

var (
	comment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	// A list of objects that an option makes modules. Of one in which m counts as y the objects are built in.
	objects = regexp.MustCompile(`(?m)^[ \t]*obj-(\$[({][^=\n]*[)}])\s*[+:?]?=[ \t]*(.*)$`)
	builtIn = regexp.MustCompile(`\bm,\s*y\b|:m=y|findstring`)
	options = regexp.MustCompile(`CONFIG_(\w+)`)
	joined  = regexp.MustCompile(`\\\n`)
	remark  = regexp.MustCompile(`(?m)#.*$`)
)

func compare(kernel, dir string) (count, error) {
	c := count{Kernel: kernel, Source: filepath.Base(dir)}
	found := map[string]bool{}
	modules := map[string]bool{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		if slices.Contains([]string{"tools", "samples", "Documentation", "scripts", "rust", "include", "debian"}, top) {
			return nil
		}
		base := filepath.Base(name)
		if !strings.HasSuffix(base, ".c") && !strings.HasSuffix(base, ".h") && base != "Makefile" {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if base == "Makefile" {
			if top == "arch" {
				return nil
			}
			for _, m := range objects.FindAllStringSubmatch(joined.ReplaceAllString(remark.ReplaceAllString(string(data), ""), " "), -1) {
				if builtIn.MatchString(m[1]) {
					continue
				}
				var names []string
				for _, o := range options.FindAllStringSubmatch(m[1], -1) {
					names = append(names, o[1])
				}
				for word := range strings.FieldsSeq(m[2]) {
					module, ok := strings.CutSuffix(word, ".o")
					if !ok || strings.ContainsAny(word, "$(){}/") || len(names) == 0 {
						continue // of a variable, or of another folder
					}
					// No Jetson kernel is built with Rust.
					if _, err := os.Stat(filepath.Join(filepath.Dir(name), module+".rs")); err != nil {
						modules[strings.Join(names, ",")+" "+strings.ReplaceAll(module, "-", "_")] = true
					}
				}
			}
			return nil
		}
		if text := string(data); strings.Contains(text, "__setup") || strings.Contains(text, "early_param") || strings.Contains(text, "core_param") {
			for _, m := range call.FindAllStringSubmatch(comment.ReplaceAllString(text, ""), -1) {
				found[m[1]+m[2]] = true
			}
		}
		return nil
	})
	c.tally(found)
	return c, errors.Join(err, c.tallyModules(modules))
}

func (c *count) tally(found map[string]bool) {
	c.Registered = len(found)
	for name := range found {
		a, ok := linux.FindArg(c.Kernel, name)
		switch {
		case !ok:
			c.Missing = append(c.Missing, name)
		case a.Arch == "other":
			c.OtherFolders++
		case a.Arch != "":
			c.Foreign++
		default:
			c.Read++
		}
	}
	slices.Sort(c.Missing)
}

// tallyModules compares the objects that a line of a Makefile gives an option with the table. An
// option that is not of three states builds no module. One of which the table has no module is counted: arm64
// cannot have it.
func (c *count) tallyModules(modules map[string]bool) error {
	facts, _, err := kernel.Open(c.Kernel)
	if err != nil {
		return err
	}
	without := map[string]bool{}
	c.options = map[string]bool{}
	for pair := range modules {
		names, name, _ := strings.Cut(pair, " ")
		var built []string
		isModule := false
		for _, option := range strings.Split(names, ",") {
			built = append(built, linux.ModulesOf(c.Kernel, option)...)
			c.options[option] = true
			if id, ok := facts.Lookup(option); ok && facts.Symbols[id].Type == kernel.Tristate {
				isModule = true
			}
		}
		if !isModule {
			continue
		}
		if len(built) == 0 {
			without[names] = true
			continue
		}
		c.Modules++
		if slices.Contains(built, name) {
			c.ModulesKnown++
		} else {
			c.ModulesLost = append(c.ModulesLost, pair)
		}
	}
	slices.Sort(c.ModulesLost)
	c.OptionsWithout = len(without)
	names := slices.Sorted(maps.Keys(without))
	for i := 0; i < len(names); i += len(names)/25 + 1 {
		c.OptionsSample = append(c.OptionsSample, names[i])
	}
	return nil
}

// compareConfig compares the options that a kernel's own conf makes m with the table.
func (c *count) compareConfig(file string) error {
	data, err := os.ReadFile(file)
	for line := range strings.Lines(string(data)) {
		option, isModule := strings.CutSuffix(strings.TrimSpace(line), "=m")
		if !isModule {
			continue
		}
		option = strings.TrimPrefix(option, "CONFIG_")
		if c.AllMod++; c.options[option] && len(linux.ModulesOf(c.Kernel, option)) == 0 {
			c.AllModWithout = append(c.AllModWithout, option)
		}
	}
	return err
}
