package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/doctor"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
)

func newDoctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [PLAN]",
		Short: "Check what makes devices slow, and say what to do",
		Long: `doctor watches the device for a few seconds and asks what people who tune such
devices check by hand: power mode, throttling, thermal margin, over-current, the
bottleneck among CPU, GPU and memory, swap, fragmentation, interrupts on isolated
cores, programs that fight over the same knobs, disk wear and more. Each answer has
the measured value, the limit, and what to do.

It reads only. Run it while the work runs: an idle device hides most of it.
--trace judges the loads of a recording instead ('monitor --record'); a minute of
it also shows leaks.

Exit codes: 0 nothing failed · 1 failed · 2 usage · 3 a check failed (warnings do
not count).`,
		Example: `  yoctuned doctor
  yoctuned doctor --duration 60s --quiet
  yoctuned doctor --format json | jq 'select(.verdict == "fail")'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g := globalFlags(cmd)
			dev, err := rootfs.Open(g.Root)
			if err != nil {
				return err
			}
			duration, _ := cmd.Flags().GetDuration("duration")
			if duration < minInterval {
				return usage(fmt.Errorf("--duration is at least %v", minInterval))
			}
			in := &doctor.Input{Dev: dev, Procs: doctor.Processes(dev)}
			src := planfile.Source{}
			if len(args) == 1 {
				src.Path = args[0]
			}
			if err := examinePlan(in, dev, src); err != nil {
				return err
			}
			if err := watchFor(cmd, in, dev, duration); err != nil {
				return err
			}
			if trace, _ := cmd.Flags().GetString("trace"); trace != "" {
				if in.Samples, err = readTrace(trace); err != nil {
					return err
				}
			}
			quiet, _ := cmd.Flags().GetBool("quiet")
			return writeFindings(cmd.OutOrStdout(), g.Format, quiet, doctor.Examine(in))
		},
	}
	cmd.Flags().Duration("duration", 3*time.Second, "how long to watch, a `TIME`")
	cmd.Flags().String("trace", "", "judge the samples of `FILE`, which 'monitor --record' wrote")
	cmd.Flags().Bool("quiet", false, "show only what is not right")
	return cmd
}

// examinePlan reads the plan and what became of it. Without an installed one
// the device is judged by itself.
func examinePlan(in *doctor.Input, dev *rootfs.Root, src planfile.Source) error {
	id := rootfs.Identify(dev)
	file, err := planfile.Load(dev, src)
	switch {
	case err == nil:
		in.Plan = file.Plan
		if err := planfile.CheckDevice(file.Plan, id); err != nil {
			in.Refused = err.Error()
		}
		in.Results = enforce.Verify(dev, file.Plan, enforce.DefaultOptions())
	case src.Path != "":
		return err
	case !errors.Is(err, planfile.ErrMissing):
		in.Refused = err.Error()
	}
	// What cannot be read is unknown to the checks, which say so.
	in.Units, _ = dev.UnitStates(doctor.Services())
	in.Watch, _ = watch.ReadState(dev, id.BootID)
	if in.Modes, _ = power.Read(dev); in.Modes != nil {
		if mode, err := power.Current(dev, in.Modes); err == nil {
			in.Mode = in.Modes.ModeName(mode)
		}
	}
	return nil
}

// watchFor samples the device.
func watchFor(cmd *cobra.Command, in *doctor.Input, dev *rootfs.Root, duration time.Duration) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	sampler := monitor.New(dev)
	first := sampler.Take()
	in.Before = doctor.ReadCounters(dev, time.Duration(first.Monotonic))
	step := min(max(duration/10, minInterval), time.Second)
	for {
		select {
		case <-ctx.Done():
			return errors.New("interrupted")
		case <-time.After(step):
		}
		s := sampler.Take()
		in.Samples = append(in.Samples, s)
		if time.Duration(s.Monotonic-first.Monotonic) >= duration {
			in.After = doctor.ReadCounters(dev, time.Duration(s.Monotonic))
			return nil
		}
	}
}

func readTrace(name string) ([]*monitor.Sample, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	defer func() { _ = f.Close() }()
	var out []*monitor.Sample
	err = monitor.Read(f, func(s *monitor.Sample) error {
		if len(out) >= maxTrace {
			return fmt.Errorf("more than %d samples", maxTrace)
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read trace %s: %w", name, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read trace %s: %w: no sample in it", name, monitor.ErrRecording)
	}
	return out, nil
}

// maxTrace bounds a trace, whose samples are all kept: a day of seconds.
const maxTrace = 24 * 3600

func writeFindings(out io.Writer, format string, quiet bool, findings []doctor.Finding) error {
	counts := map[string]int{}
	exit := exitYes
	for _, f := range findings {
		counts[string(f.Verdict)]++
		if f.Verdict == doctor.Fail {
			exit = exitNo
		}
	}
	w := bufio.NewWriter(out)
	if format == "json" {
		enc := lines(w) // the buffer keeps its error for Flush
		for _, f := range findings {
			_ = enc.Encode(f)
		}
		_ = enc.Encode(summaryLine{Type: "summary", Command: "doctor", Outcomes: counts, Exit: exit})
	} else {
		colour := colours(out)
		for _, f := range findings {
			if quiet && f.Verdict != doctor.Fail && f.Verdict != doctor.Warn {
				continue
			}
			findingText(w, f, colour)
		}
		fmt.Fprintf(w, "doctor: %d failed, %d warnings, %d ok, %d skipped, %d unknown\n",
			counts["fail"], counts["warn"], counts["ok"], counts["skipped"], counts["unknown"])
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if exit == exitNo {
		return answerNo()
	}
	return nil
}

func findingText(w io.Writer, f doctor.Finding, colour bool) {
	measured := f.Measured
	if measured == "" {
		measured = "-"
	}
	verdict := fmt.Sprintf("%-8s", f.Verdict)
	if colour {
		switch f.Verdict {
		case doctor.OK:
			verdict = green + verdict + reset
		case doctor.Warn:
			verdict = yellow + verdict + reset
		case doctor.Fail:
			verdict = red + verdict + reset
		default:
			verdict = dim + verdict + reset
		}
	}
	limit := ""
	if f.Limit != "" {
		limit = " (limit: " + f.Limit + ")"
	}
	fmt.Fprintf(w, "%s%-17s %s%s\n", verdict, f.Check, printable(measured), printable(limit))
	if f.Advice != "" {
		fmt.Fprintf(w, "%25s %s\n", "", printable(f.Advice))
	}
}
