// Package probe turns a probe of a device into a board of a configuration, and compares
// it with the facts about its module.
package probe

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/literal"

	"github.com/yoctune/yoctune/schema/facts"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
)

// maxProbe bounds what is read of a probe: a real one is some ten thousand bytes.
const maxProbe = 4 << 20

// Probe is what a probe holds that can be compared with facts.
type Probe struct {
	device struct {
		Compatible []string `json:"compatible"`
		L4T        string   `json:"l4t"`
		Kernel     string   `json:"kernel"`
		Modes      []string `json:"power_modes"`
	}
	hardware struct {
		Cores        int      `json:"cores"`
		Policies     []string `json:"policies"`
		CPUkHz       []int64  `json:"cpu_khz"`
		DevFreq      []clock  `json:"devfreq"`
		MemTotal     int64    `json:"mem_total"`
		ThermalZones []string `json:"thermal_zones"`
	}
}

// clock is a devfreq device.
type clock struct {
	Name   string  `json:"name"`
	OFNode string  `json:"of_node"`
	Hz     []int64 `json:"hz"`
}

var errNoProbe = errors.New(`it is not what "yoctuned probe --format json" writes`)

// Read reads the output of "yoctuned probe --format json".
func Read(r io.Reader) (Probe, error) {
	var p Probe
	seen := map[string]bool{}
	in := bufio.NewScanner(io.LimitReader(r, maxProbe))
	in.Buffer(nil, maxProbe)
	for n := 1; in.Scan(); n++ {
		if strings.TrimSpace(in.Text()) == "" {
			continue
		}
		var head struct {
			Type    string `json:"type"`
			Command string `json:"command"`
		}
		if err := json.Unmarshal(in.Bytes(), &head); err != nil {
			return p, fmt.Errorf("line %d: %w (%w)", n, errNoProbe, err)
		}
		var err error
		switch head.Type {
		case "device":
			err = json.Unmarshal(in.Bytes(), &p.device)
		case "hardware":
			err = json.Unmarshal(in.Bytes(), &p.hardware)
		case "summary":
			if head.Command != "probe" {
				err = fmt.Errorf("it is the output of %q", head.Command)
			}
		}
		if err != nil {
			return p, fmt.Errorf("line %d: %w (%w)", n, errNoProbe, err)
		}
		seen[head.Type] = true
	}
	if err := in.Err(); err != nil {
		return p, err
	}
	switch {
	case !seen["device"]:
		return p, errNoProbe
	case !seen["hardware"]:
		return p, fmt.Errorf("it has no line of type hardware: the device's yoctuned is older than this program")
	case !seen["summary"]:
		return p, fmt.Errorf("its end is missing: the last line of a whole probe is a summary")
	}
	return p, nil
}

// Comparison is a probe with the facts about the module and the release of its device.
type Comparison struct {
	Board       *board.Board
	Release     release.Release
	Differences []board.Difference

	probe       Probe
	observation board.Observation
}

// Compare compares the probe with the facts about a board and a release of meta-tegra.
// An empty id or name is found from the device tree and the version of L4T; the error
// names the flag that decides.
func (p Probe) Compare(id, name string) (Comparison, error) {
	b, err := p.identifyBoard(id)
	if err != nil {
		return Comparison{}, err
	}
	r, err := p.identifyRelease(name, b)
	if err != nil {
		return Comparison{}, err
	}
	stock, exact, err := b.StockTable(r.Name)
	if err != nil && !errors.Is(err, board.ErrNoTable) {
		return Comparison{}, err
	}
	o := p.observation()
	differences := b.Compare(o, r.Line(), stock, exact && sameL4T(p.device.L4T, r.L4T))
	return Comparison{b, r, differences, p, o}, nil
}

// Contradictions counts the differences from verified facts.
func (c Comparison) Contradictions() int {
	n := 0
	for _, d := range c.Differences {
		if d.Verified {
			n++
		}
	}
	return n
}

func (p Probe) identifyBoard(id string) (*board.Board, error) {
	compatible := strings.Join(p.device.Compatible, " ")
	if id == "" {
		for _, known := range board.IDs() {
			if board.IsCompatible(known, p.device.Compatible) {
				id = known
			}
		}
	}
	if id == "" {
		return nil, fmt.Errorf("the device tree names no known module (%s): choose one with --board", compatible)
	}
	b, ok := board.Lookup(id)
	if !ok {
		return nil, fmt.Errorf("no facts about the board %q%s", id, facts.Suggest(id))
	}
	if board.IsIdentifiable(id) && len(p.device.Compatible) > 0 && !board.IsCompatible(id, p.device.Compatible) {
		return nil, fmt.Errorf("--board %s: the device is another module (%s)", id, compatible)
	}
	return b, nil
}

func (p Probe) identifyRelease(name string, b *board.Board) (release.Release, error) {
	if name == "" {
		name = p.nearestRelease(b)
	}
	if name == "" {
		return release.Release{}, fmt.Errorf("no branch has L4T %q for %s: choose one with --release", p.device.L4T, b.ID)
	}
	r, ok := release.Lookup(name)
	if !ok {
		return release.Release{}, fmt.Errorf("release %q is not known%s", name, facts.Suggest(name))
	}
	return r, nil
}

// nearestRelease finds the branch with the board and the device's version of L4T, or
// else one with the same line of L4T; "" when there is none.
func (p Probe) nearestRelease(b *board.Board) string {
	line, _, _ := strings.Cut(p.device.L4T, ".")
	for _, isSame := range []func(release.Release) bool{
		func(r release.Release) bool { return sameL4T(p.device.L4T, r.L4T) },
		func(r release.Release) bool { return line != "" && r.Line() == "R"+line },
	} {
		for _, name := range release.Names() {
			r, _ := release.Lookup(name)
			if _, has := b.Releases[name]; has && isSame(r) {
				return name
			}
		}
	}
	return ""
}

// sameL4T compares versions where one may leave out its last zero: 36.4 and
// 36.4.0.
func sameL4T(a, b string) bool {
	return a != "" && strings.TrimSuffix(a, ".0") == strings.TrimSuffix(b, ".0")
}

func (p Probe) observation() board.Observation {
	o := board.Observation{
		L4T: p.device.L4T, Cores: p.hardware.Cores, Policies: p.hardware.Policies, CPUkHz: p.hardware.CPUkHz,
		MemTotal: p.hardware.MemTotal, ThermalZones: p.hardware.ThermalZones, Modes: p.device.Modes,
	}
	for _, c := range p.hardware.DevFreq {
		if board.IsGPU(c.Name, c.OFNode) {
			o.GPU, o.GPUHz = c.Name, c.Hz
		}
	}
	return o
}

// Names are the names in the CUE file of a board; each may be empty.
type Names struct {
	Board    string   // below boards
	Machines []string // MACHINEs of the board; empty for those of the module
	Package  string
}

// CUE writes the probe as an entry of boards. A comment marks what differs from a fact.
func (c Comparison) CUE(n Names) ([]byte, error) {
	if n.Board == "" {
		n.Board = c.Board.ID + "-observed"
	}
	if len(n.Machines) == 0 {
		n.Machines = c.Board.Releases[c.Release.Name].Machines
	}
	p, seen := c.probe, c.observation
	quote := func(s string) string { return literal.String.Quote(s) }
	list := func(values []string) string {
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = quote(v)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	var w strings.Builder
	if n.Package != "" {
		fmt.Fprintf(&w, "package %s\n\n", n.Package)
	}
	fmt.Fprintf(&w, "boards: %s: {\n\tbase: %s\n\tmachines: %s: %s\n\n", quote(n.Board), quote(c.Board.ID), quote(c.Release.Name), list(n.Machines))
	w.WriteString("\t// Observed on one device by yoctuned probe: none of this is verified, and none of it\n\t// replaces a fact.\n\tobserved: {\n")
	field := func(name, value string, known bool) {
		if !known {
			return
		}
		for _, d := range c.Differences {
			switch {
			case d.Field != name:
			case d.Verified:
				fmt.Fprintf(&w, "\t\t// CONTRADICTS a verified fact: %s (%s).\n", oneLine(d.Known), oneLine(d.Source))
			case d.Known != "":
				fmt.Fprintf(&w, "\t\t// The facts have, not verified: %s.\n", oneLine(d.Known))
			default:
				w.WriteString("\t\t// The facts have nothing of this.\n")
			}
		}
		fmt.Fprintf(&w, "\t\t%s: %s\n", name, value)
	}
	field("l4t", quote(p.device.L4T), p.device.L4T != "")
	field("kernel", quote(p.device.Kernel), p.device.Kernel != "")
	field("compatible", list(p.device.Compatible), len(p.device.Compatible) > 0)
	field("cores", strconv.Itoa(seen.Cores), seen.Cores > 0)
	field("policies", list(seen.Policies), len(seen.Policies) > 0)
	field("cpu", list(frequencies(seen.CPUkHz, "kHz")), len(seen.CPUkHz) > 0)
	field("gpu", list(frequencies(seen.GPUHz, "Hz")), len(seen.GPUHz) > 0)
	field("gpuDevfreq", quote(seen.GPU), seen.GPU != "")
	field("memory", strconv.FormatInt(seen.MemTotal, 10), seen.MemTotal > 0)
	field("thermalZones", list(seen.ThermalZones), len(seen.ThermalZones) > 0)
	field("modes", list(seen.Modes), len(seen.Modes) > 0)
	w.WriteString("\t}\n}\n")
	text, err := format.Source([]byte(w.String()))
	if err != nil {
		return nil, fmt.Errorf("writing the board: %w", err)
	}
	return text, nil
}

// oneLine keeps text of the facts inside a comment.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func frequencies(steps []int64, unit string) []string {
	out := make([]string, len(steps))
	for i, n := range steps {
		out[i] = strconv.FormatInt(n, 10) + unit
	}
	return out
}
