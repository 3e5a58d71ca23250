package check

import (
	"fmt"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema/plan"
)

func deviceRules() []Rule {
	return []Rule{
		{
			ID: "hugepages-memory", Severity: diag.Error,
			Title: "huge pages take too much of the memory",
			Cause: "Reserved pages are gone for everything else, and on a Jetson CPU and GPU share one memory: more than half of it starves both.",
			Fix:   "reserve fewer pages",
			Wrong: `memory: hugepages: "1GiB": 6`, Right: `memory: hugepages: "1GiB": 2`,
			See: "Documentation/admin-guide/mm/hugetlbpage.rst",
			run: hugepagesMemory,
		},
		{
			ID: "zram-size", Severity: diag.Warning,
			Title: "compressed swap is larger than the memory",
			Cause: "zram keeps what it swaps in memory; when the data does not compress well, a device larger than the memory only delays the end.",
			Fix:   "half of the memory is a usual size",
			Wrong: `memory: zram: "16GiB"`, Right: `memory: zram: "4GiB"`,
			See: "Documentation/admin-guide/blockdev/zram.rst",
			run: zramSize,
		},
		{
			ID: "swap-config", Severity: diag.Info,
			Title: "swappiness without swap",
			Cause: "vm.swappiness weighs swapping against dropping caches; without a swap device it has no effect.",
			Fix:   "add memory.zram, or remove vm.swappiness",
			Wrong: `sysctl: "vm.swappiness": 10`, Right: `{sysctl: "vm.swappiness": 10, memory: zram: "2GiB"}`,
			See: "Documentation/admin-guide/sysctl/vm.rst",
			run: swapConfig,
		},
		{
			ID: "udev-glob", Severity: diag.Error, Firm: true,
			Title: "the glob matches every device",
			Cause: "A pattern without a letter touches loop, ram and mapped devices as well.",
			Fix:   `name the kind of device, such as "nvme*" or "mmcblk*"`,
			Wrong: `storage: "*": scheduler: "none"`, Right: `storage: "nvme*": scheduler: "none"`,
			See: "udev(7)",
			run: udevGlob,
		},
	}
}

func hugepagesMemory(s *subject) {
	n := s.Node.At("memory", "hugepages")
	if n == nil {
		return
	}
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
	if total > s.Board.RAMBytes/2 {
		s.finding(n, at("memory", "hugepages"), fmt.Sprintf("%d MiB", total>>20), "", "huge pages take %d of %d MiB", total>>20, s.Board.RAMBytes>>20)
	}
}

func zramSize(s *subject) {
	if s.ZRAM != nil && s.ZRAM.Bytes > s.Board.RAMBytes {
		s.finding(nil, at("memory", "zram"), "", "", "zram of %d MiB on %d MiB of memory", s.ZRAM.Bytes>>20, s.Board.RAMBytes>>20)
	}
}

func swapConfig(s *subject) {
	if n := s.Node.At("sysctl", "vm.swappiness"); n != nil && s.ZRAM == nil {
		s.finding(n, at("sysctl", "vm.swappiness"), "", "", "vm.swappiness has no effect: the target has no memory.zram")
	}
}

func udevGlob(s *subject) {
	for _, section := range []string{"storage", "network"} {
		all := s.Node.Get(section)
		if all == nil {
			continue
		}
		for _, f := range all.Fields {
			letter := false
			for _, r := range f.Name {
				letter = letter || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
			}
			if !letter {
				s.finding(f.Value, at(section, f.Name), f.Name, "", "glob %q matches every device", f.Name)
			}
		}
	}
}
