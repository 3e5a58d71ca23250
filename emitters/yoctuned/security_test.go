package yoctuned_test

import (
	"os/exec"
	"testing"
)

// systemd's own figure goes from 0 (little to lose) to 10.
func TestSystemdRatesTheUnitsAsHardened(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skipf("%v: systemd's judgement of the units is missing", err)
	}
	for unit, tenths := range map[string]string{"yoctuned.service": "25", "yoctuned-serve.service": "12", "yoctuned-bench.service": "40", "yoctuned-pipeline@.service": "20"} {
		out, err := exec.Command(analyze, "security", "--offline=yes", "--no-pager", "--threshold="+tenths, "./"+unit).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: above %s tenths\n%s", unit, err, tenths, out)
		}
	}
}
