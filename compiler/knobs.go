package compiler

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/schema/facts/sysctl"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

// genericBoard is the board of a plan of bare paths, which any machine accepts.
const genericBoard = "generic"

// maxTable bounds a table of knobs, in bytes.
const maxTable = 4 << 20

// Knobs makes a plan from a table: one "path TAB value" a line, comments after "#" at the
// start of a line. Settings keep the order of the table, because some knobs must be written
// before others; what a run changed is undone when it ends. Malformed lines are in the
// report.
func Knobs(file string) (*plan.Plan, plan.Origins, *diag.Report, *diag.Sources, error) {
	raw, err := infile.Read(file, maxTable)
	if err != nil {
		return nil, nil, nil, nil, fmt.Errorf("reading the table: %w", err)
	}
	name := path.Base(file)
	src := diag.NewSources()
	src.Add(name, raw)
	p := &plan.Plan{Layer: "knobs", Target: genericBoard, Board: genericBoard, Serial: 1, Rollback: "on-stop"}
	origins, report := plan.Origins{}, &diag.Report{}
	n := 0
	for line := range strings.Lines(string(raw)) {
		n++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := plan.Position{File: name, Line: n, Column: 1}
		s, problem := parseKnob(line)
		if problem != "" {
			report.Errorf("YT0109", at, "", "%s", problem)
			continue
		}
		if first, taken := origins[s.ID]; taken {
			report.Add(diag.Diagnostic{ID: "YT0105", Severity: diag.Error, Pos: at, Message: "the path appears twice",
				Related: []diag.Related{{Pos: first, Message: "first here"}}})
			continue
		}
		origins[s.ID] = at
		p.Settings = append(p.Settings, s)
	}
	if report.Failed() {
		return nil, nil, report, src, nil
	}
	if err := p.Seal(); err != nil {
		return nil, nil, nil, nil, fmt.Errorf("sealing the plan: %w", err)
	}
	return p, origins, report, src, nil
}

// parseKnob parses a line of a table; problem is the reason for refusing it.
func parseKnob(line string) (s plan.Setting, problem string) {
	file, value, ok := strings.Cut(line, "\t")
	if !ok {
		return s, "a line is a path, a tab, and a value"
	}
	value = strings.TrimSpace(value)
	below := strings.HasPrefix(file, "/proc/") || strings.HasPrefix(file, "/sys/")
	if !below || path.Clean(file) != file || strings.ContainsAny(file, " *?[]\\") {
		return s, fmt.Sprintf("%q is not one file below /proc or /sys", file)
	}
	for _, r := range line {
		if r < 0x20 && r != '\t' || r == 0x7f {
			return s, fmt.Sprintf("the line holds the control character U+%04X", r)
		}
	}
	if value == "" {
		return s, "the value is empty"
	}
	if why := irreversible(file, value); why != "" {
		return s, why
	}
	return plan.Setting{
		ID: "knob." + file, Domain: plan.DomainKnob, Select: plan.Select{Path: file}, Type: knobType(file, value), Want: value,
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}, ""
}

// keptValues are the values of files other than sysctls that the kernel keeps until the next boot;
// "*" is every value. Sources: security/lockdown/lockdown.c, kernel/cpu.c
// (CPU_SMT_FORCE_DISABLED), kernel/module/signing.c (bool_enable_only).
var keptValues = map[string][]string{
	"/sys/kernel/security/lockdown":             {"*"},
	"/sys/devices/system/cpu/smt/control":       {"forceoff"},
	"/sys/module/module/parameters/sig_enforce": {"1", "y", "t", "on"},
}

// irreversible returns why yoctuned cannot set the file and restore it when it stops, "" if it can.
func irreversible(file, value string) string {
	const boot = "the kernel keeps this value until the next boot, and yoctuned could not restore the value from before; set it by a configuration, or leave it out"
	key, ok := knob.SysctlKey(file)
	if !ok {
		kept := keptValues[file]
		if slices.Contains(kept, "*") || slices.Contains(kept, strings.ToLower(value)) {
			return boot
		}
		return ""
	}
	if knob.ForbiddenValue(key, value) {
		return key + " may run programs or lock the machine until the next boot, and yoctuned never writes it; leave it out"
	}
	f, known := sysctl.Lookup(key)
	switch {
	case known && f.Stays(value):
		return boot
	case known && f.Has(sysctl.WriteOnly):
		return key + " is an action of the kernel, which has no value to keep; leave it out"
	}
	return ""
}

// knobType returns the type in which the kernel prints the file.
func knobType(file, value string) string {
	switch base := path.Base(file); {
	case base == "scheduler", strings.HasPrefix(file, "/sys/kernel/mm/transparent_hugepage/") && !isInt(value):
		return plan.TypeChoice
	case base == "smp_affinity_list", base == "cpuset.cpus":
		return plan.TypeCPUList
	case base == "smp_affinity", base == "default_smp_affinity", base == "rps_cpus", base == "xps_cpus":
		return plan.TypeCPUMask
	}
	words := strings.Fields(value)
	for _, w := range words {
		if !isInt(w) {
			return plan.TypeString
		}
	}
	if len(words) > 1 {
		return plan.TypeVector
	}
	return plan.TypeInt
}

func isInt(s string) bool {
	_, err := strconv.ParseInt(s, 0, 64)
	return err == nil
}
