package monitor_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/monitor"
)

func TestStrainIsHeatPowerOrThrottlingThatIsMeasured(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	zone := func(temp, passive *int64) *monitor.Sample {
		return &monitor.Sample{Zones: []monitor.Zone{{Name: "tj-thermal", Temp: temp, Passive: passive}}}
	}
	rail := func(label string, mw *int64) *monitor.Sample {
		return &monitor.Sample{Rails: []monitor.Rail{{Label: label, Power: mw}}}
	}
	for name, c := range map[string]struct {
		s        *monitor.Sample
		headroom int64
		power    int64
		wantText string
	}{
		"nothing known":      {&monitor.Sample{}, 5000, 15000, ""},
		"cool":               {zone(n(60000), n(99000)), 5000, 0, ""},
		"near the limit":     {zone(n(94500), n(99000)), 5000, 0, "tj-thermal has 94.5 °C"},
		"without headroom":   {zone(n(94500), n(99000)), 0, 0, ""},
		"at the limit":       {zone(n(99000), n(99000)), 0, 0, "tj-thermal"},
		"unknown limit":      {zone(n(120000), nil), 5000, 0, ""},
		"unknown heat":       {zone(nil, n(99000)), 5000, 0, ""},
		"too much power":     {rail("VDD_IN", n(16000)), 0, 15000, "VDD_IN draws 16.0 W, 15.0 W are allowed"},
		"a part's power":     {rail("VDD_CPU_GPU_CV", n(16000)), 0, 15000, ""},
		"no limit of power":  {rail("VDD_IN", n(16000)), 0, 0, ""},
		"unknown power":      {rail("VDD_IN", nil), 0, 15000, ""},
		"the kernel slows":   {&monitor.Sample{Cooling: []monitor.Cooling{{Name: "cpufreq-cpu0", State: n(2), Max: n(10)}}}, 0, 0, "held back by cpufreq-cpu0"},
		"the fan turns only": {&monitor.Sample{Cooling: []monitor.Cooling{{Name: "pwm-fan", State: n(2), Max: n(10)}}}, 0, 0, ""},
	} {
		if got := c.s.Strain(monitor.Limits{Headroom: c.headroom, Power: c.power}); (got == "") != (c.wantText == "") || !strings.Contains(got, c.wantText) {
			t.Errorf("%s: %q, want %q", name, got, c.wantText)
		}
	}
}
