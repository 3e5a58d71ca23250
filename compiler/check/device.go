package check

import (
	"fmt"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
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
			ID: "memory-budget", Severity: diag.Warning,
			Title: "what is promised is more than the memory",
			Cause: "Huge pages, the limits of services and a compressed swap that fills up come out of the one memory that CPU and GPU share; the kernel, the carveouts and CUDA need theirs as well.",
			Fix:   "lower the limits, so that something is left for the system",
			Wrong: `{memory: hugepages: "1GiB": 2, services: "a.service": {exec: ["/usr/bin/a"], memoryMax: "6GiB"}}`,
			Right: `{memory: hugepages: "1GiB": 1, services: "a.service": {exec: ["/usr/bin/a"], memoryMax: "4GiB"}}`,
			See:   "/proc/meminfo, /proc/buddyinfo",
			run:   memoryBudget,
		},
		{
			ID: "ksm-madvise", Severity: diag.Info,
			Title: "page merging waits for programs that ask for it",
			Cause: "KSM looks only at memory that a program marked with MADV_MERGEABLE; most never do.",
			Fix:   "use it with programs that ask for it, such as qemu",
			Wrong: `memory: ksm: true`, Right: `memory: ksm: false`,
			See: "Documentation/admin-guide/mm/ksm.rst",
			run: ksmMadvise,
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
	size := int64(2 << 20)
	switch s.Node.At("kernel", "args", "default_hugepagesz").Word() {
	case "64K", "64k":
		size = 64 << 10
	case "32M", "32m":
		size = 32 << 20
	case "1G", "1g":
		size = 1 << 30
	}
	for _, n := range []*load.Node{s.Node.At("sysctl", "vm.nr_hugepages"), s.Node.At("kernel", "args", "hugepages")} {
		if n == nil || s.Node.At("kernel", "args", "hugepagesz") != nil {
			continue // kernel-arg-order: of which size they are is open
		}
		if pages, ok := decimalText(n.Text); ok && pages > 0 && pages < 1<<20 {
			total += int64(pages) * size
			break
		}
	}
	return total
}

func hugepagesMemory(s *subject) {
	n, path := s.Node.At("memory", "hugepages"), at("memory", "hugepages")
	if n == nil {
		n, path = s.Node.At("sysctl", "vm.nr_hugepages"), at("sysctl", "vm.nr_hugepages")
	}
	if n == nil {
		n, path = s.Node.At("kernel", "args", "hugepages"), at("kernel", "args", "hugepages")
	}
	if n == nil {
		return
	}
	if total := s.hugepages(); total > s.Board.RAMBytes/2 {
		s.finding(n, path, fmt.Sprintf("%d MiB", total>>20), "", "huge pages take %d of %d MiB", total>>20, s.Board.RAMBytes>>20)
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

// reserve is what the system itself needs, in bytes: kernel, carveouts, desktop
// of none. Experience, not a fact of NVIDIA's.
const reserve = 512 << 20

func memoryBudget(s *subject) {
	var total int64
	var parts []string
	add := func(what string, bytes int64) {
		if bytes > 0 {
			total += bytes
			parts = append(parts, fmt.Sprintf("%s %d MiB", what, bytes>>20))
		}
	}
	add("huge pages", s.hugepages())
	var at1 *load.Node
	var path []string
	for _, svc := range s.Services {
		if svc.MemoryMax > 0 {
			at1, path = s.Node.At("services", svc.Name, "memoryMax"), at("services", svc.Name, "memoryMax")
			add(svc.Name, svc.MemoryMax)
		}
	}
	s.promised(func(name string, n *load.Node, p plan.Pipeline) {
		if v := n.At("budget", "memory"); v != nil && p.Budget != nil {
			at1, path = v, at("pipelines", name, "budget", "memory")
			add("pipeline "+name, p.Budget.Memory)
		}
	})
	if total == 0 || at1 == nil || total+reserve <= s.Board.RAMBytes {
		return
	}
	s.finding(at1, path, strings.Join(parts, ", "), "", "%d MiB are promised, of %d MiB that the module has", total>>20, s.Board.RAMBytes>>20)
}

func ksmMadvise(s *subject) {
	if n := s.Node.At("memory", "ksm"); n != nil && n.True && !s.lacks("KSM") {
		s.finding(n, at("memory", "ksm"), "", "", "pages are merged only for programs that ask for it")
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
