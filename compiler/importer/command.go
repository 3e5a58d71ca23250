package importer

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/units"
)

// command imports a program that sets what yoctune sets.
func (sh *shell) command(s *syntax.Stmt, args []string, note string) {
	name, rest := args[0], args[1:]
	switch name {
	case "sysctl":
		sh.sysctl(s, rest, note)
	case "modprobe":
		sh.modprobe(s, rest, note)
	case "ip", "ifconfig":
		sh.interfaceSettings(s, name, rest, note)
	case "ethtool":
		sh.ethtool(s, rest, note)
	case "cpufreq-set", "cpupower":
		sh.governor(s, rest, note)
	case "blockdev":
		sh.blockdev(s, rest, note)
	case "mount":
		sh.mount(s, rest, note)
	case "nvpmodel":
		sh.powerMode(s, rest)
	case "jetson_clocks":
		sh.leave(s, clocksReason(rest))
	default:
		sh.leave(s, "yoctune has no field for what it does")
	}
}

// clocksReason explains why an action of jetson_clocks is left.
func clocksReason(args []string) string {
	switch {
	case slices.Contains(args, "--show"):
		return "it only shows the clocks"
	case slices.Contains(args, "--store"), slices.Contains(args, "--restore"):
		return "it saves clocks to a file, or sets those of one; yoctuned rolls back by itself"
	case slices.Contains(args, "--fan"):
		return "it holds all clocks at their maximum, and the fan at full speed; a mode of power.modes whose min is the clock wanted does the first within the mode's limits, and fan the second"
	}
	return "it holds all clocks at their maximum; a mode of power.modes whose min is the clock wanted does so within the mode's limits"
}

func (sh *shell) sysctl(s *syntax.Stmt, args []string, note string) {
	for i := 0; i < len(args); i++ {
		key, value, ok := strings.Cut(args[i], "=")
		switch {
		case strings.HasPrefix(args[i], "-p") || strings.HasPrefix(args[i], "--load") || args[i] == "--system" || args[i] == "-f":
			sh.leave(s, "it reads files; import those")
			return
		case strings.HasPrefix(args[i], "-"):
		case !ok:
			sh.leave(s, "it only shows a parameter")
		default:
			sh.set(s, note, func(l *Line) {
				l.addTrap(sysfsScript)
				sh.im.importSysctlValue(l, knob.DottedSysctl(strings.TrimSpace(key)), strings.TrimSpace(value))
			})
		}
	}
}

func (sh *shell) modprobe(s *syntax.Stmt, args []string, note string) {
	var words []string
	all := false
	for _, a := range args {
		switch {
		case a == "-r" || a == "--remove":
			sh.leave(s, "yoctune unloads no modules")
			return
		case a == "-a" || a == "--all":
			all = true
		case !strings.HasPrefix(a, "-"):
			words = append(words, a)
		}
	}
	for i, w := range words {
		sh.set(s, note, func(l *Line) {
			if i == 0 || all {
				sh.im.setModule(l, w, "load")
				return
			}
			l.markAdjusted("as a kernel argument, which also applies to a built-in driver")
			sh.im.addArgument(l, words[0]+"."+w)
		})
	}
}

// interfaceSettings imports `ip link set [dev] NAME mtu N txqueuelen N`, and the same of
// ifconfig.
func (sh *shell) interfaceSettings(s *syntax.Stmt, program string, args []string, note string) {
	if program == "ip" {
		if len(args) < 3 || !strings.HasPrefix("link", args[0]) || !strings.HasPrefix("set", args[1]) {
			sh.leave(s, "yoctune sets the hardware of interfaces; addresses and routes stay")
			return
		}
		args = args[2:]
		if args[0] == "dev" && len(args) > 1 {
			args = args[1:]
		}
	}
	if len(args) == 0 {
		sh.leave(s, "it names no interface")
		return
	}
	device := args[0]
	for i := 1; i < len(args); i++ {
		attr := map[string]string{"mtu": "mtu", "txqueuelen": "tx_queue_len", "txqlen": "tx_queue_len", "qlen": "tx_queue_len"}[args[i]]
		if attr == "" || i+1 == len(args) {
			sh.leave(s, fmt.Sprintf("yoctune has no field for %s", clean(args[i])))
			continue
		}
		i++
		sh.set(s, note, func(l *Line) { sh.im.setNetwork(l, simpleGlob(device), attr, args[i]) })
	}
}

func (sh *shell) ethtool(s *syntax.Stmt, args []string, note string) {
	group := ""
	if len(args) > 2 {
		group = map[string]string{"-G": "ring", "--set-ring": "ring", "-L": "channels", "--set-channels": "channels", "-C": "coalesce", "--coalesce": "coalesce"}[args[0]]
	}
	if len(args) > 2 && slices.Contains([]string{"-K", "--features", "--offload"}, args[0]) {
		sh.set(s, note, func(l *Line) { sh.im.setFeatures(l, simpleGlob(args[1]), args[2:]) })
		return
	}
	if group == "" {
		sh.leave(s, "yoctune sets rings (-G), channels (-L), coalescing (-C) and features (-K)")
		return
	}
	sh.set(s, note, func(l *Line) { sh.im.setEthtool(l, group, simpleGlob(args[1]), args[2:]) })
}

// governor imports `cpufreq-set -g G` and `cpupower frequency-set -g G`.
func (sh *shell) governor(s *syntax.Stmt, args []string, note string) {
	for i, a := range args {
		if (a == "-g" || a == "--governor") && i+1 < len(args) {
			sh.set(s, note, func(l *Line) {
				sh.im.setField(l, quoteCUE(args[i+1]), "cpu", "governor")
				noteAllCores(l, "")
			})
			return
		}
	}
	sh.leave(s, "yoctune reads its governor (-g)")
}

func (sh *shell) blockdev(s *syntax.Stmt, args []string, note string) {
	for i, a := range args {
		if a != "--setra" || i+2 >= len(args) {
			continue
		}
		device, ok := strings.CutPrefix(args[i+2], "/dev/")
		sectors, isNumber := number(args[i+1])
		if !ok || !isNumber || sectors < 0 || sectors > 1<<30 || sectors%2 != 0 {
			break
		}
		sh.set(s, note, func(l *Line) {
			sh.im.setField(l, quoteCUE(units.Size(sectors*512)), "storage", simpleGlob(device), "readahead")
		})
		return
	}
	sh.leave(s, "yoctune reads its read-ahead (--setra)")
}

// powerMode imports `nvpmodel -m ID`, unless a unit runs it.
func (sh *shell) powerMode(s *syntax.Stmt, args []string) {
	for i, a := range args {
		if a != "-m" || i+1 == len(args) || sh.strict {
			continue
		}
		sh.set(s, "", func(l *Line) {
			l.markAdjusted("as the mode after the first boot; nvpmodel keeps a mode that is chosen later")
			sh.im.setPowerDefault(l, args[i+1])
		})
		return
	}
	sh.leave(s, "power.default sets the mode by its name")
}
