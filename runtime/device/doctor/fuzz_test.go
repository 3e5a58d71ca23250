package doctor_test

import (
	"testing"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/doctor"
	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/schema/plan"
)

// Each check has a result for any content of a device's files.
func FuzzExamine(f *testing.F) {
	for _, s := range []string{
		"vm.swappiness = 60\n-net.ipv4.conf.*.rp_filter=2\n", "pswpin 5\n", "259 0 nvme0n1 0 0 0 0 0 0 1 0 0 1 1 0 0\n", "  CPU0 CPU1\n 40: 1 2 x\n",
		"< PARAM TYPE=CLOCK NAME=GPU >\nMAX /sys/x\n", "none [kyber]\n", "Filename Type\n/swapfile file 1\n", "Storage=volatile\n", "ff,ffffffff\n", "0-3,5\n",
	} {
		f.Add(s)
	}
	p := &plan.Plan{Settings: []plan.Setting{
		{Domain: plan.DomainSysctl, Type: plan.TypeInt, Compare: plan.Exact, Want: "10", Select: plan.Select{Path: "/proc/sys/vm/swappiness"}},
	}}
	f.Fuzz(func(t *testing.T, text string) {
		dev := devicetest.UniformDevice(text)
		in := &doctor.Input{Dev: dev, Plan: p, Before: doctor.ReadCounters(dev, 0), After: doctor.ReadCounters(dev, 1e9)}
		in.Modes, _ = power.Read(dev)
		for _, found := range doctor.Examine(in) {
			if found.Verdict == doctor.Unknown && len(found.Advice) > 15 && found.Advice[:15] == "internal error:" {
				t.Errorf("%+v", found)
			}
		}
	})
}
