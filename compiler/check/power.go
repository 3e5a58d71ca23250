package check

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/units"
)

func powerRules() []Rule {
	return []Rule{
		{
			ID: "power-from", Severity: diag.Error, Firm: true,
			Title: "the mode is derived from a mode that does not exist, or whose settings are not known",
			Cause: "from names a stock mode of the board on its release, whose settings the new mode starts with. The names differ between L4T versions, and for some boards only the names are known.",
			Fix:   "use a stock mode of the board",
			Wrong: `power: modes: EDGE: from: "MAXN"`, Right: `power: modes: EDGE: from: "MAXN_SUPER"`,
			See: "nvpmodel.conf of the BSP",
			run: checkPowerModeBase,
		},
		{
			ID: "power-name-taken", Severity: diag.Error, Firm: true,
			Title: "the mode has the name of a stock mode",
			Cause: "nvpmodel and the tools around it select modes by name as well as by id, so names must be unique in the table.",
			Fix:   "choose a name that no stock mode has",
			Wrong: `power: modes: "15W": from: "25W"`, Right: `power: modes: EDGE_15W: from: "25W"`,
			See: "nvpmodel.conf of the BSP",
			run: checkPowerNameTaken,
		},
		{
			ID: "power-default", Severity: diag.Error, Firm: true,
			Title: "invalid default power mode",
			Cause: "power.default names a mode of the configuration or a stock mode. Some tools read only one digit of its id, so the id must be at most 9.",
			Fix:   "name an existing mode",
			Wrong: `power: default: "20W"`, Right: `power: default: "15W"`,
			See: "nvpmodel.conf of the BSP",
			run: checkPowerDefault,
		},
		{
			ID: "power-ladder", Severity: diag.Error, Firm: true,
			Title: "invalid ladder of power.adaptive",
			Cause: "A mode of the ladder does not exist or appears twice, or the thresholds leave no gap between stepping up and down, so that the device would switch continuously.",
			Fix:   "name at least two existing modes, and keep down.load below up.load",
			Wrong: `power: adaptive: {up: {load: 50, for: "2s"}, down: {load: 60, for: "30s"}, ladder: ["15W"]}`,
			Right: `power: adaptive: {up: {load: 80, for: "2s"}, down: {load: 40, for: "30s"}, ladder: ["15W", "25W"]}`,
			run:   checkPowerLadder,
		},
		{
			ID: "power-ladder-reboot", Severity: diag.Error, Firm: true,
			Title: "the ladder of power.adaptive needs a reboot",
			Cause: "Two modes of the ladder gate different parts of the GPU. The driver takes a new mask only before its first use, so switching between them needs a reboot.",
			Fix:   "keep modes with the same gpu mask on the ladder",
			Wrong: `power: {modes: HALF: {from: "15W", gpu: mask: 252}, adaptive: {up: {load: 80, for: "2s"}, down: {load: 40, for: "30s"}, ladder: ["HALF", "25W"]}}`,
			Right: `power: {modes: HALF: from: "15W", adaptive: {up: {load: 80, for: "2s"}, down: {load: 40, for: "30s"}, ladder: ["HALF", "25W"]}}`,
			See:   "nvgpu: golden context image",
			run:   checkPowerLadderReboot,
		},
		{
			ID: "power-frequency", Severity: diag.Error, Firm: true,
			Title: "unsupported frequency",
			Cause: "The clock has fixed steps. The driver rounds a value between them, and the device runs at another frequency than configured.",
			Fix:   "use a step of the module's table",
			Wrong: `power: modes: EDGE: {from: "25W", cpu: max: "1.51GHz"}`, Right: `power: modes: EDGE: {from: "25W", cpu: max: "1.5744GHz"}`,
			See: "cpufreq scaling_available_frequencies, devfreq available_frequencies",
			run: checkPowerFrequency,
		},
		{
			ID: "power-range", Severity: diag.Error, Firm: true,
			Title: "the lower limit is above the upper limit",
			Cause: "With the stock mode's values filled in, the minimum of a clock is greater than its maximum.",
			Fix:   "lower min, or raise max",
			Wrong: `power: modes: EDGE: {from: "25W", gpu: {min: "918MHz", max: "306MHz"}}`,
			Right: `power: modes: EDGE: {from: "25W", gpu: {min: "306MHz", max: "918MHz"}}`,
			run:   checkPowerRange,
		},
		{
			ID: "power-cores", Severity: diag.Error, Firm: true,
			Title: "invalid list of online cores in a power mode",
			Cause: "A core does not exist on the module, or core 0 is missing: it boots the system and stays on. Isolated cores must be on as well.",
			Fix:   "list existing cores, including core 0",
			Wrong: `power: modes: EDGE: {from: "25W", cpu: online: [1, 2, 3]}`, Right: `power: modes: EDGE: {from: "25W", cpu: online: [0, 1, 2, 3]}`,
			run: checkPowerCores,
		},
		{
			ID: "power-mask", Severity: diag.Error, Firm: true,
			Title: "the GPU mask is not one of the stock modes'",
			Cause: "The mask gates parts of the GPU. The driver refuses masks that NVIDIA does not ship, or the GPU loses a unit.",
			Fix:   "use the gpu mask of a stock mode: yoctune facts show BOARD lists them",
			Wrong: `power: modes: EDGE: {from: "25W", gpu: mask: 255}`, Right: `power: modes: EDGE: {from: "25W", gpu: mask: 240}`,
			See: "nvgpu: tpc_pg_mask",
			run: checkPowerMask,
		},
		{
			ID: "power-complete", Severity: diag.Error, Firm: true,
			Title: "no verified power table for the board",
			Cause: `table: "complete" replaces the BSP's file. yoctune writes a whole file only where it has verified one for that L4T.`,
			Fix:   `use table: "extend", which adds to the BSP's own file`,
			Wrong: `power: table: "complete"`, Right: `power: table: "extend"`,
			run: checkPowerComplete,
		},
		{
			ID: "power-super", Severity: diag.Error,
			Title: "clocks of a Super mode without its firmware",
			Cause: `The higher clocks of Super modes need the "-super" device tree of the boot processor, which only some machines flash. Without it nvpmodel lists the mode, but the hardware stays at the lower clocks.`,
			Fix:   "use a machine with the Super device tree, or lower the limit",
			Wrong: `{board: "orin-nx-16gb", release: "kirkstone", machine: "p3509-a02-p3767-0000", power: modes: FAST: {from: "25W", gpu: max: "1.173GHz"}}`,
			Right: `{board: "orin-nx-16gb", release: "scarthgap", power: modes: FAST: {from: "40W", gpu: max: "1.173GHz"}}`,
			See:   "NVIDIA Jetson Linux Developer Guide, Super mode",
			run:   checkPowerSuper,
		},
		{
			ID: "power-owner", Severity: diag.Error,
			Title: "a service sets the clocks of the power mode",
			Cause: "nvpmodel runs once at boot, after nvpower, and jetson_clocks pins every clock to its maximum. A service that calls one of them competes with the power mode: the result depends on timing, and yoctuned reports drift continuously.",
			Fix:   "name the mode in power.default, or set the limits under cpu and gpu",
			Wrong: `services: "clocks.service": exec: ["/usr/bin/jetson_clocks"]`, Right: `power: default: "MAXN_SUPER"`,
			See: "meta-tegra tegra-nvpmodel, tegra-nvpower",
			run: checkPowerOwner,
		},
		{
			ID: "power-fan", Severity: diag.Warning,
			Title: "the image lacks the fan control",
			Cause: "nvfancontrol controls the fan by temperature. Without it the fan stays as the boot loader left it, full on or off, while the power mode produces more heat.",
			Fix:   "leave nvfancontrol in the image",
			Wrong: `{power: default: "MAXN_SUPER", packages: "tegra-nvfancontrol": "exclude"}`, Right: `power: default: "MAXN_SUPER"`,
			See: "meta-tegra recipes-bsp/tegra-binaries/tegra-nvfancontrol",
			run: checkPowerFan,
		},
		{
			ID: "power-supply", Severity: diag.Warning,
			Title: "the power mode exceeds the carrier's supply",
			Cause: "The module throttles on over-current, or the voltage drops and the device restarts. The watts in a mode's name are a label for its clocks, and peaks exceed them.",
			Fix:   "choose a mode whose label is below the supply, or define a mode with lower clocks",
			Wrong: "boards: carrier: {base: \"orin-nano-8gb\", supply: 20000, machines: scarthgap: [\"carrier-box\"]}\ntargets: cam: {board: \"carrier\", power: default: \"25W\"}",
			Right: "boards: carrier: {base: \"orin-nano-8gb\", supply: 20000, machines: scarthgap: [\"carrier-box\"]}\ntargets: cam: {board: \"carrier\", power: default: \"15W\"}",
			See:   "the data sheet of the carrier",
			run:   checkPowerSupply,
		},
		{
			ID: "gpu-governor-udev", Severity: diag.Warning,
			Title: "the BSP rewrites the GPU's governor",
			Cause: "From L4T 38 on a udev rule runs nvpower.sh when the GPU's driver binds or changes. The script sets governors and limits again.",
			Fix:   "leave the governor to the BSP, or let yoctuned restore it",
			Wrong: `{board: "agx-orin-64gb", release: "wrynose", gpu: governor: "performance"}`,
			Right: `{board: "orin-nano-8gb", release: "scarthgap", gpu: governor: "performance"}`,
			See:   "meta-tegra tegra-nvpower",
			run:   checkGpuGovernorUdev,
		},
		{
			ID: "power-table-unverified", Severity: diag.Warning,
			Title: "the stock power modes are not verified for this L4T",
			Cause: "The names and values of the stock modes come from a neighbouring L4T. The build stops when the BSP's file lacks a parameter that the mode uses.",
			Fix:   "compare /etc/nvpmodel.conf of the BSP with the names used here",
			Wrong: `{board: "agx-orin-64gb", release: "wrynose", power: default: "MAXN"}`,
			Right: `{board: "orin-nano-8gb", release: "scarthgap", power: default: "15W"}`,
			run:   checkPowerUnverified,
		},
	}
}

func stockNames(s *subject) []string {
	names := make([]string, 0, len(s.Stock.Modes))
	for _, m := range s.Stock.Modes {
		names = append(names, m.Name)
	}
	return names
}

// modeNames lists every mode of the target: stock ones, then its own.
func modeNames(s *subject) []string {
	names := stockNames(s)
	if s.Plan.Power != nil {
		for _, m := range s.Plan.Power.Modes {
			names = append(names, m.Name)
		}
	}
	return names
}

// checkPowerModeBase refuses a mode whose base has no known settings, because the layer
// would then carry a mode without any.
func checkPowerModeBase(s *subject) {
	for _, m := range s.Config.Power.Modes.Entries {
		from := m.From
		stock, found := s.Stock.Mode(from.Text)
		switch {
		case s.IsOwn() || len(stock.Settings) > 0:
		case !from.IsSet():
			s.reportKey(m, "add from, the stock mode that this one starts with: "+strings.Join(stockNames(s), ", "), "the mode of a module needs from")
		case !found && s.Exact:
			s.reportAt(from, from.Text, diag.DidYouMean(from.Text, stockNames(s)),
				"board %s on %s has no stock mode %q", s.Board.ID, s.Release.Name, from.Text)
		default:
			help := "a mode of the BSP's file can be selected by name: power.default"
			if known := modesWithSettings(s); len(known) > 0 {
				help = "modes with known settings: " + strings.Join(known, ", ")
			}
			s.reportAt(from, from.Text, help, "the settings of stock mode %q of %s on %s are not known, so no mode can be derived from it",
				from.Text, s.Board.ID, s.Release.Name)
		}
	}
}

func modesWithSettings(s *subject) (names []string) {
	for _, m := range s.Stock.Modes {
		if len(m.Settings) > 0 {
			names = append(names, m.Name)
		}
	}
	return names
}

func checkPowerNameTaken(s *subject) {
	for _, m := range s.Config.Power.Modes.Entries {
		if slices.ContainsFunc(stockNames(s), func(stock string) bool { return strings.EqualFold(stock, m.Key()) }) {
			s.refuse(s.stockModes(), m, m.Key(), "", "%q is a stock mode of the board", m.Key())
		}
	}
}

// maxDefault is the greatest id a default may have: NVIDIA's indicator and
// several scripts read one digit.
const maxDefault = 9

func checkPowerDefault(s *subject) {
	d := s.Config.Power.Default
	if !d.IsSet() {
		return
	}
	names := modeNames(s)
	i := slices.Index(names, d.Text)
	switch {
	case i < 0 && len(names) > 0:
		s.refuse(s.stockModes(), d, d.Text, diag.DidYouMean(d.Text, names), "power mode %q does not exist", d.Text)
	case i > maxDefault:
		s.refuse(s.stockModes(), d, d.Text, "remove modes that are not needed", "power mode %q has id %d; a default has at most %d", d.Text, i, maxDefault)
	}
}

func checkPowerLadder(s *subject) {
	a := &s.Config.Power.Adaptive
	if !a.IsSet() {
		return
	}
	names := modeNames(s)
	if len(a.Ladder.Items) < 2 {
		s.reportAt(a.Ladder, a.Ladder.Show(), "", "a ladder has at least two modes")
	}
	seen := map[string]bool{}
	for _, m := range a.Ladder.Items {
		if !slices.Contains(names, m.Text) {
			s.refuse(s.stockModes(), m, m.Text, diag.DidYouMean(m.Text, names), "power mode %q does not exist", m.Text)
		}
		if seen[m.Text] {
			s.reportAt(m, m.Text, "", "power mode %q is on the ladder twice", m.Text)
		}
		seen[m.Text] = true
	}
	if up, down := a.Up.Load.Value, a.Down.Load.Value; down >= up {
		s.reportAt(a.Down.Load, a.Down.Load.Show(), "", "down.load %d %% is not below up.load %d %%", down, up)
	}
}

func checkPowerLadderReboot(s *subject) {
	mask := map[string]string{}
	addMask := func(mode, arg, value string) {
		if strings.HasSuffix(arg, "_PG_MASK") {
			mask[mode] += arg + "=" + value + " "
		}
	}
	for _, m := range s.Stock.Modes {
		for _, p := range m.Settings {
			addMask(m.Name, p[1], p[2])
		}
	}
	if s.Plan.Power != nil {
		for _, m := range s.Plan.Power.Modes {
			for _, p := range m.Params {
				addMask(m.Name, p.Arg, p.Value)
			}
		}
	}
	ladder := s.Config.Power.Adaptive.Ladder.Items
	for i := 1; i < len(ladder); i++ {
		low, high := ladder[i-1].Text, ladder[i].Text
		if mask[low] != mask[high] && mask[low] != "" && mask[high] != "" {
			s.refuse(s.stockModes(), ladder[i], strings.TrimSpace(mask[low])+" and "+strings.TrimSpace(mask[high]), "",
				"switching between %s and %s needs a reboot", low, high)
		}
	}
}

// limit is a frequency of the configuration and the table it must be in.
type limit struct {
	config.Frequency
	table []int64
	unit  int64 // Hz of one step of the table
	what  string
	fact  string // of the table
}

// frequencyLimits lists the frequencies of the configuration.
func frequencyLimits(s *subject) []limit {
	var all []limit
	add := func(table []int64, unit int64, what, fact string, fields ...config.Frequency) {
		for _, f := range fields {
			if f.IsSet() {
				all = append(all, limit{f, table, unit, what, fact})
			}
		}
	}
	c := s.Config
	add(s.Board.CPUkHz, 1000, "CPU", "cpu_khz", c.CPU.Min, c.CPU.Max)
	add(s.Board.GPUHz, 1, "GPU", "gpu_hz", c.GPU.Min, c.GPU.Max)
	add(s.Board.EMCHz, 1, "memory controller", "emc_hz", c.Memory.EMC)
	for _, m := range c.Power.Modes.Entries {
		add(s.Board.CPUkHz, 1000, "CPU", "cpu_khz", m.CPU.Min, m.CPU.Max)
		add(s.Board.GPUHz, 1, "GPU", "gpu_hz", m.GPU.Min, m.GPU.Max)
		add(s.Board.EMCHz, 1, "memory controller", "emc_hz", m.EMC.Max)
	}
	return all
}

func checkPowerFrequency(s *subject) {
	for _, l := range frequencyLimits(s) {
		if l.Text == "unlimited" {
			continue
		}
		hz, err := resolve.Frequency(l.Node())
		if err != nil {
			continue // reported where it was read
		}
		if len(l.table) == 0 {
			continue // power-table-unverified reports an unknown table
		}
		if hz%l.unit == 0 && slices.Contains(l.table, hz/l.unit) {
			continue
		}
		steps := s.boardFact(l.fact, l.what+" clock steps")
		if hz%l.unit != 0 {
			steps = configured // the table counts in whole units, whatever its steps are
		}
		help := describeNearest(l.table, hz, l.unit)
		if strings.HasPrefix(l.ID(), "power.") && l.Key() == "max" && hz > l.table[len(l.table)-1]*l.unit {
			help += "; \"unlimited\" takes the cap off"
		}
		s.refuse(steps, l, l.Show(), help, "%s is not a step of the %s clock of %s", units.Frequency(hz), l.what, s.Board.ID)
	}
}

// describeNearest names the steps around a frequency. A value off by a thousand is a
// mistaken unit.
func describeNearest(table []int64, hz, unit int64) string {
	lowest, highest := table[0]*unit, table[len(table)-1]*unit
	switch {
	case hz < lowest/10 && hz*1000 >= lowest && hz*1000 <= highest:
		if slices.Contains(table, hz*1000/unit) {
			return fmt.Sprintf("a number without a unit counts Hz: did you mean %q?", units.Frequency(hz*1000))
		}
		return "a number without a unit counts Hz; for a thousand times as much, the " + describeNearest(table, hz*1000, unit)
	case hz < lowest/10:
		return fmt.Sprintf("the table runs from %s to %s: is the unit right?", units.Frequency(lowest), units.Frequency(highest))
	case hz > highest:
		return "the highest step is " + units.Frequency(highest)
	case hz < lowest:
		return "the lowest step is " + units.Frequency(lowest)
	}
	i, _ := slices.BinarySearchFunc(table, hz, func(step, hz int64) int { return int(min(max(step*unit-hz, -1), 1)) })
	return fmt.Sprintf("nearest steps: %s and %s", units.Frequency(table[max(i-1, 0)]*unit), units.Frequency(table[min(i, len(table)-1)]*unit))
}

func checkPowerRange(s *subject) {
	if s.Plan.Power == nil {
		return
	}
modes:
	for _, m := range s.Plan.Power.Modes {
		low := map[string]int64{}
		for _, p := range m.Params {
			v, err := strconv.ParseInt(p.Value, 10, 64)
			if err != nil || v < 0 {
				continue
			}
			switch p.Arg {
			case "MIN_FREQ":
				low[p.Param] = v
			case "MAX_FREQ":
				if l := low[p.Param]; l > v {
					mode := s.Config.Power.Modes.Get(m.Name)
					at, unit := mode.GPU.Place, int64(1)
					if strings.HasPrefix(p.Param, "CPU") {
						at, unit = mode.CPU.Place, 1000
					}
					fact := s.stockModes()
					if at.Below("min").IsSet() && at.Below("max").IsSet() {
						fact = configured
					}
					s.refuse(fact, at, "", "", "mode %s: %s has min %s above max %s", m.Name, p.Param, units.Frequency(l*unit), units.Frequency(v*unit))
					continue modes
				}
			}
		}
	}
}

func checkPowerCores(s *subject) {
	for _, m := range s.Config.Power.Modes.Entries {
		list := m.CPU.Online
		if !list.IsSet() {
			continue
		}
		cores := config.Cores(list)
		if !slices.Contains(cores, 0) {
			s.reportAt(list, list.Show(), "add core 0", "core 0 cannot be off")
		}
		for _, c := range cores {
			if c >= s.Board.Cores {
				s.refuse(s.coreCount(), list, list.Show(), fmt.Sprintf("the cores of %s are 0 to %d", s.Board.ID, s.Board.Cores-1), "core %d does not exist", c)
			}
		}
		if s.Plan.Power.Default != m.Key() {
			continue
		}
		for _, c := range s.Isolated() {
			if !slices.Contains(cores, c) {
				s.reportAt(list, list.Show(), "keep the isolated cores on in the default mode", "core %d is isolated and off in the default mode", c)
			}
		}
	}
}

func checkPowerMask(s *subject) {
	for _, m := range s.Config.Power.Modes.Entries {
		mask := m.GPU.Mask
		if !mask.IsSet() || slices.Contains(s.Board.GPUMasks, int64(mask.Value)) {
			continue
		}
		help := "masks of the stock modes: " + formatNumbers(s.Board.GPUMasks)
		if r := s.Board.MaskRule; r != nil && r.File != "" {
			help = "the mask of this module is in " + r.File + ", not in the power mode"
		}
		fact := s.boardFact("gpu_masks", "GPU masks")
		if !s.Stock.Has("TPC_POWER_GATING", "TPC_PG_MASK") {
			fact = configured // no line of the mode can hold a mask
		}
		s.refuse(fact, mask, mask.Show(), help, "mask %d is not one of the stock modes'", mask.Value)
	}
}

func formatNumbers(all []int64) string {
	words := make([]string, 0, len(all))
	for _, v := range all {
		words = append(words, strconv.FormatInt(v, 10))
	}
	return strings.Join(words, ", ")
}

func checkPowerComplete(s *subject) {
	if t := s.Config.Power.Table; t.Text == "complete" {
		s.reportAt(t, t.Text, "", "no verified whole table is known for %s on %s", s.Board.ID, s.Release.Name)
	}
}

// isSuper reports whether the target's machine is flashed with the Super device
// tree; known is false for a machine of the user's own.
func (s *subject) isSuper() (super, known bool) {
	r, ok := s.Board.Releases[s.Release.Name]
	if !ok || s.Custom != nil {
		return false, false
	}
	file := r.NVPModel
	for _, o := range r.Others {
		if o.Machine == s.Machine {
			file = o.NVPModel
		}
	}
	return strings.HasSuffix(file, "_super"), true
}

func checkPowerSuper(s *subject) {
	cpu, gpu := s.Board.CPU.MaxNonSuper, s.Board.GPU.MaxNonSuper
	if super, known := s.isSuper(); super || !known {
		return
	}
	for _, l := range frequencyLimits(s) {
		var top int64
		fact := ""
		switch {
		case l.what == "CPU" && cpu != nil:
			top, fact = *cpu*1000, "cpu"
		case l.what == "GPU" && gpu != nil:
			top, fact = *gpu, "gpu"
		default:
			continue
		}
		if hz, err := resolve.Frequency(l.Node()); err == nil && l.Text != "unlimited" && hz > top {
			s.refuse(s.boardFact(fact, "highest clock"), l, l.Show(), "", "machine %s runs the %s at %s at most: its device tree is not a Super one", s.Machine, l.what, units.Frequency(top))
		}
	}
}

// findClockTool finds the word of a command that sets the clocks.
func findClockTool(exec config.List[config.String]) (config.String, bool) {
	for _, w := range exec.Items {
		for field := range strings.FieldsSeq(w.Text) {
			switch path.Base(field) {
			case "nvpmodel", "jetson_clocks", "jetson_clocks.sh", "nvpower.sh", "jetson-clocks":
				return w, true
			}
		}
	}
	return config.String{}, false
}

func checkPowerOwner(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		for _, c := range commandsOf(svc) {
			w, ok := findClockTool(c.List)
			if !ok || isReserved(svc.Key()) { // service-reserved reports those
				continue
			}
			help := ""
			if strings.HasPrefix(path.Base(w.Text), "jetson_clocks") || strings.HasPrefix(path.Base(w.Text), "jetson-clocks") {
				help = `remove the service, and hold the clocks in a mode: power: modes: NAME: {from: MODE, cpu: min: FREQUENCY, gpu: min: FREQUENCY}, with the clock that you want, and power: default: "NAME"`
			}
			s.reportAt(w, w.Show(), help, "service %s is a second owner of the clocks", svc.Key())
		}
	}
}

func checkPowerFan(s *subject) {
	c := s.Config
	if !c.Power.Default.IsSet() && !c.Power.Modes.IsSet() || c.Fan.IsSet() {
		return // fan-owner reports it where fan is set
	}
	for _, name := range fanPackages() {
		if p := c.Packages.Get(name); p.Text == "exclude" {
			s.reportAt(p, p.Show(), "", "the image has a power mode and nothing that controls the fan")
		}
	}
}

// parseWatts reads the label of a mode: 25 of MODE_25W, 0 for one without.
func parseWatts(name string) int {
	for part := range strings.SplitSeq(name, "_") {
		if digits, ok := strings.CutSuffix(part, "W"); ok {
			if w, err := strconv.Atoi(digits); err == nil {
				return w
			}
		}
	}
	return 0
}

func checkPowerSupply(s *subject) {
	if s.Custom == nil || s.Plan.Power == nil || s.Plan.Power.Default == "" || !s.Custom.Supply.IsSet() {
		return
	}
	mode, supply := s.Config.Power.Default, s.Custom.Supply
	from := s.Config.Power.Modes.Get(mode.Text).From.Or(mode.Text)
	watts := cmp.Or(parseWatts(mode.Text), parseWatts(from))
	message := "mode %s may draw more than the %d mW that the carrier supplies"
	switch {
	case watts == 0 && strings.HasPrefix(from, "MAXN"):
		message = "mode %s has no limit, and the carrier supplies %d mW"
	case watts*1000 <= supply.Value:
		return
	}
	s.raise(mode, message, mode.Text, supply.Value).addRelated(supply, "the carrier's supply")
}

func checkGpuGovernorUdev(s *subject) {
	if g := s.Config.GPU.Governor; g.IsSet() && s.Release.Line() == "R39" {
		s.reportAt(g, g.Show(), "", "a udev rule of L4T %s sets the governor again", s.Release.L4T)
	}
}

func checkPowerUnverified(s *subject) {
	if s.Exact || s.Plan.Power == nil || s.IsOwn() {
		return
	}
	d := s.raise(s.Config.Power, "the stock modes of %s are not verified for L4T %s", s.Board.ID, s.Release.L4T)
	if mode := s.Config.Power.Default; mode.IsSet() {
		d.Pos = mode.Pos()
	}
	if len(s.Board.GPUHz) == 0 {
		d.Message += ", and its GPU clock steps are not known"
	}
}
