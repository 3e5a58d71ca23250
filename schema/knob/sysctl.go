package knob

import (
	"path"
	"strings"
)

// SysctlDir is the directory of the kernel's parameters.
const SysctlDir = "/proc/sys/"

// swapSeparators exchanges the two separators of a sysctl name (sysctl.d(5)): where
// "." separates components, "/" stands for a dot inside a component, and the other
// way round.
func swapSeparators(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '.':
			return '/'
		case '/':
			return '.'
		}
		return r
	}, name)
}

// SysctlPath returns the file of a parameter:
// net.ipv4.conf.eth0/100.rp_filter -> /proc/sys/net/ipv4/conf/eth0.100/rp_filter.
func SysctlPath(key string) string { return SysctlDir + swapSeparators(key) }

// SysctlKey returns the parameter of a file below [SysctlDir].
func SysctlKey(name string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(name, SysctlDir)
	if !ok || rest == "" || path.Clean(name) != name {
		return "", false
	}
	return swapSeparators(rest), true
}

// DottedSysctl returns the key of a parameter written in either notation of
// sysctl.d(5): the first separator is the one between components.
func DottedSysctl(name string) string {
	if i := strings.IndexAny(name, "./"); i >= 0 && name[i] == '/' {
		return swapSeparators(name)
	}
	return name
}

// ForbiddenSysctl reports whether a parameter must not be set by a plan: the kernel
// runs the value as a program or gives that program its capabilities, or the write
// locks the machine until the next boot. See Documentation/admin-guide/sysctl/kernel.rst
// and Documentation/admin-guide/binfmt-misc.rst.
func ForbiddenSysctl(key string) bool {
	switch key {
	case "kernel.core_pattern", "kernel.hotplug", "kernel.modprobe", "kernel.poweroff_cmd",
		"kernel.usermodehelper.bset", "kernel.usermodehelper.inheritable",
		"kernel.kexec_load_disabled", "kernel.modules_disabled":
		return true
	}
	return strings.HasPrefix(key, "fs.binfmt_misc.")
}

// ForbiddenValue is ForbiddenSysctl for one value: a file name for core dumps is allowed, and a
// program to pipe them to is not.
func ForbiddenValue(key, value string) bool {
	return ForbiddenSysctl(key) && (key != "kernel.core_pattern" || strings.HasPrefix(strings.TrimSpace(value), "|"))
}

// ProvidingModule returns the kernel module whose loading creates a node, or "" when
// none is known. These nodes appear with the first rule, bridge or swap device, long
// after boot.
func ProvidingModule(name string) string {
	key, _ := SysctlKey(name)
	switch {
	case strings.HasPrefix(key, "net.netfilter.nf_conntrack_"), key == "net.nf_conntrack_max":
		return "nf_conntrack"
	case strings.HasPrefix(key, "net.bridge."):
		return "br_netfilter"
	case strings.HasPrefix(name, "/sys/block/zram"):
		return "zram"
	}
	return ""
}

// ModuleOfValue returns the kernel module that a value of a node names, or "" when
// the value names none: the kernel loads it when the value is written.
func ModuleOfValue(name, value string) string {
	switch path.Base(name) {
	case "tcp_congestion_control":
		return "tcp_" + value
	case "default_qdisc":
		return "sch_" + value
	}
	return ""
}
