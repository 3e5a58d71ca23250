package check_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema/plan"
)

// What a message advises is what kconfig accepts: --fix makes the change, and
// nothing is wrong afterwards.
func TestKernelOptionAdviceHolds(t *testing.T) {
	const r36 = `{board: "orin-nano-8gb", release: "scarthgap", `
	for _, c := range []struct{ target, after string }{
		{r36 + `sysctl: "net.ipv4.tcp_congestion_control": "vegas"}`, `kernel: config: {TCP_CONG_VEGAS: "y", TCP_CONG_ADVANCED: "y"}`},
		{r36 + `kernel: args: rcu_nocbs: "4-5"}`, `config: {RCU_NOCB_CPU: "y", RCU_EXPERT: "y"}`},
		{r36 + `kernel: args: "zswap.enabled": 1}`, `config: {ZSWAP: "y", FRONTSWAP: "y"}`},
		{r36 + `kernel: config: PREEMPT_RT: "y"}`, `{PREEMPT_RT: "y", EXPERT: "y", KVM: "n"}`},
		{r36 + `packages: "systemd-oomd": "install"}`, `kernel: config: PSI: "y"`},
	} {
		text, p := applyFixes(t, inTarget(c.target))
		if !strings.Contains(text, c.after) {
			t.Errorf("%s: --fix gives\n%s\nwithout %s", c.target, text, c.after)
		}
		if p.Report.Failed() {
			t.Errorf("%s: still wrong after --fix: %v", c.target, p.Report.All())
		}
	}
}

// No advice is given where a kernel cannot have what a setting needs.
func TestUnreachableOptionIsReported(t *testing.T) {
	for _, target := range []string{
		`{board: "orin-nano-8gb", release: "scarthgap", kernel: args: preempt: "full"}`,
		`{board: "orin-nano-8gb", release: "scarthgap", sysctl: "kernel.nmi_watchdog": 1}`,
	} {
		p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(inTarget(target))})
		all := p.Report.All()
		if len(all) != 1 || !strings.HasPrefix(all[0].Help, "no option of kernel.config brings ") || len(all[0].Edits) > 0 {
			t.Errorf("%s: %+v", target, all)
		}
	}
}

func TestOneMessagePerFault(t *testing.T) {
	const r36 = `{board: "orin-nano-8gb", release: "scarthgap", `
	for _, c := range []struct{ target, id, help string }{
		{r36 + `sysctl: "vm.nr_hugepages": 5000}`, "hugepages-memory", ""},
		{r36 + `kernel: args: hugepages: 5000}`, "hugepages-memory", ""},
		{r36 + `kernel: args: {hugepagesz: "1G", hugepages: 10}}`, "kernel-arg-order", ""},
		{r36 + `cpu: max: 1728000}`, "power-frequency", `did you mean "1.728GHz"?`},
		{r36 + `cpu: max: 1510400}`, "power-frequency", "nearest steps: 1.4976GHz and 1.5744GHz"},
		{r36 + `power: default: "MAXN"}`, "power-default", "MAXN_SUPER"},
		{r36 + `services: "nvpmodel.service": exec: ["/usr/sbin/nvpmodel", "-m", "0"]}`, "service-reserved", ""},
		{r36 + `kernel: config: SLAB_TYPO: "n"}`, "kconfig-selected", "remove the line"},
		{r36 + `kernel: args: isolcpus: "4-5", kernel: config: CPU_ISOLATION: "n"}`, "kernel-arg-config", ""},
		{r36 + `kernel: config: {HZ_250: "y", HZ_1000: "y"}}`, "kconfig-lost", "keep one of HZ_1000 and HZ_250"},
		{`{board: "agx-orin-64gb", release: "wrynose", kernel: preempt: "rt", memory: thp: "always"}`, "thp-config", ""},
	} {
		p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(inTarget(c.target))})
		all := p.Report.All()
		if len(all) != 1 || all[0].ID != c.id || !strings.Contains(all[0].Help, c.help) {
			t.Errorf("%s: %+v", c.target, all)
		}
		if c.id == "kconfig-lost" && len(all) == 1 && len(all[0].Related) != 1 {
			t.Errorf("%s: the other member of the choice is not shown", c.target)
		}
	}
}

// A setting that the kernel fulfils by lacking the feature is not a fault, here and on the
// device.
func TestNeverIsFulfilledWithoutHugePages(t *testing.T) {
	p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(inTarget(`{board: "agx-orin-64gb", release: "wrynose", kernel: preempt: "rt", memory: {thp: "never", ksm: false}}`))})
	for _, d := range p.Report.All() {
		if d.Severity > diag.Info {
			t.Errorf("%s: %s", d.ID, d.Message)
		}
	}
	for _, s := range p.Targets[0].Plan.Settings {
		if s.Domain == plan.DomainMemory && !s.Optional {
			t.Errorf("%s must be on a kernel that cannot have it", s.ID)
		}
	}
}
