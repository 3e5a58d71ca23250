package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/literal"
	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
)

// maxProbe bounds what is read of a probe: a real one is some ten thousand bytes.
const maxProbe = 4 << 20

type refreshOptions struct {
	from, board, release, name, pkg, out string
	machines                             []string
}

func newFactsRefreshCommand() *cobra.Command {
	var o refreshOptions
	cmd := &cobra.Command{
		Use:   "refresh --from PROBE",
		Short: "Compare a device with the facts, and write it as a custom board",
		Long: `Read the output of "yoctuned probe --format json" from a device, compare it with the
facts about its module, and write an entry for boards: with everything that was observed.
The entry goes to standard output or to --output, the differences to standard error.

Observations of one device never replace facts. "yoctune vet" warns while the
configuration has an observation that contradicts a verified fact.

Exit status: 0 done, 1 the probe cannot be read, 2 wrong usage, 3 the probe contradicts a
verified fact (the entry is written all the same).`,
		Example: `  ssh device yoctuned probe --format json > probe.json
  yoctune facts refresh --from probe.json --name carrier --package vision -o vision/boards.cue`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRefresh(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.from, "from", "", "`PROBE` output of the device: a file, or - for standard input")
	f.StringVar(&o.board, "board", "", "`BOARD` of the device (default: from its device tree)")
	f.StringVar(&o.release, "release", "", "`RELEASE` of meta-tegra (default: from the device's L4T version)")
	f.StringVar(&o.name, "name", "", "`NAME` below boards (default: the module's, with -observed)")
	f.StringSliceVar(&o.machines, "machine", nil, "`MACHINE` of the board; may be repeated (default: those of the module)")
	f.StringVar(&o.pkg, "package", "", "`PACKAGE` clause of the CUE file (default: none)")
	f.StringVarP(&o.out, "output", "o", "", "`FILE` to write (default: standard output)")
	cobra.CheckErr(cmd.MarkFlagRequired("from"))
	return cmd
}

// probed is what the lines of a probe say that facts can be compared with.
type probed struct {
	device struct {
		Compatible []string `json:"compatible"`
		L4T        string   `json:"l4t"`
		Kernel     string   `json:"kernel"`
		Modes      []string `json:"power_modes"`
	}
	hardware struct {
		Cores    int      `json:"cores"`
		Policies []string `json:"policies"`
		CPUkHz   []int64  `json:"cpu_khz"`
		DevFreq  []struct {
			Name   string  `json:"name"`
			OFNode string  `json:"of_node"`
			Hz     []int64 `json:"hz"`
		} `json:"devfreq"`
		MemTotal     int64    `json:"mem_total"`
		ThermalZones []string `json:"thermal_zones"`
	}
}

var errNoProbe = errors.New(`it is not what "yoctuned probe --format json" writes`)

func readProbe(r io.Reader) (probed, error) {
	var p probed
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

func runRefresh(cmd *cobra.Command, o refreshOptions) error {
	format := cli.Format(cmd)
	in := cmd.InOrStdin()
	if o.from != "-" {
		f, err := os.Open(o.from)
		if err != nil {
			return fmt.Errorf("reading the probe: %w", err)
		}
		defer f.Close()
		in = f
	}
	p, err := readProbe(in)
	if err != nil {
		return fmt.Errorf("%s: %w", o.from, err)
	}
	b, r, err := o.identify(p)
	if err != nil {
		return err
	}
	seen := p.observation()
	stock, exact, err := b.Stock(r.Name)
	if err != nil && !errors.Is(err, board.ErrNoTable) {
		return cli.UsageError(err)
	}
	differences := b.Compare(seen, r.Line(), stock, exact && sameL4T(p.device.L4T, r.L4T))
	text, err := o.cue(p, seen, b, r, differences)
	if err != nil {
		return err
	}
	contradictions := 0
	for _, d := range differences {
		if d.Verified {
			contradictions++
		}
	}
	out := cmd.OutOrStdout()
	if !toStdout(o.out) {
		if err := outfile.Write(o.out, text); err != nil {
			return err
		}
	}
	if format == "json" {
		for _, d := range differences {
			writeJSONLine(out, struct {
				Type string `json:"type"`
				board.Difference
			}{"difference", d})
		}
		writeJSONLine(out, struct {
			Type           string `json:"type"`
			Command        string `json:"command"`
			Board          string `json:"board"`
			Release        string `json:"release"`
			Differences    int    `json:"differences"`
			Contradictions int    `json:"contradictions"`
			Text           string `json:"text"`
		}{"summary", "facts refresh", b.ID, r.Name, len(differences), contradictions, string(text)})
	} else {
		if toStdout(o.out) {
			fmt.Fprintf(out, "%s", text)
		}
		showObserved(cmd.ErrOrStderr(), b, differences)
	}
	if contradictions > 0 {
		return cli.AnswerNo()
	}
	return nil
}

// identify finds module and release of the device.
func (o refreshOptions) identify(p probed) (*board.Board, release.Release, error) {
	id := o.board
	if id == "" {
		for _, known := range board.IDs() {
			if board.IsCompatible(known, p.device.Compatible) {
				id = known
			}
		}
	}
	if id == "" {
		return nil, release.Release{}, cli.UsageError(fmt.Errorf("the device tree names no known module (%s): say which with --board", diag.Visible(strings.Join(p.device.Compatible, " "))))
	}
	b, ok := board.Lookup(id)
	if !ok {
		return nil, release.Release{}, cli.UsageError(fmt.Errorf("no facts about the board %q%s", diag.Visible(id), suggestFact(id)))
	}
	if board.Identifiable(id) && len(p.device.Compatible) > 0 && !board.IsCompatible(id, p.device.Compatible) {
		return nil, release.Release{}, cli.UsageError(fmt.Errorf("--board %s: the device is another module (%s)", id, diag.Visible(strings.Join(p.device.Compatible, " "))))
	}
	name := o.release
	if name == "" {
		// The nearest branch that has the module, the same L4T before the same line.
		for _, same := range []func(release.Release) bool{
			func(r release.Release) bool { return sameL4T(p.device.L4T, r.L4T) },
			func(r release.Release) bool {
				line, _, _ := strings.Cut(p.device.L4T, ".")
				return p.device.L4T != "" && r.Line() == "R"+line
			},
		} {
			for _, known := range release.Names() {
				r, _ := release.Lookup(known)
				if _, has := b.Releases[known]; has && name == "" && same(r) {
					name = known
				}
			}
		}
	}
	if name == "" {
		return nil, release.Release{}, cli.UsageError(fmt.Errorf("no branch has L4T %q for %s: say which with --release", diag.Visible(p.device.L4T), id))
	}
	r, ok := release.Lookup(name)
	if !ok {
		return nil, release.Release{}, cli.UsageError(fmt.Errorf("release %q is not known%s", diag.Visible(name), suggestFact(name)))
	}
	return b, r, nil
}

// sameL4T compares versions where one may leave out its last zero: 36.4 and
// 36.4.0.
func sameL4T(a, b string) bool {
	return a != "" && strings.TrimSuffix(a, ".0") == strings.TrimSuffix(b, ".0")
}

func (p probed) observation() board.Observation {
	o := board.Observation{
		L4T: p.device.L4T, Cores: p.hardware.Cores, Policies: p.hardware.Policies, CPUkHz: p.hardware.CPUkHz,
		MemTotal: p.hardware.MemTotal, ThermalZones: p.hardware.ThermalZones, Modes: p.device.Modes,
	}
	for _, c := range p.hardware.DevFreq {
		for _, gpu := range []string{"gpu", "ga10b", "gv11b", "gp10b", "gm20b"} {
			if _, kind, ok := strings.Cut(c.Name, "."); c.OFNode == gpu || ok && kind == gpu {
				o.GPU, o.GPUHz = c.Name, c.Hz
			}
		}
	}
	return o
}

// cue writes the board. What contradicts a verified fact says so beside it.
func (o refreshOptions) cue(p probed, seen board.Observation, b *board.Board, r release.Release, differences []board.Difference) ([]byte, error) {
	name := o.name
	if name == "" {
		name = b.ID + "-observed"
	}
	machines := o.machines
	if len(machines) == 0 {
		machines = b.Releases[r.Name].Machines
	}
	quote := func(s string) string { return literal.String.Quote(s) }
	list := func(values []string) string {
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = quote(v)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	var w strings.Builder
	if o.pkg != "" {
		if !ast.IsValidIdent(o.pkg) {
			return nil, cli.UsageError(fmt.Errorf("--package %q: a CUE package is named like a variable", o.pkg))
		}
		fmt.Fprintf(&w, "package %s\n\n", o.pkg)
	}
	fmt.Fprintf(&w, "boards: %s: {\n\tbase: %s\n\tmachines: %s: %s\n\n", quote(name), quote(b.ID), quote(r.Name), list(machines))
	w.WriteString("\t// Observed on one device by yoctuned probe: none of this is verified, and none of it\n\t// replaces a fact.\n\tobserved: {\n")
	field := func(name, value string, known bool) {
		if !known {
			return
		}
		for _, d := range differences {
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

func showObserved(w io.Writer, b *board.Board, differences []board.Difference) {
	for _, d := range differences {
		observed := diag.Visible(d.Observed)
		switch {
		case d.Verified:
			fmt.Fprintf(w, "contradicts %s: observed %s; verified %s (%s)\n", d.Field, observed, d.Known, d.Source)
		case d.Known != "":
			fmt.Fprintf(w, "differs     %s: observed %s; known, not verified %s\n", d.Field, observed, d.Known)
		default:
			fmt.Fprintf(w, "new         %s: observed %s\n", d.Field, observed)
		}
	}
	n := len(slices.DeleteFunc(slices.Clone(differences), func(d board.Difference) bool { return !d.Verified }))
	fmt.Fprintf(w, "%s: %s, %d of which contradict verified facts\n", b.ID, count(len(differences), "difference"), n)
}
