package check

import (
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
)

// The rules of this file judge fields and directives of a service together, as systemd does when it
// has read the whole unit.
func verifyRules() []Rule {
	return []Rule{
		{
			ID: "service-refused", Severity: diag.Error, Firm: true,
			Title: "systemd refuses the unit",
			Cause: "systemd checks a unit as a whole once it has read it. One whose directives exclude each other is not loaded, and the service never starts.",
			Fix:   "change one of the two directives that the message names",
			Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], external: true, type: "oneshot", restart: "always"}`,
			Right: `services: "a.service": {exec: ["/usr/bin/yes"], external: true, type: "oneshot", restart: "on-failure"}`,
			See:   "systemd: service_verify in src/core/service.c",
			run:   checkServiceRefused,
		},
	}
}

// effective is the value of a directive that has a field: that of the field, or that of unit.
func effective(svc *config.Service, field config.String, directive string) (config.Place, string) {
	if field.IsSet() {
		return field.Place, field.Text
	}
	d := svc.Unit.Get("Service").Get(directive)
	return d.Place, d.Scalar.Text
}

func checkServiceRefused(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		directives := svc.Unit.Get("Service")
		typeAt, kind := effective(svc, svc.Type, "Type")
		restartAt, restart := effective(svc, svc.Restart, "Restart")
		if kind == "oneshot" && (restart == "always" || restart == "on-success") {
			s.reportAt(restartAt, restartAt.Show(), `write "on-failure"`, "systemd refuses a oneshot with Restart=%s", restart).addRelated(typeAt, "the type")
		}
		if kind == "dbus" && !directives.Get("BusName").IsSet() {
			s.reportAt(typeAt, typeAt.Show(), "add unit: Service: BusName", "systemd refuses Type=dbus without BusName")
		}
		commands := 0
		for _, c := range directives.Get("ExecStart").Scalar.Elements() {
			if commands++; c.Text == "" {
				commands = 0
			}
		}
		if start := directives.Get("ExecStart"); start.IsSet() && commands > 1 && kind != "oneshot" && (kind != "" || isWhole(svc)) {
			s.reportAt(start, start.Show(), `set type: "oneshot", or name one command`, "systemd refuses several ExecStart unless the type is oneshot")
		}
	}
}

// isWhole reports whether the layer writes the whole unit, whose type is then known.
func isWhole(svc *config.Service) bool {
	start := svc.Unit.Get("Service").Get("ExecStart")
	return svc.Exec.IsSet() || start.IsSet() && start.Scalar.Elements()[0].Text != ""
}
