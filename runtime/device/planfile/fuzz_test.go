package planfile_test

import (
	"testing"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/planfile"
)

// What a power loss or a stranger leaves in the folder of the state is an error or
// nothing, and never a trial or a serial that nobody confirmed.
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
