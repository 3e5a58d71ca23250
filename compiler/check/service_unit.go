package check

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/system"
)

func unitRules() []Rule {
	return []Rule{{
		ID: "unit-name", Severity: diag.Error,
		Title: "misspelt unit",
		Cause: "Neither a recipe of the release nor the configuration has a unit of that name, and one has nearly the same. systemd reads no drop-in of a unit that does not exist, and skips the name in after, wants and requires, or fails to start the service.",
		Fix:   "write the unit's name, or set external: true if a layer of yours brings it",
		Wrong: `services: "systemd-tmpfile-setup.service": nice: 5`, Right: `services: "systemd-tmpfiles-setup.service": nice: 5`,
		See: "systemd.unit(5)",
		run: checkUnitName,
	}, {
		ID: "unit-unknown", Severity: diag.Warning,
		Title: "unknown unit",
		Cause: "No recipe of the release, and no service of the configuration, is known to bring a unit of that name. If no layer of yours does, systemd reads no drop-in of it, and skips the name in after, wants and requires, or fails to start the service.",
		Fix:   "remove it, or set external: true if a layer of yours brings it",
		Wrong: `services: "acme.service": nice: 5`, Right: `services: "acme.service": {nice: 5, external: true}`,
		See: "systemd.unit(5)",
		run: checkUnitUnknown,
	}, {
		ID: "unit-option", Severity: diag.Error,
		Title: "a unit that the recipe installs with another option only",
		Cause: "A word in the PACKAGECONFIG of a recipe decides which units it installs, and by default, or by build.packageConfig, the recipe does not install this one. systemd reads no drop-in of a unit that does not exist, does not start a service that requires it, and skips it in after and wants, which is a warning.",
		Fix:   "name a unit that the recipe installs, change the option under build.packageConfig, or set external: true if a layer of yours does",
		Wrong: `services: "sshd.service": oomScoreAdjust: -900`,
		Right: `services: "sshd@.service": oomScoreAdjust: -900`,
		See:   "PACKAGECONFIG and SYSTEMD_SERVICE in the recipe; meson.build of systemd",
		run:   checkUnitOption,
	}, {
		ID: "unit-template", Severity: diag.Error, Firm: true,
		Title: "a template where systemd needs an instance",
		Cause: "A unit with \"@\" before its type is a template: systemd runs units with a text after the \"@\", which the template finds in %i. It orders and starts instances only, and enables a template by the DefaultInstance of its section [Install].",
		Fix:   "name an instance, such as getty@tty1.service",
		Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], after: ["getty@.service"]}`,
		Right: `services: "a.service": {exec: ["/usr/bin/yes"], after: ["getty@tty1.service"]}`,
		See:   "systemd.unit(5), template unit files",
		run:   checkUnitTemplate,
	}, {
		ID: "unit-install", Severity: diag.Warning,
		Title: "nothing starts a service",
		Cause: "A section [Install] of one's own replaces WantedBy=multi-user.target. Without WantedBy, RequiredBy or UpheldBy, systemd starts the service only when a unit asks for it or for its alias.",
		Fix:   `add WantedBy: "multi-user.target", or write WantedBy: "" if another unit starts it`,
		Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], unit: Install: Alias: "camera.service"}`,
		Right: `services: "a.service": {exec: ["/usr/bin/yes"], unit: Install: {Alias: "camera.service", WantedBy: "multi-user.target"}}`,
		See:   "systemd.unit(5), [Install] section options",
		run:   checkUnitInstall,
	}}
}

func checkUnitInstall(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		install := svc.Unit.Get("Install")
		starts := slices.ContainsFunc([]string{"WantedBy", "RequiredBy", "UpheldBy"}, func(name string) bool { return install.Get(name).IsSet() })
		if len(install.Entries) == 0 || starts || !resolve.IsWholeUnit(svc) || svc.Enable.IsSet() && !svc.Enable.On {
			continue
		}
		names := []string{svc.Key()}
		for _, v := range install.Get("Alias").Elements() {
			names = append(names, strings.Fields(v.Text)...)
		}
		if !slices.ContainsFunc(names, s.isAskedFor) {
			s.reportAt(install, "", "", "the section [Install] of %s starts it with no other unit", svc.Key())
		}
	}
}

// isAskedFor reports whether a unit of the release, a D-Bus client or another service may start
// a unit of that name.
func (s *subject) isAskedFor(name string) bool {
	if _, known := system.FindUnit(s.Release.Name, name); known || strings.HasPrefix(name, "dbus-") {
		return true
	}
	return slices.ContainsFunc(s.Config.Services.Entries, func(svc *config.Service) bool {
		return slices.ContainsFunc(namedUnits(svc), func(n namedUnit) bool { return n.Text == name && n.isStarted() })
	})
}

// findUnit reports whether the release or the configuration has a unit, and the unit that was
// probably meant if not. Devices, mounts and slices come into being without a file.
func (s *subject) findUnit(name string) (known bool, near string) {
	kind := path.Ext(name)
	if strings.HasPrefix(name, "yoctune") || slices.Contains([]string{".device", ".mount", ".slice"}, kind) {
		return true, ""
	}
	if _, known = system.FindUnit(s.Release.Name, name); known {
		return true, ""
	}
	own := func(yield func(string) bool) {
		for _, svc := range s.Config.Services.Entries {
			unit, isOwn := svc.Key(), isBrought(svc)
			if kind == ".timer" {
				unit, isOwn = resolve.TimerOf(unit), svc.Timer.IsSet()
			}
			stem, ok := strings.CutSuffix(unit, kind)
			if !ok || !isOwn {
				continue
			}
			if isTemplateUnit(unit) && strings.HasPrefix(name, stem) {
				stem = strings.TrimSuffix(name, kind) // an instance of it
			}
			if !yield(stem) {
				return
			}
		}
	}
	stem := strings.TrimSuffix(name, kind)
	for other := range own {
		if other == stem {
			return true, ""
		}
	}
	if near = system.NearestOf(stem, own, kind); near == "" {
		near = system.Nearest(s.Release.Name, system.Unit, name)
	}
	return false, near
}

// isBrought reports whether the configuration brings a service's unit.
func isBrought(svc *config.Service) bool {
	return resolve.IsWholeUnit(svc) || svc.Package.IsSet() || svc.External.On
}

// unknownUnits calls report for the units that neither the release nor the configuration has.
func (s *subject) unknownUnits(report func(name, near string, at config.Part, from *config.Service)) {
	for _, svc := range s.Config.Services.Sorted() {
		if !isBrought(svc) {
			if known, near := s.findUnit(svc.Key()); !known {
				report(svc.Key(), near, svc, svc)
			}
		}
		for _, name := range namedUnits(svc) {
			if known, near := s.findUnit(name.Text); !known && !name.External.On {
				report(name.Text, near, name, svc)
			}
		}
	}
}

func checkUnitName(s *subject) {
	s.unknownUnits(func(name, near string, at config.Part, from *config.Service) {
		if near == "" {
			return
		}
		help := fmt.Sprintf("did you mean %q? Otherwise set external: true", near)
		if at == config.Part(from) {
			s.reportKey(at, help, "no unit %s is known at %s, and a drop-in of it changes nothing", name, s.Release.Name).propose(at, name, near)
			return
		}
		help = fmt.Sprintf("did you mean %q? Otherwise write {value: %q, external: true}", near, name)
		s.reportAt(at, at.Where().Show(), help, "no unit %s is known at %s, which %s names", name, s.Release.Name, from.Key()).propose(at, name, near)
	})
}

func checkUnitUnknown(s *subject) {
	s.unknownUnits(func(name, near string, at config.Part, from *config.Service) {
		switch {
		case near != "":
		case at == config.Part(from):
			s.reportKey(at, "", "no unit %s is known at %s, and a drop-in of it changes nothing", name, s.Release.Name)
		default:
			s.reportAt(at, at.Where().Show(), fmt.Sprintf("remove it, or write {value: %q, external: true} if a layer of yours brings it", name),
				"no unit %s is known at %s, which %s names", name, s.Release.Name, from.Key())
		}
	})
}

// isSet reports whether the PACKAGECONFIG of a recipe has a word.
func (s *subject) isSet(recipe string, w system.Word) bool {
	change := s.build.PackageConfig.Get(recipe)
	has := func(list config.List[config.String]) bool { return slices.Contains(config.Texts(list), w.Name) }
	return !has(change.Remove) && (w.IsDefault || has(change.Append)) // bitbake removes last
}

// missingWords lists the words of PACKAGECONFIG that a unit, user or group needs and its recipe lacks.
func (s *subject) missingWords(from system.Origin) []string {
	var all []string
	for _, w := range from.Words {
		if !s.isSet(from.Recipe, w) {
			all = append(all, w.Name)
		}
	}
	return all
}

// checkUnitOption reports the units that exist only with an option that is not set.
func checkUnitOption(s *subject) {
	for _, svc := range s.Config.Services.Sorted() {
		if !isBrought(svc) {
			if from, missing := s.findOption(svc.Key()); len(missing) > 0 {
				s.reportKey(svc, s.explainOption(svc.Key(), from, missing), "%s of %s has no %s, and a drop-in of it changes nothing", from.Recipe, s.Release.Name, svc.Key())
			}
		}
		for _, named := range namedUnits(svc) {
			from, missing := s.findOption(named.Text)
			if named.External.On || len(missing) == 0 {
				continue
			}
			d := s.reportAt(named, named.Show(), s.explainOption(named.Text, from, missing), "%s of %s has no %s, which %s names", from.Recipe, s.Release.Name, named.Text, svc.Key())
			if !named.isNeeded() {
				d.Severity = diag.Warning
			}
		}
	}
}

// findOption returns what brings a unit, and the words that its recipe lacks for it.
func (s *subject) findOption(unit string) (system.Origin, []string) {
	from, known := system.FindUnit(s.Release.Name, unit)
	if !known || slices.ContainsFunc(s.Config.Services.Entries, func(svc *config.Service) bool { return svc.Key() == unit && isBrought(svc) }) {
		return from, nil
	}
	return from, s.missingWords(from)
}

// explainOption describes what to write in place of a unit, and how to get it.
func (s *subject) explainOption(unit string, from system.Origin, missing []string) string {
	var there, rivals []string
	for other, of := range system.Relatives(s.Release.Name, unit, from) {
		if len(s.missingWords(of)) > 0 {
			continue
		}
		there = append(there, other)
		for _, w := range of.Words {
			if !slices.Contains(rivals, w.Name) {
				rivals = append(rivals, w.Name)
			}
		}
	}
	help := fmt.Sprintf("add build: packageConfig: %q: append: [%s]", from.Recipe, quotedWords(missing))
	if len(rivals) > 0 {
		help = fmt.Sprintf("add build: packageConfig: %q: {append: [%s], remove: [%s]}", from.Recipe, quotedWords(missing), quotedWords(rivals))
	}
	if change := s.build.PackageConfig.Get(from.Recipe); slices.ContainsFunc(config.Texts(change.Remove), func(w string) bool { return slices.Contains(missing, w) }) {
		help = fmt.Sprintf("do not remove %s in build.packageConfig", strings.Join(missing, " "))
	}
	help += "; external: true declares that a layer of yours sets it"
	if len(there) > 0 {
		help = fmt.Sprintf("name %s, or %s", strings.Join(there, " or "), help)
	}
	return help
}

func quotedWords(words []string) string { return `"` + strings.Join(words, `", "`) + `"` }

func checkUnitTemplate(s *subject) {
	for _, svc := range s.Config.Services.Sorted() {
		for _, named := range namedUnits(svc) {
			if isTemplateUnit(named.Text) && named.relation != "Also" {
				instance := strings.Replace(named.Text, "@", "@NAME", 1)
				s.reportAt(named, named.Show(), "name an instance, such as "+instance, "%s of %s names a template", named.relation, svc.Key())
			}
		}
		if isTemplateUnit(svc.Key()) && resolve.IsWholeUnit(svc) && svc.Enable.On && !svc.Unit.Get("Install").Has("DefaultInstance") {
			s.reportAt(svc.Enable, svc.Enable.Show(), `add unit: Install: {WantedBy: "multi-user.target", DefaultInstance: "NAME"}, or name an instance in wants of the service that starts it`,
				"%s is a template, and nothing names the instance to start at boot", svc.Key())
		}
	}
}

// isTemplateUnit reports whether a unit is a template.
func isTemplateUnit(unit string) bool {
	_, instance, ok := strings.Cut(unit, "@")
	return ok && instance == path.Ext(instance)
}

// namedUnit is a unit that a service names.
type namedUnit struct {
	config.NamedString
	relation string // the directive, such as After
}

// isNeeded reports whether the service does not start without the unit.
func (n namedUnit) isNeeded() bool {
	return slices.Contains([]string{"Requires", "Requisite", "BindsTo"}, n.relation)
}

// isStarted reports whether the service starts the unit.
func (n namedUnit) isStarted() bool {
	return slices.Contains([]string{"Wants", "Requires", "BindsTo", "Upholds", "OnFailure", "OnSuccess"}, n.relation)
}

// namedUnits lists the units that a service names, in fields and directives, without those with a
// specifier.
func namedUnits(svc *config.Service) []namedUnit {
	var all []namedUnit
	for _, field := range []struct {
		config.List[config.NamedString]
		relation string
	}{{svc.After, "After"}, {svc.Wants, "Wants"}, {svc.Requires, "Requires"}} {
		for _, name := range field.Items {
			all = append(all, namedUnit{name, field.relation})
		}
	}
	for _, file := range []config.Map[config.Map[config.NamedScalar]]{svc.Unit, svc.Timer.Unit} {
		for section, names := range map[string][]string{
			"Unit":    {"After", "Before", "Wants", "Requires", "Requisite", "BindsTo", "PartOf", "Conflicts", "Upholds", "OnFailure", "OnSuccess"},
			"Install": {"WantedBy", "RequiredBy", "UpheldBy", "Also"},
		} {
			for _, name := range names {
				directive := file.Get(section).Get(name)
				for _, v := range directive.Elements() {
					for unit := range strings.FieldsSeq(v.Text) {
						if !strings.Contains(unit, "%") {
							all = append(all, namedUnit{config.NamedString{String: config.String{Place: v.Place, Text: unit}, External: directive.External}, name})
						}
					}
				}
			}
		}
	}
	return all
}
