// Package board holds what is known of NVIDIA Jetson modules: cores, frequency
// tables, and the power modes NVIDIA ships for them, each with its source and
// whether a file or log has shown it.
package board

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"sort"
	"strings"
)

//go:embed data/*.json
var data embed.FS

// Board is one module (SKU).
type Board struct {
	ID         string             `json:"id"`
	Name       string             `json:"name"`
	Modules    []string           `json:"modules"` // NVIDIA part numbers
	SoC        string             `json:"soc"`     // tegra234: bitbake's SOC override
	SM         int                `json:"sm"`      // CUDA architecture, 87 for sm_87
	Cores      int                `json:"cores"`
	Policies   []Policy           `json:"policies"`
	CPUkHz     []int64            `json:"cpu_khz"` // ascending
	GPUHz      []int64            `json:"gpu_hz"`  // ascending; empty: no table is verified
	EMCHz      []int64            `json:"emc_hz"`  // ascending
	RAMBytes   int64              `json:"ram_bytes"`
	DLA        int                `json:"dla"`
	Compatible []string           `json:"compatible"` // device tree strings that identify it
	GPUMasks   []int64            `json:"gpu_masks"`  // TPC_PG_MASK values of the stock modes
	Sources    map[string]string  `json:"sources"`
	Releases   map[string]Release `json:"releases"`
	Tables     map[string]Table   `json:"tables"`
}

// Policy is a cpufreq policy: cores that share a clock.
type Policy struct {
	First int    `json:"first"`
	CPUs  string `json:"cpus"` // cpu list
}

// Release is what a meta-tegra branch has for the board.
type Release struct {
	Machines []string `json:"machines"` // the first is the default
	NVPModel string   `json:"nvpmodel"` // stock file the machine installs
	Table    string   `json:"table"`    // key of Board.Tables
	Verified bool     `json:"verified"` // the table was read for this L4T
}

// Table is one stock nvpmodel.conf, as facts.
type Table struct {
	Params []Param `json:"params"`
	Modes  []Mode  `json:"modes"` // in id order
}

// Param is a PARAM section; Args leaves out the _KNEXT twins, which settings
// never name.
type Param struct {
	Name string   `json:"name"`
	Type string   `json:"type"` // FILE, CLOCK, HWMON
	Args []string `json:"args"`
}

// Mode is a POWER_MODEL block; a setting is {PARAM, ARG, value} in the order
// nvpmodel writes them. CPU clocks in kHz, others in Hz.
type Mode struct {
	ID       int         `json:"id"`
	Name     string      `json:"name"`
	Default  bool        `json:"default"`
	Settings [][3]string `json:"settings"`
}

// IDs lists the boards, sorted.
func IDs() []string {
	entries, err := data.ReadDir("data")
	if err != nil {
		return nil // embedded: cannot fail
	}
	ids := make([]string, 0, len(entries))
	for _, e := range entries {
		ids = append(ids, strings.TrimSuffix(e.Name(), ".json"))
	}
	sort.Strings(ids)
	return ids
}

// Lookup returns the facts of a board. Only the file asked for is decoded.
func Lookup(id string) (*Board, bool) {
	if id == "" || strings.ContainsAny(id, "/\\.") {
		return nil, false
	}
	raw, err := data.ReadFile(path.Join("data", id+".json"))
	if err != nil {
		return nil, false
	}
	var b Board
	if err := json.Unmarshal(raw, &b); err != nil {
		// A test decodes every file; reaching this means a broken build.
		return nil, false
	}
	return &b, true
}

// Stock returns the stock table of the board on a release, and whether it was
// verified for that release's L4T.
func (b *Board) Stock(release string) (t Table, verified bool, err error) {
	r, ok := b.Releases[release]
	if !ok {
		return Table{}, false, fmt.Errorf("no facts for board %s on release %s", b.ID, release)
	}
	t, ok = b.Tables[r.Table]
	if !ok {
		return Table{}, false, fmt.Errorf("board %s: table %q is missing", b.ID, r.Table)
	}
	return t, r.Verified, nil
}

// Mode finds a stock mode by name.
func (t Table) Mode(name string) (Mode, bool) {
	for _, m := range t.Modes {
		if m.Name == name {
			return m, true
		}
	}
	return Mode{}, false
}

// Has tells whether the table declares PARAM with ARG.
func (t Table) Has(param, arg string) bool {
	for _, p := range t.Params {
		if p.Name != param {
			continue
		}
		for _, a := range p.Args {
			if a == arg {
				return true
			}
		}
	}
	return false
}
