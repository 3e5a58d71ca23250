package importer

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/units"
)

// importKernelFile imports a value written to a kernel file, if there is a field for the file. Scripts,
// tmpfiles and units write such files.
func (im *importer) importKernelFile(l *Line, name, value string) {
	value = strings.Trim(strings.TrimSpace(value), `"'`)
	if !strings.HasPrefix(name, "/") || strings.ContainsAny(name, "$`") {
		l.leavePart(clean(name), "not the path of a kernel file")
		return
	}
	if strings.ContainsAny(value, "$`") {
		l.addTrap(environmentOnly)
		l.leavePart(name, "the value %s is computed by the shell", clean(value))
		return
	}
	switch {
	case strings.HasPrefix(name, knob.SysctlDir):
		key := knob.DottedSysctl(strings.TrimPrefix(name, knob.SysctlDir))
		im.importSysctlValue(l, key, value)
	case strings.HasPrefix(name, "/sys/devices/system/cpu/") && path.Base(name) == "scaling_governor":
		im.setField(l, quoteCUE(value), "cpu", "governor")
		noteAllCores(l, name)
	case strings.HasPrefix(name, "/sys/devices/system/cpu/") && (path.Base(name) == "scaling_max_freq" || path.Base(name) == "scaling_min_freq"):
		khz, ok := number(value)
		if !ok {
			l.leavePart(name, "%q is not a clock in kHz", clean(value))
			return
		}
		im.setField(l, quoteCUE(units.Frequency(khz*1000)), "cpu", strings.TrimSuffix(strings.TrimPrefix(path.Base(name), "scaling_"), "_freq"))
		noteAllCores(l, name)
	case name == "/sys/kernel/mm/transparent_hugepage/enabled":
		im.setField(l, quoteCUE(value), "memory", "thp")
	case name == "/sys/kernel/mm/transparent_hugepage/defrag":
		im.setField(l, quoteCUE(value), "memory", "thpDefrag")
	case name == "/sys/kernel/mm/ksm/run":
		if value != "0" && value != "1" {
			l.leavePart(name, "memory.ksm is on or off, and %q is neither", clean(value))
			return
		}
		im.setField(l, switchOf(value), "memory", "ksm")
	case strings.HasPrefix(name, "/sys/block/") && strings.Count(name, "/") == 5 && path.Base(path.Dir(name)) == "queue":
		im.setQueue(l, strings.Split(name, "/")[3], path.Base(name), value)
	case strings.HasPrefix(name, "/sys/class/net/") && strings.Count(name, "/") == 5:
		im.setNetwork(l, strings.Split(name, "/")[4], path.Base(name), value)
	case (strings.Contains(name, "/devfreq/") || strings.Contains(name, "/devfreq_dev/")) && isGPU(name):
		im.setGPU(l, path.Base(name), value, name)
	default:
		im.importOtherFile(l, name, value)
	}
}

// Kernel files that are recognized by their form.
var (
	hugepageFile = lazyregexp.New(`^/sys/kernel/mm/hugepages/hugepages-([0-9]+)kB/nr_hugepages$`)
	idleFile     = lazyregexp.New(`^/sys/devices/system/cpu/cpu[^/]+/cpuidle/state[^/]+/disable$`)
	irqFile      = lazyregexp.New(`^/proc/irq/[^/]+/smp_affinity(_list)?$`)
	rpsFile      = lazyregexp.New(`^/sys/class/net/([^/]+)/queues/rx-[^/]+/rps_cpus$`)
)

// hugepageSizes are the sizes of memory.hugepages, by their number of KiB.
var hugepageSizes = map[string]string{"64": "64KiB", "2048": "2MiB", "32768": "32MiB", "1048576": "1GiB"}

// importOtherFile imports files that are neither of the processor nor of a device with queues.
func (im *importer) importOtherFile(l *Line, name, value string) {
	n, isNumber := number(value)
	pages, queue := hugepageFile.FindStringSubmatch(name), rpsFile.FindStringSubmatch(name)
	switch {
	case pages != nil && hugepageSizes[pages[1]] != "":
		im.setField(l, formatScalar(value), "memory", "hugepages", hugepageSizes[pages[1]])
	case queue != nil:
		mask, err := strconv.ParseUint(strings.TrimPrefix(strings.ReplaceAll(value, ",", ""), "0x"), 16, 64)
		if err != nil {
			l.leavePart(name, "%q is not a mask of cores", clean(value))
			return
		}
		var cores []int
		for core := range 64 {
			if mask>>core&1 == 1 {
				cores = append(cores, core)
			}
		}
		if !strings.HasSuffix(name, "/rx-*/rps_cpus") {
			l.markAdjusted("the field applies to all receive queues")
		}
		im.setField(l, coreList(cores), "network", queue[1], "rps")
	case name == "/sys/block/zram0/comp_algorithm":
		im.setField(l, quoteCUE(value), "memory", "zram", "algorithm")
	case name == "/sys/block/zram0/disksize":
		size, ok := parseUnitSize(value)
		if !ok {
			l.leavePart(name, "%q is not a size", clean(value))
			return
		}
		im.setField(l, quoteCUE(size), "memory", "zram", "size")
	case name == "/sys/module/pcie_aspm/parameters/policy":
		im.setField(l, quoteCUE(value), "bus", "pcie", "aspm")
	case name == "/sys/module/usbcore/parameters/usbfs_memory_mb" && isNumber && n > 0 && n < 1<<20:
		im.setField(l, quoteCUE(value+"MiB"), "bus", "usb", "memory")
	case name == "/sys/module/usbcore/parameters/autosuspend" && strings.HasPrefix(value, "-"):
		im.setField(l, quoteCUE("never"), "bus", "usb", "autosuspend")
	case name == "/sys/module/usbcore/parameters/autosuspend" && isNumber:
		im.setField(l, quoteCUE(value+"s"), "bus", "usb", "autosuspend")
	case name == "/sys/devices/system/cpu/cpufreq/boost" && (value == "0" || value == "1"):
		im.setField(l, switchOf(value), "cpu", "boost")
	case idleFile.MatchString(name):
		l.leavePart(name, "cpu.idleStates takes the state's name, which the file name beside it has; numbers differ between kernels")
	case irqFile.MatchString(name):
		l.leavePart(name, "irq.affinity takes the interrupt's name, which the last column of /proc/interrupts has; numbers differ between boots")
	default:
		l.leavePart(name, "yoctune has no field for this file")
	}
}

func noteAllCores(l *Line, name string) {
	if !strings.Contains(name, "*") {
		l.markAdjusted("the field applies to all cores")
	}
}

func isGPU(name string) bool {
	return slices.ContainsFunc([]string{".gpu/", ".ga10b/", ".gv11b/", ".gp10b/", ".gm20b/"}, func(gpu string) bool { return strings.Contains(name, gpu) })
}

func (im *importer) setGPU(l *Line, attr, value, name string) {
	switch attr {
	case "min_freq", "max_freq":
		hz, ok := number(value)
		if !ok {
			l.leavePart(name, "%q is not a clock in Hz", clean(value))
			return
		}
		im.setField(l, quoteCUE(units.Frequency(hz)), "gpu", strings.TrimSuffix(attr, "_freq"))
	case "governor":
		im.setField(l, quoteCUE(value), "gpu", "governor")
	default:
		l.leavePart(name, "yoctune has no field for this file")
	}
}

// setQueue imports an attribute below queue/ of a block device.
func (im *importer) setQueue(l *Line, device, attr, value string) {
	n, isNumber := number(value)
	switch attr {
	case "scheduler":
		if modern, old := map[string]string{"noop": "none", "deadline": "mq-deadline", "cfq": "bfq"}[value]; old {
			l.markAdjusted("%s is a scheduler of kernels before 5.0; its successor is %s", value, modern)
			value = modern
		}
		im.setField(l, quoteCUE(value), "storage", device, "scheduler")
	case "read_ahead_kb":
		if !isNumber || n < 0 || n > 1<<30 {
			l.leavePart(attr, "%q is not a number of KiB", clean(value))
			return
		}
		im.setField(l, quoteCUE(units.Size(n<<10)), "storage", device, "readahead")
	case "nr_requests":
		im.setField(l, formatScalar(value), "storage", device, "requests")
	case "rq_affinity":
		im.setField(l, formatScalar(value), "storage", device, "rqAffinity")
	default:
		l.leavePart("queue/"+clean(attr), "yoctune has no field for this attribute")
	}
}

func (im *importer) setNetwork(l *Line, device, attr, value string) {
	field := map[string]string{
		"mtu": "mtu", "tx_queue_len": "txQueueLen", "napi_defer_hard_irqs": "napiDeferHardIRQs", "gro_flush_timeout": "groFlushTimeout",
	}[attr]
	if field == "" {
		l.leavePart(clean(attr), "yoctune has no field for this attribute")
		return
	}
	im.setField(l, formatScalar(value), "network", device, field)
}
