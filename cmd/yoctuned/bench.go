package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/yoctune/yoctune/runtime/bench"
	"github.com/yoctune/yoctune/runtime/core"
)

func newBenchCommand() *cobra.Command {
	var open core.Options
	var samples int
	cmd := &cobra.Command{
		Use:   "bench {bandwidth|kernels}",
		Short: "Measure this device's compute core beside a reference",
		Long: `bench runs the core's own operations on this machine and shows, for each, the
median and 95th percentile of its time. On the CPU a reference that computes the
same is measured in the same run, turn by turn; ratio is the reference's median
divided by ours, so above 1 we are faster. What is not known is null in JSON and
a dash in text.

  bandwidth  copies and fills, and what submitting a list costs
  kernels    frame to tensor in one pass, and deterministic reductions

The backend is chosen as pipelines choose it: CUDA where its library, a driver
and a device are there, else the CPU.

Exit codes: 0 measured · 1 failed · 2 usage.`,
		Example: `  yoctuned bench kernels
  yoctuned bench bandwidth --backend cuda --format json
  yoctuned bench kernels --samples 200 --format json | jq 'select(.ratio)'`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{bench.Bandwidth, bench.Kernels},
		RunE: func(cmd *cobra.Command, args []string) error {
			if samples < 1 {
				return usage(fmt.Errorf("--samples must be at least 1, not %d", samples))
			}
			switch open.Backend {
			case core.Auto, core.CPU, core.CUDA:
			default:
				return usage(fmt.Errorf("--backend is %s, %s or %s, not %q", core.Auto, core.CPU, core.CUDA, open.Backend))
			}
			return runBench(cmd, open, bench.Options{Suite: args[0], Samples: samples})
		},
	}
	cmd.Flags().StringVar(&open.Backend, "backend", core.Auto, "`BACKEND`: auto, cpu or cuda")
	cmd.Flags().StringVar(&open.Library, "library", core.DefaultLibrary, "`FILE` of the CUDA backend")
	cmd.Flags().IntVar(&open.Index, "device", 0, "`INDEX` of the backend's device")
	cmd.Flags().IntVar(&samples, "samples", 30, "`N` runs of each benchmark")
	_ = cmd.RegisterFlagCompletionFunc("backend", cobra.FixedCompletions([]string{core.Auto, core.CPU, core.CUDA}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// benchSummary ends bench's JSON.
type benchSummary struct {
	summaryLine
	Suite        string    `json:"suite"`
	Device       core.Info `json:"device"`
	Note         *string   `json:"note"` // why the CPU was chosen
	Measurements int       `json:"measurements"`
}

func runBench(cmd *cobra.Command, open core.Options, o bench.Options) (err error) {
	d, err := core.Open(open)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	info, err := d.Info()
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	done := 0
	if globalFlags(cmd).Format == "json" {
		enc := lines(w)
		if err := bench.Run(cmd.Context(), d, o, func(m bench.Measurement) error { done++; return enc.Encode(m) }); err != nil {
			return err
		}
		s := benchSummary{summaryLine: summaryLine{Type: "summary", Command: "bench"}, Suite: o.Suite, Device: info, Measurements: done}
		if n := d.Note(); n != "" {
			s.Note = &n
		}
		return enc.Encode(s)
	}
	if _, err := fmt.Fprintf(w, "%s on %s (%s)\n", o.Suite, printable(info.Name), info.Backend); err != nil {
		return err
	}
	if n := d.Note(); n != "" {
		if _, err := fmt.Fprintf(w, "note: %s\n", printable(n)); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(w, benchRow, "benchmark", "median", "p95", "GB/s", "ratio", "reference"); err != nil {
		return err
	}
	return bench.Run(cmd.Context(), d, o, func(m bench.Measurement) error { return writeMeasurement(w, m) })
}

const benchRow = "%-58s %10s %10s %7s %6s  %s\n"

func writeMeasurement(w io.Writer, m bench.Measurement) error {
	rate, ratio, reference := "-", "-", "-"
	if m.Bytes != nil && m.P50 > 0 {
		rate = strconv.FormatFloat(float64(*m.Bytes)/float64(m.P50), 'f', 1, 64)
	}
	if m.Ratio != nil {
		ratio = strconv.FormatFloat(*m.Ratio, 'f', 2, 64)
	}
	if m.Reference != nil {
		reference = fmt.Sprintf("%s, %s", m.Reference.Name, brief(m.Reference.P50))
	}
	_, err := fmt.Fprintf(w, benchRow, m.Name, brief(m.P50), brief(m.P95), rate, ratio, reference)
	return err
}

// brief shows a time with three digits or a little more, which is all a
// measurement has.
func brief(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d >= time.Second:
		d = d.Round(time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(time.Microsecond)
	case d >= time.Microsecond:
		d = d.Round(10 * time.Nanosecond)
	}
	return d.String()
}
