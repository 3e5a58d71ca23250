// Package assemble lists the emitters and puts a layer together.
package assemble

import (
	"fmt"
	"path"
	"sort"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/bbsetup"
	"github.com/yoctune/yoctune/emitters/config"
	"github.com/yoctune/yoctune/emitters/cuda"
	"github.com/yoctune/yoctune/emitters/fan"
	"github.com/yoctune/yoctune/emitters/hashserv"
	"github.com/yoctune/yoctune/emitters/kas"
	"github.com/yoctune/yoctune/emitters/kernel"
	"github.com/yoctune/yoctune/emitters/layerconf"
	"github.com/yoctune/yoctune/emitters/models"
	"github.com/yoctune/yoctune/emitters/modules"
	"github.com/yoctune/yoctune/emitters/optional"
	"github.com/yoctune/yoctune/emitters/packagegroup"
	"github.com/yoctune/yoctune/emitters/planfile"
	"github.com/yoctune/yoctune/emitters/power"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/emitters/readme"
	"github.com/yoctune/yoctune/emitters/settings"
	"github.com/yoctune/yoctune/emitters/sysctl"
	"github.com/yoctune/yoctune/emitters/tmpfiles"
	"github.com/yoctune/yoctune/emitters/udev"
	"github.com/yoctune/yoctune/emitters/units"
	"github.com/yoctune/yoctune/emitters/yoctuned"
	"github.com/yoctune/yoctune/emitters/zram"
	"github.com/yoctune/yoctune/schema/plan"
)

// Emitters lists every artefact of its own. Two more describe the others and
// come after them: config, the recipe that installs files on the device, and
// readme.
func Emitters() []emitters.Emitter {
	return []emitters.Emitter{
		{Name: "layerconf", Emit: layerconf.Emit},
		{Name: "settings", Emit: settings.Emit},
		{Name: "kernel", Emit: kernel.Emit},
		{Name: "power", Emit: power.Emit},
		{Name: "fan", Emit: fan.Emit},
		{Name: "sysctl", Emit: sysctl.Emit},
		{Name: "udev", Emit: udev.Emit},
		{Name: "tmpfiles", Emit: tmpfiles.Emit},
		{Name: "modules", Emit: modules.Emit},
		{Name: "zram", Emit: zram.Emit},
		{Name: "units", Emit: units.Emit},
		{Name: "planfile", Emit: planfile.Emit},
		{Name: "yoctuned", Emit: yoctuned.Emit},
		{Name: "cuda", Emit: cuda.Emit},
		{Name: "models", Emit: models.Emit},
		{Name: "packagegroup", Emit: packagegroup.Emit},
		{Name: "optional", Emit: optional.Emit},
		{Name: "kas", Emit: kas.Emit},
		{Name: "bbsetup", Emit: bbsetup.Emit},
		{Name: "hashserv", Emit: hashserv.Emit},
	}
}

// Emit returns all files of the layer, sorted by path. A refusal is an
// [*emitters.Error].
func Emit(l *plan.Layer) ([]emitters.File, error) {
	if err := emitters.CheckNames(l); err != nil {
		return nil, err
	}
	var files []emitters.File
	for _, e := range Emitters() {
		fs, err := e.Emit(l)
		if err != nil {
			return nil, err
		}
		files = append(files, fs...)
	}
	for _, describe := range []func(*plan.Layer, []emitters.File) ([]emitters.File, error){config.Emit, readme.Emit} {
		fs, err := describe(l, files)
		if err != nil {
			return nil, err
		}
		files = append(files, fs...)
	}
	emitters.Complete(l, files)
	sort.Slice(files, func(i, j int) bool { return files[i].Path < files[j].Path })
	return files, check(files)
}

// check refuses paths that leave the layer, and two files that are one on a file
// system that folds case.
func check(files []emitters.File) error {
	seen := map[string]string{}
	for _, f := range files {
		if f.Path == "." || path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || strings.HasPrefix(f.Path, "../") {
			return fmt.Errorf("file path %q is not a clean path inside the layer", f.Path)
		}
		for part := range strings.SplitSeq(f.Path, "/") {
			// %.bbappend is bitbake's wildcard for the version.
			if _, err := quote.FileName(strings.Replace(part, "_%.bbappend", "_.bbappend", 1)); err != nil {
				return fmt.Errorf("file path %q: %w", f.Path, err)
			}
		}
		folded := strings.ToLower(f.Path)
		if other, taken := seen[folded]; taken {
			return fmt.Errorf("%s and %s would be one file", other, f.Path)
		}
		seen[folded] = f.Path
	}
	return nil
}
