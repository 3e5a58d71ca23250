package checklayer

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
)

// Build folders.
const (
	quickBuild = "quick" // masked, layer enabled, tasks can run
	plainBuild = "plain" // masked, layer enabled, all its settings in force
	unusedCase = "unused"
	worldBuild = "world"
	worldCheck = "world-check"
)

// sampleRecipes returns the recipes of the base system whose signatures yocto-check-layer
// compares in quick mode, besides those that the layer appends to. The launcher depends on
// the kernel, which is not part of a world build by itself.
func (g *rig) sampleRecipes() []string {
	names := []string{"netbase", "ca-certificates"}
	if g.src.MetaTegra != "" {
		names = append(names, "tegra-nvpmodel", "tegra-nvpower", "l4t-launcher-extlinux", "cboot-extlinux")
	}
	return names
}

// errorLines returns the error lines of a program's output, or its last lines if it failed
// without one.
func errorLines(out string, err error) []string {
	lines := errorsIn(out)
	if err != nil && len(lines) == 0 {
		lines = append([]string{err.Error()}, lastLines(out, 12)...)
	}
	return lines
}

func failedOutcome(err error) outcome { return outcome{errors: []string{err.Error()}} }

// writeEnabled writes a masked build folder with the layer enabled.
func (g *rig) writeEnabled(build string, extra []string) error {
	s := g.standIns[build]
	if s == nil {
		s = newStandIns(filepath.Join(g.work, "stand-ins", build))
		g.standIns[build] = s
		if err := os.RemoveAll(s.Dir); err != nil {
			return err
		}
		// The first parse must see the recipes of the user only.
		empty := *s
		empty.Recipes, empty.Tasks = nil, nil
		if err := empty.write(g.src.Series); err != nil {
			return err
		}
	}
	return g.configure(build, conf{
		Layers: append(g.src.layers(), g.layer.Dir, s.Dir),
		Lines:  slices.Concat(g.localConf(), g.layer.enableLines(g.src.Fragments), extra, g.maskLines(g.layer.appended())),
	})
}

// configureQuick writes the build folder in which recipes are parsed and tasks can run.
func (g *rig) configureQuick() error {
	return g.writeEnabled(quickBuild, g.rigLines())
}

// checkParse reads the layer, the recipes it appends to and the whole configuration.
func (g *rig) checkParse(ctx context.Context, log string) outcome {
	if err := g.configureQuick(); err != nil {
		return failedOutcome(err)
	}
	return g.parseOutcome(g.bitbake(ctx, quickBuild, log, "bitbake", "-p"))
}

// parseOutcome returns what bitbake reports when it parses.
func (g *rig) parseOutcome(out string, err error) outcome {
	o := outcome{errors: append(errorLines(out, err), g.ownWarnings(out)...)}
	if n := parsedIn(out); n != "" {
		o.notes = []string{n}
	}
	return o
}

// ownWarnings returns the warnings about files of the layer. A generated layer causes none.
func (g *rig) ownWarnings(out string) []string {
	var found []string
	for _, s := range strings.Split(out, "\n") {
		// The first warning follows an unfinished progress line.
		_, warning, ok := strings.Cut(s, "WARNING:")
		if s = "WARNING:" + warning; ok && strings.Contains(s, g.layer.Dir) && !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	return found
}

// checkAppends checks that each .bbappend found its recipe.
func (g *rig) checkAppends(ctx context.Context, log string) outcome {
	out, err := g.bitbake(ctx, quickBuild, log, "bitbake-layers", "show-appends")
	o := g.appendsOutcome(showAppends(out))
	o.errors = append(errorLines(out, err), o.errors...)
	return o
}

// appendsOutcome checks that each append of the layer applies to a recipe.
func (g *rig) appendsOutcome(applied map[string][]appendedTo) outcome {
	var o outcome
	for i := range g.layer.Appends {
		a := &g.layer.Appends[i]
		to := applied[filepath.Join(g.layer.Dir, a.File)]
		if len(to) == 0 {
			o.errors = append(o.errors, fmt.Sprintf("%s applies to no recipe", a.File))
			continue
		}
		a.Unused = !slices.ContainsFunc(to, func(t appendedTo) bool { return !t.Skipped })
		for _, t := range to {
			note := a.File + " → " + t.Recipe
			if t.Skipped {
				note += " (not chosen for this machine)"
			}
			o.notes = append(o.notes, note)
		}
	}
	return o
}

// builtRecipes returns the appended recipes that this machine builds.
func (g *rig) builtRecipes() []string {
	var names []string
	for _, a := range g.layer.Appends {
		if !a.Unused && !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	return names
}

// checkDependencies resolves the task graph of the layer's recipes and of those it
// appends to.
func (g *rig) checkDependencies(ctx context.Context, log string) outcome {
	targets := append([]string{"world"}, g.builtRecipes()...)
	for _, r := range g.layer.Recipes {
		targets = append(targets, r.Name)
	}
	out, err := g.resolve(ctx, quickBuild, log, targets)
	s := g.standIns[quickBuild]
	o := outcome{
		errors: errorLines(out, err),
		notes:  []string{fmt.Sprintf("stand-ins for %d recipes and %d packages", len(s.Recipes), len(s.Packages))},
	}
	for _, name := range s.Unknown {
		o.errors = append(o.errors, fmt.Sprintf("the layer needs %q, which none of the checkouts provides; give the layer that does with --extra-layer", name))
	}
	if len(s.Trusted) > 0 {
		o.notes = append(o.notes, "not verified, because these packages exist only after packaging: "+strings.Join(s.Trusted, " "))
	}
	o.errors = append(o.errors, fatalWarnings(out)...)
	return o
}

// checkVariables compares final values with the promises of the layer and its plan.
func (g *rig) checkVariables(ctx context.Context, log string) outcome {
	answer, o := g.readQuickBuild(ctx, log)
	if len(o.errors) > 0 {
		return o
	}
	return g.compareValues(ctx, log, answer)
}

// compareValues compares the configuration of a build folder in which all settings of the layer
// are in force, and the variables of its recipes, with the promises.
func (g *rig) compareValues(ctx context.Context, log string, answer reading) outcome {
	var extra []string
	if !g.layer.namesHashServer() {
		// Otherwise bitbake would start a server in the folder of the user's builds. It
		// contacts a server with an address for tasks only, and none runs here.
		extra = []string{`BB_HASHSERVE:forcevariable = "localhost:1"`}
	}
	if err := g.writeEnabled(plainBuild, extra); err != nil {
		return failedOutcome(err)
	}
	out, err := g.bitbake(ctx, plainBuild, log, "bitbake", "-e")
	if err != nil {
		return outcome{errors: errorLines(out, err)}
	}
	values := environment(out)
	var o outcome
	overrides := strings.Split(values["OVERRIDES"], ":")
	want := planPromises(g.layer.Plans)
	if len(g.layer.Plans) == 0 {
		o.notes = append(o.notes, fmt.Sprintf("the layer has no plan.json for %s: only its settings file was compared", g.opt.Machine))
	}
	for _, name := range g.layer.Settings {
		want = append(want, collectPromises(g.layer.SettingLines[name], overrides)...)
	}
	if got := strings.Fields(values["LAYERSERIES_COMPAT_"+g.layer.Collection]); !slices.ContainsFunc(got, func(s string) bool { return slices.Contains(g.src.Series, s) }) {
		o.errors = append(o.errors, fmt.Sprintf("LAYERSERIES_COMPAT_%s is %q, openembedded-core is %s", g.layer.Collection, strings.Join(got, " "), strings.Join(g.src.Series, " ")))
	}
	o.comparePromises(want, values, "configuration")
	if missed := g.layer.explainMissedKernel(values); missed != "" {
		o.errors = append(o.errors, missed)
	}

	for _, pn := range g.builtRecipes() {
		values := answer.values(pn, &o)
		var own []line
		for _, a := range g.layer.Appends {
			if a.Name == pn {
				own = append(own, a.Lines...)
			}
		}
		o.comparePromises(collectPromises(own, strings.Split(values["OVERRIDES"], ":")), values, pn)
	}
	for _, r := range g.layer.Recipes {
		values := answer.values(r.Name, &o)
		o.comparePromises(collectPromises(r.Lines, strings.Split(values["OVERRIDES"], ":")), values, r.Name)
	}
	return o
}

// recipeValues returns the variables of one recipe, or the lines of an error. It adds a note
// if the recipe is not available for this machine and therefore has no variables.
func (g *rig) recipeValues(ctx context.Context, log, pn string, o *outcome) (map[string]string, []string) {
	if v, ok := g.values[pn]; ok {
		return v, nil
	}
	out, err := g.bitbake(ctx, quickBuild, log, "bitbake", "-e", pn)
	if err == nil {
		g.values[pn] = environment(out)
		return g.values[pn], nil
	}
	if why := skipReason(out, pn); why != "" {
		o.notes = append(o.notes, pn+" is not available: "+why)
		return map[string]string{}, nil
	}
	return nil, errorLines(out, err)
}

var skippedRecipe = lazyregexp.New(`'?(\S+?)'? was skipped: (.*)`)

// skipReason returns bitbake's reason for leaving a recipe out.
func skipReason(out, pn string) string {
	for _, m := range skippedRecipe.FindAllStringSubmatch(out, -1) {
		if strings.HasSuffix(m[1], pn) || strings.Contains(m[1], "/"+pn+"_") {
			return strings.TrimSpace(m[2])
		}
	}
	return ""
}

// comparePromises adds an error for each expectation that does not hold, and counts the others.
func (o *outcome) comparePromises(want []promise, values map[string]string, where string) {
	if len(values) == 0 {
		return
	}
	held := 0
	for _, p := range want {
		v, set := values[p.Variable]
		if why := p.explainBroken(v, set); why != "" {
			o.errors = append(o.errors, where+": "+why)
		} else {
			held++
		}
	}
	o.notes = append(o.notes, fmt.Sprintf("%s: %d values as expected", where, held))
}

var (
	// Classes whose tasks depend on recipes that this check does not build.
	classesNotBuilt = []string{"cuda", "go", "go-mod", "go-vendor", "cmake", "kernel", "module", "image", "core-image"}
	remoteURI       = lazyregexp.New(`\b(https?|git|ftp|ssh|gitsm|npm|crate|gomod)://`)
)

// checkPackaging runs do_package_qa of a recipe with all tasks before it, and
// do_populate_lic, which looks for the recipe's licences and their texts.
func (g *rig) checkPackaging(ctx context.Context, log string, r recipe) outcome {
	if slices.Contains(r.Classes, "packagegroup") {
		return outcome{skip: "a package group installs nothing; its dependencies were resolved"}
	}
	if i := slices.IndexFunc(r.Classes, func(class string) bool { return slices.Contains(classesNotBuilt, class) }); i >= 0 {
		return outcome{skip: fmt.Sprintf("it inherits %s, which needs a compiler to be built first", r.Classes[i])}
	}
	if g.pseudo == "" {
		return outcome{skip: "pseudo is missing on the host, and installing files needs it (on Debian: apt-get install pseudo)"}
	}
	var o outcome
	values, lines := g.recipeValues(ctx, log, r.Name, &o)
	switch {
	case lines != nil:
		return outcome{errors: lines}
	case len(values) == 0:
		return outcome{skip: strings.Join(o.notes, "; ")}
	case remoteURI.MatchString(values["SRC_URI"]):
		return outcome{skip: "its sources need the network, which this check does not use"}
	}
	out, err := g.bitbake(ctx, quickBuild, log, "bitbake", r.Name+":do_package_qa", r.Name+":do_populate_lic")
	o = outcome{errors: errorLines(out, err)}
	// Some distributions report QA issues as warnings. They count as errors here.
	for _, s := range strings.Split(out, "\n") {
		if strings.HasPrefix(s, "WARNING: "+r.Name+"-") && strings.Contains(s, "QA Issue") && !slices.Contains(o.errors, s) {
			o.errors = append(o.errors, s)
		}
	}
	return o
}

// checkInstalledFiles compares the recipe's image folder with its source files. Each file
// must be there byte for byte and writable only by its owner, and the plan must have the path
// that yoctuned reads.
func (g *rig) checkInstalledFiles(ctx context.Context, log string, r recipe) outcome {
	var o outcome
	values, lines := g.recipeValues(ctx, log, r.Name, &o)
	if lines != nil {
		return outcome{errors: lines}
	}
	given := map[[sha256.Size]byte]string{}
	for _, uri := range strings.Fields(values["SRC_URI"]) {
		name, _, _ := strings.Cut(strings.TrimPrefix(uri, "file://"), ";")
		if isLicenceText(values["LIC_FILES_CHKSUM"], name) {
			continue
		}
		file, ok := findFile(name, strings.Split(values["FILESPATH"], ":"), strings.Split(values["FILESOVERRIDES"], ":"))
		if !ok {
			o.errors = append(o.errors, fmt.Sprintf("%s of SRC_URI is in no folder of FILESPATH", uri))
			continue
		}
		var err error
		if isUnpacked(uri) {
			var sum [sha256.Size]byte
			sum, err = unpackedSum(file)
			given[sum] = file
		} else {
			err = eachFile(file, func(f foundFile) { given[f.sum] = f.path })
		}
		if err != nil {
			return failedOutcome(err)
		}
	}
	missing := maps.Clone(given)
	image := values["D"]
	err := eachFile(image, func(f foundFile) {
		note := strings.TrimPrefix(f.path, image)
		if f.mode.Perm()&0o022 != 0 || f.mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			o.errors = append(o.errors, fmt.Sprintf("%s is installed with mode %v", note, f.mode))
		}
		if _, ok := given[f.sum]; ok {
			delete(missing, f.sum)
		} else {
			note += " (generated by the recipe)"
		}
		o.notes = append(o.notes, note)
	})
	if err != nil {
		return failedOutcome(err)
	}
	for _, p := range slices.Sorted(maps.Values(missing)) {
		o.errors = append(o.errors, fmt.Sprintf("%s is in SRC_URI of %s but is not installed unchanged", p, r.Name))
	}
	if len(given) == 0 {
		o.errors = append(o.errors, r.Name+" installs none of the layer's files")
	}
	for _, p := range g.layer.Plans {
		if r.Name != "yoctune-"+p.Layer+"-config" {
			continue
		}
		if doc, err := readPlan(filepath.Join(image, "usr/lib/yoctune/plan.json")); err != nil {
			o.errors = append(o.errors, "installed plan: "+strings.ReplaceAll(err.Error(), image, ""))
		} else if doc.Digest != p.Digest {
			o.errors = append(o.errors, fmt.Sprintf("/usr/lib/yoctune/plan.json has the digest %s, want %s of target %s", doc.Digest, p.Digest, p.Target))
		}
	}
	return o
}

// isUnpacked reports whether bitbake replaces a file by the one that is compressed in it.
func isUnpacked(uri string) bool {
	name, parameters, _ := strings.Cut(uri, ";")
	return strings.HasSuffix(name, ".gz") && !strings.HasSuffix(name, ".tar.gz") && !slices.Contains(strings.Split(parameters, ";"), "unpack=0")
}

// unpackedSum returns the digest of what a file compressed by gzip contains.
func unpackedSum(name string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return sum, err
	}
	defer func() { _ = f.Close() }()
	r, err := gzip.NewReader(f)
	if err != nil {
		return sum, fmt.Errorf("%s: %w", name, err)
	}
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return sum, fmt.Errorf("%s: %w", name, err)
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// isLicenceText reports whether a file is a licence text, which bitbake keeps beside
// the packages and not in them.
func isLicenceText(checksums, name string) bool {
	return slices.ContainsFunc(strings.Fields(checksums), func(uri string) bool {
		p, _, _ := strings.Cut(strings.TrimPrefix(uri, "file://"), ";")
		return strings.HasSuffix("/"+p, "/"+strings.TrimPrefix(name, "/"))
	})
}

// findFile looks for a file as bitbake's file fetcher does.
func findFile(name string, paths, overrides []string) (string, bool) {
	if filepath.IsAbs(name) { // of the build machine, not of the layer
		_, err := os.Stat(name)
		return name, err == nil
	}
	for _, dir := range paths {
		for i := len(overrides) - 1; i >= -1; i-- {
			candidate := filepath.Join(dir, name)
			if i >= 0 {
				candidate = filepath.Join(dir, overrides[i], name)
			}
			if _, err := os.Stat(candidate); err == nil {
				return candidate, true
			}
		}
	}
	return "", false
}

type foundFile struct {
	path string
	mode fs.FileMode
	sum  [sha256.Size]byte
}

// eachFile calls seen for each regular file at or below path.
func eachFile(path string, seen func(foundFile)) error {
	return filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		seen(foundFile{p, info.Mode(), sha256.Sum256(b)})
		return nil
	})
}

// runYoctoCheckLayer runs openembedded-core's own layer test, signatures included, with all
// other recipes masked. A layer that is present but not enabled must not change any task's
// signature.
func (g *rig) runYoctoCheckLayer(ctx context.Context, log string) outcome {
	s, lines, o := g.resolveSamples(ctx, log, unusedCase, nil)
	if len(o.errors) > 0 {
		return o
	}
	c := conf{Lines: lines}
	// The test adds the layer itself, so the build folder must not have it.
	c.Layers = append(g.src.layers(), s.Dir)
	if err := g.configure(unusedCase, c); err != nil {
		return failedOutcome(err)
	}
	o = g.checkLayer(ctx, unusedCase, log)
	o.notes = append(o.notes, "signatures compared for the appended recipes and "+strings.Join(g.sampleRecipes(), ", "))
	return o
}

// resolveSamples resolves a masked world of the samples, with the layer present and
// further lines in local.conf. It returns the stand-ins and the lines.
func (g *rig) resolveSamples(ctx context.Context, log, build string, extra []string) (*standIns, []string, outcome) {
	lines := slices.Concat(g.localConf(), extra, g.sampleMask())
	s, err := g.sampleStandIns(build)
	if err == nil {
		err = g.configure(build, conf{Layers: append(g.src.layers(), g.layer.Dir, s.Dir), Lines: lines})
	}
	if err != nil {
		return nil, nil, failedOutcome(err)
	}
	if out, err := g.resolve(ctx, build, log, []string{"world"}); err != nil {
		return nil, nil, outcome{errors: errorLines(out, err)}
	}
	return s, lines, outcome{}
}

// sampleMask masks every recipe but the samples and those that the layer appends to.
func (g *rig) sampleMask() []string {
	return g.maskLines(append(g.sampleRecipes(), g.layer.appended()...))
}

func (g *rig) checkLayer(ctx context.Context, build, log string) outcome {
	argv := []string{"yocto-check-layer", "-n", "--no-auto-dependency"}
	if dirs := g.src.layers()[1:]; len(dirs) > 0 {
		argv = append(append(argv, "--dependency"), dirs...)
	}
	out, err := g.bitbake(ctx, build, log, append(argv, "--", g.layer.Dir)...)
	c := checkLayerOutput(out)
	o := outcome{errors: c.Errors}
	if (c.Result != "PASS" || err != nil) && len(o.errors) == 0 {
		o.errors = append([]string{fmt.Sprintf("yocto-check-layer exited with %q (%v)", c.Result, err)}, lastLines(out, 12)...)
	}
	for _, t := range slices.Sorted(maps.Keys(c.Tests)) {
		o.notes = append(o.notes, t+": "+c.Tests[t])
	}
	return o
}

// configureWorld writes an unmasked build folder.
func (g *rig) configureWorld(build string, layers, extra []string) error {
	places := g.rigLines()
	if strings.HasSuffix(g.opt.Release, "-l4t-r32.7.x") {
		// Parsing this recipe queries the network for the newest revision.
		places = append(places, `BBMASK += "/tegra-boot-tools_git\.bb$"`)
	}
	return g.configure(build, conf{Layers: append(g.src.layers(), layers...), Lines: slices.Concat(g.localConf(), places, extra)})
}

// checkFullParse parses every recipe of the checkouts with the layer switched on.
func (g *rig) checkFullParse(ctx context.Context, log string) outcome {
	if err := g.configureWorld(worldBuild, []string{g.layer.Dir}, g.layer.enableLines(g.src.Fragments)); err != nil {
		return failedOutcome(err)
	}
	// Measure a parse without a cache.
	if err := os.RemoveAll(filepath.Join(g.build(worldBuild), "cache")); err != nil {
		return failedOutcome(err)
	}
	return g.parseOutcome(g.bitbake(ctx, worldBuild, log, "bitbake", "-p"))
}

// checkFullDependencies resolves the layer's recipes with real recipes instead of stand-ins.
func (g *rig) checkFullDependencies(ctx context.Context, log string) outcome {
	argv := []string{"bitbake", "-S", "none"}
	for _, r := range g.layer.Recipes {
		argv = append(argv, r.Name)
	}
	if len(argv) == 3 {
		return outcome{skip: "the layer has no recipes"}
	}
	out, err := g.bitbake(ctx, worldBuild, log, argv...)
	return outcome{errors: append(errorLines(out, err), fatalWarnings(out)...)}
}

// runFullYoctoCheckLayer is runYoctoCheckLayer without masks. meta-tegra's world needs two
// things that openembedded-core lacks: the distro features of its graphics recipes, and
// libusbgx of meta-oe.
func (g *rig) runFullYoctoCheckLayer(ctx context.Context, log string) outcome {
	var extra []string
	if g.src.MetaTegra != "" {
		extra = []string{`DISTRO_FEATURES:append = " opengl vulkan"`, `BBMASK += "/l4t-usb-device-mode[^/]*\.bb$"`}
	}
	if err := g.configureWorld(worldCheck, nil, extra); err != nil {
		return failedOutcome(err)
	}
	o := g.checkLayer(ctx, worldCheck, log)
	if g.src.MetaTegra != "" {
		o.notes = append(o.notes, "without l4t-usb-device-mode, which needs meta-oe")
	}
	return o
}

// restoreUserPaths replaces the paths of the work folder in messages by the user's paths.
func (g *rig) restoreUserPaths(lines []string) []string {
	var out []string
	for _, s := range lines {
		out = append(out, strings.ReplaceAll(s, g.layer.Dir, strings.TrimRight(g.layer.Origin, "/")))
	}
	return out
}
