package enforce

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/facts/sysctl"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

// relation is the nodes that the kernel changes when a node is written.
type relation struct {
	group  string   // members exclude each other: one is active, the others read 0
	others []string // resolved paths
	typ    string   // their value type
}

// related returns the nodes whose originals must be recorded with those of a resolved node.
// They are taken from the kernel's source:
//
//   - mm/page-writeback.c and mm/util.c: each of a ratio and its absolute form
//     zeroes the other, and 0 is refused for dirty_bytes;
//   - block/blk-mq-sched.c: changing the scheduler resets nr_requests;
//   - mm/khugepaged.c: changing transparent huge pages raises min_free_kbytes.
func related(name string) relation {
	if key, ok := knob.SysctlKey(name); ok {
		r := relation{group: sysctl.Exclusive(key), typ: plan.TypeInt}
		for _, other := range sysctl.ExcludedBy(key) {
			r.others = append(r.others, knob.SysctlPath(other))
		}
		return r
	}
	if name == "/sys/kernel/mm/transparent_hugepage/enabled" {
		return relation{others: []string{"/proc/sys/vm/min_free_kbytes"}, typ: plan.TypeInt}
	}
	if dir, ok := strings.CutSuffix(name, "/queue/scheduler"); ok {
		return relation{others: []string{dir + "/queue/nr_requests"}, typ: plan.TypeInt}
	}
	return relation{}
}

// describeLimitingNode returns the current value of another node that limits the values of this
// one, "" if none is known. Sources: drivers/cpufreq/freq_table.c
// and drivers/devfreq/devfreq.c (an empty window), kernel/sched/rt.c (a runtime
// beyond its period), net/ipv4/sysctl_net_ipv4.c (a range that reaches into the
// privileged ports), block/blk-mq.c (a queue without scheduler is as long as the
// hardware's).
func describeLimitingNode(dev rootfs.FS, real string) string {
	dir, base := path.Split(real)
	other := ""
	switch base {
	case "sched_rt_runtime_us":
		other = dir + "sched_rt_period_us"
	case "sched_rt_period_us":
		other = dir + "sched_rt_runtime_us"
	case "ip_local_port_range":
		other = dir + "ip_unprivileged_port_start"
	case "ip_unprivileged_port_start":
		other = dir + "ip_local_port_range"
	case "nr_requests":
		other = dir + "scheduler"
	default:
		other, _, _ = knob.OppositeLimit(real)
	}
	if other == "" {
		return ""
	}
	value := strings.Join(strings.Fields(rootfs.ReadText(dev, other)), " ")
	if value == "" {
		return ""
	}
	return outcome.Name(other) + " is " + value
}

// acceptedRange returns the range of a sysctl in the running kernel, "" if unknown, and whether
// the wanted number is outside of it.
func acceptedRange(dev rootfs.FS, name, want string) (text string, outside bool) {
	key, ok := knob.SysctlKey(name)
	n, err := strconv.ParseInt(want, 0, 64)
	if !ok || err != nil {
		return "", false
	}
	fact, ok := sysctl.Lookup(key)
	if !ok {
		return "", false
	}
	low, high := fact.PresenceIn(rootfs.Identify(dev).Kernel).Range()
	switch {
	case low != nil && high != nil:
		return fmt.Sprintf("%d to %d", *low, *high), n < *low || n > *high
	case low != nil:
		return fmt.Sprintf("%d or more", *low), n < *low
	}
	return "", false
}

// lockdownMode returns the kernel's lockdown mode, "" for none
// (security/lockdown/lockdown.c: "none [integrity] confidentiality").
func lockdownMode(dev rootfs.FS) string {
	c, err := dev.Read("/sys/kernel/security/lockdown")
	if err != nil {
		return ""
	}
	f, err := knob.Parse(plan.TypeChoice, c.Text)
	if err != nil || f.Value == "none" {
		return ""
	}
	return f.Value
}

// isOfflineCPU reports whether a node is of a CPU, or of a cpufreq policy whose CPUs are all offline.
func isOfflineCPU(dev rootfs.FS, real string) bool {
	rest, ok := strings.CutPrefix(real, "/sys/devices/system/cpu/")
	if policy, isPolicy := strings.CutPrefix(rest, "cpufreq/"); isPolicy {
		name, _, _ := strings.Cut(policy, "/")
		online, err := dev.Read("/sys/devices/system/cpu/cpufreq/" + name + "/affected_cpus")
		return err == nil && strings.TrimSpace(online.Text) == ""
	}
	cpu, _, _ := strings.Cut(rest, "/")
	return ok && rootfs.ReadText(dev, "/sys/devices/system/cpu/"+cpu+"/online") == "0"
}

// describeHolder returns what uses a node and how to stop that, "" if unknown.
func describeHolder(dev rootfs.FS, real string) string {
	disk, ok := strings.CutPrefix(real, "/sys/devices/virtual/block/")
	disk, _, below := strings.Cut(disk, "/")
	if !ok || !below {
		return ""
	}
	for line := range strings.Lines(rootfs.ReadText(dev, "/proc/swaps")) {
		if f := strings.Fields(line); len(f) > 0 && f[0] == "/dev/"+disk {
			return "as swap: `swapoff /dev/" + disk + "` first"
		}
	}
	return ""
}
