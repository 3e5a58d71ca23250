package importer

import (
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
	facts "github.com/yoctune/yoctune/schema/facts/directive"
	"github.com/yoctune/yoctune/schema/facts/system"
	"github.com/yoctune/yoctune/schema/formats/calendar"
	"github.com/yoctune/yoctune/schema/plan"
)

// isTimer reports whether a source is a timer, or a drop-in of one.
func isTimer(s Source) bool {
	return s.Kind == Systemd && (path.Ext(s.Name) == ".timer" || strings.HasSuffix(path.Base(path.Dir(s.Name)), ".timer.d"))
}

// isTimed reports whether a timer among the sources starts a service: then the service's settings are not
// those of the device from its start on.
func (im *importer) isTimed(service string) bool {
	stem := strings.TrimSuffix(service, ".service")
	return slices.ContainsFunc(im.sources, func(s Source) bool {
		return isTimer(s) && path.Base(s.Name) == stem+".timer" || s.Kind == Systemd && path.Ext(s.Name) == ".timer" && strings.Contains(string(s.Text), "Unit="+service)
	})
}

var timerFields = map[string]serviceField{
	"OnActiveSec":        {"onActive", readSpan},
	"OnBootSec":          {"onBoot", readSpan},
	"OnStartupSec":       {"onStartup", readSpan},
	"OnUnitActiveSec":    {"onUnitActive", readSpan},
	"OnUnitInactiveSec":  {"onUnitInactive", readSpan},
	"OnCalendar":         {"onCalendar", readCalendar},
	"OnClockChange":      {"onClockChange", readSwitch},
	"OnTimezoneChange":   {"onTimezoneChange", readSwitch},
	"AccuracySec":        {"accuracy", readSpan},
	"RandomizedDelaySec": {"randomizedDelay", readSpan},
	"FixedRandomDelay":   {"fixedRandomDelay", readSwitch},
	"Persistent":         {"persistent", readSwitch},
	"WakeSystem":         {"wakeSystem", readSwitch},
	"RemainAfterElapse":  {"remainAfterElapse", readSwitch},
}

var calendarEvent = lazyregexp.New(`^[A-Za-z0-9*@][A-Za-z0-9*@~,./:+_ -]{0,199}$`)

func readCalendar(name string, values []string) []typedField {
	if slices.ContainsFunc(values, func(v string) bool { return !calendarEvent.MatchString(v) || calendar.Check(v) != nil }) {
		return nil
	}
	return field(name, quotedList(values))
}

func readSwitch(name string, values []string) []typedField {
	switch strings.ToLower(last(values)) {
	case "1", "yes", "y", "true", "t", "on":
		return field(name, "true")
	case "0", "no", "n", "false", "f", "off":
		return field(name, "false")
	}
	return nil
}

// readTimer reads a timer, or a drop-in of one, into the field timer of its service. Sources of services
// come before.
func (im *importer) readTimer(lines []*Line, s Source) {
	t := timerFile{name: path.Base(s.Name)}
	if name, ok := strings.CutSuffix(path.Base(path.Dir(s.Name)), ".d"); ok {
		t.name, t.dropIn = name, true
	}
	t.service = strings.TrimSuffix(t.name, ".timer") + ".service"
	ds := parseDirectives(lines, s)
	defer func() {
		for i := range ds {
			im.noteDirective(&ds[i])
			copyVerdict(ds[i].group)
		}
	}()
	if t.dropIn && slices.ContainsFunc(ds, directive.setsTimes) {
		// The first of these lines must reset the timer's own times, as the drop-in of the layer does.
		i := slices.IndexFunc(ds, directive.setsTimes)
		if ds[i].value != "" {
			leaveDirectives(ds, "its times add to those of the timer, and those of a configuration replace them")
			return
		}
		ds[i].line.markUnderstood("the times of the configuration replace those of the timer")
		ds = slices.Delete(slices.Clone(ds), i, i+1)
	}
	if t.sets = im.collectSets(ds); len(t.sets) == 0 {
		return
	}
	if why := im.blockTimer(&t); why != "" {
		leaveDirectives(ds, why)
		return
	}
	im.importTimer(&t)
}

// timerFile is a timer, or a drop-in of one, that is read.
type timerFile struct {
	name, service string
	dropIn        bool
	sets          []*directiveSet
}

func (t *timerFile) find(section, name string) *directiveSet {
	return (&unit{sets: t.sets}).find(section, name)
}

// setsTimes reports whether a line sets when a timer starts its service, or resets that.
func (d directive) setsTimes() bool {
	return plan.Directive{Section: d.section, Name: d.name}.SetsTimes()
}

// blockTimer explains why the layer's timer could not be the same, "" if it can.
func (im *importer) blockTimer(t *timerFile) string {
	if !serviceName.MatchString(t.service) {
		return foreignUnit(t.service)
	}
	if im.config.hasField("services", t.service, "timer") {
		return "another file is about the same timer"
	}
	hasTimes := t.dropIn
	for _, s := range t.sets {
		switch {
		case !slices.Contains([]string{"Unit", "Timer", "Install"}, s.section):
			return "yoctune writes the sections Unit, Timer and Install"
		case !ownName.MatchString(s.name):
			return "its name is not that of a directive"
		case s.section == "Install" && t.dropIn:
			return "systemd reads [Install] in whole units"
		case s.section == "Timer" && s.name == "Unit" && last(s.values) != t.service:
			return "it starts " + clean(last(s.values)) + ", and the timers of a configuration start the service of their name"
		}
		for _, d := range s.lines {
			if why := blockValue(d); why != "" {
				return why
			}
			if d.value == "" && d.setsTimes() {
				return "an empty line resets the times before it"
			}
			wanted := facts.WantedValue(".timer", d.section+"."+d.name, facts.Lookup(facts.Unit, d.section+"."+d.name, im.release.Systemd).Type, d.value, im.release.Systemd)
			hasTimes = hasTimes || d.setsTimes() && wanted == "" // systemd skips what it cannot read
		}
		hasTimes = hasTimes || s.section == "Timer" && (s.name == "OnClockChange" || s.name == "OnTimezoneChange")
	}
	_, known := system.FindUnit(im.release.Name, t.name)
	switch {
	case !hasTimes:
		return "nothing triggers it, and systemd does not load it"
	case known && !t.dropIn && im.wholeUnit(t.service) == nil:
		return "a recipe of " + im.release.Name + " brings a timer of that name, which this file replaces; a configuration changes it by a drop-in"
	}
	return ""
}

// wholeUnit returns what was imported of a whole unit of the scope that is read; nil for none.
func (im *importer) wholeUnit(service string) *entry {
	for _, u := range im.whole {
		if u.scope == im.scope && slices.Equal(u.names, []string{"services", service}) {
			return u
		}
	}
	return nil
}

func (im *importer) importTimer(t *timerFile) {
	top := im.newEntry([]string{"services", t.service})
	first := t.sets[0].lines[0].line
	hasInstall := slices.ContainsFunc(t.sets, func(s *directiveSet) bool { return s.section == "Install" })
	isUsual := !strings.Contains(t.name, "@") && !slices.ContainsFunc(t.sets, func(s *directiveSet) bool {
		return s.section == "Install" && (s.name != "WantedBy" || !slices.Equal(s.values, []string{"timers.target"}))
	})
	for _, s := range t.sets {
		switch {
		case s.section == "Install" && isUsual:
			s.lines[0].line.markUnderstood("a yoctune timer starts at boot")
			top.lines = append(top.lines, s.lines[0].line)
		case s.section == "Timer" && s.name == "Unit":
			s.lines[0].line.markUnderstood("a yoctune timer starts the service of its name")
			top.lines = append(top.lines, s.lines[0].line)
		default:
			im.importTimerSet(t, s)
		}
	}
	if !hasInstall && !t.dropIn {
		im.setField(first, "{}", "services", t.service, "timer", "unit", "Install")
	}
	service := im.wholeUnit(t.service)
	switch from, known := system.FindUnit(im.release.Name, t.service); {
	case service == nil && (!known || len(from.Missing()) > 0):
		im.setField(first, "true", "services", t.service, "external") // a layer brings the service
	case service != nil && len(service.lines) > 0 && !im.config.hasField("services", t.service, "unit", "Install"):
		// A service with a timer does not start at boot, and this one does.
		im.setField(service.lines[0], `"multi-user.target"`, "services", t.service, "unit", "Install", "WantedBy")
	}
	if _, known := system.FindUnit(im.release.Name, t.name); t.dropIn && !known {
		im.setField(first, "true", "services", t.service, "timer", "external") // a layer brings the timer
	}
	if !t.dropIn {
		first.addNote("take the timer out of what installs it now")
	}
	im.whole = append(im.whole, top)
}

// importTimerSet writes a directive: with the field that means the same, else verbatim.
func (im *importer) importTimerSet(t *timerFile, s *directiveSet) {
	var fields []typedField
	known, ok := timerFields[s.name]
	isOne := len(s.values) == 1 || s.name == "OnCalendar" // several spans are several times
	if ok && s.section == "Timer" && isOne && !slices.ContainsFunc(s.values, func(v string) bool { return strings.Contains(v, "%") }) {
		fields = known.read(known.field, s.values)
	}
	im.setDirective(s, fields, "services", t.service, "timer")
}
