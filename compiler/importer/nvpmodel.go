package importer

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
	"github.com/yoctune/yoctune/schema/units"
)

// readNVPModel compares a power mode file with the stock one of the board: modes that
// differ become modes of the configuration, from the stock mode they differ from
// least.
func (im *importer) readNVPModel(lines []*Line, s Source) {
	f, problems, err := nvpmodel.Parse(s.Text)
	if err != nil {
		leaveRest(lines, err.Error())
		return
	}
	for _, p := range problems {
		if p.Line < 1 || p.Line > len(lines) {
			continue
		}
		l := lines[p.Line-1]
		l.addTrap(Trap(p.Trap))
		if p.Ignored {
			l.leave(p.Message)
		} else if l.Verdict == "" {
			l.markAdjusted("%s", p.Message)
		}
	}
	t, _, err := im.board.StockTable(im.release.Name)
	if err != nil || t.Partial {
		leaveRest(lines, fmt.Sprintf("the stock power modes of %s on %s are not known: nothing to compare with", im.board.ID, im.release.Name))
		return
	}
	p := &powerFile{im: im, file: f, stock: t, lines: lines}
	p.compareParams()
	names := map[int]string{}
	for _, m := range f.Modes {
		names[m.ID] = p.importMode(m)
	}
	p.importDefaultMode(names)
}

type powerFile struct {
	im    *importer
	file  *nvpmodel.File
	stock board.Table
	lines []*Line
}

func (p *powerFile) line(line int) *Line { return p.lines[line-1] }

// compareParams compares the PARAM sections.
func (p *powerFile) compareParams() {
	for _, q := range p.file.Params {
		i := slices.IndexFunc(p.stock.Params, func(s board.Param) bool { return s.Name == q.Name })
		head := p.line(q.Line)
		if i < 0 {
			head.leavef("the file that the BSP installs does not declare %s", q.Name)
			head.addTrap(foreignPowerFile)
		} else {
			head.markUnderstood("the BSP's own file declares it")
		}
		for _, a := range q.Args {
			l := p.line(a.Line)
			base, isNext := strings.CutSuffix(a.Name, "_KNEXT")
			switch {
			case i < 0:
				l.leavef("the file that the BSP installs does not declare %s", q.Name)
			case !slices.Contains(p.stock.Params[i].Args, base) && !(isNext && p.stock.Params[i].KNext):
				l.leavef("the file that the BSP installs does not declare %s of %s", a.Name, q.Name)
			case p.stock.Params[i].Paths[a.Name] != "" && p.stock.Params[i].Paths[a.Name] != strings.TrimSpace(a.Path+" "+a.Attr) && p.stock.Params[i].Paths[a.Name] != a.Path:
				l.addTrap(foreignPowerFile)
				l.markAdjusted("the BSP's file has another path: %s", p.stock.Params[i].Paths[a.Name])
			default:
				l.markUnderstood("the BSP's own file declares it")
			}
		}
	}
}

// listDifferences lists the settings that a stock mode has with another value, or not
// at all.
func listDifferences(m nvpmodel.Mode, s board.Mode) []nvpmodel.Setting {
	var out []nvpmodel.Setting
	for _, set := range m.Settings {
		if !sameValue(settingOf(s, set.Param, set.Arg), set.Value) {
			out = append(out, set)
		}
	}
	return out
}

// listMissing lists the settings of a stock mode that a mode lacks.
func listMissing(m nvpmodel.Mode, s board.Mode) []string {
	var out []string
	for _, t := range s.Settings {
		if !slices.ContainsFunc(m.Settings, func(set nvpmodel.Setting) bool {
			// One limit of the CPU is for all cores, however many labels there are.
			return set.Arg == t[1] && (set.Param == t[0] || isCPUClock(set.Param) && isCPUClock(t[0]))
		}) {
			out = append(out, t[0]+" "+t[1])
		}
	}
	return out
}

func sameValue(a, b string) bool {
	if a == b {
		return true
	}
	none := func(s string) bool { return s == "-1" || s == "2147483647" || s == "9223372036854775807" }
	return none(a) && none(b)
}

// isExpressible reports whether the language has a field for a setting.
func isExpressible(s nvpmodel.Setting) bool {
	switch {
	case s.Param == "CPU_ONLINE", isCPUClock(s.Param), s.Param == "GPU" && (s.Arg == "MIN_FREQ" || s.Arg == "MAX_FREQ"),
		s.Param == "EMC" && s.Arg == "MAX_FREQ", s.Param == "TPC_POWER_GATING" && s.Arg == "TPC_PG_MASK":
		return true
	}
	return false
}

func isCPUClock(param string) bool {
	return strings.HasPrefix(param, "CPU_") && param != "CPU_ONLINE"
}

// importMode imports a mode and returns the name it has now; "" when it has none.
func (p *powerFile) importMode(m nvpmodel.Mode) string {
	head := p.line(m.Line)
	if stock, ok := p.stock.Mode(m.Name); ok && len(listDifferences(m, stock)) == 0 && len(listMissing(m, stock)) == 0 {
		p.markUnderstood(head, "the stock mode")
		for _, s := range m.Settings {
			p.markUnderstood(p.line(s.Line), "as the stock mode")
		}
		if stock.ID != m.ID {
			head.markAdjusted("its id is %d in the BSP's file", stock.ID)
		}
		return m.Name
	}
	if stock, ok := p.stock.Mode(m.Name); ok && !slices.ContainsFunc(listDifferences(m, stock), isExpressible) {
		head.markAdjusted("the stock mode: its differences cannot be expressed")
		if rest := listMissing(m, stock); len(rest) > 0 {
			head.addNote("it also sets %s", strings.Join(rest, ", "))
		}
		for _, s := range m.Settings {
			p.importSetting(s, stock, m.Name)
		}
		return m.Name
	}
	from := p.nearestMode(m)
	if from.Name == "" || len(from.Settings) == 0 {
		return p.leaveMode(m, "there is no known stock mode to start from")
	}
	name := m.Name
	if _, taken := p.stock.Mode(name); taken {
		name = strings.TrimSuffix(name[:min(len(name), 25)], "_") + "_CUSTOM"
		head.markAdjusted("the stock mode %s stays unchanged; its other values become a new mode, %s", m.Name, name)
	}
	if len(name) > 32 {
		return p.leaveMode(m, "a name has at most 32 characters")
	}
	p.im.setField(head, quoteCUE(from.Name), "power", "modes", name, "from")
	if rest := listMissing(m, from); len(rest) > 0 {
		head.markAdjusted("it also sets what %s sets: %s", from.Name, strings.Join(rest, ", "))
	}
	if len(p.stock.Modes) > m.ID {
		head.addNote("its id becomes the next free one, so that stock ids stay")
	}
	p.importCores(m, from, name)
	p.importCPUClocks(m, from, name)
	for _, s := range m.Settings {
		if s.Param == "CPU_ONLINE" || isCPUClock(s.Param) {
			continue
		}
		p.importSetting(s, from, name)
	}
	return name
}

// leaveMode leaves a mode with its settings and returns no name.
func (p *powerFile) leaveMode(m nvpmodel.Mode, why string) string {
	p.line(m.Line).leave(why)
	for _, s := range m.Settings {
		p.line(s.Line).leave("its mode is left")
	}
	return ""
}

// markUnderstood marks a line as understood unless something is wrong with it.
func (p *powerFile) markUnderstood(l *Line, why string) {
	if l.Verdict == "" {
		l.markUnderstood("%s", why)
	}
}

// nearestMode finds the stock mode that differs least in what cannot be expressed,
// then in everything.
func (p *powerFile) nearestMode(m nvpmodel.Mode) board.Mode {
	var best board.Mode
	bestScore := -1
	for _, s := range p.stock.Modes {
		score := 0
		for _, d := range listDifferences(m, s) {
			score++
			if !isExpressible(d) {
				score += 1000
			}
		}
		score += 100 * len(listMissing(m, s))
		if s.Name == m.Name {
			score--
		}
		if bestScore < 0 || score < bestScore {
			best, bestScore = s, score
		}
	}
	return best
}

// importCores imports which cores are on.
func (p *powerFile) importCores(m nvpmodel.Mode, from board.Mode, name string) {
	var stock []int
	var lines []*Line
	for _, t := range from.Settings {
		if core, ok := number(strings.TrimPrefix(t[1], "CORE_")); ok && t[0] == "CPU_ONLINE" && t[2] == "1" {
			stock = append(stock, int(core))
		}
	}
	on := slices.Clone(stock) // a core that is not mentioned stays as it is
	for _, s := range m.Settings {
		if s.Param != "CPU_ONLINE" {
			continue
		}
		core, ok := number(strings.TrimPrefix(s.Arg, "CORE_"))
		if ok && int(core) >= p.im.board.Cores {
			p.line(s.Line).leavef("core %d does not exist: the cores of %s are 0 to %d", core, p.im.board.ID, p.im.board.Cores-1)
			continue
		}
		lines = append(lines, p.line(s.Line))
		if !ok {
			continue
		}
		on = slices.DeleteFunc(on, func(c int) bool { return c == int(core) })
		if s.Value == "1" {
			on = append(on, int(core))
		}
	}
	slices.Sort(on)
	slices.Sort(stock)
	for i, l := range lines {
		switch {
		case slices.Equal(on, stock):
			p.markUnderstood(l, "as stock mode "+from.Name)
		case i == 0 || l.Verdict == "" || l.Verdict == Adjusted:
			p.im.setField(l, coreList(on), "power", "modes", name, "cpu", "online")
		}
	}
}

// importCPUClocks imports the limits of the CPU: the language has one for all cores.
func (p *powerFile) importCPUClocks(m nvpmodel.Mode, from board.Mode, name string) {
	for _, limit := range []struct{ arg, field string }{{"MIN_FREQ", "min"}, {"MAX_FREQ", "max"}} {
		var settings []nvpmodel.Setting
		for _, s := range m.Settings {
			if isCPUClock(s.Param) && s.Arg == limit.arg {
				settings = append(settings, s)
			}
		}
		stock := ""
		for _, t := range from.Settings {
			if isCPUClock(t[0]) && t[1] == limit.arg {
				stock = t[2]
				break
			}
		}
		// Files label clusters or cores: what counts is the value.
		asStock := !slices.ContainsFunc(settings, func(s nvpmodel.Setting) bool {
			return !sameValue(s.Value, stock) && !sameValue(s.Value, settingOf(from, s.Param, s.Arg))
		})
		one := !slices.ContainsFunc(settings, func(s nvpmodel.Setting) bool { return !sameValue(inKilohertz(s.Value), inKilohertz(settings[0].Value)) })
		for _, s := range settings {
			l := p.line(s.Line)
			switch {
			case asStock:
				p.markUnderstood(l, "as stock mode "+from.Name)
			case !one:
				if inKilohertz(s.Value) != s.Value {
					l.addTrap(clockUnit)
				}
				l.leavef("the clusters have different limits, and cpu.%s is one for all cores; the mode keeps those of %s", limit.field, from.Name)
			default:
				p.importClock(l, s.Value, clockCPU, "power", "modes", name, "cpu", limit.field)
			}
		}
	}
	for _, s := range m.Settings {
		if isCPUClock(s.Param) && s.Arg != "MIN_FREQ" && s.Arg != "MAX_FREQ" {
			p.line(s.Line).leavef("the language has no field for %s %s", s.Param, s.Arg)
		}
	}
}

// inKilohertz is the clock of a CPU in the unit of the file: no CPU reaches 10 GHz, and a larger
// number was written in Hz.
func inKilohertz(value string) string {
	if n, ok := number(value); ok && n >= 1e7 {
		return strconv.FormatInt(n/1000, 10)
	}
	return value
}

// settingOf is the value that a stock mode sets; "" when it sets none.
func settingOf(m board.Mode, param, arg string) string {
	for _, t := range m.Settings {
		if t[0] == param && t[1] == arg {
			return t[2]
		}
	}
	return ""
}

func (p *powerFile) importSetting(s nvpmodel.Setting, from board.Mode, name string) {
	l := p.line(s.Line)
	stock := settingOf(from, s.Param, s.Arg)
	switch {
	case sameValue(stock, s.Value):
		p.markUnderstood(l, "as stock mode "+from.Name)
	case s.Param == "GPU" && s.Arg == "MIN_FREQ":
		p.importClock(l, s.Value, clockGPU, "power", "modes", name, "gpu", "min")
	case s.Param == "GPU" && s.Arg == "MAX_FREQ":
		p.importClock(l, s.Value, clockGPU, "power", "modes", name, "gpu", "max")
	case s.Param == "EMC" && s.Arg == "MAX_FREQ":
		p.importClock(l, s.Value, clockEMC, "power", "modes", name, "emc", "max")
	case s.Param == "TPC_POWER_GATING" && s.Arg == "TPC_PG_MASK":
		if _, ok := number(s.Value); !ok {
			l.leave("a mask is a decimal number")
			return
		}
		p.im.setField(l, s.Value, "power", "modes", name, "gpu", "mask")
	case stock == "":
		l.leavef("stock mode %s does not set %s, and the language has no field for it", from.Name, s.Param)
	default:
		l.leavef("the language has no field for %s; the mode keeps %s of stock mode %s", s.Param, stock, from.Name)
	}
}

type clockKind int

const (
	clockCPU clockKind = iota // kHz in the file
	clockGPU
	clockEMC
)

// importClock imports a limit: in the unit of the file, or in the unit its author mistook it for;
// rounded to the nearest step.
func (p *powerFile) importClock(l *Line, value string, kind clockKind, names ...string) {
	n, err := strconv.ParseInt(value, 10, 64)
	field := names[len(names)-1]
	b := p.im.board
	switch {
	case err != nil || n < -1:
		l.leavef("%s is not a clock", clean(value))
		return
	case sameValue(value, "-1") && field == "max":
		p.im.setField(l, quoteCUE("unlimited"), names...)
		return
	case n == 0 && kind == clockEMC:
		l.markAdjusted("0 means no cap before L4T R36; from R36 on it means 0 Hz")
		p.im.setField(l, quoteCUE("unlimited"), names...)
		return
	case sameValue(value, "-1"):
		l.leave("-1 is not a valid lowest clock")
		return
	}
	steps, unit := b.GPUHz, int64(1)
	switch kind {
	case clockCPU:
		steps, unit = nil, 1000
		for _, khz := range b.CPUkHz {
			steps = append(steps, khz*1000)
		}
		if inKilohertz(value) != value {
			l.addTrap(clockUnit)
			l.markAdjusted("a CPU clock is in kHz, and %d kHz would be %s: read as Hz", n, units.Frequency(min(n, 1e15)*1000))
			unit = 1
		}
	case clockGPU, clockEMC:
		if kind == clockEMC {
			steps = b.EMCHz
		} else if t := b.GPUTables[p.im.release.Line()]; len(t) > 0 {
			steps = t
		}
		if n > 0 && n < 1e7 {
			l.addTrap(clockUnit)
			l.markAdjusted("the clock is in Hz, and %d Hz is below every step: read as kHz", n)
			unit = 1000
		}
	}
	if n > 1e15 {
		l.leavef("%s is not a clock", clean(value))
		return
	}
	hz := n * unit
	if n == 0 && field == "min" {
		if len(steps) == 0 {
			l.leave("0 means the lowest step, which is unknown")
			return
		}
		l.markAdjusted("0 means the lowest step")
		hz = steps[0]
	}
	if len(steps) > 0 && !slices.Contains(steps, hz) {
		near := nearestStep(steps, hz)
		if !slices.Contains(l.Traps, clockUnit) {
			l.addTrap(clockStep)
		}
		l.markAdjusted("%s is not a step of the module; the driver uses the nearest, %s", units.Frequency(hz), units.Frequency(near))
		hz = near
	}
	p.im.setField(l, quoteCUE(units.Frequency(hz)), names...)
}

func nearestStep(steps []int64, hz int64) int64 {
	distance := func(step int64) int64 { return max(step-hz, hz-step) }
	return slices.MinFunc(steps, func(a, b int64) int { return cmp.Compare(distance(a), distance(b)) })
}

// importDefaultMode imports the default mode and leaves the fan.
func (p *powerFile) importDefaultMode(names map[int]string) {
	for i, l := range p.lines {
		if l.Verdict != "" || !strings.HasPrefix(l.Text, "<") {
			continue
		}
		switch {
		case strings.Contains(l.Text, "PM_CONFIG") && p.file.Default != nil:
			name := names[*p.file.Default]
			if name == "" {
				l.leave("its mode is left")
				continue
			}
			p.im.setField(l, quoteCUE(name), "power", "default")
		case strings.Contains(l.Text, "FAN_CONFIG"):
			l.leave("yoctune has no field for the fan profile")
		default:
			l.leavef("not understood on line %d of %s", i+1, path.Base(l.File))
		}
	}
}
