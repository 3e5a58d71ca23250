// Command prove counts names in the sources of the tables of facts, and compares them with the
// tables. The counts are searches for text, independent of the generators: they follow no Makefile,
// no condition and no include. -src counts the arguments that __setup, early_param and core_param
// register in unpacked kernel sources, and the modules of their Makefiles.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

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
		fmt.Printf("%s: %d arguments in the source, %d missing; %d modules, %d missing\n", c.Kernel, c.Registered, len(c.Missing), c.Modules, len(c.ModulesLost))
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
	object  = regexp.MustCompile(`^obj-\$\(CONFIG_(\w+)\)\s*\+?:?=\s*([\w\-]+)\.o\s*$`)
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
			for line := range strings.Lines(string(data)) {
				m := object.FindStringSubmatch(strings.TrimSpace(line))
				if m == nil || top == "arch" {
					continue
				}
				// No Jetson kernel is built with Rust.
				if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[2]+".rs")); err != nil {
					modules[m[1]+" "+strings.ReplaceAll(m[2], "-", "_")] = true
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
	c.tallyModules(modules)
	return c, err
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

// tallyModules compares the objects that a plain line of a Makefile gives an option with the
// table. An option that is no tristate, or that arm64 cannot have, builds no module.
func (c *count) tallyModules(modules map[string]bool) {
	for pair := range modules {
		option, name, _ := strings.Cut(pair, " ")
		built := linux.ModulesOf(c.Kernel, option)
		if len(built) == 0 {
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
}
