package importer

import (
	"strings"

	facts "github.com/yoctune/yoctune/schema/facts/directive"
)

// readTmpfiles reads tmpfiles.d(5): the lines that write kernel files.
func (im *importer) readTmpfiles(lines []*Line, _ Source) {
	for _, l := range lines {
		if l.Verdict != "" {
			continue
		}
		words := strings.Fields(l.Text)
		kind, marks := words[0][:1], words[0][1:]
		state := facts.Lookup(facts.Tmpfiles, kind, im.release.Systemd).State
		switch {
		case state == facts.Absent || strings.Trim(marks, "!-=~^$+?") != "":
			l.leavef("tmpfiles.d of systemd %s has no lines of type %s, and ignores this one", im.release.Systemd, clean(words[0]))
		case kind != "w" || len(words) < 2 || !strings.HasPrefix(words[1], "/sys/") && !strings.HasPrefix(words[1], "/proc/"):
			l.leave("yoctune writes kernel files; the line stays in its file")
		case strings.Contains(words[0], "+"):
			l.leave("it appends to a file")
		default:
			im.importTmpfile(l, words)
		}
	}
}

// importTmpfile imports TYPE PATH MODE USER GROUP AGE ARGUMENT.
func (im *importer) importTmpfile(l *Line, words []string) {
	const before = 6 // fields in front of the argument, which has blanks
	if len(words) <= before {
		l.leave("it writes nothing")
		return
	}
	value := strings.Join(words[before:], " ")
	if strings.ContainsAny(value+words[1], `%\"'`) {
		l.leave("yoctune writes the text as it stands, without specifiers, quotes and escapes")
		return
	}
	im.importKernelFile(l, words[1], value)
	if strings.Contains(words[0], "!") && len(l.paths) > 0 {
		l.markAdjusted("not only at boot: yoctuned keeps the value")
	}
}
