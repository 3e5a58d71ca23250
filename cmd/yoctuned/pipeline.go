package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/sink"
	"github.com/yoctune/yoctune/runtime/engine/tensorrt"
	"github.com/yoctune/yoctune/runtime/engine/trace"
	"github.com/yoctune/yoctune/schema/plan"
)

func newPipelineCommand() *cobra.Command {
	return group("pipeline", "Run the inference pipelines of a plan",
		newPipelineRunCommand(), newPipelineTopCommand(), newPipelineHeaderCommand())
}

func newPipelineRunCommand() *cobra.Command {
	var o pipeline.Options
	var check bool
	var traced string
	cmd := &cobra.Command{
		Use:   "run PLAN [NAME]",
		Short: "Run one pipeline until its source ends",
		Long: `run takes frames from the pipeline's source through its stages and writes what
the model saw, with the time each frame spent waiting for and in each stage. The
summary at the end says what became of every frame. NAME may be left out when
the plan has one pipeline.

Models and labels are looked for in --models, beside the plan, and where layers
install them, by their sum. SIGTERM and SIGINT stop the source; frames that are
in flight get five seconds.

With --format json each result is one object:
  {"type":"result","pipeline":…,"frame":…,"capture_ns":…,"results":[…],
   "latency_ns":{"total":…,"stages":{"ID":{"queue":…,"service":…},…}}}
and the last object is the summary. A sink with a path takes the results; the
summary is on standard output all the same.

Stages with device gpu are run by a process of their own, which a GPU may hang or
kill; it is started again, and the CPU does its work meanwhile (docs/core.md).

Exit codes: 0 no frame failed (some may have been dropped, as the plan allows) ·
1 bad plan, model or source, or frames failed · 2 usage · 3 with --check: the
run missed the plan's slo.`,
		Example: `  yoctuned pipeline run plan.json
  yoctuned pipeline run plan.json labels --source clip.y4m --format json
  yoctuned pipeline run plan.json --frames 300 --check`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runPipeline(cmd, args, o, traced, check)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Source, "source", "", "video `FILE` to read instead of the plan's source, in its format or .y4m")
	f.Uint64Var(&o.Frames, "frames", 0, "read at most `N` frames, 0: all")
	f.StringVar(&o.Library, "library", "", "ONNX Runtime library `FILE`; default: YOCTUNE_ORT_LIBRARY, then the system's")
	f.StringVar(&o.Models, "models", "", "`DIR` to look for models and labels in first")
	f.BoolVar(&check, "check", false, "exit 3 when the run misses the plan's slo")
	f.StringVar(&traced, "trace", "", "write where the time of frames went to `FILE`, for Perfetto, chrome://tracing or trace view")
	f.StringVar(&o.Flight, "flight", "", "`DIR` for a trace of each window that misses the plan's latency objective")
	f.StringVar(&o.GPU.Backend, "gpu-backend", core.CUDA, "what stages with device gpu run on: `BACKEND` cuda, or cpu to try isolation without a GPU")
	f.StringVar(&o.GPU.Library, "gpu-library", core.DefaultLibrary, "`FILE` of the CUDA backend")
	f.StringVar(&o.GPU.Faults, "gpu-faults", "", "`FAULTS` for tests, such as launch:hang=1s@n=100; the library of releases has none")
	_ = cmd.RegisterFlagCompletionFunc("gpu-backend", cobra.FixedCompletions([]string{core.CUDA, core.CPU}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagDirname("flight")
	_ = cmd.MarkFlagFilename("trace", "json")
	_ = cmd.MarkFlagFilename("source", "y4m", "nv12", "i420", "yuv")
	_ = cmd.MarkFlagDirname("models")
	return cmd
}

func runPipeline(cmd *cobra.Command, args []string, o pipeline.Options, traced string, check bool) error {
	g, stdout, stderr := globalFlags(cmd), cmd.OutOrStdout(), cmd.ErrOrStderr()
	if b := o.GPU.Backend; b != core.CUDA && b != core.CPU {
		return usage(fmt.Errorf("--gpu-backend is %s or %s, not %q", core.CUDA, core.CPU, b))
	}
	if err := core.CheckFaults(o.GPU.Faults); err != nil {
		return usage(fmt.Errorf("--gpu-faults: %w", err))
	}
	dev, err := rootfs.Open(g.Root)
	if err != nil {
		return err
	}
	file, err := planfile.Load(dev, planfile.Source{Path: args[0]})
	if err != nil {
		return err
	}
	// A pipeline changes nothing on the device, so another board's plan may be
	// tried anywhere; on a module that knows better, say so.
	if id := rootfs.Identify(dev); len(id.Compatible) > 0 {
		if err := planfile.CheckDevice(file.Plan, id); errors.Is(err, planfile.ErrBoard) {
			fmt.Fprintf(stderr, "yoctuned: warning: the plan is for %s, this machine is %s\n",
				printable(file.Plan.Board), printable(strings.Join(id.Compatible, " ")))
		}
	}
	if o.Name, o.Plan, err = choosePipeline(file.Plan, args[1:]); err != nil {
		return err
	}
	o.Dir = filepath.Dir(args[0])
	o.Engines = tensorrt.Store{Dir: filepath.Join(g.Root, tensorrt.Dir)}
	o.Host = tensorrt.Look(g.Root, rootfs.Identify(dev).Compatible)
	o.Stdout, o.Device = stdout, dev
	if g.Format == "text" && o.Plan.Sink.Path == "" {
		o.Sink = sink.NewText(stdout)
	}
	if o.Plan.CPUs != "" {
		if err := pipeline.Pin(o.Plan.CPUs); err != nil {
			fmt.Fprintf(stderr, "yoctuned: warning: %s; the pipeline runs on any processor\n", printable(err.Error()))
		}
	}
	if err := pipeline.Schedule(o.Plan.Scheduling, o.Plan.Priority, o.Plan.Nice); err != nil {
		fmt.Fprintf(stderr, "yoctuned: warning: %s; the pipeline runs as any other program\n", printable(err.Error()))
	}

	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// A second signal ends the program at once.
	defer context.AfterFunc(ctx, stop)()
	o.Start = ctx

	if traced != "" {
		// Found out now, not after hours.
		if err := pipeline.CheckTrace(traced); err != nil {
			return err
		}
		o.Trace = trace.New(traceEvents)
	}
	o.Live, o.NVTX = liveSocket(dev, o.Name), os.Getenv("YOCTUNE_NVTX_LIBRARY")
	o.Note = func(err error) {
		if !errors.Is(err, fs.ErrPermission) { // a user without a folder for sockets
			fmt.Fprintf(stderr, "yoctuned: warning: %s\n", printable(err.Error()))
		}
	}
	// A journal has what happens when it does; the summary comes at the end, if it comes.
	o.Tell = func(e pipeline.Event) { fmt.Fprintf(stderr, "yoctuned: %s: %s\n", o.Name, happened(e)) }
	o.Throttled = func() []string { return monitor.Throttling(dev) }
	o.Hot = watchStrain(ctx, dev, o.Plan.Degrade)
	if o.Plan.Lease {
		defer holdLease(g, o.Note)()
	}
	p, err := pipeline.New(o)
	switch {
	case err != nil && ctx.Err() != nil: // it was told to
		fmt.Fprintf(stderr, "yoctuned: %s\n", printable(err.Error()))
		return nil
	case err != nil:
		return err
	}
	sum, runErr := p.Run(ctx)
	runErr = errors.Join(runErr, p.Close())
	if traced != "" {
		runErr = errors.Join(runErr, pipeline.WriteTrace(traced, o.Name, o.Trace))
	}
	if sum == nil {
		return runErr
	}
	return pipelineAnswer(stdout, stderr, g.Format, sum, runErr, check)
}

// happened is an event in words.
func happened(e pipeline.Event) string {
	if e.Kind == pipeline.EventLevel {
		return fmt.Sprintf("%s: level %d to %d: %s", e.Kind, e.From, e.To, printable(e.Why))
	}
	return fmt.Sprintf("%s: %s", e.Kind, printable(e.Why))
}

// traceEvents is what --trace keeps for each worker: 2.6 MiB, half an hour at 30
// frames a second.
const traceEvents = 1 << 16

// choosePipeline finds the pipeline to run.
func choosePipeline(p *plan.Plan, name []string) (string, plan.Pipeline, error) {
	names := slices.Sorted(maps.Keys(p.Pipelines))
	switch {
	case len(names) == 0:
		return "", plan.Pipeline{}, errors.New("the plan has no pipelines")
	case len(name) == 0 && len(names) == 1:
		name = names
	case len(name) == 0:
		return "", plan.Pipeline{}, fmt.Errorf("the plan has %d pipelines, name one: %s", len(names), strings.Join(names, ", "))
	}
	pl, ok := p.Pipelines[name[0]]
	if !ok {
		return "", plan.Pipeline{}, fmt.Errorf("the plan has no pipeline %q; it has %s", name[0], strings.Join(names, ", "))
	}
	return name[0], pl, nil
}

// pipelineSummary is the last line in JSON.
type pipelineSummary struct {
	*pipeline.Summary
	Command string `json:"command"`
	Exit    int    `json:"exit"`
}

// pipelineAnswer writes the summary, after the error when there is one, and
// returns the command's answer.
func pipelineAnswer(stdout, stderr io.Writer, format string, sum *pipeline.Summary, runErr error, check bool) error {
	code := exitYes
	switch {
	case runErr != nil:
		code = exitFailed
		fmt.Fprintln(stderr, "yoctuned: "+printable(runErr.Error()))
	case check && sum.SLO != nil && !sum.SLO.Met:
		code = exitNo
	}
	var err error
	if format == "json" {
		enc := lines(stdout)
		if runErr != nil {
			err = enc.Encode(errorLine{"error", runErr.Error()})
		}
		err = errors.Join(err, enc.Encode(pipelineSummary{sum, "pipeline run", code}))
	} else {
		err = pipelineText(stdout, sum)
	}
	switch {
	case err != nil && runErr == nil:
		return fmt.Errorf("write summary: %w", err)
	case code != exitYes:
		return &exitError{Code: code}
	}
	return nil
}

func pipelineText(w io.Writer, s *pipeline.Summary) error {
	ms := func(ns int64) string { return fmt.Sprintf("%.2f", float64(ns)/1e6) }
	row := func(q *pipeline.Quantiles) [4]string {
		if q == nil {
			return [4]string{"-", "-", "-", "-"}
		}
		return [4]string{ms(q.P50), ms(q.P95), ms(q.P99), ms(q.Max)}
	}
	f := s.Frames
	fmt.Fprintf(w, "\n%s: %d frames read: %d done, %d dropped, %d failed; %.1f fps over %.2f s (%s)\n",
		printable(s.Pipeline), f.Read, f.Done, f.Dropped, f.Failed, s.FPS, float64(s.Duration)/1e9, s.Ended)
	for _, r := range slices.Sorted(maps.Keys(s.Drops)) {
		fmt.Fprintf(w, "  dropped %d: %s\n", s.Drops[r], printable(r))
	}
	for _, r := range slices.Sorted(maps.Keys(s.Failures)) {
		fmt.Fprintf(w, "  failed %d: stage %s\n", s.Failures[r], printable(r))
	}
	for _, stage := range slices.Sorted(maps.Keys(s.Fallbacks)) {
		fmt.Fprintf(w, "  by the CPU for the GPU %d: stage %s\n", s.Fallbacks[stage], printable(stage))
	}
	for _, g := range s.Runtime.GPUs {
		for _, stage := range slices.Sorted(maps.Keys(g.Frames)) {
			fmt.Fprintf(w, "  by GPU %d %d: stage %s\n", g.GPU, g.Frames[stage], printable(stage))
		}
	}
	for _, e := range s.Events {
		fmt.Fprintf(w, "  %s\n", happened(e))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "ms\tqueue p50\tp95\tservice p50\tp95\tp99\tmax\t\n")
	for _, id := range s.Order {
		q, v := row(s.Latency.Stages[id].Queue), row(s.Latency.Stages[id].Service)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", printable(id), q[0], q[1], v[0], v[1], v[2], v[3])
	}
	q := row(s.Latency.Total)
	fmt.Fprintf(t, "end to end\t\t\t%s\t%s\t%s\t%s\t\n", q[0], q[1], q[2], q[3])
	if err := t.Flush(); err != nil {
		return err
	}
	if s.SLO != nil {
		verdict := map[bool]string{true: "met", false: "missed"}
		if o := s.SLO.LatencyP95; o != nil {
			found := "no frame was done"
			if o.Found != nil {
				found = ms(int64(*o.Found)) + " ms found"
			}
			fmt.Fprintf(w, "slo latency p95: %s, %s ms wanted, %s\n", verdict[o.Met], ms(int64(o.Wanted)), found)
		}
		if o := s.SLO.MinFPS; o != nil {
			fmt.Fprintf(w, "slo rate: %s, %.1f fps of %.0f\n", verdict[o.Met], s.FPS, o.Wanted)
		}
	}
	if s.Runtime.Backend != "" {
		fmt.Fprintf(w, "preprocessing on %s; ", printable(s.Runtime.Backend))
	}
	if s.Runtime.ONNXRuntime != "" {
		fmt.Fprintf(w, "ONNX Runtime %s on %s; ", printable(s.Runtime.ONNXRuntime), printable(s.Runtime.Provider))
	}
	_, err := fmt.Fprintf(w, "%d frames in %.1f MiB\n", s.Runtime.Frames, float64(s.Runtime.Bytes)/(1<<20))
	return err
}
