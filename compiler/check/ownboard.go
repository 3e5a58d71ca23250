package check

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/formats/boardfile"
	"github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/schema/units"
)

// exampleBoard is a board of one's own in the examples of rules; the tests have its file.
const exampleBoard = "boards: mine: {facts: \"boards/mine.json\", machines: scarthgap: [\"qemuarm64\"]}\ntargets: cam: {board: \"mine\", kernel: {recipe: \"linux-yocto\", version: \"6.12\"}, "

func ownBoardRules() []Rule {
	return []Rule{
		{
			ID: "board-jetson", Severity: diag.Error, Firm: true,
			Title: "the board has no part of a Jetson that the field needs",
			Cause: "A board file describes a device without NVIDIA's BSP: it has no nvpmodel with stock modes, no nvfancontrol, no memory controller clock of NVIDIA's, and no CUDA.",
			Fix:   "remove the field",
			Wrong: exampleBoard + `fan: profile: "quiet"}`, Right: exampleBoard + `cpu: governor: "performance"}`,
			See: "yoctuned probe --help",
			run: checkBoardJetson,
		},
		{
			ID: "board-devfreq", Severity: diag.Error,
			Title: "the field is for boards with a board file",
			Cause: "devfreq, and devfreq and thermal of a power mode, name devices that only a board file lists. On a Jetson nvpmodel writes the same clocks.",
			Fix:   "use gpu, or gpu of a power mode",
			Wrong: `devfreq: "*.gpu": max: "510MHz"`, Right: `gpu: max: "510MHz"`,
			See: "yoctuned probe --help",
			run: checkBoardDevfreq,
		},
		{
			ID: "board-device", Severity: diag.Warning,
			Title: "no device of the board has the name",
			Cause: "The board file lists the block devices, network interfaces, interrupts, devfreq devices and thermal zones of one device. A setting for another name waits for a device that may never appear.",
			Fix:   "use a name that the board file has, or probe a device that has it",
			Wrong: exampleBoard + `storage: "nvme*": scheduler: "none"}`, Right: exampleBoard + `storage: "vd*": scheduler: "none"}`,
			See: "yoctuned probe --help",
			run: checkBoardDevice,
		},
		{
			ID: "board-value", Severity: diag.Error,
			Title: "the device does not offer the value",
			Cause: "The kernel of the device lists what it accepts: governors, schedulers, energy preferences, ranges of clocks, trip points that can be written. It refuses other values or rounds them.",
			Fix:   "choose a value that the board file has",
			Wrong: exampleBoard + `power: modes: COOL: thermal: "gpu-thermal": passive: 70}`, Right: exampleBoard + `power: modes: COOL: thermal: "cpu-thermal": passive: 70}`,
			See: "yoctuned probe --help",
			run: checkBoardValue,
		},
		{
			ID: "board-runtime", Severity: diag.Error, Firm: true,
			Title: "the layer's program is for another architecture",
			Cause: "The programs that layers contain or fetch are built for 64-bit Arm.",
			Fix:   `use runtime: form: "none", or a device of that architecture`,
			Wrong: strings.Replace(exampleBoard, "boards/mine.json", "boards/x86.json", 1) + `sysctl: "vm.swappiness": 10}`, Right: exampleBoard + `sysctl: "vm.swappiness": 10}`,
			See: "yoctuned probe --help",
			run: checkBoardRuntime,
		},
		{
			ID: "board-args", Severity: diag.Warning,
			Title: "it is unknown whether the boot loader takes kernel arguments from the layer",
			Cause: "Kernel arguments go into the variables that openembedded-core's boot loaders read: APPEND of grub-efi, systemd-boot and syslinux, UBOOT_EXTLINUX_KERNEL_ARGS of extlinux, QB_KERNEL_CMDLINE_APPEND of runqemu. A BSP with a boot script of its own reads another one.",
			Fix:   "compare /proc/cmdline of the device; yoctuned verify reports an argument that is missing",
			Wrong: exampleBoard + `kernel: args: quiet: true}`, Right: exampleBoard + `sysctl: "vm.swappiness": 10}`,
			See: "openembedded-core classes-recipe/*-cfg.bbclass, uboot-extlinux-config.bbclass, qemuboot.bbclass",
			run: checkBoardArgs,
		},
		{
			ID: "kernel-version", Severity: diag.Warning,
			Title: "the release has no such version of the kernel's recipe",
			Cause: "The layer sets PREFERRED_VERSION. Where no recipe has that version, bitbake notes it once and builds another one, for which nothing here was checked.",
			Fix:   "write a version that the release has, or name the recipe of your own layer",
			Wrong: exampleBoard + `sysctl: "vm.swappiness": 10}`, Right: strings.Replace(exampleBoard, "6.12", "6.6", 1) + `sysctl: "vm.swappiness": 10}`,
			See: "openembedded-core meta/recipes-kernel/linux",
			run: checkKernelVersion,
		},
		{
			ID: "kernel-tables", Severity: diag.Warning,
			Title: "the facts have no tables of the kernel",
			Cause: "Options, arguments, modules and parameters of a kernel are checked against tables extracted from its source. They exist for some version lines only. On others the tables of the lines before and after decide about names, and about values on which these agree; an option that is wrong is found by the build.",
			Fix:   "check the names against the kernel's documentation",
			Wrong: strings.Replace(exampleBoard, "6.12", "6.6", 1) + `kernel: config: ZRAM: "y"}`, Right: exampleBoard + `kernel: config: ZRAM: "y"}`,
			See: "yoctune kernel index --help",
			run: checkKernelTables,
		},
	}
}

// each calls do for the fields that are set.
func each(do func(config.Place), fields ...config.Part) {
	for _, f := range fields {
		if at := f.Where(); at.IsSet() {
			do(at)
		}
	}
}

func checkKernelVersion(s *subject) {
	recipe, version := s.Config.Kernel.Recipe, s.Config.Kernel.Version
	have := s.Release.KernelVersions(recipe.Text)
	if !version.IsSet() || len(have) == 0 || slices.ContainsFunc(have, func(v string) bool { return version.Text == v || strings.HasPrefix(version.Text, v+".") }) {
		return
	}
	s.reportAt(version, version.Show(), fmt.Sprintf("write %q, or name the recipe of your own layer", have[len(have)-1]), "%s of %s has %s, not %s", recipe.Text, s.Release.Name, strings.Join(have, " and "), version.Text)
}

func checkBoardJetson(s *subject) {
	if !s.IsOwn() {
		return
	}
	refuse := func(what, help string, fields ...config.Part) {
		each(func(at config.Place) { s.reportKey(at, help, "%s has no %s", s.Board.ID, what) }, fields...)
	}
	c := s.Config
	refuse("nvpmodel, whose table this is", "remove it: yoctuned holds the modes", c.Power.Table)
	if len(c.Power.Modes.Entries) == 0 {
		refuse("stock power modes", "define the mode under power.modes", c.Power.Default, c.Power.Adaptive)
	}
	for _, m := range c.Power.Modes.Entries {
		refuse("stock power modes", "remove it: a limit that the mode leaves out is the hardware's", m.From)
		refuse("GPU of NVIDIA's", "name its device under devfreq", m.GPU)
		refuse("memory controller clock of NVIDIA's", "name its device under devfreq", m.EMC)
	}
	refuse("nvfancontrol", "", c.Fan)
	refuse("memory controller clock of NVIDIA's", "name its device under devfreq", c.Memory.EMC)
	refuse("GPU of NVIDIA's", "name its device under devfreq", c.GPU)
	if c.Runtime.CUDA.On {
		refuse("CUDA", "", c.Runtime.CUDA)
	}
	for _, p := range c.Pipelines.Entries {
		refuse("CUDA", "", p.GPUs, p.Kernels)
		for _, stage := range p.Stages.Entries {
			if pipeline.MayBeGPU(stage.Device.Text) {
				refuse("CUDA", `remove it: stages run on the CPU`, stage.Device)
			}
			for _, provider := range stage.Providers.Items {
				if provider.Text != "cpu" {
					s.reportAt(provider, provider.Show(), `use "cpu"`, "%s has no CUDA", s.Board.ID)
				}
			}
		}
	}
}

func checkBoardDevfreq(s *subject) {
	if s.IsOwn() {
		return
	}
	report := func(at config.Place) {
		s.reportKey(at, "", "%s is a module with nvpmodel, and not a board that a board file describes", s.Board.ID)
	}
	each(report, s.Config.Devfreq)
	for _, m := range s.Config.Power.Modes.Entries {
		each(report, m.Devfreq, m.Thermal)
	}
}

// named checks the names of a map against those of the board.
func (s *subject) named(part config.Part, kind string, names []string) {
	glob := part.Where().Key()
	if slices.ContainsFunc(names, func(name string) bool { return matches(glob, name) || matches(name, glob) }) {
		return
	}
	help := "the board file has none"
	if len(names) > 0 {
		help = "the board file has " + strings.Join(names[:min(len(names), 12)], ", ")
	}
	if near := diag.Nearest(glob, names); near != "" {
		help = fmt.Sprintf("did you mean %q?", near)
	}
	s.reportKey(part, help, "%s has no %s called %s", s.Board.ID, kind, glob)
}

func matches(glob, name string) bool {
	ok, err := path.Match(glob, name)
	return ok && err == nil
}

func checkBoardDevice(s *subject) {
	if s.File == nil {
		return
	}
	f := s.File
	blocks, interfaces, devices, zones := namesOf(f.Block, func(b boardfile.Block) string { return b.Name }), namesOf(f.Network, func(n boardfile.Interface) string { return n.Name }),
		namesOf(f.Devfreq, func(d boardfile.Devfreq) string { return d.Name }), namesOf(f.Zones, func(z boardfile.Zone) string { return z.Type })
	for _, e := range s.Config.Storage.Entries {
		s.named(e, "block device", blocks)
	}
	for _, e := range s.Config.Network.Entries {
		s.named(e, "network interface", interfaces)
	}
	for _, e := range s.Config.IRQ.Affinity.Entries {
		s.named(*e, "interrupt", f.IRQs)
	}
	for _, e := range s.Config.Devfreq.Entries {
		s.named(e, "devfreq device", devices)
	}
	for _, m := range s.Config.Power.Modes.Entries {
		for _, e := range m.Devfreq.Entries {
			s.named(e, "devfreq device", devices)
		}
		for _, e := range m.Thermal.Entries {
			s.named(e, "thermal zone", zones)
		}
	}
}

func namesOf[T any](all []T, name func(T) string) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = name(v)
	}
	return out
}

func checkBoardValue(s *subject) {
	if s.File == nil {
		return
	}
	s.checkCPUValues()
	s.checkHugePages()
	for _, e := range s.Config.Storage.Entries {
		for _, b := range s.File.Block {
			if matches(e.Key(), b.Name) {
				s.offered(e.Scheduler, b.Schedulers, "scheduler of "+b.Name, diag.Warning) // a module may bring it
			}
		}
	}
	for _, e := range s.Config.Devfreq.Entries {
		s.checkDevfreq(e.Key(), e.ClockLimits)
		for _, d := range s.File.Devfreq {
			if matches(e.Key(), d.Name) {
				s.offered(e.Governor, d.Governors, "governor of "+d.Name, diag.Warning)
			}
		}
	}
	for _, m := range s.Config.Power.Modes.Entries {
		for _, e := range m.Devfreq.Entries {
			s.checkDevfreq(e.Key(), *e)
		}
		for _, zone := range m.Thermal.Entries {
			s.checkTrip(zone)
		}
	}
}

// offered checks a value against the list that the device reports; an empty list is not known.
func (s *subject) offered(v config.String, list []string, what string, severity diag.Severity) {
	if !v.IsSet() || len(list) == 0 || slices.Contains(list, v.Text) {
		return
	}
	s.raise(v, "%q is no %s", v.Text, what).withValue(v.Show())
	f := s.found[len(s.found)-1]
	f.Help, f.Severity = "the device offers "+strings.Join(list, ", "), min(severity, f.Severity)
}

// checkHugePages compares the sizes of reserved pages with those of the device's kernel.
func (s *subject) checkHugePages() {
	if s.File.Memory == nil || len(s.File.Memory.HugePages) == 0 {
		return
	}
	var offered []string
	for _, n := range s.File.Memory.HugePages {
		offered = append(offered, units.Size(n))
	}
	for _, pages := range s.Config.Memory.Hugepages.Entries {
		if !slices.Contains(offered, pages.Key()) {
			s.reportKey(pages, "the device offers "+strings.Join(offered, ", "), "the kernel of %s has no pages of %s", s.Board.ID, pages.Key())
		}
	}
}

func (s *subject) checkCPUValues() {
	c := &s.Config.CPU
	if len(s.File.CPUs.Policies) == 0 {
		for _, at := range []config.Place{c.Governor.Place, c.Min.Place, c.Max.Place, c.EPP.Place} {
			if at.IsSet() {
				s.reportAt(at, at.Show(), "remove it, or probe the device with a kernel that has the driver", "%s has no cpufreq: its kernel scales no clock", s.Board.ID)
			}
		}
	}
	for _, p := range s.File.CPUs.Policies {
		// A module of the kernel may bring a governor.
		s.offered(c.Governor, p.Governors, "governor of cores "+p.CPUs, diag.Warning)
		s.offered(c.EPP, p.EPP, "energy preference of cores "+p.CPUs, diag.Error)
	}
	if c.Boost.IsSet() && !s.File.CPUs.Boost && s.IsOwn() {
		s.reportAt(c.Boost, c.Boost.Show(), "remove it", "the cpufreq driver of %s cannot switch boosting", s.Board.ID)
	}
	fields := []config.Frequency{c.Min, c.Max}
	for _, m := range s.Config.Power.Modes.Entries {
		fields = append(fields, m.CPU.Min, m.CPU.Max)
	}
	if low, high := s.Board.CPU.Min, s.Board.CPU.Max; s.IsOwn() && len(s.Board.CPUkHz) == 0 && low != nil && high != nil {
		for _, f := range fields {
			s.checkRange(f, *low*1000, *high*1000, "the cores")
		}
	}
}

func (s *subject) checkRange(f config.Frequency, low, high int64, what string) {
	if hz, ok := frequencyOf(f); ok && high > 0 && (hz < low || hz > high) {
		s.reportAt(f, f.Show(), "", "%s is outside of the range of %s, %s to %s", units.Frequency(hz), what, units.Frequency(low), units.Frequency(high))
	}
}

// checkDevfreq checks limits against the steps of the devices that a glob matches.
func (s *subject) checkDevfreq(glob string, limits config.ClockLimits) {
	for _, d := range s.File.Devfreq {
		if !matches(glob, d.Name) {
			continue
		}
		for _, f := range []config.Frequency{limits.Min, limits.Max} {
			if hz, ok := frequencyOf(f); ok && len(d.Hz) > 0 && !slices.Contains(d.Hz, hz) {
				s.reportAt(f, f.Show(), describeNearest(d.Hz, hz, 1), "%s is not a step of %s", units.Frequency(hz), d.Name)
			}
		}
	}
	low, hasLow := frequencyOf(limits.Min)
	high, hasHigh := frequencyOf(limits.Max)
	if hasLow && hasHigh && low > high {
		s.reportAt(limits.Min, limits.Min.Show(), "", "min %s is above max %s", units.Frequency(low), units.Frequency(high))
	}
}

// frequencyOf reads a frequency in Hz; false when there is none. The resolver reports wrong ones.
func frequencyOf(f config.Frequency) (int64, bool) {
	if !f.IsSet() || f.Text == "unlimited" {
		return 0, false
	}
	hz, err := resolve.Frequency(f.Node())
	return hz, err == nil
}

func (s *subject) checkTrip(limit *config.TripLimits) {
	for _, z := range s.File.Zones {
		if z.Type != limit.Key() {
			continue
		}
		i := resolve.PassiveTrip(z)
		switch {
		case i < 0:
			s.reportKey(limit, "", "thermal zone %s has no passive trip point", z.Type)
			continue
		case !z.Trips[i].Writable:
			s.reportKey(limit, `the kernel needs CONFIG_THERMAL_WRITABLE_TRIPS; with it, probe the device again`, "the trip points of thermal zone %s cannot be written", z.Type)
		}
		for _, t := range z.Trips {
			if t.Type == "critical" && int64(limit.Passive.Value)*1000 >= t.Temp {
				s.reportAt(limit.Passive, limit.Passive.Show(), "choose a temperature well below it", "the device shuts down at %s °C in thermal zone %s",
					strconv.FormatFloat(float64(t.Temp)/1000, 'f', -1, 64), z.Type)
			}
		}
	}
}

func checkBoardRuntime(s *subject) {
	if s.IsOwn() && s.File.Arch != "" && s.File.Arch != "aarch64" && s.Config.Runtime.Form.Text != plan.RuntimeNone {
		at := s.Custom.Facts
		s.reportAt(at, at.Show(), "", "%s is of architecture %s, and yoctuned of the layer of aarch64", s.Board.ID, s.File.Arch)
	}
}

func checkBoardArgs(s *subject) {
	if !s.IsOwn() || len(s.Kernel.Args) == 0 {
		return
	}
	at := config.Part(s.Config.Board)
	for _, part := range []config.Part{s.Config.Kernel.Args, s.Config.CPU.Isolate} {
		if part.Where().IsSet() {
			at = part
			break
		}
	}
	s.reportKey(at, "", "kernel arguments reach the boot loaders of openembedded-core: whether that of %s is one of them is unknown", s.Machine)
}

// hasTables reports whether the facts have tables of the target's kernel.
func (s *subject) hasTables() bool {
	set, ok := kernel.Find(s.Release.Kernel)
	return ok && (set.L4T == "" || !s.Config.Kernel.Recipe.IsSet())
}

// ownsTables reports whether the tables are of the very kernel. Those of a version line are
// mainline's: a vendor's kernel of that line has more arguments and modules.
func (s *subject) ownsTables() bool {
	set, ok := kernel.Find(s.Release.Kernel)
	return ok && set.L4T != ""
}

// doubtTables makes the findings of a rule that read the tables of other kernels warnings.
func (s *subject) doubtTables() {
	if !s.rule.tables || s.hasTables() {
		return
	}
	for _, f := range s.found {
		f.Severity = min(f.Severity, diag.Warning)
		f.Unverified = fmt.Sprintf("Linux %s; the tables are those of %s", s.Release.Kernel, strings.Join(s.lines, " and "))
	}
}

// isBracketed reports whether the kernel has tables or lies between two that have: a name that
// those lack is unknown. Beyond the newest, it may be new.
func (s *subject) isBracketed() bool { return len(s.lines) > 1 || s.lines[0] == s.Release.Kernel }

// findArg looks an argument up. Of kernels that disagree about it, only the name is known.
func (s *subject) findArg(name string) (linux.Arg, bool) {
	var found linux.Arg
	known, agreed := false, true
	for i, line := range s.lines {
		a, ok := linux.FindArg(line, name)
		agreed = agreed && (i == 0 || ok == known && a.Value == found.Value && a.Kinds == found.Kinds && a.Arch == found.Arch)
		if known = known || ok; ok {
			found = a
		}
	}
	if known && !agreed {
		found = linux.Arg{Name: found.Name}
	}
	return found, known
}

// findModule looks a module up.
func (s *subject) findModule(name string) (m linux.Mod, known bool) {
	for _, line := range s.lines {
		if m, known = linux.FindModule(line, name); known {
			break
		}
	}
	return m, known
}

// nearestModule returns the module that was probably meant; "" where none is near.
func (s *subject) nearestModule(name string) string {
	for _, line := range s.lines {
		if near := linux.NearestModule(line, name); near != "" {
			return near
		}
	}
	return ""
}

// netFeatures lists the features of network interfaces.
func (s *subject) netFeatures() []string {
	var names []string
	for _, line := range s.lines {
		names = append(names, linux.NetFeatures(line)...)
	}
	return names
}

// unlessOwn makes a finding about an unknown name a warning where the tables are of another kernel.
func (f *finding) unlessOwn(s *subject) {
	if !s.ownsTables() {
		f.Severity = min(f.Severity, diag.Warning)
	}
}

// agree writes counts of things with a verb.
func agree(counts []string, one, several string) string {
	if len(counts) == 1 && strings.HasPrefix(counts[0], "1 ") {
		several = one
	}
	return strings.Join(counts, ", ") + " " + several
}

func checkKernelTables(s *subject) {
	k := &s.Config.Kernel
	if !k.Version.IsSet() || s.hasTables() {
		return
	}
	offloads := 0
	for _, n := range s.Config.Network.Entries {
		offloads += len(n.Offloads.Entries)
	}
	var what []string
	count := func(name string, n int) {
		if n == 1 {
			what = append(what, "1 "+name)
		} else if n > 1 {
			what = append(what, fmt.Sprintf("%d %ss", n, name))
		}
	}
	count("kernel option", len(s.Kernel.Config))
	unchecked := len(what) > 0
	count("kernel argument", len(s.Kernel.Args))
	count("module", len(s.Config.Modules.Entries))
	count("sysctl", len(s.Config.Sysctl.Entries))
	count("kernel thread", len(s.Config.Threads.Entries))
	count("offload", offloads)
	if len(what) == 0 {
		return
	}
	var clauses []string
	if unchecked {
		clauses, what = append(clauses, agree(what[:1], "stays", "stay")+" unchecked"), what[1:]
	}
	if len(what) > 0 {
		clauses = append(clauses, agree(what, "is", "are")+" compared with those of "+strings.Join(s.lines, " and "))
	}
	s.reportAt(k.Version, k.Version.Show(), "", "unknown: the facts have no tables of Linux %s of %s (they have %s), so %s", k.Version.Text, k.Recipe.Text, kernel.Names(), strings.Join(clauses, ", and "))
}
