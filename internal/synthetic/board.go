package synthetic

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/facts"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

// l4t is what a device of an L4T line reports about itself.
var l4t = map[string]struct{ release, kernel string }{
	"R32": {"# R32 (release), REVISION: 7.4", "4.9.337-tegra"},
	"R35": {"# R35 (release), REVISION: 3.1", "5.10.104-tegra"},
	"R36": {"# R36 (release), REVISION: 4.0", "5.15.148-l4t"},
}

// carriers are the developer kits' boards, by the first digits of the module's number.
var carriers = map[string]string{"p3701": "p3737-0000", "p3767": "p3768-0000"}

// model is what the template shows of a board.
type model struct {
	facts *board.Board
	line  string // of L4T, whose device folders the facts have: R35, R36
	table string // the power modes among the board's facts

	Policies []policy
	CPUSteps string // kHz
	GPUSteps string // Hz
	GPUDir   string // of the GPU's device
	L4T      string
	Kernel   string
	Folders  string // why device folders are those of another L4T, or ""
}

// policy is a cpufreq policy: its first core, and all of its cores.
type policy struct {
	First int
	List  []int
}

// Cores returns the cores as related_cpus lists them: "4 5".
func (p policy) Cores() string { return join(p.List) }

// Boards lists the boards whose facts suffice for a device.
func Boards() []string {
	return slices.DeleteFunc(board.IDs(), func(id string) bool {
		return Missing(id) != nil
	})
}

// DefaultRelease returns the release of a board with the newest L4T whose device folders the
// facts have, "" if there is none.
func DefaultRelease(id string) string {
	b, ok := board.Lookup(id)
	if !ok {
		return ""
	}
	name, newest := "", ""
	for _, candidate := range slices.Sorted(maps.Keys(b.Releases)) {
		r, _ := release.Lookup(candidate)
		if _, known := b.GPUDevfreq[r.Line()]; known && r.L4T > newest {
			name, newest = candidate, r.L4T
		}
	}
	return name
}

// Missing returns the reason why a board has no device; nil for one of [Boards].
func Missing(id string) error {
	_, err := newModel(id, "")
	return err
}

// newModel collects the facts about a board on a release; "" for the newest L4T whose
// device folders are known.
func newModel(id, on string) (model, error) {
	b, ok := board.Lookup(id)
	if !ok {
		return model{}, fmt.Errorf("no facts about the board %q%s ('yoctune facts list boards' shows the names)", id, facts.Suggest(id))
	}
	m := model{facts: b}
	lines := slices.Sorted(func(yield func(string) bool) {
		for line := range b.GPUDevfreq {
			if _, known := l4t[line]; known && !yield(line) {
				return
			}
		}
	})
	if len(lines) == 0 {
		return m, m.lacks("device folders of its GPU")
	}
	m.line = lines[len(lines)-1]
	m.L4T, m.Kernel = l4t[m.line].release, l4t[m.line].kernel
	if on != "" {
		if err := m.startRelease(on, lines); err != nil {
			return m, err
		}
	}
	for _, name := range release.Names() {
		if r, _ := release.Lookup(name); m.table == "" && r.Line() == m.line && b.Releases[name].Table != "" {
			m.table = b.Releases[name].Table
		}
	}
	for _, p := range b.Policies {
		cores, err := cpulist.Parse(p.CPUs)
		if err != nil {
			return m, err
		}
		m.Policies = append(m.Policies, policy{p.First, cores})
	}
	if m.Policies == nil || b.CPU.Max == nil {
		return m, m.lacks("CPU clocks")
	}
	m.CPUSteps = cpuSteps(b)
	m.GPUSteps = gpuSteps(b, m.line)
	if m.GPUSteps == "" {
		return m, m.lacks("GPU clocks")
	}
	m.GPUDir = gpuFolder(b.GPUDevfreq[m.line])
	if m.GPUDir == "" {
		return m, m.lacks("GPU folder")
	}
	return m, nil
}

// startRelease makes the model one of a release. Where the facts have no device folders of
// its L4T, those of the nearest older one stand in, else of the oldest.
func (m *model) startRelease(on string, lines []string) error {
	r, known := release.Lookup(on)
	if !known {
		return fmt.Errorf("no facts about the release %q%s ('yoctune facts list releases' shows the names)", on, facts.Suggest(on))
	}
	of, has := m.facts.Releases[on]
	if !has {
		return fmt.Errorf("no release %s of the board %s: it is on %s", on, m.facts.ID, cmp.Or(strings.Join(slices.Sorted(maps.Keys(m.facts.Releases)), ", "), m.facts.WithoutRelease()))
	}
	m.line = lines[0]
	for _, line := range lines {
		if line <= r.Line() {
			m.line = line
		}
	}
	if r.Line() != m.line {
		m.Folders = fmt.Sprintf("no device folders of L4T %s are known; those of %s stand in", r.L4T, m.line)
	}
	major, rest, _ := strings.Cut(r.L4T, ".")
	minor, _, _ := strings.Cut(rest, ".")
	m.L4T = fmt.Sprintf("# R%s (release), REVISION: %s", major, rest)
	m.Kernel = fmt.Sprintf("%s-l4t-r%s.%s", r.KernelVersion, major, minor)
	m.table = of.Table
	return nil
}

func (m model) lacks(what string) error {
	return fmt.Errorf("%w of %s: its facts have no %s", ErrFacts, m.facts.ID, what)
}

// version is the version of L4T: 36.4.0.
func (m model) version() string {
	return strings.NewReplacer("# R", "", " (release), REVISION: ", ".").Replace(m.L4T)
}

// cpuSteps are the known clocks, or those of Tegra's raster up to the highest.
func cpuSteps(b *board.Board) string {
	if len(b.CPUkHz) > 0 {
		return join(b.CPUkHz)
	}
	var steps []int64
	for khz := int64(115200); khz < *b.CPU.Max; khz += 76800 {
		steps = append(steps, khz)
	}
	return join(append(steps, *b.CPU.Max))
}

// gpuSteps are the known clocks, those of another line, or the two ends.
func gpuSteps(b *board.Board, line string) string {
	steps := b.GPUHz
	if len(steps) == 0 {
		steps = b.GPUTables[line]
	}
	for _, other := range b.GPUTables {
		if len(steps) == 0 {
			steps = other
		}
	}
	if len(steps) == 0 && b.GPU.Min != nil && b.GPU.Max != nil {
		steps = []int64{*b.GPU.Min, *b.GPU.Max}
	}
	return join(steps)
}

var devfreqNumber = regexp.MustCompile(`/devfreq[0-9]+$`)

// gpuFolder is the device's own folder among the names that lead to its clock.
func gpuFolder(names []string) string {
	for _, name := range slices.Backward(names) {
		dir, _, ok := strings.Cut(name, "/devfreq/")
		if ok && strings.HasPrefix(name, "/sys/devices/") && !devfreqNumber.MatchString(name) && path.Base(dir) == path.Base(name) {
			return dir
		}
	}
	return ""
}

func join[N int | int64](numbers []N) string { return strings.Trim(fmt.Sprint(numbers), "[]") }

// name is what the device tree calls the board.
func (m model) name() string { return "NVIDIA " + m.facts.Name }

// compatible is the root's property in the device tree, with NULs.
func (m model) compatible() string {
	var all []string
	if m.facts.IdentifiedBy != "kit" && len(m.facts.Compatible) > 0 {
		own := m.facts.Compatible[0]
		maker, number, _ := strings.Cut(own, ",")
		family, _, _ := strings.Cut(number, "-")
		if carrier, ok := carriers[family]; ok {
			all = append(all, maker+","+carrier+"+"+number)
		}
		all = append(all, own)
	} else {
		all = append(all, m.facts.KitCompatible...)
	}
	return strings.Join(append(all, "nvidia,"+m.facts.SoC), "\x00") + "\x00"
}

// The methods below are used by tree.txt.tmpl.

func (m model) BootID() string    { return BootID }
func (m model) CPUs() int         { return m.facts.Cores }
func (m model) AllCPUs() string   { return fmt.Sprintf("0-%d", m.CPUs()-1) }
func (m model) CPUMask() string   { return fmt.Sprintf("%x", 1<<m.CPUs()-1) }
func (m model) CPULowest() string { first, _, _ := strings.Cut(m.CPUSteps, " "); return first }
func (m model) CPUMax() int64     { return *m.facts.CPU.Max }

// CPUMin is the lowest clock of the stock modes.
func (m model) CPUMin() string {
	if m.facts.CPU.BootMin == nil {
		return m.CPULowest()
	}
	return strconv.FormatInt(*m.facts.CPU.BootMin, 10)
}

func (m model) GPUName() string { return path.Base(m.GPUDir) }
func (m model) GPUMin() string  { return m.GPUSteps[:strings.IndexByte(m.GPUSteps, ' ')] }
func (m model) GPUMax() string  { return m.GPUSteps[strings.LastIndexByte(m.GPUSteps, ' ')+1:] }

// GPUNode is the node's name in the device tree: gpu for the device 17000000.gpu.
func (m model) GPUNode() string { return strings.TrimPrefix(path.Ext(m.GPUName()), ".") }

// GPUAddress is the node's unit address.
func (m model) GPUAddress() string { return strings.TrimSuffix(m.GPUName(), path.Ext(m.GPUName())) }

// Memory returns a size in kB: of all memory that firmware leaves to the kernel, of what is
// free, and of what is available.
func (m model) Memory() [3]int64 {
	total := m.facts.RAMBytes>>10 - 586256
	return [3]int64{total, total - min(3600000, total/2), total - min(1600000, total/4)}
}

// Interrupts returns action names by number.
func (m model) Interrupts() map[int]string {
	names := []string{"mmc0", "gk20a_stall", "gk20a_nonstall", "xhci-hcd:usb1", "eth0"}
	for q := range m.CPUs() + 1 {
		names = append(names, fmt.Sprintf("nvme0q%d", q))
	}
	if strings.HasPrefix(m.facts.ID, "agx-orin") {
		names = append(names, "can0", "can1")
	}
	out := map[int]string{}
	for i, name := range names {
		out[40+i] = name
	}
	return out
}

// HardwareIRQ returns the interrupt's number at its controller.
func (m model) HardwareIRQ(number int) int { return number + 32 }

// zone is a thermal zone; Temp is in m°C.
type zone struct {
	Name string
	Temp int
}

// temperatures of an idle board, by the part that a zone measures. The converters are off.
var temperatures = map[string]int{"cpu": 48125, "gpu": 46875, "cv0": 0, "cv1": 0, "cv2": 0, "soc0": 47250, "soc1": 46500, "soc2": 46750, "tj": 48125}

// Zones returns the zones whose names are known.
func (m model) Zones() []zone {
	var zones []zone
	for _, name := range m.facts.ThermalZones[m.line] {
		part, _, _ := strings.Cut(strings.ToLower(name), "-")
		temp, ok := temperatures[part]
		if !ok {
			temp = 45000
		}
		if !strings.Contains(name, "*") {
			zones = append(zones, zone{name, temp})
		}
	}
	return zones
}

// Rails returns the labels of the first power monitor.
func (m model) Rails() []string {
	if len(m.facts.Rails) == 0 {
		return nil
	}
	return m.facts.Rails[0].Labels
}

// Channel returns the number of a rail's channel.
func (m model) Channel(rail int) int { return rail + 1 }

// Milliampere returns the current of a rail.
func (m model) Milliampere(rail int) int { return max(920-300*rail, 0) }

// CoolingDevices returns their types.
func (m model) CoolingDevices() []string {
	out := []string{"pwm-fan"}
	for _, p := range m.Policies {
		out = append(out, fmt.Sprintf("cpufreq-cpu%d", p.First))
	}
	return append(out, "devfreq-"+m.GPUName())
}
