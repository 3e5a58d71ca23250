package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/engine/trace"
)

func newTraceCommand() *cobra.Command {
	return newGroupCommand("trace", "Analyse traces of pipelines",
		`Analyse the traces that "yoctuned pipeline run --trace" writes.`,
		`  yoctuned trace view run.json`,
		newTraceViewCommand())
}

func newTraceViewCommand() *cobra.Command {
	var f trace.Filter
	cmd := &cobra.Command{
		Use:   "view FILE",
		Short: "Show how frames spent their time",
		Long: `Summarise a trace that "yoctuned pipeline run" wrote with --trace or --flight: the stages
by total time, their backends, the slowest runs, how many frames were done or dropped,
and the events during the run. --start and --end count from the first event. The same
file opens in Perfetto and chrome://tracing.

Exit status: 0 shown, 1 the file cannot be read or is not a trace, 2 wrong usage.`,
		Example: `  yoctuned trace view run.json
  yoctuned trace view run.json --stage infer --start 2s --end 5s --top 10`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Start < 0 || f.End < 0 || f.Top < 0 || f.End > 0 && f.End < f.Start {
				return cli.UsageError(errors.New("--start, --end and --top must not be negative, and --end must not be before --start"))
			}
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			v, err := trace.Read(file, f)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if cli.Format(cmd) == "json" {
				return cli.Encoder(cmd.OutOrStdout()).Encode(v)
			}
			return traceText(cmd.OutOrStdout(), v)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Stage, "stage", "", "`NAME` of the only stage to show")
	fl.DurationVar(&f.Start, "start", 0, "`TIME` from which events are shown")
	fl.DurationVar(&f.End, "end", 0, "`TIME` up to which events are shown; 0 shows all")
	fl.IntVar(&f.Top, "top", 5, "`N` slowest runs to list")
	return cmd
}

func traceText(w io.Writer, v *trace.View) error {
	ms := func(ns int64) string { return fmt.Sprintf("%.2f", float64(ns)/1e6) }
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "stage\truns\ttotal ms\tbusy\tp50 ms\tp95\tmax\twait p50\tmax\t\n")
	for _, s := range v.Stages {
		fmt.Fprintf(t, "%s\t%d\t%s\t%.0f %%\t%s\t%s\t%s\t%s\t%s\t\n", cli.PrintableLine(s.Stage), s.Runs, ms(s.Total), 100*s.Busy, ms(s.P50), ms(s.P95), ms(s.Max), ms(s.WaitP50), ms(s.WaitMax))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, b := range v.Backends {
		fmt.Fprintf(w, "on %s: %d runs, %s ms\n", cli.PrintableLine(b.Backend), b.Runs, ms(b.Total))
	}
	for _, s := range v.Slowest {
		fmt.Fprintf(w, "slow: %s, frame %d, %s ms at %s ms, after waiting %s ms\n", cli.PrintableLine(s.Stage), s.Frame, ms(s.Dur), ms(s.Start), ms(s.Wait))
	}
	for _, f := range slices.Sorted(maps.Keys(v.Frames)) {
		fmt.Fprintf(w, "frames %s: %d\n", cli.PrintableLine(f), v.Frames[f])
	}
	for _, r := range slices.Sorted(maps.Keys(v.Reasons)) {
		fmt.Fprintf(w, "  %s: %d\n", cli.PrintableLine(r), v.Reasons[r])
	}
	for _, e := range v.Events {
		fmt.Fprintf(w, "at %s ms, %s: %s\n", ms(e.At), cli.PrintableLine(e.Name), cli.PrintableLine(e.Why))
	}
	if v.Overwritten > 0 {
		fmt.Fprintf(w, "%d older events were overwritten\n", v.Overwritten)
	}
	return nil
}
