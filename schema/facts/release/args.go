package release

import (
	"slices"
	"strings"
)

// ArgPath is how the words of KERNEL_ARGS reach the kernel of a machine.
type ArgPath struct {
	// Variable is what the machine's boot configuration expands: the words have to
	// stand at its end, where the kernel takes the last of two.
	Variable string
	// Carriers hold the words, as built by default.
	Carriers []ArgCarrier
	// Root is what selects the root file system.
	Root string
	// RootArgs are the arguments about the root file system that the BSP's initial file
	// system reads; it ignores the others.
	RootArgs []string
}

// ArgCarrier is a place that holds the kernel arguments when the image is built.
type ArgCarrier struct {
	Name   string
	Source string // file of meta-tegra
}

// Text names the carriers in a sentence: "the boot image and extlinux.conf".
func (p ArgPath) Text() string {
	var names []string
	for _, c := range p.Carriers {
		names = append(names, c.Name)
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Reads reports whether the BSP's initial file system reads the argument.
func (p ArgPath) Reads(name string) bool { return slices.Contains(p.RootArgs, name) }

// ArgPath describes how kernel arguments reach the kernel on a SoC such as "tegra234".
// Sources, in meta-tegra: the variables and the default of UBOOT_EXTLINUX,
// conf/machine/include/tegra-common.inc and tegra194.inc; what reads root=,
// recipes-core/initrdscripts/tegra-minimal-init; the rest with each carrier. In every branch
// the initial file system ends in switch_root /mnt /sbin/init, so init= and the arguments
// after -- do not reach init.
func (r Release) ArgPath(soc string) ArgPath {
	const (
		slotThenRoot = "the partition APP of the booted slot, or root= where there is none"
		bootImage    = "the boot image's command line"
		extlinux     = "APPEND of extlinux.conf, which L4TLauncher takes where it can read it"
	)
	if r.Line() == "R32" {
		tree := ArgCarrier{"bootargs in the device tree", "classes/image_types_tegra.bbclass"}
		image := ArgCarrier{bootImage, "recipes-kernel/linux/linux-tegra_4.9.bb"}
		if soc == "tegra194" { // cboot-t19x, conf/machine/include/tegra194.inc
			return ArgPath{
				Variable: "KERNEL_ARGS", Carriers: []ArgCarrier{image, tree},
				Root: slotThenRoot, RootArgs: []string{"root", "ro", "rootwait"},
			}
		}
		// u-boot-tegra: its extlinux.conf has ${bootargs}, which U-Boot reads from the
		// device tree.
		return ArgPath{
			Variable: "KERNEL_ARGS", Carriers: []ArgCarrier{tree},
			Root: "KERNEL_ROOTSPEC of the machine, which extlinux.conf holds", RootArgs: []string{"root", "ro", "rootwait", "rootfstype"},
		}
	}
	image := ArgCarrier{bootImage, "recipes-kernel/linux/tegra-kernel.inc"}
	if r.Kernel == "5.10" {
		image.Source = "recipes-kernel/linux/linux-tegra_5.10.bb"
	}
	p := ArgPath{
		Variable: "UBOOT_EXTLINUX_KERNEL_ARGS", Carriers: []ArgCarrier{image},
		Root: slotThenRoot, RootArgs: []string{"root", "ro", "rootwait", "rootfstype"},
	}
	if r.Name == "kirkstone" { // UBOOT_EXTLINUX ?= ""; platform-preboot.sh has no rootfstype
		p.RootArgs = []string{"root", "ro", "rootwait"}
		return p
	}
	p.Carriers = append(p.Carriers, ArgCarrier{extlinux, "classes-recipe/l4t-extlinux-config.bbclass"})
	return p
}

// CoreArgVariables are the variables that take kernel arguments in openembedded-core: APPEND of
// grub-efi, systemd-boot and syslinux (classes-recipe/{grub-efi,systemd-boot,syslinux}-cfg.bbclass),
// UBOOT_EXTLINUX_KERNEL_ARGS of extlinux (uboot-extlinux-config.bbclass), and
// QB_KERNEL_CMDLINE_APPEND of runqemu (qemuboot.bbclass). Which of them reaches a kernel depends on
// the machine's boot loader.
func CoreArgVariables() []string {
	return []string{"APPEND", "QB_KERNEL_CMDLINE_APPEND", "UBOOT_EXTLINUX_KERNEL_ARGS"}
}
