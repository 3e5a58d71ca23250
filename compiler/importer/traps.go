package importer

import (
	"strings"

	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
)

// Trap names a mistake that configuration of these formats is known for. The
// report points it out, whatever became of the line.
type Trap string

// The traps.
const (
	SetTwice         Trap = "set-twice"
	TrailingComment  Trap = Trap(nvpmodel.TrailingComment)
	EndTag           Trap = Trap(nvpmodel.EndTag)
	UndeclaredParam  Trap = Trap(nvpmodel.Undeclared)
	DanglingDefault  Trap = Trap(nvpmodel.Dangling)
	Repeated         Trap = Trap(nvpmodel.Repeated)
	NoPMConfig       Trap = Trap(nvpmodel.NoConfig)
	ClockUnit        Trap = "clock-unit"
	ClockStep        Trap = "clock-step"
	FanTable         Trap = "fan-table"
	WriteOnlySysctl  Trap = "write-only-sysctl"
	MovedSysctl      Trap = "moved-sysctl"
	UnknownSysctl    Trap = "unknown-sysctl"
	OldOperator      Trap = "old-operator"
	FusedAppend      Trap = "fused-append"
	RenamedVariable  Trap = "renamed-variable"
	HiddenAppends    Trap = "hidden-appends"
	RefusedFeature   Trap = "refused-feature"
	MirrorURL        Trap = "mirror-url"
	EnvironmentOnly  Trap = "expansion"
	EditedConfig     Trap = "edited-config"
	LayerPath        Trap = "layer-path"
	PackageArch      Trap = "package-arch"
	SysfsScript      Trap = "sysfs-script"
	ShellExec        Trap = "shell-exec"
	IgnoredFailure   Trap = "ignored-failure"
	UdevRun          Trap = "udev-run"
	CustomInstall    Trap = "modprobe-install"
	RepeatedArg      Trap = "repeated-argument"
	KconfigIgnored   Trap = "kconfig-ignored"
	KconfigFull      Trap = "whole-config"
	ForeignPowerFile Trap = "foreign-power-file"
)

// Traps says of every trap what goes wrong.
func Traps() map[Trap]string {
	return map[Trap]string{
		SetTwice:         "the same thing is set again later, so this line has no effect",
		TrailingComment:  "the format knows no comment behind a value: the comment becomes part of it, or the line is refused",
		EndTag:           "nvpmodel.conf has no end tags; guides that show them were not taken from a file",
		UndeclaredParam:  "nvpmodel abandons a mode half way when a setting names what no PARAM section declares",
		DanglingDefault:  "the default is a mode that does not exist: the board boots without one",
		Repeated:         "an id, a name or a setting stands in the file twice; which one counts is an accident",
		NoPMConfig:       "nvpmodel refuses a file without PM_CONFIG",
		ClockUnit:        "CPU clocks are in kHz and all others in Hz; a number of the wrong size is a limit the hardware never reaches, or one below its lowest step",
		ClockStep:        "the clock is no step of the module's table; the driver rounds it",
		FanTable:         "a fan table has four ascending columns; with TMARGIN the temperature is the margin below the limit, so PWM falls along it",
		WriteOnlySysctl:  "the write does something once and cannot be read back: it belongs in a script, not in sysctl.d",
		MovedSysctl:      "newer kernels have this parameter elsewhere; writing it fails",
		UnknownSysctl:    "no kernel that was read has a parameter of this name, but one of a similar name",
		OldOperator:      "since honister the operator is :append, :prepend or :remove; the underscore form stops the build or, worse, names a new variable",
		FusedAppend:      ":append adds no blank; without a leading one the words melt together",
		RenamedVariable:  "the release refuses the old name: the build stops",
		HiddenAppends:    "appends whose recipe is gone are passed over in every layer of the build; newer releases refuse the variable",
		RefusedFeature:   "the release refuses the feature",
		MirrorURL:        "mirrors are pairs of a pattern and a URL with a scheme; anything else is ignored or malformed",
		EnvironmentOnly:  "the value is computed by bitbake; yoctune takes what is written out",
		EditedConfig:     "the kernel's configuration is edited by hand; the next layer that uses fragments wipes it",
		LayerPath:        "a file is taken from the layer's folder around the fetcher: archives, read-only layers and externalsrc break it",
		PackageArch:      "allarch together with something machine specific gives packages that collide between machines",
		SysfsScript:      "a script writes kernel files at boot: nobody checks the result, and nothing puts it back",
		ShellExec:        "a shell between systemd and the program hides failures and signals",
		IgnoredFailure:   "a leading - makes systemd ignore that the command failed",
		UdevRun:          "programs run by udev are killed after a while, and nobody sees their result",
		CustomInstall:    "install replaces loading a module by a shell command",
		RepeatedArg:      "the argument is given twice; most take the last one, console and earlycon take all",
		KconfigIgnored:   "kconfig ignores the line without a word",
		KconfigFull:      "a whole .config pins every option of one kernel version; only what differs from the kernel's own configuration is kept",
		ForeignPowerFile: "PARAM names are labels for paths: they must come from the file of this board and this L4T",
	}
}

// trapOf finds the trap of a problem in a power mode file.
func trapOf(t nvpmodel.Trap) Trap { return Trap(strings.TrimSpace(string(t))) }
