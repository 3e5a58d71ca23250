// Package emitters turns a resolved [plan.Layer] into the files of a Yocto
// layer. Each artefact is a package of its own below this one, with its template
// beside its Go file; this package holds what they share, and package assemble
// lists them.
//
// Emitters are pure: they read no file, clock, host name or environment,
// so the same layer gives the same bytes.
package emitters

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/facts/recipe"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/plan"
)

// File is one file of the layer.
type File struct {
	Path    string      // relative, slash separated, inside the layer
	Mode    fs.FileMode // 0644 or 0755
	Data    []byte
	Machine string    // MACHINE that it is for, "" for all
	Means   []Meaning // what it does
	Origins []Ref     // parts of the configuration that caused it
	From    []string  // FILE:LINE of those that no meaning has; see [Complete]
	Needs   []Need    // packages that the image needs with it
	// A program under development: its bytes depend on the build machine, and its
	// version identifies it.
	Unreleased bool
	Install    *Install // set on files that the config recipe installs on the device
	Held       string   // SHA-256 of a content that a folder holds, in place of Data; see [Hold]

	causes []cause
	read   bool // Means has the variables
}

// DropContent drops what a refusal does not depend on, to save memory.
func (f *File) DropContent() { f.Data, f.causes = nil, nil }

// Hold takes the content of a file out of memory if a folder holds the same: it then returns the
// SHA-256, in hexadecimal. Otherwise it returns "".
type Hold func(path string, content []byte) string

// HoldContent replaces the content by what hold returns. Files whose variables are read keep it.
func (f *File) HoldContent(hold Hold) {
	if IsBitBake(f.Path) || f.Unreleased {
		return
	}
	if f.Held = hold(f.Path, f.Data); f.Held != "" {
		f.Data = nil
	}
	f.causes = nil
}

// PipelineUnit is the systemd unit that runs a pipeline.
func PipelineUnit(name string) string { return "yoctuned-pipeline@" + name + ".service" }

// Need is a package that the layer's package group adds to an image.
type Need struct {
	Package string
	Machine string // "" for every target
	ID      string // part of the configuration behind it
	Weak    bool   // recommended only: it may not exist
}

// KernelModule is the need of a kernel module, which may be built in instead.
func KernelModule(name, machine, id string) Need {
	return Need{Package: linux.PackageOf(name), Machine: machine, ID: id, Weak: true}
}

// Install is where the config recipe puts a file on the device.
type Install struct {
	Dest string // path in bitbake's directory variables, e.g. ${sysconfdir}/sysctl.d/95-yoctune.conf
	Unit string // systemd unit to enable at boot, or ""
}

// DevicePath is Dest on a device: without bitbake's directory variables.
func (i *Install) DevicePath() string { return deviceFolders.Replace(i.Dest) }

var deviceFolders = strings.NewReplacer(
	"${sysconfdir}", "/etc", "${systemd_system_unitdir}", "/usr/lib/systemd/system", "${nonarch_libdir}", "/usr/lib",
	"${libdir}", "/usr/lib", "${nonarch_base_libdir}", "/usr/lib", "${datadir}", "/usr/share", "${bindir}", "/usr/bin",
)

// Ref names a part of a target ("" for the layer itself) by its id.
type Ref struct {
	Target string
	ID     string
}

// Error is a refusal of an emitter, with the part of the configuration it is
// about. Err is often a [*quote.Error].
type Error struct {
	Emitter string
	Ref     Ref
	Err     error
}

func (e *Error) Error() string {
	at := e.Ref.ID
	if e.Ref.Target != "" {
		at = "target " + e.Ref.Target + ": " + at
	}
	return fmt.Sprintf("%s: %s: %v", e.Emitter, at, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Position returns the position of ref in the configuration. A part without a
// position has that of the nearest part around it.
func Position(l *plan.Layer, ref Ref) (plan.Position, bool) {
	origins := l.Origins
	if t := l.FindTarget(ref.Target); t != nil {
		origins = t.Origins
	}
	for id := ref.ID; id != ""; {
		if p, ok := origins[id]; ok {
			return p, true
		}
		i := strings.LastIndexByte(id, '.')
		if i < 0 {
			break
		}
		id = id[:i]
	}
	return plan.Position{}, false
}

// ConfigDir is the folder of the layer's config recipe.
func ConfigDir(l *plan.Layer) string {
	return "recipes-yoctune/yoctune-" + l.Name + "-config"
}

// MachineFolder is the folder below files/ of what a recipe takes for one machine. bitbake finds
// it by the override that the layer defines for that machine alone: the machine's own name is
// also an override of the machines that are derived from it.
func MachineFolder(machine string) string { return quote.OverridePrefix + machine }

// FolderMachine returns the machine of a folder below files/. Layers of yoctune 0.1 have folders with
// the machine's own name.
func FolderMachine(folder string) string { return strings.TrimPrefix(folder, quote.OverridePrefix) }

// NewDeviceFile makes a file that the config recipe installs: name beside the
// recipe, dest on the device of target t.
func NewDeviceFile(l *plan.Layer, t *plan.Target, name, dest string) File {
	return File{
		Path:    path.Join(ConfigDir(l), "files", MachineFolder(t.Machine), name),
		Mode:    0o644,
		Machine: t.Machine,
		Install: &Install{Dest: dest},
	}
}

// CheckNames refuses a layer whose names cannot be part of a path or of a
// bitbake name. Call it before joining paths.
func CheckNames(l *plan.Layer) error {
	if _, err := quote.LayerName(l.Name); err != nil {
		return &Error{Emitter: "layer", Ref: Ref{ID: "layer.name"}, Err: err}
	}
	// Two collections of one name are one to bitbake, with the files of the second.
	if recipe.IsLayer(l.Release, l.Name) {
		return &Error{Emitter: "layer", Ref: Ref{ID: "layer.name"},
			Err: fmt.Errorf("%q is the name of another layer; choose another", l.Name)}
	}
	machines := map[string]string{}
	for _, t := range l.Targets {
		ref := Ref{Target: t.Name, ID: "machine"}
		if _, err := quote.BitBakeMachine(t.Machine); err != nil {
			return &Error{Emitter: "layer", Ref: ref, Err: err}
		}
		if other, taken := machines[t.Machine]; taken {
			return &Error{Emitter: "layer", Ref: ref, Err: fmt.Errorf("machine %q is also that of target %q; build them one at a time", t.Machine, other)}
		}
		machines[t.Machine] = t.Name
	}
	return nil
}

// Release finds the facts of the layer's release.
func Release(l *plan.Layer) (release.Release, error) {
	r, ok := release.Lookup(l.Release)
	if !ok {
		return r, &Error{Emitter: "layer", Ref: Ref{ID: "release"}, Err: fmt.Errorf(
			"release %q is not known; it is one of %s", l.Release, strings.Join(release.Names(), ", "))}
	}
	if l.CoreOnly {
		r, _ = r.WithoutBSP() // the compiler refuses branches that only meta-tegra has
	}
	return r, nil
}
