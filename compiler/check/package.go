package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/facts/recipe"
	"github.com/yoctune/yoctune/schema/facts/variable"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/schema/spelling"
)

// The rules of this file look the names of packages, recipes and images up in the facts.
func packageRules() []Rule {
	return []Rule{
		{
			ID: "package-name", Severity: diag.Error,
			Title: "misspelt package",
			Cause: "No recipe of openembedded-core, meta-openembedded or the BSP makes a package of that name, and one makes a package with nearly the same. bitbake stops once it has parsed all recipes; a package to keep out is kept out under its own name only. A warning where more than a slip parts the two names: a layer of yours may have it.",
			Fix:   "write the package's name, or set external: true if a layer of yours has it",
			Wrong: `packages: vimm: "install"`, Right: `packages: vim: "install"`,
			See: "the recipes' PACKAGES",
			run: checkPackageName,
		},
		{
			ID: "package-needed", Severity: diag.Error,
			Title: "the image leaves out a package that the configuration needs",
			Cause: "PACKAGE_EXCLUDE keeps a package out of every image. A package of the layer depends on it, so that the image cannot be built, or a setting has no effect without it.",
			Fix:   "remove the entry, or the setting that needs the package",
			Wrong: `{packages: ethtool: "exclude", network: "eth*": offloads: "rx-gro": false}`, Right: `network: "eth*": offloads: "rx-gro": false`,
			See: "oe-core lib/oe/package_manager: PACKAGE_EXCLUDE",
			run: checkPackageNeeded,
		},
		{
			ID: "package-unknown", Severity: diag.Warning,
			Title: "unknown package",
			Cause: "No recipe of openembedded-core, meta-openembedded or the BSP is known to make a package of that name. If no layer of yours does, bitbake stops once it has parsed all recipes.",
			Fix:   "remove it, or set external: true if a layer of yours has it",
			Wrong: `packages: "acme-detector": "install"`, Right: `packages: "acme-detector": {value: "install", external: true}`,
			See: "the recipes' PACKAGES",
			run: checkPackageUnknown,
		},
		{
			ID: "recipe-name", Severity: diag.Error,
			Title: "misspelt recipe",
			Cause: "No recipe of openembedded-core, meta-openembedded or the BSP has that name, and one has nearly the same. A setting of a recipe that does not exist has no effect and gives no message. A warning where more than a slip parts the two names: a layer of yours may have it.",
			Fix:   "write the recipe's name",
			Wrong: "targets: cam: release: \"scarthgap\"\nbuild: parallel: recipes: webkitgtkk: 4",
			Right: "targets: cam: release: \"scarthgap\"\nbuild: parallel: recipes: webkitgtk: 4",
			See:   "the layers' recipes",
			build: checkRecipeName,
		},
	}
}

// isOwnPackage reports whether the emitted layer itself makes a package.
func isOwnPackage(name string) bool {
	return strings.HasPrefix(name, "yoctune-") || name == "yoctuned" || strings.HasPrefix(name, "yoctuned-")
}

// installsOwn reports whether the target's images get a package that the layer makes, unless the
// configuration asks for it: benchmarks and dashboards are extras.
func (s *subject) installsOwn(name string) bool {
	program, runs := strings.CutPrefix(name, "yoctuned")
	switch {
	case !runs:
		return name != "yoctune-cuda" || s.Config.Runtime.Form.Text != plan.RuntimeNone
	case s.Config.Runtime.Form.Text == plan.RuntimeNone:
		return false
	}
	return program == "" || program == "-serve" && s.Serves()
}

// unknownPackages calls report for the packages that the facts lack. near is one that was
// probably meant.
func (s *subject) unknownPackages(report func(at config.String, name, near string)) {
	judge := func(at config.String, name string) {
		if known, near := s.findPackage(name); !known {
			report(at, name, near)
		}
	}
	for _, p := range s.Config.Packages.Entries {
		if !p.External.On {
			judge(p.String, p.Key())
		}
	}
	for _, svc := range s.Config.Services.Entries {
		if name := svc.Package.Text; name != "" && !s.Config.Packages.Has(name) {
			judge(svc.Package, name)
		}
	}
}

// neededPackages lists the packages without which the layer's settings have no effect, each with
// the part that needs it; nil for the whole layer.
func (s *subject) neededPackages(need func(name string, by config.Part, why string)) {
	need("systemd", nil, "the layer")
	for _, p := range s.Config.Packages.Entries {
		if isOwnPackage(p.Key()) && s.installsOwn(p.Key()) {
			need(p.Key(), nil, "the layer")
		}
	}
	for _, set := range s.Plan.Settings {
		if strings.HasPrefix(set.Select.Attr, "ethtool/") {
			need("ethtool", s.Config.Network, set.ID)
		}
	}
	for _, m := range s.Config.Modules.Entries {
		if m.Text == "load" {
			need(linux.PackageOf(m.Key()), m.String, m.ID())
		}
	}
	for _, svc := range s.Config.Services.Entries {
		if svc.Package.IsSet() {
			need(svc.Package.Text, svc.Package, svc.ID())
		}
	}
	if power := s.Config.Power; !s.IsOwn() && (power.Default.IsSet() || power.Modes.IsSet()) {
		need("tegra-nvpmodel", power, "power")
	}
}

func checkPackageNeeded(s *subject) {
	seen := map[string]bool{}
	s.neededPackages(func(name string, by config.Part, why string) {
		p := s.Config.Packages.Get(name)
		if p.Text != "exclude" || seen[name] {
			return
		}
		seen[name] = true
		f := s.raise(p.String, "%s needs package %s, which the image leaves out", why, name).withValue(p.Show())
		if by != nil {
			f.addRelated(by, "the part that needs it")
		}
	})
}

// findPackage reports whether a package is known, and one that was probably meant if not.
func (s *subject) findPackage(name string) (known bool, near string) {
	if module, ok := strings.CutPrefix(name, linux.PackageOf("")); ok {
		if _, known := s.findModule(module); known {
			return true, ""
		}
		if near = s.nearestModule(module); near != "" {
			near = linux.PackageOf(near)
		}
		return false, near
	}
	if isOwnPackage(name) || recipe.Has(s.Release.Name, name, recipe.Package) {
		return true, ""
	}
	if len(releasesWith(name)) > 0 {
		return false, ""
	}
	return false, recipe.Nearest(s.Release.Name, name, recipe.Package)
}

// releasesWith lists the releases that have a package: another one may have renamed or dropped it.
func releasesWith(name string) []string {
	return slices.DeleteFunc(slices.Clone(variable.Releases()), func(r string) bool { return !recipe.Has(r, name, recipe.Package) })
}

func checkPackageName(s *subject) {
	s.unknownPackages(func(at config.String, name, near string) {
		if near != "" {
			s.reportName(at, name, fmt.Sprintf("did you mean %q? Otherwise set external: true under packages", near), "%s has no package %s", s.Release.Name, name).unlessSlip(name, near, nearLetters).propose(at, name, near)
		}
	})
}

func checkPackageUnknown(s *subject) {
	s.unknownPackages(func(at config.String, name, near string) {
		if near != "" {
			return
		}
		others := ""
		if with := releasesWith(name); len(with) > 0 {
			others = ", only at " + strings.Join(with, ", ")
		}
		s.reportName(at, name, "remove it, or set external: true under packages if a layer of yours has it", "%s is not known to openembedded at %s%s", name, s.Release.Name, others)
	})
}

// reportName raises the rule at a name, which is the key of a part or its value.
func (r *reporter) reportName(at config.Part, name, help, format string, args ...any) *finding {
	if at.Where().Key() == name {
		return r.reportKey(at, help, format, args...)
	}
	return r.reportAt(at, at.Where().Show(), help, format, args...)
}

// unlessShort makes a finding about a probable slip a warning where the name is so short that every name is
// near another one, as "i2c" and "irc" are.
func (f *finding) unlessShort(name string) {
	const short = 3
	if len(name) <= short {
		f.Severity = min(f.Severity, diag.Warning)
	}
}

func checkRecipeName(b *builder) {
	judge := func(at config.Part, kind recipe.Kind, what, name string) {
		for _, r := range b.releases() {
			if recipe.Has(r.Name, name, kind) {
				return
			}
		}
		for _, r := range b.releases() {
			// A recipe of a layer of yours has no mark: what is two letters away is left alone.
			if near := recipe.Nearest(r.Name, name, kind); near != "" && spelling.DistanceWithin(name, near, 1) == 1 {
				b.reportName(at, name, fmt.Sprintf("did you mean %q?", near), "%s has no %s %s", r.Name, what, name).unlessSlip(name, near, nearLetters).propose(at, name, near)
				return
			}
		}
	}
	for _, change := range b.PackageConfig.Entries {
		judge(change, recipe.Recipe, "recipe", change.Key())
	}
	for _, jobs := range b.Parallel.Recipes.Entries {
		judge(jobs, recipe.Recipe, "recipe", jobs.Key())
	}
	for _, name := range b.RmWorkExclude.Items {
		judge(name, recipe.Recipe, "recipe", name.Text)
	}
	for _, name := range b.Image.BadRecommendations.Items {
		judge(name, recipe.Package, "package", name.Text)
	}
	if image := b.Kas.Image; image.IsSet() {
		judge(image, recipe.Recipe, "image", image.Text)
	}
}
