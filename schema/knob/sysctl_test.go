package knob

import "testing"

func TestSysctlNameAndPathRoundTrip(t *testing.T) {
	for key, name := range map[string]string{
		"vm.swappiness":                    "/proc/sys/vm/swappiness",
		"net.ipv4.conf.eth0/100.rp_filter": "/proc/sys/net/ipv4/conf/eth0.100/rp_filter",
		"net.bridge.bridge-nf-call-arp":    "/proc/sys/net/bridge/bridge-nf-call-arp",
	} {
		if got := SysctlPath(key); got != name {
			t.Errorf("SysctlPath(%q) = %q, want %q", key, got, name)
		}
		if got, ok := SysctlKey(name); !ok || got != key {
			t.Errorf("SysctlKey(%q) = %q, %t, want %q", name, got, ok, key)
		}
	}
	for _, name := range []string{"", "/proc/sys/", "/proc/sys", "/proc/sys/../sysrq-trigger", "/sys/kernel", "/proc/sys/vm//swappiness"} {
		if key, ok := SysctlKey(name); ok {
			t.Errorf("SysctlKey(%q) = %q, want none", name, key)
		}
	}
}

func TestFirstSeparatorDecidesTheNotation(t *testing.T) {
	for name, want := range map[string]string{
		"vm.swappiness":                    "vm.swappiness",
		"vm/swappiness":                    "vm.swappiness",
		"net/ipv4/conf/eth0.100/rp_filter": "net.ipv4.conf.eth0/100.rp_filter",
		"net.ipv4.conf.eth0/100.rp_filter": "net.ipv4.conf.eth0/100.rp_filter",
		"net/ipv4/conf/*/rp_filter":        "net.ipv4.conf.*.rp_filter",
		"swappiness":                       "swappiness",
	} {
		if got := DottedSysctl(name); got != want {
			t.Errorf("DottedSysctl(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestDangerousSysctlsAreForbidden(t *testing.T) {
	for _, key := range []string{
		"kernel.core_pattern", "kernel.hotplug", "kernel.modprobe", "kernel.poweroff_cmd",
		"kernel.usermodehelper.bset", "kernel.usermodehelper.inheritable",
		"kernel.kexec_load_disabled", "kernel.modules_disabled", "fs.binfmt_misc.register",
	} {
		if !ForbiddenSysctl(key) {
			t.Errorf("%s may be set", key)
		}
	}
	for _, key := range []string{"vm.swappiness", "kernel.core_uses_pid", "fs.file-max", "kernel.unprivileged_bpf_disabled"} {
		if ForbiddenSysctl(key) {
			t.Errorf("%s is forbidden", key)
		}
	}
}

func TestNodesOfModulesAreAttributed(t *testing.T) {
	for name, want := range map[string]string{
		"/proc/sys/net/netfilter/nf_conntrack_max":        "nf_conntrack",
		"/proc/sys/net/netfilter/nf_conntrack_helper":     "nf_conntrack",
		"/proc/sys/net/nf_conntrack_max":                  "nf_conntrack",
		"/proc/sys/net/bridge/bridge-nf-call-iptables":    "br_netfilter",
		"/sys/block/zram0/disksize":                       "zram",
		"/proc/sys/net/netfilter/nf_log/0":                "",
		"/proc/sys/vm/swappiness":                         "",
		"/sys/module/nf_conntrack/parameters/expect_hash": "",
	} {
		if got := ProvidingModule(name); got != want {
			t.Errorf("ProvidingModule(%q) = %q, want %q", name, got, want)
		}
	}
	if got := ModuleOfValue("/proc/sys/net/ipv4/tcp_congestion_control", "bbr"); got != "tcp_bbr" {
		t.Errorf("bbr is in %q", got)
	}
	if got := ModuleOfValue("/proc/sys/net/core/default_qdisc", "fq"); got != "sch_fq" {
		t.Errorf("fq is in %q", got)
	}
	if got := ModuleOfValue("/proc/sys/vm/swappiness", "1"); got != "" {
		t.Errorf("a number is in module %q", got)
	}
}
