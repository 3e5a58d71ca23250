package importer

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
	facts "github.com/yoctune/yoctune/schema/facts/tuned"
	"github.com/yoctune/yoctune/schema/spelling"
)

// tunedProfile is a tuned.conf.
type tunedProfile struct {
	source   Source
	lines    []*Line
	options  []tunedOption
	includes []string
	vars     map[string]string
	top      bool // no other profile includes it
	done     bool
}

// tunedOption is a line NAME=VALUE of a section.
type tunedOption struct {
	line    *Line
	section *tunedSection
	name    string
	value   string
}

// tunedSection is an instance of a plugin.
type tunedSection struct {
	plugin  string
	devices []string
	why     string // it is left
}

// isTuned reports whether a file is a profile of tuned.
func isTuned(name string) bool { return path.Base(name) == "tuned.conf" }

// readTuned keeps a profile until all are read: it may include others.
func (im *importer) readTuned(lines []*Line, s Source) {
	p := &tunedProfile{source: s, lines: lines, vars: map[string]string{}, top: true}
	section := &tunedSection{}
	for _, g := range groupContinuedLines(lines) {
		l, text := g[0], joinLines(g)
		if strings.HasPrefix(text, "[") {
			section = &tunedSection{plugin: strings.Trim(text, "[]")}
			l.markUnderstood("")
			continue
		}
		name, value, ok := strings.Cut(text, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || section.plugin == "" {
			l.leave("not a NAME=VALUE line of a section")
			continue
		}
		copyVerdict(g)
		switch {
		case section.plugin == "main" && name == "include":
			p.includes = append(p.includes, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...)
		case section.plugin == "variables":
			p.vars[name] = value
		case name == "type":
			section.plugin = value
		case name == "devices":
			section.devices = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
		case strings.HasSuffix(name, "_regex") || name == "enabled":
			section.why = "whether the section applies depends on the machine: " + clean(text)
		}
		p.options = append(p.options, tunedOption{l, section, name, value})
	}
	im.tuned = append(im.tuned, p)
}

// readTunedProfiles imports the profile, after those that it includes.
func (im *importer) readTunedProfiles() {
	var tops []*tunedProfile
	for _, p := range im.tuned {
		for _, name := range p.includes {
			if q := im.findTuned(name); q != nil && q != p {
				q.top = false
			}
		}
	}
	for _, p := range im.tuned {
		if p.top {
			tops = append(tops, p)
		}
	}
	for _, p := range tops {
		if len(tops) == 1 || p.source.Given {
			im.importTuned(p, p.vars)
		}
	}
	for _, p := range im.tuned {
		if !p.done {
			leaveRest(p.lines, "one profile of tuned is active at a time; give its file by name to import it")
		}
	}
}

func (im *importer) findTuned(name string) *tunedProfile {
	for _, p := range im.tuned {
		if path.Base(path.Dir(p.source.Name)) == name {
			return p
		}
	}
	return nil
}

// importTuned imports a profile; vars are the variables of the one that is active.
func (im *importer) importTuned(p *tunedProfile, vars map[string]string) {
	if p.done {
		return
	}
	p.done = true
	for _, name := range p.includes {
		if q := im.findTuned(name); q != nil {
			im.importTuned(q, vars)
		}
	}
	for _, o := range p.options {
		im.importTunedOption(o, vars)
		if o.line.Verdict == "" && !o.line.partial {
			o.line.markUnderstood("")
		}
	}
}

// importTunedOption imports one line.
func (im *importer) importTunedOption(o tunedOption, vars map[string]string) {
	l, s := o.line, o.section
	value := o.value
	if v := strings.TrimSuffix(strings.TrimPrefix(value, `"`), `"`); len(v)+2 == len(value) {
		value = v // as tuned's commands.unquote
	}
	for name, v := range vars {
		if !strings.Contains(v, "${") {
			value = strings.ReplaceAll(value, "${"+name+"}", v)
		}
	}
	switch {
	case s.plugin == "main":
		im.readTunedMain(l, o.name, value)
	case s.plugin == "variables" && o.name == "include":
		l.leavef("%s, a file of variables, is not read", clean(value))
	case s.plugin == "variables" && !strings.Contains(value, "${"):
		l.markUnderstood("its uses get the value")
	case strings.Contains(value, "${"):
		l.addTrap(environmentOnly)
		l.leavef("tuned computes %s", clean(value))
	case s.why != "":
		l.leave(s.why)
	case o.name == "type" || o.name == "devices":
		l.markUnderstood("")
	case o.name == "priority" || o.name == "replace":
		l.leave("an option of tuned itself")
	default:
		im.readTunedPlugin(l, s, o.name, value)
	}
}

func (im *importer) readTunedMain(l *Line, name, value string) {
	if name == "summary" {
		l.markUnderstood("a description")
		return
	}
	if name != "include" {
		l.leavef("yoctune has no field for %s of tuned", clean(name))
		return
	}
	for w := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ' ' }) {
		if q := im.findTuned(w); q != nil {
			l.addNote("%s is imported as well", q.source.Name)
			continue
		}
		l.leavePart(clean(w), "the profile is not among these files")
	}
}

// readTunedPlugin imports an option of a plugin that has a counterpart.
func (im *importer) readTunedPlugin(l *Line, s *tunedSection, name, value string) {
	switch s.plugin + "/" + name {
	case "vm/transparent_hugepages", "vm/transparent_hugepage":
		im.setField(l, quoteCUE(value), "memory", "thp")
	case "vm/transparent_hugepage.defrag":
		im.setField(l, quoteCUE(value), "memory", "thpDefrag")
	case "vm/dirty_bytes", "vm/dirty_background_bytes", "vm/dirty_ratio", "vm/dirty_background_ratio":
		if percent, ok := strings.CutSuffix(value, "%"); ok {
			name, value = strings.Replace(name, "_bytes", "_ratio", 1), percent
		}
		im.importTunedSysctl(l, "vm."+name, value)
	case "cpu/governor", "cpu/energy_performance_preference":
		first, others, several := strings.Cut(value, "|")
		if several {
			l.markAdjusted("tuned would try %s after it", clean(others))
		}
		im.setField(l, quoteCUE(first), "cpu", map[string]string{"governor": "governor", "energy_performance_preference": "epp"}[name])
	case "cpu/boost":
		im.setSwitch(l, value, "cpu", "boost")
	case "cpu/pm_qos_resume_latency_us":
		im.setField(l, quoteCUE(value+"us"), "cpu", "maxIdleLatency")
	case "cpu/force_latency":
		if _, ok := number(value); !ok {
			l.leavef("the latency of %s follows from the states of the processor; cpu.maxIdleLatency is a time", clean(value))
			return
		}
		im.setField(l, quoteCUE(value+"us"), "cpu", "maxIdleLatency")
	case "disk/elevator", "disk/readahead":
		im.importTunedDisk(l, s, name, value)
	case "net/mtu", "net/txqueuelen", "net/ring", "net/channels", "net/coalesce", "net/features":
		im.importTunedNet(l, s, name, value)
	default:
		im.readTunedFree(l, s, name, value)
	}
}

// readTunedFree imports options of plugins that take any name.
func (im *importer) readTunedFree(l *Line, s *tunedSection, name, value string) {
	switch {
	case s.plugin == "sysctl":
		im.importTunedSysctl(l, name, value)
	case s.plugin == "sysfs":
		im.importKernelFile(l, name, value)
	case s.plugin == "bootloader" && strings.HasPrefix(name, "cmdline"):
		if strings.HasPrefix(value, "-") {
			l.leave("it removes arguments of another section")
			return
		}
		im.addArguments(l, strings.TrimLeft(value, "+"))
	case s.plugin == "scheduler" && strings.HasPrefix(name, "group."):
		im.importTunedGroup(l, value)
	case s.plugin == "modules":
		options, reload := strings.CutPrefix(value, "+r")
		if reload {
			l.markAdjusted("the module is loaded at boot and not reloaded")
			im.setModule(l, name, "load")
		}
		for _, w := range strings.Fields(strings.TrimPrefix(options, ",")) {
			if !moduleOption.MatchString(w) {
				l.leavePart(clean(w), "not an option of a module")
				continue
			}
			im.addArgument(l, name+"."+w)
		}
	default:
		leaveTuned(l, s.plugin, name)
	}
}

// moduleOption is NAME or NAME=VALUE.
var moduleOption = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*(=|$)`)

// tunedThreads is a pattern of tuned's scheduler plugin for kernel threads, whose names it reads in
// brackets.
var tunedThreads = lazyregexp.New(`^\^\\?\[([A-Za-z0-9_/-]+?)(?:/?\.\*)?(?:\\?\]\$?)?$`)

// tunedPolicies are the policies of tuned's scheduler plugin.
var tunedPolicies = map[string]string{"f": "fifo", "r": "rr", "o": "other", "b": "batch", "i": "idle"}

// importTunedGroup imports RULE:POLICY:PRIORITY:CORES:PATTERN of tuned's scheduler plugin where the
// pattern names kernel threads.
func (im *importer) importTunedGroup(l *Line, value string) {
	const parts = 5
	words := strings.SplitN(value, ":", parts)
	if len(words) != parts {
		l.leave("not RULE:POLICY:PRIORITY:CORES:PATTERN of tuned's scheduler plugin")
		return
	}
	m := tunedThreads.FindStringSubmatch(words[4])
	if m == nil {
		l.leave("tuned chooses tasks by their command line; services and threads have scheduling, priority and affinity by name")
		return
	}
	thread := strings.TrimSuffix(m[1], "/") + "*"
	if policy := tunedPolicies[words[1]]; policy != "" {
		im.setField(l, quoteCUE(policy), "threads", thread, "policy")
	} else if words[1] != "*" {
		l.leavePart(clean(words[1]), "not a policy of tuned")
	}
	if words[1] == "f" || words[1] == "r" {
		im.setField(l, formatScalar(words[2]), "threads", thread, "priority")
	}
	if words[3] != "*" {
		l.leavePart(clean(words[3]), "threads have affinity, a list of cores")
	}
}

// leaveTuned leaves an option without a counterpart, and names what was probably meant.
func leaveTuned(l *Line, plugin, name string) {
	options, ok := facts.Options(plugin)
	switch {
	case !ok:
		l.leavef("tuned has no plugin %s", clean(plugin))
		if near := spelling.Nearest(plugin, facts.Plugins()); near != "" {
			l.addNote("did you mean %s?", near)
		}
	case len(options) > 0 && !slices.Contains(options, name):
		l.leavef("tuned's plugin %s has no option %s", plugin, clean(name))
		if near := spelling.Nearest(name, options); near != "" {
			l.addNote("did you mean %s?", near)
		}
	default:
		l.leavef("yoctune has no field for %s of tuned's plugin %s", clean(name), plugin)
	}
}

func (im *importer) setSwitch(l *Line, value string, names ...string) {
	if is := switchOf(value); is != "" {
		im.setField(l, is, names...)
		return
	}
	l.leavef("%q is not a switch", clean(value))
}

// importTunedSysctl imports a parameter, without the mark that keeps a higher or lower value.
func (im *importer) importTunedSysctl(l *Line, name, value string) {
	im.importSysctlValue(l, name, cutModifier(l, value))
}

// cutModifier cuts the mark in front of a value with which tuned keeps a higher (>) or lower
// (<) one.
func cutModifier(l *Line, value string) string {
	for mark, word := range map[string]string{">": "higher", "<": "lower"} {
		if rest, ok := strings.CutPrefix(value, mark); ok {
			l.markAdjusted("tuned keeps a %s value that is there, and yoctune does not", word)
			return strings.TrimSpace(rest)
		}
	}
	return value
}

func (im *importer) importTunedDisk(l *Line, s *tunedSection, name, value string) {
	devices := s.devices
	if len(devices) == 0 {
		devices = []string{"nvme*", "mmcblk*", "sd*"}
		l.markAdjusted("for all disks: their names on a Jetson")
	}
	value = cutModifier(l, value)
	attr := "scheduler"
	if name == "readahead" {
		attr = "read_ahead_kb"
		if sectors, ok := strings.CutSuffix(value, "s"); ok {
			if n, ok := number(strings.TrimSpace(sectors)); ok && n%2 == 0 {
				value = fmt.Sprint(n / 2)
			}
		}
	}
	for _, device := range devices {
		if strings.HasPrefix(device, "!") {
			l.leavePart(clean(device), "yoctune's globs exclude no names")
			continue
		}
		im.setQueue(l, simpleGlob(device), attr, value)
	}
}

func (im *importer) importTunedNet(l *Line, s *tunedSection, name, value string) {
	if len(s.devices) == 0 {
		l.leave("for all interfaces; yoctune needs their names")
		return
	}
	for _, device := range s.devices {
		device = simpleGlob(device)
		switch {
		case strings.HasPrefix(device, "!"):
			l.leavePart(clean(device), "yoctune's globs exclude no names")
		case name == "mtu":
			im.setNetwork(l, device, "mtu", value)
		case name == "txqueuelen":
			im.setNetwork(l, device, "tx_queue_len", value)
		default:
			words := strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' })
			if name == "features" {
				im.setFeatures(l, device, words)
				continue
			}
			im.setEthtool(l, name, device, words)
		}
	}
}
