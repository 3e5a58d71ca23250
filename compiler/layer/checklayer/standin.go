package checklayer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
)

// standIns is a layer of empty recipes that provide what the masked recipes
// would. It grows until bitbake can resolve a graph.
type standIns struct {
	Dir       string
	Providers map[string]string // PREFERRED_PROVIDER_<name> of the configuration
	Recipes   []string          // names of recipes to provide
	Packages  []string
	Tasks     []string // tasks that real recipes expect of others
	Unknown   []string // asked for by the layer, but the checkouts know no such name
	Trusted   []string // asked for by the layer; only the beginning of the name is known
}

func newStandIns(dir string) *standIns {
	return &standIns{
		Dir: dir,
		// The host's pseudo is used, but the recipe names must still exist.
		Recipes: []string{"pseudo-native", "virtual/fakeroot-native"},
		Tasks:   []string{"do_compile_kernelmodules", "do_deploy", "do_image_complete", "do_shared_workdir"},
	}
}

// A recipe of this kind has tasks that do nothing and depends on nothing; the
// python at its end cuts what classes add.
const standInRecipe = `SUMMARY = "Empty stand-in for a recipe that the quick check masks"
LICENSE = "MIT"
INHIBIT_DEFAULT_DEPS = "1"
EXCLUDE_FROM_WORLD = "1"
PROVIDES += "@PROVIDES@"
ALLOW_EMPTY:${PN} = "1"
RPROVIDES:${PN} += "@RPROVIDES@"
@INHERIT@
deltask do_fetch
deltask do_unpack
deltask do_patch
do_configure[noexec] = "1"
do_compile[noexec] = "1"
do_install[noexec] = "1"
do_create_spdx[noexec] = "1"
@TASKS@
python () {
    for task in list(d.keys()):
        if task.startswith('do_'):
            if d.getVarFlag(task, 'depends'):
                d.setVarFlag(task, 'depends', '')
            d.delVarFlag(task, 'fakeroot')
}
`

// groups decides which recipe provides which names: one for the target, one for
// the build machine, and one for each preferred provider, since bitbake accepts a
// preferred provider only under its own name.
func (s *standIns) groups() map[string][]string {
	const target, native = "yoctune-stand-in", "yoctune-stand-in-native"
	groups := map[string][]string{target: nil, native: nil}
	for _, name := range s.Recipes {
		group := target
		if strings.HasSuffix(name, "-native") {
			group = native
		}
		if p := s.Providers[name]; p != "" && p != name {
			group = p
		}
		groups[group] = append(groups[group], name)
	}
	for _, g := range []string{target, native} {
		groups[g] = slices.DeleteFunc(groups[g], func(n string) bool { _, own := groups[n]; return own })
	}
	for g := range groups {
		groups[g] = slices.DeleteFunc(groups[g], func(n string) bool { return n == g })
	}
	return groups
}

// text is one recipe.
func (s *standIns) text(pn string, provides []string) string {
	inherit := ""
	switch {
	case strings.HasSuffix(pn, "-native"):
		inherit = "inherit native" // or its sysroot manifest is looked for in the wrong place
	case strings.Contains(pn, "-cross-"):
		inherit = "inherit cross"
	}
	var tasks strings.Builder
	for _, t := range s.Tasks {
		name := strings.TrimPrefix(t, "do_")
		fmt.Fprintf(&tasks, "do_%s() {\n    :\n}\naddtask %s\n", name, name)
	}
	packages := ""
	if pn == "yoctune-stand-in" {
		packages = strings.Join(s.Packages, " ")
	}
	return strings.NewReplacer(
		"@PROVIDES@", strings.Join(provides, " "), "@RPROVIDES@", packages, "@INHERIT@", inherit, "@TASKS@", tasks.String(),
	).Replace(standInRecipe)
}

// safeName is what may be written into a stand-in; anything else is left
// unresolved and shows up as bitbake's error.
var safeName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9+._/:-]*$`)

// file is where a recipe of the layer is.
func (s *standIns) file(pn string) string {
	return filepath.Join(s.Dir, "recipes", "stand-in", pn+".bb")
}

// write makes the layer.
func (s *standIns) write(series []string) error {
	recipes := filepath.Dir(s.file("any"))
	if err := os.RemoveAll(recipes); err != nil {
		return err
	}
	for _, dir := range []string{recipes, filepath.Join(s.Dir, "conf")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	layerConf := `BBPATH .= ":${LAYERDIR}"
BBFILES += "${LAYERDIR}/recipes/*/*.bb"
BBFILE_COLLECTIONS += "yoctune-stand-ins"
BBFILE_PATTERN_yoctune-stand-ins = "^${LAYERDIR}/"
BBFILE_PATTERN_IGNORE_EMPTY_yoctune-stand-ins = "1"
BBFILE_PRIORITY_yoctune-stand-ins = "1"
LAYERSERIES_COMPAT_yoctune-stand-ins = "` + strings.Join(series, " ") + "\"\n"
	if err := os.WriteFile(filepath.Join(s.Dir, "conf", "layer.conf"), []byte(layerConf), 0o644); err != nil {
		return err
	}
	for pn, names := range s.groups() {
		if !safeName.MatchString(pn) || strings.Contains(pn, "/") {
			continue
		}
		slices.Sort(names)
		if err := os.WriteFile(s.file(pn), []byte(s.text(pn, names)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// addMissing adds what an attempt missed and reports whether there was anything new.
// What the layer itself provides is never replaced: a mistake in its own
// recipes must stay one.
func (s *standIns) addMissing(out string, l *layer, src sources) (bool, error) {
	before := len(s.Recipes) + len(s.Packages) + len(s.Tasks)
	for _, u := range parseUnresolved(out) {
		if l.owns(u.Name) || !safeName.MatchString(u.Name) {
			continue
		}
		list := &s.Recipes
		if u.Runtime {
			list = &s.Packages
		}
		if slices.Contains(*list, u.Name) || slices.Contains(s.Unknown, u.Name) {
			continue
		}
		if strings.Contains(u.By, l.Dir+"/") && l.requests(u.Name) {
			known, err := src.trace(u.Name)
			switch {
			case err != nil:
				return false, err
			case known == untraced:
				s.Unknown = append(s.Unknown, u.Name)
				continue
			case known == byPattern:
				s.Trusted = append(s.Trusted, u.Name)
			}
		}
		*list = append(*list, u.Name)
	}
	for _, t := range missingTasksIn(out, s.Dir) {
		if !slices.Contains(s.Tasks, t) {
			s.Tasks = append(s.Tasks, t)
		}
	}
	return len(s.Recipes)+len(s.Packages)+len(s.Tasks) > before, nil
}

// sampleStandIns are those of a world that has the samples. They begin with what an
// earlier build folder lacked, which is mostly the same: a round less.
func (g *rig) sampleStandIns(build string) (*standIns, error) {
	s := newStandIns(filepath.Join(g.work, "stand-ins", build))
	sample := func(name string) bool {
		return slices.ContainsFunc(g.sampleRecipes(), func(s string) bool { return name == s || strings.HasPrefix(name, s+"-") })
	}
	for _, earlier := range []string{unusedCase, quickBuild} {
		q := g.standIns[earlier]
		if q == nil || q.Providers == nil {
			continue
		}
		s.Providers, s.Tasks = q.Providers, slices.Clone(q.Tasks)
		// Here the samples are real: two recipes of one name are an error.
		s.Recipes = slices.DeleteFunc(slices.Clone(q.Recipes), sample)
		s.Packages = slices.DeleteFunc(slices.Clone(q.Packages), sample)
		break
	}
	g.standIns[build] = s
	return s, s.write(g.src.Series)
}

// maxRounds bounds the growing; two are the rule.
const maxRounds = 12

// resolve grows the stand-ins of a build folder until `bitbake -S none` accepts
// the targets, and returns the last output.
func (g *rig) resolve(ctx context.Context, build, log string, targets []string) (string, error) {
	s := g.standIns[build]
	if s.Providers == nil {
		if err := s.write(g.src.Series); err != nil {
			return "", err
		}
		// Some preferences are made by classes: only a recipe has them all.
		out, err := g.bitbake(ctx, build, log, "bitbake", "-e", "-b", s.file("yoctune-stand-in"))
		if err != nil {
			return out, err
		}
		s.Providers = map[string]string{}
		for name, value := range environment(out) {
			if n, ok := strings.CutPrefix(name, "PREFERRED_PROVIDER_"); ok && safeName.MatchString(value) {
				s.Providers[n] = value
			}
		}
	}
	for round := 1; ; round++ {
		if err := s.write(g.src.Series); err != nil {
			return "", err
		}
		out, err := g.bitbake(ctx, build, log, append([]string{"bitbake", "-k", "-S", "none"}, targets...)...)
		if ctx.Err() != nil {
			return out, err
		}
		grew, learnErr := s.addMissing(out, g.layer, g.src)
		if learnErr != nil || !grew {
			return out, errors.Join(err, learnErr)
		}
		if round == maxRounds {
			return out, fmt.Errorf("dependencies are still unresolved after %d rounds of stand-ins", round)
		}
	}
}
