package main

import (
	"fmt"
	"io"

	"cuelang.org/go/cue/ast"
	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/importer/probe"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/formats/boardfile"
)

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

func runRefresh(cmd *cobra.Command, o refreshOptions) error {
	if o.pkg != "" && !ast.IsValidIdent(o.pkg) {
		return cli.UsageError(fmt.Errorf("--package %q: a CUE package is named like a variable", o.pkg))
	}
	in, err := cli.Open(cmd, o.from)
	if err != nil {
		return fmt.Errorf("reading the probe: %w", err)
	}
	defer in.Close()
	p, err := probe.Read(in)
	if err != nil {
		return fmt.Errorf("%s: %w", o.from, err)
	}
	seen, err := p.Compare(o.board, o.release)
	if err != nil {
		return cli.UsageError(err)
	}
	text, err := seen.CUE(probe.Names{Board: o.name, Machines: o.machines, Package: o.pkg})
	if err != nil {
		return err
	}
	if !isStdout(o.out) {
		if err := outfile.Write(o.out, text); err != nil {
			return err
		}
	}
	contradictions := seen.Contradictions()
	if out := cli.NewPrinter(cmd); out.JSON {
		for _, d := range seen.Differences {
			out.Line("difference", d)
		}
		out.Summary("facts refresh", struct {
			Board          string `json:"board"`
			Release        string `json:"release"`
			Differences    int    `json:"differences"`
			Contradictions int    `json:"contradictions"`
			Text           string `json:"text"`
		}{seen.Board.ID, seen.Release.Name, len(seen.Differences), contradictions, string(text)})
	} else {
		if isStdout(o.out) {
			fmt.Fprintf(out, "%s", text)
		}
		showObserved(cmd.ErrOrStderr(), seen)
	}
	return cli.Answer(contradictions == 0)
}

func newFactsCompareCommand() *cobra.Command {
	var on string
	cmd := &cobra.Command{
		Use:   "compare BOARD FILE",
		Short: "Report what a board file and the facts about a board do not agree on",
		Long: `Compare the board file that "yoctuned probe --board-file" wrote on a device with the facts
about its module. boards: NAME: {base, facts} uses the file in place of facts that are not
verified, or absent: "new" and "differs" below. A verified fact stays: "contradicts".

Exit status: 0 done, 1 the file cannot be read, 2 wrong usage, 3 the file contradicts a
verified fact.`,
		Example: `  ssh device yoctuned probe --board-file - > mine.json
  yoctune facts compare orin-nano-8gb mine.json`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := infile.Read(args[1], boardfile.MaxSize)
			if err != nil {
				return fmt.Errorf("reading the board file: %w", err)
			}
			file, err := boardfile.Decode(raw)
			if err != nil {
				return fmt.Errorf("%s: %w", args[1], err)
			}
			seen, err := probe.FromFile(file).Compare(args[0], on)
			if err != nil {
				return cli.UsageError(err)
			}
			out := cli.NewPrinter(cmd)
			if !out.JSON {
				showObserved(out, seen)
				return cli.Answer(seen.Contradictions() == 0)
			}
			for _, d := range seen.Differences {
				out.Line("difference", d)
			}
			out.Summary("facts compare", struct {
				Board          string `json:"board"`
				Release        string `json:"release"`
				Differences    int    `json:"differences"`
				Contradictions int    `json:"contradictions"`
			}{seen.Board.ID, seen.Release.Name, len(seen.Differences), seen.Contradictions()})
			return cli.Answer(seen.Contradictions() == 0)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return board.IDs(), cobra.ShellCompDirectiveNoFileComp
			}
			return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	cmd.Flags().StringVar(&on, "release", "", "`RELEASE` of meta-tegra (default: from the file's L4T version)")
	return cmd
}

func showObserved(w io.Writer, seen probe.Comparison) {
	for _, d := range seen.Differences {
		observed := printable.Line(d.Observed)
		switch {
		case d.Verified:
			fmt.Fprintf(w, "contradicts %s: observed %s; verified %s (%s)\n", d.Field, observed, d.Known, d.Source)
		case d.Known != "":
			fmt.Fprintf(w, "differs     %s: observed %s; known, not verified %s\n", d.Field, observed, d.Known)
		default:
			fmt.Fprintf(w, "new         %s: observed %s\n", d.Field, observed)
		}
	}
	fmt.Fprintf(w, "%s: %s, %d of which contradict verified facts\n", seen.Board.ID, count(len(seen.Differences), "difference"), seen.Contradictions())
}
