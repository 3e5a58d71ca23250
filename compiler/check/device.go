package check

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

func deviceRules() []Rule {
	return []Rule{
		{
			ID: "hugepages-memory", Severity: diag.Error,
			Title: "huge pages take too much of the memory",
			Cause: "Reserved pages are unavailable to everything else. CPU and GPU of a Jetson share one memory, and reserving more than half of it starves both.",
			Fix:   "reserve fewer pages",
			Wrong: `memory: hugepages: "1GiB": 6`, Right: `memory: hugepages: "1GiB": 2`,
			See: "Documentation/admin-guide/mm/hugetlbpage.rst",
			run: checkHugepagesMemory,
		},
		{
			ID: "zram-size", Severity: diag.Warning,
			Title: "compressed swap is larger than the memory",
			Cause: "zram keeps swapped pages in memory. When the data does not compress well, a device larger than the memory only delays running out of it.",
			Fix:   "use about half of the memory",
			Wrong: `memory: zram: "16GiB"`, Right: `memory: zram: "4GiB"`,
			See: "Documentation/admin-guide/blockdev/zram.rst",
			run: checkZRAMSize,
		},
		{
			ID: "swap-config", Severity: diag.Info,
			Title: "swappiness without swap",
			Cause: "vm.swappiness weighs swapping against dropping caches; without swap it has no effect. The configuration has no memory.zram; a partition or a file of the product may be swap.",
			Fix:   "add memory.zram, or remove vm.swappiness unless the product swaps to a partition or file",
			Wrong: `sysctl: "vm.swappiness": 10`, Right: `{sysctl: "vm.swappiness": 10, memory: zram: "2GiB"}`,
			See: "Documentation/admin-guide/sysctl/vm.rst",
			run: checkSwapConfig,
		},
		{
			ID: "memory-budget", Severity: diag.Warning,
			Title: "the memory limits exceed the memory",
			Cause: "Huge pages, the limits of services and pipelines, and compressed swap all come out of the memory that CPU and GPU share. The kernel, the carveouts and CUDA need memory as well.",
			Fix:   "lower the limits, so that memory is left for the system",
			Wrong: `{memory: hugepages: "1GiB": 2, services: "a.service": {exec: ["/usr/bin/a"], memoryMax: "6GiB"}}`,
			Right: `{memory: hugepages: "1GiB": 1, services: "a.service": {exec: ["/usr/bin/a"], memoryMax: "4GiB"}}`,
			See:   "/proc/meminfo, /proc/buddyinfo",
			run:   checkMemoryBudget,
		},
		{
			ID: "ksm-madvise", Severity: diag.Info,
			Title: "page merging applies only to programs that ask for it",
			Cause: "KSM scans only memory that a program marked with MADV_MERGEABLE. Most programs never do.",
			Fix:   "use it with programs that mark their memory, such as qemu",
			Wrong: `memory: ksm: true`, Right: `memory: ksm: false`,
			See: "Documentation/admin-guide/mm/ksm.rst",
			run: checkKSMMadvise,
		},
		{
			ID: "udev-glob", Severity: diag.Error, Firm: true,
			Title: "the glob matches every device",
			Cause: "A pattern without a letter matches loop, RAM and mapped devices as well.",
			Fix:   `name the kind of device, such as "nvme*" or "mmcblk*"`,
			Wrong: `storage: "*": scheduler: "none"`, Right: `storage: "nvme*": scheduler: "none"`,
			See: "udev(7)",
			run: checkUdevGlob,
		},
		{
			ID: "device-overlap", Severity: diag.Error, Firm: true,
			Title: "two patterns set one field of a device differently",
			Cause: "A device that both patterns match cannot have both values. An exact name takes precedence over a pattern; of two patterns neither does.",
			Fix:   "write patterns that match no common device, or name the device exactly",
			Wrong: `network: {"eth*": mtu: 9000, "e*0": mtu: 1500}`, Right: `network: {"eth*": mtu: 9000, "eth0": mtu: 1500}`,
			See: "udev(7)",
			run: checkDeviceOverlap,
		},
		{
			ID: "device-name-length", Severity: diag.Error, Firm: true,
			Title: "no device can have so long a name",
			Cause: "The kernel keeps the name of a network interface in 15 characters (IFNAMSIZ, with the end of the string) and that of a disk in 31 (DISK_NAME_LEN). The setting reaches no device.",
			Fix:   "write the name that ip link or lsblk shows on the device",
			Wrong: `network: "wifi-interface-name": mtu: 1500`, Right: `network: "wlan0": mtu: 1500`,
			See: "include/uapi/linux/if.h, include/linux/blkdev.h",
			run: checkDeviceNameLength,
		},
	}
}

// hugepages is the memory that the target reserves as huge pages, in bytes.
func (s *subject) hugepages() int64 {
	var total int64
	for _, set := range s.Plan.Settings {
		if set.Domain != plan.DomainMemory || set.Compare != plan.AtLeast {
			continue
		}
		var kib, pages int64
		if _, err := fmt.Sscanf(set.Select.Path, "/sys/kernel/mm/hugepages/hugepages-%dkB/nr_hugepages", &kib); err != nil {
			continue
		}
		if _, err := fmt.Sscan(set.Want, &pages); err == nil {
			total += kib << 10 * pages
		}
	}
	// The sysctl and the argument count pages of the default size, 2 MiB on arm64
	// with 4 KiB pages; of the two, the sysctl is written later.
	args := &s.Config.Kernel.Args
	if args.Has("hugepagesz") {
		return total // kernel-arg-order: their size is open
	}
	size := int64(2 << 20)
	switch args.Get("default_hugepagesz").Text {
	case "64K", "64k":
		size = 64 << 10
	case "32M", "32m":
		size = 32 << 20
	case "1G", "1g":
		size = 1 << 30
	}
	for _, count := range []*config.Scalar{s.Config.Sysctl.Get("vm.nr_hugepages"), &args.Get("hugepages").Scalar} {
		if pages, err := strconv.Atoi(count.Text); err == nil && pages > 0 && pages < 1<<20 {
			return total + int64(pages)*size
		}
	}
	return total
}

func checkHugepagesMemory(s *subject) {
	part := config.FirstSet(s.Config.Memory.Hugepages, s.Config.Sysctl.Get("vm.nr_hugepages"), s.Config.Kernel.Args.Get("hugepages"))
	if total := s.hugepages(); part.IsSet() && total > s.Board.RAMBytes/2 {
		s.refuse(s.memorySize(), part, fmt.Sprintf("%d MiB", total>>20), "", "huge pages take %d of %d MiB", total>>20, s.Board.RAMBytes>>20)
	}
}

func checkZRAMSize(s *subject) {
	if s.ZRAM != nil && s.ZRAM.Bytes > s.Board.RAMBytes {
		s.refuse(s.memorySize(), s.Config.Memory.ZRAM, "", "", "zram of %d MiB on %d MiB of memory", s.ZRAM.Bytes>>20, s.Board.RAMBytes>>20)
	}
}

func checkSwapConfig(s *subject) {
	if v := s.Config.Sysctl.Get("vm.swappiness"); v.IsSet() && s.ZRAM == nil {
		s.reportAt(v, "", "", "vm.swappiness has an effect only with swap, and the target has no memory.zram")
	}
}

// systemReserve is what the system itself needs, in bytes: kernel and carveouts, no
// desktop. It comes from experience, not from NVIDIA's facts.
const systemReserve = 512 << 20

func checkMemoryBudget(s *subject) {
	var total int64
	var parts []string
	add := func(what string, bytes int64) {
		if bytes > 0 {
			total += bytes
			parts = append(parts, fmt.Sprintf("%s %d MiB", what, bytes>>20))
		}
	}
	add("huge pages", s.hugepages())
	var last config.Place
	for _, m := range s.Tmpfs {
		last = s.Config.Tmpfs.Get(m.Path).Size.Place
		add(m.Path, m.Bytes)
	}
	for _, svc := range s.Config.Services.Sorted() {
		if m, ok := s.limitsOf(svc).memory(); ok {
			last = m.Place
			add(svc.Key(), m.value)
		}
	}
	for c, p := range s.pipelines() {
		if c.Budget.Memory.IsSet() && p.Budget != nil {
			last = c.Budget.Memory.Place
			add("pipeline "+c.Key(), p.Budget.Memory)
		}
	}
	if total == 0 || !last.IsSet() || total+systemReserve <= s.Board.RAMBytes {
		return
	}
	s.refuse(s.memorySize(), last, strings.Join(parts, ", "), "", "the limits add up to %d MiB, of %d MiB that the module has", total>>20, s.Board.RAMBytes>>20)
}

func checkKSMMadvise(s *subject) {
	if ksm := s.Config.Memory.KSM; ksm.On && !s.lacksKernelOption("KSM") {
		s.reportAt(ksm, "", "", "pages are merged only for programs that ask for it")
	}
}

func checkUdevGlob(s *subject) {
	check := func(part config.Part) {
		glob := part.Where().Key()
		if !strings.ContainsFunc(glob, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }) {
			s.reportAt(part, glob, "", "glob %q matches every device", glob)
		}
	}
	for _, c := range s.Config.Storage.Entries {
		check(c)
	}
	for _, c := range s.Config.Network.Entries {
		check(c)
	}
}

// Longest names of the kernel, without the end of the string.
const (
	maxInterfaceName = 15 // IFNAMSIZ
	maxDiskName      = 31 // DISK_NAME_LEN
)

// interfaceSysctl matches a parameter of one network interface.
var interfaceSysctl = lazyregexp.New(`^net[./]ipv[46][./](?:conf|neigh)[./](.+)[./][^./]+$`)

func checkDeviceNameLength(s *subject) {
	check := func(part config.Part, name, what string, limit int) {
		// Only * matches nothing; every other character stands for one of the name.
		if n := len(strings.ReplaceAll(name, "*", "")); n > limit {
			s.reportKey(part, "", "the name %q has %d characters, and that of a %s at most %d", name, n, what, limit)
		}
	}
	for _, c := range s.Config.Network.Entries {
		check(c, c.Key(), "network interface", maxInterfaceName)
	}
	for _, c := range s.Config.Storage.Entries {
		check(c, c.Key(), "disk", maxDiskName)
	}
	for _, v := range s.Config.Sysctl.Entries {
		if m := interfaceSysctl.FindStringSubmatch(v.Key()); m != nil {
			check(v, m[1], "network interface", maxInterfaceName)
		}
	}
}

func checkDeviceOverlap(s *subject) {
	want := map[string]string{}
	for _, set := range s.Plan.Settings {
		want[set.ID] = set.Want
	}
	var compare func(a, b config.Place)
	compare = func(a, b config.Place) {
		switch {
		case !a.IsSet() || !b.IsSet():
		case a.Node().Kind == load.Struct:
			for _, f := range a.Node().Fields {
				compare(a.Below(f.Name), b.Below(f.Name))
			}
		case want[a.ID()] != want[b.ID()]:
			s.raise(b, "%s is %s here and %s for a pattern that may match the same device", b.ID(), b.Show(), a.Show()).
				addRelated(a, "the other pattern")
		}
	}
	each := func(entries []config.Place) {
		for i, b := range entries {
			for _, a := range entries[:i] {
				if knob.IsPattern(a.Key()) && knob.IsPattern(b.Key()) && knob.Overlap(a.Key(), b.Key()) {
					compare(a, b)
				}
			}
		}
	}
	each(places(s.Config.Storage.Entries))
	each(places(s.Config.Network.Entries))
	each(places(s.Config.IRQ.Affinity.Entries))
}

// places returns the places of the entries of a map.
func places[T config.Part](entries []T) []config.Place {
	out := make([]config.Place, len(entries))
	for i, e := range entries {
		out[i] = e.Where()
	}
	return out
}
