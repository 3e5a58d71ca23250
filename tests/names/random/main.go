// Command random asks a built yoctune about names of every kind: 1,000 that exist, or all, and as
// many with one slip. It counts the existing names that are refused or warned of, and the slips
// that are not found. The tables give the existing names; what the tables lack is counted against
// their sources elsewhere (package prove of this folder, and scripts/prove.sh facts).
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/directive"
	"github.com/yoctune/yoctune/schema/facts/idle"
	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/facts/netif"
	"github.com/yoctune/yoctune/schema/facts/recipe"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/sysctl"
	"github.com/yoctune/yoctune/schema/facts/system"
	"github.com/yoctune/yoctune/schema/facts/tuned"
	"github.com/yoctune/yoctune/schema/facts/variable"
	"github.com/yoctune/yoctune/schema/knob"
)

// row is the result for a kind of names.
type row struct {
	Kind     string   `json:"kind"`
	Of       string   `json:"of"` // kernel or release
	Existing int      `json:"existing"`
	Refused  int      `json:"refused"`
	Slips    int      `json:"slips"`
	Errors   int      `json:"slips_refused"`
	Warnings int      `json:"slips_warned_of"`
	Percent  float64  `json:"percent_found"`
	Wrong    []string `json:"existing_refused,omitempty"`
	Missed   []string `json:"slips_missed,omitempty"` // some
}

// kind is a kind of names, and how the program is asked about them.
type kind struct {
	name, of string
	names    []string
	skip     func(string) bool // a slip that is not tried
	// ask returns the severity of the finding about each name that has one.
	ask   func(names []string) map[string]string
	wrong []string // tried instead of slips
}

var program string

func main() {
	out := flag.String("o", "", "`file` for the record")
	limit := flag.Int("n", 1000, "`number` of names of each kind")
	only := flag.String("only", "", "`pattern` of the kinds to try")
	flag.StringVar(&program, "yoctune", "build/bin/yoctune", "`program` to ask")
	flag.Parse()
	log.SetFlags(0)
	chosen, err := regexp.Compile(*only)
	if err != nil {
		log.Fatal(err)
	}
	record := struct {
		Command  string `json:"command"`
		Real     string `json:"real"`
		StandIn  string `json:"stand-in"`
		Time     string `json:"time"`
		PerKind  int    `json:"names_of_each_kind"`
		Failures int    `json:"failures"`
		Rows     []row  `json:"rows"`
	}{
		Command: "scripts/prove.sh names", PerKind: *limit, Time: time.Now().UTC().Format(time.RFC3339),
		Real:    "the built program: vet --format json, and import --format json for the kinds that have no field",
		StandIn: "slips come from a random generator with a fixed seed: a letter changed, dropped or doubled, or two swapped",
	}
	for _, k := range kinds() {
		if !chosen.MatchString(k.name) {
			continue
		}
		r := try(k, *limit)
		if r.Refused > 0 || r.Percent < 95 {
			record.Failures++
		}
		fmt.Printf("%-18s %-10s existing %4d refused %d; slips %4d found %.1f %% (%d errors, %d warnings)\n", r.Kind, r.Of, r.Existing, r.Refused, r.Slips, r.Percent, r.Errors, r.Warnings)
		record.Rows = append(record.Rows, r)
	}
	if *out != "" {
		data, err := json.MarshalIndent(record, "", " ")
		if err == nil {
			err = os.WriteFile(*out, append(data, '\n'), 0o644)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	if record.Failures > 0 {
		os.Exit(1)
	}
}

func try(k kind, limit int) row {
	r := rand.New(rand.NewPCG(1, 2))
	all := map[string]bool{}
	for _, n := range k.names {
		all[linux.Fold(n)] = true
	}
	names := slices.Clone(k.names)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:min(limit, len(names))]
	slips := k.wrong
	for _, n := range names {
		if k.wrong != nil {
			break
		}
		for range 4 { // a slip may give another name
			if s := slip(r, n); !all[linux.Fold(s)] && !slices.Contains(slips, s) && (k.skip == nil || !k.skip(s)) {
				slips = append(slips, s)
				break
			}
		}
	}
	res := row{Kind: k.name, Of: k.of, Existing: len(names), Slips: len(slips)}
	for name, severity := range k.ask(names) {
		res.Refused++
		res.Wrong = append(res.Wrong, severity+" "+name)
	}
	slices.Sort(res.Wrong)
	found := k.ask(slips)
	for _, s := range slips {
		switch found[s] {
		case "error":
			res.Errors++
		case "":
			if len(res.Missed) < 20 {
				res.Missed = append(res.Missed, s)
			}
		default:
			res.Warnings++
		}
	}
	res.Percent = float64(1000*(res.Errors+res.Warnings)/max(len(slips), 1)) / 10
	return res
}

// slip changes, drops, doubles or swaps letters of a name, but not the first.
func slip(r *rand.Rand, name string) string {
	i := 1 + r.IntN(max(len(name)-1, 1))
	if i >= len(name) {
		return name + "x"
	}
	switch r.IntN(4) {
	case 0:
		return name[:i] + string(rune('a'+r.IntN(26))) + name[i+1:]
	case 1:
		return name[:i] + name[i+1:]
	case 2:
		return name[:i] + name[i:i+1] + name[i:]
	}
	return name[:i-1] + name[i:i+1] + name[i-1:i] + name[i+1:]
}

const series = "scarthgap"

// boards has a board and a release for each kernel that a release builds.
var boards = map[string][2]string{
	"4.9": {"agx-xavier", "kirkstone-l4t-r32.7.x"}, "5.10": {"agx-orin-64gb", "kirkstone"},
	"5.15": {"agx-orin-64gb", series}, "6.8": {"agx-orin-64gb", "wrynose"},
}

func kinds() []kind {
	all := ofRelease()
	for _, line := range []string{"4.9", "5.10", "5.15", "6.8"} {
		all = append(all, ofKernel(line)...)
	}
	return all
}

// ofKernel are the kinds that differ between kernels.
func ofKernel(line string) []kind {
	board := boards[line]
	target := func(field, value string, ids ...string) func([]string) map[string]string {
		return func(names []string) map[string]string { return vet(board, field, value, names, ids) }
	}
	var args, modules, threads, options []string
	for a := range linux.Args(line) {
		if a.Arch == "" && isName(a.Name) {
			args = append(args, a.Name)
		}
	}
	for m := range linux.Modules(line) {
		if len(m.Name) <= 56 {
			modules = append(modules, m.Name)
		}
	}
	for _, t := range linux.Threads(line) {
		if name := strings.ReplaceAll(t.Name, "#", "0"); !strings.ContainsAny(name, "*?") && len(t.Needs) == 0 && isName(strings.ReplaceAll(name, "/", "")) {
			threads = append(threads, name)
		}
	}
	var disks []string
	for _, d := range linux.Disks(line) {
		if name := strings.ReplaceAll(d.Names, "#", "0"); !isPattern(name) {
			disks = append(disks, name)
		} else if name = strings.ReplaceAll(name, "*", "a"); !isPattern(name) { // sda
			disks = append(disks, name)
		}
	}
	tree, _, err := kernel.Open(line)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range tree.Symbols {
		if s.Name != "" && len(s.Defs) > 0 {
			options = append(options, s.Name)
		}
	}
	return []kind{
		{name: "kernel arguments", of: line, names: args, skip: func(s string) bool { return !isName(s) }, ask: target("kernel.args", `"1"`, "kernel-arg-name", "kernel-arg-unknown", "kernel-arg-arch")},
		{name: "kernel options", of: line, names: options, skip: isLower, ask: func(names []string) map[string]string {
			return vetWhere(board, "kernel.config", `"y"`, names, func(d finding) bool {
				return strings.Contains(d.Message, "no such symbol") || d.ID == "kconfig-unknown"
			})
		}},
		{name: "modules", of: line, names: modules, ask: target("modules", `"blacklist"`, "module-name", "module-unknown")},
		{name: "kernel threads", of: line, names: threads, skip: func(s string) bool { return strings.HasSuffix(s, "/") }, ask: target("threads", "{nice: 1}", "thread-name", "thread-unknown")},
		{name: "disks", of: line, names: disks, skip: func(s string) bool {
			// sdv is another disk, and not a slip of sda.
			return isPattern(s) || slices.ContainsFunc(linux.Disks(line), func(d linux.Disk) bool {
				stem, lettered := strings.CutSuffix(d.Names, "*")
				return lettered && !strings.Contains(stem, "#") && strings.HasPrefix(s, stem)
			})
		}, ask: target("storage", `{readahead: "128KiB"}`, "disk-name", "disk-unknown")},
		{name: "features of interfaces", of: line, names: linux.NetFeatures(line), skip: isPattern, ask: func(names []string) map[string]string {
			return vet(board, `network."eth*".offloads`, "false", names, []string{"offload-name"})
		}},
	}
}

// isPattern reports whether a name of a disk or of a feature has other letters than those.
func isPattern(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || strings.HasPrefix(s, "-")
}

// ofRelease are the kinds that differ between releases.
func ofRelease() []kind {
	on := boards["5.15"]
	r, ok := release.Lookup(series)
	if !ok {
		log.Fatal("no release " + series)
	}
	var variables, sysctls, units, machines, recipes []string
	newest, _ := release.Lookup("master")
	for _, n := range variable.Names(series) {
		// What a newer release has removed can be refused here, too (BB_DANGLINGAPPENDS_WARNONLY).
		if was, refused := newest.FindRenamed(n); refused && was.New == "" {
			continue
		}
		if variable.Field(n) == "" && variable.Reserved(n, false) == "" && !strings.Contains(n, ":") && strings.ToUpper(n) == n {
			variables = append(variables, n)
		}
	}
	for _, key := range sysctl.Keys() {
		if f, ok := sysctl.Lookup(key); ok && slices.ContainsFunc(f.Variants, func(v sysctl.Variant) bool { return slices.Contains(v.Kernels, "5.15") }) && !strings.ContainsAny(key, "*") && !knob.ForbiddenSysctl(key) {
			sysctls = append(sysctls, key)
		}
	}
	for _, n := range directive.Names(directive.Unit) {
		if !isForeignSection(n) && directive.Lookup(directive.Unit, n, r.Systemd).State == directive.Present {
			units = append(units, n)
		}
	}
	for _, m := range r.Machines() {
		machines = append(machines, m.Name)
	}
	// A package of another name than these letters is refused by openembedded (insane.bbclass: pkgname),
	// and a recipe's name with a variable in it is one of several.
	packages := slices.DeleteFunc(slices.Collect(recipe.Names(series, recipe.Package)), isOddName)
	recipes = slices.DeleteFunc(slices.Collect(recipe.Names(series, recipe.Recipe)), isOddName)
	images := slices.Collect(recipe.Names(series, recipe.Image))
	all := []kind{
		{name: "bitbake variables", of: series, names: variables, ask: func(names []string) map[string]string {
			return build("variables", func(n string) string { return fmt.Sprintf("%q: {value: \"1\"}", n) }, names, "build-variable-unknown", "build-variable-renamed")
		}},
		{name: "packages", of: series, names: packages, ask: func(names []string) map[string]string {
			return vet(on, "packages", `"install"`, names, []string{"package-name", "package-unknown"})
		}},
		{name: "recipes", of: series, names: recipes, skip: func(s string) bool { return strings.HasSuffix(s, "-") }, ask: func(names []string) map[string]string {
			return build("parallel: recipes", func(n string) string { return fmt.Sprintf("%q: 2", n) }, names, "recipe-name")
		}},
		{name: "images", of: series, names: images, ask: eachImage},
		{name: "machines", of: series, names: machines, ask: eachMachine},
		{name: "sysctls", of: series, names: sysctls, skip: knob.ForbiddenSysctl, ask: func(names []string) map[string]string {
			return vet(on, "sysctl", "1", names, []string{"sysctl-unknown", "sysctl-absent"})
		}},
		{name: "unit directives", of: series, names: units, skip: isForeignSection, ask: eachDirective},
	}
	var services, users []string
	for n := range system.Names(series, system.Unit) {
		if strings.HasSuffix(n, ".service") && !strings.Contains(n, "@") && !strings.HasPrefix(n, "yoctune") {
			services = append(services, n)
		}
	}
	for n := range system.Names(series, system.User) {
		users = append(users, n)
	}
	all = append(all,
		kind{name: "units", of: series, names: services, skip: func(s string) bool { return !strings.HasSuffix(s, ".service") || strings.Contains(s, "@") }, ask: func(names []string) map[string]string {
			return vet(on, "services", "{nice: 5}", names, []string{"unit-name", "unit-unknown"})
		}},
		kind{name: "users", of: series, names: users, ask: eachUser})
	for _, k := range []string{directive.Link, directive.Network, directive.NetDev} {
		var names []string
		for _, n := range directive.Names(k) {
			if directive.Lookup(k, n, r.Systemd).State == directive.Present {
				names = append(names, n)
			}
		}
		all = append(all, kind{name: "." + k + " directives", of: series, names: names, skip: isSectionless, ask: func(names []string) map[string]string { return networkd(k, names) }})
	}
	all = append(all, ofBuild()...)
	all = append(all,
		kind{name: "interfaces", of: series, names: interfaces(), ask: func(names []string) map[string]string {
			return vet(on, "network", "{mtu: 1400}", names, []string{"interface-name", "interface-unknown"})
		}},
		kind{name: "container images", of: series, names: containerImages(r.L4T, r.CUDA, true), wrong: containerImages(r.L4T, r.CUDA, false), ask: eachContainer})
	for _, of := range [][2]string{{"nano-4gb", "kirkstone-l4t-r32.7.x"}, {"agx-orin-64gb", "kirkstone"}} {
		facts, _ := release.Lookup(of[1])
		soc, _ := board.Lookup(of[0])
		all = append(all, kind{name: "idle states", of: of[1], names: idle.States(soc.SoC, facts.Line()), ask: func(names []string) map[string]string {
			return vet(of, "cpu.idleStates", "false", names, []string{"idle-state"})
		}})
	}
	return append(all, kind{name: "options of tuned", of: series, names: tunedOptions(), skip: isSectionless, ask: importTuned})
}

// eachContainer asks about the images that a service runs.
func eachContainer(names []string) map[string]string {
	return ask(names, func(d finding) (string, bool) {
		i := slices.IndexFunc(names, func(n string) bool { return strings.Contains(d.Message, n+" of ") })
		if i < 0 {
			return "", false
		}
		return names[i], d.ID == "container-l4t" || d.ID == "container-cuda"
	}, func(b *strings.Builder, names []string) {
		fmt.Fprintf(b, "targets: cam: {board: %q, release: %q, services: {\n", boards["5.15"][0], series)
		for i, n := range names {
			fmt.Fprintf(b, "\"c%d.service\": {exec: [\"/usr/bin/docker\", \"run\", %q], external: true}\n", i, n)
		}
		b.WriteString("}}\n")
	})
}

// ofBuild are the features and the options of recipes.
func ofBuild() []kind {
	words := func(field string) func([]string) map[string]string {
		return func(names []string) map[string]string {
			return ask(names, func(d finding) (string, bool) { return strings.Trim(d.Got, `"`), d.ID == "build-feature" }, func(b *strings.Builder, names []string) {
				fmt.Fprintf(b, "targets: cam: {board: %q, release: %q}\nbuild: %s: [", boards["5.15"][0], series, field)
				for _, n := range names {
					fmt.Fprintf(b, "%q, ", n)
				}
				b.WriteString("]\n")
			})
		}
	}
	collect := func(of recipe.Kind) []string {
		return slices.DeleteFunc(slices.Collect(recipe.Names(series, of)), isOddName)
	}
	var options []string
	for r := range recipe.Names(series, recipe.Recipe) {
		for _, o := range recipe.Options(series, r) {
			if !isOddName(r) && !isOddName(o) {
				options = append(options, r+" "+o)
			}
		}
	}
	return []kind{
		{name: "distro features", of: series, names: collect(recipe.DistroFeature), skip: isOddName, ask: words("distroFeatures: append")},
		{name: "machine features", of: series, names: collect(recipe.MachineFeature), skip: isOddName, ask: words("machineFeatures: append")},
		{name: "image features", of: series, names: collect(recipe.ImageFeature), skip: isOddName, ask: words("image: features")},
		{name: "options of recipes", of: series, names: options, skip: func(s string) bool {
			r, o, ok := strings.Cut(s, " ")
			// A slip in the recipe's name is another kind, and one in a short word may give another option.
			return !ok || isOddName(o) || o == "" || !recipe.Has(series, r, recipe.Recipe) || slices.Contains(recipe.Options(series, r), o)
		}, ask: eachOption},
	}
}

// eachOption asks about pairs of a recipe and an option.
func eachOption(names []string) map[string]string {
	recipeOf := regexp.MustCompile(`packageConfig\."?([a-z0-9.+-]+?)"?\.append`)
	return ask(names, func(d finding) (string, bool) {
		m := recipeOf.FindStringSubmatch(d.Path)
		if m == nil {
			return "", false
		}
		return m[1] + " " + strings.Trim(d.Got, `"`), d.ID == "build-option"
	}, func(b *strings.Builder, names []string) {
		fmt.Fprintf(b, "targets: cam: {board: %q, release: %q}\nbuild: packageConfig: {\n", boards["5.15"][0], series)
		of := map[string][]string{}
		for _, n := range names {
			r, o, _ := strings.Cut(n, " ")
			of[r] = append(of[r], strconv.Quote(o))
		}
		for r, list := range of {
			fmt.Fprintf(b, "%q: append: [%s]\n", r, strings.Join(list, ", "))
		}
		b.WriteString("}\n")
	})
}

// interfaces lists names that drivers of the kernel and the BSP give, and those of the ports of the board.
func interfaces() (names []string) {
	data, err := os.ReadFile("schema/facts/netif/data/interfaces.txt")
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		switch words[0] {
		case "kernel", "bsp":
			for _, w := range words[1:] {
				names = append(names, strings.TrimRight(w, "0123456789*")+"0")
			}
		}
	}
	tree, ok := netif.FindTree("tegra234-p3737-0000+p3701-0000")
	if !ok {
		log.Fatal("no device tree of the board")
	}
	for _, p := range tree.Ports {
		name := fmt.Sprintf("enP%dp1s0", p.Domain)
		if p.Domain == 0 {
			name = "enp1s0"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// containerImages lists names of container images whose tags fit the L4T and CUDA of a release, or do not.
func containerImages(l4t, cuda string, fits bool) (names []string) {
	var major, minor int
	if _, err := fmt.Sscanf(cuda, "%d.%d", &major, &minor); err != nil {
		log.Fatal(err)
	}
	for _, tag := range []string{"r32.5.0", "r32.7.1", "r34.1.0", "r35.2.1", "r35.4.1", "r36.2.0", "r36.3.0", "r36.4.0", "r36.4.3", "r38.2.0"} {
		// Containers run from 36.4 on with every later 36.
		if strings.HasPrefix(tag, "r36.4") == fits && strings.HasPrefix(l4t, "36.") {
			names = append(names, "dustynv/l4t-pytorch:"+tag, "registry.example.com/nvidia/l4t-jetpack:"+tag, "registry.example.com:5000/vision/detector:"+tag+"-cu126-22.04", "registry.example.com/nvidia/l4t-ml:"+tag+"-py3")
		}
	}
	for _, v := range [][2]int{{10, 2}, {11, 4}, {11, 8}, {12, 2}, {12, 4}, {12, 6}, {12, 8}, {12, 9}, {13, 0}} {
		if (v[0] < major || v[0] == major && v[1] <= minor) == fits {
			names = append(names, fmt.Sprintf("registry.example.com/nvidia/cuda:%d.%d.0-runtime-ubuntu22.04", v[0], v[1]), fmt.Sprintf("registry.example.com/nvidia/l4t-cuda:%d.%d.14-runtime", v[0], v[1]), fmt.Sprintf("dustynv/onnxruntime:1.20-cu%d%d-22.04", v[0], v[1]))
		}
	}
	return names
}

func isSectionless(s string) bool {
	_, rest, ok := strings.Cut(s, ".")
	return !ok || rest == "" || strings.HasPrefix(s, ".")
}

func isOddName(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789.+-") != ""
}

// isForeignSection reports whether a name is in no section that a service has.
func isForeignSection(s string) bool {
	section, word, _ := strings.Cut(s, ".")
	return !slices.Contains([]string{"Unit", "Service", "Install"}, section) || word == "" || strings.Contains(word, ".")
}

func isLower(s string) bool { return strings.ToUpper(s) != s }

// isName reports whether a name can be an argument's, and no rule of another kind is about it.
func isName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == "" && s[0] != '.' && s[0] != '-' && s[0] != '_' && len(s) <= 63
}

func tunedOptions() []string {
	var names []string
	for _, plugin := range tuned.Plugins() {
		options, _ := tuned.Options(plugin)
		for _, o := range options {
			names = append(names, plugin+"."+o)
		}
	}
	return names
}

// finding is one of `vet --format json`.
type finding struct{ ID, Severity, Message, Path, Got string }

const head = "package box\nimport \"github.com/yoctune/yoctune/schema\"\nschema.#Config & {\nlayer: {name: \"box\", maintainer: \"x <x@example.com>\"}\n"

func run(files map[string]string, args ...string) []byte {
	dir, err := os.MkdirTemp("", "names")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "DIR", dir)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if _, isExit := err.(*exec.ExitError); err != nil && !isExit {
		log.Fatal(err)
	}
	if len(text) == 0 {
		log.Fatalf("%s %v: nothing: %s", program, args, stderr.String())
	}
	return text
}

func findings(text []byte) []finding {
	var all []finding
	for line := range bytes.Lines(text) {
		var d finding
		if err := json.Unmarshal(line, &d); err != nil {
			log.Fatalf("%s: %v", line, err)
		}
		if d.ID != "" {
			all = append(all, d)
		}
	}
	return all
}

func vet(board [2]string, field, value string, names, ids []string) map[string]string {
	return vetWhere(board, field, value, names, func(d finding) bool { return slices.Contains(ids, d.ID) })
}

// vetWhere runs vet on a target that sets names, and returns the severity of the findings about
// them that count.
func vetWhere(board [2]string, field, value string, names []string, counts func(finding) bool) map[string]string {
	return ask(names, func(d finding) (string, bool) {
		name, ok := nameAfter(d.Path, field+".")
		return name, ok && counts(d)
	}, func(b *strings.Builder, names []string) {
		fmt.Fprintf(b, "targets: cam: {board: %q, release: %q\n%s: {\n", board[0], board[1], strings.ReplaceAll(field, ".", ": "))
		for _, n := range names {
			fmt.Fprintf(b, "%q: %s\n", n, value)
		}
		b.WriteString("}}\n")
	})
}

// ask runs vet on a configuration that sets names, until the language refuses none of them: only
// then the rules run. about returns the name that a finding is about, and whether it counts; what
// the language refuses counts as well.
func ask(names []string, about func(finding) (string, bool), write func(*strings.Builder, []string)) map[string]string {
	result := map[string]string{}
	for {
		var b strings.Builder
		b.WriteString(head)
		write(&b, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return result[n] != "" }))
		b.WriteString("}\n")
		again, syntax := false, ""
		for _, d := range findings(run(map[string]string{"config.cue": b.String()}, "vet", "DIR", "--format", "json")) {
			name, counts := about(d)
			isSyntax := strings.HasPrefix(d.ID, "YT") && d.Severity == "error"
			if isSyntax {
				syntax = d.Path + ": " + d.Message
			}
			if (isSyntax || counts) && slices.Contains(names, name) && result[name] != "error" {
				result[name], again = d.Severity, again || isSyntax
			}
		}
		if !again && syntax != "" {
			log.Fatal(syntax)
		}
		if !again {
			return result
		}
	}
}

// nameAfter is the element of a path that follows a field.
func nameAfter(path, field string) (string, bool) {
	_, rest, ok := strings.Cut(path, field)
	if !ok {
		return "", false
	}
	if quoted, isQuoted := strings.CutPrefix(rest, `"`); isQuoted {
		name, _, _ := strings.Cut(quoted, `"`)
		return name, true
	}
	name, _, _ := strings.Cut(rest, ".")
	return name, true
}

func build(field string, write func(string) string, names []string, ids ...string) map[string]string {
	return ask(names, func(d finding) (string, bool) {
		name, ok := nameAfter(d.Path, strings.ReplaceAll(field, ": ", ".")+".")
		return name, ok && slices.Contains(ids, d.ID)
	}, func(b *strings.Builder, names []string) {
		fmt.Fprintf(b, "targets: cam: {board: %q, release: %q}\nbuild: %s: {\n", boards["5.15"][0], series, field)
		for _, n := range names {
			b.WriteString(write(n) + "\n")
		}
		b.WriteString("}\n")
	})
}

func eachImage(names []string) map[string]string {
	result := map[string]string{}
	for _, n := range names {
		text := fmt.Sprintf("%stargets: cam: {board: %q, release: %q}\nbuild: kas: image: %q\n}\n", head, boards["5.15"][0], series, n)
		for _, d := range findings(run(map[string]string{"config.cue": text}, "vet", "DIR", "--format", "json")) {
			if d.ID == "recipe-name" || strings.HasPrefix(d.ID, "YT") {
				result[n] = d.Severity
			}
		}
	}
	return result
}

func eachMachine(names []string) map[string]string {
	var ids []string
	for _, line := range strings.Split(string(run(nil, "facts", "list")), "\n") {
		if id, rest, ok := strings.Cut(line, " "); ok && strings.Contains(rest, "Jetson ") {
			ids = append(ids, id)
		}
	}
	result := map[string]string{}
	for _, n := range names {
		worst := "error"
		for _, board := range ids { // some board has the machine
			text := fmt.Sprintf("%stargets: cam: {board: %q, release: %q, machine: %q}\n}\n", head, board, series, n)
			severity := ""
			for _, d := range findings(run(map[string]string{"config.cue": text}, "vet", "DIR", "--format", "json")) {
				if d.Severity == "error" {
					severity = "error"
				}
			}
			if severity == "" {
				worst = ""
				break
			}
		}
		if worst != "" {
			result[n] = worst
		}
	}
	return result
}

// brought reports whether a recipe creates a user: vet's warning is then that no package of the
// configuration does, which names the package and refuses no name.
func brought(user string) bool {
	_, ok := system.Find(series, system.User, user)
	return ok
}

func eachUser(names []string) map[string]string {
	field := regexp.MustCompile(`services\."u(\d+)\.service"\.user`)
	return ask(names, func(d finding) (string, bool) {
		if m := field.FindStringSubmatch(d.Path); m != nil {
			i, err := strconv.Atoi(m[1])
			return names[i], err == nil && (d.ID == "service-user" && !brought(names[i]) || d.ID == "user-name")
		}
		return "", false
	}, func(b *strings.Builder, left []string) {
		fmt.Fprintf(b, "targets: cam: {board: %q, release: %q, services: {\n", boards["5.15"][0], series)
		for i, n := range names {
			if slices.Contains(left, n) {
				fmt.Fprintf(b, "\"u%d.service\": {exec: [\"/bin/true\"], user: %q}\n", i, n)
			}
		}
		b.WriteString("}}\n")
	})
}

func eachDirective(names []string) map[string]string {
	return ask(names, func(d finding) (string, bool) {
		_, name, _ := strings.Cut(d.Path, ".unit.")
		return strings.ReplaceAll(name, `"`, ""), d.ID == "unit-directive" || d.ID == "unit-directive-unknown"
	}, func(b *strings.Builder, names []string) {
		fmt.Fprintf(b, "targets: cam: {board: %q, release: %q, services: \"a.service\": unit: {\n", boards["5.15"][0], series)
		for _, n := range names {
			section, word, _ := strings.Cut(n, ".")
			fmt.Fprintf(b, "%q: %q: \"1\"\n", section, word)
		}
		b.WriteString("}}\n")
	})
}

// importLines imports a file of SECTION.NAME settings, and returns the lines whose reason has a
// text.
func importLines(file string, names []string, reasons ...string) map[string]string {
	// A longer file is not read.
	const most = 400
	result := map[string]string{}
	for len(names) > most {
		maps.Copy(result, importLines(file, names[:most], reasons...))
		names = names[most:]
	}
	text, of := "", map[int]string{}
	number := 0
	for _, n := range names {
		section, word, _ := strings.Cut(n, ".")
		text += fmt.Sprintf("[%s]\n%s=1\n", section, word)
		number += 2
		of[number] = n
	}
	for line := range bytes.Lines(run(map[string]string{file: text}, "import", "DIR/"+file, "--board", boards["5.15"][0], "--release", series, "--all", "--format", "json", "-o", "DIR/out.cue")) {
		var l struct {
			Line int
			Why  string
		}
		if err := json.Unmarshal(line, &l); err != nil {
			log.Fatalf("%s: %v", line, err)
		}
		if slices.ContainsFunc(reasons, func(reason string) bool { return strings.Contains(l.Why, reason) }) {
			result[of[l.Line]] = "warning"
		}
	}
	return result
}

func networkd(kind string, names []string) map[string]string {
	return importLines("10-x."+kind, names, " has no ")
}

func importTuned(names []string) map[string]string {
	return importLines("tuned.conf", names, "tuned has no plugin", "has no option")
}
