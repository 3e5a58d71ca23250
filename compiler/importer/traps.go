package importer

import (
	"strings"

	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
)

// Trap is a known mistake in configuration of these formats. The report points it out
// whatever the line's verdict.
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

// Traps describes what goes wrong with each trap.
func Traps() map[Trap]string {
	return map[Trap]string{
		SetTwice:         "the setting is written again later, so this line has no effect",
		TrailingComment:  "the format has no comments after values: the comment becomes part of the value, or the line is refused",
		EndTag:           "nvpmodel.conf has no end tags; guides that show them are wrong",
		UndeclaredParam:  "nvpmodel stops half way through a mode when a setting uses an undeclared PARAM",
		DanglingDefault:  "the default is a mode that does not exist: the board boots without one",
		Repeated:         "an id, a name or a setting is in the file twice; which one counts is undefined",
		NoPMConfig:       "nvpmodel refuses a file without PM_CONFIG",
		ClockUnit:        "CPU clocks are in kHz and all others in Hz; the wrong unit gives a limit that the hardware never reaches, or one below its lowest step",
		ClockStep:        "the clock is not a step of the module's table; the driver rounds it",
		FanTable:         "a fan table has four ascending columns; with TMARGIN the temperature is the margin below the limit, so PWM falls along it",
		WriteOnlySysctl:  "the write acts once and cannot be read back: it belongs in a script, not in sysctl.d",
		MovedSysctl:      "newer kernels have moved this parameter; writing it fails",
		UnknownSysctl:    "no kernel in the facts has this parameter, but one has a similar name",
		OldOperator:      "since honister the operator is :append, :prepend or :remove; the underscore form stops the build or, worse, names a new variable",
		FusedAppend:      ":append adds no space; without a leading space two words become one",
		RenamedVariable:  "the release refuses the old name: the build stops",
		HiddenAppends:    "appends without a recipe are ignored in every layer of the build; newer releases refuse the variable",
		RefusedFeature:   "the release refuses the feature",
		MirrorURL:        "mirrors are pairs of a pattern and a URL with a scheme; other entries are ignored or malformed",
		EnvironmentOnly:  "bitbake computes the value; yoctune reads literal values only",
		EditedConfig:     "the kernel's configuration is edited by hand; the next layer with fragments overwrites it",
		LayerPath:        "a file is read from the layer's folder without the fetcher: archives, read-only layers and externalsrc break it",
		PackageArch:      "allarch with machine-specific content gives packages that collide between machines",
		SysfsScript:      "a script writes kernel files at boot: the result is not checked and cannot be rolled back",
		ShellExec:        "a shell between systemd and the program hides failures and signals",
		IgnoredFailure:   "a leading - makes systemd ignore a failure of the command",
		UdevRun:          "udev kills programs after a time limit, and their result is lost",
		CustomInstall:    "install replaces the loading of a module with a shell command",
		RepeatedArg:      "the argument is given twice; most use the last one, console and earlycon use all",
		KconfigIgnored:   "Kconfig silently ignores the line",
		KconfigFull:      "a whole .config pins every option of one kernel version; only the differences from the kernel's own configuration are kept",
		ForeignPowerFile: "PARAM names are labels for paths: they must come from the file of this board and this L4T",
	}
}

// trapOf finds the trap of a problem in a power mode file.
func trapOf(t nvpmodel.Trap) Trap { return Trap(strings.TrimSpace(string(t))) }
