package enforce

import (
	"path"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// maxModules bounds an index of the kernel's modules.
const maxModules = 16 << 20 // bytes

// wantedModule returns the module that a setting wants loaded, as the kernel shows its name, and
// the folder of the running kernel's modules. ok is false for any other setting.
func wantedModule(dev rootfs.FS, s plan.Setting) (name, dir string, ok bool) {
	name, ok = strings.CutPrefix(s.Select.Path, "/sys/module/")
	if !ok || s.Domain != plan.DomainModule || s.Want != "1" {
		return "", "", false
	}
	return name, path.Join("/lib/modules", rootfs.ReadText(dev, "/proc/sys/kernel/osrelease")), true
}

// isBuiltIn reports whether a setting wants a module that the running kernel contains. Without
// parameters and a version such a module has no folder in /sys/module.
func isBuiltIn(dev rootfs.FS, s plan.Setting) bool {
	name, dir, ok := wantedModule(dev, s)
	if !ok {
		return false
	}
	text, err := dev.ReadFile(path.Join(dir, "modules.builtin"), maxModules)
	return err == nil && lists(string(text), name)
}

// isUnknownModule reports whether a setting wants a module that the running kernel neither
// has built in nor finds among its modules. A kernel without these indexes may have it.
func isUnknownModule(dev rootfs.FS, s plan.Setting) bool {
	name, dir, ok := wantedModule(dev, s)
	if !ok {
		return false
	}
	for _, index := range []string{"modules.dep", "modules.builtin"} {
		text, err := dev.ReadFile(path.Join(dir, index), maxModules)
		if err != nil || lists(string(text), name) {
			return false
		}
	}
	return true
}

// lists reports whether an index of depmod(8) has a module: "kernel/net/sched/sch_fq.ko.zst: …".
// Names of files may have "-" where the kernel shows "_".
func lists(index, name string) bool {
	for line := range strings.Lines(index) {
		file, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		file, _, ok := strings.Cut(path.Base(file), ".ko")
		if ok && strings.ReplaceAll(file, "-", "_") == name {
			return true
		}
	}
	return false
}
