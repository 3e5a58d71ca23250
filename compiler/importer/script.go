package importer

import (
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/knob"
)

// Writing a kernel file from a shell: `echo V > F`, `printf V > F`, `sysctl -w
// K=V`. `echo V | tee F` is the same.
var (
	redirect = lazyregexp.New(`^(?:sudo\s+)?(?:/bin/|/usr/bin/)?(?:echo|printf)\s+(?:-[neE]+\s+)?("[^"]*"|'[^']*'|[^\s;|>"']+)\s*(?:\|\s*(?:sudo\s+)?tee(?:\s+-a)?|>>?)\s*("[^"]*"|'[^']*'|[^\s;&|]+)\s*$`)
	sysctlW  = lazyregexp.New(`^(?:sudo\s+)?(?:/sbin/|/usr/sbin/)?sysctl\s+(?:-q\s+)?(?:-w\s+)?("[^"]*"|'[^']*'|[A-Za-z0-9_./-]+\s*=\s*[^\s;&|"']+|[A-Za-z0-9_./-]+="[^"]*")\s*$`)
)

// export of a variable that bitbake may get from the shell.
var export = lazyregexp.New(`^\s*export\s+([A-Z][A-Z0-9_]*)=`)

// leaveExport points out a variable for bitbake that the release refuses: a search
// through the layers for it finds nothing.
func (im *importer) leaveExport(l *Line) bool {
	m := export.FindStringSubmatch(l.Text)
	if m == nil {
		return false
	}
	to, ok := im.release.FindRenamed(m[1])
	if !ok {
		return false
	}
	l.addTrap(renamedVariable)
	im.leaveRenamed(l, m[1], to)
	return true
}

// readScript reads a shell script. It imports lines that write kernel files and leaves all
// others.
func (im *importer) readScript(lines []*Line, _ Source) {
	for _, l := range lines {
		if l.Verdict != "" {
			continue
		}
		if im.leaveExport(l) {
			continue
		}
		if !im.importCommand(l, l.Text) {
			l.leave("part of a script; only lines that write one kernel file are read")
		}
	}
}

// importCommand reads one command; false when it does not write a kernel file.
func (im *importer) importCommand(l *Line, command string) bool {
	command = strings.TrimSpace(command)
	command = strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(command, "|| true"), "2>/dev/null"))
	command = strings.TrimSuffix(command, ";")
	if m := sysctlW.FindStringSubmatch(command); m != nil {
		key, value, ok := strings.Cut(strings.Trim(m[1], `"'`), "=")
		if !ok {
			return false
		}
		l.addTrap(sysfsScript)
		im.importSysctlValue(l, knob.DottedSysctl(strings.TrimSpace(key)), strings.Trim(value, `"' `))
		return true
	}
	m := redirect.FindStringSubmatch(command)
	if m == nil {
		return false
	}
	name := strings.Trim(m[2], `"'`)
	if !strings.HasPrefix(name, "/sys/") && !strings.HasPrefix(name, "/proc/") {
		return false
	}
	l.addTrap(sysfsScript)
	im.importKernelFile(l, name, m[1])
	return true
}
