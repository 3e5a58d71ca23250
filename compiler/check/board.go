package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/board"
)

func boardRules() []Rule {
	return []Rule{
		{
			ID: "board-release", Severity: diag.Error, Firm: true,
			Title: "the board is not supported on the release",
			Cause: "The meta-tegra branch has no machine for the module: newer L4T drops old modules, and older L4T lacks new ones.",
			Fix:   "choose a release that has the board",
			Wrong: `{board: "tx2", release: "scarthgap"}`, Right: `{board: "orin-nano-8gb", release: "scarthgap"}`,
			See: "meta-tegra conf/machine",
			run: checkBoardOnRelease,
		},
		{
			ID: "board-machine", Severity: diag.Error, Firm: true,
			Title: "the MACHINE does not fit the board",
			Cause: "A MACHINE carries the module's device tree, flash layout and power table. With another module's MACHINE the image does not boot, or boots with wrong limits.",
			Fix:   "use one of the board's machines, or describe your own carrier under boards",
			Wrong: `{board: "orin-nano-8gb", machine: "jetson-agx-orin-devkit"}`,
			Right: `{board: "orin-nano-8gb", machine: "jetson-orin-nano-devkit"}`,
			See:   "meta-tegra conf/machine",
			run:   checkMachineOfBoard,
		},
		{
			ID: "board-observed", Severity: diag.Warning,
			Title: "a device of the board contradicts the facts",
			Cause: "boards.NAME.observed holds what one device reported, and it contradicts a verified fact of the module. Either the probe ran on another module, device tree or L4T, or the fact is wrong. The fact holds until it is corrected.",
			Fix:   "probe the right device again, or correct base; report a wrong fact",
			Wrong: "boards: carrier: {base: \"orin-nano-8gb\", machines: scarthgap: [\"carrier-box\"], observed: cores: 4}\ntargets: cam: board: \"carrier\"",
			Right: "boards: carrier: {base: \"orin-nano-8gb\", machines: scarthgap: [\"carrier-box\"], observed: cores: 6}\ntargets: cam: board: \"carrier\"",
			See:   "yoctune facts refresh --help",
			run:   checkBoardObserved,
		},
		{
			ID: "runtime-form", Severity: diag.Error, Firm: true,
			Title: "the release cannot build yoctuned from source",
			Cause: "yoctuned needs a newer Go than the release's oe-core carries.",
			Fix:   `use form: "prebuilt"`,
			Wrong: `runtime: form: "source"`, Right: `runtime: form: "prebuilt"`,
			See: "oe-core meta/recipes-devtools/go",
			run: checkRuntimeForm,
		},
	}
}

func checkBoardOnRelease(s *subject) {
	c := s.Config
	if s.Custom != nil && len(s.Machines()) == 0 {
		d := s.raise(c.Board, "board %s has no machine for release %s", c.Board.Text, s.Release.Name)
		d.Pos, d.Help = s.Custom.Machines.Pos(), "add the MACHINEs of the release under machines"
		return
	}
	if _, ok := s.Board.Releases[s.Release.Name]; ok || s.IsOwn() {
		return
	}
	have := slices.Sorted(maps.Keys(s.Board.Releases))
	help := "choose one of: " + strings.Join(have, ", ")
	if len(have) == 0 {
		help = s.Board.WithoutRelease()
	}
	s.reportAt(c.Release, s.Release.Name, help,
		"board %s is not on release %s", s.Board.ID, s.Release.Name)
}

func checkMachineOfBoard(s *subject) {
	m := s.Config.Machine
	all := s.Machines()
	if !m.IsSet() || len(all) == 0 || slices.Contains(all, m.Text) {
		return
	}
	help := "machines of the board: " + strings.Join(all, ", ")
	if near := diag.Nearest(m.Text, all); near != "" {
		help = fmt.Sprintf("did you mean %q?", near)
	}
	s.reportAt(m, m.Text, help+"; a carrier of your own goes under boards",
		"machine %s is not of board %s on release %s", m.Text, s.Board.ID, s.Release.Name)
}

func checkBoardObserved(s *subject) {
	if s.File != nil && !s.IsOwn() {
		s.reportObserved(board.Observe(s.File), s.Custom.Facts.Place)
	}
	if s.Custom == nil || !s.Custom.Observed.IsSet() {
		return
	}
	seen := &s.Custom.Observed
	clock := func(steps config.List[config.Frequency], unit int64) (all []int64) {
		for _, step := range steps.Items {
			if hz, err := resolve.Frequency(step.Node()); err == nil {
				all = append(all, hz/unit)
			}
		}
		return all
	}
	o := board.Observation{
		Cores: seen.Cores.Value, Policies: config.Texts(seen.Policies), CPUkHz: clock(seen.CPU, 1000),
		GPU: seen.GPUDevfreq.Text, GPUHz: clock(seen.GPU, 1),
		ThermalZones: config.Texts(seen.ThermalZones), Modes: config.Texts(seen.Modes),
	}
	if seen.Memory.IsSet() {
		if size, err := resolve.Size(seen.Memory.Node()); err == nil {
			o.MemTotal = size
		}
	}
	o.L4T = seen.L4T.Text
	s.reportObserved(o, seen.Place)
}

// reportObserved reports what contradicts verified facts, at the field of seen or at seen itself.
func (s *subject) reportObserved(o board.Observation, seen config.Place) {
	line := s.Release.Line()
	if o.L4T != "" {
		major, _, _ := strings.Cut(o.L4T, ".")
		line = "R" + major
	}
	// The modes were verified for the release's L4T: another one proves nothing.
	exact := s.Exact && line == s.Release.Line()
	for _, d := range s.Board.Compare(o, line, s.Stock, exact) {
		if d.Verified {
			found := s.raise(s.Config.Board, "a device of this board had other %s than is verified for %s: %s (%s)", d.Field, s.Board.ID, d.Known, d.Source).withValue(d.Observed)
			found.Pos = seen.Pos()
			if n := seen.Node().Get(d.Field); n != nil {
				found.Pos = n.Pos
			}
		}
	}
}

func checkRuntimeForm(s *subject) {
	if f := s.Config.Runtime.Form; f.Text == "source" && !s.Release.GoSource {
		s.reportAt(f, f.Text, "", "release %s carries Go %s, too old to build yoctuned", s.Release.Name, s.Release.Go)
	}
}
