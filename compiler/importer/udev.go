package importer

import (
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
	facts "github.com/yoctune/yoctune/schema/facts/directive"
	"github.com/yoctune/yoctune/schema/spelling"
)

// udevKey is KEY{attribute}=="value".
var udevKey = lazyregexp.New(`^\s*,?\s*([A-Z_]+)(?:\{([^}]*)\})?\s*(==|!=|\+=|-=|:=|=)\s*"((?:[^"\\]|\\.)*)"`)

// readUdev reads rules that set attributes of block devices and network interfaces
// chosen by their kernel name.
func (im *importer) readUdev(lines []*Line, _ Source) {
	groups := groupContinuedLines(lines)
	rules := make([][]udevToken, len(groups))
	labels := map[string]int{} // the last rule with a label
	for i, g := range groups {
		rules[i] = parseTokens(joinLines(g))
		if name := findToken(rules[i], "LABEL"); name != "" {
			labels[name] = i
		}
	}
	var jumps []udevJump
	for i, g := range groups {
		jumps = slices.DeleteFunc(jumps, func(j udevJump) bool { return i >= j.to })
		switch to, isKnown := labels[findToken(rules[i], "GOTO")]; {
		case g[0].Verdict != "":
		case isKnown && to > i:
			jumps = append(jumps, readJump(g[0], rules[i], to))
		case len(rules[i]) == 1 && rules[i][0].key == "LABEL":
			g[0].markUnderstood("the end of a jump")
		default:
			im.importRule(g[0], rules[i], jumps)
		}
		copyVerdict(g)
	}
}

// udevToken is KEY{attr} OP "value" of a rule.
type udevToken struct{ key, attr, op, value string }

// parseTokens splits a rule; nil if it is not one.
func parseTokens(text string) []udevToken {
	var tokens []udevToken
	for rest := text; strings.TrimSpace(rest) != ""; {
		m := udevKey.FindStringSubmatch(rest)
		if m == nil {
			return nil
		}
		rest = rest[len(m[0]):]
		tokens = append(tokens, udevToken{m[1], m[2], m[3], m[4]})
	}
	return tokens
}

func findToken(tokens []udevToken, key string) string {
	for _, t := range tokens {
		if t.key == key {
			return t.value
		}
	}
	return ""
}

// udevJump is a GOTO, which leads over the rules before its label.
type udevJump struct {
	line, to  int
	subsystem string // whose devices do not jump; "" if any may
}

// readJump reads a rule with GOTO. It is harmless if devices that appear do not jump.
func readJump(l *Line, tokens []udevToken, to int) udevJump {
	j := udevJump{line: l.Line, to: to}
	for _, t := range tokens {
		switch {
		case t.key == "ACTION" && t.op == "==" && !matchesAction(t.value, "add"), t.key == "ACTION" && t.op == "!=" && matchesAction(t.value, "add"):
			l.markUnderstood("a device that appears does not jump")
			j.to = 0
			return j
		case t.key == "SUBSYSTEM" && t.op == "!=" && !strings.ContainsAny(t.value, "|*?["):
			j.subsystem = t.value
		}
	}
	if j.subsystem != "" {
		l.markUnderstood("the rules up to its label are for the subsystem %s", clean(j.subsystem))
		return j
	}
	l.leave("it leads over the rules up to its label")
	return j
}

// matchesAction reports whether a pattern of ACTION has an action.
func matchesAction(pattern, action string) bool {
	return slices.ContainsFunc(strings.Split(pattern, "|"), func(p string) bool {
		is, err := path.Match(p, action)
		return is && err == nil
	})
}

// udevRule is a rule that sets attributes of devices.
type udevRule struct {
	subsystem string
	devices   []string // kernel names
	vendor    string   // of a USB device
	product   string
	values    []udevValue
}

type udevValue struct{ attr, value string }

func (im *importer) importRule(l *Line, tokens []udevToken, jumps []udevJump) {
	r, ok := readRule(l, tokens)
	if !ok {
		return
	}
	for _, j := range jumps {
		if j.subsystem != "" && (r.subsystem == "" || r.subsystem == j.subsystem) {
			r.subsystem = j.subsystem
			continue
		}
		l.leavef("line %d may lead over it", j.line)
		return
	}
	switch {
	case len(r.values) == 0:
		if l.Verdict == "" && !l.partial {
			l.leave("it sets no attribute")
		}
		return
	case r.subsystem == "usb" && r.vendor != "" && r.product != "" && len(r.devices) == 0:
		im.setUSB(l, r)
		return
	case r.vendor != "" || r.product != "":
		l.leave("bus.usb.devices has devices of the subsystem usb by idVendor and idProduct")
		return
	case len(r.devices) == 0:
		l.leave("it does not match a device by its kernel name")
		return
	case !slices.Contains([]string{"block", "net", ""}, r.subsystem):
		l.leavef("yoctune has no field for devices of %s", clean(r.subsystem))
		return
	}
	for _, device := range r.devices {
		glob := simpleGlob(device)
		if glob != device {
			l.markAdjusted("%s becomes %s: a device glob has * and ? only", clean(device), glob)
		}
		for _, v := range r.values {
			attr, isQueue := strings.CutPrefix(v.attr, "queue/")
			switch {
			case r.subsystem == "net":
				im.setNetwork(l, glob, v.attr, v.value)
			case isQueue:
				im.setQueue(l, glob, attr, v.value)
			case v.attr == "bdi/read_ahead_kb":
				im.setQueue(l, glob, "read_ahead_kb", v.value)
			default:
				l.leavePart(clean(v.attr), "yoctune has no field for this attribute")
			}
		}
	}
}

// setUSB imports the power management of a device by its identity.
func (im *importer) setUSB(l *Line, r udevRule) {
	for _, v := range r.values {
		if v.attr != "power/control" || v.value != "on" && v.value != "auto" {
			l.leavePart(clean(v.attr), "bus.usb.devices has power/control: on or auto")
			continue
		}
		im.setField(l, quoteCUE(v.value), "bus", "usb", "devices", strings.ToLower(r.vendor)+":"+strings.ToLower(r.product))
	}
}

// readRule reads a rule. It leaves the line and returns false when the rule does more than
// set attributes of devices with a kernel name.
func readRule(l *Line, tokens []udevToken) (r udevRule, ok bool) {
	if len(tokens) == 0 {
		l.leave("not a supported rule")
		return r, false
	}
	var tests []string
	for _, t := range tokens {
		key, attr, op, value := t.key, t.attr, t.op, t.value
		switch {
		case !slices.Contains(facts.Names(facts.Udev), key):
			l.leavef("udev has no key %s, and ignores the rule%s", clean(key), suggestDirective(facts.Udev, key))
			return r, false
		case key == "ACTION" && (op == "==") != matchesAction(value, "add"):
			// Devices that are there at boot are seen with "add"; interfaces with "move" when they
			// get their name, and USB devices with "bind".
			if !slices.ContainsFunc([]string{"change", "move", "bind"}, func(a string) bool { return (op == "==") == matchesAction(value, a) }) {
				l.leave("it does not apply when a device appears")
				return r, false
			}
			l.markAdjusted("also when the device appears")
		case key == "ACTION", key == "LABEL":
		case key == "SUBSYSTEM" && op == "==":
			r.subsystem = value
		case key == "KERNEL" && op == "==":
			r.devices = strings.Split(value, "|")
		case key == "ENV" && attr == "DEVTYPE" && op == "==" && (value == "disk" || value == "usb_device"):
		case key == "ATTR" && op == "==" && attr == "idVendor":
			r.vendor = value
		case key == "ATTR" && op == "==" && attr == "idProduct":
			r.product = value
		case key == "TEST" && op == "==" && attr == "" && !strings.HasPrefix(value, "/"):
			tests = append(tests, value)
		case key == "ATTR" && (op == "=" || op == ":="):
			r.values = append(r.values, udevValue{attr, value})
		case key == "RUN" || key == "PROGRAM" || key == "IMPORT":
			l.addTrap(udevRun)
			l.leave("yoctune's rules run no programs")
			return r, false
		case op == "==" || op == "!=":
			l.leavef("yoctune chooses devices by their kernel name only, not by %s", clean(key+"{"+attr+"}"))
			return r, false
		default:
			l.leavePart(clean(key), "yoctune's rules set attributes only")
		}
	}
	for _, attr := range tests { // a test of what the rule sets holds wherever setting it works
		if !slices.ContainsFunc(r.values, func(v udevValue) bool { return v.attr == attr }) {
			l.leavef("whether it applies depends on %s", clean(attr))
			return r, false
		}
	}
	return r, true
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

// suggestDirective asks for the directive of a kind that was probably meant; "" where none is near.
func suggestDirective(kind, name string) string {
	names := facts.Names(kind)
	if near := spelling.Nearest(name, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
