// Package board holds facts about NVIDIA Jetson modules: cores, frequency tables, and
// the power modes that NVIDIA ships for them. Each fact has its source and is marked
// verified when a file or log shows it.
package board

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

//go:embed data/*.json
var data embed.FS

// Board is one module (SKU). What is not known is absent: a nil pointer, an
// empty slice, or a zero count whose field [Board.IsKnown] denies.
type Board struct {
	ID         string             `json:"id"`
	Name       string             `json:"name"`
	Modules    []string           `json:"modules"` // NVIDIA part numbers
	SoC        string             `json:"soc"`     // tegra234: bitbake's SOC override
	SM         int                `json:"sm"`      // CUDA architecture, 87 for sm_87
	Cores      int                `json:"cores"`
	Policies   []Policy           `json:"policies,omitempty"`
	CPUkHz     []int64            `json:"cpu_khz,omitempty"` // ascending; empty: the table is not known
	GPUHz      []int64            `json:"gpu_hz,omitempty"`  // ascending; empty: no table is verified
	EMCHz      []int64            `json:"emc_hz,omitempty"`  // ascending
	RAMBytes   int64              `json:"ram_bytes"`         // the smallest variant, unless ID names another
	DLA        int                `json:"dla"`
	Compatible []string           `json:"compatible,omitempty"` // device tree strings that identify the module
	GPUMasks   []int64            `json:"gpu_masks,omitempty"`  // TPC_PG_MASK values of the stock modes
	Sources    map[string]string  `json:"-"`                    // field to source, from Evidence
	Releases   map[string]Release `json:"releases"`
	Tables     map[string]Table   `json:"tables,omitempty"`

	CPU         Limits             `json:"cpu,omitzero"`         // kHz
	GPU         Limits             `json:"gpu,omitzero"`         // Hz
	EMC         Limits             `json:"emc,omitzero"`         // Hz
	GPUTables   map[string][]int64 `json:"gpu_tables,omitempty"` // Hz by L4T line, where GPUHz does not hold for all
	RAMVariants []int64            `json:"ram_variants,omitempty"`
	PVA         *int               `json:"pva,omitempty"` // programmable vision accelerators
	TensorCores *bool              `json:"tensor_cores,omitempty"`
	MaskRule    *MaskRule          `json:"mask_rule,omitempty"`
	Rails       []Rail             `json:"rails,omitempty"`
	Fan         *Fan               `json:"fan,omitempty"`
	// By L4T line, "R32" to "R39", which release.Release.Line gives.
	GPUDevfreq   map[string][]string `json:"gpu_devfreq,omitempty"`   // device folders, the one in use first
	EMCNodes     map[string]EMCNodes `json:"emc_nodes,omitempty"`     // where the memory clock is capped and read
	ThermalZones map[string][]string `json:"thermal_zones,omitempty"` // thermal_zone*/type; "*" stands for a suffix
	Supply       []Note              `json:"supply,omitempty"`        // what the power supply and its limits do
	Quirks       []Note              `json:"quirks,omitempty"`
	// KitCompatible names the developer kit, not the module: several boards share it.
	KitCompatible []string `json:"kit_compatible,omitempty"`
	// Evidence has the source of each field above, by its JSON name.
	Evidence map[string]Evidence `json:"evidence"`

	// What Releases and the identities are derived from (internal/cmd/facts).
	IdentifiedBy   string   `json:"identified_by,omitempty"`   // "module" (Compatible) or "kit" (KitCompatible); empty: a device cannot be recognised
	DeviceTrees    []string `json:"device_trees,omitempty"`    // parts of device tree file names that name the module
	DefaultMachine string   `json:"default_machine,omitempty"` // where a machine called jetson-* is not the default
}

// Evidence is the source of a fact. A fact is verified if a file, log or source states
// it, and not if it was derived.
type Evidence struct {
	Source   string `json:"source"`
	Verified bool   `json:"verified"`
	Note     string `json:"note,omitempty"`
}

// Limits are the lowest and highest rate of a clock; nil where unknown.
type Limits struct {
	Min *int64 `json:"min,omitempty"`
	Max *int64 `json:"max,omitempty"`
	// BootMin is the lower end that stock modes set.
	BootMin *int64 `json:"boot_min,omitempty"`
	// MaxNonSuper is the upper end with a BPMP device tree that is not "-super",
	// regardless of nvpmodel; Max is the end with such a device tree.
	MaxNonSuper *int64 `json:"max_non_super,omitempty"`
}

// MaskRule is what the GPU driver accepts as TPC_PG_MASK (nvgpu,
// platform_gv11b_tegra.c and platform_ga10b_tegra.c): a set bit gates a TPC.
type MaskRule struct {
	Allowed []int64 `json:"allowed,omitempty"` // only these
	Max     int64   `json:"max,omitempty"`     // or any value up to this one
	FBP     []int64 `json:"fbp,omitempty"`     // FBP_PG_MASK values
	File    string  `json:"file,omitempty"`    // where the mask is when it is not a sysfs node
}

// Rail is one power monitor and its channels in order; "NC" is not connected.
type Rail struct {
	Chip      string   `json:"chip"`          // ina3221, ina3221x, ina238
	Bus       string   `json:"bus,omitempty"` // i2c bus-address
	Labels    []string `json:"labels"`
	ShuntUOhm int64    `json:"shunt_uohm,omitempty"`
	Path      string   `json:"path,omitempty"` // sysfs folder, with globs
}

// Fan is the fan control that NVIDIA ships.
type Fan struct {
	Config   string            `json:"config,omitempty"`  // nvfancontrol file, without .conf
	Default  string            `json:"default,omitempty"` // its FAN_DEFAULT_PROFILE
	Profiles []string          `json:"profiles,omitempty"`
	TMargin  *bool             `json:"tmargin,omitempty"`        // the TEMP column is the margin below MaxTemp, so PWM falls along it
	MaxTemp  int               `json:"group_max_temp,omitempty"` // degrees Celsius
	PWM      map[string]string `json:"pwm,omitempty"`            // by L4T line
	Tach     string            `json:"tach,omitempty"`
}

// EMCNodesOf returns the files of the memory controller's clock on an L4T line: those of the newest
// line up to it.
func (b *Board) EMCNodesOf(line string) EMCNodes {
	newest := ""
	for have := range b.EMCNodes {
		if have <= line && have > newest {
			newest = have
		}
	}
	return b.EMCNodes[newest]
}

// EMCNodes are the files of the memory controller's clock.
type EMCNodes struct {
	Cap   string `json:"cap,omitempty"`    // what nvpmodel writes
	NoCap string `json:"no_cap,omitempty"` // the value that means no cap
	Lock  string `json:"lock,omitempty"`   // what jetson_clocks writes
	Read  string `json:"read,omitempty"`
	Load  string `json:"load,omitempty"`
}

// Note is a fact in words.
type Note struct {
	ID       string `json:"id"`
	Text     string `json:"text"`
	Source   string `json:"source"`
	Verified bool   `json:"verified"`
}

// Policy is a cpufreq policy: cores that share a clock.
type Policy struct {
	First int    `json:"first"`
	CPUs  string `json:"cpus"` // cpu list
	Core  string `json:"core,omitempty"`
}

// Release is what a meta-tegra branch has for the board.
type Release struct {
	Machines []string `json:"machines"`         // the first is the default
	NVPModel string   `json:"nvpmodel"`         // stock file the default machine installs
	Table    string   `json:"table,omitempty"`  // key of Board.Tables; empty: no facts about the file
	Verified bool     `json:"verified"`         // the table was read for this L4T
	Basis    string   `json:"basis,omitempty"`  // what Table was read for, where that is another L4T
	Others   []Other  `json:"others,omitempty"` // machines that install another file than the default one
	// OwnModel is the file NVIDIA made for this module, where meta-tegra's machine
	// installs another module's.
	OwnModel string `json:"own_nvpmodel,omitempty"`
	OwnTable string `json:"own_table,omitempty"`
}

// Other is a machine whose stock file differs from the default machine's.
type Other struct {
	Machine  string `json:"machine"`
	NVPModel string `json:"nvpmodel"`
	Table    string `json:"table,omitempty"`
}

// Table is one stock nvpmodel.conf, as facts.
type Table struct {
	Params []Param `json:"params,omitempty"`
	Modes  []Mode  `json:"modes"`         // in id order
	L4T    string  `json:"l4t,omitempty"` // version the file was read for
	// Files are the values of NVPMODEL that install the file. Holds are the L4T
	// versions that it is known to hold for, Lines those it may be used for: all, when
	// empty. Own is its name where NVIDIA made it for this module and no machine
	// installs it.
	Files  []string `json:"files,omitempty"`
	Holds  []string `json:"holds,omitempty"`
	Lines  []string `json:"lines,omitempty"`
	Own    string   `json:"own,omitempty"`
	Source string   `json:"source,omitempty"`
	// Partial: only names and ids of the modes are known.
	Partial bool `json:"partial,omitempty"`
	// ParamsByUse: the PARAM sections were not read; what the modes use is what is
	// listed, because nvpmodel accepts no undeclared name, and Paths are those of a
	// sibling file.
	ParamsByUse bool `json:"params_by_use,omitempty"`
	// Foreign: the file was made for another module, and may name cores this one
	// lacks.
	Foreign bool   `json:"foreign,omitempty"`
	Note    string `json:"note,omitempty"`
}

// Param is a PARAM section; Args leaves out the _KNEXT twins, which settings
// never name.
type Param struct {
	Name string   `json:"name"`
	Type string   `json:"type"` // FILE, CLOCK, HWMON
	Args []string `json:"args"`
	// Paths has the file of each argument; one that was not read is absent.
	Paths map[string]string `json:"paths,omitempty"`
	// KNext: the section has _KNEXT twins, the files of a newer kernel. Those with
	// another path than the argument itself are in Paths.
	KNext bool `json:"knext,omitempty"`
}

// Mode is a POWER_MODEL block; a setting is {PARAM, ARG, value} in the order
// nvpmodel writes them. CPU clocks in kHz, others in Hz.
type Mode struct {
	ID       int         `json:"id"`
	Name     string      `json:"name"`
	Default  bool        `json:"default"`
	Settings [][3]string `json:"settings,omitempty"`
}

// ErrNoTable is what [Board.StockTable] wraps when nothing is known about the stock
// file of a release.
var ErrNoTable = errors.New("stock power modes are not known")

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
	slices.Sort(ids)
	return ids
}

// Lookup returns the facts of a board. It decodes only the requested file, once. The
// value is shared; callers must not modify it.
func Lookup(id string) (*Board, bool) {
	read, ok := readers()[id]
	if !ok {
		return nil, false
	}
	b := read()
	return b, b != nil
}

// readers has a function for every board that decodes its file when first called.
var readers = sync.OnceValue(func() map[string]func() *Board {
	all := map[string]func() *Board{}
	for _, id := range IDs() {
		all[id] = sync.OnceValue(func() *Board { return decode(id) })
	}
	return all
})

// decode returns nil for a file that does not decode. A test decodes every one;
// meeting it means a broken build.
func decode(id string) *Board {
	raw, err := data.ReadFile(path.Join("data", id+".json"))
	if err != nil {
		return nil
	}
	var b Board
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil
	}
	b.Sources = make(map[string]string, len(b.Evidence))
	for field, e := range b.Evidence {
		b.Sources[field] = e.Source
	}
	return &b
}

// WithoutRelease explains why no layer can be made for a board that is in no release, and
// names the boards of its SoC that are in one.
func (b *Board) WithoutRelease() string {
	text := "no release of meta-tegra has a machine for this board, so no layer can be made for it"
	var others []string
	for _, id := range IDs() {
		if o, ok := Lookup(id); ok && o.SoC == b.SoC && len(o.Releases) > 0 {
			others = append(others, id)
		}
	}
	if len(others) > 0 {
		text += "; boards with the same " + b.SoC + " that have one: " + strings.Join(others, ", ")
	}
	return text
}

// IsKnown reports whether the field with this JSON name is known, verified or not. It
// distinguishes "no DLA" from "unknown".
func (b *Board) IsKnown(field string) bool {
	_, ok := b.Evidence[field]
	return ok
}

// IsVerified reports whether a file, log or source showed the field with this JSON
// name.
func (b *Board) IsVerified(field string) bool { return b.Evidence[field].Verified }

// StockTable returns the stock table of the board on a release, and whether it was
// verified for that release's L4T.
func (b *Board) StockTable(release string) (t Table, verified bool, err error) {
	r, ok := b.Releases[release]
	if !ok {
		return Table{}, false, fmt.Errorf("no facts for board %s on release %s", b.ID, release)
	}
	if r.Table == "" {
		return Table{}, false, fmt.Errorf("board %s on release %s: %w", b.ID, release, ErrNoTable)
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

// Has reports whether the table declares PARAM with ARG.
func (t Table) Has(param, arg string) bool {
	return slices.ContainsFunc(t.Params, func(p Param) bool { return p.Name == param && slices.Contains(p.Args, arg) })
}

// CoresOf lists the cores whose clock a parameter of the table sets: a Super file
// has one per core, older files one per cluster. Nil when the parameter is no
// CPU clock or its file was not read.
func (b *Board) CoresOf(t Table, param string) []int {
	core, ok := t.cpu(param)
	if !ok {
		return nil
	}
	for _, p := range b.Policies {
		list, err := cpulist.Parse(p.CPUs)
		if err != nil || !slices.Contains(list, core) {
			continue
		}
		for _, other := range t.Params {
			if c, ok := t.cpu(other.Name); ok && c != core && slices.Contains(list, c) {
				return []int{core}
			}
		}
		return list
	}
	return []int{core}
}

// cpu is the core whose cpufreq folder the parameter names.
func (t Table) cpu(param string) (int, bool) {
	for _, p := range t.Params {
		if p.Name != param {
			continue
		}
		if m := cpuPath.FindStringSubmatch(p.Paths["MAX_FREQ"]); m != nil {
			core, err := strconv.Atoi(m[1])
			return core, err == nil
		}
	}
	return 0, false
}
