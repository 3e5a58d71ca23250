package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/bench"
	"github.com/yoctune/yoctune/runtime/engine/core"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	open                   core.Options
	run                    bench.Options
	output, baseline, save string
	quiet                  bool
	minEffect              float64 // percent
}

func newBenchCommand() *cobra.Command {
	var f benchFlags
	suites := append(bench.Suites(), bench.All)
	cmd := &cobra.Command{
		Use:   "bench " + strings.Join(suites, "|"),
		Short: "Measure the compute core beside reference implementations",
		Long: `Run operations of the compute core on this machine and show the median, 95th and 99th
percentile of the time of each. On the CPU, a reference implementation is measured in the
same run, in turns: libc, OpenBLAS, libswscale or ONNX Runtime where they are installed,
else a plain loop, which is labelled so. The ratio is the reference's median divided by
ours: above 1 ours is faster. A value that is not available is null in JSON and a dash in
text.

  bandwidth  copies, fills and reads, by size and kind of memory
  compute    matrix products, by number type and shape
  kernels    every kernel of the core, with typical pipeline data
  latency    the cost of a call, a list, a graph and an allocation
  profiler   the overhead of recording and monitoring a pipeline
  all        all of these

The memory bandwidth and arithmetic ceilings are measured in the same run; "roof" is the
share of the ceiling that limits a kernel.

--save-baseline saves every sample, and --baseline compares with such a file. A benchmark
is slower when a Mann-Whitney test shows it (p below 0.001), its median is at least
--min-effect percent longer, its time relative to the reference is too, and every round
of this run is slower than every round of the baseline. Runs on another device or with
another driver, clock limit or power mode are not compared.

The backend is chosen as pipelines choose it: CUDA if its library, a driver and a device
are present, else the CPU. Progress goes to standard error.

Exit status: 0 measured, 1 failed, or the baseline is of another device, 2 wrong usage,
3 something is slower than the baseline.`,
		Example: `  yoctuned bench kernels
  yoctuned bench all --format json -o bench.json --save-baseline baseline.json
  yoctuned bench all --baseline baseline.json
  yoctuned bench kernels --samples 200 --format json | jq 'select(.ratio)'`,
		ValidArgs: suites,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.run.Samples < 1 {
				return cli.UsageError(fmt.Errorf("--samples %d: choose at least 1", f.run.Samples))
			}
			if !(f.minEffect >= 0 && f.minEffect <= 1000) {
				return cli.UsageError(fmt.Errorf("--min-effect %g: choose 0 to 1000 percent", f.minEffect))
			}
			f.run.Suite = args[0]
			if f.output == "-" {
				f.output = ""
			}
			return runBench(cmd, f)
		},
	}
	coreFlags(cmd, &f.open)
	cmd.Flags().IntVar(&f.open.Index, "device", 0, "`INDEX` of the device to measure")
	cmd.Flags().IntVar(&f.run.Samples, "samples", 30, "`N` samples of each benchmark")
	cmd.Flags().StringVar(&f.run.ONNXRuntime, "onnxruntime", "", "`FILE` of the ONNX Runtime library to compare with (default: the system's)")
	cmd.Flags().StringVar(&f.baseline, "baseline", "", "`FILE` with a saved run to compare with")
	cmd.Flags().StringVar(&f.save, "save-baseline", "", "`FILE` to save this run in, with every sample")
	cmd.Flags().Float64Var(&f.minEffect, "min-effect", 100*bench.DefaultRule().MinEffect, "`PERCENT` by which a median must differ to count")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "`FILE` to write to (default: standard output)")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	cmd.AddCommand(newBenchModelCommand(), newBenchPipelineCommand())
	return cmd
}

// benchSummary ends bench's JSON.
type benchSummary struct {
	cli.Summary
	*bench.Report
	Note         *string `json:"note"` // why the CPU was chosen
	Measurements int     `json:"measurements"`
}

func runBench(cmd *cobra.Command, f benchFlags) (err error) {
	var base *bench.Report
	if f.baseline != "" {
		if base, err = bench.Load(f.baseline); err != nil {
			return err
		}
	}
	root, err := rootfs.Open(rootDir(cmd))
	if err != nil {
		return err
	}
	d, err := core.Open(f.open)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()

	sampler := monitor.New(root)
	f.run.State = func() bench.State { return bench.StateOf(sampler.Take()) }
	f.run.Library = f.open.Library
	if !f.quiet {
		f.run.Progress = func(number, total int, name string) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%d of %d: %s\n", number, total, name)
		}
	}
	var kept bytes.Buffer
	out := benchWriter{Printer: cli.NewPrinter(cmd), note: d.Note()}
	if f.output != "" {
		out.Printer = out.To(&kept)
	}
	f.run.Each = out.measurement
	report, err := bench.Run(cmd.Context(), d, f.run)
	if err != nil {
		return err
	}
	if f.save != "" {
		if err := bench.Save(f.save, report); err != nil {
			return err
		}
	}
	verdicts, answer := f.compare(base, report)
	out.end(report, verdicts, answer)
	if f.output != "" {
		if err := outfile.Write(f.output, kept.Bytes()); err != nil {
			return err
		}
	}
	return answer
}

// compare compares a run with the baseline, which may be nil. The error reports a
// regression, or the reason why the two cannot be compared.
func (f benchFlags) compare(base, report *bench.Report) ([]bench.Verdict, error) {
	if base == nil {
		return nil, nil
	}
	if other := bench.Differences(base, report); len(other) > 0 {
		return nil, fmt.Errorf("%s cannot be compared with this run: %s", f.baseline, strings.Join(other, "; "))
	}
	rule := bench.DefaultRule()
	rule.MinEffect = f.minEffect / 100
	verdicts := bench.Compare(base.Measurements, report.Measurements, rule)
	if bench.Regressed(verdicts) {
		return verdicts, cli.Answer(false)
	}
	return verdicts, nil
}

// benchWriter shows a run.
type benchWriter struct {
	cli.Printer
	note  string
	suite string // of the last measurement
	count int
}

const benchRow = "%-62s %10s %10s %7s %7s %5s %6s  %s\n"

func (b *benchWriter) measurement(m bench.Measurement) error {
	b.count++
	if b.JSON {
		b.Encode(m)
		return b.Err()
	}
	if m.Suite != b.suite {
		if b.suite != "" {
			b.Printf("\n")
		}
		b.suite = m.Suite
		b.Printf("%s on %s (%s)\n", m.Suite, m.Device, m.Backend)
		b.Printf(benchRow, "benchmark", "median", "p95", "GB/s", "GFLOP/s", "roof", "ratio", "reference")
	}
	name, ratio, roof, reference := m.Name, "-", "-", "-"
	if m.Kernel != nil {
		name = *m.Kernel + " " + name
	}
	if m.Ratio != nil {
		ratio = strconv.FormatFloat(*m.Ratio, 'f', 2, 64)
	}
	if m.Roofline != nil {
		roof = fmt.Sprintf("%.0f%%%c", 100*m.Roofline.Share, m.Roofline.Bound[0])
	}
	if m.Reference != nil {
		reference = fmt.Sprintf("%s, %s", m.Reference.Name, formatTime(m.Reference.P50))
	}
	b.Printf(benchRow, name, formatTime(m.P50), formatTime(m.P95), perNano(m.Bytes, m.P50), perNano(m.Flops, m.P50), roof, ratio, reference)
	return b.Err()
}

func (b *benchWriter) end(r *bench.Report, verdicts []bench.Verdict, answer error) {
	outcomes := map[string]int{}
	for _, v := range verdicts {
		outcomes[v.Verdict]++
	}
	if b.JSON {
		b.endJSON(r, verdicts, outcomes, answer)
	} else {
		b.writeEndText(r, verdicts, outcomes)
	}
}

func (b *benchWriter) endJSON(r *bench.Report, verdicts []bench.Verdict, outcomes map[string]int, answer error) {
	for _, v := range verdicts {
		b.Encode(v)
	}
	s := benchSummary{Summary: cli.Summary{Type: "summary", Command: "bench", Outcomes: outcomes}, Report: r, Measurements: b.count}
	if b.note != "" {
		s.Note = &b.note
	}
	var exit *cli.ExitError
	if errors.As(answer, &exit) {
		s.Exit = exit.Code
	} else if answer != nil {
		return // the error's own line ends the output
	}
	b.Encode(s)
}

// perNano is a rate in billions a second.
func perNano(amount *int64, ns int64) string {
	if amount == nil || ns <= 0 {
		return "-"
	}
	return strconv.FormatFloat(float64(*amount)/float64(ns), 'f', 1, 64)
}

func (b *benchWriter) writeEndText(r *bench.Report, verdicts []bench.Verdict, outcomes map[string]int) {
	b.Printf("\n")
	for _, c := range r.Ceilings.Memory {
		b.Printf("memory ceiling, up to %d KiB: %.1f GB/s by %s\n", c.WorkingSet>>10, float64(c.Rate)/1e9, c.By)
	}
	for _, c := range r.Ceilings.Compute {
		b.Printf("arithmetic ceiling, %s: %.1f GFLOP/s by %s\n", c.Numbers, float64(c.Rate)/1e9, c.By)
	}
	b.Printf("state before: %s\nstate after:  %s\n", stateText(r.Before), stateText(r.After))
	for _, m := range r.Missing {
		b.Printf("missing reference: %s\n", m)
	}
	if b.note != "" {
		b.Printf("note: %s\n", b.note)
	}
	if len(verdicts) == 0 {
		return
	}
	b.Printf("\ncompared with the baseline\n")
	for _, v := range verdicts {
		if v.Verdict != bench.Same {
			b.Printf("  %-7s %s: %s\n", v.Verdict, v.Name, v.Why)
		}
	}
	b.Printf("  %d compared: %d slower, %d faster, %d the same\n",
		len(verdicts)-outcomes[bench.New]-outcomes[bench.Gone], outcomes[bench.Slower], outcomes[bench.Faster], outcomes[bench.Same])
}

// stateText lists the known values of a state.
func stateText(s bench.State) string {
	var parts []string
	for _, c := range []struct {
		name      string
		now, most *int64
	}{{"CPU", s.CPU, s.CPUMax}, {"GPU", s.GPU, s.GPUMax}, {"memory", s.Memory, nil}} {
		if c.now != nil {
			parts = append(parts, c.name+" "+clock(c.now, c.most))
		}
	}
	if s.Temperature != nil {
		parts = append(parts, fmt.Sprintf("hottest %.1f °C", float64(*s.Temperature)/1000))
	}
	if s.PowerMode != nil {
		parts = append(parts, "power mode "+*s.PowerMode)
	}
	if s.Governor != nil {
		parts = append(parts, "governor "+*s.Governor)
	}
	if len(parts) == 0 {
		return "clocks and temperatures are unknown"
	}
	return strings.Join(parts, ", ")
}

// formatTime rounds a time to about three digits, the precision of a measurement.
func formatTime(ns int64) string {
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
