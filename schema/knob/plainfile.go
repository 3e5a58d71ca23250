package knob

import (
	"cmp"
	"path"

	"github.com/yoctune/yoctune/schema/plan"
)

// Place is a file of an image that sets a value without yoctuned.
type Place string

// The places. A value in several places is the same in each.
const (
	// PlaceSysctl is sysctl.d(5), read early in boot and when an interface appears.
	PlaceSysctl Place = "sysctl.d"
	// PlaceBoot is tmpfiles.d(5), for nodes that exist once the kernel has started.
	PlaceBoot Place = "tmpfiles.d"
	// PlaceLate is a file in the format of tmpfiles.d that a unit applies after the BSP's
	// scripts: nvpmodel writes the clocks of its mode; nv.sh and nvpower.sh of L4T R32 and
	// R35 write the governor, and nv.sh the read-ahead of mmcblk devices.
	PlaceLate Place = "after nvpmodel"
	// PlaceUdev is a udev rule that writes an attribute when the device appears. The
	// objects of cpufreq have no such event: the kernel's filter for devices drops it
	// (drivers/base/core.c, dev_uevent_filter).
	PlaceUdev Place = "udev"
	// PlaceEthtool is a udev rule that runs ethtool(8). A .link file would also do, but
	// systemd applies only the first that matches an interface: one of this layer would
	// disable the distribution's own, and with it the interface's name.
	PlaceEthtool Place = "ethtool"
)

// PlainFile describes which files of an image can hold a setting.
type PlainFile struct {
	Places []Place // none: only yoctuned sets it
	Want   string  // what the files write
	Node   string  // tmpfiles: the node, with the patterns of tmpfiles.d(5)
	Group  string  // ethtool: the option of the group, such as -G
	Option string  // ethtool: the parameter's word
	Unless string  // without a place: what can be declared in its stead, "" if nothing
}

// anyClass is a row for settings with a path.
const anyClass = ""

// plainFiles says where a setting can be held, by class and attribute or, with anyClass, by
// path. The first row that matches counts; what no row matches is held nowhere.
var plainFiles = []struct {
	class, attr string
	file        PlainFile
}{
	{anyClass, "/proc/sys/*", PlainFile{Places: []Place{PlaceSysctl}}},
	{anyClass, "/sys/kernel/mm/*/*", PlainFile{Places: []Place{PlaceBoot}}},
	{anyClass, "/sys/kernel/mm/hugepages/*/nr_hugepages", PlainFile{Places: []Place{PlaceBoot}}},
	{anyClass, "/sys/devices/virtual/workqueue/cpumask", PlainFile{Places: []Place{PlaceBoot}}},
	{anyClass, "/proc/irq/default_smp_affinity", PlainFile{Places: []Place{PlaceBoot}}},
	{anyClass, "/sys/devices/system/cpu/smt/control", PlainFile{Places: []Place{PlaceBoot}}},
	{anyClass, "/sys/devices/system/cpu/cpufreq/boost", PlainFile{Places: []Place{PlaceLate}}},
	{"cpu", "power/pm_qos_resume_latency_us", PlainFile{Places: []Place{PlaceBoot}}},
	{"cpuidle", "disable", PlainFile{Unless: "cpu.maxIdleLatency keeps cores out of states that take longer to leave"}},
	{anyClass, "/sys/kernel/debug/bpmp/debug/clk/emc/*", PlainFile{Unless: "a power mode caps the clock (power.modes.NAME.emc)"}},
	{"cpufreq", "scaling_governor", PlainFile{Places: []Place{PlaceLate}}},
	{"cpufreq", "scaling_m??_freq", PlainFile{Places: []Place{PlaceLate}}},
	{"cpufreq", "energy_performance_preference", PlainFile{Places: []Place{PlaceLate}}},
	{"devfreq", "m??_freq", PlainFile{Unless: "set the clock in a power mode (power.modes.NAME.gpu), and select the mode with power.default"}},
	{"block", "queue/read_ahead_kb", PlainFile{Places: []Place{PlaceUdev, PlaceLate}}},
	{"block", "queue/*", PlainFile{Places: []Place{PlaceUdev}}},
	{"net", "mtu", PlainFile{Places: []Place{PlaceUdev}}},
	{"net", "tx_queue_len", PlainFile{Places: []Place{PlaceUdev}}},
	{"net", "napi_defer_hard_irqs", PlainFile{Places: []Place{PlaceUdev}}},
	{"net", "gro_flush_timeout", PlainFile{Places: []Place{PlaceUdev}}},
	{"net", "ethtool/channels/*", PlainFile{Places: []Place{PlaceEthtool}, Group: "-L"}},
	{"net", "ethtool/ring/*", PlainFile{Places: []Place{PlaceEthtool}, Group: "-G"}},
	{"net", "ethtool/coalesce/*", PlainFile{Places: []Place{PlaceEthtool}, Group: "-C"}},
	{"net", "ethtool/features/*", PlainFile{Places: []Place{PlaceEthtool}, Group: "-K"}},
	{"usb", "power/*", PlainFile{Places: []Place{PlaceUdev}}},
	{anyClass, "/sys/module/*/parameters/*", PlainFile{Places: []Place{PlaceBoot}}},
	{"irq", "smp_affinity_list", PlainFile{Unless: "cpu.isolate moves all interrupts off chosen cores by kernel arguments"}},
}

// FindPlainFile returns the files that can hold a setting.
func FindPlainFile(s plan.Setting) PlainFile {
	name := s.Select.Attr
	if s.Select.Class == anyClass {
		name = s.Select.Path
		if _, ok := SysctlKey(name); ok {
			name = SysctlDir + "*" // keys have any number of components
		}
	}
	for _, row := range plainFiles {
		if row.class != s.Select.Class {
			continue
		}
		if matched, err := path.Match(row.attr, name); err != nil || !matched {
			continue
		}
		f := row.file
		switch text, ok := plainText(s); {
		case !ok, s.Select.OFNode != "", s.Select.Driver != "":
			f.Places = nil
		default:
			f.Want = text
		}
		f.Node = tmpfilesNode(s.Select)
		if f.Group != "" {
			f.Option = path.Base(name)
			if s.Type == plan.TypeBool {
				f.Want = map[string]string{"1": "on", "0": "off"}[s.Want]
			}
		}
		return f
	}
	return PlainFile{}
}

// plainText returns what a file writes for a setting. A file cannot read the present value,
// so a bound can only be written where the bound itself does for it.
func plainText(s plan.Setting) (string, bool) {
	switch {
	case s.Policy == plan.Report:
		return "", false
	case s.Compare == plan.Exact:
		return s.Want, true
	case s.Compare == plan.AtLeast && path.Base(s.Select.Path) == "nr_hugepages":
		return s.Want, true // none are reserved before
	case s.Compare == plan.AtLeast && s.Select.Path == "/sys/kernel/mm/lru_gen/enabled":
		return "y", true // all that the processor has (mm/vmscan.c)
	}
	return "", false
}

// tmpfilesNode returns the nodes of a selection as tmpfiles.d(5) selects them.
func tmpfilesNode(s plan.Select) string {
	switch s.Class {
	case anyClass:
		return s.Path
	case "cpu":
		return path.Join("/sys/devices/system/cpu", cmp.Or(s.Name, "cpu*"), s.Attr)
	case "cpufreq":
		return path.Join("/sys/devices/system/cpu/cpufreq", cmp.Or(s.Name, "policy*"), s.Attr)
	case "block":
		return path.Join("/sys/block", cmp.Or(s.Name, "*"), s.Attr)
	}
	return ""
}
