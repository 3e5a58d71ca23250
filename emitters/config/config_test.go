package config

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/emittest"
)

// An artefact that installs into a folder of its own needs no change of the recipe.
func TestInstalledFoldersArePackaged(t *testing.T) {
	l := emittest.Vision(t)
	for dest, want := range map[string]string{
		"${sysconfdir}/x.d/y.conf":                      "",
		"${systemd_system_unitdir}/x.service.d/50.conf": "",
		"${nonarch_base_libdir}/udev/rules.d/99.rules":  "    ${nonarch_base_libdir}/udev/rules.d \\\n",
		"${nonarch_libdir}/quota/disk.conf":             "    ${nonarch_libdir}/quota \\\n",
	} {
		f := emitters.NewDeviceFile(l, l.Targets[0], "file", dest)
		made, err := Emit(l, []emitters.File{f})
		if err != nil {
			t.Fatal(err)
		}
		recipe := string(made[0].Data)
		_, packages, _ := strings.Cut(recipe, "FILES:${PN} +=")
		if !strings.Contains(packages, want) || want == "" && strings.Count(packages, "\n") != 6 {
			t.Errorf("%s:\n%s", dest, packages)
		}
	}
}
