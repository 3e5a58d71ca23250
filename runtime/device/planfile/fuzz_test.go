package planfile_test

import (
	"testing"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/planfile"
)

// Damaged or foreign state files lead to an error or are ignored. They never become a trial or a
// confirmed serial.
func FuzzState(f *testing.F) {
	for _, s := range []string{"", "7\n", "-1\n", `{"target":"a","serial":1}`, `{"boots":["a","b"]}`, "{", "null"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		dev := devicetest.UniformDevice(text)
		serials, err := planfile.Confirmed(dev)
		if err != nil && len(serials) > 0 {
			t.Errorf("%v, and %v are confirmed", err, serials)
		}
		_, _ = planfile.ReadTrial(dev)
		_, _ = planfile.ReadBoot(dev)
	})
}
