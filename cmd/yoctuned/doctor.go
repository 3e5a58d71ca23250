package main

import (
	"cmp"
	"errors"
	"fmt"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/internal/terminal"
	"github.com/yoctune/yoctune/runtime/device/doctor"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
)

func newDoctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [PLAN]",
		Short: "Find what slows the device down, and suggest what to do",
		Long: `Watch the device for a few seconds and check the usual causes of poor performance: power
mode, throttling, thermal margin, over-current, the bottleneck among CPU, GPU and memory,
swap, fragmentation, interrupts on isolated cores, programs that set the same knobs, disk
wear and more. Each finding has the measured value, the limit, and advice.

doctor only reads. Run it under the real workload: an idle device shows little.
--trace analyses a recording of "yoctuned monitor --record" instead; a recording of a
minute or more also shows memory leaks.

Exit status: 0 no check failed, 1 doctor itself failed, 2 wrong usage, 3 a check failed
(warnings do not count).`,
		Example: `  yoctuned doctor
  yoctuned doctor --duration 60s --quiet
  yoctuned doctor --format json | jq 'select(.verdict == "fail")'`,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, args []string) error {
			duration, _ := cmd.Flags().GetDuration("duration")
			if duration < minInterval {
				return cli.UsageError(fmt.Errorf("--duration must be at least %v", minInterval))
			}
			in := &doctor.Input{Dev: dev}
			if err := examinePlan(in, dev, planSource(cmd, args)); err != nil {
				return err
			}
			if err := sampleDevice(cmd, in, dev, duration); err != nil {
				return err
			}
			if trace, _ := cmd.Flags().GetString("trace"); trace != "" {
				var err error
				if in.Samples, err = readTrace(trace); err != nil {
					return err
				}
			}
			return writeFindings(cli.NewPrinter(cmd), isQuiet(cmd), doctor.Examine(in))
		}),
	}
	cmd.Flags().Duration("duration", 3*time.Second, "`TIME` to watch the device")
	cmd.Flags().String("trace", "", "`FILE` with samples of 'yoctuned monitor --record' to analyse")
	cmd.Flags().Bool("quiet", false, "show only warnings and failures")
	return cmd
}

// examinePlan reads the plan and compares the device with it. Without an installed plan
// the device is checked alone.
func examinePlan(in *doctor.Input, dev *rootfs.Root, src planfile.Source) error {
	id := rootfs.Identify(dev)
	file, err := planfile.Load(dev, src)
	switch {
	case err == nil:
		in.Plan = file.Plan
		if err := planfile.CheckDevice(file.Plan, id); err != nil {
			in.Refused = err.Error()
		}
		in.Pipelines = pipelines.States(dev, liveDirs(dev), file.Plan)
		in.Results = enforce.Verify(dev, file.Plan, enforce.DefaultOptions())
	case src.Path != "":
		return err
	case !errors.Is(err, planfile.ErrMissing):
		in.Refused = err.Error()
	}
	// The checks report what cannot be read as unknown.
	in.Units, _ = dev.UnitStates(doctor.Services())
	in.Watch, _ = watch.ReadState(dev, id.BootID)
	if in.Modes, _ = power.Read(dev); in.Modes != nil {
		if mode, err := power.Current(dev, in.Modes); err == nil {
			in.Mode = in.Modes.ModeName(mode)
		}
	}
	return nil
}

// sampleDevice samples the device.
func sampleDevice(cmd *cobra.Command, in *doctor.Input, dev *rootfs.Root, duration time.Duration) error {
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
	f, err := infile.Open(name)
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

func writeFindings(p cli.Printer, quiet bool, findings []doctor.Finding) error {
	counts := map[string]int{}
	for _, f := range findings {
		counts[string(f.Verdict)]++
		switch {
		case p.JSON:
			p.Encode(f)
		case !quiet || f.Verdict == doctor.Fail || f.Verdict == doctor.Warn:
			findingText(p, f)
		}
	}
	if !p.JSON {
		p.Printf("doctor: %d failed, %d warnings, %d ok, %d skipped, %d unknown\n",
			counts["fail"], counts["warn"], counts["ok"], counts["skipped"], counts["unknown"])
	}
	return p.End("doctor", cli.ExitCode(counts[string(doctor.Fail)] == 0), counts)
}

func findingText(p cli.Printer, f doctor.Finding) {
	style := cmp.Or(map[doctor.Verdict]terminal.Style{doctor.OK: terminal.Green, doctor.Warn: terminal.Yellow, doctor.Fail: terminal.Red}[f.Verdict], terminal.Dim)
	text := cmp.Or(f.Measured, "-")
	if f.Limit != "" {
		text += " (limit: " + f.Limit + ")"
	}
	const indent = 26
	columns := cli.Columns(p)
	fmt.Fprintf(p, "%s%-17s ", style.Paint(cli.Colour(p), fmt.Sprintf("%-8s", f.Verdict)), f.Check)
	for i, line := range terminal.Wrap(printable.Line(text), columns-indent) {
		fmt.Fprintf(p, "%*s%s\n", min(i, 1)*indent, "", line)
	}
	if f.Advice != "" {
		for _, line := range terminal.Wrap(printable.Line(f.Advice), columns-indent) {
			fmt.Fprintf(p, "%*s%s\n", indent, "", line)
		}
	}
}
