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
	"github.com/yoctune/yoctune/emitters/onnxruntime"
	"github.com/yoctune/yoctune/emitters/optional"
	"github.com/yoctune/yoctune/emitters/packagegroup"
	"github.com/yoctune/yoctune/emitters/planfile"
	"github.com/yoctune/yoctune/emitters/power"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/emitters/readme"
	"github.com/yoctune/yoctune/emitters/settings"
	"github.com/yoctune/yoctune/emitters/sysctl"
	"github.com/yoctune/yoctune/emitters/tmpfiles"
	"github.com/yoctune/yoctune/emitters/tmpfs"
	"github.com/yoctune/yoctune/emitters/udev"
	"github.com/yoctune/yoctune/emitters/units"
	"github.com/yoctune/yoctune/emitters/yoctuned"
	"github.com/yoctune/yoctune/emitters/zram"
	"github.com/yoctune/yoctune/schema/plan"
)

// emit makes the files of one artefact.
type emit func(*plan.Layer) ([]emitters.File, error)

// artefacts lists the emitters.
func artefacts() []emit {
	return []emit{
		layerconf.Emit,
		settings.Emit,
		kernel.Emit,
		power.Emit,
		fan.Emit,
		sysctl.Emit,
		udev.Emit,
		tmpfiles.Emit,
		modules.Emit,
		zram.Emit,
		tmpfs.Emit,
		units.Emit,
		planfile.Emit,
		yoctuned.Emit,
		cuda.Emit,
		models.Emit,
		onnxruntime.Emit,
		optional.Emit,
		kas.Emit,
		bbsetup.Emit,
		hashserv.Emit,
	}
}

// summary makes the files that depend on those of the artefacts.
type summary func(*plan.Layer, []emitters.File) ([]emitters.File, error)

// summaries lists them: what the image needs, what the device gets, and the
// document of the layer, which names the files before it.
func summaries() []summary { return []summary{packagegroup.Emit, config.Emit, readme.Emit} }

// Emit returns all files of the layer, sorted by path, with all that the manifest
// records about them. A refusal is an [*emitters.Error].
func Emit(l *plan.Layer) ([]emitters.File, error) { return EmitHeld(l, nil) }

// EmitHeld is Emit, and keeps in memory only the contents that hold, unless it is nil, does not
// take: those of a layer for a thousand machines have tens of megabytes.
func EmitHeld(l *plan.Layer, hold emitters.Hold) ([]emitters.File, error) {
	files, err := write(l, true, hold)
	if err != nil {
		return nil, err
	}
	emitters.Complete(l, files)
	return files, nil
}

// Check returns the refusal that Emit would return.
func Check(l *plan.Layer) error {
	_, err := write(l, false, nil)
	return err
}

// write returns the files of the layer, sorted by path, as their emitters leave them. Without
// content, the files lack what no refusal depends on: their bytes and the variables in them.
func write(l *plan.Layer, content bool, hold emitters.Hold) ([]emitters.File, error) {
	if err := emitters.CheckNames(l); err != nil {
		return nil, err
	}
	var files []emitters.File
	for _, e := range artefacts() {
		more, err := e(l)
		if err != nil {
			return nil, err
		}
		for i := range more {
			switch {
			case !content:
				more[i].DropContent()
			case hold != nil:
				more[i].HoldContent(hold)
			}
		}
		files = append(files, more...)
	}
	if content {
		emitters.ReadVariables(l, files)
	}
	for _, s := range summaries() {
		more, err := s(l, files)
		if err != nil {
			return nil, err
		}
		for i := range more {
			if hold != nil {
				more[i].HoldContent(hold)
			}
		}
		files = append(files, more...)
	}
	sort.Slice(files, func(i, j int) bool { return files[i].Path < files[j].Path })
	return files, checkPaths(files)
}

// checkPaths refuses paths that leave the layer, and two files that are one on a file
// system that folds case.
func checkPaths(files []emitters.File) error {
	seen := map[string]string{}
	for _, f := range files {
		if f.Path == "." || path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || strings.HasPrefix(f.Path, "../") {
			return fmt.Errorf("file path %q is not a clean path inside the layer", f.Path)
		}
		for part := range strings.SplitSeq(f.Path, "/") {
			// %.bbappend is bitbake's wildcard for the version; ~ is part of a version.
			plain := strings.Replace(part, "_%.bbappend", "_.bbappend", 1)
			if strings.HasSuffix(part, ".bb") {
				plain = strings.ReplaceAll(plain, "~", ".")
			}
			if _, err := quote.FileName(plain); err != nil {
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
