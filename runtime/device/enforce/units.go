package enforce

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

// systemd applies the files of a unit when the unit starts. A service differs from its
// files if it was started before a drop-in was installed, if its properties were changed
// since, or if it changes its own threads. Properties that systemd can change at run time
// are set through systemd, and the scheduling of processes is set here. The result is
// verified in the cgroups and the tasks.

const cgroups = rootfs.CgroupDir

// unitSettings returns the settings of units that can be changed while they run.
func unitSettings(units []plan.Unit) []plan.Setting {
	var out []plan.Setting
	for _, u := range units {
		add := func(node, want string) {
			out = append(out, plan.Setting{
				ID: "services." + u.Name, Domain: plan.DomainUnit, Select: plan.Select{Path: cgroupOf(u) + node}, Type: plan.TypeString, Want: want,
				Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing, Optional: true,
			})
		}
		number := func(property string, n int64) {
			if n > 0 {
				add("/systemd/"+property, strconv.FormatInt(n, 10))
			}
		}
		if strings.Contains(u.Name, "/") || strings.Contains(u.Slice, "/") {
			continue // refused by unitResult
		}
		if cpus, err := knob.Canonical(plan.TypeCPUList, u.CPUs); err == nil && cpus != "" {
			add("/systemd/AllowedCPUs", cpus)
		}
		number("CPUWeight", int64(u.CPUWeight))
		number("IOWeight", int64(u.IOWeight))
		number("CPUQuotaPerSecUSec", int64(u.CPUQuota)*10_000)
		number("MemoryMax", u.MemoryMax)
		number("MemoryHigh", u.MemoryHigh)
		if u.Scheduling != "" {
			add("/tasks/scheduling", policyText(u.Scheduling, u.Priority))
		}
		if u.Nice != nil && !isRealtime(u) {
			add("/tasks/nice", strconv.Itoa(*u.Nice))
		}
	}
	return out
}

func isRealtime(u plan.Unit) bool { return u.Scheduling == "fifo" || u.Scheduling == "rr" }

// unitComparison returns what differs between a running unit and the plan.
type unitComparison func(dev rootfs.FS, u plan.Unit, dir string) (faults []string)

// unitResults compares running units with the plan. The comparison with systemd's properties,
// which costs messages, is left to verify; nil for none.
func unitResults(dev rootfs.FS, units []plan.Unit, properties unitComparison) []Result {
	var out []Result
	for _, u := range units {
		switch isTimer := strings.HasSuffix(u.Name, ".timer"); {
		case !isTimer:
			out = append(out, unitResult(dev, u, properties))
		case properties != nil: // only systemd shows a timer
			out = append(out, timerResult(dev, u, properties))
		}
	}
	return out
}

// cgroupOf returns the cgroup of a unit. The name of a slice contains those of its parents. The
// instances of a template have a slice of their own (systemd.slice(5)).
func cgroupOf(u plan.Unit) string {
	if strings.HasSuffix(u.Name, ".slice") {
		return sliceDir(u.Name)
	}
	slice := u.Slice
	if slice == "" {
		slice = "system"
		if template, _, ok := strings.Cut(u.Name, "@"); ok {
			slice += "-" + escapeUnit(template)
		}
	}
	return path.Join(sliceDir(strings.TrimSuffix(slice, ".slice")+".slice"), u.Name)
}

// UnitDirs returns the cgroups of the plan's units, which exist while the units run.
func (s *Session) UnitDirs() []string {
	var dirs []string
	for _, u := range s.plan.Units {
		if !strings.Contains(u.Name, "/") && !strings.Contains(u.Slice, "/") && !strings.HasSuffix(u.Name, ".timer") {
			dirs = append(dirs, cgroupOf(u))
		}
	}
	return dirs
}

// escapeUnit writes a name as part of another, as unit_name_escape of systemd does.
func escapeUnit(name string) string {
	var b strings.Builder
	for i, c := range []byte(name) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == ':' || c == '.' && i > 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

func sliceDir(name string) string {
	dir, so := cgroups, ""
	for _, part := range strings.Split(strings.TrimSuffix(name, ".slice"), "-") {
		so += part
		dir += "/" + so + ".slice"
		so += "-"
	}
	return dir
}

func unitResult(dev rootfs.FS, u plan.Unit, properties unitComparison) Result {
	dir := cgroupOf(u)
	r := Result{ID: "services." + u.Name, Path: dir, Wanted: describeUnit(u), Outcome: outcome.OK}
	if strings.Contains(u.Name, "/") || strings.Contains(u.Slice, "/") {
		r.Outcome, r.Message = outcome.Forbidden, u.Name+": not a valid unit name"
		return r
	}
	if _, err := dev.Read(cgroups + "/cgroup.controllers"); err != nil {
		// Without cgroups v2 the unit cannot be verified.
		r.Outcome, r.Message, r.Excused = outcome.Unsupported, u.Name+": cannot be verified without the unified cgroup hierarchy (v2)", true
		return r
	}
	if _, err := dev.Resolve(dir); errors.Is(err, fs.ErrNotExist) {
		r.Outcome, r.Message, r.Excused = outcome.Pending, u.Name+" is not running in "+strings.TrimPrefix(dir, cgroups+"/"), true
		return r
	}
	found, faults := compareCgroup(dev, u, dir)
	if !strings.HasSuffix(u.Name, ".slice") {
		tasks, wrong := compareTasks(dev, u, dir)
		found = append(found, tasks)
		faults = append(faults, wrong...)
		if starved := realtimeStarved(dev, u); starved != "" {
			faults = append(faults, starved)
		}
	}
	if properties != nil {
		faults = append(faults, properties(dev, u, dir)...)
	}
	r.Found, r.Known = strings.Join(found, ", "), true
	if len(faults) > 0 {
		r.Outcome = outcome.Differs
		r.Message = fmt.Sprintf("%s: %s; systemd applies it when the unit starts: `systemctl restart %s`", u.Name, strings.Join(faults, "; "), u.Name)
	} else {
		r.Found = r.Wanted
	}
	return r
}

// timerResult compares a timer with the plan. It has no processes, and systemd shows whether it waits.
func timerResult(dev rootfs.FS, u plan.Unit, properties unitComparison) Result {
	dir := cgroupOf(u)
	r := Result{ID: "services." + u.Name, Path: dir, Wanted: describeUnit(u), Outcome: outcome.OK}
	if strings.Contains(u.Name, "/") {
		r.Outcome, r.Message = outcome.Forbidden, u.Name+": not a valid unit name"
		return r
	}
	if state := rootfs.ReadText(dev, dir+"/systemd/ActiveState"); state != "active" {
		r.Outcome, r.Message, r.Excused = outcome.Pending, fmt.Sprintf("%s is %s: `systemctl enable --now %s`", u.Name, cmp.Or(state, "not running"), u.Name), true
		return r
	}
	if faults := properties(dev, u, dir); len(faults) > 0 {
		r.Outcome = outcome.Differs
		r.Message = fmt.Sprintf("%s: %s; systemd applies it when the timer starts: `systemctl restart %s`", u.Name, strings.Join(faults, "; "), u.Name)
	} else {
		r.Found = r.Wanted
	}
	r.Known = true
	return r
}

// describeUnit returns the wanted properties of a unit as one line.
func describeUnit(u plan.Unit) string {
	var w []string
	add := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	if u.CPUs != "" {
		add("cpus %s", u.CPUs)
	}
	if u.CPUPartition != "" {
		add("partition %s", u.CPUPartition)
	}
	if u.IOWeight > 0 {
		add("io weight %d", u.IOWeight)
	}
	if u.Scheduling != "" {
		add("%s", policyText(u.Scheduling, u.Priority))
	}
	if u.Nice != nil {
		add("nice %d", *u.Nice)
	}
	if n := len(u.Properties); n > 0 {
		add("%d properties of systemd", n)
	}
	if len(w) == 0 {
		return "in its slice"
	}
	return strings.Join(w, ", ")
}

// realtimeStarved returns a fault if the kernel gives real-time tasks no time, else ""
// (kernel/sched/rt.c).
func realtimeStarved(dev rootfs.FS, u plan.Unit) string {
	if !isRealtime(u) || rootfs.ReadText(dev, "/proc/sys/kernel/sched_rt_runtime_us") != "0" {
		return ""
	}
	return "kernel.sched_rt_runtime_us is 0: real-time tasks get no time"
}

func policyText(policy string, priority int) string {
	if priority > 0 {
		return fmt.Sprintf("%s %d", policy, priority)
	}
	return policy
}

// compareCgroup compares the files of a cgroup. Controllers that are not enabled have no
// files and are skipped.
func compareCgroup(dev rootfs.FS, u plan.Unit, dir string) (found, faults []string) {
	look := func(file, what, typ, want string, value func(string) string) {
		c, err := dev.Read(dir + "/" + file)
		if err != nil || want == "" {
			return
		}
		text := strings.TrimSpace(c.Text)
		if value != nil {
			text = value(text)
		}
		a, err1 := knob.Canonical(typ, text)
		b, err2 := knob.Canonical(typ, want)
		found = append(found, what+" "+text)
		if err1 != nil || err2 != nil || a != b {
			faults = append(faults, fmt.Sprintf("%s is %s, wanted %s", what, text, want))
		}
	}
	weight := ""
	if u.IOWeight > 0 {
		weight = strconv.Itoa(u.IOWeight)
	}
	look("cpuset.cpus.effective", "cpus", plan.TypeCPUList, u.CPUs, nil)
	// An invalid partition reads "isolated invalid (reason)".
	look("cpuset.cpus.partition", "partition", plan.TypeString, u.CPUPartition, nil)
	look("io.weight", "io weight", plan.TypeInt, weight, func(text string) string {
		line, _, _ := strings.Cut(text, "\n")
		return strings.TrimPrefix(line, "default ")
	})
	return found, faults
}

// compareProperties compares what systemd shows of a unit. A tree has no running systemd, and
// shows what its files have.
func compareProperties(dev rootfs.FS, u plan.Unit, dir string) (faults []string) {
	for _, name := range slices.Sorted(maps.Keys(u.Properties)) {
		c, err := dev.Read(dir + "/systemd/" + name)
		switch have, want := strings.TrimSuffix(c.Text, "\n"), u.Properties[name]; {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			faults = append(faults, fmt.Sprintf("%s cannot be read: %v", name, err))
		case !hasProperty(name, have, want):
			faults = append(faults, fmt.Sprintf("%s is %s, wanted %s", name, oneLine(have), oneLine(want)))
		}
	}
	if len(u.Properties) > 0 && rootfs.ReadText(dev, dir+"/systemd/NeedDaemonReload") == "yes" {
		faults = append(faults, "systemd has not read its changed files: `systemctl daemon-reload`")
	}
	return faults
}

// hasProperty reports whether a property has the wanted value, or a list all wanted lines: units
// and the variables of other files add to those of the plan.
func hasProperty(name, have, want string) bool {
	switch name {
	case "FragmentPath", "DropInPaths":
		return slices.ContainsFunc(strings.Split(have, "\n"), func(l string) bool { return strings.HasSuffix(l, "/"+want) })
	case "After", "Wants", "Requires", "SupplementaryGroups", "EnvironmentFiles", "Environment":
		lines := strings.Split(have, "\n")
		return !slices.ContainsFunc(strings.Split(want, "\n"), func(l string) bool { return !slices.Contains(lines, l) })
	}
	return have == want
}

// oneLine returns the lines of a list as one, "nothing" for none.
func oneLine(text string) string {
	return cmp.Or(strings.ReplaceAll(text, "\n", " "), "nothing")
}

// compareTasks compares the processes of a unit.
func compareTasks(dev rootfs.FS, u plan.Unit, dir string) (found string, faults []string) {
	c, err := dev.Read(dir + "/cgroup.procs")
	if err != nil {
		return "no processes", nil
	}
	seen := 0
	wrong := map[string][]string{}
	var order []string
	for pid := range strings.FieldsSeq(c.Text) {
		t, ok := readTask(dev, pid)
		if !ok {
			continue // it has ended meanwhile
		}
		seen++
		for _, w := range t.compareWith(u) {
			if wrong[w] == nil {
				order = append(order, w)
			}
			wrong[w] = append(wrong[w], pid)
		}
	}
	for _, w := range order {
		faults = append(faults, fmt.Sprintf("%d of %d processes %s (pid %s)", len(wrong[w]), seen, w, wrong[w][0]))
	}
	return fmt.Sprintf("%d processes", seen), faults
}

// task is the scheduling state of one task.
type task struct {
	policy, priority, nice int
	cpus                   string
}

// readTask reads /proc/PID/stat and status (proc(5)).
func readTask(dev rootfs.FS, pid string) (task, bool) {
	c, err := dev.Read("/proc/" + pid + "/stat")
	if err != nil {
		return task{}, false
	}
	// The command, in parentheses, may contain blanks and parentheses.
	f := strings.Fields(c.Text[strings.LastIndexByte(c.Text, ')')+1:])
	if len(f) < 39 {
		return task{}, false
	}
	var t task
	for at, into := range map[int]*int{16: &t.nice, 37: &t.priority, 38: &t.policy} {
		n, err := strconv.Atoi(f[at])
		if err != nil {
			return task{}, false
		}
		*into = n
	}
	_, rest, _ := strings.Cut(rootfs.ReadText(dev, "/proc/"+pid+"/status"), "\nCpus_allowed_list:")
	line, _, _ := strings.Cut(rest, "\n")
	t.cpus = strings.TrimSpace(line)
	return t, true
}

// compareWith returns the differences between a task and its unit.
func (t task) compareWith(u plan.Unit) (faults []string) {
	policies := map[int]string{0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline"}
	if want, have := policyText(u.Scheduling, u.Priority), policyText(policies[t.policy], t.priority); u.Scheduling != "" && want != have {
		faults = append(faults, fmt.Sprintf("run as %s, wanted %s", have, want))
	}
	if u.Nice != nil && t.policy != 1 && t.policy != 2 && t.nice != *u.Nice {
		faults = append(faults, fmt.Sprintf("have nice %d, wanted %d", t.nice, *u.Nice))
	}
	if u.CPUs != "" && t.cpus != "" {
		a, err1 := knob.Canonical(plan.TypeCPUList, t.cpus)
		b, err2 := knob.Canonical(plan.TypeCPUList, u.CPUs)
		if err1 != nil || err2 != nil || a != b {
			faults = append(faults, fmt.Sprintf("may use cpus %s, wanted %s", t.cpus, u.CPUs))
		}
	}
	return faults
}
