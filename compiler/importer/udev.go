package importer

import (
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
)

// udevKey is KEY{attribute}=="value".
var udevKey = lazyregexp.New(`^\s*,?\s*([A-Z_]+)(?:\{([^}]*)\})?\s*(==|!=|\+=|-=|:=|=)\s*"((?:[^"\\]|\\.)*)"`)

// udev reads rules that set attributes of block devices and network interfaces
// chosen by their kernel name.
func (im *importer) udev(lines []*Line, _ Source) {
	for _, g := range logical(lines) {
		im.importRule(g[0], joined(g))
		copyVerdict(g)
	}
}

func (im *importer) importRule(l *Line, text string) {
	var devices []string
	type assigned struct{ attr, value string }
	var values []assigned
	subsystem := ""
	for rest := text; strings.TrimSpace(rest) != ""; {
		m := udevKey.FindStringSubmatch(rest)
		if m == nil {
			l.leave("not a supported rule")
			return
		}
		rest = rest[len(m[0]):]
		key, attr, op, value := m[1], m[2], m[3], m[4]
		switch {
		case key == "ACTION" && op == "==":
		case key == "ACTION" && op == "!=" && value == "remove":
		case key == "SUBSYSTEM" && op == "==":
			subsystem = value
		case key == "KERNEL" && op == "==":
			devices = strings.Split(value, "|")
		case key == "ENV" && attr == "DEVTYPE" && op == "==" && value == "disk":
		case key == "ATTR" && (op == "=" || op == ":="):
			values = append(values, assigned{attr, value})
		case key == "RUN" || key == "PROGRAM" || key == "IMPORT":
			l.trap(udevRun)
			l.leave("yoctune's rules run no programs")
			return
		case op == "==" || op == "!=":
			l.leavef("yoctune chooses devices by their kernel name only, not by %s", clean(key+"{"+attr+"}"))
			return
		default:
			l.leavePart(clean(key), "yoctune's rules set attributes only")
		}
	}
	switch {
	case len(values) == 0:
		if l.Verdict == "" && !l.partial {
			l.leave("it sets no attribute")
		}
		return
	case len(devices) == 0:
		l.leave("it does not match a device by its kernel name")
		return
	case subsystem != "block" && subsystem != "net" && subsystem != "":
		l.leavef("yoctune has no field for devices of %s", clean(subsystem))
		return
	}
	for _, device := range devices {
		glob := simpleGlob(device)
		if glob != device {
			l.adjusted("%s becomes %s: a device glob has * and ? only", clean(device), glob)
		}
		for _, v := range values {
			attr, isQueue := strings.CutPrefix(v.attr, "queue/")
			switch {
			case isQueue && subsystem != "net":
				im.setQueue(l, glob, attr, v.value)
			case v.attr == "bdi/read_ahead_kb" && subsystem != "net":
				im.setQueue(l, glob, "read_ahead_kb", v.value)
			case subsystem == "net":
				im.setNetwork(l, glob, v.attr, v.value)
			default:
				l.leavePart(clean(v.attr), "yoctune has no field for this attribute")
			}
		}
	}
}

// simpleGlob writes a set of characters such as [a-z] as ?.
func simpleGlob(s string) string {
	for {
		open := strings.IndexByte(s, '[')
		if open < 0 {
			return s
		}
		end := strings.IndexByte(s[open:], ']')
		if end < 0 {
			return s
		}
		s = s[:open] + "?" + s[open+end+1:]
	}
}
