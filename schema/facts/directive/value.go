package directive

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/formats/calendar"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

// The units of time of systemd.time(7), and those of sizes that systemd's parse_size takes.
var (
	timeSpan = lazyregexp.New(`^([0-9]+(\.[0-9]*)?|\.[0-9]+)\s*(usec|us|µs|μs|msec|ms|seconds|second|sec|s|minutes|minute|min|months|month|m|hours|hour|hr|h|days|day|d|weeks|week|w|M|years|year|y|nsec|ns)?(\s+|$|[0-9])`)
	amount   = lazyregexp.New(`^[0-9]+(\.[0-9]+)?[KMGTPE]?B?$|^[0-9]+(\.[0-9]{1,2})?[%‰‱]$`)
	octal    = lazyregexp.New(`^(0o)?[0-7]{1,5}$`)
	realtime = lazyregexp.New(`^RTM(IN|AX)([+-][0-9]{1,2})?$`)
	natural  = lazyregexp.New(`^(0[xX][0-9a-fA-F]+|0[bo]?[0-9]+|[0-9]+)$`)
	size     = lazyregexp.New(`^(([0-9]+(\.[0-9]+)?)\s*([EPTGMKB]?)\s*)+$`)
	sizePart = lazyregexp.New(`([0-9]+(?:\.[0-9]+)?)\s*([EPTGMKB]?)`)
	unitName = lazyregexp.New(`^[A-Za-z0-9:_.\\@%-]+\.[a-z]+$`)
	quota    = lazyregexp.New(`^[0-9]+(\.[0-9]{1,2})?%$`)
)

// WantedValue checks a value of a directive, such as "Service.Nice", against the directive's type in
// a version of systemd. unit is the type of the unit, such as ".service". It returns what the type
// takes, in words, "" for a value that it takes or whose type is not checked. An empty value resets.
func WantedValue(unit, name, kind, value, version string) string {
	if value == "" {
		return ""
	}
	if section, word, _ := strings.Cut(name, "."); section == "Install" {
		return wantedUnits(unit, word, value)
	}
	if words := wordsOf("enum", kind, version); len(words) > 0 {
		return wantedWord(kind, value, words)
	}
	switch kind {
	case "bool":
		return unless(isSwitch(value), `"yes" or "no"`)
	case "sec", "sec_fix_0", "sec_def_infinity", "service_timeout", "nsec", "job_timeout_sec", "job_running_timeout_sec":
		return unless(value == "infinity" || isTimeSpan(value), `a time span such as "3", "500ms", "2min" or "infinity"`)
	case "timer":
		if name == "Timer.OnCalendar" {
			return unless(calendar.Check(value) == nil, `times of the calendar such as "daily" or "Mon..Fri 08:00"`)
		}
		return unless(isTimeSpan(value), `a time span such as "3", "500ms" or "2min"`)
	case "trigger_unit":
		return unless(unitName.MatchString(value), `the name of a unit such as "vision.service"`)
	case "memory_limit", "tasks_max":
		return unless(value == "infinity" || amount.MatchString(value) && isBelow64(value), `a size such as "512M", a percentage or "infinity"`)
	case "unsigned":
		_, err := strconv.ParseUint(value, 0, 32)
		return unless(natural.MatchString(value) && err == nil, "a whole number below 2^32")
	case "rlimit":
		return wantedLimit(strings.TrimPrefix(name, "Service.Limit"), value)
	case "exec_cpu_affinity":
		return unless(value == "numa" || isCPUList(value), `cores such as "0-3 6"`)
	case "allowed_cpuset", "unit_cpu_set":
		return unless(isCPUList(value), `cores such as "0-3 6"`)
	case "exec_io_priority":
		return within(value, 0, 7)
	case "cpu_shares":
		return within(value, 2, 262144)
	case "blockio_weight":
		return within(value, 10, 1000)
	case "mode":
		return unless(octal.MatchString(value), `an access mode such as "0750"`)
	case "exec_nice":
		return within(value, -20, 19)
	case "exec_oom_score_adjust":
		return within(value, -1000, 1000)
	case "exec_cpu_sched_prio":
		return within(value, 1, 99)
	case "cg_weight":
		return within(value, 1, 10000)
	case "cg_cpu_weight":
		if value == "idle" {
			return ""
		}
		return within(value, 1, 10000)
	case "cpu_quota":
		return unless(quota.MatchString(value), `a percentage such as "150%"`)
	}
	return wantedName(kind, value, version)
}

// wantedName checks types that take names or paths.
func wantedName(kind, value, version string) string {
	if strings.ContainsAny(value, "%\"'\\") {
		return "" // a specifier, or words in quotes
	}
	invertible := strings.TrimPrefix(value, "~")
	switch kind {
	case "capability_set":
		return unless(areWords(invertible, wordsOf("list", "capabilities", version), isCapabilityNumber, strings.EqualFold), `capabilities such as "CAP_NET_ADMIN", separated by blanks`)
	case "syscall_filter", "syscall_log":
		isCall := func(word string) bool { return !strings.HasPrefix(word, "@") }
		withoutError := strings.Fields(invertible)
		for i, word := range withoutError {
			withoutError[i], _, _ = strings.Cut(word, ":")
		}
		return unless(areWords(strings.Join(withoutError, " "), wordsOf("list", "syscall_groups", version), isCall, equal), `names of system calls, and groups such as "@system-service"`)
	case "syscall_archs":
		return unless(areWords(value, wordsOf("list", "syscall_archs", version), nil, equal), `architectures such as "native"`)
	case "address_families":
		return unless(value == "none" || areWords(invertible, wordsOf("list", "address_families", version), nil, strings.EqualFold), `families such as "AF_UNIX AF_INET", or "none"`)
	case "restrict_namespaces", "namespace_flags":
		words := wordsOf("list", "namespaces", version)
		return unless(isSwitch(value) || areWords(invertible, words, nil, equal), `"yes", "no", or namespaces: `+strings.Join(words, " "))
	case "exec_output", "exec_input":
		return wantedStream(value, wordsOf("list", kind, version))
	case "unit_slice":
		return unless(strings.HasSuffix(value, ".slice"), `a slice such as "vision.slice"`)
	case "working_directory":
		return unless(value == "~" || value == "-~" || isPath(value, "-"), "an absolute path, or ~")
	case "unit_env_file":
		return unless(isPath(value, "-"), "an absolute path")
	case "unit_condition_path":
		return unless(isPath(value, "|!"), "an absolute path")
	case "namespace_path_strv", "unit_mounts_for", "unit_requires_mounts_for":
		for word := range strings.FieldsSeq(value) {
			if !isPath(word, "-+") {
				return "absolute paths"
			}
		}
	}
	return ""
}

// isPath reports whether a value is an absolute path after prefixes.
func isPath(value, prefixes string) bool {
	return strings.HasPrefix(strings.TrimLeft(value, prefixes), "/")
}

// areWords reports whether a list has no other words than some, as equal compares them, and those that
// another test takes. Without words every list passes.
func areWords(value string, words []string, other func(string) bool, equal func(a, b string) bool) bool {
	for word := range strings.FieldsSeq(value) {
		isOne := slices.ContainsFunc(words, func(w string) bool { return equal(w, word) })
		if len(words) > 0 && !isOne && (other == nil || !other(word)) {
			return false
		}
	}
	return true
}

func equal(a, b string) bool { return a == b }

// isCapabilityNumber reports whether systemd takes a word for a capability by its number.
func isCapabilityNumber(word string) bool {
	n, err := strconv.Atoi(word)
	return err == nil && n >= 0 && n <= 62
}

// wantedStream checks a value of StandardInput=, StandardOutput= or StandardError= against words; one that
// ends in ":" takes a name or a path. systemd takes "file" alone as well, and then has no file to open.
func wantedStream(value string, words []string) string {
	word, rest, hasRest := strings.Cut(value, ":")
	form := word + ":"
	switch {
	case len(words) == 0,
		word == "fd",
		hasRest && slices.Contains(words, form) && strings.HasPrefix(rest, "/"),
		!hasRest && slices.Contains(words, word) && !slices.Contains(words, form):
		return ""
	}
	shown := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.HasSuffix(w, ":") || slices.Contains(words, w+":") })
	return `"` + strings.Join(shown, `", "`) + `", "fd:NAME" or "file:PATH"`
}

// wordsOf lists the words of an enumeration ("enum") or a list ("list") in a version of systemd: "bool"
// stands for those of a switch, and "number" for a number. Between two versions that were read it
// lists those of both; nil where one has none.
func wordsOf(kind, name, version string) []string {
	before, after := around(load().versions["systemd"], version)
	if before < 0 {
		return nil
	}
	row := find(kind, name)
	old, young := at(row, before), at(row, after)
	if old.State != Present || young.State != Present {
		return nil
	}
	words := strings.Split(old.Type, ",")
	for word := range strings.SplitSeq(young.Type, ",") {
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

func wantedWord(kind, value string, words []string) string {
	name := value
	if kind == "signal" {
		name = strings.TrimPrefix(value, "SIG")
	}
	switch {
	case slices.Contains(words, name) && name != "bool" && name != "number",
		slices.Contains(words, "bool") && isSwitch(value),
		(kind == "signal" || slices.Contains(words, "number")) && natural.MatchString(value),
		kind == "signal" && realtime.MatchString(name):
		return ""
	}
	if kind == "signal" {
		return `a signal such as "SIGTERM"`
	}
	shown := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "bool" || w == "number" })
	return `"` + strings.Join(shown, `", "`) + `"`
}

func unless(ok bool, wanted string) string {
	if ok {
		return ""
	}
	return wanted
}

// isSwitch reports whether systemd's parse_boolean takes a value.
func isSwitch(v string) bool {
	return slices.Contains([]string{"1", "yes", "y", "true", "t", "on", "0", "no", "n", "false", "f", "off"}, strings.ToLower(v))
}

func isTimeSpan(v string) bool {
	for v != "" {
		m := timeSpan.FindStringSubmatch(v)
		if m == nil {
			return false
		}
		used := len(m[0])
		if last := m[0][used-1]; m[4] != "" && last >= '0' && last <= '9' {
			used-- // of the next number
		}
		v = v[used:]
	}
	return true
}

func within(value string, low, high int) string {
	n, err := strconv.Atoi(value)
	return unless(err == nil && n >= low && n <= high, "a whole number from "+strconv.Itoa(low)+" to "+strconv.Itoa(high))
}

// wantedUnits checks the words of a directive in [Install]. systemctl enable makes a link of the
// name of each, which an alias must share its type with.
func wantedUnits(unit, word, value string) string {
	for name := range strings.FieldsSeq(value) {
		switch {
		case word == "Alias":
			if !unitName.MatchString(name) || !strings.HasSuffix(name, unit) {
				return `the name of a ` + unit[1:] + ` without a folder, such as "camera` + unit + `"`
			}
		case word != "DefaultInstance" && !unitName.MatchString(name):
			return `names of units without a folder, such as "multi-user.target"`
		}
	}
	return ""
}

// wantedLimit checks a limit of setrlimit(2): one value, or SOFT:HARD.
func wantedLimit(resource, value string) string {
	soft, hard, both := strings.Cut(value, ":")
	low, ok := limitOf(resource, soft)
	high := low
	if both && ok {
		high, ok = limitOf(resource, hard)
	}
	wanted := `a whole number such as "65536", or "infinity"`
	switch resource {
	case "FSIZE", "DATA", "STACK", "CORE", "RSS", "AS", "MEMLOCK", "MSGQUEUE":
		wanted = `a size such as "64M", or "infinity"`
	case "CPU", "RTTIME":
		wanted = `a time span such as "10s", or "infinity"`
	case "NICE":
		wanted = `a nice level such as "-10" or "+5", or a number from 0 to 40`
	}
	switch {
	case !ok:
		return wanted
	case low > high:
		return "a soft limit that is at most the hard one"
	}
	return ""
}

// limitOf reads a limit of a resource as systemd's rlimit_parse does. Time spans have no figure.
func limitOf(resource, value string) (float64, bool) {
	if value == "infinity" && resource != "NICE" {
		return math.Inf(1), true
	}
	switch resource {
	case "FSIZE", "DATA", "STACK", "CORE", "RSS", "AS", "MEMLOCK", "MSGQUEUE":
		return sizeOf(value), size.MatchString(value) && isBelow64(value)
	case "CPU", "RTTIME":
		return 0, isTimeSpan(value)
	case "NICE":
		limits := map[byte]uint64{'+': 19, '-': 20}
		if top, signed := limits[(value + " ")[0]]; signed {
			n, err := strconv.ParseUint(value[1:], 0, 64)
			return 0, err == nil && n <= top
		}
		n, err := strconv.ParseUint(value, 0, 64)
		return 0, err == nil && n <= 40
	}
	n, err := strconv.ParseUint(value, 0, 64)
	return float64(n), err == nil && natural.MatchString(value) && n < math.MaxUint64
}

// sizeOf adds up the parts of a size such as "1G 512M".
func sizeOf(value string) float64 {
	sum := 0.0
	for _, part := range sizePart.FindAllStringSubmatch(value, -1) {
		n, err := strconv.ParseFloat(part[1], 64)
		if err != nil {
			return math.Inf(1)
		}
		power := max(0, strings.Index("KMGTPE", part[2])+1)
		if part[2] == "" || part[2] == "B" {
			power = 0
		}
		sum += math.Ldexp(n, 10*power)
	}
	return sum
}

// isBelow64 reports whether a size fits in systemd's 64 bits.
func isBelow64(value string) bool { return sizeOf(value) < math.MaxUint64 }

// CPUs reads cores as systemd's parse_cpu_set does: ranges separated by blanks or commas.
func CPUs(value string) ([]int, bool) {
	words := strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
	cores, err := cpulist.Parse(strings.Join(words, ","))
	return cores, err == nil && len(cores) > 0 && !strings.Contains(value, ":")
}

func isCPUList(value string) bool {
	_, ok := CPUs(value)
	return ok
}
