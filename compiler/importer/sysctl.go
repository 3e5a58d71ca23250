package importer

import (
	"strconv"
	"strings"

	facts "github.com/yoctune/yoctune/schema/facts/sysctl"
	"github.com/yoctune/yoctune/schema/formats/sysctld"
)

// readSysctl reads sysctl.d(5): key = value; "-" in front ignores errors; "/" may
// separate the parts of a key; globs choose several.
func (im *importer) readSysctl(lines []*Line, _ Source) {
	for _, l := range lines {
		if l.Verdict != "" {
			continue
		}
		switch set := sysctld.ParseLine(l.Text); set.Kind {
		case sysctld.Exclusion:
			l.leave("it excludes keys from a glob, and yoctune writes no globs")
		case sysctld.Other:
			l.leave("not a key = value line")
		default:
			if set.Lenient {
				l.markAdjusted("the - is removed: a value that cannot be written is reported, not ignored")
			}
			im.importSysctlValue(l, set.Key, set.Value)
		}
	}
}

// importSysctlValue puts one kernel parameter into the configuration.
func (im *importer) importSysctlValue(l *Line, name, value string) {
	if sysctld.IsGlob(name) {
		l.leavePart(name, "yoctune writes no globs: name the interfaces or devices")
		return
	}
	if !isWord(name) || !strings.Contains(name, ".") {
		l.leavePart(clean(name), "not a kernel parameter's name")
		return
	}
	if cut, comment, ok := cutTrailingComment(value); ok {
		value = cut
		l.addTrap(trailingComment)
		l.markAdjusted("the format has no comments after values; %q would become part of the value", comment)
	}
	value = strings.Join(strings.Fields(value), " ")
	if value == "" {
		l.leavePart(name, "it has no value")
		return
	}
	f, known := facts.Lookup(name)
	if known {
		switch {
		case f.Has(facts.WriteOnly):
			l.addTrap(writeOnlySysctl)
			l.leavePart(name, "writing it does something once, and it cannot be read back")
			return
		case f.Has(facts.ReadOnly):
			l.leavePart(name, "it is read-only")
			return
		case f.PresenceIn(im.release.KernelVersion).State == facts.Absent:
			if f.Has(facts.Moved) {
				l.addTrap(movedSysctl)
			}
			why := "the kernel of " + im.release.Name + " (" + im.release.Kernel + ") does not have it"
			if f.Note != "" {
				why += ": " + f.Note
			}
			l.leavePart(name, "%s", why)
			return
		}
	} else if near, ok := facts.Nearest(name); ok {
		l.addTrap(unknownSysctl)
		l.addNote("nothing is known about %s; did you mean %s?", name, near)
	}
	im.setField(l, formatScalar(value), "sysctl", name)
}

// cutTrailingComment cuts a comment off a value: text after a blank and a # or ;.
func cutTrailingComment(value string) (cut, comment string, found bool) {
	for i := 1; i < len(value); i++ {
		if (value[i] == '#' || value[i] == ';') && (value[i-1] == ' ' || value[i-1] == '\t') {
			return strings.TrimSpace(value[:i]), clean(value[i:]), true
		}
	}
	return value, "", false
}

// number reads a whole number.
func number(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}
