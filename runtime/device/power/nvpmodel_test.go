package power_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
)

func TestBothSpellingsOfASection(t *testing.T) {
	c, err := power.Parse([]byte(strings.Join([]string{
		"# comment", "", "<PARAM TYPE=CLOCK NAME=EMC >", "MAX_FREQ /sys/kernel/nvpmodel_clk_cap/emc",
		"< POWER_MODEL ID=0 NAME=15W >", "CPU_ONLINE  CORE_0   1", "EMC MAX_FREQ -1",
		"<POWER_MODEL ID=1 NAME=MAXN_SUPER>", "EMC MAX_FREQ 0",
		"< PM_CONFIG DEFAULT=1 >", "< FAN_CONFIG DEFAULT=quiet >",
	}, "\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	if *c.Default != 1 || len(c.Modes) != 2 || c.ModeName(1) != "MAXN_SUPER" || c.ModeName(7) != "" || c.Mode("30W") != nil {
		t.Errorf("%+v", c)
	}
	want := [][3]string{{"CPU_ONLINE", "CORE_0", "1"}, {"EMC", "MAX_FREQ", "-1"}}
	var got [][3]string
	for _, s := range c.Mode("15W").Settings {
		got = append(got, [3]string{s.Param, s.Arg, s.Value})
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestParseErrorHasALineNumber(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "no POWER_MODEL",
		"\n< POWER_MODEL NAME=x >":           "line 2",
		"< POWER_MODEL ID=-1 NAME=x >":       "line 1",
		"< POWER_MODEL ID=0 NAME=x >\nCPU 1": "line 2",
		"< POWER_MODEL ID=0 NAME=x >\n< PM_CONFIG>": "line 2",
		"<>": "line 1",
	} {
		if _, err := power.Parse([]byte(text)); !errors.Is(err, power.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestStatusFileOverridesTheDefault(t *testing.T) {
	dev, err := rootfs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if c, err := power.Read(dev); c != nil || err != nil {
		t.Errorf("no file: %+v, %v", c, err)
	}
	two := 2
	c := &nvpmodel.File{Default: &two}
	if id, err := power.Current(dev, c); id != 2 || err != nil {
		t.Errorf("%d, %v", id, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("< POWER_MODEL ID=0 NAME=15W >\nCPU_ONLINE CORE_0 1\n< PM_CONFIG DEFAULT=0 >\n")
	f.Add("<PARAM TYPE=CLOCK NAME=EMC >\n<>\n< >")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := power.Parse([]byte(text))
		if err != nil && !errors.Is(err, power.ErrConfig) {
			t.Fatal(err)
		}
		if err == nil && len(c.Modes) == 0 {
			t.Fatal("no mode and no error")
		}
	})
}
