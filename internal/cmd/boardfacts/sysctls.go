package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/sysctl"
)

// The research file has what the ctl_table initialisers of each kernel tree say
// (versions) and what was found out beside them.
type sysctlResearch struct {
	GeneratedFrom map[string]string `json:"generated_from"`
	Sysctls       []struct {
		Name        string          `json:"name"`
		Present     map[string]bool `json:"present"`
		NeedsConfig string          `json:"needs_config"`
		NeedsModule string          `json:"needs_module"`
		Tags        []string        `json:"tags"`
		Note        string          `json:"note"`
		Min         *int64          `json:"effective_min"`
		Max         *int64          `json:"effective_max"`
		RangeNote   string          `json:"range_note"`
		Versions    map[string]struct {
			Type  string   `json:"type"`
			Mode  string   `json:"mode"`
			Min   any      `json:"min"`
			Max   any      `json:"max"`
			Src   string   `json:"src"`
			Ifdef []string `json:"ifdef"`
		} `json:"versions"`
	} `json:"sysctls"`
}

// handlerTypes are the types of parameters whose own handler hides it from the
// extractor, which then says int: each handler was read.
func handlerTypes() map[string]string {
	return map[string]string{
		"vm.dirty_bytes":                 "ulong",  // dirty_bytes_handler calls proc_doulongvec_minmax
		"vm.dirty_background_bytes":      "ulong",  // likewise
		"vm.overcommit_kbytes":           "ulong",  // overcommit_kbytes_handler calls proc_doulongvec_minmax
		"net.core.flow_limit_cpu_bitmap": "string", // cpumask_parse
		"kernel.watchdog_cpumask":        "string", // proc_do_large_bitmap
	}
}

func writeSysctls(file, out string) error {
	if file == "" {
		return fmt.Errorf("sysctls: -research is missing")
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var res sysctlResearch
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&res); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var data sysctl.Data
	for v, tree := range res.GeneratedFrom {
		data.Kernels = append(data.Kernels, sysctl.Kernel{Line: v, Tree: tree})
	}
	sort.Slice(data.Kernels, func(i, j int) bool { return lineLess(data.Kernels[i].Line, data.Kernels[j].Line) })
	for _, s := range res.Sysctls {
		f := sysctl.Fact{
			Key: s.Name, Config: s.NeedsConfig, Module: strings.TrimSuffix(s.NeedsModule, " module"),
			Note: s.Note, Min: s.Min, Max: s.Max, RangeNote: s.RangeNote,
		}
		for _, t := range s.Tags {
			if other, ok := strings.CutPrefix(t, "excl:"); ok {
				f.Excludes = append(f.Excludes, other)
			} else {
				f.Tags = append(f.Tags, t)
			}
		}
		for _, k := range data.Kernels {
			v, ok := s.Versions[k.Line]
			if !ok || !s.Present[k.Line] {
				continue
			}
			entry := sysctl.Variant{Type: v.Type, Mode: v.Mode}
			if t, ok := handlerTypes()[s.Name]; ok {
				entry.Type = t
			}
			if _, err := strconv.ParseUint(v.Mode, 8, 16); err != nil {
				entry.Mode = "0644" // both macros in use come to that where the knob works at all
			}
			if entry.Min, entry.MinName, err = bound(v.Min); err != nil {
				return fmt.Errorf("%s on %s: min: %w", s.Name, k.Line, err)
			}
			if entry.Max, entry.MaxName, err = bound(v.Max); err != nil {
				return fmt.Errorf("%s on %s: max: %w", s.Name, k.Line, err)
			}
			for _, c := range v.Ifdef {
				if c = strings.TrimPrefix(c, "CONFIG_"); c != "SYSCTL" && !slices.Contains(entry.Configs, c) {
					entry.Configs = append(entry.Configs, c)
				}
			}
			f.Source, _, _ = strings.Cut(v.Src, ":")
			if n := len(f.Variants); n > 0 {
				last := f.Variants[n-1]
				last.Kernels = nil
				if reflect.DeepEqual(last, entry) {
					f.Variants[n-1].Kernels = append(f.Variants[n-1].Kernels, k.Line)
					continue
				}
			}
			entry.Kernels = []string{k.Line}
			f.Variants = append(f.Variants, entry)
		}
		data.Facts = append(data.Facts, f)
	}
	sort.Slice(data.Facts, func(i, j int) bool { return data.Facts[i].Key < data.Facts[j].Key })

	// One fact a line: a change of one is a change of one line.
	var text bytes.Buffer
	kernels, err := json.Marshal(data.Kernels)
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, "{\"kernels\": %s,\n \"facts\": [", kernels)
	for i, f := range data.Facts {
		line, err := json.Marshal(f)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s\n  %s", comma(i), line)
	}
	text.WriteString("\n ]}\n")
	return writeFile(out, text.Bytes())
}

// bound is a limit of a ctl_table: a number, or the name of a variable whose
// value is only known at run time.
func bound(v any) (*int64, string, error) {
	switch v := v.(type) {
	case nil:
		return nil, "", nil
	case string:
		return nil, v, nil
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			// ULONG_MAX/HZ depends on HZ: the note has it.
			return nil, "", nil
		}
		return &n, "", nil
	}
	return nil, "", fmt.Errorf("want a number or a name, got %v", v)
}

func lineLess(a, b string) bool {
	major := func(s string) (int, int) {
		x, y, _ := strings.Cut(s, ".")
		m, _ := strconv.Atoi(x)
		n, _ := strconv.Atoi(y)
		return m, n
	}
	a1, a2 := major(a)
	b1, b2 := major(b)
	return a1 < b1 || a1 == b1 && a2 < b2
}
