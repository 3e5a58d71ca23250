package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
)

func checkPowerMode(in *Input) answer {
	want := ""
	if in.Plan != nil && in.Plan.Power != nil {
		want = in.Plan.Power.Default
	}
	switch {
	case in.Modes == nil && want == "":
		return answer{Skipped, "no power modes on this device", ""}
	case in.Modes == nil:
		return answer{Fail, "no power modes on this device", "add nvpmodel and its table to the image: tegra-nvpmodel"}
	case in.Mode == "":
		return answer{Fail, "no mode is set", "nvpmodel has failed or has not run: systemctl status nvpmodel; its state is in /var/lib/nvpmodel/status"}
	case want != "" && in.Modes.Mode(want) == nil:
		return answer{Fail, in.Mode, fmt.Sprintf("/etc/nvpmodel.conf has no mode %s: it belongs to another module or an older image", want)}
	case want != "" && want != in.Mode:
		return answer{Fail, in.Mode + ", wanted " + want, "/var/lib/nvpmodel/status overrides the default of the table; 'nvpmodel -m' may need a reboot, and prompts for it only on a terminal"}
	}
	return answer{OK, in.Mode, ""}
}

func checkPowerNodes(in *Input) answer {
	if in.Modes == nil {
		return answer{Skipped, "no power modes on this device", ""}
	}
	if gone := missingNodes(in.Dev, in.Modes); len(gone) > 0 {
		return answer{Fail, joinSome(gone), "nvpmodel stops at the first one and leaves the mode half applied: the driver is not bound (see dmesg), or the table belongs to another L4T release or module"}
	}
	return answer{OK, "0", ""}
}

// checkSuper compares the clocks of Super modes with the limits of the firmware. Without a
// "-super" device tree the mode is reported as set, but the clocks do not change.
func checkSuper(in *Input) answer {
	if in.Modes == nil || !slices.ContainsFunc(in.Modes.Modes, func(m nvpmodel.Mode) bool { return strings.Contains(m.Name, "SUPER") }) {
		return answer{Skipped, "no Super modes on this device", ""}
	}
	facts := lookupBoard(in.Dev)
	if facts == nil {
		return answer{Unknown, "", "unknown board"}
	}
	var found []string
	short := 0
	for _, c := range highestClocks(in, facts) {
		ends := c.limits
		if c.highest <= 0 || ends.MaxNonSuper == nil || ends.Max == nil || *ends.Max <= *ends.MaxNonSuper {
			continue
		}
		found = append(found, fmt.Sprintf("%s %d of %d MHz", c.name, c.highest/c.perMHz, *ends.Max/c.perMHz))
		if c.highest <= *ends.MaxNonSuper {
			short++
		}
	}
	switch {
	case len(found) == 0:
		return answer{Unknown, "", "neither clock steps nor BPMP's limits can be read: run as root"}
	case short > 0:
		return answer{Fail, joinSome(found), "the BPMP device tree is not a -super one: flash the machine whose name ends in -super; the power mode alone has no effect"}
	}
	return answer{OK, joinSome(found), ""}
}

// highestClock is the highest step of a clock, with the board's limits in the same unit.
type highestClock struct {
	name            string
	highest, perMHz int64
	limits          board.Limits
}

// highestClocks returns the clocks whose steps can be read.
func highestClocks(in *Input, facts *board.Board) []highestClock {
	hardware := rootfs.ReadHardware(in.Dev)
	var out []highestClock
	if n := len(hardware.CPUkHz); n > 0 {
		out = append(out, highestClock{"CPU", hardware.CPUkHz[n-1], 1000, facts.CPU})
	}
	for _, d := range hardware.DevFreq {
		if n := len(d.Hz); n > 0 && slices.Contains([]string{"gpu", "ga10b"}, d.OFNode) {
			out = append(out, highestClock{"GPU", d.Hz[n-1], 1_000_000, facts.GPU})
		}
	}
	if hz, err := strconv.ParseInt(in.readText("/sys/kernel/debug/bpmp/debug/clk/emc/max_rate"), 10, 63); err == nil {
		out = append(out, highestClock{"EMC", hz, 1_000_000, facts.EMC})
	}
	return out
}

// lookupBoard returns the facts of the board that the device tree names, nil if unknown.
func lookupBoard(dev rootfs.FS) *board.Board {
	compatible := rootfs.Identify(dev).Compatible
	for _, id := range board.IDs() {
		if board.IsCompatible(id, compatible) {
			b, _ := board.Lookup(id)
			return b
		}
	}
	return nil
}

// missingNodes returns files that nvpmodel.conf declares and that do not exist. nvpmodel stops
// at the first one and leaves the mode half applied.
func missingNodes(dev rootfs.FS, config *nvpmodel.File) []string {
	exists := func(arg *nvpmodel.Arg) bool {
		if arg == nil {
			return false
		}
		_, err := dev.Mode(arg.Path)
		return !errors.Is(err, fs.ErrNotExist)
	}
	var out []string
	for _, p := range config.Params {
		for _, arg := range p.Args {
			// Of a pair ARG and ARG_KNEXT, each kernel line has one.
			other, next := strings.CutSuffix(arg.Name, "_KNEXT")
			if !next {
				other = arg.Name + "_KNEXT"
			}
			if !exists(&arg) && !exists(p.Arg(other)) {
				out = append(out, arg.Path)
			}
		}
	}
	return out
}
