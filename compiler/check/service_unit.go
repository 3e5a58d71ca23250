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
		return slices.ContainsFunc(slices.Concat(svc.Wants.Items, svc.Requires.Items, verbatimUnits(svc)), func(n config.NamedString) bool { return n.Text == name })
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
			if stem, ok := strings.CutSuffix(svc.Key(), kind); ok && isBrought(svc) && !yield(stem) {
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
		for _, names := range [][]config.NamedString{svc.After.Items, svc.Wants.Items, svc.Requires.Items, verbatimUnits(svc)} {
			for _, name := range names {
				if known, near := s.findUnit(name.Text); !known && !name.External.On {
					report(name.Text, near, name, svc)
				}
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

// verbatimUnits lists the units that a service's unit names, without those with a specifier.
func verbatimUnits(svc *config.Service) []config.NamedString {
	var all []config.NamedString
	for section, names := range map[string][]string{
		"Unit":    {"After", "Before", "Wants", "Requires", "Requisite", "BindsTo", "PartOf", "Conflicts", "Upholds", "OnFailure", "OnSuccess"},
		"Install": {"WantedBy", "RequiredBy", "UpheldBy", "Also"},
	} {
		for _, name := range names {
			directive := svc.Unit.Get(section).Get(name)
			for _, v := range directive.Elements() {
				for unit := range strings.FieldsSeq(v.Text) {
					if !strings.Contains(unit, "%") {
						all = append(all, config.NamedString{String: config.String{Place: v.Place, Text: unit}, External: directive.External})
					}
				}
			}
		}
	}
	return all
}
