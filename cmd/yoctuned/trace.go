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
	"github.com/yoctune/yoctune/runtime/engine/trace"
)

func newTraceCommand() *cobra.Command {
	return group("trace", "Look at traces of pipelines",
		newTraceViewCommand())
}

func newTraceViewCommand() *cobra.Command {
	var f trace.Filter
	cmd := &cobra.Command{
		Use:   "view FILE",
		Short: "Show where the time of frames went",
		Long: `view reads a trace that pipeline run --trace wrote, or its flight recorder: the
stages by the time they took, what they ran on, the slowest runs, what became of
the frames, and what changed meanwhile. --start and --end count from the first
event. The same file opens in Perfetto and chrome://tracing.

Exit codes: 0 shown · 1 the file cannot be read or is no trace · 2 usage.`,
		Example: `  yoctuned trace view run.json
  yoctuned trace view run.json --stage infer --start 2s --end 5s --top 10`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Start < 0 || f.End < 0 || f.Top < 0 || f.End > 0 && f.End < f.Start {
				return usage(errors.New("--start, --end and --top are not negative, and --end is not before --start"))
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
			if globalFlags(cmd).Format == "json" {
				return lines(cmd.OutOrStdout()).Encode(v)
			}
			return traceText(cmd.OutOrStdout(), v)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Stage, "stage", "", "only the stage of this `NAME`")
	fl.DurationVar(&f.Start, "start", 0, "only what began after this `TIME`")
	fl.DurationVar(&f.End, "end", 0, "only what began before this `TIME`, 0: to the end")
	fl.IntVar(&f.Top, "top", 5, "list the `N` slowest runs")
	return cmd
}

func traceText(w io.Writer, v *trace.View) error {
	ms := func(ns int64) string { return fmt.Sprintf("%.2f", float64(ns)/1e6) }
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "stage\truns\ttotal ms\tbusy\tp50 ms\tp95\tmax\twait p50\tmax\t\n")
	for _, s := range v.Stages {
		fmt.Fprintf(t, "%s\t%d\t%s\t%.0f %%\t%s\t%s\t%s\t%s\t%s\t\n", printable(s.Stage), s.Runs, ms(s.Total), 100*s.Busy, ms(s.P50), ms(s.P95), ms(s.Max), ms(s.WaitP50), ms(s.WaitMax))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, b := range v.Backends {
		fmt.Fprintf(w, "on %s: %d runs, %s ms\n", printable(b.Backend), b.Runs, ms(b.Total))
	}
	for _, s := range v.Slowest {
		fmt.Fprintf(w, "slow: %s, frame %d, %s ms at %s ms, after waiting %s ms\n", printable(s.Stage), s.Frame, ms(s.Dur), ms(s.Start), ms(s.Wait))
	}
	for _, f := range slices.Sorted(maps.Keys(v.Frames)) {
		fmt.Fprintf(w, "frames %s: %d\n", printable(f), v.Frames[f])
	}
	for _, r := range slices.Sorted(maps.Keys(v.Reasons)) {
		fmt.Fprintf(w, "  %s: %d\n", printable(r), v.Reasons[r])
	}
	for _, e := range v.Events {
		fmt.Fprintf(w, "at %s ms, %s: %s\n", ms(e.At), printable(e.Name), printable(e.Why))
	}
	if v.Overwritten > 0 {
		fmt.Fprintf(w, "%d older events were overwritten\n", v.Overwritten)
	}
	return nil
}
