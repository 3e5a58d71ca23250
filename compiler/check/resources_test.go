package check_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler/diag"
)

// What a field limits may also be written as a directive or as an option of a container engine, and what
// one field switches off another may need: the same rules find both.
func TestResourcesAreJudgedWhereverTheyAreWritten(t *testing.T) {
	const exec = `exec: ["/usr/bin/yes"], external: true`
	unit := func(directives string) string {
		return `services: "a.service": {` + exec + `, unit: Service: {` + directives + `}}`
	}
	run := func(options string) string {
		return `services: "a.service": {exec: ["/usr/bin/docker", "run", ` + options + `, "acme/vision"], external: true}`
	}
	timer := func(fields string) string {
		return `services: "a.service": {` + exec + `, timer: {` + fields + `}}`
	}
	for _, c := range []struct {
		config, rule string
		severity     diag.Severity
	}{
		{unit(`MemoryMax: "64G"`), "memory-budget", diag.Warning},
		{unit(`MemoryMax: "90%"`), "", 0},
		{unit(`MemoryMax: "1G", MemoryHigh: "2G"`), "service-limits", diag.Warning},
		{unit(`MemoryHigh: "200%"`), "service-limits", diag.Warning},
		{unit(`CPUQuota: "700%"`), "service-limits", diag.Warning},
		{unit(`CPUQuota: "600%"`), "", 0},
		{unit(`MemoryHigh: ["", "2G"]`), "", 0},
		{run(`"--memory", "64g"`), "memory-budget", diag.Warning},
		{run(`"-m", "64g"`), "memory-budget", diag.Warning},
		{run(`"--shm-size=64g"`), "service-limits", diag.Warning},
		{run(`"--memory=4m"`), "container-limit", diag.Error},
		{run(`"--memory=1g", "--memory-swap=512m"`), "container-limit", diag.Error},
		{run(`"--memory=1g", "--memory-swap=-1"`), "", 0},
		{run(`"--memory=1g", "--memory-reservation=2g"`), "container-limit", diag.Error},
		{run(`"--cpus=7"`), "container-limit", diag.Error},
		{run(`"--cpus=5.5"`), "", 0},
		{`services: "a.service": {exec: ["/bin/sh", "-c", "exec docker run --cpus 9 acme/vision"], external: true}`, "container-limit", diag.Error},
		{`services: "a.service": {exec: ["/usr/bin/acme", "--memory", "64g"], external: true}`, "", 0},
		{`kernel: args: isolcpus: "0,5"`, "kernel-arg-cores", diag.Warning},
		{`kernel: args: isolcpus: "managed_irq,domain,0-1"`, "kernel-arg-cores", diag.Warning},
		{`kernel: args: "acme.a": {value: "x" * 1600, external: true}`, "kernel-arg-length", diag.Warning},
		{`kernel: args: {"acme.a": {value: "x" * 1100, external: true}, "acme.b": {value: "y" * 1100, external: true}}`, "kernel-arg-length", diag.Error},
		{`kernel: args: "acme.a": {value: "x" * 900, external: true}`, "", 0},
		{`{modules: bonding: "blacklist", network: bond0: mtu: 9000}`, "module-needed", diag.Warning},
		{`{modules: "8021q": "blacklist", network: "eth0.5": mtu: 1400}`, "module-needed", diag.Warning},
		{`{modules: br_netfilter: "blacklist", sysctl: "net.bridge.bridge-nf-call-iptables": 0}`, "module-needed", diag.Warning},
		{`{modules: uvcvideo: "blacklist", kernel: args: "uvcvideo.nodrop": 1}`, "module-needed", diag.Warning},
		{`{modules: nvgpu: "blacklist", gpu: min: "306MHz"}`, "module-needed", diag.Warning},
		{`{modules: nvme: "blacklist", storage: "mmcblk*": readahead: "256KiB"}`, "", 0},
		{timer(`onCalendar: ["Mon *-02-30"]`), "timer-calendar", diag.Error},
		{timer(`onCalendar: ["daily"], unit: Timer: OnCalendar: "8"`), "unit-directive-value", diag.Error},
		{timer(`onCalendar: ["daily"], unit: Timer: DeferReactivation: true`), "unit-directive", diag.Error}, // of systemd 257
		{timer(`onCalendar: ["daily"], unit: Timer: AccuracySec: "1s", accuracy: "2s"`), "unit-directive-twice", diag.Error},
		{timer(`onCalendar: ["daily"], unit: Timer: RandomisedDelaySec: "5s"`), "unit-directive", diag.Error},
		{timer(`onCalendar: ["daily"], unit: Service: Nice: 5`), "YT0109", diag.Error},
		{timer(`onClockChange: false`), "timer-times", diag.Error},
		{timer(`onClockChange: true`), "", 0},
		{timer(`onUnitInactive: "5min"`), "timer-first", diag.Warning},
		{timer(`onCalendar: ["daily"], persistent: true`) + "\n" + `tmpfs: "/var/lib/systemd": size: "16MiB"`, "timer-persistent", diag.Warning},
		{`services: "fstrim.service": timer: {accuracy: "1h", unit: Timer: Unit: "fstrim.service"}`, "", 0},
		{`services: "acme.service": timer: onCalendar: ["daily"]`, "unit-unknown", diag.Warning},
		{`services: {"a.service": {` + exec + `, timer: onCalendar: ["daily"]}, "b.service": {` + exec + `, after: ["a.timer"]}}`, "", 0},
		{`services: {"a.service": {` + exec + `}, "b.service": {` + exec + `, after: ["a.timer"]}}`, "unit-unknown", diag.Warning},
	} {
		found := map[string]diag.Severity{}
		var text []string
		for _, d := range findings(t, inTarget(c.config)) {
			if slices.Contains([]string{"service-program", "timer-running"}, d.ID) {
				continue
			}
			found[d.ID] = max(found[d.ID], d.Severity)
			text = append(text, d.ID+": "+d.Message)
		}
		severity, raised := found[c.rule]
		if c.rule == "" && len(found) > 0 || c.rule != "" && (!raised || severity != c.severity) {
			t.Errorf("%.200s\nraises %s\nwant %q, %s", c.config, strings.Join(text, "; "), c.rule, c.severity)
		}
	}
}
