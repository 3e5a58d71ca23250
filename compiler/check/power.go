package check

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/resolve"
)

func powerRules() []Rule {
	return []Rule{
		{
			ID: "power-from", Severity: diag.Error, Firm: true,
			Title: "the mode is derived from one that does not exist",
			Cause: "from names a stock mode of the board on its release; names differ between L4T versions.",
			Fix:   "use a stock mode of the board",
			Wrong: `power: modes: EDGE: from: "MAXN"`, Right: `power: modes: EDGE: from: "MAXN_SUPER"`,
			See: "nvpmodel.conf of the BSP",
			run: powerFrom,
		},
		{
			ID: "power-name-taken", Severity: diag.Error, Firm: true,
			Title: "the mode has the name of a stock mode",
			Cause: "nvpmodel and the tools around it select modes by name as well as by id, so names must be unique in the table.",
			Fix:   "choose another name",
			Wrong: `power: modes: "15W": from: "25W"`, Right: `power: modes: EDGE_15W: from: "25W"`,
			See: "nvpmodel.conf of the BSP",
			run: powerNameTaken,
		},
		{
			ID: "power-default", Severity: diag.Error, Firm: true,
			Title: "the default power mode does not exist, or cannot be a default",
			Cause: "power.default names a mode of the configuration or a stock mode. Tools read the id of the default as one digit, so it must be at most 9.",
			Fix:   "name an existing mode",
			Wrong: `power: default: "20W"`, Right: `power: default: "15W"`,
			See: "nvpmodel.conf of the BSP",
			run: powerDefault,
		},
		{
			ID: "power-ladder", Severity: diag.Error, Firm: true,
			Title: "the ladder of power.adaptive cannot be climbed",
			Cause: "A rung does not exist, appears twice, or the thresholds leave no room between going up and going down, so that the device would switch for ever.",
			Fix:   "name at least two existing modes, and keep down.load below up.load",
			Wrong: `power: adaptive: {up: {load: 50, for: "2s"}, down: {load: 60, for: "30s"}, ladder: ["15W"]}`,
			Right: `power: adaptive: {up: {load: 80, for: "2s"}, down: {load: 40, for: "30s"}, ladder: ["15W", "25W"]}`,
			run:   powerLadder,
		},
		{
			ID: "power-ladder-reboot", Severity: diag.Error, Firm: true,
			Title: "the ladder of power.adaptive crosses a reboot",
			Cause: "Two rungs gate different parts of the GPU; the driver takes a new mask only before its first use, so the switch needs a reboot.",
			Fix:   "keep modes with the same gpu mask on the ladder",
			Wrong: `power: {modes: HALF: {from: "15W", gpu: mask: 252}, adaptive: {up: {load: 80, for: "2s"}, down: {load: 40, for: "30s"}, ladder: ["HALF", "25W"]}}`,
			Right: `power: {modes: HALF: from: "15W", adaptive: {up: {load: 80, for: "2s"}, down: {load: 40, for: "30s"}, ladder: ["HALF", "25W"]}}`,
			See:   "nvgpu: golden context image",
			run:   powerLadderReboot,
		},
		{
			ID: "power-frequency", Severity: diag.Error, Firm: true,
			Title: "the frequency is no step of the module's table",
			Cause: "The clock has fixed steps. A value between them is rounded by the driver, so that what runs is not what the configuration says.",
			Fix:   "use a step of the table",
			Wrong: `power: modes: EDGE: {from: "25W", cpu: max: "1.51GHz"}`, Right: `power: modes: EDGE: {from: "25W", cpu: max: "1.5744GHz"}`,
			See: "cpufreq scaling_available_frequencies, devfreq available_frequencies",
			run: powerFrequency,
		},
		{
			ID: "power-range", Severity: diag.Error, Firm: true,
			Title: "the lower limit is above the upper one",
			Cause: "The minimum of a clock is greater than its maximum, after the stock mode's values are filled in.",
			Fix:   "lower min, or raise max",
			Wrong: `power: modes: EDGE: {from: "25W", gpu: {min: "918MHz", max: "306MHz"}}`,
			Right: `power: modes: EDGE: {from: "25W", gpu: {min: "306MHz", max: "918MHz"}}`,
			run:   powerRange,
		},
		{
			ID: "power-cores", Severity: diag.Error, Firm: true,
			Title: "the mode's cores cannot be on or off as written",
			Cause: "A core does not exist on the module, or core 0 is missing: it boots the system and stays on. Isolated cores and those of services must be on as well.",
			Fix:   "list existing cores, core 0 among them",
			Wrong: `power: modes: EDGE: {from: "25W", cpu: online: [1, 2, 3]}`, Right: `power: modes: EDGE: {from: "25W", cpu: online: [0, 1, 2, 3]}`,
			run: powerCores,
		},
		{
			ID: "power-mask", Severity: diag.Error, Firm: true,
			Title: "the GPU mask is not one of the stock modes'",
			Cause: "The mask gates parts of the GPU; others than those NVIDIA ships are refused by the driver or leave the GPU without a unit.",
			Fix:   "use a mask of a stock mode",
			Wrong: `power: modes: EDGE: {from: "25W", gpu: mask: 255}`, Right: `power: modes: EDGE: {from: "25W", gpu: mask: 240}`,
			See: "nvgpu: tpc_pg_mask",
			run: powerMask,
		},
		{
			ID: "power-complete", Severity: diag.Error, Firm: true,
			Title: "no verified whole power table is known for the board",
			Cause: `table: "complete" replaces the BSP's file. yoctune writes whole files only from a file it has verified for that L4T.`,
			Fix:   `use table: "extend", which adds to the BSP's own file`,
			Wrong: `power: table: "complete"`, Right: `power: table: "extend"`,
			run: powerComplete,
		},
		{
			ID: "power-super", Severity: diag.Error,
			Title: "clocks of a Super mode without its firmware",
			Cause: "The higher clocks of Super modes need the \"-super\" device tree of the boot processor, which is flashed with a machine made for it; without it nvpmodel shows the mode, and the hardware stays at the lower clocks.",
			Fix:   "use a machine with the Super device tree, or lower the limit",
			Wrong: `{board: "orin-nx-16gb", release: "kirkstone", machine: "p3509-a02-p3767-0000", power: modes: FAST: {from: "25W", gpu: max: "1.173GHz"}}`,
			Right: `{board: "orin-nx-16gb", release: "scarthgap", power: modes: FAST: {from: "40W", gpu: max: "1.173GHz"}}`,
			See:   "NVIDIA Jetson Linux Developer Guide, Super mode",
			run:   powerSuper,
		},
		{
			ID: "power-owner", Severity: diag.Error,
			Title: "a service sets what the power mode sets",
			Cause: "nvpmodel runs once at boot, after nvpower, and jetson_clocks pins every clock to its maximum. A service that calls one of them is a second owner: which one wins depends on timing, and the runtime finds drift for ever.",
			Fix:   "name the mode in power.default, or the limits under cpu and gpu",
			Wrong: `services: "clocks.service": exec: ["/usr/bin/jetson_clocks"]`, Right: `power: default: "MAXN_SUPER"`,
			See: "meta-tegra tegra-nvpmodel, tegra-nvpower",
			run: powerOwner,
		},
		{
			ID: "power-fan", Severity: diag.Warning,
			Title: "nobody controls the fan",
			Cause: "nvfancontrol turns the fan by temperature. Without it the fan stays as the boot loader left it, full on or off, while the power mode asks for heat.",
			Fix:   "leave nvfancontrol in the image",
			Wrong: `{power: default: "MAXN_SUPER", packages: "tegra-nvfancontrol": "exclude"}`, Right: `power: default: "MAXN_SUPER"`,
			See: "meta-tegra recipes-bsp/tegra-binaries/tegra-nvfancontrol",
			run: powerFan,
		},
		{
			ID: "power-supply", Severity: diag.Warning,
			Title: "the power mode wants more than the carrier supplies",
			Cause: "The module throttles on over-current, or the supply gives way and the device restarts. Watts in a mode's name are a label for its clocks: peaks are above them.",
			Fix:   "choose a mode whose name is below the supply, or a mode of your own with lower clocks",
			Wrong: "boards: carrier: {base: \"orin-nano-8gb\", supply: 20000, machines: scarthgap: [\"carrier-box\"]}\ntargets: cam: {board: \"carrier\", power: default: \"25W\"}",
			Right: "boards: carrier: {base: \"orin-nano-8gb\", supply: 20000, machines: scarthgap: [\"carrier-box\"]}\ntargets: cam: {board: \"carrier\", power: default: \"15W\"}",
			See:   "the data sheet of the carrier",
			run:   powerSupply,
		},
		{
			ID: "gpu-governor-udev", Severity: diag.Warning,
			Title: "the BSP rewrites the GPU's governor",
			Cause: "From L4T 38 on a udev rule runs nvpower.sh when the GPU's driver binds or changes, which sets governors and limits again.",
			Fix:   "leave the governor to the BSP; the runtime repairs it where it runs",
			Wrong: `{board: "agx-orin-64gb", release: "wrynose", gpu: governor: "performance"}`,
			Right: `{board: "orin-nano-8gb", release: "scarthgap", gpu: governor: "performance"}`,
			See:   "meta-tegra tegra-nvpower",
			run:   gpuGovernorUdev,
		},
		{
			ID: "power-table-unverified", Severity: diag.Warning,
			Title: "the stock power modes are not verified for this L4T",
			Cause: "The names and values of the stock modes were read from a neighbouring L4T. The build checks what it can: it stops when the BSP's file lacks a parameter the mode uses.",
			Fix:   "compare /etc/nvpmodel.conf of the BSP with the names used here",
			Wrong: `{board: "agx-orin-64gb", release: "wrynose", power: default: "MAXN"}`,
			Right: `{board: "orin-nano-8gb", release: "scarthgap", power: default: "15W"}`,
			run:   powerUnverified,
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

func eachMode(s *subject, f func(name string, n *load.Node)) {
	modes := s.Node.At("power", "modes")
	if modes == nil {
		return
	}
	for _, m := range modes.Fields {
		f(m.Name, m.Value)
	}
}

func powerFrom(s *subject) {
	eachMode(s, func(name string, n *load.Node) {
		from := n.Get("from")
		if from == nil || len(s.Stock.Modes) == 0 {
			return
		}
		if _, ok := s.Stock.Mode(from.Text); !ok {
			s.finding(from, at("power", "modes", name, "from"), from.Text, diag.DidYouMean(from.Text, stockNames(s)),
				"board %s on %s has no stock mode %q", s.Board.ID, s.Release.Name, from.Text)
		}
	})
}

func powerNameTaken(s *subject) {
	eachMode(s, func(name string, n *load.Node) {
		if slices.ContainsFunc(stockNames(s), func(stock string) bool { return strings.EqualFold(stock, name) }) {
			s.finding(n, at("power", "modes", name), name, "", "%q is a stock mode of the board", name)
		}
	})
}

// maxDefault is the greatest id a default may have: NVIDIA's indicator and
// several scripts read one digit.
const maxDefault = 9

func powerDefault(s *subject) {
	d := s.Node.At("power", "default")
	if d == nil {
		return
	}
	names := modeNames(s)
	i := slices.Index(names, d.Text)
	switch {
	case i < 0 && len(names) > 0:
		s.finding(d, at("power", "default"), d.Text, diag.DidYouMean(d.Text, names), "power mode %q does not exist", d.Text)
	case i > maxDefault:
		s.finding(d, at("power", "default"), d.Text, "remove modes that are not needed", "power mode %q has id %d; a default has at most %d", d.Text, i, maxDefault)
	}
}

func powerLadder(s *subject) {
	a := s.Node.At("power", "adaptive")
	if a == nil {
		return
	}
	names := modeNames(s)
	ladder := a.Get("ladder")
	if len(ladder.Items) < 2 {
		s.finding(ladder, at("power", "adaptive", "ladder"), ladder.Show(), "", "a ladder has at least two modes")
	}
	seen := map[string]bool{}
	for _, m := range ladder.Items {
		if !slices.Contains(names, m.Text) {
			s.finding(m, at("power", "adaptive", "ladder"), m.Text, diag.DidYouMean(m.Text, names), "power mode %q does not exist", m.Text)
		}
		if seen[m.Text] {
			s.finding(m, at("power", "adaptive", "ladder"), m.Text, "", "power mode %q is on the ladder twice", m.Text)
		}
		seen[m.Text] = true
	}
	if up, down := s.Plan.Power.Adaptive.UpLoad, s.Plan.Power.Adaptive.DownLoad; down >= up {
		s.finding(a.At("down", "load"), at("power", "adaptive", "down", "load"), fmt.Sprint(down), "", "down.load %d %% is not below up.load %d %%", down, up)
	}
}

func powerLadderReboot(s *subject) {
	a := s.Node.At("power", "adaptive", "ladder")
	if a == nil {
		return
	}
	mask := map[string]string{}
	for _, m := range s.Stock.Modes {
		for _, p := range m.Settings {
			if strings.HasSuffix(p[1], "_PG_MASK") {
				mask[m.Name] += p[1] + "=" + p[2] + " "
			}
		}
	}
	for _, m := range s.Plan.Power.Modes {
		for _, p := range m.Params {
			if strings.HasSuffix(p.Arg, "_PG_MASK") {
				mask[m.Name] += p.Arg + "=" + p.Value + " "
			}
		}
	}
	for i := 1; i < len(a.Items); i++ {
		low, high := a.Items[i-1].Text, a.Items[i].Text
		if mask[low] != mask[high] && mask[low] != "" && mask[high] != "" {
			s.finding(a.Items[i], at("power", "adaptive", "ladder"), strings.TrimSpace(mask[low])+" and "+strings.TrimSpace(mask[high]), "",
				"switching between %s and %s needs a reboot", low, high)
		}
	}
}

// limit is a frequency of the configuration and the table it must be in.
type limit struct {
	n     *load.Node
	path  []string
	table []int64
	unit  int64 // Hz of one step of the table
	what  string
}

func limits(s *subject) []limit {
	var all []limit
	add := func(parent *load.Node, path []string, table []int64, unit int64, what string, fields ...string) {
		for _, f := range fields {
			if n := parent.Get(f); n != nil {
				all = append(all, limit{n, append(slices.Clone(path), f), table, unit, what})
			}
		}
	}
	add(s.Node.Get("cpu"), at("cpu"), s.Board.CPUkHz, 1000, "CPU", "min", "max")
	add(s.Node.Get("gpu"), at("gpu"), s.Board.GPUHz, 1, "GPU", "min", "max")
	eachMode(s, func(name string, n *load.Node) {
		add(n.Get("cpu"), at("power", "modes", name, "cpu"), s.Board.CPUkHz, 1000, "CPU", "min", "max")
		add(n.Get("gpu"), at("power", "modes", name, "gpu"), s.Board.GPUHz, 1, "GPU", "min", "max")
		add(n.Get("emc"), at("power", "modes", name, "emc"), s.Board.EMCHz, 1, "memory controller", "max")
	})
	return all
}

func powerFrequency(s *subject) {
	for _, l := range limits(s) {
		if l.n.Text == "unlimited" {
			continue
		}
		hz, err := resolve.Frequency(l.n)
		if err != nil {
			continue // reported where it was read
		}
		if len(l.table) == 0 {
			continue // power-table-unverified says that the table is not known
		}
		if hz%l.unit == 0 && slices.Contains(l.table, hz/l.unit) {
			continue
		}
		s.finding(l.n, l.path, l.n.Show(), nearest(l.table, hz, l.unit), "%s is no step of the %s clock of %s", resolve.ShowHz(hz), l.what, s.Board.ID)
	}
}

// nearest names the steps around a frequency. A value off by a thousand is a
// mistaken unit.
func nearest(table []int64, hz, unit int64) string {
	lowest, highest := table[0]*unit, table[len(table)-1]*unit
	switch {
	case hz < lowest/10 && hz*1000 >= lowest && hz*1000 <= highest:
		if slices.Contains(table, hz*1000/unit) {
			return fmt.Sprintf("a number without a unit counts Hz: did you mean %q?", resolve.ShowHz(hz*1000))
		}
		return "a number without a unit counts Hz; for a thousand times as much, the " + nearest(table, hz*1000, unit)
	case hz < lowest/10:
		return fmt.Sprintf("the table runs from %s to %s: is the unit right?", resolve.ShowHz(lowest), resolve.ShowHz(highest))
	case hz > highest:
		return fmt.Sprintf("the highest step is %s; \"unlimited\" takes the cap off", resolve.ShowHz(highest))
	case hz < lowest:
		return "the lowest step is " + resolve.ShowHz(lowest)
	}
	i, _ := slices.BinarySearchFunc(table, hz, func(step, hz int64) int { return int(min(max(step*unit-hz, -1), 1)) })
	return fmt.Sprintf("nearest steps: %s and %s", resolve.ShowHz(table[max(i-1, 0)]*unit), resolve.ShowHz(table[min(i, len(table)-1)]*unit))
}

func powerRange(s *subject) {
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
					domain, unit := "gpu", int64(1)
					if strings.HasPrefix(p.Param, "CPU") {
						domain, unit = "cpu", 1000
					}
					s.finding(nil, at("power", "modes", m.Name, domain), "", "", "mode %s: %s has min %s above max %s", m.Name, p.Param, resolve.ShowHz(l*unit), resolve.ShowHz(v*unit))
					continue modes
				}
			}
		}
	}
}

func powerCores(s *subject) {
	eachMode(s, func(name string, n *load.Node) {
		list := n.At("cpu", "online")
		if list == nil {
			return
		}
		path := at("power", "modes", name, "cpu", "online")
		cores := resolve.Cores(list)
		if !slices.Contains(cores, 0) {
			s.finding(list, path, list.Show(), "add core 0", "core 0 cannot be off")
		}
		for _, c := range cores {
			if c >= s.Board.Cores {
				s.finding(list, path, list.Show(), fmt.Sprintf("the cores of %s are 0 to %d", s.Board.ID, s.Board.Cores-1), "core %d does not exist", c)
			}
		}
		if s.Plan.Power.Default != name {
			return
		}
		for _, c := range s.Isolated() {
			if !slices.Contains(cores, c) {
				s.finding(list, path, list.Show(), "keep the isolated cores on in the default mode", "core %d is isolated and off in the default mode", c)
			}
		}
	})
}

func powerMask(s *subject) {
	eachMode(s, func(name string, n *load.Node) {
		m := n.At("gpu", "mask")
		if m == nil {
			return
		}
		v, _ := m.Int64()
		if slices.Contains(s.Board.GPUMasks, v) {
			return
		}
		help := "masks of the stock modes: " + numbers(s.Board.GPUMasks)
		if r := s.Board.MaskRule; r != nil && r.File != "" {
			help = "the mask of this module is in " + r.File + ", not in the power mode"
		}
		s.finding(m, at("power", "modes", name, "gpu", "mask"), m.Text, help, "mask %d is not one of the stock modes'", v)
	})
}

func numbers(all []int64) string {
	words := make([]string, 0, len(all))
	for _, v := range all {
		words = append(words, strconv.FormatInt(v, 10))
	}
	return strings.Join(words, ", ")
}

func powerComplete(s *subject) {
	if t := s.Node.At("power", "table"); t != nil && t.Text == "complete" {
		s.finding(t, at("power", "table"), t.Text, "", "no verified whole table is known for %s on %s", s.Board.ID, s.Release.Name)
	}
}

// super tells whether the target's machine is flashed with the Super device
// tree; known is false for a machine of the user's own.
func (s *subject) super() (super, known bool) {
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

func powerSuper(s *subject) {
	cpu, gpu := s.Board.CPU.MaxNonSuper, s.Board.GPU.MaxNonSuper
	if cpu == nil && gpu == nil {
		return
	}
	super, known := s.super()
	if super || !known {
		return
	}
	for _, l := range limits(s) {
		var top int64
		switch {
		case l.what == "CPU" && cpu != nil:
			top = *cpu * 1000
		case l.what == "GPU" && gpu != nil:
			top = *gpu
		default:
			continue
		}
		hz, err := resolve.Frequency(l.n)
		if err != nil || l.n.Text == "unlimited" || hz <= top {
			continue
		}
		s.finding(l.n, l.path, l.n.Show(), "", "machine %s runs the %s at %s at most: its device tree is not a Super one", s.Machine, l.what, resolve.ShowHz(top))
	}
}

// tool finds a program that owns clocks in a command.
func ownerTool(exec *load.Node) *load.Node {
	if exec == nil {
		return nil
	}
	for _, w := range exec.Items {
		for field := range strings.FieldsSeq(w.Text) {
			switch path.Base(field) {
			case "nvpmodel", "jetson_clocks", "jetson_clocks.sh", "nvpower.sh", "jetson-clocks":
				return w
			}
		}
	}
	return nil
}

func powerOwner(s *subject) {
	for _, f := range s.Node.Get("services").Members() {
		if w := ownerTool(f.Value.Get("exec")); w != nil && !reserved(f.Name) { // service-reserved says so
			s.finding(w, at("services", f.Name, "exec"), w.Show(), "", "service %s is a second owner of the clocks", f.Name)
		}
	}
}

func powerFan(s *subject) {
	if s.Node.At("power", "default") == nil && s.Node.At("power", "modes") == nil || s.Node.Get("fan") != nil {
		return // fan-owner speaks of a fan that is set
	}
	for _, name := range []string{"tegra-nvfancontrol", "nvfancontrol"} {
		if n := s.Node.At("packages", name); n != nil && n.Text == "exclude" {
			s.finding(n, at("packages", name), n.Show(), "", "the image has a power mode and nobody who turns the fan")
		}
	}
}

// watts reads the label of a mode: 25 of MODE_25W, 0 for one without.
func watts(name string) int {
	for part := range strings.SplitSeq(name, "_") {
		if digits, ok := strings.CutSuffix(part, "W"); ok {
			if w, err := strconv.Atoi(digits); err == nil {
				return w
			}
		}
	}
	return 0
}

func powerSupply(s *subject) {
	if s.Custom == nil || s.Plan.Power == nil || s.Plan.Power.Default == "" {
		return
	}
	supply, ok := s.Custom.Get("supply").Int64()
	if !ok {
		return
	}
	mode := s.Plan.Power.Default
	n := s.Node.At("power", "default")
	from := mode
	if own := s.Node.At("power", "modes", mode, "from"); own != nil {
		from = own.Text
	}
	label := watts(mode)
	if label == 0 {
		label = watts(from)
	}
	d := s.diagnostic(n, at("power", "default"), "mode %s wants more than the %d mW that the carrier supplies", mode, supply)
	d.Related = []diag.Related{{Pos: s.Custom.Get("supply").Pos, Message: "the carrier's supply"}}
	switch {
	case label == 0 && strings.HasPrefix(from, "MAXN"):
		d.Message = fmt.Sprintf("mode %s has no limit, and the carrier supplies %d mW", mode, supply)
	case int64(label)*1000 <= supply:
		return
	}
	s.report.Add(d)
}

func gpuGovernorUdev(s *subject) {
	if n := s.Node.At("gpu", "governor"); n != nil && s.Release.Line() == "R39" {
		s.finding(n, at("gpu", "governor"), n.Show(), "", "a udev rule of L4T %s sets the governor again", s.Release.L4T)
	}
}

func powerUnverified(s *subject) {
	if s.Exact || s.Plan.Power == nil {
		return
	}
	n := s.Node.At("power", "default")
	if n == nil {
		n = s.Node.Get("power")
	}
	what := "the stock modes of " + s.Board.ID + " are not verified for L4T " + s.Release.L4T
	if len(s.Board.GPUHz) == 0 {
		what += ", and its GPU clock steps are not known"
	}
	s.finding(n, at("power"), "", "", "%s", what)
}
