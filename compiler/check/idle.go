package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema/facts/idle"
	"github.com/yoctune/yoctune/schema/formats/boardfile"
)

// The rules of this file are about what the device sets through its firmware: idle states, and the
// clock of the memory controller.
func firmwareRules() []Rule {
	return []Rule{
		{
			ID: "idle-state", Severity: diag.Warning,
			Title: "no idle state of the cores is known to have the name",
			Cause: "The names are those of the nodes in the device tree, and WFI, which every core has. yoctuned disables the states of a name on each core that has them; a state that no core has stays unsupported. Of most modules the names are not known: their firmware has them.",
			Fix:   "write a name that /sys/devices/system/cpu/cpu0/cpuidle/state*/name has",
			Wrong: `{board: "nano-4gb", release: "kirkstone-l4t-r32.7.x", cpu: idleStates: c9: false}`, Right: `{board: "nano-4gb", release: "kirkstone-l4t-r32.7.x", cpu: idleStates: cc6: false}`,
			See: "Documentation/admin-guide/pm/cpuidle.rst; idle-states of the device tree",
			run: checkIdleState,
		},
		{
			ID: "emc-lock", Severity: diag.Error,
			Title: "the clock of the memory controller cannot be locked",
			Cause: "jetson_clocks locks the clock through files of the firmware in debugfs. Modules and releases without these files, and kernels without DEBUG_FS, offer no lock at run time.",
			Fix:   "cap the clock in a power mode (power.modes.NAME.emc), or remove the field",
			Wrong: `{board: "thor-t5000", release: "wrynose", memory: emc: "2133MHz"}`, Right: `memory: emc: "2133MHz"`,
			See: "yoctune facts show BOARD; jetson_clocks of L4T",
			run: checkEMCLock,
		},
	}
}

// idleStates lists the names of idle states; none where they are not known.
func (s *subject) idleStates() []string {
	if s.File != nil && s.File.Idle != nil {
		return namesOf(s.File.Idle.States, func(i boardfile.IdleState) string { return i.Name })
	}
	return idle.States(s.Board.SoC, s.Release.Line())
}

func checkIdleState(s *subject) {
	known := s.idleStates()
	for _, state := range s.Config.CPU.IdleStates.Entries {
		switch {
		case slices.Contains(known, state.Key()):
		case len(known) == 0:
			s.reportKey(state, "check /sys/devices/system/cpu/cpu0/cpuidle/state*/name of the device", "unknown: the idle states of %s on %s are not among the facts", s.Board.ID, s.Release.Name)
		default:
			help := "the states are " + strings.Join(known, ", ")
			near := diag.Nearest(state.Key(), known)
			if near != "" {
				help = fmt.Sprintf("did you mean %q?", near)
			}
			s.reportKey(state, help, "%s has no idle state %s", s.Board.ID, state.Key()).propose(state, state.Key(), near)
		}
	}
}

func checkEMCLock(s *subject) {
	clock := s.Config.Memory.EMC
	if !clock.IsSet() || s.IsOwn() {
		return
	}
	if _, ok := s.EMCLock(); !ok {
		s.reportAt(clock, clock.Show(), "", "no file locks the clock of the memory controller of %s on %s", s.Board.ID, s.Release.Name)
	} else if s.lacksKernelOption("DEBUG_FS") {
		f := s.reportAt(clock, clock.Show(), "switch DEBUG_FS on in kernel.config", "the files that lock the clock are in debugfs, and DEBUG_FS is off")
		s.enable(f, "DEBUG_FS", "kernel: config: ", 2)
	}
}
