package check

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/facts/linux"
)

// The rules of this file are about PCI Express, USB and the features of network interfaces.
func busRules() []Rule {
	return []Rule{
		{
			ID: "aspm-config", Severity: diag.Error,
			Title: "the kernel has no control over PCI Express power management",
			Cause: "/sys/module/pcie_aspm exists with the option PCIEASPM only, and pcie_aspm=off makes every write to it fail with EPERM.",
			Fix:   "switch PCIEASPM on, and remove pcie_aspm from kernel.args",
			Wrong: `{kernel: config: PCIEASPM: "n", bus: pcie: aspm: "performance"}`, Right: `bus: pcie: aspm: "performance"`,
			See: "drivers/pci/pcie/aspm.c: pcie_aspm_set_policy",
			run: checkASPM,
		},
		{
			ID: "usb-memory", Severity: diag.Error,
			Title: "usbfs memory exceeds what the module can give",
			Cause: "Drivers in user space, such as those of USB3 Vision cameras, take this memory for transfers; 0 removes the limit.",
			Fix:   "give it less than the memory of the module, such as 256MiB",
			Wrong: `bus: usb: memory: "16GiB"`, Right: `bus: usb: memory: "256MiB"`,
			See: "drivers/usb/core/devio.c: usbfs_memory_mb",
			run: checkUSBMemory,
		},
		{
			ID: "module-parameter-twice", Severity: diag.Error,
			Title: "a kernel argument and a field set one parameter",
			Cause: "An argument MODULE.PARAMETER and the file /sys/module/MODULE/parameters/PARAMETER are one value. The field overwrites the argument after the start.",
			Fix:   "keep the field, and remove the argument",
			Wrong: `{bus: usb: autosuspend: "never", kernel: args: "usbcore.autosuspend": 5}`, Right: `bus: usb: autosuspend: "never"`,
			See: "Documentation/admin-guide/kernel-parameters.rst: modules",
			run: checkParameterTwice,
		},
		{
			ID: "setting-twice", Severity: diag.Error,
			Title: "two fields give one setting of the kernel different values",
			Cause: "A kernel argument, a sysctl and a field may stand for one value of the kernel. The one that is written last is in force, and the other is lost.",
			Fix:   "keep one of the two",
			Wrong: `{memory: thp: "never", kernel: args: transparent_hugepage: "always"}`, Right: `memory: thp: "never"`,
			See: "Documentation/admin-guide/kernel-parameters.txt",
			run: checkSettingTwice,
		},
		{
			ID: "offload-name", Severity: diag.Error, tables: true,
			Title: "unknown feature of network interfaces",
			Cause: "The kernel has no feature of that name. ethtool's short names, such as gro, stand for the kernel's names, such as rx-gro.",
			Fix:   "write the name as `ethtool -k` of the device shows it",
			Wrong: `network: "eth*": offloads: gro: false`, Right: `network: "eth*": offloads: "rx-gro": false`,
			See: "netdev_features_strings in the kernel's net/ethtool/common.c",
			run: checkOffloadName,
		},
	}
}

func checkASPM(s *subject) {
	policy := s.Config.Bus.PCIe.ASPM
	arg := s.Config.Kernel.Args.Get("pcie_aspm")
	switch {
	case !policy.IsSet():
	case s.lacksKernelOption("PCIEASPM"):
		s.enable(s.raise(policy, "the kernel has no policy for PCI Express links: PCIEASPM is off").withValue(policy.Show()), "PCIEASPM", "kernel: config: ", 2)
	case arg.Text == "off":
		s.raise(policy, "the kernel refuses every policy with pcie_aspm=off").withValue(policy.Show()).addRelated(arg, "the argument")
	}
}

func checkParameterTwice(s *subject) {
	for _, set := range s.Plan.Settings {
		path, ok := strings.CutPrefix(set.Select.Path, "/sys/module/")
		module, parameter, isParameter := strings.Cut(path, "/parameters/")
		if !ok || !isParameter {
			continue
		}
		for _, a := range s.Config.Kernel.Args.Entries {
			if a.Kind() != load.Null && linux.Fold(a.Key()) == linux.Fold(module+"."+parameter) {
				s.raise(a, "%s sets this parameter, too, to %s", set.ID, set.Want).withValue(a.Show())
			}
		}
	}
}

// checkSettingTwice compares fields with the arguments and sysctls that stand for the same value.
func checkSettingTwice(s *subject) {
	c := s.Config
	pages := c.Memory.Hugepages.Get("2MiB")
	args, sysctl := &c.Kernel.Args, &c.Sysctl
	for _, pair := range []struct {
		field config.Part
		value string
		other *config.Scalar
	}{
		{c.Memory.THP, c.Memory.THP.Text, &args.Get("transparent_hugepage").Scalar},
		{c.CPU.Governor, c.CPU.Governor.Text, &args.Get("cpufreq.default_governor").Scalar},
		{c.Kernel.Preempt, c.Kernel.Preempt.Text, &args.Get("preempt").Scalar},
		{pages, strconv.Itoa(pages.Value), s.defaultHugepages()},
		{pages, strconv.Itoa(pages.Value), sysctl.Get("vm.nr_hugepages")},
	} {
		s.compareSetting(pair.field, pair.value, pair.other)
	}
	for _, a := range args.Entries {
		if name, ok := strings.CutPrefix(a.Key(), "sysctl."); ok {
			v := sysctl.Get(strings.ReplaceAll(name, "/", "."))
			s.compareSetting(v, v.Text, &a.Scalar)
		}
	}
}

// defaultHugepages is the argument that counts pages of 2 MiB, unset if it counts pages of another size.
func (s *subject) defaultHugepages() *config.Scalar {
	args := &s.Config.Kernel.Args
	if size := args.Get("default_hugepagesz"); size.IsSet() && size.Text != "2M" {
		return &config.Scalar{}
	}
	return &args.Get("hugepages").Scalar
}

func (s *subject) compareSetting(field config.Part, value string, other *config.Scalar) {
	at := field.Where()
	if !at.IsSet() || !other.IsSet() || other.Kind() == load.Null || value == other.Text || other.Text == "" {
		return
	}
	s.raise(other, "%s is %s, and sets the same", at.ID(), value).withValue(other.Show()).addRelated(at, "the other value")
}

func checkUSBMemory(s *subject) {
	memory := s.Config.Bus.USB.Memory
	for _, set := range s.Plan.Settings {
		if set.ID == memory.ID() && isMemory(set.Want, s.Board.RAMBytes) {
			s.refuse(s.memorySize(), memory, memory.Show(), "", "usbfs could take most of the module's %d MiB", s.Board.RAMBytes>>20)
		}
	}
}

// isMemory reports whether a number of MiB is unlimited, or more than half of the memory.
func isMemory(mebibytes string, ram int64) bool {
	n, err := strconv.ParseInt(mebibytes, 10, 64)
	return err == nil && (n == 0 || n > ram>>21)
}

func checkOffloadName(s *subject) {
	for _, n := range s.Config.Network.Entries {
		for _, f := range n.Offloads.Entries {
			names := s.netFeatures()
			if len(names) == 0 || slices.Contains(names, f.Key()) {
				continue
			}
			help := "names begin with rx-, tx- or another word of `ethtool -k`"
			if full := linux.FeaturesOf(s.lines[len(s.lines)-1], strings.ToLower(f.Key())); len(full) > 0 {
				help = "the kernel's name is " + joinOr(full)
			} else if near := diag.Nearest(f.Key(), names); near != "" {
				help = "did you mean \"" + near + "\"?"
			}
			s.reportKey(f, help, "kernel %s has no feature %s of network interfaces", s.Release.Kernel, f.Key()).propose(f, f.Key(), diag.Nearest(f.Key(), names))
		}
	}
}
