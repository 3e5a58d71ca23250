package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/runtime/engine/trace"
)

func newTraceCommand() *cobra.Command {
	return newGroupCommand("trace", "Record and analyse traces of pipelines",
		`Record traces of running pipelines in profiling sessions, and analyse traces.`,
		`  yoctuned trace start slow door
  yoctuned trace stop slow
  yoctuned trace view slow.trace.json`,
		newTraceStartCommand(), newTraceStopCommand(), newTraceListCommand(), newTraceViewCommand())
}

func newTraceViewCommand() *cobra.Command {
	var f trace.Filter
	cmd := &cobra.Command{
		Use:   "view FILE",
		Short: "Show how frames spent their time",
		Long: `Summarise a trace that "yoctuned trace stop" wrote, or "yoctuned pipeline run" with --trace
or --flight: the stages by total time, their backends, the slowest runs, how many frames
were done or dropped, the scopes and values that stages report, and the events during the
run. --start and --end count from the first event. The same
file opens in Perfetto and chrome://tracing.

Exit status: 0 shown, 1 the file cannot be read or is not a trace, 2 wrong usage.`,
		Example: `  yoctuned trace view run.json
  yoctuned trace view run.json --stage infer --start 2s --end 5s --top 10`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Start < 0 || f.End < 0 || f.Top < 0 || f.End > 0 && f.End < f.Start {
				return cli.UsageError(errors.New("--start, --end and --top must not be negative, and --end must not be before --start"))
			}
			file, err := infile.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			v, err := trace.Read(file, f)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if p := cli.NewPrinter(cmd); p.JSON {
				p.Encode(v)
			} else {
				traceText(p, v)
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Stage, "stage", "", "`NAME` of the only stage to show")
	fl.DurationVar(&f.Start, "start", 0, "`TIME` from which events are shown")
	fl.DurationVar(&f.End, "end", 0, "`TIME` up to which events are shown; 0 shows all")
	fl.IntVar(&f.Top, "top", 5, "`N` slowest runs to list")
	return cmd
}

func traceText(w cli.Printer, v *trace.View) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "stage\truns\ttotal ms\tbusy\tp50 ms\tp95\tmax\twait p50\tmax\t\n")
	for _, s := range v.Stages {
		printable.Fprintf(t, "%s\t%d\t%s\t%.0f %%\t%s\t%s\t%s\t%s\t%s\t\n", s.Stage, s.Runs, formatMilliseconds(s.Total), 100*s.Busy, formatMilliseconds(s.P50), formatMilliseconds(s.P95), formatMilliseconds(s.Max), formatMilliseconds(s.WaitP50), formatMilliseconds(s.WaitMax))
	}
	_ = t.Flush()
	for _, b := range v.Backends {
		w.Printf("on %s: %d runs, %s ms\n", b.Backend, b.Runs, formatMilliseconds(b.Total))
	}
	for _, s := range v.Slowest {
		w.Printf("slow: %s, frame %d, %s ms at %s ms, after waiting %s ms\n", s.Stage, s.Frame, formatMilliseconds(s.Dur), formatMilliseconds(s.Start), formatMilliseconds(s.Wait))
	}
	for _, f := range slices.Sorted(maps.Keys(v.Frames)) {
		w.Printf("frames %s: %d\n", f, v.Frames[f])
	}
	for _, r := range slices.Sorted(maps.Keys(v.Reasons)) {
		w.Printf("  %s: %d\n", r, v.Reasons[r])
	}
	if len(v.Scopes) > 0 {
		fmt.Fprintf(t, "scope\truns\ttotal ms\tp50 ms\tp95\tmax\t\n")
		for _, s := range v.Scopes {
			printable.Fprintf(t, "%s: %s\t%d\t%s\t%s\t%s\t%s\t\n", s.Stage, s.Name, s.Runs, formatMilliseconds(s.Total), formatMilliseconds(s.P50), formatMilliseconds(s.P95), formatMilliseconds(s.Max))
		}
		_ = t.Flush()
	}
	if len(v.Values) > 0 {
		fmt.Fprintf(t, "value\tcount\tmin\tmean\tmax\tlast\t\n")
		for _, x := range v.Values {
			printable.Fprintf(t, "%s\t%d\t%.4g\t%.4g\t%.4g\t%.4g\t\n", x.Name, x.Count, x.Min, x.Mean, x.Max, x.Last)
		}
		_ = t.Flush()
	}
	for _, e := range v.Events {
		w.Printf("at %s ms, %s: %s\n", formatMilliseconds(e.At), e.Name, e.Why)
	}
	if v.Overwritten > 0 {
		w.Printf("%d older events were overwritten\n", v.Overwritten)
	}
	if v.Full {
		w.Printf("the session ended because it had all the events that it may have; start one with more --events\n")
	}
}
