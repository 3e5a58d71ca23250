package importer

import (
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
)

// Trap is a known mistake in configuration of these formats. The report points it out
// whatever the line's verdict.
type Trap string

// The traps.
const (
	setTwice         Trap = "set-twice"
	trailingComment  Trap = Trap(nvpmodel.TrailingComment)
	endTag           Trap = Trap(nvpmodel.EndTag)
	undeclaredParam  Trap = Trap(nvpmodel.Undeclared)
	danglingDefault  Trap = Trap(nvpmodel.Dangling)
	repeated         Trap = Trap(nvpmodel.Repeated)
	noPMConfig       Trap = Trap(nvpmodel.NoConfig)
	clockUnit        Trap = "clock-unit"
	clockStep        Trap = "clock-step"
	fanTableTrap     Trap = "fan-table"
	writeOnlySysctl  Trap = "write-only-sysctl"
	movedSysctl      Trap = "moved-sysctl"
	unknownSysctl    Trap = "unknown-sysctl"
	oldOperatorTrap  Trap = "old-operator"
	fusedAppend      Trap = "fused-append"
	renamedVariable  Trap = "renamed-variable"
	unknownVariable  Trap = "unknown-variable"
	recipeVariable   Trap = "recipe-variable"
	lostVariable     Trap = "lost-variable"
	weakVariable     Trap = "weak-assignment"
	doubledOperator  Trap = "doubled-operator"
	removePattern    Trap = "remove-pattern"
	appendedNumber   Trap = "appended-number"
	shellValue       Trap = "shell-in-value"
	foreignLayer     Trap = "foreign-layer"
	lostArguments    Trap = "lost-arguments"
	hiddenAppends    Trap = "hidden-appends"
	refusedFeature   Trap = "refused-feature"
	mirrorURL        Trap = "mirror-url"
	environmentOnly  Trap = "expansion"
	editedConfig     Trap = "edited-config"
	layerPath        Trap = "layer-path"
	packageArch      Trap = "package-arch"
	sysfsScript      Trap = "sysfs-script"
	shellExec        Trap = "shell-exec"
	ignoredFailure   Trap = "ignored-failure"
	udevRun          Trap = "udev-run"
	customInstall    Trap = "modprobe-install"
	repeatedArg      Trap = "repeated-argument"
	kconfigIgnored   Trap = "kconfig-ignored"
	kconfigFull      Trap = "whole-config"
	foreignPowerFile Trap = "foreign-power-file"
)

// Traps describes what goes wrong with each trap.
func Traps() map[Trap]string {
	return map[Trap]string{
		setTwice:         "the setting is written again later, so this line has no effect",
		trailingComment:  "the format has no comments after values: the comment becomes part of the value, or the line is refused",
		endTag:           "nvpmodel.conf has no end tags; guides that show them are wrong",
		undeclaredParam:  "nvpmodel stops half way through a mode when a setting uses an undeclared PARAM",
		danglingDefault:  "the default mode does not exist: the board boots without a mode",
		repeated:         "an id, a name or a setting is in the file twice; which one counts is undefined",
		noPMConfig:       "nvpmodel refuses a file without PM_CONFIG",
		clockUnit:        "CPU clocks are in kHz and all others in Hz; the wrong unit gives a limit that the hardware never reaches, or one below its lowest step",
		clockStep:        "the clock is not a step of the module's table; the driver rounds it",
		fanTableTrap:     "a fan table has four ascending columns; with TMARGIN the temperature is the margin below the limit, so PWM falls along it",
		writeOnlySysctl:  "the write acts once and cannot be read back: it belongs in a script, not in sysctl.d",
		movedSysctl:      "newer kernels have moved this parameter; writing it fails",
		unknownSysctl:    "no kernel in the facts has this parameter, but one has a similar name",
		oldOperatorTrap:  "since honister the operator is :append, :prepend or :remove; the underscore form stops the build or, worse, names a new variable",
		fusedAppend:      ":append, :prepend, .= and =. add no space; without one of its own two words become one",
		weakVariable:     "?= and ??= have no effect on a variable that another line assigns",
		doubledOperator:  "an operation in the name and another one as operator: bitbake applies both, or names a new variable",
		removePattern:    ":remove compares whole words; a pattern removes nothing",
		appendedNumber:   "an appended digit joins the number that is there: 8 and 4 become 84",
		shellValue:       "bitbake starts no shell for a value: the text with $( ) or backquotes is the value",
		foreignLayer:     "the line changes what another layer's layer.conf declares; the file that bitbake reads last wins",
		lostArguments:    "a whole list of kernel arguments replaces the machine's, and those it does not repeat are lost",
		renamedVariable:  "the release refuses the old name: the build stops",
		unknownVariable:  "no layer in the facts has a variable of that name, and one there is spelt almost like it; bitbake ignores it in silence",
		recipeVariable:   "the variable describes one recipe: in configuration it is lost where a recipe assigns it, and wrong for all others",
		lostVariable:     "a file that bitbake reads after local.conf assigns the variable, so the line has no effect",
		hiddenAppends:    "appends without a recipe are ignored in every layer of the build; newer releases refuse the variable",
		refusedFeature:   "the release refuses the feature",
		mirrorURL:        "mirrors are pairs of a pattern and a URL with a scheme; other entries are ignored or malformed",
		environmentOnly:  "bitbake, the shell or tuned computes the value; yoctune reads literal values only",
		editedConfig:     "the kernel's configuration is edited by hand; the next layer with fragments overwrites it",
		layerPath:        "a file is read from the layer's folder without the fetcher: archives, read-only layers and externalsrc break it",
		packageArch:      "allarch with machine-specific content gives packages that collide between machines",
		sysfsScript:      "a script writes kernel files at boot: the result is not checked and cannot be rolled back",
		shellExec:        "a shell between systemd and the program hides failures and signals",
		ignoredFailure:   "a leading - makes systemd ignore a failure of the command",
		udevRun:          "udev kills programs after a time limit, and their result is lost",
		customInstall:    "install replaces the loading of a module with a shell command",
		repeatedArg:      "the argument is given twice; most use the last one, console and earlycon use all",
		kconfigIgnored:   "Kconfig silently ignores the line",
		kconfigFull:      "a whole .config pins every option of one kernel version; only the differences from the kernel's own configuration are kept",
		foreignPowerFile: "PARAM names are labels for paths: they must come from the file of this board and this L4T",
	}
}
