package outcome

import "testing"

func TestNodeNames(t *testing.T) {
	for path, want := range map[string]string{
		"/proc/sys/vm/swappiness":                                  "vm.swappiness",
		"/proc/sys/net/ipv4/conf/eth0.100/rp_filter":               "net.ipv4.conf.eth0/100.rp_filter",
		"/sys/block/nvme0n1/queue/scheduler":                       "nvme0n1 scheduler",
		"/sys/devices/system/cpu/cpufreq/policy4/scaling_governor": "policy4 scaling_governor",
		"/sys/class/devfreq/17000000.gpu/max_freq":                 "17000000.gpu max_freq",
		"/proc/irq/44/smp_affinity_list":                           "irq 44",
		"/sys/kernel/mm/transparent_hugepage/enabled":              "/sys/kernel/mm/transparent_hugepage/enabled",
		"/": "/",
		"":  "",
	} {
		if got := Name(path); got != want {
			t.Errorf("Name(%q) = %q, want %q", path, got, want)
		}
	}
}
