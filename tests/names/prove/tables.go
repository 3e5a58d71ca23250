package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/directive"
	"github.com/yoctune/yoctune/schema/facts/idle"
	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/facts/recipe"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/tuned"
)

// tally is a count of names in a source, and of those in the table.
type tally struct {
	Table   string         `json:"table"`
	Of      string         `json:"of"`
	Search  string         `json:"search"` // how the names were found
	Source  int            `json:"in_source"`
	Known   int            `json:"in_table"`
	Out     map[string]int `json:"out,omitempty"` // by reason
	Sample  []string       `json:"out_sample,omitempty"`
	Missing []string       `json:"missing"`
}

// compareNames counts names. out returns why a name need not be in the table, or "".
func compareNames(table, of, search string, names map[string]bool, has func(string) bool, out func(string) string) tally {
	t := tally{Table: table, Of: of, Search: search, Source: len(names), Out: map[string]int{}, Missing: []string{}}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if has(name) {
			t.Known++
		} else if why := out(name); why != "" {
			t.Out[why]++
			if len(t.Sample) < 100 {
				t.Sample = append(t.Sample, name)
			}
		} else {
			t.Missing = append(t.Missing, name)
		}
	}
	return t
}

func never(string) string { return "" }

// grep returns the lines of a commit that git grep -P finds, each as FILE:LINE:TEXT without the commit.
func grep(repo, commit, pattern string, paths ...string) ([]string, error) {
	argv := append([]string{"-C", repo, "grep", "-nIP", pattern, commit, "--"}, paths...)
	var stderr bytes.Buffer
	cmd := exec.Command("git", argv...)
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("git grep in %s: %w: %s", repo, err, stderr.String())
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.TrimPrefix(strings.TrimRight(line, "\n"), commit+":"))
	}
	return lines, nil
}

func list(repo, commit string) ([]string, error) {
	text, err := exec.Command("git", "-C", repo, "ls-tree", "-r", "--name-only", commit).Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-tree %s in %s: %w", commit, repo, err)
	}
	return strings.Fields(string(text)), nil
}

// layers are the repositories and commits that the table of recipes of a release names.
func layers(folder, name string) (repos [][2]string) {
	for _, s := range recipe.Sources(name) {
		repo, commit, _ := strings.Cut(s, "@")
		repos = append(repos, [2]string{filepath.Join(folder, path.Base(repo)), commit})
	}
	return repos
}

func isTestLayer(file string) bool {
	return strings.HasPrefix(file, "meta-selftest/") || strings.HasPrefix(file, "meta-skeleton/") || strings.HasPrefix(file, "meta/lib/")
}

// recipes counts recipe files, the options that they describe, and the features that files ask for.
func recipes(folder string) (all []tally, err error) {
	for _, name := range release.Names() {
		repos := layers(folder, name)
		if len(repos) == 0 {
			continue
		}
		files, options, features, computed := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, r := range repos {
			names, err := list(r[0], r[1])
			if err != nil {
				return nil, err
			}
			for _, file := range names {
				if strings.HasSuffix(file, ".bb") && !isTestLayer(file) {
					base, _, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".bb"), "_")
					files[base] = true
				}
			}
			lines, err := grep(r[0], r[1], `^PN *= *"[^"]*\$`, "*.bb", "*.inc")
			if err != nil {
				return nil, err
			}
			for _, line := range lines {
				_, value, _ := strings.Cut(line, `"`)
				stem, _, _ := strings.Cut(value, "$")
				computed[strings.TrimSuffix(stem, "-")] = true
			}
			lines, err = grep(r[0], r[1], `^PACKAGECONFIG\[[^\]]+\]`, "*.bb")
			if err != nil {
				return nil, err
			}
			for _, line := range lines {
				file, rest, _ := strings.Cut(line, ":")
				_, rest, _ = strings.Cut(rest, "[")
				option, _, _ := strings.Cut(rest, "]")
				base, _, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".bb"), "_")
				if !isTestLayer(file) {
					options[base+" "+option] = true
				}
			}
			lines, err = grep(r[0], r[1], `(DISTRO|MACHINE)_FEATURES['"] *, *['"]`, "*.bb", "*.bbclass", "*.inc")
			if err != nil {
				return nil, err
			}
			for _, line := range lines {
				file, _, _ := strings.Cut(line, ":")
				for _, m := range asked.FindAllStringSubmatch(line, -1) {
					for _, word := range strings.Fields(m[2]) {
						if !isTestLayer(file) {
							features[m[1]+" "+word] = true
						}
					}
				}
			}
		}
		all = append(all,
			compareNames("recipes", name, "git ls-tree: *.bb, up to the first _", files, func(n string) bool {
				return recipe.Has(name, n, recipe.Recipe) || recipe.Has(name, n, recipe.Image)
			}, func(n string) string {
				if computed[n] {
					return "the recipe has another name, with a variable in it"
				}
				return ""
			}),
			compareNames("options of PACKAGECONFIG", name, "git grep ^PACKAGECONFIG[NAME] in *.bb", options, func(pair string) bool {
				of, option, _ := strings.Cut(pair, " ")
				return slices.Contains(recipe.Options(name, of), option)
			}, func(pair string) string {
				if strings.Contains(pair, "$") {
					return "a variable in the name"
				}
				return ""
			}),
			compareNames("features", name, `git grep ..._FEATURES', '...' in recipes and classes`, features, func(pair string) bool {
				of, word, _ := strings.Cut(pair, " ")
				kind := recipe.DistroFeature
				if of == "MACHINE" {
					kind = recipe.MachineFeature
				}
				return recipe.Has(name, word, kind)
			}, func(pair string) string {
				if _, word, _ := strings.Cut(pair, " "); strings.ContainsAny(word, "${%") || strings.ToUpper(word) == word {
					return "a variable"
				}
				return ""
			}))
	}
	return all, nil
}

var asked = regexp.MustCompile(`(DISTRO|MACHINE)_FEATURES['"] *, *['"]([^'"]*)['"]`)

// manuals are systemd's manual pages, by the kind of file that they describe.
var manuals = map[string][]string{
	directive.Unit:    {"systemd.unit", "systemd.service", "systemd.socket", "systemd.mount", "systemd.automount", "systemd.swap", "systemd.path", "systemd.timer", "systemd.slice", "systemd.scope", "systemd.exec", "systemd.kill", "systemd.resource-control"},
	directive.Network: {"systemd.network"}, directive.NetDev: {"systemd.netdev"}, directive.Link: {"systemd.link"},
	"journald": {"journald.conf"}, "logind": {"logind.conf"}, "resolved": {"resolved.conf"}, "timesyncd": {"timesyncd.conf"}, "networkd": {"networkd.conf"},
}

var described = regexp.MustCompile(`<term>\s*<varname>([A-Z][A-Za-z0-9]*)=`)

// directives counts the directives that the manual pages of each version of systemd describe.
func directives(folder string) (all []tally, err error) {
	versions := directive.Versions("systemd")
	for _, version := range versions {
		for _, kind := range slices.Sorted(maps.Keys(manuals)) {
			names, found := map[string]bool{}, false
			for _, page := range manuals[kind] {
				text, err := os.ReadFile(filepath.Join(folder, version, "man", page+".xml"))
				if errors.Is(err, os.ErrNotExist) {
					continue
				}
				if err != nil {
					return nil, err
				}
				found = true
				for _, m := range described.FindAllStringSubmatch(string(text), -1) {
					names[m[1]] = true
				}
			}
			if !found {
				continue
			}
			known := map[string]bool{}
			for _, n := range directive.Names(kind) {
				_, word, _ := strings.Cut(n, ".")
				if s := directive.Lookup(kind, n, version).State; s == directive.Present || s == directive.Legacy {
					known[word] = true
				}
			}
			text, err := parsers(filepath.Join(folder, version), parserOf[kind])
			if err != nil {
				return nil, err
			}
			all = append(all, compareNames("directives of "+kind, "systemd "+version, "<term><varname>NAME= in man/*.xml", names, func(n string) bool { return known[n] }, func(n string) string {
				if !strings.Contains(text, "."+n+",") && !strings.Contains(text, "."+n+" ") {
					return "described, and in no parser of this version"
				}
				return ""
			}))
		}
	}
	return all, nil
}

// parserOf is a part of the name of a kind's parser.
var parserOf = map[string]string{
	directive.Unit: "load-fragment", directive.Network: "networkd-network-gperf", directive.NetDev: "netdev-gperf", directive.Link: "link-config-gperf",
	"journald": "journald-gperf", "logind": "logind-gperf", "resolved": "resolved-gperf", "timesyncd": "timesyncd-gperf", "networkd": "networkd-gperf",
}

// parsers returns the text of a version's parser.
func parsers(folder, part string) (string, error) {
	var all strings.Builder
	err := filepath.WalkDir(filepath.Join(folder, "src"), func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(filepath.Base(name), part) {
			return err
		}
		text, err := os.ReadFile(name)
		all.Write(text)
		return err
	})
	return all.String(), err
}

var (
	numbered  = regexp.MustCompile(`"([a-z][a-z0-9]*)%[du]"`)
	nodeStart = regexp.MustCompile(`^\s*(?:[A-Za-z0-9_]+\s*:\s*)?([A-Za-z0-9_@,.-]+)\s*\{`)
)

// interfaces counts what the newest kernel and the BSP have: names with a number that registrations of
// interfaces mention, PCI domains, and names in networkd's files.
func interfaces(mirror, metaTegra string) (all []tally, err error) {
	data, err := os.ReadFile("schema/facts/netif/data/interfaces.txt")
	if err != nil {
		return nil, err
	}
	known, domains := map[string]bool{}, map[string][]string{}
	var kernel [2]string
	var commits []string
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		switch words[0] {
		case "source":
			if words[1] == "OE4T/meta-tegra" {
				commits = append(commits, words[2])
			} else {
				kernel = [2]string{mirrorOf(mirror, words[1]), words[2]}
			}
		case "soc":
			domains[words[1]] = words[2:]
		case "kernel", "bsp":
			for _, w := range words[1:] {
				known[w] = true
			}
		}
	}
	bsp := map[string]bool{}
	for _, commit := range commits {
		lines, err := grep(metaTegra, commit, `^Name=`, "*.network", "*.netdev", "*.link")
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			_, names, _ := strings.Cut(line, "Name=")
			for name := range strings.FieldsSeq(names) {
				bsp[name] = true
			}
		}
	}
	all = append(all, compareNames("interfaces", "meta-tegra", "git grep ^Name= in networkd's files", bsp, func(n string) bool { return known[n] }, never))

	if _, err := os.Stat(kernel[0]); err != nil {
		return all, nil
	}
	lines, err := grep(kernel[0], kernel[1], `"[a-z][a-z0-9]*%[du]"`, "drivers/net/*.c", "net/*.c", "drivers/net/*.h", "net/*.h")
	if err != nil {
		return nil, err
	}
	names, where := map[string]bool{}, map[string]string{}
	for _, line := range lines {
		for _, m := range numbered.FindAllStringSubmatch(line, -1) {
			names[m[1]] = true
			where[m[1]] += line + "\n"
		}
	}
	all = append(all, compareNames("interfaces", "Linux 6.18", `git grep "NAME%d" in drivers/net and net`, names, func(n string) bool { return known[n] }, func(n string) string {
		if !registers.MatchString(where[n]) {
			return "an interrupt, a queue, a port, a file or a message: the line mentions no interface"
		}
		return ""
	}))
	for _, soc := range slices.Sorted(maps.Keys(domains)) {
		lines, err := grep(kernel[0], kernel[1], `linux,pci-domain`, "arch/arm64/boot/dts/nvidia/"+soc+".dtsi")
		if err != nil {
			return nil, err
		}
		found := map[string]bool{}
		for _, line := range lines {
			_, value, _ := strings.Cut(line, "<")
			value, _, _ = strings.Cut(value, ">")
			found[strings.TrimSpace(value)] = true
		}
		all = append(all, compareNames("PCI domains", soc, "git grep linux,pci-domain", found, func(n string) bool { return slices.Contains(domains[soc], n) }, never))
	}
	return all, nil
}

var registers = regexp.MustCompile(`alloc_(?:netdev|candev|etherdev|hdlcdev)|dev_alloc_name|dev->name|net_device|ndev->name|ifname|IFACE|DEV_NAME|virtual_intf|\bname = "`)

// idleStates counts the nodes of idle states in the device trees of each L4T.
func idleStates(mirror string) (all []tally, err error) {
	for _, s := range linux.Sources() {
		l4t, vendor := strings.CutPrefix(s.Note, "L4T ")
		repo := mirrorOf(mirror, s.Repository)
		if _, err := os.Stat(repo); !vendor || err != nil {
			continue
		}
		line, _, _ := strings.Cut(l4t, ".")
		found, err := exec.Command("git", "-C", repo, "grep", "-nI", "-B6", "arm,idle-state\"", s.Commit, "--", "hardware/nvidia/soc/*.dtsi", "hardware/nvidia/soc/*.dts").Output()
		if err != nil {
			return nil, fmt.Errorf("git grep in %s: %w", repo, err)
		}
		// The node of a state begins with the last line before it that has a brace.
		node, names := "", map[string]bool{}
		for text := range strings.Lines(string(found)) {
			text = strings.TrimPrefix(text, s.Commit+":")
			file, rest, _ := strings.Cut(text, ".dts")
			_, rest, _ = strings.Cut(rest, "-")
			if i := strings.IndexAny(rest, "-:"); i >= 0 {
				rest = rest[i+1:]
			}
			if m := nodeStart.FindStringSubmatch(rest); m != nil {
				node = m[1]
			}
			if strings.Contains(text, "arm,idle-state\"") {
				soc, _, _ := strings.Cut(path.Base(file), "-")
				names[soc+" "+node] = true
			}
		}
		all = append(all, compareNames("idle states", "L4T "+l4t, "git grep -B6 arm,idle-state", names, func(pair string) bool {
			soc, state, _ := strings.Cut(pair, " ")
			return slices.Contains(idle.States(soc, "R"+line), state)
		}, never))
	}
	return all, nil
}

var (
	diskName   = regexp.MustCompile(`(?:printf|strcpy|strscpy)\s*\([^,"]*disk_name[^"]*"([a-z][a-z0-9_]*)[%"]`)
	threadName = regexp.MustCompile(`kthread_(?:run|create)\w*\s*\([^"]*"([^"]+)"`)
	netFeature = regexp.MustCompile(`\[NETIF_F_\w+\]\s*=\s*"([^"]+)"`)
)

// foreignDisks are the disks of drivers that the Kconfig of the kernel offers on no arm64 machine.
var foreignDisks = map[string]string{
	"a":    "the end of mgda of mg_disk.c, which begins with a macro",
	"dasd": "drivers/s390", "dcssblk": "drivers/s390", "scm": "drivers/s390", "slram": "drivers/s390: xpram.c",
	"fd": "BLK_DEV_FD needs ARCH_MAY_HAVE_PC_FDC, the others Amiga, Atari or Macintosh", "hd": "IDE needs HAVE_IDE",
	"jsfd": "drivers/sbus", "n64cart": "N64CART needs MACH_NINTENDO64", "xs": "XILINX_SYSACE needs 4xx or MICROBLAZE", "z2ram": "AMIGA_Z2RAM needs ZORRO",
}

// lackingThreads are known gaps: the generator follows no #include of a C file, and no ${CONFIG_NAME}
// of a Makefile.
var lackingThreads = map[string]string{
	"psimon": "build_utility.c includes psi.c", "sched_ext_helper": "build_policy.c includes ext.c", "t7xx_fsm": "obj-${CONFIG_MTK_T7XX}",
}

// kernels counts the names of disks, threads and features of interfaces in each kernel that is there.
func kernels(mirror string) (all []tally, err error) {
	for _, s := range linux.Sources() {
		repo := mirrorOf(mirror, s.Repository)
		if _, err := os.Stat(filepath.Join(repo, "HEAD")); err != nil || s.OutOfTree {
			continue
		}
		root := ""
		if len(s.Roots) > 0 {
			root = s.Roots[0] + "/"
		}
		search := func(pattern string, re *regexp.Regexp, paths ...string) (map[string]bool, error) {
			for i := range paths {
				paths[i] = root + paths[i]
			}
			lines, err := grep(repo, s.Commit, pattern, paths...)
			found := map[string]bool{}
			for _, line := range lines {
				if m := re.FindStringSubmatch(line); m != nil {
					found[m[1]] = true
				}
			}
			return found, err
		}
		disks, err := search(`disk_name.*"[a-z]`, diskName, "drivers/*.c", "block/*.c", "fs/*.c")
		if err != nil {
			return nil, err
		}
		features, err := search(`\[NETIF_F_\w+\]\s*=\s*"`, netFeature, "net/ethtool/common.c", "net/core/ethtool.c")
		if err != nil {
			return nil, err
		}
		threads, err := search(`kthread_(run|create)\w*\s*\([^"]*"`, threadName, "kernel/*.c", "mm/*.c", "fs/*.c", "block/*.c", "net/*.c", "drivers/*.c")
		if err != nil {
			return nil, err
		}
		of := "Linux " + s.Kernel
		kinds := linux.Disks(s.Kernel)
		all = append(all,
			compareNames("disks", of, `git grep disk_name.*"NAME`, disks, func(n string) bool {
				return slices.ContainsFunc(kinds, func(d linux.Disk) bool { return strings.HasPrefix(d.Names, n) })
			}, func(n string) string { return foreignDisks[n] }),
			compareNames("features of interfaces", of, "git grep [NETIF_F_NAME]", features, func(n string) bool { return slices.Contains(linux.NetFeatures(s.Kernel), n) }, func(n string) string {
				if strings.Contains(n, "%") {
					return "a pattern"
				}
				return ""
			}),
			compareNames("threads", of, `git grep kthread_run(..."NAME`, threads, func(n string) bool {
				stem, _, _ := strings.Cut(n, "%")
				return slices.ContainsFunc(linux.Threads(s.Kernel), func(t linux.Thread) bool { return t.Name == n || stem != "" && strings.HasPrefix(t.Name, stem) })
			}, func(n string) string {
				if strings.HasPrefix(n, "%") {
					return "named after a device or a caller"
				}
				if gap := lackingThreads[n]; gap != "" {
					return "a gap of the table: " + gap
				}
				return "of code that no arm64 kernel can have, or outside of its Makefiles"
			}))
	}
	return all, nil
}

// pluginOptions is a Python program, for ast reads Python as no pattern does.
const pluginOptions = `import ast, sys
for name in sys.stdin.read().split("\0"):
    if not name: continue
    file, text = name.split("\n", 1)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name == "_get_config_options":
            for d in ast.walk(node):
                if isinstance(d, ast.Dict):
                    for k in d.keys:
                        if isinstance(k, ast.Constant): print(file, k.value)
`

func tunedOptions(repo string) ([]tally, error) {
	commit := strings.Fields(tuned.Source())[1]
	files, err := list(repo, commit)
	if err != nil {
		return nil, err
	}
	var input bytes.Buffer
	for _, file := range files {
		if plugin, ok := strings.CutPrefix(file, "tuned/plugins/plugin_"); ok {
			text, err := exec.Command("git", "-C", repo, "show", commit+":"+file).Output()
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&input, "%s\n%s\x00", strings.TrimSuffix(plugin, ".py"), text)
		}
	}
	cmd := exec.Command("python3", "-c", pluginOptions)
	cmd.Stdin, cmd.Stderr = &input, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		names[strings.TrimSpace(line)] = true
	}
	return []tally{compareNames("options of tuned", commit[:10], "Python's ast: keys in _get_config_options", names, func(pair string) bool {
		plugin, option, _ := strings.Cut(pair, " ")
		options, _ := tuned.Options(plugin)
		return slices.Contains(options, option)
	}, never)}, nil
}

// mirrorOf is the folder of a repository in a folder of mirrors.
func mirrorOf(mirror, repo string) string {
	dir := filepath.Join(mirror, strings.ReplaceAll(repo, "/", "+"))
	if inner := filepath.Join(dir, "repo"); isThere(inner) {
		return inner
	}
	return dir
}

func isThere(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// countTables counts the names of every table whose sources are there.
func countTables(upstream, mirror string) (all []tally, err error) {
	add := func(t []tally, e error) { all, err = append(all, t...), errors.Join(err, e) }
	if upstream != "" {
		add(recipes(upstream))
		if systemd := filepath.Join(upstream, "systemd"); isThere(systemd) {
			add(directives(systemd))
		}
		if repo := filepath.Join(upstream, "tuned"); isThere(repo) {
			add(tunedOptions(repo))
		}
	}
	if mirror != "" {
		add(idleStates(mirror))
		add(kernels(mirror))
		if upstream != "" {
			add(interfaces(mirror, filepath.Join(upstream, "meta-tegra")))
		}
	}
	return all, err
}
