package enforce

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// kernelOption returns the finished target of a kernel configuration option, which cannot
// change while the kernel runs.
func (sel *selector) kernelOption(s plan.Setting) *target {
	if t := sel.judged[s.ID]; t != nil {
		return t
	}
	if sel.options == nil && sel.optionErr == nil {
		sel.options, sel.optionErr = rootfs.ReadKernelOptions(sel.dev)
	}
	name := "CONFIG_" + s.Select.Name
	t := &target{setting: s, path: name}
	if sel.optionErr != nil {
		t.finish(outcome.Unsupported, fmt.Sprintf("%s cannot be compared: %v", name, sel.optionErr))
		return t
	}
	t.path, t.known = sel.options.Path, true
	t.found.Value = sel.options.Get(s.Select.Name)
	if sameOption(s.Want, t.found.Value) {
		t.finish(outcome.OK, "")
	} else {
		t.finishPending(fmt.Sprintf("the kernel was built with %s=%s", name, t.found.Value))
	}
	return t
}

// realtimeKernel returns the target of /sys/kernel/realtime. Where the kernel has no such file
// it is the finished target of the kernel's version, which cannot change while it runs.
func (sel *selector) realtimeKernel(s plan.Setting) *target {
	t := sel.nodeTarget(s, rootfs.RealtimeFile)
	if !t.isAbsent() {
		return t
	}
	realtime, err := rootfs.IsRealtimeVersion(sel.dev)
	if err != nil {
		t.finish(outcome.Unsupported, fmt.Sprintf("it is unknown if this kernel is a real-time kernel: it has no %s, and %v", rootfs.RealtimeFile, err))
		return t
	}
	t.path, t.known, t.err = rootfs.VersionFile, true, nil
	t.found.Value = formatBool(realtime)
	if t.found.Value == s.Want {
		t.finish(outcome.OK, "")
	} else {
		t.finishPending(fmt.Sprintf("%s does not name PREEMPT_RT: this is no real-time kernel", rootfs.VersionFile))
	}
	return t
}

// judgedOptions returns the targets of kernel options, by the id of the setting.
func judgedOptions(all []*target) map[string]*target {
	m := map[string]*target{}
	for _, t := range all {
		if t.setting.Select.Class == rootfs.ClassConfig {
			m[t.setting.ID] = t
		}
	}
	return m
}

// sameOption compares values of .config: numbers by value, since kconfig keeps their
// spelling, and text with its quotes.
func sameOption(want, found string) bool {
	if want == found {
		return true
	}
	base, digits := 10, found
	if hex, ok := strings.CutPrefix(strings.ToLower(found), "0x"); ok {
		base, digits = 16, hex
		want = strings.TrimPrefix(strings.ToLower(want), "0x")
	}
	a, err := strconv.ParseInt(want, base, 64)
	b, err2 := strconv.ParseInt(digits, base, 64)
	return err == nil && err2 == nil && a == b
}
