package enforce

import (
	"path"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// maxModules bounds an index of the kernel's modules.
const maxModules = 16 << 20 // bytes

// isUnknownModule reports whether a setting wants a module that the running kernel neither
// has built in nor finds among its modules. A kernel without these indexes may have it.
func isUnknownModule(dev rootfs.FS, s plan.Setting) bool {
	name, ok := strings.CutPrefix(s.Select.Path, "/sys/module/")
	if !ok || s.Domain != plan.DomainModule || s.Want != "1" {
		return false
	}
	dir := path.Join("/lib/modules", rootfs.ReadText(dev, "/proc/sys/kernel/osrelease"))
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
