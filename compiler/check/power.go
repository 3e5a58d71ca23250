package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/load"
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
					domain := "gpu"
					if strings.HasPrefix(p.Param, "CPU") {
						domain = "cpu"
					}
					s.finding(nil, at("power", "modes", m.Name, domain), "", "", "mode %s: %s has min %d above max %d", m.Name, p.Param, l, v)
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
		if !slices.Contains(s.Board.GPUMasks, v) {
			known := make([]string, 0, len(s.Board.GPUMasks))
			for _, k := range s.Board.GPUMasks {
				known = append(known, strconv.FormatInt(k, 10))
			}
			s.finding(m, at("power", "modes", name, "gpu", "mask"), m.Text, "masks of the stock modes: "+strings.Join(known, ", "), "mask %d is not one of the stock modes'", v)
		}
	})
}

func powerComplete(s *subject) {
	if t := s.Node.At("power", "table"); t != nil && t.Text == "complete" {
		s.finding(t, at("power", "table"), t.Text, "", "no verified whole table is known for %s on %s", s.Board.ID, s.Release.Name)
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
