package enforce_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/schema/plan"
)

// For any content of nodes, tasks, modes and fan files, every setting has an outcome, and none
// is an internal error.
func FuzzVerify(f *testing.F) {
	for _, s := range []string{
		"60\n", "[always] madvise never\n", "4096 87380 6291456\n", "0-3,5\n", "ff,00000003\n", "812 (a) b) S 1 1 1 0 -1\n", "default 100\n",
		"< PARAM TYPE=CLOCK NAME=GPU >\nMAX /sys/x\n< POWER_MODEL ID=0 NAME=A >\nGPU MAX 1\n< PM_CONFIG DEFAULT=0 >\n", "pmode:0000\n",
		"<FAN 1>\nFAN_PROFILE quiet {\n#TEMP HYST PWM RPM\n0 0 255 3000\n}\nTMARGIN ENABLED\n", "cpufreq-cpu0\n",
	} {
		f.Add(s)
	}
	var settings []plan.Setting
	for typ, want := range map[string]string{
		plan.TypeInt: "1", plan.TypeVector: "1 2 3", plan.TypeChoice: "never", plan.TypeCPUList: "0-1", plan.TypeCPUMask: "3", plan.TypeBool: "1", plan.TypeString: "x",
	} {
		s := sysctl("vm.swappiness", want)
		s.Type = typ
		settings = append(settings, s)
	}
	for _, class := range []string{"block", "cpufreq", "devfreq", "net", "irq", "cmdline", "config"} {
		s := sysctl("x", "1")
		s.Select = plan.Select{Class: class, Name: "*", Attr: "scaling_max_freq", Driver: "x"}
		settings = append(settings, s)
	}
	p := planOf(settings...)
	nice := 5
	p.Units = []plan.Unit{{Name: "a.service", Slice: "b-c.slice", CPUs: "0-1", IOWeight: 5, CPUWeight: 5, MemoryMax: 1, Scheduling: "fifo", Priority: 3, Nice: &nice}}
	p.Power = &plan.Power{Default: "A"}
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range enforce.Verify(devicetest.UniformDevice(text), p, options()) {
			if r.Outcome == "" || strings.Contains(r.Message, "internal error") {
				t.Errorf("%+v", r)
			}
		}
	})
}
