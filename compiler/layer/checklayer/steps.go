package checklayer

import (
	"context"
	"crypto/sha256"
	"fmt"
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

// samples are recipes of the base system whose signatures yocto-check-layer is to
// compare in quick mode besides those the layer appends to; the launcher depends
// on the kernel, which no world build would name by itself.
func samples() []string {
	return []string{"netbase", "ca-certificates", "tegra-nvpmodel", "tegra-nvpower", "l4t-launcher-extlinux", "cboot-extlinux"}
}

// failed returns the error lines of a program, or its last lines when it failed without.
func failed(out string, err error) []string {
	lines := errorsIn(out)
	if err != nil && len(lines) == 0 {
		lines = append([]string{err.Error()}, lastLines(out, 12)...)
	}
	return lines
}

func failure(err error) outcome { return outcome{errors: []string{err.Error()}} }

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

// parse reads the layer, the recipes it appends to and the whole configuration.
func (g *rig) parse(ctx context.Context, log string) outcome {
	if err := g.configureQuick(); err != nil {
		return failure(err)
	}
	return g.parseOutcome(g.bitbake(ctx, quickBuild, log, "bitbake", "-p"))
}

// parseOutcome returns what bitbake reports when it parses.
func (g *rig) parseOutcome(out string, err error) outcome {
	o := outcome{errors: append(failed(out, err), g.ownWarnings(out)...)}
	if n := parsedIn(out); n != "" {
		o.notes = []string{n}
	}
	return o
}

// ownWarnings are warnings about a file of the layer: a generated layer has none.
func (g *rig) ownWarnings(out string) []string {
	var found []string
	for _, s := range strings.Split(out, "\n") {
		// The first one follows a line of progress that has no end yet.
		_, warning, ok := strings.Cut(s, "WARNING:")
		if s = "WARNING:" + warning; ok && strings.Contains(s, g.layer.Dir) && !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	return found
}

// appends checks that each .bbappend found its recipe.
func (g *rig) appends(ctx context.Context, log string) outcome {
	out, err := g.bitbake(ctx, quickBuild, log, "bitbake-layers", "show-appends")
	o := g.checkAppends(showAppends(out))
	o.errors = append(failed(out, err), o.errors...)
	return o
}

// checkAppends checks that each append of the layer applies to a recipe.
func (g *rig) checkAppends(applied map[string][]appendedTo) outcome {
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

// dependencies resolves the task graph of the layer's recipes and of those it
// appends to.
func (g *rig) dependencies(ctx context.Context, log string) outcome {
	targets := append([]string{"world"}, g.builtRecipes()...)
	for _, r := range g.layer.Recipes {
		targets = append(targets, r.Name)
	}
	out, err := g.resolve(ctx, quickBuild, log, targets)
	s := g.standIns[quickBuild]
	o := outcome{
		errors: failed(out, err),
		notes:  []string{fmt.Sprintf("stand-ins for %d recipes and %d packages", len(s.Recipes), len(s.Packages))},
	}
	for _, name := range s.Unknown {
		o.errors = append(o.errors, fmt.Sprintf("the layer needs %q, which neither openembedded-core nor meta-tegra provides; give the layer that does with --extra-layer", name))
	}
	if len(s.Trusted) > 0 {
		o.notes = append(o.notes, "not verified, because these packages exist only after packaging: "+strings.Join(s.Trusted, " "))
	}
	o.errors = append(o.errors, fatalWarnings(out)...)
	return o
}

// variables compares final values with what the layer and its plan promise.
func (g *rig) variables(ctx context.Context, log string) outcome {
	answer, o := g.read(ctx, log)
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
		return failure(err)
	}
	out, err := g.bitbake(ctx, plainBuild, log, "bitbake", "-e")
	if err != nil {
		return outcome{errors: failed(out, err)}
	}
	values := environment(out)
	var o outcome
	overrides := strings.Split(values["OVERRIDES"], ":")
	want := planPromises(g.layer.Plans)
	if len(g.layer.Plans) == 0 {
		o.notes = append(o.notes, fmt.Sprintf("the layer has no plan.json for %s: only its settings file was compared", g.opt.Machine))
	}
	for _, name := range g.layer.Settings {
		want = append(want, promises(g.layer.SettingLines[name], overrides)...)
	}
	if got := strings.Fields(values["LAYERSERIES_COMPAT_"+g.layer.Collection]); !slices.ContainsFunc(got, func(s string) bool { return slices.Contains(g.src.Series, s) }) {
		o.errors = append(o.errors, fmt.Sprintf("LAYERSERIES_COMPAT_%s is %q, openembedded-core is %s", g.layer.Collection, strings.Join(got, " "), strings.Join(g.src.Series, " ")))
	}
	o.check(want, values, "configuration")

	for _, pn := range g.builtRecipes() {
		values := answer.values(pn, &o)
		var own []line
		for _, a := range g.layer.Appends {
			if a.Name == pn {
				own = append(own, a.Lines...)
			}
		}
		o.check(promises(own, strings.Split(values["OVERRIDES"], ":")), values, pn)
	}
	for _, r := range g.layer.Recipes {
		values := answer.values(r.Name, &o)
		o.check(promises(r.Lines, strings.Split(values["OVERRIDES"], ":")), values, r.Name)
	}
	return o
}

// recipeValues returns the variables of one recipe, or the lines of an error. A
// recipe that is not for this machine has none, which is noted.
func (g *rig) recipeValues(ctx context.Context, log, pn string, o *outcome) (map[string]string, []string) {
	if v, ok := g.values[pn]; ok {
		return v, nil
	}
	out, err := g.bitbake(ctx, quickBuild, log, "bitbake", "-e", pn)
	if err == nil {
		g.values[pn] = environment(out)
		return g.values[pn], nil
	}
	if why := skippedBecause(out, pn); why != "" {
		o.notes = append(o.notes, pn+" is not available: "+why)
		return map[string]string{}, nil
	}
	return nil, failed(out, err)
}

var skippedRecipe = lazyregexp.New(`'?(\S+?)'? was skipped: (.*)`)

// skippedBecause returns bitbake's reason for leaving a recipe out.
func skippedBecause(out, pn string) string {
	for _, m := range skippedRecipe.FindAllStringSubmatch(out, -1) {
		if strings.HasSuffix(m[1], pn) || strings.Contains(m[1], "/"+pn+"_") {
			return strings.TrimSpace(m[2])
		}
	}
	return ""
}

// check adds an error for each expectation that does not hold, and counts the others.
func (o *outcome) check(want []promise, values map[string]string, where string) {
	if len(values) == 0 {
		return
	}
	held := 0
	for _, p := range want {
		v, set := values[p.Variable]
		if why := p.whyBroken(v, set); why != "" {
			o.errors = append(o.errors, where+": "+why)
		} else {
			held++
		}
	}
	o.notes = append(o.notes, fmt.Sprintf("%s: %d values as expected", where, held))
}

var (
	// Classes whose tasks need more than this check builds.
	needsMore = []string{"cuda", "go", "go-mod", "go-vendor", "cmake", "kernel", "module", "image", "core-image"}
	remoteURI = lazyregexp.New(`\b(https?|git|ftp|ssh|gitsm|npm|crate|gomod)://`)
)

// task really runs do_package_qa, and so everything before it, of a recipe, and
// do_populate_lic, which looks for its licences and their texts.
func (g *rig) task(ctx context.Context, log string, r recipe) outcome {
	if slices.Contains(r.Classes, "packagegroup") {
		return outcome{skip: "a package group installs nothing; its dependencies were resolved"}
	}
	if i := slices.IndexFunc(r.Classes, func(class string) bool { return slices.Contains(needsMore, class) }); i >= 0 {
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
	o = outcome{errors: failed(out, err)}
	// A QA finding that the distribution made a warning is a finding all the same.
	for _, s := range strings.Split(out, "\n") {
		if strings.HasPrefix(s, "WARNING: "+r.Name+"-") && strings.Contains(s, "QA Issue") && !slices.Contains(o.errors, s) {
			o.errors = append(o.errors, s)
		}
	}
	return o
}

// installed compares what the recipe put into its image folder with the files it
// was given: every one must be there byte for byte, writable by its owner only,
// and the plan must lie where yoctuned looks for it.
func (g *rig) installed(ctx context.Context, log string, r recipe) outcome {
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
		err := eachFile(file, func(f foundFile) { given[f.sum] = f.path })
		if err != nil {
			return failure(err)
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
		return failure(err)
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

// yoctoCheckLayer runs the project's own layer test, signatures included, over
// the masked world: a layer that is present but not enabled must change the
// signature of no task.
func (g *rig) yoctoCheckLayer(ctx context.Context, log string) outcome {
	s, lines, o := g.resolveSamples(ctx, log, unusedCase, nil)
	if len(o.errors) > 0 {
		return o
	}
	c := conf{Lines: lines}
	// The test itself adds the layer; it must not be there before.
	c.Layers = append(g.src.layers(), s.Dir)
	if err := g.configure(unusedCase, c); err != nil {
		return failure(err)
	}
	o = g.checkLayer(ctx, unusedCase, log)
	o.notes = append(o.notes, "signatures compared for the appended recipes and "+strings.Join(samples(), ", "))
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
		return nil, nil, failure(err)
	}
	if out, err := g.resolve(ctx, build, log, []string{"world"}); err != nil {
		return nil, nil, outcome{errors: failed(out, err)}
	}
	return s, lines, outcome{}
}

// sampleMask masks every recipe but the samples and those that the layer appends to.
func (g *rig) sampleMask() []string { return g.maskLines(append(samples(), g.layer.appended()...)) }

func (g *rig) checkLayer(ctx context.Context, build, log string) outcome {
	argv := []string{"yocto-check-layer", "-n", "--no-auto-dependency", "--dependency"}
	argv = append(argv, g.src.layers()[1:]...)
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
		// Parsing it queries the network for the newest revision.
		places = append(places, `BBMASK += "/tegra-boot-tools_git\.bb$"`)
	}
	return g.configure(build, conf{Layers: append(g.src.layers(), layers...), Lines: slices.Concat(g.localConf(), places, extra)})
}

// fullParse parses every recipe of the checkouts with the layer switched on.
func (g *rig) fullParse(ctx context.Context, log string) outcome {
	if err := g.configureWorld(worldBuild, []string{g.layer.Dir}, g.layer.enableLines(g.src.Fragments)); err != nil {
		return failure(err)
	}
	// The time of this step is that of a parse from nothing.
	if err := os.RemoveAll(filepath.Join(g.build(worldBuild), "cache")); err != nil {
		return failure(err)
	}
	return g.parseOutcome(g.bitbake(ctx, worldBuild, log, "bitbake", "-p"))
}

// fullDependencies resolves the layer's recipes with the real ones, no stand-in.
func (g *rig) fullDependencies(ctx context.Context, log string) outcome {
	argv := []string{"bitbake", "-S", "none"}
	for _, r := range g.layer.Recipes {
		argv = append(argv, r.Name)
	}
	if len(argv) == 3 {
		return outcome{skip: "the layer has no recipes"}
	}
	out, err := g.bitbake(ctx, worldBuild, log, argv...)
	return outcome{errors: append(failed(out, err), fatalWarnings(out)...)}
}

// fullYoctoCheckLayer is yoctoCheckLayer without masks. meta-tegra's own world
// needs two things that openembedded-core alone does not give: the distro
// features of its graphics recipes, and libusbgx of meta-oe.
func (g *rig) fullYoctoCheckLayer(ctx context.Context, log string) outcome {
	extra := []string{`DISTRO_FEATURES:append = " opengl vulkan"`, `BBMASK += "/l4t-usb-device-mode[^/]*\.bb$"`}
	if err := g.configureWorld(worldCheck, nil, extra); err != nil {
		return failure(err)
	}
	o := g.checkLayer(ctx, worldCheck, log)
	o.notes = append(o.notes, "without l4t-usb-device-mode, which needs meta-oe")
	return o
}

// readable replaces the paths of this run by those of the user.
func (g *rig) readable(lines []string) []string {
	var out []string
	for _, s := range lines {
		out = append(out, strings.ReplaceAll(s, g.layer.Dir, strings.TrimRight(g.layer.Origin, "/")))
	}
	return out
}
