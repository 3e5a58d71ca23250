package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/board"
)

func boardRules() []Rule {
	return []Rule{
		{
			ID: "board-release", Severity: diag.Error, Firm: true,
			Title: "the board is not supported on the release",
			Cause: "The meta-tegra branch has no machine for the module: newer L4T drops old modules, older L4T does not know new ones.",
			Fix:   "choose a release that has the board",
			Wrong: `{board: "tx2", release: "scarthgap"}`, Right: `{board: "orin-nano-8gb", release: "scarthgap"}`,
			See: "meta-tegra conf/machine",
			run: boardOnRelease,
		},
		{
			ID: "board-machine", Severity: diag.Error, Firm: true,
			Title: "the MACHINE does not fit the board",
			Cause: "A MACHINE carries the module's device tree, flash layout and power table; with another module's the image does not boot, or boots with wrong limits.",
			Fix:   "use one of the board's machines, or describe your own carrier under boards",
			Wrong: `{board: "orin-nano-8gb", machine: "jetson-agx-orin-devkit"}`,
			Right: `{board: "orin-nano-8gb", machine: "jetson-orin-nano-devkit"}`,
			See:   "meta-tegra conf/machine",
			run:   machineOfBoard,
		},
		{
			ID: "board-observed", Severity: diag.Warning,
			Title: "a device of the board was not what the facts say",
			Cause: "boards.NAME.observed holds what one device said of itself, and a verified fact of the module says otherwise: the probe ran on another module, under another device tree or L4T, or the fact is wrong. The fact holds until somebody shows that it is.",
			Fix:   "probe the right device again, or correct base; report a fact that is wrong",
			Wrong: "boards: carrier: {base: \"orin-nano-8gb\", machines: scarthgap: [\"carrier-box\"], observed: cores: 4}\ntargets: cam: board: \"carrier\"",
			Right: "boards: carrier: {base: \"orin-nano-8gb\", machines: scarthgap: [\"carrier-box\"], observed: cores: 6}\ntargets: cam: board: \"carrier\"",
			See:   "yoctune facts refresh",
			run:   boardObserved,
		},
		{
			ID: "runtime-form", Severity: diag.Error, Firm: true,
			Title: "the release cannot build the runtime from source",
			Cause: "yoctuned needs a newer Go than the release's own oe-core carries.",
			Fix:   `use form: "prebuilt"`,
			Wrong: `runtime: form: "source"`, Right: `runtime: form: "prebuilt"`,
			See: "oe-core meta/recipes-devtools/go",
			run: runtimeForm,
		},
	}
}

func boardOnRelease(s *subject) {
	if s.Custom != nil {
		if len(s.Machines()) == 0 {
			s.finding(s.Custom.Get("machines"), at("board"), "", "add the MACHINEs of the release under machines", "board %s has no machine for release %s", s.Node.Get("board").Text, s.Release.Name)
			return
		}
	}
	if _, ok := s.Board.Releases[s.Release.Name]; ok {
		return
	}
	have := make([]string, 0, len(s.Board.Releases))
	for r := range s.Board.Releases {
		have = append(have, r)
	}
	slices.Sort(have)
	s.finding(s.Node.Get("release"), at("release"), s.Release.Name, "the board is on: "+strings.Join(have, ", "),
		"board %s is not on release %s", s.Board.ID, s.Release.Name)
}

func machineOfBoard(s *subject) {
	m := s.Node.Get("machine")
	all := s.Machines()
	if m == nil || len(all) == 0 || slices.Contains(all, m.Text) {
		return
	}
	help := "machines of the board: " + strings.Join(all, ", ")
	if near := diag.Nearest(m.Text, all); near != "" {
		help = fmt.Sprintf("did you mean %q?", near)
	}
	s.finding(m, at("machine"), m.Text, help+"; a carrier of your own goes under boards",
		"machine %s is not of board %s on release %s", m.Text, s.Board.ID, s.Release.Name)
}

func boardObserved(s *subject) {
	if s.Custom == nil || s.Custom.Get("observed") == nil {
		return
	}
	seen := s.Custom.Get("observed")
	words := func(field string) (all []string) {
		if n := seen.Get(field); n != nil {
			for _, item := range n.Items {
				all = append(all, item.Text)
			}
		}
		return all
	}
	clock := func(field string, unit int64) (all []int64) {
		if n := seen.Get(field); n != nil {
			for _, item := range n.Items {
				if hz, err := resolve.Frequency(item); err == nil {
					all = append(all, hz/unit)
				}
			}
		}
		return all
	}
	o := board.Observation{
		Policies: words("policies"), CPUkHz: clock("cpu", 1000), GPUHz: clock("gpu", 1),
		ThermalZones: words("thermalZones"), Modes: words("modes"),
	}
	if n := seen.Get("cores"); n != nil {
		cores, _ := n.Int64()
		o.Cores = int(cores)
	}
	if n := seen.Get("gpuDevfreq"); n != nil {
		o.GPU = n.Text
	}
	if n := seen.Get("memory"); n != nil {
		if size, err := resolve.Size(n); err == nil {
			o.MemTotal = size
		}
	}
	line := s.Release.Line()
	if n := seen.Get("l4t"); n != nil {
		major, _, _ := strings.Cut(n.Text, ".")
		line = "R" + major
	}
	// The modes were verified for the release's L4T: another one proves nothing.
	exact := s.Exact && line == s.Release.Line()
	for _, d := range s.Board.Compare(o, line, s.Stock, exact) {
		if d.Verified {
			s.finding(seen.Get(d.Field), at("board"), d.Observed, "", "a device of this board had other %s than is verified for %s: %s (%s)", d.Field, s.Board.ID, d.Known, d.Source)
		}
	}
}

func runtimeForm(s *subject) {
	f := s.Node.At("runtime", "form")
	if f != nil && f.Text == "source" && !s.Release.GoSource {
		s.finding(f, at("runtime", "form"), f.Text, "", "release %s carries Go %s, too old to build yoctuned", s.Release.Name, s.Release.Go)
	}
}
