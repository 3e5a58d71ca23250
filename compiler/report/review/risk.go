package review

import (
	"slices"
	"strings"
)

// areaRisks are the risks of areas whose changes have one each.
var areaRisks = map[string]struct {
	risk Risk
	why  string
}{
	"device":      {high, "another device or board support package: test on hardware before the rollout"},
	"trust":       {high, "a device accepts plans signed with one of its keys only; without keys it accepts every plan"},
	"power table": {high, "the whole nvpmodel table: a wrong mode slows the board down or exceeds its power supply"},
	"kernel":      {high, "another kernel: out-of-tree modules are rebuilt, drivers may differ"},
	"file":        {medium, "what the file does is not known: read its difference"},
	"program":     {medium, "the program that enforces the plan: try it on one device first"},
}

// risk rates a change by what it can break on the device, with what to check. A low
// risk has no text.
func risk(c Change) (Risk, string) {
	switch c.Area {
	case "plan":
		if c.Name == "serial" && isLower(c.Now, c.Was) {
			return high, "devices refuse a plan with a lower serial than the one they have confirmed"
		}
	case "power mode":
		return powerModeRisk(c)
	case "kernel option":
		return optionRisk(strings.TrimPrefix(c.Name, "CONFIG_"))
	case "kernel argument":
		return argumentRisk(c.Name)
	case "module":
		if c.Was != "" && c.Was != "blacklist" && c.Kind == Removed {
			return medium, "devices of a module that is no longer loaded disappear"
		}
	case "sysctl":
		return sysctlRisk(c.Name)
	case "memory":
		if strings.HasPrefix(c.Name, "hugepages") {
			return medium, "reserved memory is not available to anything else"
		}
	case "service", "slice":
		return serviceRisk(c)
	case "build":
		return buildRisk(c)
	}
	r := areaRisks[c.Area]
	return r.risk, r.why
}

func powerModeRisk(c Change) (Risk, string) {
	switch {
	case c.Name == "default":
		return medium, "every boot starts in this mode"
	case c.Need == reboot:
		return high, "the GPU mask changes: a device that switches without a reboot keeps the old mask"
	}
	return medium, "clocks and cores determine power and heat: measure under load"
}

func buildRisk(c Change) (Risk, string) {
	features := strings.HasPrefix(c.Name, "EXTRA_IMAGE_FEATURES")
	switch {
	case strings.HasPrefix(c.ID, "build.variables.") && c.Need == reflash:
		return medium, "the effect of a custom variable on the device is unknown"
	case features && strings.Contains(c.Was, "read-only-rootfs") != strings.Contains(c.Now, "read-only-rootfs"):
		return high, "data written outside /var/lib and /run is no longer kept, or is kept again"
	case features && strings.Contains(c.Now, "debug-tweaks"):
		return high, "an image that allows root login without a password"
	}
	return low, ""
}

// isLower reports whether one decimal number is below another.
func isLower(now, was string) bool {
	return len(now) < len(was) || len(now) == len(was) && now < was
}

// Options without which a Jetson may not find its root file system or start
// systemd.
var bootOptions = []string{"DEVTMPFS", "CGROUPS", "TMPFS", "EXT4_FS", "SQUASHFS", "OVERLAY_FS", "BLK_DEV_NVME", "MMC", "MMC_BLOCK",
	"PCIE_TEGRA194", "PHY_TEGRA194_P2U", "USB_XHCI_TEGRA", "MODULES", "INITRAMFS_SOURCE", "BLK_DEV_INITRD", "ARM64_64K_PAGES", "ARM64_VA_BITS"}

func optionRisk(symbol string) (Risk, string) {
	switch {
	case slices.Contains(bootOptions, symbol):
		return high, "required for booting: try it on a device that can be recovered"
	case strings.HasPrefix(symbol, "PREEMPT"):
		return high, "preemption changes the timing of every driver"
	}
	return medium, "a new kernel"
}

// Arguments that the kernel needs to find its root and its console.
var bootArguments = []string{"root", "rootfstype", "rootflags", "rootwait", "ro", "rw", "init", "console", "mem", "memmap", "maxcpus", "nr_cpus",
	"initrd", "efi", "acpi", "pci", "cma", "crashkernel", "module_blacklist", "initcall_blacklist", "video", "earlycon", "fw_devlink", "iommu", "arm-smmu.disable_bypass"}

func argumentRisk(name string) (Risk, string) {
	switch {
	case slices.Contains(bootArguments, name):
		return high, "booting depends on it: try it on a device that can be recovered"
	case slices.Contains([]string{"isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity"}, name):
		return medium, "work moves to other cores: check that they have capacity"
	}
	return medium, "read at boot only: a device that does not boot needs recovery mode"
}

func sysctlRisk(key string) (Risk, string) {
	switch {
	case strings.HasPrefix(key, "kernel.panic"), strings.HasPrefix(key, "kernel.hung_task"), strings.HasPrefix(key, "kernel.watchdog"), strings.HasPrefix(key, "vm.panic"):
		return medium, "controls when a device restarts by itself"
	case strings.HasPrefix(key, "vm.overcommit"), key == "vm.min_free_kbytes", strings.HasPrefix(key, "vm.nr_hugepages"), key == "vm.admin_reserve_kbytes":
		return medium, "controls when memory runs out"
	case strings.HasPrefix(key, "kernel.sched_rt"):
		return medium, "a real-time thread that never sleeps can then hang the device"
	case key == "net.ipv4.ip_forward", strings.Contains(key, ".rp_filter"), strings.HasSuffix(key, ".forwarding"):
		return medium, "changes which packets the device accepts or forwards"
	}
	return low, ""
}

func serviceRisk(c Change) (Risk, string) {
	for _, d := range c.Details {
		switch {
		case d.Name == "Service.NoNewPrivileges" && d.Now == "", d.Name == "Service.ProtectSystem" && d.Now == "":
			if c.Kind == Changed {
				return high, "the sandbox is removed"
			}
		case d.Name == "Service.CPUSchedulingPolicy" && (d.Now == "fifo" || d.Now == "rr"):
			return medium, "a real-time thread that never sleeps can starve everything else on its cores"
		case d.Name == "Service.User":
			return medium, "another user: check the owner of its files"
		}
	}
	if c.Kind == Removed && c.Area == "service" {
		return medium, "nothing starts it anymore"
	}
	return low, ""
}
