package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/bench"
	"github.com/yoctune/yoctune/runtime/engine/core"
)

// benchFlags are what bench is told beside the suite.
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
		Use:   "bench {" + strings.Join(suites, "|") + "}",
		Short: "Measure this device's compute core beside references",
		Long: `bench runs the core's own operations on this machine and shows, for each, the
median, 95th and 99th percentile of its time. On the CPU something that others
wrote is measured in the same run, turn by turn: libc, OpenBLAS, libswscale and
ONNX Runtime where they are installed, else a plain loop that is called so. ratio
is the reference's median divided by ours: above 1 we are faster. What is not
known is null in JSON and a dash in text.

  bandwidth  copies, fills and reads, by size and kind of memory
  compute    products of matrices, by type of numbers and shape
  kernels    every kernel of the core, on what pipelines give it
  latency    what a call, a list, a graph and an allocation cost
  profiler   the overhead of recording and monitoring a pipeline
  all        these five

The ceilings of memory and arithmetic are measured in the same run; "roof" is the
share of the one that stops a kernel first.

--save-baseline keeps every sample; --baseline compares with such a file. A
benchmark is slower when a Mann-Whitney test says so (p below 0.001), its median
is --min-effect percent longer, so is its time beside the reference, and every
round of this run is slower than every one of the other. Runs of another device,
driver, clock limit or power mode are not compared.

The backend is chosen as pipelines choose it: CUDA where its library, a driver
and a device are there, else the CPU. Progress goes to standard error.

Exit codes: 0 measured · 1 failed, or the baseline is of another device · 2 usage ·
3 something is slower than the baseline.`,
		Example: `  yoctuned bench kernels
  yoctuned bench all --format json -o bench.json --save-baseline baseline.json
  yoctuned bench all --baseline baseline.json
  yoctuned bench kernels --samples 200 --format json | jq 'select(.ratio)'`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: suites,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.run.Samples < 1 {
				return usage(fmt.Errorf("--samples must be at least 1, not %d", f.run.Samples))
			}
			if !(f.minEffect >= 0 && f.minEffect <= 1000) {
				return usage(fmt.Errorf("--min-effect is 0 to 1000 percent, not %g", f.minEffect))
			}
			switch f.open.Backend {
			case core.Auto, core.CPU, core.CUDA:
			default:
				return usage(fmt.Errorf("--backend is %s, %s or %s, not %q", core.Auto, core.CPU, core.CUDA, f.open.Backend))
			}
			f.run.Suite = args[0]
			return runBench(cmd, f)
		},
	}
	cmd.Flags().StringVar(&f.open.Backend, "backend", core.Auto, "`BACKEND`: auto, cpu or cuda")
	cmd.Flags().StringVar(&f.open.Library, "library", core.DefaultLibrary, "`FILE` of the CUDA backend")
	cmd.Flags().IntVar(&f.open.Index, "device", 0, "`INDEX` of the backend's device")
	cmd.Flags().IntVar(&f.run.Samples, "samples", 30, "`N` runs of each benchmark")
	cmd.Flags().StringVar(&f.run.ONNXRuntime, "onnxruntime", "", "`FILE` of the ONNX Runtime to measure against, where it is not found")
	cmd.Flags().StringVar(&f.baseline, "baseline", "", "compare with the run saved in `FILE`")
	cmd.Flags().StringVar(&f.save, "save-baseline", "", "save this run, with every sample, in `FILE`")
	cmd.Flags().Float64Var(&f.minEffect, "min-effect", 100*bench.DefaultRule().MinEffect, "`PERCENT` by which a median must differ to count")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "write to `FILE`, whole or not at all, instead of standard output")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "no progress on standard error")
	_ = cmd.RegisterFlagCompletionFunc("backend", cobra.FixedCompletions([]string{core.Auto, core.CPU, core.CUDA}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// benchSummary ends bench's JSON.
type benchSummary struct {
	summaryLine
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
	root, err := rootfs.Open(globalFlags(cmd).Root)
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
	w := cmd.OutOrStdout()
	if f.output != "" {
		w = &kept
	}
	var out benchWriter = &benchText{w: w, note: d.Note()}
	if globalFlags(cmd).Format == "json" {
		out = &benchJSON{enc: lines(w), note: d.Note()}
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
	answer := error(nil)
	var verdicts []bench.Verdict
	if base != nil {
		if other := bench.Differences(base, report); len(other) > 0 {
			answer = fmt.Errorf("%s cannot be compared with this run: %s", f.baseline, strings.Join(other, "; "))
		} else {
			rule := bench.DefaultRule()
			rule.MinEffect = f.minEffect / 100
			if verdicts = bench.Compare(base.Measurements, report.Measurements, rule); bench.Regressed(verdicts) {
				answer = answerNo()
			}
		}
	}
	if err := out.end(report, verdicts, answer); err != nil {
		return err
	}
	if f.output != "" {
		if err := outfile.Write(f.output, kept.Bytes()); err != nil {
			return fmt.Errorf("the results: %w", err)
		}
	}
	return answer
}

// benchWriter shows a run.
type benchWriter interface {
	measurement(bench.Measurement) error
	end(*bench.Report, []bench.Verdict, error) error
}

type benchJSON struct {
	enc  interface{ Encode(any) error }
	note string
	n    int
}

func (b *benchJSON) measurement(m bench.Measurement) error {
	b.n++
	return b.enc.Encode(m)
}

func (b *benchJSON) end(r *bench.Report, verdicts []bench.Verdict, answer error) error {
	s := benchSummary{summaryLine: summaryLine{Type: "summary", Command: "bench"}, Report: r, Measurements: b.n}
	if b.note != "" {
		s.Note = &b.note
	}
	for _, v := range verdicts {
		if err := b.enc.Encode(v); err != nil {
			return err
		}
		if s.Outcomes == nil {
			s.Outcomes = map[string]int{}
		}
		s.Outcomes[v.Verdict]++
	}
	var ee *exitError
	switch {
	case errors.As(answer, &ee):
		s.Exit = ee.Code
	case answer != nil:
		return nil // the error's own line ends the output
	}
	return b.enc.Encode(s)
}

type benchText struct {
	w     io.Writer
	note  string
	suite string
}

const benchRow = "%-62s %10s %10s %7s %7s %5s %6s  %s\n"

func (b *benchText) measurement(m bench.Measurement) error {
	if m.Suite != b.suite {
		if b.suite != "" {
			if _, err := fmt.Fprintln(b.w); err != nil {
				return err
			}
		}
		b.suite = m.Suite
		if _, err := fmt.Fprintf(b.w, "%s on %s (%s)\n", m.Suite, printable(m.Device), m.Backend); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(b.w, benchRow, "benchmark", "median", "p95", "GB/s", "GFLOP/s", "roof", "ratio", "reference"); err != nil {
			return err
		}
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
		reference = fmt.Sprintf("%s, %s", m.Reference.Name, brief(m.Reference.P50))
	}
	_, err := fmt.Fprintf(b.w, benchRow, name, brief(m.P50), brief(m.P95), perNano(m.Bytes, m.P50), perNano(m.Flops, m.P50), roof, ratio, reference)
	return err
}

// perNano is a rate in billions a second.
func perNano(amount *int64, ns int64) string {
	if amount == nil || ns <= 0 {
		return "-"
	}
	return strconv.FormatFloat(float64(*amount)/float64(ns), 'f', 1, 64)
}

func (b *benchText) end(r *bench.Report, verdicts []bench.Verdict, answer error) error {
	var out bytes.Buffer
	out.WriteString("\n")
	for _, c := range r.Ceilings.Memory {
		fmt.Fprintf(&out, "ceiling of memory, up to %d KiB: %.1f GB/s by %s\n", c.WorkingSet>>10, float64(c.Rate)/1e9, c.By)
	}
	for _, c := range r.Ceilings.Compute {
		fmt.Fprintf(&out, "ceiling of arithmetic, %s: %.1f GFLOP/s by %s\n", c.Numbers, float64(c.Rate)/1e9, c.By)
	}
	fmt.Fprintf(&out, "state before: %s\nstate after:  %s\n", stateText(r.Before), stateText(r.After))
	for _, m := range r.Missing {
		fmt.Fprintf(&out, "not measured against: %s\n", printable(m))
	}
	if b.note != "" {
		fmt.Fprintf(&out, "note: %s\n", printable(b.note))
	}
	if len(verdicts) > 0 {
		count := map[string]int{}
		out.WriteString("\nbeside the baseline\n")
		for _, v := range verdicts {
			count[v.Verdict]++
			if v.Verdict != bench.Same {
				fmt.Fprintf(&out, "  %-7s %s: %s\n", v.Verdict, printable(v.Name), printable(v.Why))
			}
		}
		fmt.Fprintf(&out, "  %d compared: %d slower, %d faster, %d the same\n",
			len(verdicts)-count[bench.New]-count[bench.Gone], count[bench.Slower], count[bench.Faster], count[bench.Same])
	}
	_, err := b.w.Write(out.Bytes())
	return err
}

// stateText names what is known.
func stateText(s bench.State) string {
	var parts []string
	clock := func(name string, now, most *int64) {
		switch {
		case now != nil && most != nil:
			parts = append(parts, fmt.Sprintf("%s %d of %d MHz", name, *now/1e6, *most/1e6))
		case now != nil:
			parts = append(parts, fmt.Sprintf("%s %d MHz", name, *now/1e6))
		}
	}
	clock("CPU", s.CPU, s.CPUMax)
	clock("GPU", s.GPU, s.GPUMax)
	clock("memory", s.Memory, nil)
	if s.Temperature != nil {
		parts = append(parts, fmt.Sprintf("hottest %.1f °C", float64(*s.Temperature)/1000))
	}
	if s.PowerMode != nil {
		parts = append(parts, "power mode "+printable(*s.PowerMode))
	}
	if s.Governor != nil {
		parts = append(parts, "governor "+printable(*s.Governor))
	}
	if len(parts) == 0 {
		return "clocks and temperatures are not known"
	}
	return strings.Join(parts, ", ")
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
