package check_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/report/review"
)

// writeConfiguration writes a configuration to a temporary folder and returns the folder.
func writeConfiguration(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.cue"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func applyFixes(t *testing.T, text string) (string, *compiler.Project) {
	t.Helper()
	dir := writeConfiguration(t, text)
	p, err := compiler.Options{}.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	p.Verify()
	f := compiler.Options{}.Fix(dir, p)
	if now, ok := f.Files["config.cue"]; ok {
		return string(now), f.Project
	}
	return text, f.Project
}

const brokenConfig = `package box

import "github.com/yoctune/yoctune/schema"

schema.#Config & {
	layer: {name: "box", maintainer: "Team <team@example.com>"}
	targets: cam: {
		board:   "orin-nano-8gb"
		release: "scarthgap"
		use: ["quiet"]
		kernel: config: TCP_CONG_BBR: "y"
		cpu: governor: "conservative"
		sysctl: {
			"net.netfilter.nf_conntrack_max": 262144 // big tables
			"vm.swapiness": 10
			"net.core.default_qdisc": "fq"
		}
	}
	profiles: quiet: kernel: config: {
		PSI: "Y" // pressure
		CONFIG_KSM: "y"
	}
	profiles: quiet: storage: "nvme*": scheduler: "noop"
	profiles: quiet: memory: {zramm: "1GiB"}
}
`

// Everything else in the file, comments and layout, stays as it was.
const fixedConfig = `package box

import "github.com/yoctune/yoctune/schema"

schema.#Config & {
	layer: {name: "box", maintainer: "Team <team@example.com>"}
	targets: cam: {
		board:   "orin-nano-8gb"
		release: "scarthgap"
		use: ["quiet"]
		kernel: config: {TCP_CONG_BBR: "y", TCP_CONG_ADVANCED: "y"}
		modules: cpufreq_conservative: "load"
		cpu: governor: "conservative"
		modules: nf_conntrack: "load"
		kernel: config: NET_SCH_FQ: "y"
		sysctl: {
			"net.netfilter.nf_conntrack_max": 262144 // big tables
			"vm.swappiness": 10
			"net.core.default_qdisc": "fq"
		}
	}
	profiles: quiet: kernel: config: {
		PSI: "y" // pressure
		KSM: "y"
	}
	profiles: quiet: storage: "nvme*": scheduler: "none"
	profiles: quiet: memory: {zram: "1GiB"}
}
`

func TestFixMakesOnlyProposedChanges(t *testing.T) {
	got, p := applyFixes(t, brokenConfig)
	if d := review.UnifiedDiff([]byte(fixedConfig), []byte(got), "want", "got"); d != "" {
		t.Error(d)
	}
	for _, d := range p.Report.All() {
		if d.Severity > diag.Info {
			t.Errorf("still %s: %s", d.ID, d.Message)
		}
	}
}

// What has no place of its own in the file, or helps one target and harms
// another, is left to a person.
func TestFixLeavesAmbiguousFaults(t *testing.T) {
	for name, text := range map[string]string{
		"a computed value":  inTarget("_s: \"Y\"\nkernel: config: PSI: _s"),
		"two names as near": inTarget("cpu: mix: \"1.344GHz\""), // min, or max
		"two targets of which one is harmed": `package box
import "github.com/yoctune/yoctune/schema"
schema.#Config & {
	layer: {name: "box", maintainer: "x"}
	profiles: p: services: "a.service": {exec: ["/usr/bin/a"], scheduling: "fifo", priority: 5}
	targets: a: {board: "agx-orin-64gb", release: "kirkstone", use: ["p"], kernel: config: RT_GROUP_SCHED: "y"}
}
`,
	} {
		if got, _ := applyFixes(t, text); got != text {
			t.Errorf("%s:\n%s", name, review.UnifiedDiff([]byte(text), []byte(got), "was", "now"))
		}
	}
}
