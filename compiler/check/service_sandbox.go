package check

import (
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
)

func sandboxRules() []Rule {
	return []Rule{{
		ID: "service-sandbox", Severity: diag.Error,
		Title: "the sandbox forbids what the service's command does",
		Cause: "A service with exec runs in systemd's sandbox unless hardening is false. ProtectKernelTunables= makes /proc/sys and /sys read-only, ProtectKernelModules= refuses modules, and RestrictNamespaces= refuses new namespaces: the command fails, and so does the service.",
		Fix:   "set hardening: false, or let yoctune do it: sysctl, modules",
		Wrong: `services: "a.service": {exec: ["/usr/sbin/modprobe", "can"], external: true}`,
		Right: `modules: can: "load"`,
		See:   "systemd.exec(5)",
		run:   checkServiceSandbox,
	}}
}

// forbiddenCommand is a command that a directive of the sandbox makes fail.
type forbiddenCommand struct {
	directive string
	fails     func(args []string) bool
	instead   string
}

// chrt, and commands that own the clocks, have rules of their own.
func forbiddenCommands() map[string]forbiddenCommand {
	always := func([]string) bool { return true }
	module := forbiddenCommand{"ProtectKernelModules=yes", always, "list the module under modules"}
	return map[string]forbiddenCommand{
		"sysctl": {"ProtectKernelTunables=yes", func(args []string) bool {
			return slices.ContainsFunc(args, func(a string) bool { return a == "-w" || a == "-p" || strings.Contains(a, "=") })
		}, "set it under sysctl"},
		"modprobe": module, "insmod": module, "rmmod": module,
		"unshare": {"RestrictNamespaces=yes", always, "set hardening: false"},
	}
}

func checkServiceSandbox(s *subject) {
	forbidden := forbiddenCommands()
	for _, svc := range s.Config.Services.Entries {
		if !isSandboxed(svc) {
			continue
		}
		for _, c := range commandsOf(svc) {
			if c.isPrivileged() {
				continue // outside the sandbox
			}
			for i, word := range c.Items {
				name, args := path.Base(word.Text), config.Texts(c.List)[i+1:]
				f, found := forbidden[name]
				isCommand := i == 0 || strings.HasPrefix(word.Text, "/")
				if found && isCommand && f.fails(args) {
					s.reportAt(word, word.Show(), f.instead+", or hardening: false", "%s fails in %s: its sandbox has %s", name, svc.Key(), f.directive)
				}
			}
		}
	}
}

// isSandboxed reports whether the layer writes a whole unit with systemd's sandbox.
func isSandboxed(svc *config.Service) bool { return resolve.IsWholeUnit(svc) && svc.Hardening.Or(true) }
