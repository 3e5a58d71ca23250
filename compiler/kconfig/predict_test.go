package kconfig_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler/kconfig"
	"github.com/yoctune/yoctune/schema/facts/kernel"
)

func predict(t *testing.T, kernelName, fragment string) *kconfig.Report {
	t.Helper()
	f, err := kconfig.Open(kernelName)
	if err != nil {
		t.Fatal(err)
	}
	cfg, _ := kconfig.ReadFragment("f.cfg", []byte(fragment))
	return f.PredictFragments(cfg)
}

// Each case has cost a build in practice: the last line of the fragment is
// the request looked at.
func TestCausesEndAtASettableSymbol(t *testing.T) {
	for _, c := range []struct {
		kernel, fragment string
		outcome          kconfig.Outcome
		cause            string
		fix              string
	}{
		{"5.15", "CONFIG_TCP_CONG_BBR=m\n", kconfig.Lost,
			"needs TCP_CONG_ADVANCED, which is off in the base configuration", "CONFIG_TCP_CONG_ADVANCED=y"},
		{"5.15", "CONFIG_KSM=m\n", kconfig.Lost,
			"=m on a bool: the whole line is ignored, so KSM takes its default, n", "CONFIG_KSM=y"},
		{"5.15", "CONFIG_PREEMPT_RT=y\n", kconfig.Lost,
			"KVM off, but the base configuration turns it on; choice: PREEMPT_RT is not visible, so the group falls back to PREEMPT_NONE",
			"CONFIG_EXPERT=y\n# CONFIG_KVM is not set"},
		{"5.10", "CONFIG_PREEMPT_RT=y\n", kconfig.Lost, "no configuration alone gives it", ""},
		{"4.9", "CONFIG_PREEMPT_RT=y\n", kconfig.Lost, "no configuration alone gives it", ""},
		{"6.12", "CONFIG_PREEMPT_RT=y\n", kconfig.Lost, "needs EXPERT, which is off", "CONFIG_EXPERT=y"},
		{"6.8", "CONFIG_CRC_ITU_T=m\n", kconfig.Changed, "selected by AQUANTIA_PHY, MMC_SPI, do not set",
			"# CONFIG_AQUANTIA_PHY is not set\n# CONFIG_MMC_SPI is not set"},
		{"6.18", "CONFIG_SCHED_DEBUG=y\n", kconfig.Lost, "no such symbol in 6.18: it was removed after 6.12", ""},
		{"4.9", "CONFIG_MQ_IOSCHED_KYBER=y\n", kconfig.Lost, "no such symbol in 4.9: it exists from 5.10 on", ""},
		{"4.9", "CONFIG_PSTORE_RTRACE=y\n", kconfig.Lost, "similar names: PSTORE_FTRACE", ""},
		{"6.8", "CONFIG_NVIDIA_ONLY_THING=y\n", kconfig.Unknown, "Ubuntu's generic 6.8", ""},
		{"6.12", "CONFIG_ZRAM=m\nCONFIG_ZRAM_DEF_COMP_ZSTD=y\n", kconfig.Lost, "needs ZRAM_BACKEND_ZSTD, which is off", "CONFIG_ZRAM_BACKEND_ZSTD=y"},
		{"6.18", "CONFIG_IP_NF_FILTER=m\n", kconfig.Lost,
			"needs IP_NF_IPTABLES_LEGACY, which needs NETFILTER_XTABLES_LEGACY, which is off", "CONFIG_NETFILTER_XTABLES_LEGACY=y"},
		{"6.18", "CONFIG_FAIR_GROUP_SCHED=n\n", kconfig.Changed, "selected by SCHED_AUTOGROUP, do not set", "# CONFIG_SCHED_AUTOGROUP is not set"},
		{"5.15", "CONFIG_IRQ_FORCED_THREADING=n\n", kconfig.Changed, "no prompt: it cannot be set; selected by ARM64, do not set", ""},
		{"5.15", "CONFIG_LOG_BUF_SHIFT=99\n", kconfig.Changed, "out of range 12 to 25", ""},
		{"5.15", "CONFIG_NR_CPUS=abc\n", kconfig.Changed, "an int takes a decimal number", ""},
		{"5.15", "CONFIG_CMDLINE=nohz_full=1-3\n", kconfig.Changed, "a string must stand in double quotes", `CONFIG_CMDLINE="nohz_full=1-3"`},
		{"5.15", "CONFIG_CMDLINE=\"a\"b\"\n", kconfig.Changed, `is read as "a": a quote inside is written \"`, ""},
		{"5.15", "CONFIG_NET_SCH_FQ=Y\n", kconfig.Lost, "in lower case", "CONFIG_NET_SCH_FQ=y"},
		{"5.15", "CONFIG_HZ_1000=y\nCONFIG_HZ_250=y\n", kconfig.Kept, "", ""},
		{"5.15", "# CONFIG_KVM is not set \n", kconfig.Kept, "", ""},
		{"6.12", "# CONFIG_KVM is not set \n", kconfig.Changed, "this kernel ignores the line", "# CONFIG_KVM is not set"},
	} {
		t.Run(c.kernel+" "+strings.TrimSpace(c.fragment), func(t *testing.T) {
			rep := predict(t, c.kernel, c.fragment)
			p := rep.Predictions[len(rep.Predictions)-1]
			if p.Outcome != c.outcome || !strings.Contains(p.Cause, c.cause) || strings.Join(p.Fix, "\n") != c.fix {
				t.Errorf("%s: %q, fix %q", p.Outcome, p.Cause, p.Fix)
			}
			if p.File != "f.cfg" || p.Line != strings.Count(c.fragment, "\n") {
				t.Errorf("position %s:%d", p.File, p.Line)
			}
		})
	}
}

func TestLaterChoiceMemberIsNamed(t *testing.T) {
	rep := predict(t, "6.12", "CONFIG_HZ_100=y\nCONFIG_HZ_1000=y\n")
	if p := rep.Predictions[0]; p.Outcome != kconfig.Lost || p.Cause != "choice: the later line HZ_1000 (f.cfg:2) takes its place" {
		t.Errorf("%s: %s", p.Outcome, p.Cause)
	}
}

// Before 6.11 a member that is not visible takes the earlier one with it.
func TestInvisibleChoiceMemberDropsTheEarlierOne(t *testing.T) {
	rep := predict(t, "5.15", "CONFIG_PREEMPT=y\nCONFIG_PREEMPT_RT=y\n")
	if p := rep.Predictions[0]; p.Outcome != kconfig.Lost ||
		p.Cause != "choice: only its last line counts, and the later PREEMPT_RT is not visible, so the group falls back to PREEMPT_NONE" {
		t.Errorf("%s: %s", p.Outcome, p.Cause)
	}
	rep = predict(t, "6.12", "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_RT=y\n")
	if p := rep.Predictions[0]; p.Outcome != kconfig.Kept {
		t.Errorf("%s: %s", p.Outcome, p.Cause)
	}
}

func TestSideEffectsAreNamed(t *testing.T) {
	rep := predict(t, "5.10", "CONFIG_PREEMPT_VOLUNTARY=y\n")
	for _, e := range rep.Effects {
		if e.Symbol == "PREEMPT" {
			if e.Before != "y" || e.After != "n" || e.Cause != "choice: PREEMPT_VOLUNTARY (f.cfg:1) takes its place" {
				t.Errorf("%+v", e)
			}
			return
		}
	}
	t.Errorf("PREEMPT is switched off and not named: %+v", rep.Effects)
}

func TestFixKeepsOtherRequests(t *testing.T) {
	// PREEMPT_RT would need KVM off, which is asked for.
	rep := predict(t, "5.15", "CONFIG_PREEMPT_RT=y\nCONFIG_KVM=y\n")
	if p := rep.Predictions[0]; len(p.Fix) != 0 {
		t.Errorf("offered %q", p.Fix)
	}
}

func TestLastLineOfASymbolWins(t *testing.T) {
	rep := predict(t, "5.15", "CONFIG_PSI=y\n# CONFIG_PSI is not set\n")
	if len(rep.Predictions) != 1 || rep.Predictions[0].Line != 2 || rep.Predictions[0].Outcome != kconfig.Kept {
		t.Errorf("%+v", rep.Predictions)
	}
}

func TestForReleaseOpensTheKernelOfTheBranch(t *testing.T) {
	f, err := kconfig.ForRelease("scarthgap")
	if err != nil {
		t.Fatal(err)
	}
	if f.Set.Name != "5.15" {
		t.Errorf("got %s", f.Set.Name)
	}
	if _, err := kconfig.ForRelease("dunfell"); !errors.Is(err, kernel.ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

func TestFragmentProblemsHaveExactPositions(t *testing.T) {
	for _, c := range []struct {
		text, want string
		lines      int
	}{
		{"CONFIG_A=y\n", "", 1},
		{"CONFIG_A=y", "f.cfg:1:11: no newline at the end", 1},
		{"CONFIG_A=y\r\n# CONFIG_B is not set\r\n", "", 2},
		{"\n CONFIG_A=y\n", "f.cfg:2:1: ignored: CONFIG_ must start the line", 0},
		{"CONFIG_A\n", "f.cfg:1:9: ignored: CONFIG_A has no =value", 0},
		{"#CONFIG_A is not set\n", "f.cfg:1:2: ignored: exactly one space", 0},
		{"# CONFIG_A is not set!\n", "f.cfg:1:22: text after \"is not set\"", 1},
		{"# CONFIG_A=y\n# just a comment\n\n", "", 0},
		{"TCP_CONG_BBR=y\n", "f.cfg:1:1: ignored: write CONFIG_TCP_CONG_BBR=y", 0},
		{"CONFIG_A B=y\n", "f.cfg:1:8: ignored: CONFIG_A B is not a symbol name", 0},
		{"CONFIG_A=y\nCONFIG_A=m\n", "f.cfg:2:1: CONFIG_A was set to y on line 1; this line, m, wins", 2},
		{"hello\n", "f.cfg:1:1: ignored: neither", 0},
		{"\x00\xff\n", "f.cfg:1:1: ignored: neither", 0},
	} {
		cfg, problems := kconfig.ReadFragment("f.cfg", []byte(c.text))
		got := ""
		for _, p := range problems {
			got += p.Error() + "\n"
		}
		if len(cfg.Lines) != c.lines || !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q: %d lines, %s", c.text, len(cfg.Lines), got)
		}
	}
}

func TestContradictoryFragmentsAreNamedWithBothPositions(t *testing.T) {
	read := func(name, text string) *kconfig.Config {
		c, _ := kconfig.ReadFragment(name, []byte(text))
		return c
	}
	var got []string
	for _, p := range kconfig.Contradictions(
		read("a.cfg", "CONFIG_PSI=y\r\nCONFIG_KSM=y\r\nCONFIG_HZ_250=y\r\n"),
		read("b.cfg", "CONFIG_PSI=y\n# CONFIG_KSM is not set\n"),
		read("c.cfg", "\nCONFIG_KSM=y\nCONFIG_PSI=y\nCONFIG_PSI=m"),
	) {
		got = append(got, p.Error())
	}
	want := []string{
		"b.cfg:2:1: CONFIG_KSM was set to y at a.cfg:2; this line, n, wins",
		"c.cfg:2:1: CONFIG_KSM was set to n at b.cfg:2; this line, y, wins",
		"c.cfg:4:1: CONFIG_PSI was set to y at b.cfg:1; this line, m, wins",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestParseHundredThousandLinesInLittleMemory(t *testing.T) {
	var b strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&b, "CONFIG_NO_SUCH_SYMBOL_%d=y\r\nCONFIG_PSI=%c\r\n", i, "yn"[i%2])
	}
	text := b.String()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c, problems := kconfig.ReadFragment("big.cfg", []byte(text))
	rep := predict(t, "5.15", text)
	runtime.ReadMemStats(&after)
	if len(c.Lines) != 100_000 || len(problems) != 49_999 || problems[49_998].Line != 100_000 {
		t.Errorf("%d lines, %d problems", len(c.Lines), len(problems))
	}
	if len(rep.Predictions) != 50_001 {
		t.Errorf("%d predictions", len(rep.Predictions))
	}
	if all := (after.TotalAlloc - before.TotalAlloc) >> 20; all > 500 {
		t.Errorf("%d MiB were allocated in all for %d KiB of text", all, len(text)>>10)
	} else {
		t.Logf("%d MiB allocated in all", all)
	}
}

func TestPredictHundredThousandLines(t *testing.T) {
	var b strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&b, "CONFIG_NO_SUCH_SYMBOL_%d=y\n", i)
	}
	b.WriteString("CONFIG_TCP_CONG_BBR=y\n")
	rep := predict(t, "5.15", b.String())
	if len(rep.Predictions) != 100_001 || len(rep.Predictions[100_000].Fix) != 1 {
		t.Errorf("%d predictions", len(rep.Predictions))
	}
}

func BenchmarkPredictSeed(b *testing.B) {
	f, err := kconfig.Open("5.15")
	if err != nil {
		b.Fatal(err)
	}
	cfg, _ := kconfig.ReadFragment("f", []byte("CONFIG_TCP_CONG_BBR=y\nCONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_NO_HZ_FULL=y\n"))
	for b.Loop() {
		f.PredictFragments(cfg)
	}
}
