package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/schema/facts"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/sysctl"
)

// newFactsCommand returns `yoctune facts`.
func newFactsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "facts",
		Short: "Show the facts about boards, releases and sysctls",
		Long: `Show the facts that yoctune checks configurations against: Jetson modules with their
clocks and stock power modes, meta-tegra branches, and sysctls.

Every fact about a board has a source, and is marked "verified" when a public file, log
or source shows it. An unverified fact never makes a configuration invalid. An unknown
value is absent, not zero.`,
		Example: `  yoctune facts list
  yoctune facts show orin-nano-8gb
  yoctune facts tree orin-nano-8gb -o device`,
	}
	cmd.AddCommand(newFactsListCommand(), newFactsShowCommand(), newFactsCheckCommand(), newFactsRefreshCommand(), newFactsCompareCommand(), newFactsTreeCommand())
	return cmd
}

func newFactsListCommand() *cobra.Command {
	kinds := []string{"boards", "releases", "sysctls"}
	return &cobra.Command{
		Use:   "list [boards|releases|sysctls]",
		Short: "List boards, releases or sysctls",
		Long: `List the boards and releases that there are facts about, or only those of one kind.
Sysctls are many, and listed only when they are named.`,
		Example: `  yoctune facts list
  yoctune facts list sysctls | grep tcp_
  yoctune facts list boards --format json`,
		ValidArgs: kinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			// Sysctls are many: only when they are named.
			want := kinds[:2]
			if len(args) == 1 {
				want = args
			}
			p, entries := cli.NewPrinter(cmd), factEntries(want)
			w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
			for _, e := range entries {
				if p.JSON {
					p.Encode(e)
				} else {
					fmt.Fprintf(w, "%s\t%s\t%s\n", e.ID, e.Summary, e.Trust)
				}
			}
			writeFactsSummary(p, len(entries), 0)
			return w.Flush()
		},
	}
}

// writeFactsSummary prints the last JSON line of a facts command.
func writeFactsSummary(p cli.Printer, entries, problems int) {
	if p.JSON {
		p.Line("summary", struct {
			Entries  int `json:"entries"`
			Problems int `json:"problems"`
		}{entries, problems})
	}
}

// factEntry is a line of `facts list`.
type factEntry struct {
	Type    string `json:"type"` // board, release, sysctl
	ID      string `json:"id"`
	Summary string `json:"summary"`
	Trust   string `json:"trust,omitempty"`
	// Fields of a board with and without a public file, log or source that shows them.
	Verified   *int `json:"verified,omitempty"`
	Unverified *int `json:"unverified,omitempty"`
}

func factEntries(kinds []string) []factEntry {
	var all []factEntry
	if slices.Contains(kinds, "boards") {
		for _, id := range board.IDs() {
			b, ok := board.Lookup(id)
			if !ok {
				continue
			}
			verified, unverified := countEvidence(b)
			var modes []string
			for name, r := range b.Releases {
				if r.Verified {
					modes = append(modes, name)
				}
			}
			slices.Sort(modes)
			trust := fmt.Sprintf("%d of %d facts verified", verified, verified+unverified)
			if len(modes) > 0 {
				trust += "; stock modes verified on " + strings.Join(modes, ", ")
			}
			all = append(all, factEntry{
				Type: "board", ID: id, Trust: trust, Verified: &verified, Unverified: &unverified,
				Summary: fmt.Sprintf("%s, %s, sm_%d, %d cores", b.Name, b.SoC, b.SM, b.Cores),
			})
		}
	}
	if slices.Contains(kinds, "releases") {
		for _, name := range release.Names() {
			r, _ := release.Lookup(name)
			all = append(all, factEntry{
				Type: "release", ID: name, Trust: "read at " + r.Read,
				Summary: fmt.Sprintf("L4T %s, kernel %s, CUDA %s, %d machines", r.L4T, r.KernelVersion, r.CUDA, len(r.Machines())),
			})
		}
	}
	if slices.Contains(kinds, "sysctls") {
		for _, key := range sysctl.Keys() {
			f, _ := sysctl.Lookup(key)
			all = append(all, factEntry{Type: "sysctl", ID: key, Summary: f.Note, Trust: describePresence(f)})
		}
	}
	return all
}

func countEvidence(b *board.Board) (verified, unverified int) {
	for _, e := range b.Evidence {
		if e.Verified {
			verified++
		} else {
			unverified++
		}
	}
	return verified, unverified
}

// describePresence names the kernels that have the parameter, or those that lack it
// when they are fewer.
func describePresence(f sysctl.Fact) string {
	var with, without []string
	for _, k := range sysctl.Kernels() {
		if f.PresenceIn(k.Line).State == sysctl.Present {
			with = append(with, k.Line)
		} else {
			without = append(without, k.Line)
		}
	}
	switch {
	case len(without) == 0:
		return "in every kernel read"
	case len(without) < len(with):
		return "not in " + strings.Join(without, ", ")
	}
	return "in " + strings.Join(with, ", ")
}

func newFactsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show the facts about a board, a release, a sysctl, a kernel argument, a module or a variable",
		Long: `Show all facts about a board, a release (a branch of meta-tegra), a sysctl, a kernel
argument, a kernel module or a variable of bitbake, with their sources.`,
		Example: `  yoctune facts show orin-nano-8gb
  yoctune facts show isolcpus
  yoctune facts show scarthgap
  yoctune facts show BB_NUMBER_THREADS
  yoctune facts show vm.swappiness --format json`,
		RunE: func(cmd *cobra.Command, args []string) error { return showFacts(cli.NewPrinter(cmd), args[0]) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return slices.Concat(board.IDs(), release.Names(), sysctl.Keys()), cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func showFacts(p cli.Printer, id string) error {
	b, isBoard := board.Lookup(id)
	r, isRelease := release.Lookup(id)
	f, isSysctl := sysctl.Lookup(id)
	switch {
	case isBoard && p.JSON:
		p.Line("board", b)
	case isBoard:
		return showBoard(p, b)
	case isRelease && p.JSON:
		p.Line("release", r, struct {
			Machines []release.Machine          `json:"machines"`
			Units    []release.Unit             `json:"units"`
			Syntax   []release.Syntax           `json:"syntax"`
			Renamed  map[string]release.Renamed `json:"renamed_variables"`
		}{r.Machines(), r.Units(), r.Syntax(), r.RenamedVariables()})
	case isRelease:
		return showRelease(p, r)
	case isSysctl && p.JSON:
		p.Line("sysctl", f)
	case isSysctl:
		return showSysctl(p, f)
	default:
		ok, err := showName(p, id)
		if err != nil || ok && !p.JSON {
			return err
		}
		if ok {
			break
		}
		return fmt.Errorf("no facts about %q%s ('yoctune facts list' shows boards and releases; sysctls, arguments, modules and variables are looked up by their names)",
			id, cmp.Or(facts.Suggest(id), suggestName(id)))
	}
	writeFactsSummary(p, 1, 0)
	return nil
}

func showBoard(out io.Writer, b *board.Board) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s (%s)\nmodules %s; %s\n\n", b.Name, b.ID, strings.Join(b.Modules, ", "), b.SoC)
	// Sources are long and shared: they are numbered here and listed below.
	var sources []string
	for _, field := range boardFields(b) {
		e, ok := b.Evidence[field.name]
		if !ok {
			continue
		}
		n := slices.Index(sources, e.Source)
		if n < 0 {
			n = len(sources)
			sources = append(sources, e.Source)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t[%d]\n", field.name, field.value, formatVerified(e.Verified), n+1)
		if e.Note != "" {
			fmt.Fprintf(w, "  \t\t\t  %s\n", e.Note)
		}
	}
	fmt.Fprintln(w, "\nStock power modes (* default)")
	for _, key := range slices.Sorted(maps.Keys(b.Tables)) {
		t := b.Tables[key]
		var modes []string
		for _, m := range t.Modes {
			name := fmt.Sprintf("%d %s", m.ID, m.Name)
			if m.Default {
				name += "*"
			}
			modes = append(modes, name)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", key, strings.Join(modes, ", "), t.Note)
	}
	fmt.Fprintln(w, "\nReleases")
	if len(b.Releases) == 0 {
		fmt.Fprintln(w, "  none: "+b.WithoutRelease())
	}
	for _, name := range slices.Sorted(maps.Keys(b.Releases)) {
		r := b.Releases[name]
		about := "no facts about its stock modes"
		switch {
		case r.Verified:
			about = fmt.Sprintf("modes of %q, verified", r.Table)
		case r.Table != "":
			about = fmt.Sprintf("modes of %q, from L4T %s; not verified for this release", r.Table, r.Basis)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", name, strings.Join(r.Machines, ", "), r.NVPModel, about)
	}
	for _, n := range slices.Concat(b.Supply, b.Quirks) {
		fmt.Fprintf(w, "\n%s (%s)\n  %s\n  %s\n", n.ID, formatVerified(n.Verified), n.Text, n.Source)
	}
	fmt.Fprintln(w, "\nSources")
	for i, s := range sources {
		fmt.Fprintf(w, "  [%d] %s\n", i+1, s)
	}
	return w.Flush()
}

func formatVerified(verified bool) string {
	if verified {
		return "verified"
	}
	return "NOT VERIFIED"
}

type shownField struct{ name, value string }

// boardFields are the facts that have evidence, most important first.
func boardFields(b *board.Board) []shownField {
	count := func(n int) string { return strconv.Itoa(n) }
	var policies []string
	for _, p := range b.Policies {
		policies = append(policies, strings.TrimSpace(p.CPUs+" "+p.Core))
	}
	pva, tensor := "", ""
	if b.PVA != nil {
		pva = count(*b.PVA)
	}
	if b.TensorCores != nil {
		tensor = map[bool]string{true: "yes", false: "no"}[*b.TensorCores]
	}
	var rails []string
	for _, r := range b.Rails {
		rails = append(rails, strings.TrimSpace(r.Chip+" "+r.Bus)+": "+strings.Join(r.Labels, " "))
	}
	fan := ""
	if b.Fan != nil {
		fan = b.Fan.Config
		if b.Fan.Default != "" {
			fan += ", default " + b.Fan.Default
		}
		if fan == "" {
			fan = perLine(b.Fan.PWM, func(s string) string { return s })
		}
	}
	masks := ""
	if m := b.MaskRule; m != nil {
		masks = "up to " + strconv.FormatInt(m.Max, 10)
		if m.Allowed != nil {
			masks = "only " + formatIntegers(m.Allowed)
		}
		if m.File != "" {
			masks += ", in " + m.File
		}
	}
	first := func(s []string) string {
		if len(s) == 0 {
			return ""
		}
		return s[0]
	}
	return []shownField{
		{"sm", "sm_" + count(b.SM)}, {"cores", count(b.Cores)}, {"policies", strings.Join(policies, "; ")},
		{"cpu", formatLimits(b.CPU, "kHz")}, {"cpu_khz", formatSteps(b.CPUkHz)},
		{"gpu", formatLimits(b.GPU, "Hz")}, {"gpu_hz", formatSteps(b.GPUHz)}, {"gpu_tables", perLine(b.GPUTables, formatSteps)},
		{"emc", formatLimits(b.EMC, "Hz")}, {"emc_hz", formatSteps(b.EMCHz)},
		{"ram_bytes", strconv.FormatInt(b.RAMBytes>>30, 10) + " GiB"}, {"ram_variants", count(len(b.RAMVariants)) + " sizes"},
		{"dla", count(b.DLA)}, {"pva", pva}, {"tensor_cores", tensor},
		{"gpu_masks", formatIntegers(b.GPUMasks)}, {"mask_rule", masks},
		{"gpu_devfreq", perLine(b.GPUDevfreq, first)},
		{"emc_nodes", perLine(b.EMCNodes, func(n board.EMCNodes) string { return n.Cap })},
		{"thermal_zones", perLine(b.ThermalZones, func(z []string) string { return count(len(z)) + " zones" })},
		{"rails", strings.Join(rails, "; ")}, {"fan", fan},
		{"compatible", strings.Join(b.Compatible, " ")}, {"kit_compatible", strings.Join(b.KitCompatible, " ")},
	}
}

func perLine[V any](byLine map[string]V, show func(V) string) string {
	var parts []string
	for _, line := range slices.Sorted(maps.Keys(byLine)) {
		parts = append(parts, line+": "+show(byLine[line]))
	}
	return strings.Join(parts, "; ")
}

func formatIntegers(all []int64) string {
	parts := make([]string, len(all))
	for i, n := range all {
		parts[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(parts, " ")
}

func formatSteps(table []int64) string {
	if len(table) == 0 {
		return ""
	}
	return fmt.Sprintf("%d steps, %d to %d", len(table), table[0], table[len(table)-1])
}

func formatLimits(l board.Limits, unit string) string {
	var parts []string
	for _, v := range []struct {
		name  string
		value *int64
	}{{"min", l.Min}, {"stock modes from", l.BootMin}, {"max", l.Max}, {"max without the -super device tree", l.MaxNonSuper}} {
		if v.value != nil {
			parts = append(parts, fmt.Sprintf("%s %d", v.name, *v.value))
		}
	}
	return strings.Join(parts, ", ") + " " + unit
}

func showRelease(out io.Writer, r release.Release) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	rt := "not without patches"
	switch {
	case r.RTProvider != "":
		rt = r.RTProvider
	case r.RTByConfig:
		rt = "by configuration: EXPERT=y, PREEMPT_RT=y, KVM off"
	}
	yes := map[bool]string{true: "yes", false: "no"}
	fmt.Fprintf(w, "%s (series %s)\nread at %s\n\n", r.Name, r.Series, r.Read)
	writeRows(w, [][2]string{
		{"bitbake", r.BitBake}, {"L4T", r.L4T},
		{"kernel", r.Provider + " " + r.KernelVersion}, {"kernel facts", r.Facts}, {"PREEMPT_RT", rt},
		{"other kernels", strings.Join(r.OtherKernels, ", ")},
		{"CUDA", r.CUDA + ", TensorRT " + r.TensorRT + ", cuDNN " + r.CuDNN + ", nvcc with gcc " + r.CUDAHostGCC},
		{"container toolkit", r.ContainerToolkit},
		{"Go", r.GoVersion}, {"gcc", r.GCC + ", glibc " + r.Glibc + ", systemd " + r.Systemd + ", cmake " + r.CMake},
		{"UNPACKDIR", r.UnpackDirValue}, {"S", r.DefaultS}, {"usrmerge with systemd", yes[r.UsrMerge]},
		{"debug-tweaks", yes[r.DebugTweaks]}, {"fragments", yes[r.Fragments]},
		{"signatures", strings.TrimSpace(r.Signatures + " " + r.HashServe)}, {"TMPDIR", r.TmpDir},
		{"BSP sysctl files", strings.Join(r.SysctlFiles, ", ")},
		{"variables refused", strconv.Itoa(len(r.RenamedVariables()))},
	})
	fmt.Fprintln(w, "\nMachines")
	for _, m := range r.Machines() {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", m.Name, m.NVPModel, strings.Join(m.DeviceTrees, " "))
	}
	fmt.Fprintln(w, "\nUnits of the BSP")
	for _, u := range r.Units() {
		after := ""
		if len(u.After) > 0 {
			after = "after " + strings.Join(u.After, " ")
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", u.Name, u.Recipe, after)
	}
	fmt.Fprintln(w, "\nSyntax since dunfell")
	for _, s := range r.Syntax() {
		fmt.Fprintf(w, "  %s\t%s\t%s\n\t\tdo: %s\n", s.ID, s.Since, s.Rule, s.Fix)
	}
	return w.Flush()
}

func showSysctl(out io.Writer, f sysctl.Fact) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\n", f.Key)
	writeRows(w, [][2]string{
		{"note", f.Note}, {"range", f.RangeNote}, {"needs", f.Config}, {"module", f.Module},
		{"traits", strings.Join(f.Tags, ", ")}, {"excludes", strings.Join(f.Excludes, ", ")}, {"source", f.Source},
	})
	fmt.Fprintln(w)
	for _, k := range sysctl.Kernels() {
		p := f.PresenceIn(k.Line)
		if p.State != sysctl.Present {
			fmt.Fprintf(w, "  %s\t%s\t\t%s\n", k.Line, p.State, k.Tree)
			continue
		}
		low, high := p.Range()
		fmt.Fprintf(w, "  %s\t%s\t%s to %s\t%s\n", k.Line, p.Type, formatBound(low, p.MinName), formatBound(high, p.MaxName), k.Tree)
	}
	return w.Flush()
}

// writeRows writes labels and values, except empty ones.
func writeRows(w io.Writer, rows [][2]string) {
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(w, "  %s\t%s\n", row[0], row[1])
		}
	}
}

// formatBound returns one end of a range: the number, or the kernel variable that holds it
// and has a value only on a running kernel.
func formatBound(n *int64, name string) string {
	switch {
	case name != "":
		return name
	case n != nil:
		return strconv.FormatInt(*n, 10)
	}
	return "-"
}

func newFactsCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the facts for consistency",
		Long: `Check that the facts are consistent: every fact has a source, frequency tables ascend,
stock modes equal those in NVIDIA's files, machines exist, and exclusions are mutual.

Exit status: 0 they are consistent, 3 they are not.`,
		Example: `  yoctune facts check
  yoctune facts check --format json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := cli.NewPrinter(cmd)
			entries, problems := facts.Check()
			for _, problem := range problems {
				if p.JSON {
					p.Line("problem", struct {
						Message string `json:"message"`
					}{problem.Error()})
				} else {
					p.Printf("%v\n", problem)
				}
			}
			if !p.JSON {
				p.Printf("checked %d boards, releases and sysctls: %s\n", entries, count(len(problems), "problem"))
			}
			writeFactsSummary(p, entries, len(problems))
			return cli.Answer(len(problems) == 0)
		},
	}
}
