package check_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
)

// What the real kconfig made of these lines is recorded in kconfig's own tests;
// here it must reach the user, at the line, with the cause.
func TestDroppedKconfigOptionsAreReportedWithCause(t *testing.T) {
	const r32, r35, r36, r39 = `board: "agx-xavier", release: "kirkstone-l4t-r32.7.x"`, `board: "agx-orin-64gb", release: "kirkstone"`, `board: "orin-nano-8gb", release: "scarthgap"`, `board: "agx-orin-64gb", release: "wrynose"`
	for _, c := range []struct{ target, config, id, text string }{
		{r36, `config: PREEMPT_RT: "y"`, "kconfig-lost", "falls back to PREEMPT_NONE"},
		{r35, `config: PREEMPT_RT: "y"`, "preempt-rt-route", "no real-time kernel"},
		{r39, `recipe: "linux-yocto", version: "6.18", config: PREEMPT_RT: "y"`, "kconfig-lost", "needs EXPERT"},
		{r36, `config: {HZ_250: "y", HZ_1000: "y"}`, "kconfig-lost", "choice"},
		{r36, `config: {NO_HZ_FULL: "y", NO_HZ_IDLE: "y"}`, "kconfig-lost", "choice"},
		{r36, `config: {TRANSPARENT_HUGEPAGE_ALWAYS: "y", TRANSPARENT_HUGEPAGE_MADVISE: "y"}`, "kconfig-lost", "choice"},
		{r36, `config: {CPU_FREQ_DEFAULT_GOV_PERFORMANCE: "y", CPU_FREQ_DEFAULT_GOV_SCHEDUTIL: "y"}`, "kconfig-lost", "choice"},
		{r36, `config: {PREEMPT_NONE: "y", PREEMPT: "y"}`, "preempt-choice", "one choice"},
		{r36, `config: RCU_NOCB_CPU: "y"`, "kconfig-lost", "needs"},
		{r36, `config: KSM: "m"`, "kconfig-lost", "bool"},
		{r36, `config: NR_CPUS: "abc"`, "kconfig-changed", "NR_CPUS"},
		{r36, `config: LOG_BUF_SHIFT: 99`, "kconfig-changed", "range"},
		{r36, `config: PSI: "Y"`, "kernel-config-value", "does not read"},
		{r36, `config: NO_HZ_COMMON: "y"`, "kconfig-selected", "no prompt"},
		{r36, `config: IRQ_FORCED_THREADING: "n"`, "kconfig-changed", "IRQ_FORCED_THREADING"},
		{r36, `config: CRC_ITU_T: "m"`, "kconfig-changed", "selected by"},
		{r36, `config: IOSCHED_DEADLINE: "y"`, "kconfig-lost", "no such symbol"},
		{r32, `config: MQ_IOSCHED_KYBER: "y"`, "kconfig-lost", "exists from"},
		{r36, `config: MEMCG_SWAP: "y"`, "kconfig-selected", ""},
		{r39, `config: TCP_CONG_VEGAS: "y"`, "kconfig-lost", "TCP_CONG_ADVANCED"},
		{r39, `config: TEGRA_SOMETHING_NEW: "y"`, "kconfig-unknown", "not among the facts"},
		{r36, `args: psi: 1`, "kernel-arg-config", "PSI"},
		{r36, `args: preempt: "full"`, "kernel-arg-config", "PREEMPT_DYNAMIC"},
		{r36, `args: nohz_full: "4-5"`, "kernel-arg-config", "NO_HZ_FULL"},
		{r36, `config: {NO_HZ_FULL: "y", CPU_IDLE_GOV_MENU: "y"}, args: nohz_full: "0-5"`, "kernel-arg-cores", "core 0"},
		{r36, `args: isolcpus: "4-9"`, "kernel-arg-cores", "does not exist"},
		{r36, `args: isolcpus: "5-4"`, "kernel-arg-cores", "not a list"},
	} {
		p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(inTarget("{" + c.target + ", kernel: {" + c.config + "}}"))})
		found, other := false, []string{}
		for _, d := range p.Report.All() {
			if d.ID == c.id && strings.Contains(d.Message+d.Got, c.text) {
				found = d.Pos.Line > 5
				continue
			}
			other = append(other, d.ID+" "+d.Message)
		}
		if !found {
			t.Errorf("%s: no %s with %q among %v", c.config, c.id, c.text, other)
		}
		if len(other) > 0 {
			t.Errorf("%s: one fault, several messages: %v", c.config, other)
		}
		// Where the facts are not exact nothing is an error.
		if c.target == r39 && p.Report.Failed() {
			t.Errorf("%s: an error though the facts are not exact: %v", c.config, other)
		}
	}
}
