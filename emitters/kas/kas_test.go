package kas_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/kas"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, kas.Emit) }

// Without a checkout that contains the distribution, bitbake fails at its start.
func TestPokyAddsItsLayer(t *testing.T) {
	for distro, want := range map[string]bool{"poky": true, "poky-altcfg": true, "nodistro": false, "pokyish": false} {
		l := emittest.Vision(t)
		l.Build.Kas.Distro = distro
		files, err := kas.Emit(l)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if got := strings.Contains(string(f.Data), "\n      meta-poky:\n"); got != want {
				t.Errorf("%s: meta-poky is checked out: %t\n%s", distro, got, f.Data)
			}
		}
	}
}
