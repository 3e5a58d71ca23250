package board

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

// Observation is what a probe reported on one device. It is not a fact: the probe may
// have run on another module, under another device tree, or with a driver that hides
// steps.
type Observation struct {
	L4T          string
	Cores        int
	Policies     []string // core lists, as the kernel writes them
	CPUkHz       []int64
	GPU          string // name of the devfreq device
	GPUHz        []int64
	MemTotal     int64
	ThermalZones []string
	Modes        []string // names of the power modes, by id
}

// Difference is a field that a device and the facts do not agree on.
type Difference struct {
	Field    string `json:"field"` // of [Observed], a name of the language
	Observed string `json:"observed"`
	Known    string `json:"known,omitempty"` // empty: nothing was known
	Verified bool   `json:"verified"`        // the fact is; the observation then contradicts it
	Source   string `json:"source,omitempty"`
}

// Compare lists where an observation differs from the facts, or adds to them.
// Line is the L4T line, such as "R36"; the stock modes are those of table.
func (b *Board) Compare(o Observation, line string, stock Table, exact bool) []Difference {
	var all []Difference
	add := func(field, evidence, observed, known string) {
		e := b.Evidence[evidence]
		all = append(all, Difference{Field: field, Observed: observed, Known: known, Verified: e.Verified && known != "", Source: e.Source})
	}
	if o.Cores != 0 && o.Cores != b.Cores {
		add("cores", "cores", strconv.Itoa(o.Cores), strconv.Itoa(b.Cores))
	}
	if got, known := normal(o.Policies), normal(policyCPUs(b)); len(got) > 0 && !slices.Equal(got, known) {
		add("policies", "policies", strings.Join(got, " "), strings.Join(known, " "))
	}
	if observed, known, differ := stepsDiffer(o.CPUkHz, b.CPUkHz, b.CPU, "kHz"); differ {
		add("cpu", "cpu_khz", observed, known)
	}
	table, evidence := b.GPUHz, "gpu_hz"
	if t, ok := b.GPUTables[line]; ok {
		table, evidence = t, "gpu_tables"
	}
	if observed, known, differ := stepsDiffer(o.GPUHz, table, b.GPU, "Hz"); differ {
		add("gpu", evidence, observed, known)
	}
	if paths := b.GPUDevfreq[line]; o.GPU != "" && !slices.ContainsFunc(paths, func(p string) bool { return path.Base(p) == o.GPU }) {
		add("gpuDevfreq", "gpu_devfreq", o.GPU, strings.Join(paths, " "))
	}
	if known := slices.Concat([]int64{b.RAMBytes}, b.RAMVariants); o.MemTotal != 0 && !slices.ContainsFunc(known, func(n int64) bool {
		// Firmware and kernel keep at most a quarter.
		return o.MemTotal <= n && o.MemTotal >= n/4*3
	}) {
		add("memory", "ram_bytes", fmt.Sprintf("%d bytes in use by the kernel", o.MemTotal), fmt.Sprintf("%d bytes", b.RAMBytes))
	}
	if known := b.ThermalZones[line]; len(o.ThermalZones) > 0 {
		if more := slices.DeleteFunc(slices.Clone(o.ThermalZones), func(z string) bool {
			return slices.ContainsFunc(known, func(pattern string) bool {
				ok, err := path.Match(pattern, z)
				return ok && err == nil
			})
		}); len(more) > 0 {
			// A carrier may have its own sensors, so additional zones are not a contradiction.
			all = append(all, Difference{Field: "thermalZones", Observed: strings.Join(more, " ")})
		}
	}
	if known := modeNames(stock); len(o.Modes) > 0 && len(known) > 0 && !slices.Equal(known, o.Modes) {
		d := Difference{Field: "modes", Observed: strings.Join(o.Modes, " "), Known: strings.Join(known, " "), Source: stock.Source}
		// A layer may have added modes after the stock ones.
		d.Verified = exact && !(len(o.Modes) > len(known) && slices.Equal(o.Modes[:len(known)], known))
		all = append(all, d)
	}
	return all
}

func policyCPUs(b *Board) []string {
	var all []string
	for _, p := range b.Policies {
		all = append(all, p.CPUs)
	}
	return all
}

// normal spells core lists in one way: each core on its own.
func normal(lists []string) []string {
	var out []string
	for _, l := range lists {
		cores, err := cpulist.Parse(l)
		if err != nil {
			out = append(out, l)
			continue
		}
		words := make([]string, len(cores))
		for i, c := range cores {
			words[i] = strconv.Itoa(c)
		}
		out = append(out, strings.Join(words, ","))
	}
	return out
}

// stepsDiffer compares the steps of a clock. A device tree that is not "-super"
// ends the table early, which is known and no difference.
func stepsDiffer(got, known []int64, ends Limits, unit string) (observed, expected string, differ bool) {
	if len(got) == 0 {
		return "", "", false
	}
	var strange []string
	for _, s := range got {
		if !slices.Contains(known, s) {
			strange = append(strange, strconv.FormatInt(s, 10))
		}
	}
	short := len(known) > 0 && got[len(got)-1] < known[len(known)-1]
	if short && ends.MaxNonSuper != nil && got[len(got)-1] <= *ends.MaxNonSuper {
		short = false
	}
	switch {
	case len(strange) > 0 && len(known) > 0:
		observed = fmt.Sprintf("%s %s beside the known steps", strings.Join(strange, ", "), unit)
	case len(known) == 0:
		return steps(got, unit), "", true
	case short:
		observed = steps(got, unit)
	default:
		return "", "", false
	}
	return observed, steps(known, unit), true
}

func steps(table []int64, unit string) string {
	return fmt.Sprintf("%d steps, %d to %d %s", len(table), table[0], table[len(table)-1], unit)
}

func modeNames(t Table) []string {
	var names []string
	for _, m := range t.Modes {
		names = append(names, m.Name)
	}
	return names
}
