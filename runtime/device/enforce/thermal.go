package enforce

import (
	"fmt"
	"path"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// A cooling device lowers a frequency limit without telling anybody: the node
// reads less than was written, and writing it again changes nothing until the
// machine is cool. That is neither drift nor a refusal.

// Throttled names a cooling device that holds a clock down now, "" when none does;
// a fan is none.
func Throttled(dev rootfs.FS) string {
	for _, kind := range []string{"cpu", "devfreq"} {
		if c := coolerOf(dev, kind, ""); c != "" {
			return c
		}
	}
	return ""
}

// capped finishes a target that heat holds below what is wanted.
func (t *target) capped(dev rootfs.FS) bool {
	kind, owner, ok := frequencyNode(t.real)
	if !ok || t.setting.Type != plan.TypeInt || !fewer(t.setting, t.found) {
		return false
	}
	cooler := coolerOf(dev, kind, owner)
	if cooler == "" {
		return false
	}
	t.finish(outcome.Capped, fmt.Sprintf("%s: %s of %s: capped by %s", outcome.Name(t.path), t.found.Value, t.setting.Want, cooler))
	t.result.Excused = true
	return true
}

// frequencyNode tells the nodes that cooling lowers, and whose they are: a CPU
// frequency policy's number, or a devfreq device's name.
func frequencyNode(real string) (kind, owner string, ok bool) {
	dir, base := path.Split(real)
	dir = path.Clean(dir)
	switch base {
	case "scaling_max_freq", "scaling_min_freq":
		owner, ok = strings.CutPrefix(path.Base(dir), "policy")
		return "cpu", owner, ok
	case "max_freq", "min_freq":
		return "devfreq", path.Base(dir), path.Base(path.Dir(dir)) == "devfreq"
	}
	return "", "", false
}

// coolerOf names an active cooling device that acts on the owner, or on any of the
// kind when that is "", and "" when none does. Kernels since 5.12 call it cpufreq-cpu0 or devfreq-17000000.gpu; older
// ones number it (thermal-cpufreq-0), and NVIDIA's call theirs cpu-balanced or
// gpu-balanced, so that one of the right kind must do.
func coolerOf(dev rootfs.FS, kind, owner string) string {
	const class = "/sys/class/thermal"
	names, err := dev.List(class)
	if err != nil {
		return ""
	}
	read := func(name, attr string) string {
		c, err := dev.Read(path.Join(class, name, attr))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(c.Text)
	}
	for _, n := range names {
		if !strings.HasPrefix(n, "cooling_device") {
			continue
		}
		typ := read(n, "type")
		if !coolsOwner(typ, kind, owner) {
			continue
		}
		if state := read(n, "cur_state"); state != "" && state != "0" {
			return fmt.Sprintf("%s (step %s of %s)", typ, state, read(n, "max_state"))
		}
	}
	return ""
}

func coolsOwner(typ, kind, owner string) bool {
	switch {
	case strings.HasPrefix(typ, "cpufreq-cpu"):
		return kind == "cpu" && (owner == "" || typ == "cpufreq-cpu"+owner)
	case strings.HasPrefix(typ, "devfreq-"):
		return kind == "devfreq" && (owner == "" || typ == "devfreq-"+owner)
	case kind == "cpu":
		return strings.Contains(typ, "cpu")
	}
	return strings.Contains(typ, "devfreq") || strings.Contains(typ, "gpu")
}
