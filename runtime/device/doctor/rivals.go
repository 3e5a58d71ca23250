package doctor

import (
	"fmt"
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/formats/sysctld"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

// What else on a device has a say about clocks and sysctls.

// Services lists the units whose state [Input.Units] should have.
func Services() []string {
	return []string{"nvpmodel.service", "nvpower.service", "jetson_clocks.service", "jetsonclocks.service", "nvfancontrol.service"}
}

func checkServices(in *Input) answer {
	if in.Modes == nil && in.Units == nil {
		return answer{Skipped, "no power modes on this device", ""}
	}
	worst := answer{verdict: OK}
	var found, advice []string
	complain := func(v Verdict, what, do string) {
		found, advice = append(found, what), append(advice, do)
		if worst.verdict == OK || v == Fail {
			worst.verdict = v
		}
	}
	for _, name := range Services() {
		u, known := in.Units[name]
		clocks := strings.HasPrefix(name, "jetson")
		switch {
		case !known || u.Load == "not-found":
		case u.Active == "failed":
			do := "journalctl -b -u " + name
			if name == "nvpmodel.service" {
				do = "the mode is left half set at the first node that is missing: " + do
			}
			complain(Fail, name+" failed", do)
		case clocks && (u.Active == "active" || u.Active == "activating"):
			complain(Warn, name+" runs", "it locks the clocks that the plan sets: systemctl disable --now "+name)
		}
	}
	if locked(in) {
		complain(Warn, "every clock is locked at its upper end", "somebody ran jetson_clocks: 'jetson_clocks --restore', or a reboot, undoes it")
	}
	switch {
	case worst.verdict != OK:
		return answer{worst.verdict, listed(found), strings.Join(advice, "; ")}
	case in.Units == nil:
		return answer{Unknown, "", "systemd does not say how nvpmodel.service is"}
	}
	return answer{OK, "none failed, no clock locked", ""}
}

// locked reports whether all policies are held at their upper end and nobody may
// sleep, as jetson_clocks leaves them, though no plan wants that.
func locked(in *Input) bool {
	policies, err := rootfs.Nodes(in.Dev, rootfs.ClassCPUFreq)
	if err != nil || len(policies) == 0 || in.Modes == nil {
		return false
	}
	for _, p := range policies {
		low, high, top := in.text(p.Path+"/scaling_min_freq"), in.text(p.Path+"/scaling_max_freq"), in.text(p.Path+"/cpuinfo_max_freq")
		if low == "" || low != high || high != top {
			return false
		}
	}
	if in.Plan == nil {
		return true
	}
	return !slices.ContainsFunc(in.Plan.Settings, func(s plan.Setting) bool { return strings.HasSuffix(s.Select.Attr, "scaling_min_freq") })
}

// sysctlDirs are where sysctl settings are read from at boot; of two files of one
// name the first folder's counts (sysctl.d(5)).
func sysctlDirs() []string {
	return []string{"/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"}
}

// checkSysctls looks for files that set a sysctl of the plan to another value.
func checkSysctls(in *Input) answer {
	want := map[string]plan.Setting{}
	if in.Plan != nil {
		for _, s := range in.Plan.Settings {
			if _, ok := knob.SysctlKey(s.Select.Path); ok {
				want[s.Select.Path] = s
			}
		}
	}
	if len(want) == 0 {
		return answer{Skipped, "no plan sets a sysctl", ""}
	}
	var found []string
	for _, file := range sysctlFiles(in.Dev) {
		b, err := in.Dev.ReadFile(file, 1<<20)
		if err != nil {
			continue
		}
		for i, text := range strings.Split(string(b), "\n") {
			line := sysctld.ParseLine(text)
			if line.Kind != sysctld.Assignment {
				continue
			}
			for node, s := range want {
				if rootfs.Glob(knob.SysctlPath(line.Key), node) && !agrees(s, line.Value) {
					found = append(found, fmt.Sprintf("%s=%s in %s:%d", outcome.Name(node), line.Value, file, i+1))
				}
			}
		}
	}
	if len(found) == 0 {
		return answer{OK, fmt.Sprintf("%d sysctls, no other file sets them otherwise", len(want)), ""}
	}
	slices.Sort(found)
	return answer{Warn, listed(found), "yoctuned sets the plan's again after boot; take the lines out, or whoever reads the files believes them"}
}

// agrees reports whether a file's value is what the plan wants, or not comparable.
func agrees(s plan.Setting, value string) bool {
	f, err := knob.Parse(s.Type, value)
	if err != nil {
		return false
	}
	ok, err := knob.Satisfies(s.Type, s.Compare, s.Want, f)
	return err == nil && ok
}

// sysctlFiles lists the files in the order in which they are read.
func sysctlFiles(dev rootfs.FS) []string {
	at := map[string]string{}
	for _, dir := range sysctlDirs() {
		names, err := dev.List(dir)
		if err != nil {
			continue
		}
		for _, n := range names {
			if _, hidden := at[n]; !hidden && strings.HasSuffix(n, ".conf") {
				at[n] = path.Join(dir, n)
			}
		}
	}
	var out []string
	for _, n := range slices.Sorted(maps.Keys(at)) {
		out = append(out, at[n])
	}
	// procps reads this one last; systemd reads it by a link in /etc/sysctl.d.
	return append(out, "/etc/sysctl.conf")
}

// checkSuper holds what a table of Super modes asks for against what the firmware
// lets the clocks do: with another device tree than a "-super" one the mode is
// shown as set, and the clocks stay where they were.
func checkSuper(in *Input) answer {
	if in.Modes == nil || !slices.ContainsFunc(in.Modes.Modes, func(m nvpmodel.Mode) bool { return strings.Contains(m.Name, "SUPER") }) {
		return answer{Skipped, "no Super modes on this device", ""}
	}
	facts := known(in.Dev)
	if facts == nil {
		return answer{Unknown, "", "no facts about this board"}
	}
	hardware := rootfs.ReadHardware(in.Dev)
	var found []string
	short := 0
	clock := func(name string, highest, perMHz int64, ends board.Limits) {
		if highest <= 0 || ends.MaxNonSuper == nil || ends.Max == nil || *ends.Max <= *ends.MaxNonSuper {
			return
		}
		found = append(found, fmt.Sprintf("%s %d of %d MHz", name, highest/perMHz, *ends.Max/perMHz))
		if highest <= *ends.MaxNonSuper {
			short++
		}
	}
	if n := len(hardware.CPUkHz); n > 0 {
		clock("CPU", hardware.CPUkHz[n-1], 1000, facts.CPU)
	}
	for _, d := range hardware.DevFreq {
		if n := len(d.Hz); n > 0 && slices.Contains([]string{"gpu", "ga10b"}, d.OFNode) {
			clock("GPU", d.Hz[n-1], 1_000_000, facts.GPU)
		}
	}
	if hz, err := strconv.ParseInt(in.text("/sys/kernel/debug/bpmp/debug/clk/emc/max_rate"), 10, 63); err == nil {
		clock("EMC", hz, 1_000_000, facts.EMC)
	}
	switch {
	case len(found) == 0:
		return answer{Unknown, "", "neither clock steps nor BPMP's limits can be read: run it as root"}
	case short > 0:
		return answer{Fail, listed(found), "the BPMP device tree is not a -super one: flash with the machine whose name ends in -super; the mode alone changes nothing"}
	}
	return answer{OK, listed(found), ""}
}

// known are the facts about the board that the device says it is.
func known(dev rootfs.FS) *board.Board {
	compatible := rootfs.Identify(dev).Compatible
	for _, id := range board.IDs() {
		if board.IsCompatible(id, compatible) {
			b, _ := board.Lookup(id)
			return b
		}
	}
	return nil
}
