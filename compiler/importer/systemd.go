package importer

import (
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
	facts "github.com/yoctune/yoctune/schema/facts/directive"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

// directive is a line of a unit file.
type directive struct {
	line            *Line
	group           []*Line
	section         string
	name            string
	value           string
	inexpressible   string // why a unit with it cannot become a yoctune service
	tuning          bool   // it means the same in a drop-in
	set             func() // puts it into the configuration
	keptWithoutUnit bool   // it is a setting of its own and needs no unit
}

// readSystemd reads a unit, or a drop-in of one. A service that yoctune can express becomes one;
// otherwise the unit stays, and its tuning becomes a drop-in.
func (im *importer) readSystemd(lines []*Line, s Source) {
	base, dir := path.Base(s.Name), path.Base(path.Dir(s.Name))
	unit, dropIn := base, false
	if u, ok := strings.CutSuffix(dir, ".d"); ok {
		unit, dropIn = u, true
	}
	ds := parseDirectives(lines)
	defer func() {
		for i := range ds {
			im.noteDirective(&ds[i])
		}
	}()
	if path.Ext(unit) != ".service" || strings.Contains(unit, "@") {
		why := "yoctune writes services; units of other types stay where they are"
		switch {
		case strings.Contains(unit, "@"):
			why = "yoctune has no template units"
		case path.Ext(unit) == ".slice":
			why = "yoctune writes the slices that services name; with cpu.isolate they get the isolated cores"
		}
		for _, d := range ds {
			d.line.leave(why)
			copyVerdict(d.group)
		}
		return
	}
	scripted := im.importScripted(ds)
	var blocker *directive
	hasExec := false
	for i := range ds {
		d := &ds[i]
		im.readDirective(d, unit)
		hasExec = hasExec || d.name == "ExecStart"
		if d.inexpressible != "" && blocker == nil {
			blocker = d
		}
	}
	whole := !dropIn && blocker == nil && hasExec && !scripted
	for i := range ds {
		d := &ds[i]
		switch {
		case d.line.Verdict != "" || d.line.partial || len(d.line.paths) > 0: // settled: a command that became settings
		case scripted && d.keptWithoutUnit:
		case scripted:
			d.line.markUnderstood("the settings replace the unit")
		case d.inexpressible != "":
			d.line.leave(d.inexpressible)
		case whole && d.set != nil, d.tuning && d.set != nil:
			d.set()
			if d.line.Verdict == "" && !d.line.partial {
				d.line.markUnderstood("")
			}
		case d.set != nil && blocker != nil:
			d.line.leavef("the unit stays where it is: %s (line %d)", blocker.inexpressible, blocker.line.Line)
		case d.set != nil:
			d.line.leave("valid in a whole unit only; a drop-in changes a unit that something else installs")
		default:
			d.line.leavef("yoctune has no field for %s", clean(d.name))
		}
		copyVerdict(d.group)
	}
	if whole {
		if exec := im.config.find(&entry{scope: everywhere, names: []string{"services", unit, "exec"}}); exec != nil {
			l := exec.lines[0]
			l.addNote("without yoctune's sandbox, as the unit had none; take the unit out of what installs it now")
			im.setField(l, "false", "services", unit, "hardening")
		}
	}
}

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
		if near := facts.Nearest(kind, name, version); near != "" {
			section, word, _ := strings.Cut(near, ".")
			d.line.addNote("did you mean %s in [%s]?", word, section)
		}
	case facts.Legacy:
		d.line.addNote("systemd %s ignores %s", version, clean(d.name))
	}
}

func parseDirectives(lines []*Line) []directive {
	var out []directive
	section := ""
	for _, g := range groupContinuedLines(lines) {
		l, text := g[0], joinLines(g)
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
			probe := &importer{board: im.board, release: im.release, machine: im.machine}
			if !probe.importCommand(trial, c) {
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

// readDirective interprets a line of a service.
func (im *importer) readDirective(d *directive, unit string) {
	set := func(value string, field ...string) func() {
		return func() { im.setField(d.line, value, append([]string{"services", unit}, field...)...) }
	}
	one := func(allowed ...string) {
		d.tuning = d.name != "Type"
		d.set = set(quoteCUE(d.value), map[string]string{"Type": "type", "Restart": "restart", "CPUSchedulingPolicy": "scheduling"}[d.name])
		if !slices.Contains(allowed, d.value) {
			d.inexpressible = "yoctune has no " + d.name + "=" + clean(d.value)
		}
	}
	units := func(field string) {
		d.set = func() { im.extendList(d.line, strings.Fields(d.value), "services", unit, field) }
	}
	switch d.section + "/" + d.name {
	case "Unit/Description":
		d.set = set(quoteCUE(d.value), "description")
	case "Unit/After":
		units("after")
	case "Unit/Wants":
		units("wants")
	case "Unit/Requires":
		units("requires")
	case "Unit/Documentation":
	case "Install/WantedBy":
		d.set = func() {
			if d.value == "multi-user.target" {
				d.line.markUnderstood("a yoctune service starts at boot")
				return
			}
			d.line.markAdjusted("a yoctune service is wanted by multi-user.target")
		}
	case "Service/Type":
		one("simple", "exec", "notify", "oneshot")
	case "Service/Restart":
		one("no", "on-failure", "always")
	case "Service/CPUSchedulingPolicy":
		one("other", "batch", "idle", "fifo", "rr")
	case "Service/ExecStart":
		d.set = im.importExecStart(d, unit)
	case "Service/User":
		d.set = set(quoteCUE(d.value), "user")
	case "Service/Slice":
		d.set, d.tuning = set(quoteCUE(strings.TrimSuffix(d.value, ".slice")), "slice"), true
	case "Service/Nice", "Service/CPUSchedulingPriority":
		d.set, d.tuning = set(formatScalar(d.value), map[string]string{"Nice": "nice", "CPUSchedulingPriority": "priority"}[d.name]), true
	case "Service/CPUAffinity":
		cores, err := cpulist.Parse(strings.Join(strings.FieldsFunc(d.value, func(r rune) bool { return r == ' ' || r == ',' }), ","))
		d.set, d.tuning = set(coreList(cores), "cpus"), true
		if err != nil || len(cores) == 0 {
			d.inexpressible = "not a list of cores"
		}
	case "Service/MemoryMax", "Service/MemoryLimit":
		size, ok := parseUnitSize(d.value)
		d.set, d.tuning = set(quoteCUE(size), "memoryMax"), true
		if !ok {
			d.inexpressible = "yoctune takes a size in bytes"
		}
	case "Service/LimitMEMLOCK":
		d.set, d.tuning = set("true", "memoryLock"), true
		if d.value != "infinity" {
			d.inexpressible = "yoctune allows locking all memory or none"
		}
	case "Service/Environment":
		d.set = func() { im.importEnvironment(d, unit) }
	case "Service/RestartSec", "Service/StandardOutput", "Service/StandardError", "Service/SyslogIdentifier",
		"Service/TimeoutSec", "Service/TimeoutStartSec", "Service/TimeoutStopSec", "Unit/StartLimitIntervalSec", "Unit/StartLimitBurst":
		// Left without changing what the service does.
	default:
		d.inexpressible = "yoctune has no field for " + clean(d.name)
	}
	if strings.Contains(d.value, "%") && d.set != nil && d.inexpressible == "" {
		d.inexpressible = "yoctune writes % as it is: specifiers are not expanded"
	}
}

func (im *importer) importExecStart(d *directive, unit string) func() {
	value := d.value
	ignored := strings.HasPrefix(value, "-")
	value = strings.TrimPrefix(value, "-")
	words, ok := splitExecWords(value)
	switch {
	case !ok || len(words) == 0:
		d.inexpressible = "its quoting is not supported"
	case !strings.HasPrefix(words[0], "/"):
		d.inexpressible = "its program has a prefix or no absolute path"
	case strings.Contains(value, "$"):
		d.inexpressible = "its command uses variables"
	case slices.Contains([]string{"/usr/bin/jetson_clocks", "/usr/sbin/nvpmodel"}, words[0]):
		d.inexpressible = "it changes what power modes own; use power.default and power.modes"
	}
	return func() {
		if im.config.hasField("services", unit, "exec") {
			d.line.leave("yoctune services have one command")
			return
		}
		if ignored {
			d.line.addTrap(ignoredFailure)
			d.line.markAdjusted("a failure is not ignored any more")
		}
		if base := path.Base(words[0]); (base == "sh" || base == "bash") && len(words) > 1 && words[1] == "-c" {
			d.line.addTrap(shellExec)
		}
		im.setField(d.line, quotedList(words), "services", unit, "exec")
	}
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

func (im *importer) importEnvironment(d *directive, unit string) {
	words, ok := splitExecWords(d.value)
	if !ok {
		d.line.leave("its quoting is not supported")
		return
	}
	for _, w := range words {
		name, value, has := strings.Cut(w, "=")
		if !has || !isWord(name) {
			d.line.leavePart(clean(w), "no NAME=value")
			continue
		}
		im.setField(d.line, quoteCUE(value), "services", unit, "environment", name)
	}
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
