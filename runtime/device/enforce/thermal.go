package enforce

import (
	"fmt"
	"path"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// A cooling device lowers a frequency limit without an event: the node reads less than was
// written, and another write has no effect until the device is cool. That is neither drift
// nor a refusal.

// Throttled returns the name of a cooling device that lowers a clock now, "" if none does.
// Fans do not count.
func Throttled(dev rootfs.FS) string {
	for _, kind := range []string{"cpu", "devfreq"} {
		if c := activeCooler(dev, kind, ""); c != "" {
			return c
		}
	}
	return ""
}

// finishIfCapped finishes a target that a thermal limit holds below the wanted value.
func (t *target) finishIfCapped(dev rootfs.FS) bool {
	kind, owner, ok := frequencyNode(t.real)
	if !ok || t.setting.Type != plan.TypeInt || !isFewer(t.setting, t.found) {
		return false
	}
	cooler := activeCooler(dev, kind, owner)
	if cooler == "" {
		return false
	}
	t.finish(outcome.Capped, fmt.Sprintf("%s: %s of %s: capped by %s", outcome.Name(t.path), t.found.Value, t.setting.Want, cooler))
	t.result.Excused = true
	return true
}

// frequencyNode recognises the nodes that cooling lowers. The owner is the number of a
// cpufreq policy or the name of a devfreq device.
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

// activeCooler returns the name of an active cooling device that acts on the owner, or on
// any of the kind if owner is "". It returns "" if there is none. Kernels since 5.12 name
// them cpufreq-cpu0 or devfreq-17000000.gpu. Older kernels number them
// (thermal-cpufreq-0), and NVIDIA's names are cpu-balanced or gpu-balanced, so that any
// device of the kind matches.
func activeCooler(dev rootfs.FS, kind, owner string) string {
	const class = "/sys/class/thermal"
	names, err := dev.List(class)
	if err != nil {
		return ""
	}
	read := func(name, attr string) string { return rootfs.ReadText(dev, path.Join(class, name, attr)) }
	for _, n := range names {
		if !strings.HasPrefix(n, "cooling_device") {
			continue
		}
		typ := read(n, "type")
		if !actsOn(typ, kind, owner) {
			continue
		}
		if state := read(n, "cur_state"); state != "" && state != "0" {
			return fmt.Sprintf("%s (step %s of %s)", typ, state, read(n, "max_state"))
		}
	}
	return ""
}

func actsOn(typ, kind, owner string) bool {
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
