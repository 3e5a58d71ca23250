package sysctl

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/yoctune/yoctune/schema/knob"
)

// Check tests the facts against each other.
func Check() []error {
	var problems []error
	report := func(format string, args ...any) { problems = append(problems, fmt.Errorf("sysctl "+format, args...)) }
	d := load()
	if len(d.Facts) == 0 || len(d.Kernels) == 0 {
		report("facts are empty")
	}
	var lines []string
	for _, k := range d.Kernels {
		lines = append(lines, k.Line)
		if k.Tree == "" {
			report("kernel %s: no tree named", k.Line)
		}
	}
	tags := []string{WriteOnly, ReadOnly, OneShot, Sticky, NetNS, IPCNS, UserNS, Vector, Mask, Moved, FromMod, AutoLoad}
	for i, f := range d.Facts {
		if i > 0 && d.Facts[i-1].Key >= f.Key {
			report("%s is out of order", f.Key)
		}
		if len(f.Variants) == 0 || f.Source == "" {
			report("%s: no kernel has it", f.Key)
		}
		for _, t := range f.Tags {
			if !slices.Contains(tags, t) {
				report("%s: unknown tag %q", f.Key, t)
			}
		}
		for _, other := range f.Excludes {
			o, ok := Lookup(other)
			if !ok || !slices.Contains(o.Excludes, f.Key) {
				report("%s excludes %s, not the other way round", f.Key, other)
			}
		}
		if module := knob.ProvidingModule(knob.SysctlPath(f.Key)); f.Has(FromMod) && f.Module != module {
			report("%s: the fact names module %q, knob.ProvidingModule %q", f.Key, f.Module, module)
		}
		if !slices.Equal(ExcludedBy(f.Key), f.Excludes) {
			report("%s: Excludes returns %v, the fact has %v", f.Key, ExcludedBy(f.Key), f.Excludes)
		}
		if f.Has(Moved) && f.Note == "" {
			report("%s moved, and its note does not name the new place", f.Key)
		}
		var seen []string
		for _, v := range f.Variants {
			seen = append(seen, v.Kernels...)
			if _, err := strconv.ParseUint(v.Mode, 8, 16); err != nil {
				report("%s: mode %q", f.Key, v.Mode)
			}
			if v.Min != nil && v.Max != nil && *v.Min > *v.Max {
				report("%s: min %d is above max %d", f.Key, *v.Min, *v.Max)
			}
		}
		for j, k := range seen {
			if !slices.Contains(lines, k) || slices.Contains(seen[:j], k) {
				report("%s: kernel %s is unknown or named twice", f.Key, k)
			}
		}
	}
	return problems
}
