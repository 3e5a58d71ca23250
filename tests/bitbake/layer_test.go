// Package bitbake tests every generated layer with bitbake's own parser.
package bitbake

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/bitbake/bbref"
)

// Each layer below golden/ parses without a warning, gives the values of its plans, and has no
// effect until it is switched on.
func TestGoldenLayersMatchTheirPlans(t *testing.T) {
	root := filepath.Join("..", "..", "golden")
	layers := layersBelow(t, root)
	if len(layers) == 0 {
		const reason = "golden/ holds no layer (no conf/layer.conf below it)"
		if os.Getenv("YOCTUNE_REQUIRE_BITBAKE") == "1" {
			t.Fatal(reason)
		}
		t.Skip(reason)
	}
	for _, dir := range layers {
		name, err := filepath.Rel(root, dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			for _, complaint := range checkLayer(t, dir) {
				t.Error(complaint)
			}
		})
	}
}

// The checks accept a good layer and report each fault that a careless emitter could cause.
func TestReferenceParserDetectsBadLayers(t *testing.T) {
	archive, err := txtar.ParseFile(filepath.Join("testdata", "good.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	settings := func(arg string) string {
		return "INIT_MANAGER = \"systemd\"\nDISTRO_FEATURES:append = \" yoctune-small\"\n" +
			"DISTROOVERRIDES:append = \":yoctune-on-${MACHINE}\"\n" +
			"KERNEL_ARGS:append:yoctune-on-jetson-orin-nano-devkit = \" " + arg + "\"\n"
	}
	const (
		conf   = "conf/yoctune/small.conf"
		inc    = "recipes-kernel/linux/linux-yoctune-small.inc"
		append = "recipes-kernel/linux/linux-jammy-nvidia-tegra_%.bbappend"
		recipe = "recipes-yoctune/yoctune-small-config/yoctune-small-config_1.0.bb"
	)
	for _, tc := range []struct {
		name, path, text string
		want             string // part of the reported problem; "" for none
	}{
		{"the good layer", "", "", ""},
		{"an unbalanced quote", conf, settings(`isolcpus=4-5 nosmt x="y`), "unparsed line"},
		{"a value that ends its string and defines another variable", conf,
			settings("isolcpus=4-5 nosmt\"\nPREFERRED_PROVIDER_virtual/kernel = \"evil"), "sets PREFERRED_PROVIDER_virtual/kernel"},
		{"a value that runs Python", conf, settings(`isolcpus=4-5 nosmt ${@__import__('os').getcwd()}`), "runs Python"},
		{"a value that names a variable", conf, settings("isolcpus=4-5 nosmt ${MACHINE}"), "not in the plan"},
		{"an argument that is not in the plan", conf, settings("isolcpus=4-5 nosmt quiet"), `"quiet" is not in the plan`},
		{"a planned argument that is missing", conf, settings("isolcpus=4-5"), `lacks "nosmt"`},
		{"an assignment without blanks", conf, settings("isolcpus=4-5 nosmt") + "X=\"1\"\n", "lack of whitespace"},
		{"an append that acts before the layer is switched on", append, "require linux-yoctune-small.inc\n", "before it is switched on"},
		{"an append whose gate names another feature", append,
			"require ${@bb.utils.contains('DISTRO_FEATURES', 'yoctune', 'linux-yoctune-small.inc', '', d)}\n", "changes nothing"},
		{"a fragment that is not in the layer", inc,
			"FILESEXTRAPATHS:prepend := \"${THISDIR}/files:\"\nSRC_URI:append = \" file://other.cfg\"\n", "file://other.cfg is not in the layer"},
		{"a setting that reaches every relative of the machine", conf,
			strings.ReplaceAll(settings("isolcpus=4-5 nosmt"), "append:yoctune-on-", "append:"), "only shares the target's override gets KERNEL_ARGS"},
		{"a file that reaches every relative of the machine", inc,
			"FILESEXTRAPATHS:prepend := \"${THISDIR}/files:\"\nSRC_URI:append:jetson-orin-nano-devkit = \" file://yoctune-small.cfg\"\n", "only shares the target's override gets SRC_URI"},
		{"a class that does not exist", recipe, "inherit systemdd\n", "Could not inherit file"},
		{"a shell function that is never closed", recipe, "do_install() {\n    install -d x\n", "unclosed function"},
		{"a shell function with an open quote", recipe, "SRC_URI = \"\"\ndo_install() {\n    echo \"a\n}\n", "do_install"},
		{"an append for another layer that bitbake never finds",
			"dynamic-layers/other/recipes-yoctune/yoctune-small-config/yoctune-small-config_1.0.bbappend",
			"RRECOMMENDS:${PN} += \"x\"\n", "changes nothing in a build with a layer of the collection other"},
		{"an append for another layer without that layer", "conf/layer.conf",
			"BBFILES_DYNAMIC += \"!other:${LAYERDIR}/x/*.bbappend\"\n", "which is not for an append of the layer"},
		{"a recipe below WORKDIR", recipe, "SRC_URI = \"\"\nS = \"${WORKDIR}\"\n", "S is WORKDIR"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range archive.Files {
				write(t, filepath.Join(dir, f.Name), f.Data)
			}
			if tc.path == "conf/layer.conf" {
				add(t, filepath.Join(dir, tc.path), tc.text)
			} else if tc.path != "" {
				write(t, filepath.Join(dir, tc.path), []byte(tc.text))
			}
			write(t, filepath.Join(dir, "recipes-yoctune/yoctune-small-config/files/plan.json"), smallPlan(t))
			complaints := checkLayer(t, dir)
			switch {
			case tc.want == "" && len(complaints) > 0:
				t.Errorf("complaints about a good layer:\n%s", strings.Join(complaints, "\n"))
			case tc.want != "" && !strings.Contains(strings.Join(complaints, "\n"), tc.want):
				t.Errorf("no complaint has %q:\n%s", tc.want, strings.Join(complaints, "\n"))
			}
		})
	}
}

// Values as bitbake reads them, a reference for emitters.
func TestEvalMatchesBitBake(t *testing.T) {
	got := bbref.Eval(t, "A = \"1 2\"\nB = '\"'\nC = \"${A} ${@6*7} $x %\"\nC:append = \" end\"\n")
	want := map[string]string{"A": "1 2", "B": `"`, "C": "1 2 42 $x % end"}
	if !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if r := bbref.EvalAll(t, "A = \"1\n", "A = \"${@1/0}\"\n"); len(r[0].Problems) == 0 || len(r[1].Problems) == 0 {
		t.Errorf("errors of the parser are lost: %+v", r)
	}
}

func smallPlan(t *testing.T) []byte {
	t.Helper()
	arg := func(name, kind, want string) plan.Setting {
		return plan.Setting{
			ID: "kernel.args." + name, Domain: plan.DomainKernel, Select: plan.Select{Class: "cmdline", Name: name},
			Type: kind, Want: want, Compare: plan.Exact, Policy: plan.Report, Needs: plan.NeedsReflash,
		}
	}
	p := plan.Plan{
		Layer: "small", Target: "one", Board: "orin-nano-8gb", Machine: "jetson-orin-nano-devkit", Release: "scarthgap", L4T: "36.5.0",
		Settings: []plan.Setting{arg("isolcpus", plan.TypeCPUList, "4-5"), arg("nosmt", plan.TypePresent, "1")},
	}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func add(t *testing.T, path, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, append(data, text...))
}

func layersBelow(t *testing.T, root string) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(filepath.ToSlash(path), "conf/layer.conf") {
			dirs = append(dirs, filepath.Dir(filepath.Dir(path)))
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return dirs
}

func plansOf(t *testing.T, dir string) []*plan.Plan {
	t.Helper()
	var plans []*plan.Plan
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "plan.json" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		p, err := plan.Decode(bytes.NewReader(b))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		plans = append(plans, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return plans
}

// soc returns the override of a board's SoC, as meta-tegra's machines set it.
func soc(board string) string {
	switch {
	case strings.Contains(board, "thor"):
		return "tegra264"
	case strings.Contains(board, "orin"):
		return "tegra234"
	case strings.Contains(board, "xavier"):
		return "tegra194"
	default:
		return "tegra"
	}
}

// mayPreset lists the variables that a generated layer may set in its configuration. A value that
// escaped from its quotes would set another one.
var mayPreset = regexp.MustCompile(`^(` + strings.Join([]string{
	`BBPATH|BBFILES|BBFILES_DYNAMIC|BBFILE_COLLECTIONS|UNPACKDIR|YOCTUNE_LAYERS`,
	`(BBFILE_PATTERN|BBFILE_PRIORITY|LAYERVERSION|LAYERSERIES_COMPAT|LAYERDEPENDS)_[a-z][a-z0-9-]*`,
	`BB_CONF_FRAGMENT_(SUMMARY|DESCRIPTION)`,
	`INIT_MANAGER|DISTRO_FEATURES|DISTROOVERRIDES|KERNEL_ARGS`,
	`IMAGE_INSTALL|CORE_IMAGE_EXTRA_INSTALL|PACKAGE_EXCLUDE|BAD_RECOMMENDATIONS`,
	`do_fetch|BB_NUMBER_THREADS|PARALLEL_MAKE|BB_PRESSURE_MAX_(CPU|IO|MEMORY)|INHERIT`,
	`SSTATE_MIRRORS|PREMIRRORS|SSTATE_DIR|DL_DIR|BB_HASHSERVE|BB_HASHSERVE_UPSTREAM|BB_SIGNATURE_HANDLER`,
}, "|") + `)$`)

// checkLayer parses the layer once per machine and returns the problems found.
func checkLayer(t *testing.T, dir string) []string {
	t.Helper()
	var complaints []string
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	plans := plansOf(t, dir)
	if len(plans) == 0 {
		complain("the layer holds no plan.json")
	}
	for _, p := range plans {
		rel, ok := release.Lookup(p.Release)
		if !ok {
			complain("plan of %s: unknown release %q", p.Target, p.Release)
			continue
		}
		request := bbref.Request{
			Dir: dir, Machine: p.Machine, Overrides: "cuda:tegra:aarch64:" + soc(p.Board),
			UnpackDir: rel.UnpackDir, Fragments: rel.Fragments, Enable: true,
		}
		on := bbref.ParseLayer(t, request)
		for _, problem := range on.Problems {
			complain("%s", problem)
		}
		complaints = append(complaints, checkConfiguration(on, p, rel)...)
		complaints = append(complaints, checkRecipes(dir, on, p)...)
		complaints = append(complaints, checkOptional(t, request, on, rel.Series)...)
		request.Enable = false
		complaints = append(complaints, checkUnused(bbref.ParseLayer(t, request))...)
		request.Enable = true
		request.Machine, request.Overrides = p.Machine+"-relative", request.Overrides+":"+p.Machine
		complaints = append(complaints, checkRelative(bbref.ParseLayer(t, request))...)
	}
	return complaints
}

// ownKernel is the recipe that the example of a board of one's own names.
const ownKernel = "linux-yocto"

func checkConfiguration(on bbref.Layer, p *plan.Plan, rel release.Release) []string {
	var complaints []string
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	feature := "yoctune-" + p.Layer
	if got := on.Config["LAYERSERIES_COMPAT_"+p.Layer]; got != rel.Series {
		complain("LAYERSERIES_COMPAT_%s is %q, want %q", p.Layer, got, rel.Series)
	}
	if !slices.Contains(strings.Fields(on.Config["DISTRO_FEATURES"]), feature) {
		complain("DISTRO_FEATURES %q lacks %q", on.Config["DISTRO_FEATURES"], feature)
	}
	for _, name := range on.ConfigSet {
		variable, _, _ := strings.Cut(name, ":")
		// The provider is a planned choice only where the series has an RT kernel.
		if variable == "PREFERRED_PROVIDER_virtual/kernel" && rel.RTProvider != "" && on.Config[name] == rel.RTProvider {
			continue
		}
		// A board of one's own has the kernel that the configuration names.
		if p.L4T == "" && (variable == "PREFERRED_PROVIDER_virtual/kernel" && on.Config[name] == ownKernel || variable == "PREFERRED_VERSION_"+ownKernel) {
			continue
		}
		if !mayPreset.MatchString(variable) {
			complain("the configuration sets %s, which no generated layer sets", name)
		}
	}
	for _, code := range on.ConfigPython {
		complain("the configuration runs Python: ${@%s}", code)
	}
	// The stand-in machine's own argument must be kept.
	words := strings.Fields(on.Config["KERNEL_ARGS"])
	if len(words) == 0 || words[0] != "stand-in.bsp=1" {
		complain("KERNEL_ARGS %q has lost the machine's own arguments", on.Config["KERNEL_ARGS"])
	}
	planned := map[string]bool{"stand-in.bsp=1": true}
	for _, word := range kernelArgs(p) {
		planned[word] = true
		if !slices.Contains(words, word) {
			complain("KERNEL_ARGS %q lacks %q", on.Config["KERNEL_ARGS"], word)
		}
	}
	for _, word := range words {
		if !planned[word] {
			complain("KERNEL_ARGS: %q is not in the plan", word)
		}
	}
	if p.Power != nil && p.Power.Default != "" && p.Power.Table != plan.PowerHeld {
		chosen := false
		for _, r := range on.Appends {
			chosen = chosen || strings.Contains(r.Functions["do_install"], `--default "`+p.Power.Default+`"`)
		}
		if !chosen {
			complain("no do_install chooses the power mode %q of the plan", p.Power.Default)
		}
	}
	return complaints
}

// checkRelative checks the layer for a machine that is not a target but has a target's name among
// its overrides, as jetson-orin-nano-devkit-nvme has jetson-orin-nano-devkit: no setting of the
// target may apply.
func checkRelative(on bbref.Layer) []string {
	var complaints []string
	if got := strings.TrimSpace(on.Config["KERNEL_ARGS"]); got != "stand-in.bsp=1" {
		complaints = append(complaints, fmt.Sprintf("a machine that only shares the target's override gets KERNEL_ARGS %q", got))
	}
	for _, file := range slices.Sorted(maps.Keys(on.Appends)) {
		if got := strings.TrimSpace(on.Appends[file].Values["SRC_URI"]); got != "file://stand-in" {
			complaints = append(complaints, fmt.Sprintf("%s: a machine that only shares the target's override gets SRC_URI %q", file, got))
		}
	}
	return complaints
}

// kernelArgs returns the kernel arguments of the plan.
func kernelArgs(p *plan.Plan) []string {
	var words []string
	for _, s := range p.Settings {
		if s.Domain != plan.DomainKernel || s.Select.Class != "cmdline" || s.Type == plan.TypePresent && s.Want == "0" {
			continue
		}
		word := s.Select.Name
		if s.Type != plan.TypePresent {
			word += "=" + s.Want
		}
		words = append(words, word)
	}
	return words
}

func checkRecipes(dir string, on bbref.Layer, p *plan.Plan) []string {
	var complaints []string
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	layer := regexp.QuoteMeta(p.Layer)
	gate := regexp.MustCompile(`^bb\.utils\.contains\('DISTRO_FEATURES', *'yoctune-` + layer + `', *(bb\.utils\.contains_any\('MACHINE', *'[a-z0-9. -]+', *)?'[\w.-]+', *'', *d(\), *'', *d)?\)$`)
	check := func(file string, r bbref.Recipe) {
		for _, code := range r.Python {
			if !gate.MatchString(code) {
				complain("%s runs Python that is not the layer's gate: ${@%s}", file, code)
			}
		}
		for _, uri := range strings.Fields(r.Values["SRC_URI"]) {
			name, local := strings.CutPrefix(uri, "file://")
			if name, _, _ = strings.Cut(name, ";"); !local || uri == "file://stand-in" {
				continue
			}
			if !anyExists(filepath.Join(dir, filepath.Dir(file)), name, p.Machine) {
				complain("%s: file://%s is not in the layer", file, name)
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(on.Recipes)) {
		check(file, on.Recipes[file])
		raw, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			complain("%v", err)
		}
		// walnascar and later refuse this; the layer uses one spelling for every series.
		if regexp.MustCompile(`(?m)^S\s*=\s*"\$\{WORKDIR\}`).Match(raw) {
			complain("%s: S is WORKDIR, which newer series refuse: use UNPACKDIR", file)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(on.Appends)) {
		r := on.Appends[file]
		check(file, r)
		if strings.HasPrefix(file, dynamic) {
			continue // to a recipe of the layer, not to a stand-in: checkOptional
		}
		if r.Values["SRC_URI"] == "file://stand-in" && len(r.Functions) == 0 && r.Values["FILESEXTRAPATHS"] == "" {
			complain("%s changes nothing although the layer is switched on", file)
		}
	}
	return complaints
}

const dynamic = "dynamic-layers/"

// checkOptional checks the appends for layers that a build may lack. With a layer of the
// collection they change the dependencies of a recipe of this layer. Without it bitbake does not
// find them. BBFILES_DYNAMIC lists nothing else.
func checkOptional(t *testing.T, request bbref.Request, on bbref.Layer, series string) []string {
	t.Helper()
	var complaints []string
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	files := map[string][]string{} // by collection
	for file := range on.Appends {
		if rest, ok := strings.CutPrefix(file, dynamic); ok {
			collection, _, _ := strings.Cut(rest, "/")
			files[collection] = append(files[collection], file)
		}
	}
	for _, entry := range strings.Fields(on.Config["BBFILES_DYNAMIC"]) {
		collection, pattern, _ := strings.Cut(entry, ":")
		if files[collection] == nil || pattern != "<layer>/"+dynamic+collection+"/*/*/*.bbappend" {
			complain("BBFILES_DYNAMIC has %s, which is not for an append of the layer", entry)
		}
	}
	if len(files) == 0 {
		return complaints
	}
	absent := bbref.FindRecipes(t, request, series)
	for recipe, r := range absent {
		for _, file := range r.Appends {
			if strings.HasPrefix(file, dynamic) {
				complain("%s is read for %s in a build without that layer", file, recipe)
			}
		}
	}
	for collection, appends := range files {
		present := bbref.FindRecipes(t, request, series, collection)
		for _, file := range appends {
			acts := false
			for recipe, r := range present {
				acts = acts || slices.Contains(r.Appends, file) && !maps.Equal(r.Values, absent[recipe].Values)
			}
			if !acts {
				complain("%s changes nothing in a build with a layer of the collection %s", file, collection)
			}
		}
	}
	return complaints
}

// anyExists reports whether a file exists in the folders of FILESPATH and FILESOVERRIDES of a
// recipe in dir.
func anyExists(dir, name, machine string) bool {
	folders, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return false
	}
	for _, folder := range append(folders, dir) {
		for _, sub := range []string{"", "yoctune-on-" + machine} {
			if _, err := os.Stat(filepath.Join(folder, sub, name)); err == nil {
				return true
			}
		}
	}
	return false
}

// checkUnused checks that a layer that is present but not switched on changes nothing: no variable
// outside layer.conf, and no recipe of the BSP.
func checkUnused(off bbref.Layer) []string {
	var complaints []string
	for _, name := range off.ConfigSet {
		if !regexp.MustCompile(`^(BBPATH|BBFILES|BBFILES_DYNAMIC|BBFILE_\w+|UNPACKDIR|YOCTUNE_LAYERS|LAYER[A-Z]+_.*|BBFILE_(PATTERN|PRIORITY)_.*)$`).MatchString(name) {
			complaints = append(complaints, fmt.Sprintf("the layer sets %s before it is switched on", name))
		}
	}
	for _, file := range slices.Sorted(maps.Keys(off.Appends)) {
		r := off.Appends[file]
		if r.Values["SRC_URI"] != "file://stand-in" || len(r.Functions) > 0 || r.Values["FILESEXTRAPATHS"] != "" {
			complaints = append(complaints, fmt.Sprintf("%s changes the recipe before it is switched on", file))
		}
	}
	return complaints
}
