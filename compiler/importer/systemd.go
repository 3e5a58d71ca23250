package importer

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/internal/lazyregexp"
	facts "github.com/yoctune/yoctune/schema/facts/directive"
	"github.com/yoctune/yoctune/schema/facts/system"
)

// directive is a line of a unit file.
type directive struct {
	line            *Line
	group           []*Line
	section         string
	name            string
	value           string
	ignored         string // why systemd does nothing for it
	keptWithoutUnit bool   // it is a setting of its own and needs no unit
}

// unit is a service, or drop-ins of one, that is read.
type unit struct {
	name   string
	dropIn bool
	sets   []*directiveSet
}

// directiveSet is a directive of a section with all its lines, in their order.
type directiveSet struct {
	section, name string
	lines         []*directive
	values        []string
}

// readSystemd reads a unit, or a drop-in of one. A unit becomes a service if the layer's unit
// behaves the same; otherwise it stays, and its tuning becomes a drop-in.
func (im *importer) readSystemd(lines []*Line, s Source) {
	if isTimer(s) {
		im.readTimer(lines, s)
		return
	}
	u := unit{name: path.Base(s.Name)}
	if name, ok := strings.CutSuffix(path.Base(path.Dir(s.Name)), ".d"); ok {
		u.name, u.dropIn = name, true
	}
	ds := parseDirectives(lines, s)
	defer func() {
		for i := range ds {
			im.noteDirective(&ds[i])
			copyVerdict(ds[i].group)
		}
	}()
	if path.Ext(u.name) == ".mount" && !u.dropIn && im.importMount(ds) {
		return
	}
	why, at := foreignUnit(u.name), (*directive)(nil)
	if why == "" && !isConditional(ds) && !im.isTimed(u.name) && im.importScripted(ds) {
		for i := range ds {
			if d := &ds[i]; !d.isSettled() && !d.keptWithoutUnit {
				d.line.markUnderstood("the settings replace the unit")
			}
		}
		return
	}
	u.sets = im.collectSets(ds)
	if why == "" {
		why, at = im.findBlocker(&u)
	}
	switch {
	case why == "" && !u.dropIn:
		im.importUnit(&u)
	case at == nil && !u.dropIn:
		leaveDirectives(ds, why)
	default:
		if at != nil {
			at.line.leave(why)
			why = fmt.Sprintf("the unit stays where it is: %s (line %d)", why, at.line.Line)
		}
		im.importDropIn(&u, why)
	}
}

// isConditional reports whether a unit starts on a condition, which settings do not have.
func isConditional(ds []directive) bool {
	return slices.ContainsFunc(ds, func(d directive) bool {
		return d.value != "" && (strings.HasPrefix(d.name, "Condition") || strings.HasPrefix(d.name, "Assert"))
	})
}

// foreignUnit explains why yoctune writes no unit of a name, "" if it does.
func foreignUnit(name string) string {
	switch {
	case path.Ext(name) == ".slice":
		return "yoctune writes the slices that services name; with cpu.isolate they get the isolated cores"
	case path.Ext(name) != ".service":
		return "yoctune writes services and their timers; units of other types stay where they are"
	case !serviceName.MatchString(name):
		return "yoctune writes services whose names have letters, digits, '_', '.' and '-', and one '@'"
	}
	return ""
}

var (
	serviceName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,80}(@[A-Za-z0-9_.-]{0,10})?\.service$`)
	ownName     = lazyregexp.New(`^[A-Z][A-Za-z0-9-]{0,79}$`)
)

// isSettled reports whether a line has its verdict: a command that became settings.
func (d *directive) isSettled() bool {
	return d.line.Verdict != "" || d.line.partial || len(d.line.paths) > 0
}

func leaveDirectives(ds []directive, why string) {
	for i := range ds {
		if !ds[i].isSettled() {
			ds[i].line.leave(why)
		}
	}
}

// collectSets groups the directives that systemd reads, and leaves the others.
func (im *importer) collectSets(ds []directive) []*directiveSet {
	var sets []*directiveSet
	for i := range ds {
		d := &ds[i]
		if d.ignored = im.findIgnored(d); d.ignored != "" {
			d.line.leave(d.ignored)
			continue
		}
		at := slices.IndexFunc(sets, func(s *directiveSet) bool { return s.section == d.section && s.name == d.name })
		if at < 0 {
			at = len(sets)
			sets = append(sets, &directiveSet{section: d.section, name: d.name})
		}
		sets[at].lines = append(sets[at].lines, d)
		sets[at].values = append(sets[at].values, d.value)
	}
	return sets
}

// findIgnored explains why the release's systemd skips a line, "" if it does not.
func (im *importer) findIgnored(d *directive) string {
	if strings.HasPrefix(d.section, "X-") || strings.HasPrefix(d.name, "X-") {
		return ""
	}
	if d.section == "" {
		return "it stands before the first section, and systemd skips it"
	}
	switch facts.Lookup(facts.Unit, d.section+"."+d.name, im.release.Systemd).State {
	case facts.Absent:
		return "systemd skips the line"
	case facts.Legacy:
		return "systemd does nothing for it"
	}
	return ""
}

// findBlocker finds what the layer's unit could not have in common with a unit.
func (im *importer) findBlocker(u *unit) (string, *directive) {
	hasCommand := false
	for _, s := range u.sets {
		first := s.lines[0]
		switch {
		case !slices.Contains([]string{"Unit", "Service", "Install"}, s.section):
			return "yoctune writes the sections Unit, Service and Install", first
		case !ownName.MatchString(s.name):
			return "its name is not that of a directive", first
		case s.section == "Install" && u.dropIn:
			return "systemd reads [Install] in whole units", first
		case s.name == "TimeoutSec" && (u.find("Service", "TimeoutStartSec") != nil || u.find("Service", "TimeoutStopSec") != nil),
			strings.HasPrefix(s.name, "StartLimitInterval") && u.countIntervals() > 1:
			return "several directives set the same, and their order counts", first
		}
		for _, d := range s.lines {
			if why := blockValue(d); why != "" {
				return why, d
			}
		}
		hasCommand = hasCommand || s.section == "Service" && s.name == "ExecStart" && s.values[0] != ""
	}
	switch {
	case u.dropIn && hasCommand:
		return "a drop-in that adds a command would replace the unit", u.find("Service", "ExecStart").lines[0]
	case !u.dropIn && !hasCommand:
		return "it has no ExecStart", nil
	case !u.dropIn && im.config.hasField("services", u.name):
		return "another file is about the same unit", nil
	}
	return "", nil
}

// placeholder is what recipes and templates replace in units: @NAME@, __NAME__, {NAME} and {{ NAME }}, but
// not ${NAME}, which systemd reads.
var placeholder = lazyregexp.New(`@[A-Za-z][A-Za-z0-9_]*@|__[A-Z][A-Z0-9_]*__|(?:^|[^$])(\{[A-Za-z][A-Za-z0-9_]*\}|\{\{[^{}]*\}\})`)

// templated is what stands for a value in a template, in files of any kind.
var templated = lazyregexp.New(`@[A-Z][A-Z0-9_]*@|__[A-Z][A-Z0-9_]*__|\{\{[^{}]*\}\}|\{%[^{}]*%\}`)

// blockValue explains why a configuration cannot have a value, "" if it can.
func blockValue(d *directive) string {
	if _, err := quote.SystemdValue(d.value); err != nil || len(d.value) > 4096 {
		return "yoctune has no text of this form"
	}
	if m := placeholder.FindStringSubmatch(d.value); m != nil {
		return "a recipe fills in " + clean(cmp.Or(m[1], m[0]))
	}
	if strings.HasPrefix(d.name, "Exec") {
		for word := range strings.FieldsSeq(d.value) {
			if slices.Contains([]string{"jetson_clocks", "nvpmodel"}, path.Base(strings.Trim(word, `"'`))) {
				return "it changes what power modes own; use power.default and power.modes"
			}
		}
	}
	return ""
}

func (u *unit) find(section, name string) *directiveSet {
	for _, s := range u.sets {
		if s.section == section && s.name == name {
			return s
		}
	}
	return nil
}

// countIntervals counts the names under which a unit sets the interval of its start limit.
func (u *unit) countIntervals() int {
	n := 0
	for _, s := range u.sets {
		if strings.HasPrefix(s.name, "StartLimitInterval") {
			n++
		}
	}
	return n
}

// importUnit writes a whole unit.
func (im *importer) importUnit(u *unit) {
	top := im.newEntry([]string{"services", u.name})
	for _, s := range u.sets {
		if s.section == "Install" && u.isUsualInstall() {
			s.lines[0].line.markUnderstood("a yoctune service starts at boot")
			top.lines = append(top.lines, s.lines[0].line)
			continue
		}
		im.importSet(u, s)
	}
	command := u.find("Service", "ExecStart").lines[0].line
	set := func(value string, names ...string) {
		im.setField(command, value, append([]string{"services", u.name}, names...)...)
	}
	if u.find("Service", "Restart") == nil && !u.isOneshot() {
		set(`"no"`, "restart")
	}
	if u.find("Service", "Type") == nil && u.find("Service", "BusName") != nil {
		set(`"dbus"`, "unit", "Service", "Type") // systemd's default with a BusName
	}
	if !u.hasInstall() {
		set("{}", "unit", "Install")
	}
	set("false", "hardening")
	command.addNote("without yoctune's sandbox, as the unit had none; take the unit out of what installs it now")
	im.whole = append(im.whole, top)
}

func (u *unit) isOneshot() bool {
	s := u.find("Service", "Type")
	return s != nil && slices.Equal(s.values, []string{"oneshot"})
}

func (u *unit) hasInstall() bool {
	return slices.ContainsFunc(u.sets, func(s *directiveSet) bool { return s.section == "Install" })
}

// isUsualInstall reports whether a unit has the section [Install] of yoctune's.
func (u *unit) isUsualInstall() bool {
	return !strings.Contains(u.name, "@") && !slices.ContainsFunc(u.sets, func(s *directiveSet) bool {
		return s.section == "Install" && (s.name != "WantedBy" || !slices.Equal(s.values, []string{"multi-user.target"}))
	})
}

// importSet writes a directive: with the field that means the same, else verbatim.
func (im *importer) importSet(u *unit, s *directiveSet) {
	im.setDirective(s, im.typedFields(u, s), "services", u.name)
	for _, d := range s.lines {
		addCommandTraps(d)
	}
}

// setDirective writes a directive of the unit at a path: with the fields that mean the same, or without any
// verbatim.
func (im *importer) setDirective(s *directiveSet, fields []typedField, top ...string) {
	if fields == nil {
		value := quotedList(s.values)
		if len(s.values) == 1 {
			value = quoteCUE(s.values[0])
		}
		if slices.ContainsFunc(strings.Fields(strings.Join(s.values, " ")), func(name string) bool { return im.isForeignName(s, name) }) {
			value = "{value: " + value + ", external: true}"
		}
		fields = []typedField{{[]string{"unit", s.section, s.name}, value}}
	}
	for _, f := range fields {
		names := slices.Concat(top, f.names)
		im.setField(s.lines[0].line, f.value, names...)
		e := im.config.find(im.newEntry(names))
		for _, d := range s.lines[1:] { // they set the field together
			e.lines = append(e.lines, d.line)
			d.line.paths = append(d.line.paths, showPath(e.names))
		}
	}
	for _, d := range s.lines {
		if d.line.Verdict == "" {
			d.line.markUnderstood("")
		}
	}
}

// isForeignName reports whether a value of a directive names a unit, user or group that no recipe
// of the release brings: the recipe of the unit, or another layer, does.
func (im *importer) isForeignName(s *directiveSet, name string) bool {
	kind := system.Unit
	switch s.section + "." + s.name {
	case "Unit.After", "Unit.Before", "Unit.Wants", "Unit.Requires", "Unit.Requisite", "Unit.BindsTo", "Unit.PartOf", "Unit.Conflicts":
		from, known := system.FindUnit(im.release.Name, name)
		return (!known || len(from.Missing()) > 0) && unitName.MatchString(name) && !slices.Contains([]string{".device", ".mount", ".slice"}, path.Ext(name))
	case "Service.User":
		kind = system.User
	case "Service.Group", "Service.SupplementaryGroups":
		kind = system.Group
	default:
		return false
	}
	_, known := system.Find(im.release.Name, kind, name)
	return !known && userName.MatchString(name) && strings.Trim(name, "0123456789") != ""
}

// addCommandTraps names what a command hides.
func addCommandTraps(d *directive) {
	if !strings.HasPrefix(d.name, "Exec") {
		return
	}
	if strings.HasPrefix(d.value, "-") {
		d.line.addTrap(ignoredFailure)
	}
	if words := strings.Fields(strings.TrimLeft(d.value, "-+!@:")); len(words) > 1 && words[1] == "-c" && slices.Contains([]string{"sh", "bash"}, path.Base(words[0])) {
		d.line.addTrap(shellExec)
	}
}

// importDropIn writes a drop-in: all that a drop-in has, or the tuning of a unit that stays for
// a reason.
func (im *importer) importDropIn(u *unit, why string) {
	for _, s := range u.sets {
		had := len(im.config.entries)
		fields := im.typedFields(u, s)
		isTuning := fields != nil && slices.Contains(tuningFields, fields[0].names[0])
		isTaken := fields != nil && im.config.hasField(append([]string{"services", u.name}, fields[0].names...)...) ||
			im.config.hasField("services", u.name, "unit", s.section, s.name)
		switch {
		case isTaken:
			for _, d := range s.lines {
				d.line.leave("another file sets it too, and their order counts")
			}
		case why == "", isTuning:
			im.importSet(u, s)
			if from, known := system.FindUnit(im.release.Name, u.name); (!known || len(from.Missing()) > 0) && len(im.config.entries) > had {
				im.setField(s.lines[0].line, "true", "services", u.name, "external") // a layer brings the unit
			}
		default:
			for _, d := range s.lines {
				if d.line.Verdict == "" {
					d.line.leave(why)
				}
			}
		}
	}
}

// tuningFields are the fields that mean the same in a drop-in of a unit that stays.
var tuningFields = []string{"nice", "scheduling", "priority", "memoryMax", "memoryHigh", "memoryLock", "cpuWeight", "ioWeight", "cpuQuota", "oomScoreAdjust"}

// noteDirective notes a directive that the release's systemd ignores.
func (im *importer) noteDirective(d *directive) { im.noteDirectiveOf(facts.Unit, d) }

// noteDirectiveOf notes a directive of a kind of file that the release's systemd ignores.
func (im *importer) noteDirectiveOf(kind string, d *directive) {
	name, version := d.section+"."+d.name, im.release.Systemd
	isOwn := strings.HasPrefix(d.name, "X-") || strings.HasPrefix(d.section, "X-") // systemd leaves these to others
	if d.section == "" || isOwn {
		return
	}
	switch facts.Lookup(kind, name, version).State {
	case facts.Absent:
		d.line.addNote("systemd %s of %s has no %s in [%s]", version, im.release.Name, clean(d.name), clean(d.section))
		if near := im.nearestDirective(kind, name); near != "" {
			section, word, _ := strings.Cut(near, ".")
			d.line.addNote("did you mean %s in [%s]?", word, section)
		}
	case facts.Legacy:
		d.line.addNote("systemd %s ignores %s", version, clean(d.name))
	}
}

// maxGuesses bounds the search for directives that were probably meant, which reads the whole table.
const maxGuesses = 200

func (im *importer) nearestDirective(kind, name string) string {
	near, found := im.nearest[kind+"/"+name]
	if found || len(im.nearest) == maxGuesses {
		return near
	}
	if im.nearest == nil {
		im.nearest = map[string]string{}
	}
	near = facts.Nearest(kind, name, im.release.Systemd)
	im.nearest[kind+"/"+name] = near
	return near
}

func parseDirectives(lines []*Line, s Source) []directive {
	raw := strings.Split(string(s.Text), "\n")
	var out []directive
	section := ""
	for _, g := range groupContinuedLines(lines) {
		l, text := g[0], joinDirective(g, raw)
		if strings.HasPrefix(text, "[") {
			section = strings.Trim(text, "[]")
			l.markUnderstood("")
			copyVerdict(g)
			continue
		}
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			l.leave("not a Key=Value line")
			copyVerdict(g)
			continue
		}
		out = append(out, directive{line: l, group: g, section: section, name: strings.TrimSpace(name), value: strings.TrimSpace(value)})
	}
	return out
}

// joinDirective is the text of a statement: systemd puts a blank in the place of each backslash,
// and keeps the blanks at the start of what continues.
func joinDirective(group []*Line, raw []string) string {
	text := group[0].Text
	for _, l := range group[1:] {
		text = strings.TrimSuffix(text, `\`) + " " + strings.TrimRight(raw[l.Line-1], " \t\r")
	}
	return foldTabs(strings.TrimSpace(strings.TrimSuffix(text, `\`)))
}

// foldTabs writes the tabs outside of quotes as blanks, which mean the same to systemd.
func foldTabs(text string) string {
	if !strings.Contains(text, "\t") {
		return text
	}
	quoted := rune(0)
	return strings.Map(func(r rune) rune {
		switch {
		case quoted != 0 && r == quoted:
			quoted = 0
		case quoted == 0 && (r == '"' || r == '\''):
			quoted = r
		case quoted == 0 && r == '\t':
			return ' '
		}
		return r
	}, text)
}

var shellCommand = lazyregexp.New(`^-?(?:/usr)?(?:/bin/)?(?:ba)?sh\s+-c\s+("(?:[^"\\]|\\.)*"|'[^']*')$`)

// importScripted turns a unit whose only commands write kernel files into settings.
func (im *importer) importScripted(ds []directive) bool {
	var commands []*directive
	for i := range ds {
		if strings.HasPrefix(ds[i].name, "Exec") {
			commands = append(commands, &ds[i])
		}
	}
	if len(commands) == 0 {
		return false
	}
	for _, d := range commands {
		if d.name == "ExecStop" || d.name == "ExecStopPost" {
			continue
		}
		for _, c := range shellParts(d.value) {
			trial := &Line{}
			probe := &importer{board: im.board, release: im.release, machine: im.machine, spent: im.spent}
			isSettings := probe.importCommand(trial, c)
			im.spent = probe.spent
			if !isSettings {
				return false
			}
		}
	}
	for _, d := range commands {
		d.keptWithoutUnit = true
		if d.name == "ExecStop" || d.name == "ExecStopPost" {
			d.line.markUnderstood("yoctuned restores the previous values")
			continue
		}
		for _, c := range shellParts(d.value) {
			im.importCommand(d.line, c)
		}
		d.line.addTrap(sysfsScript)
	}
	return true
}

// shellParts returns the script of sh -c; a plain command is one that no shell reads.
func shellParts(value string) []string {
	m := shellCommand.FindStringSubmatch(value)
	if m == nil {
		command := strings.TrimPrefix(value, "-")
		if strings.ContainsAny(command, "<>|;&$`") {
			return []string{"false"} // systemd hands these marks to the program
		}
		return []string{command}
	}
	return []string{strings.ReplaceAll(m[1][1:len(m[1])-1], `\"`, `"`)}
}

// splitExecWords splits a command line as systemd.service(5) does, without its C
// escapes.
func splitExecWords(s string) ([]string, bool) {
	var words []string
	var b strings.Builder
	quote, open := rune(0), false
	for _, r := range s {
		switch {
		case r == '\\':
			return nil, false
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if open {
				words = append(words, b.String())
				b.Reset()
				open = false
			}
		default:
			b.WriteRune(r)
			open = true
		}
	}
	if open {
		words = append(words, b.String())
	}
	return words, quote == 0
}

// parseUnitSize reads a size of systemd, whose K, M and G are powers of 1024.
func parseUnitSize(s string) (string, bool) {
	for suffix, unit := range map[string]string{"K": "KiB", "M": "MiB", "G": "GiB", "T": "TiB"} {
		if digits, ok := strings.CutSuffix(s, suffix); ok {
			if _, ok := number(digits); ok {
				return digits + unit, true
			}
		}
	}
	if _, ok := number(s); ok {
		return s + "B", true
	}
	return "", false
}
