package board

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

// Check tests the facts of a board against each other: every field has its
// evidence, frequency tables ascend, and every stock mode keeps the rules that
// NVIDIA's own files keep (ids from 0 without a gap, one default, core 0 online,
// MIN at most MAX, no clock line for cores that the same mode takes offline,
// nothing undeclared).
func (b *Board) Check() []error {
	var problems []error
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("board %s: "+format, append([]any{b.ID}, args...)...))
	}
	b.checkEvidence(report)
	for name, table := range map[string][]int64{"cpu_khz": b.CPUkHz, "gpu_hz": b.GPUHz, "emc_hz": b.EMCHz} {
		if !isAscending(table) {
			report("%s is not ascending: %v", name, table)
		}
	}
	for line, table := range b.GPUTables {
		if !isAscending(table) {
			report("gpu_tables %s is not ascending: %v", line, table)
		}
	}
	for name, l := range map[string]Limits{"cpu": b.CPU, "gpu": b.GPU, "emc": b.EMC} {
		if l.Min != nil && l.Max != nil && *l.Min > *l.Max {
			report("%s: min %d is above max %d", name, *l.Min, *l.Max)
		}
	}
	if n := b.checkPolicies(report); len(b.Policies) > 0 && n != b.Cores {
		report("policies hold %d cores, the board has %d", n, b.Cores)
	}
	for name, r := range b.Releases {
		if len(r.Machines) == 0 {
			report("release %s has no machine", name)
		}
		if r.Verified && r.Table == "" {
			report("release %s is verified without a table", name)
		}
		for _, key := range []string{r.Table, r.OwnTable} {
			if _, ok := b.Tables[key]; key != "" && !ok {
				report("release %s: table %q is missing", name, key)
			}
		}
		if t := b.Tables[r.Table]; r.Verified && (t.Partial || t.Foreign) {
			report("release %s: a partial table, or another module's, cannot be verified", name)
		}
	}
	for key, t := range b.Tables {
		b.checkTable(key, t, report)
	}
	return problems
}

// Fields that need no source of their own.
var selfEvident = []string{"id", "name", "modules", "soc", "supply", "quirks", "evidence", "identified_by", "device_trees", "default_machine"}

func (b *Board) checkEvidence(report func(string, ...any)) {
	v := reflect.ValueOf(*b)
	fields := map[string]bool{}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		fields[name] = true
		if name == "-" || slices.Contains(selfEvident, name) || v.Field(i).IsZero() {
			continue
		}
		if b.Evidence[name].Source == "" {
			report("%s has no source", name)
		}
	}
	for name, e := range b.Evidence {
		if !fields[name] {
			report("evidence for %q, which is not a field", name)
		}
		if e.Source == "none" || strings.Contains(e.Source+e.Note, "index id") {
			report("%s: nobody can look up %q", name, e.Source+e.Note)
		}
		if e.Verified && isUnrecorded(e.Source) {
			report("%s is verified, and its source has no public address", name)
		}
	}
	for _, n := range slices.Concat(b.Supply, b.Quirks) {
		if n.Verified && isUnrecorded(n.Source) {
			report("note %q is verified, and its source has no public address", n.ID)
		}
		if n.ID == "" || n.Text == "" || n.Source == "" {
			report("note %q lacks an id, a text or a source", n.ID)
		}
	}
}

func (b *Board) checkPolicies(report func(string, ...any)) (cores int) {
	seen := map[int]bool{}
	for _, p := range b.Policies {
		list, err := cpulist.Parse(p.CPUs)
		if err != nil {
			report("policy %d: %v", p.First, err)
			continue
		}
		if len(list) == 0 || list[0] != p.First {
			report("policy %d: its cpus are %s", p.First, p.CPUs)
		}
		for _, c := range list {
			if seen[c] {
				report("cpu %d is in two policies", c)
			}
			seen[c] = true
		}
	}
	return len(seen)
}

var cpuPath = lazyregexp.New(`/cpu/cpu(\d+)/cpufreq/`)

func (b *Board) checkTable(key string, t Table, report func(string, ...any)) {
	defaults := 0
	names := map[string]bool{}
	for i, m := range t.Modes {
		if m.ID != i {
			report("table %s: mode %s has id %d at place %d", key, m.Name, m.ID, i)
		}
		if names[m.Name] {
			report("table %s: two modes are called %s", key, m.Name)
		}
		names[m.Name] = true
		if m.Default {
			defaults++
		}
		b.checkMode(key, t, m, report)
	}
	if defaults != 1 {
		report("table %s: %d default modes", key, defaults)
	}
	if !t.Partial && t.Source == "" {
		report("table %s has no source", key)
	}
}

func (b *Board) checkMode(key string, t Table, m Mode, report func(string, ...any)) {
	offline := map[int]bool{}
	value := map[[2]string]int64{}
	for _, s := range m.Settings {
		param, arg := s[0], s[1]
		if !t.Has(param, arg) {
			report("table %s: mode %s uses undeclared %s %s", key, m.Name, param, arg)
		}
		if _, twice := value[[2]string{param, arg}]; twice {
			report("table %s: mode %s sets %s %s twice", key, m.Name, param, arg)
		}
		if s[2] == "on" || s[2] == "auto" {
			continue
		}
		n, err := strconv.ParseInt(s[2], 10, 64)
		if err != nil {
			report("table %s: mode %s: %s %s = %q is not a number", key, m.Name, param, arg, s[2])
			continue
		}
		value[[2]string{param, arg}] = n
		if param != "CPU_ONLINE" {
			continue
		}
		core, err := strconv.Atoi(strings.TrimPrefix(arg, "CORE_"))
		if err != nil || !t.Foreign && core >= b.Cores {
			report("table %s: mode %s sets %s of a board with %d cores", key, m.Name, arg, b.Cores)
		}
		if n == 0 {
			offline[core] = true
		}
	}
	if offline[0] {
		report("table %s: mode %s takes core 0 offline", key, m.Name)
	}
	for k, low := range value {
		high, ok := value[[2]string{k[0], "MAX_FREQ"}]
		// 0 and -1 stand for the ends of the table.
		if k[1] == "MIN_FREQ" && ok && high > 0 && low > high {
			report("table %s: mode %s: %s MIN_FREQ %d is above MAX_FREQ %d", key, m.Name, k[0], low, high)
		}
	}
	for _, p := range t.Params {
		group := cpuPath.FindStringSubmatch(p.Paths["MAX_FREQ"])
		if _, set := value[[2]string{p.Name, "MAX_FREQ"}]; group == nil || !set {
			continue
		}
		// The cpufreq folder of an offline core is gone, whatever its cluster does.
		if core, err := strconv.Atoi(group[1]); err == nil && offline[core] {
			report("table %s: mode %s sets %s, whose core it takes offline", key, m.Name, p.Name)
		}
	}
}

func isAscending(table []int64) bool {
	return slices.IsSorted(table) && len(slices.Compact(slices.Clone(table))) == len(table)
}

// isUnrecorded reports whether a source names only files whose repository was not recorded.
func isUnrecorded(source string) bool {
	for part := range strings.SplitSeq(source, ";") {
		if !strings.Contains(part, "not recorded") {
			return false
		}
	}
	return true
}
