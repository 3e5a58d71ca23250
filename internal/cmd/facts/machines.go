package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"path"
	"regexp"
	"sort"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/release"
)

// repository is a git directory, bare or not.
type repository string

func (r repository) git(args ...string) (string, error) {
	if r == "" {
		return "", fmt.Errorf("the repository's path is missing")
	}
	cmd := exec.Command("git", append([]string{"-C", string(r)}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

func (r repository) show(branch, file string) (string, error) { return r.git("show", branch+":"+file) }

var (
	requireLine = regexp.MustCompile(`^\s*(require|include)\s+(\S+)`)
	assignLine  = regexp.MustCompile(`^([A-Z][A-Za-z0-9_]*)\s*(\?\?=|\?=|\+=|:=|=)\s*"(.*)"\s*$`)
	reference   = regexp.MustCompile(`\$\{[A-Z0-9_]+\}`)
)

// machineConf evaluates the plain assignments of a machine's configuration. It
// does not parse bitbake in full: machine files of meta-tegra set the variables read
// here without overrides or Python.
type machineConf struct {
	value  map[string]string
	weak   map[string]string
	origin map[string]string
}

func (c *machineConf) load(r repository, branch, file string) error {
	text, err := r.show(branch, file)
	if err != nil {
		return err
	}
	for _, line := range strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		if m := requireLine.FindStringSubmatch(line); m != nil {
			// conf/machine/include of oe-core is not in this repository.
			if _, err := r.show(branch, m[2]); err == nil {
				if err := c.load(r, branch, m[2]); err != nil {
					return err
				}
			}
			continue
		}
		m := assignLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name, op, value := m[1], m[2], m[3]
		switch op {
		case "?=":
			if _, set := c.value[name]; set {
				continue
			}
		case "??=":
			c.weak[name] = value
			continue
		case "+=":
			value = c.value[name] + " " + value
		}
		c.value[name], c.origin[name] = value, file
	}
	return nil
}

func (c *machineConf) get(name string) string {
	v, ok := c.value[name]
	if !ok {
		v = c.weak[name]
	}
	v = reference.ReplaceAllStringFunc(v, func(ref string) string { return c.get(ref[2 : len(ref)-1]) })
	return strings.Join(strings.Fields(v), " ")
}

// writeMachines records the machines of every branch of package release.
func writeMachines(repo repository, out string) error {
	all := map[string][]release.Machine{}
	for _, branch := range release.Names() {
		list, err := repo.git("ls-tree", "--name-only", branch, "conf/machine/")
		if err != nil {
			return err
		}
		for _, file := range strings.Fields(list) {
			if path.Ext(file) != ".conf" {
				continue
			}
			c := machineConf{value: map[string]string{}, weak: map[string]string{}, origin: map[string]string{}}
			if err := c.load(repo, branch, file); err != nil {
				return err
			}
			all[branch] = append(all[branch], release.Machine{
				Name:         strings.TrimSuffix(path.Base(file), ".conf"),
				NVPModel:     c.get("NVPMODEL"),
				NVFanControl: c.get("NVFANCONTROL"),
				BoardID:      c.get("TEGRA_BOARDID"),
				BoardSKU:     c.get("TEGRA_BOARDSKU"),
				DeviceTrees:  strings.Fields(c.get("KERNEL_DEVICETREE")),
				KernelArgs:   c.get("KERNEL_ARGS"),
				Source:       c.origin["NVPMODEL"],
			})
		}
		sort.Slice(all[branch], func(i, j int) bool { return all[branch][i].Name < all[branch][j].Name })
	}
	return writeJSON(out, all)
}

var unitFile = regexp.MustCompile(`^(.*/)([^/]+\.(?:service|mount|target|socket|timer|path))(?:\.in)?$`)

// writeUnits records the systemd units that each branch's own recipes install,
// apart from those below external, which stand in for other layers.
func writeUnits(repo repository, out string) error {
	all := map[string][]release.Unit{}
	for _, branch := range release.Names() {
		list, err := repo.git("ls-tree", "-r", "--name-only", branch)
		if err != nil {
			return err
		}
		for _, file := range strings.Fields(list) {
			m := unitFile.FindStringSubmatch(file)
			if m == nil || strings.HasPrefix(file, "external/") {
				continue
			}
			text, err := repo.show(branch, file)
			if err != nil {
				return err
			}
			u := release.Unit{Name: m[2], Recipe: path.Base(m[1]), Source: file}
			for line := range strings.SplitSeq(text, "\n") {
				key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				switch key {
				case "After":
					u.After = append(u.After, strings.Fields(value)...)
				case "Before":
					u.Before = append(u.Before, strings.Fields(value)...)
				case "Requires":
					u.Requires = append(u.Requires, strings.Fields(value)...)
				}
			}
			all[branch] = append(all[branch], u)
		}
		sort.Slice(all[branch], func(i, j int) bool { return all[branch][i].Name < all[branch][j].Name })
	}
	return writeJSON(out, all)
}

var (
	renamedInConf   = regexp.MustCompile(`(?m)^BB_RENAMED_VARIABLES\[([^\]]+)\]\s*=\s*"(.*)"`)
	renamedInPython = regexp.MustCompile(`(?m)^    "([A-Z_]+)": "(.*)",$`)
)

// writeRenamed records the variables that each branch refuses, with bitbake's messages.
func writeRenamed(oeCore, bitbake repository, out string) error {
	all := map[string]map[string]release.Renamed{}
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		conf, err := oeCore.show(coreBranch(r), "meta/conf/bitbake.conf")
		if err != nil {
			return err
		}
		python, err := bitbake.show(r.BitBake, "lib/bb/data_smart.py")
		if err != nil {
			return err
		}
		_, table, _ := strings.Cut(python, "bitbake_renamed_vars = {")
		table, _, _ = strings.Cut(table, "\n}")
		found := map[string]release.Renamed{}
		add := func(matches [][]string, source string) {
			for _, m := range matches {
				v := release.Renamed{Source: source}
				if regexp.MustCompile(`^[A-Z0-9_]+$`).MatchString(m[2]) {
					v.New = m[2]
				} else {
					v.Message = m[2]
				}
				found[m[1]] = v
			}
		}
		add(renamedInPython.FindAllStringSubmatch(table, -1), "bitbake lib/bb/data_smart.py")
		add(renamedInConf.FindAllStringSubmatch(conf, -1), "oe-core meta/conf/bitbake.conf")
		if len(found) == 0 {
			return fmt.Errorf("%s: no renamed variable found: has the file changed its form?", name)
		}
		all[coreBranch(r)] = found
	}
	return writeJSON(out, all)
}

func coreBranch(r release.Release) string {
	if r.Name == "master" {
		return r.Name
	}
	return r.Series
}

var kernelRecipe = regexp.MustCompile(`^meta/recipes-kernel/linux/(linux-[a-z-]+)_([0-9]+\.[0-9]+)\.bb$`)

// writeKernelRecipes writes the versions of the kernel recipes of openembedded-core, by branch.
func writeKernelRecipes(oeCore repository, out string) error {
	all := map[string]map[string][]string{}
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		_, commit, _ := strings.Cut(r.Read, "oe-core ")
		commit, _, _ = strings.Cut(commit, ",")
		list, err := oeCore.git("ls-tree", "--name-only", commit, "meta/recipes-kernel/linux/")
		if err != nil {
			return err
		}
		found := map[string][]string{}
		for file := range strings.Lines(list) {
			if m := kernelRecipe.FindStringSubmatch(strings.TrimSpace(file)); m != nil {
				found[m[1]] = append(found[m[1]], m[2])
			}
		}
		if len(found) == 0 {
			return fmt.Errorf("%s: no kernel recipe found: has the folder moved?", name)
		}
		all[coreBranch(r)] = found
	}
	return writeJSON(out, all)
}
