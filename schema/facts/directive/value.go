package directive

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
)

// The units of time of systemd.time(7), and those of sizes that systemd's parse_size takes.
var (
	timeSpan = lazyregexp.New(`^([0-9]+(\.[0-9]*)?|\.[0-9]+)\s*(usec|us|µs|μs|msec|ms|seconds|second|sec|s|minutes|minute|min|months|month|m|hours|hour|hr|h|days|day|d|weeks|week|w|M|years|year|y|nsec|ns)?(\s+|$|[0-9])`)
	amount   = lazyregexp.New(`^[0-9]+(\.[0-9]+)?[KMGTPE]?B?$|^[0-9]+(\.[0-9]{1,2})?[%‰‱]$`)
	octal    = lazyregexp.New(`^(0o)?[0-7]{1,5}$`)
	realtime = lazyregexp.New(`^RTM(IN|AX)([+-][0-9]{1,2})?$`)
	capSet   = lazyregexp.New(`^~?\s*((?i:cap_)[A-Za-z0-9_]+\s*)*$`)
	natural  = lazyregexp.New(`^(0[xX][0-9a-fA-F]+|0[bo]?[0-9]+|[0-9]+)$`)
	quota    = lazyregexp.New(`^[0-9]+(\.[0-9]{1,2})?%$`)
)

// WantedValue checks a value against the type of a directive in a version of systemd. It returns
// what the type takes, in words, "" for a value that it takes or whose type is not checked. An
// empty value resets.
func WantedValue(kind, value, version string) string {
	if value == "" {
		return ""
	}
	if words := wordsOf(kind, version); len(words) > 0 {
		return wantedWord(kind, value, words)
	}
	switch kind {
	case "bool":
		return unless(isSwitch(value), `"yes" or "no"`)
	case "sec", "sec_fix_0", "sec_def_infinity", "service_timeout", "nsec", "job_timeout_sec", "job_running_timeout_sec":
		return unless(value == "infinity" || isTimeSpan(value), `a time span such as "3", "500ms", "2min" or "infinity"`)
	case "memory_limit", "tasks_max":
		return unless(value == "infinity" || amount.MatchString(value), `a size such as "512M", a percentage or "infinity"`)
	case "unsigned":
		return unless(natural.MatchString(value), "a whole number")
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
	case "capability_set":
		return unless(capSet.MatchString(value), `capabilities such as "CAP_NET_ADMIN", separated by blanks`)
	}
	return ""
}

// wordsOf lists the words of an enumeration in a version of systemd: "bool" stands for those of
// a switch, "number" for a number.
func wordsOf(kind, version string) []string {
	fact := between(load().systemd, version, find("enum", kind))
	if fact.State != Present {
		return nil
	}
	return strings.Split(fact.Type, ",")
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
