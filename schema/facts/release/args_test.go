package release

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestArgumentsReachTheKernelByThePathOfTheRelease(t *testing.T) {
	for _, c := range []struct{ release, soc, variable, by string }{
		{"kirkstone-l4t-r32.7.x", "tegra210", "KERNEL_ARGS", "bootargs in the device tree"},
		{"kirkstone-l4t-r32.7.x", "tegra194", "KERNEL_ARGS", "the boot image's command line and bootargs in the device tree"},
		{"kirkstone", "tegra234", "UBOOT_EXTLINUX_KERNEL_ARGS", "the boot image's command line"},
		{"scarthgap-l4t-r35.x", "tegra194", "UBOOT_EXTLINUX_KERNEL_ARGS", "the boot image's command line and APPEND of extlinux.conf, which L4TLauncher takes where it can read it"},
		{"wrynose", "tegra264", "UBOOT_EXTLINUX_KERNEL_ARGS", "the boot image's command line and APPEND of extlinux.conf, which L4TLauncher takes where it can read it"},
	} {
		r, _ := Lookup(c.release)
		p := r.ArgPath(c.soc)
		if p.Variable != c.variable || p.Text() != c.by {
			t.Errorf("%s on %s: %s, by %s", c.release, c.soc, p.Variable, p.Text())
		}
	}
}

// The table matches the branches.
func TestBranchesCarryArgumentsAsInTheTable(t *testing.T) {
	repo := os.Getenv("YOCTUNE_META_TEGRA")
	if repo == "" {
		t.Skip("set YOCTUNE_META_TEGRA to a clone of meta-tegra that has the branches")
	}
	show := func(t *testing.T, branch, file string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", "-C", repo, "show", branch+":"+file).Output()
		if err != nil {
			t.Fatalf("%s of %s: %v", file, branch, err)
		}
		return string(out)
	}
	for _, name := range Names() {
		r, _ := Lookup(name)
		common := show(t, name, "conf/machine/include/tegra-common.inc")
		// Without it kernel-yocto would fill up from allnoconfig, and a fragment would
		// be all there is.
		recipe := "recipes-kernel/linux/" + r.Provider + "_" + r.Kernel + ".bb"
		if r.Provider == noble {
			recipe = "recipes-kernel/linux/" + noble + ".inc"
		}
		if text := show(t, name, recipe); !strings.Contains(text, `KCONFIG_MODE = "--alldefconfig"`) || !strings.Contains(text, `KBUILD_DEFCONFIG = "`+r.Defconfig+`"`) {
			t.Errorf("%s: %s does not fill %s up with defaults", name, recipe, r.Defconfig)
		}
		for _, soc := range []string{"tegra210", "tegra194", "tegra234"} {
			if r.Line() == "R32" == (soc == "tegra234") {
				continue
			}
			t.Run(name+"/"+soc, func(t *testing.T) {
				p := r.ArgPath(soc)
				for _, c := range p.Carriers {
					if text := show(t, name, c.Source); !strings.Contains(text, p.Variable) && !strings.Contains(text, "${KERNEL_ARGS}") {
						t.Errorf("%s does not expand the arguments", c.Source)
					}
				}
				if extlinux := strings.Contains(common, `UBOOT_EXTLINUX_KERNEL_ARGS ?= "${KERNEL_ARGS}"`); extlinux != (p.Variable == "UBOOT_EXTLINUX_KERNEL_ARGS") {
					t.Errorf("extlinux.conf takes KERNEL_ARGS: %t, the table has %s", extlinux, p.Variable)
				}
				if on := strings.Contains(common, `UBOOT_EXTLINUX ?= "1"`); r.Line() != "R32" && on != (len(p.Carriers) == 2) {
					t.Errorf("extlinux.conf is written by default: %t, carriers %v", on, p.Carriers)
				}
				const scripts = "recipes-core/initrdscripts/tegra-minimal-init/"
				init := show(t, name, scripts+"init-boot.sh")
				if !strings.Contains(init, "exec switch_root /mnt /sbin/init\n") {
					t.Error("the initial file system hands arguments to the first program")
				}
				reader := init // reads the arguments where platform-preboot found no root
				switch {
				case soc == "tegra194" && r.Line() == "R32":
					reader = show(t, name, scripts+"platform-preboot-cboot.sh")
				case r.Line() != "R32":
					reader = show(t, name, scripts+"platform-preboot.sh")
				}
				for _, arg := range []string{"root=*)", "ro)", "rootwait)", "rootfstype=*)", "rootflags=*)", "rootdelay=*)"} {
					read := strings.Contains(reader, arg)
					if listed := slices.Contains(p.RootArgs, strings.TrimRight(arg, "=*)")); read != listed {
						t.Errorf("%s is read: %t, the table lists it: %t", arg, read, listed)
					}
				}
			})
		}
	}
}
