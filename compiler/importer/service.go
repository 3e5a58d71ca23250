package importer

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/internal/lazyregexp"
)

// typedField is a field of a service with its value in CUE.
type typedField struct {
	names []string
	value string
}

func field(name, value string) []typedField { return []typedField{{[]string{name}, value}} }

// valueReader returns the fields that mean the same as the values of a directive, nil if there are
// none. A specifier or an empty value has none.
type valueReader func(field string, values []string) []typedField

// typedFields returns the fields of a service that mean the same as a directive, nil if none do.
func (im *importer) typedFields(u *unit, s *directiveSet) []typedField {
	known, ok := serviceFields[s.section+"."+s.name]
	if !ok || slices.ContainsFunc(s.values, func(v string) bool { return v == "" || strings.Contains(v, "%") && s.name != "CPUQuota" }) {
		return nil
	}
	switch {
	case u.dropIn && (s.name == "AmbientCapabilities" || s.name == "CapabilityBoundingSet"):
		return nil // the field would replace the unit's
	case s.name == "Restart" && s.values[len(s.values)-1] != "no" && u.find("Service", "RestartSec") == nil && !u.dropIn:
		return nil // the field has another default of RestartSec
	}
	words := strings.Fields(strings.Join(s.values, " "))
	fields := known.read(known.field, s.values)
	if len(fields) != 1 || !slices.ContainsFunc(words, func(w string) bool { return im.isForeignName(s, w) }) {
		return fields
	}
	if s.name == "User" || s.name == "Group" {
		return field(known.field, "{value: "+fields[0].value+", external: true}")
	}
	for i, w := range words {
		words[i] = quoteCUE(w)
		if im.isForeignName(s, w) {
			words[i] = "{value: " + words[i] + ", external: true}"
		}
	}
	return field(known.field, "["+strings.Join(words, ", ")+"]")
}

type serviceField struct {
	field string
	read  valueReader
}

var serviceFields = map[string]serviceField{
	"Unit.Description":              {"description", readDescription},
	"Unit.After":                    {"after", readUnits},
	"Unit.Wants":                    {"wants", readUnits},
	"Unit.Requires":                 {"requires", readUnits},
	"Unit.StartLimitIntervalSec":    {"startLimitIntervalSec", readSpan},
	"Unit.StartLimitBurst":          {"startLimitBurst", readWhole(1, 100000)},
	"Service.Type":                  {"type", readOneOf("simple", "exec", "notify", "oneshot")},
	"Service.ExecStart":             {"exec", readCommand},
	"Service.ExecStartPre":          {"execStartPre", readCommands},
	"Service.ExecStartPost":         {"execStartPost", readCommands},
	"Service.ExecStop":              {"execStop", readCommands},
	"Service.ExecStopPost":          {"execStopPost", readCommands},
	"Service.User":                  {"user", readMatch(userName)},
	"Service.Group":                 {"group", readMatch(userName)},
	"Service.SupplementaryGroups":   {"supplementaryGroups", readWords(userName)},
	"Service.WorkingDirectory":      {"workingDirectory", readMatch(absolutePath)},
	"Service.Environment":           {"environment", readEnvironment},
	"Service.EnvironmentFile":       {"environmentFiles", readEach(optionalPath)},
	"Service.Nice":                  {"nice", readWhole(-20, 19)},
	"Service.CPUSchedulingPolicy":   {"scheduling", readOneOf("other", "batch", "idle", "fifo", "rr")},
	"Service.CPUSchedulingPriority": {"priority", readWhole(1, 99)},
	"Service.MemoryMax":             {"memoryMax", readSize},
	"Service.MemoryHigh":            {"memoryHigh", readSize},
	"Service.CPUWeight":             {"cpuWeight", readWhole(1, 10000)},
	"Service.IOWeight":              {"ioWeight", readWhole(1, 10000)},
	"Service.CPUQuota":              {"cpuQuota", readPercent},
	"Service.LimitMEMLOCK":          {"memoryLock", readUnlimited},
	"Service.OOMScoreAdjust":        {"oomScoreAdjust", readWhole(-1000, 1000)},
	"Service.AmbientCapabilities":   {"ambientCapabilities", readWords(capability)},
	"Service.CapabilityBoundingSet": {"capabilityBoundingSet", readWords(capability)},
	"Service.Restart":               {"restart", readOneOf("no", "always", "on-success", "on-failure", "on-abnormal", "on-abort", "on-watchdog")},
	"Service.RestartSec":            {"restartSec", readSpan},
	"Service.WatchdogSec":           {"watchdogSec", readSpan},
	"Service.TimeoutStartSec":       {"timeoutStartSec", readSpan},
	"Service.TimeoutStopSec":        {"timeoutStopSec", readSpan},
}

// The forms of values that the schema takes.
var (
	userName     = lazyregexp.New(`^([a-z_][a-z0-9_-]{0,30}|[0-9]{1,9})$`)
	capability   = lazyregexp.New(`^CAP_[A-Z0-9_]{1,36}$`)
	absolutePath = lazyregexp.New(`^(/[A-Za-z0-9_+,@:=-][A-Za-z0-9._+,@:=-]*)+$`)
	optionalPath = lazyregexp.New(`^-?(/[A-Za-z0-9_+,@:=-][A-Za-z0-9._+,@:=-]*)+$`)
	unitName     = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.@-]{0,100}\.(service|target|socket|device|mount|path|timer|slice)$`)
	variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
	timeSpan     = lazyregexp.New(`^[0-9]{1,9}(us|ms|s|min|h)?$`)
)

// last returns the value that counts of a directive that takes one.
func last(values []string) string { return values[len(values)-1] }

func readDescription(name string, values []string) []typedField {
	if _, err := quote.SystemdText(last(values)); err != nil || len(last(values)) > 200 {
		return nil
	}
	return field(name, quoteCUE(last(values)))
}

func readMatch(form *lazyregexp.Regexp) valueReader {
	return func(name string, values []string) []typedField {
		if !form.MatchString(last(values)) {
			return nil
		}
		return field(name, quoteCUE(last(values)))
	}
}

// readEach reads a directive of which each line is one value.
func readEach(form *lazyregexp.Regexp) valueReader {
	return func(name string, values []string) []typedField {
		if !slices.ContainsFunc(values, func(v string) bool { return !form.MatchString(v) }) {
			return field(name, quotedList(values))
		}
		return nil
	}
}

// readWords reads a directive whose lines are lists of words.
func readWords(form *lazyregexp.Regexp) valueReader {
	return func(name string, values []string) []typedField {
		return readEach(form)(name, strings.Fields(strings.Join(values, " ")))
	}
}

func readUnits(name string, values []string) []typedField {
	words := strings.Fields(strings.Join(values, " "))
	for _, w := range words {
		if _, err := quote.SystemdUnit(w); err != nil {
			return nil
		}
	}
	return readEach(unitName)(name, words)
}

func readOneOf(allowed ...string) valueReader {
	return func(name string, values []string) []typedField {
		if !slices.Contains(allowed, last(values)) {
			return nil
		}
		return field(name, quoteCUE(last(values)))
	}
}

func readWhole(low, high int64) valueReader {
	return func(name string, values []string) []typedField {
		n, ok := number(last(values))
		if !ok || n < low || n > high || strconv.FormatInt(n, 10) != last(values) {
			return nil
		}
		return field(name, last(values))
	}
}

// spanParts are the parts of a time span such as "1min 30s".
var spanParts = lazyregexp.New(`^([0-9]{1,6})min ([0-9]{1,6})s$`)

// readSpan reads a time span with one unit, or in minutes and seconds; without a unit it is in
// seconds.
func readSpan(name string, values []string) []typedField {
	v := last(values)
	if m := spanParts.FindStringSubmatch(v); m != nil {
		minutes, _ := number(m[1])
		seconds, _ := number(m[2])
		v = strconv.FormatInt(60*minutes+seconds, 10) + "s"
	}
	switch {
	case v == "infinity" && strings.HasPrefix(name, "timeout"):
	case !timeSpan.MatchString(v):
		return nil
	case v[len(v)-1] <= '9':
		v += "s"
	}
	return field(name, quoteCUE(v))
}

func readSize(name string, values []string) []typedField {
	size, ok := parseUnitSize(last(values))
	if !ok {
		return nil
	}
	return field(name, quoteCUE(size))
}

func readPercent(name string, values []string) []typedField {
	digits, ok := strings.CutSuffix(last(values), "%")
	if !ok {
		return nil
	}
	return readWhole(1, 25600)(name, []string{digits})
}

func readUnlimited(name string, values []string) []typedField {
	if last(values) != "infinity" {
		return nil
	}
	return field(name, "true")
}

// readCommandLine reads a command line that uses neither variables nor a second command.
func readCommandLine(value string) ([]string, bool) {
	words, ok := splitExecWords(value)
	if !ok || strings.Contains(value, "$") || slices.Contains(words, ";") {
		return nil, false
	}
	if _, err := quote.SystemdCommand(words); err != nil {
		return nil, false
	}
	return words, !slices.ContainsFunc(words, func(w string) bool { return controlCharacter.MatchString(w) })
}

var controlCharacter = lazyregexp.New(`[\x00-\x1f\x7f]`)

func readCommand(name string, values []string) []typedField {
	words, ok := readCommandLine(values[0])
	if !ok || len(values) > 1 || !strings.HasPrefix(words[0], "/") {
		return nil
	}
	return field(name, quotedList(words))
}

func readCommands(name string, values []string) []typedField {
	commands := make([]string, 0, len(values))
	for _, v := range values {
		words, ok := readCommandLine(v)
		if !ok {
			return nil
		}
		commands = append(commands, quotedList(words))
	}
	return field(name, list(commands))
}

// readEnvironment reads assignments, of each variable one.
func readEnvironment(name string, values []string) []typedField {
	var fields []typedField
	var seen []string
	for _, v := range values {
		words, ok := splitExecWords(v)
		if !ok {
			return nil
		}
		for _, w := range words {
			variable, value, isAssignment := strings.Cut(w, "=")
			if !isAssignment || !variableName.MatchString(variable) || slices.Contains(seen, variable) {
				return nil
			}
			seen = append(seen, variable)
			fields = append(fields, typedField{[]string{name, variable}, quoteCUE(value)})
		}
	}
	return fields
}
