package release

import (
	_ "embed"
	"encoding/json"
	"sync"
)

// Machine is one conf/machine/*.conf of a branch, as its files resolve.
type Machine struct {
	Name         string   `json:"name"`
	NVPModel     string   `json:"nvpmodel"`               // NVPMODEL: the stock power mode file it installs
	NVFanControl string   `json:"nvfancontrol,omitempty"` // NVFANCONTROL; none on R32
	BoardID      string   `json:"board_id"`               // TEGRA_BOARDID
	BoardSKU     string   `json:"board_sku,omitempty"`    // TEGRA_BOARDSKU; some machines leave it to the flashing tool
	DeviceTrees  []string `json:"device_trees"`           // KERNEL_DEVICETREE
	KernelArgs   string   `json:"kernel_args,omitempty"`  // stock KERNEL_ARGS
	Source       string   `json:"source"`                 // file that sets NVPMODEL
}

// Unit is a systemd unit that meta-tegra installs.
type Unit struct {
	Name     string   `json:"name"`
	Recipe   string   `json:"recipe"`
	After    []string `json:"after,omitempty"`
	Before   []string `json:"before,omitempty"`
	Requires []string `json:"requires,omitempty"`
	Source   string   `json:"source"`
}

// Renamed is a variable that a branch refuses: setting it stops the build.
type Renamed struct {
	New     string `json:"new,omitempty"`     // the name to use
	Message string `json:"message,omitempty"` // the message of bitbake where there is no new name
	Source  string `json:"source"`
}

//go:embed data/machines.json
var machineData []byte

//go:embed data/units.json
var unitData []byte

//go:embed data/renamed.json
var variableData []byte

//go:embed data/kernels.json
var kernelData []byte

// Decoded once, on first use: most commands need neither.
var (
	machines  = sync.OnceValue(func() (m map[string][]Machine) { return decode(machineData, m) })
	units     = sync.OnceValue(func() (u map[string][]Unit) { return decode(unitData, u) })
	kernels   = sync.OnceValue(func() (k map[string]map[string][]string) { return decode(kernelData, k) })
	variables = sync.OnceValue(func() (v map[string]map[string]Renamed) { return decode(variableData, v) })
)

func decode[T any](raw []byte, into T) T {
	if err := json.Unmarshal(raw, &into); err != nil {
		return into // a test decodes the embedded files
	}
	return into
}

// Machines lists the machines of the branch, sorted by name.
func (r Release) Machines() []Machine {
	if r.CoreOnly {
		return nil
	}
	return machines()[r.Name]
}

// Machine finds a machine of the branch.
func (r Release) Machine(name string) (Machine, bool) {
	for _, m := range r.Machines() {
		if m.Name == name {
			return m, true
		}
	}
	return Machine{}, false
}

// KernelVersions lists the version lines of a kernel recipe of openembedded-core, such as linux-yocto; none for
// other recipes.
func (r Release) KernelVersions(recipe string) []string { return kernels()[r.CoreBranch()][recipe] }

// Units lists the units of the branch, sorted by name.
func (r Release) Units() []Unit {
	if r.CoreOnly {
		return nil
	}
	return units()[r.Name]
}

// Unit finds a unit of the branch.
func (r Release) Unit(name string) (Unit, bool) {
	for _, u := range r.Units() {
		if u.Name == name {
			return u, true
		}
	}
	return Unit{}, false
}

// FindRenamed returns the replacement of a variable that the branch refuses.
func (r Release) FindRenamed(name string) (Renamed, bool) {
	v, ok := r.RenamedVariables()[name]
	return v, ok
}

// RenamedVariables are all variables the branch refuses.
func (r Release) RenamedVariables() map[string]Renamed {
	if r.Name == "master" {
		return variables()["master"]
	}
	return variables()[r.Series]
}
