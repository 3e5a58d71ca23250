package check

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/directive"
	"github.com/yoctune/yoctune/schema/plan"
)

// The rules of this file look the directives of services.*.unit up in the facts.
func directiveRules() []Rule {
	const see = "systemd.directives(7); the gperf tables of systemd"
	return []Rule{
		{
			ID: "unit-directive", Severity: diag.Error,
			Title: "a directive that the release's systemd lacks",
			Cause: "systemd skips a directive that it does not know in a section, with one line in the log: what was declared is not in force.",
			Fix:   "write the directive of the release's systemd in its section, or set external: true if a patched systemd of yours reads it",
			Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], unit: Service: IOSchedulingClas: "idle"}`,
			Right: `services: "a.service": {exec: ["/usr/bin/yes"], unit: Service: IOSchedulingClass: "idle"}`,
			See:   see,
			run:   checkDirective,
		},
		{
			ID: "unit-directive-unknown", Severity: diag.Warning,
			Title: "unknown directive",
			Cause: "No systemd of a release has a directive of that name, nor one of nearly the same. systemd skips it, with one line in the log.",
			Fix:   "remove it, set external: true if a patched systemd of yours reads it, or begin its name with \"X-\" if another program does",
			Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], unit: Service: AcmeColour: "blue"}`,
			Right: `services: "a.service": {exec: ["/usr/bin/yes"], unit: Service: "X-AcmeColour": "blue"}`,
			See:   see,
			run:   checkDirectiveUnknown,
		},
		{
			ID: "unit-directive-ignored", Severity: diag.Warning,
			Title: "a directive without effect",
			Cause: "The release's systemd accepts the directive of an older one and does nothing.",
			Fix:   "remove it, or write what replaced it",
			Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], unit: Service: Capabilities: "CAP_SYS_NICE"}`,
			Right: `services: "a.service": {exec: ["/usr/bin/yes"], capabilityBoundingSet: ["CAP_SYS_NICE"]}`,
			See:   see,
			run:   checkDirectiveIgnored,
		},
		{
			ID: "unit-directive-value", Severity: diag.Error,
			Title: "a value that the directive does not take",
			Cause: "systemd skips a line whose value it cannot read, with one line in the log: what was declared is not in force.",
			Fix:   "write a value that the directive takes",
			Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], unit: Service: TimeoutAbortSec: "soon", unit: Service: RemainAfterExit: "perhaps"}`,
			Right: `services: "a.service": {exec: ["/usr/bin/yes"], unit: Service: RemainAfterExit: true}`,
			See:   see,
			run:   checkDirectiveValue,
		},
		{
			ID: "unit-directive-twice", Severity: diag.Error, Firm: true,
			Title: "a field and a directive set the same",
			Cause: "The unit would have the directive twice. The last one wins, or both add up.",
			Fix:   "remove either the field or the directive",
			Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], nice: 5, unit: Service: Nice: 6}`,
			Right: `services: "a.service": {exec: ["/usr/bin/yes"], nice: 5}`,
			See:   "yoctune schema Service",
			run:   checkDirectiveTwice,
		},
	}
}

// unitDirective is a directive of services.*.unit with its fact.
type unitDirective struct {
	*config.Scalar
	unit    string // its file
	fields  config.Place
	setters []plan.ServiceField
	section string
	name    string // with the section
	fact    directive.Fact
}

// directives lists those of all services, without those that the configuration declares to be
// its own and those of other programs.
func (s *subject) directives() []unitDirective {
	var all []unitDirective
	add := func(unit string, fields config.Place, setters []plan.ServiceField, sections config.Map[config.Map[config.NamedScalar]]) {
		for _, section := range sections.Sorted() {
			for _, d := range section.Sorted() {
				name := section.Key() + "." + d.Key()
				if strings.HasPrefix(d.Key(), "X-") || d.External.On {
					continue
				}
				all = append(all, unitDirective{&d.Scalar, unit, fields, setters, section.Key(), name, directive.Lookup(directive.Unit, name, s.Release.Systemd)})
			}
		}
	}
	for _, svc := range s.Config.Services.Sorted() {
		add(svc.Key(), svc.Place, plan.ServiceFields(), svc.Unit)
		add(resolve.TimerOf(svc.Key()), svc.Timer.Place, plan.TimerFields(), svc.Timer.Unit)
	}
	return all
}

func checkDirective(s *subject) {
	for _, d := range s.directives() {
		if d.fact.State != directive.Absent {
			continue
		}
		if message, help := s.explainAbsent(d); message != "" {
			near := directive.Nearest(directive.Unit, d.name, s.Release.Systemd)
			s.reportKey(d, help, "%s", message).propose(d, d.Key(), strings.TrimPrefix(near, d.section+"."))
		}
	}
}

// explainAbsent describes why the release's systemd lacks a directive; "" if none is like it.
func (s *subject) explainAbsent(d unitDirective) (message, help string) {
	version := s.Release.Systemd
	if others := versionsWith(d.name); len(others) > 0 {
		return fmt.Sprintf("systemd %s of %s has no %s in [%s], which systemd %s has", version, s.Release.Name, d.Key(), d.section, strings.Join(others, ", ")), ""
	}
	near := directive.Nearest(directive.Unit, d.name, version)
	section, word, _ := strings.Cut(near, ".")
	switch {
	case near == "":
		return "", ""
	case word == d.Key():
		return fmt.Sprintf("%s belongs in [%s], not in [%s]", word, section, d.section), fmt.Sprintf("write unit: %s: %s", section, word)
	}
	return fmt.Sprintf("systemd %s has no %s in [%s]", version, d.Key(), d.section), fmt.Sprintf("did you mean %q?", word)
}

// versionsWith lists the versions of systemd that were read and have a directive.
func versionsWith(name string) []string {
	versions := directive.Versions("systemd")
	return slices.DeleteFunc(versions, func(v string) bool {
		state := directive.Lookup(directive.Unit, name, v).State
		return state != directive.Present && state != directive.Legacy
	})
}

func checkDirectiveUnknown(s *subject) {
	for _, d := range s.directives() {
		if d.fact.State != directive.Absent {
			continue
		}
		if message, _ := s.explainAbsent(d); message == "" {
			s.reportKey(d, "", "no systemd is known to have %s in [%s]", d.Key(), d.section)
		}
	}
}

func checkDirectiveIgnored(s *subject) {
	for _, d := range s.directives() {
		if d.fact.State == directive.Legacy {
			s.reportKey(d, "", "systemd %s ignores %s", s.Release.Systemd, d.Key())
		}
	}
}

func checkDirectiveValue(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		for _, c := range slices.Concat(svc.AmbientCapabilities.Items, svc.CapabilityBoundingSet.Items) {
			if wanted := directive.WantedValue(".service", "Service.CapabilityBoundingSet", "capability_set", c.Text, s.Release.Systemd); wanted != "" {
				s.reportAt(c, c.Show(), "write a name of capabilities(7)", "the kernel has no capability %s", c.Text)
			}
		}
	}
	for _, d := range s.directives() {
		for _, v := range d.Elements() {
			if wanted := directive.WantedValue(path.Ext(d.unit), d.name, d.fact.Type, resolve.DirectiveValue(v), s.Release.Systemd); wanted != "" {
				s.reportAt(v, v.Show(), "write "+wanted, "%s= does not take %s", d.Key(), v.Show())
			}
		}
	}
}

func checkDirectiveTwice(s *subject) {
	for _, d := range s.directives() {
		for _, f := range d.setters {
			if field := d.fields.Below(f.Field); field.IsSet() && slices.Contains(f.Directives, d.name) {
				s.raise(d, "%s and unit.%s both set %s=", f.Field, d.name, d.Key()).withValue(d.Show()).addRelated(field, "the other value")
			}
		}
	}
}
