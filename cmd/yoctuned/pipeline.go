package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/backoff"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/lease"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/sink"
	"github.com/yoctune/yoctune/runtime/engine/tensorrt"
	"github.com/yoctune/yoctune/runtime/engine/trace"
	"github.com/yoctune/yoctune/schema/plan"
)

func newPipelineCommand() *cobra.Command {
	return newGroupCommand("pipeline", "Run and watch inference pipelines",
		`Run the inference pipelines of a plan, watch those that run, and print the header for
plug-ins of custom stages.`,
		`  yoctuned pipeline run plan.json
  yoctuned pipeline top`,
		newPipelineRunCommand(), newPipelineTopCommand(), newPipelineHeaderCommand())
}

func newPipelineRunCommand() *cobra.Command {
	var o pipeline.Options
	var check bool
	var traced string
	cmd := &cobra.Command{
		Use:               "run PLAN [NAME]",
		ValidArgsFunction: completeFrom(1, 0, pipelinesOf),
		Short:             "Run one pipeline until its source ends",
		Long: `Run the pipeline NAME of the plan, or its only one: read frames from the source, pass
them through the stages, and write the results with the time that each frame waited for
and spent in each stage. The summary at the end accounts for every frame.

Models and labels are searched by their digest in --models, beside the plan, and where
layers install them. SIGTERM and SIGINT stop the source; frames in flight have five
seconds to finish.

With --format json each result is one object:
  {"type":"result","pipeline":…,"frame":…,"capture_ns":…,"results":[…],
   "latency_ns":{"total":…,"stages":{"ID":{"queue":…,"service":…},…}}}
and the last object is the summary. If the sink has a path, the results go there; the
summary always goes to standard output.

Stages with device gpu run in a separate process. If the GPU hangs or kills it, it is
restarted, and the CPU takes over meanwhile.

Exit status: 0 no frame failed (frames may have been dropped, as the plan allows), 1 bad
plan, model or source, or frames failed, 2 wrong usage, 3 the run missed the plan's slo
(with --check).`,
		Example: `  yoctuned pipeline run plan.json
  yoctuned pipeline run plan.json labels --source clip.y4m --format json
  yoctuned pipeline run plan.json --frames 300 --check`,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, args []string) error {
			return runPipeline(cmd, dev, args, o, traced, check, nil)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Source, "source", "", "`FILE` with video to read instead of the plan's source: .y4m, frames in the source's format, or compressed where ffmpeg is installed")
	f.Uint64Var(&o.Frames, "frames", 0, "`N` frames to read at most; 0 reads all")
	f.StringVar(&o.Library, "library", "", "`FILE` of the ONNX Runtime library (default: $YOCTUNE_ORT_LIBRARY, else the system's)")
	f.StringVar(&o.Models, "models", "", "`DIR` to search for models and labels first")
	f.BoolVar(&check, "check", false, "exit 3 when the run misses the plan's slo")
	f.StringVar(&traced, "trace", "", "`FILE` to write a trace to, for Perfetto, chrome://tracing or 'yoctuned trace view'; .pftrace has Perfetto's encoding")
	f.StringVar(&o.Flight, "flight", "", "`DIR` to write a trace to whenever the latency objective is missed")
	cli.ChoiceVar(cmd, &o.GPU.Backend, "gpu-backend", core.CUDA, "`BACKEND` of stages with device gpu; cpu and strict try a plan without a GPU, strict as a card whose memory the CPU cannot access", core.CUDA, core.CPU, core.Strict)
	f.StringVar(&o.GPU.Library, "gpu-library", core.DefaultLibrary, "`FILE` of the CUDA backend library")
	f.StringVar(&o.GPU.Faults, "gpu-faults", "", "`FAULTS` to inject in tests, such as launch:hang=1s@n=100; release builds of the library ignore them")

	_ = cmd.MarkFlagDirname("flight")
	_ = cmd.MarkFlagFilename("trace", "json")
	_ = cmd.MarkFlagFilename("source", "y4m", "nv12", "i420", "yuv")
	_ = cmd.MarkFlagDirname("models")
	return cmd
}

// sameSignal is how long after a signal another one counts as the same.
const sameSignal = 500 * time.Millisecond

// runPipeline runs a pipeline until its source ends, or for the time of measure, which may be nil.
func runPipeline(cmd *cobra.Command, dev *rootfs.Root, args []string, o pipeline.Options, traced string, check bool, measure *load) error {
	root, out := rootDir(cmd), cli.NewPrinter(cmd)
	if err := core.CheckFaults(o.GPU.Faults); err != nil {
		return cli.UsageError(fmt.Errorf("--gpu-faults: %w", err))
	}
	file, err := planfile.Load(dev, planfile.Source{Path: args[0]})
	if err != nil {
		return err
	}
	id := rootfs.Identify(dev)
	warnOtherBoard(cmd, file.Plan, id)
	if o.Name, o.Plan, err = choosePipeline(file.Plan, args[1:]); err != nil {
		return err
	}
	if (o.Plan.Sink.NeedsServer() || o.Plan.Serves() && o.Source == "") && !serving {
		return execServer("pipeline " + o.Name + " needs a server")
	}
	if err := enterEnvironment(o.Plan.Environment); err != nil {
		return err
	}
	if o.Source == "" {
		if o.Requests, err = pipeline.NewPort(&o.Plan); err != nil {
			return err
		}
	}
	o.Dir = filepath.Dir(args[0])
	o.Engines = tensorrt.Store{Dir: filepath.Join(root, tensorrt.Dir)}
	o.Host = tensorrt.DetectHost(root, id.Compatible)
	o.Stdout, o.Device, o.Cache = out, dev, filepath.Join(root, core.CacheDir)
	if !out.JSON && o.Plan.Sink.Path == "" && o.Plan.Sink.NATS == nil {
		o.Sink = sink.NewText(out)
	}
	setScheduling(cmd, &o.Plan)

	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// A second signal ends the program at once. One that comes with the first does not: timeout(1) and terminals
	// signal a process and its group.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(sameSignal, stop) })()
	o.Start = ctx

	if traced != "" {
		// A run may take hours, so that an unusable file must fail it at once.
		if err := pipeline.CheckTrace(traced); err != nil {
			return err
		}
		o.Trace = trace.New(traceEvents)
	}
	o.Live, o.NVTX = liveSocket(dev, o.Name), os.Getenv("YOCTUNE_NVTX_LIBRARY")
	o.Note = func(err error) {
		if !errors.Is(err, fs.ErrPermission) { // a user without a folder for sockets
			cli.Warn(cmd, "%v", err)
		}
	}
	// The log has events when they happen; the summary comes at the end, if at all.
	o.Tell = func(e pipeline.Event) {
		printable.Fprintf(cmd.ErrOrStderr(), "yoctuned: %s: %s\n", o.Name, eventWords(e))
	}
	o.Throttled = func() []string { return monitor.Throttling(dev) }
	if s := o.Plan.SLO; s != nil && s.Energy > 0 {
		sensors := monitor.New(dev)
		o.Power = func() *int64 { return sensors.Take().ModulePower() }
	}
	if d := o.Plan.Degrade; d != nil {
		o.Hot = monitor.WatchStrain(ctx, dev, monitor.Limits{Headroom: d.Headroom, Power: d.Power})
	}
	if o.Plan.Lease {
		defer api.Hold(filepath.Join(root, api.Socket), lease.Profile, o.Note)()
	}
	if err := openDelivery(ctx, dev, file.Plan, &o); err != nil {
		return err
	}
	p, err := startPipeline(ctx, o)
	switch {
	case err != nil && ctx.Err() != nil: // a signal stopped it
		printable.Fprintf(cmd.ErrOrStderr(), "yoctuned: %v\n", err)
		return nil
	case err != nil:
		return err
	}
	if measure != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, measure.duration)
		defer cancel()
	}
	run := func() (*pipeline.Summary, error) { return p.Run(ctx) }
	switch {
	case o.Requests != nil && measure != nil:
		run = func() (*pipeline.Summary, error) { return measure.run(ctx, p, o.Requests) }
	case o.Requests != nil:
		run = func() (*pipeline.Summary, error) {
			return runRequests(ctx, cmd, p, o, filepath.Join(filepath.Dir(o.Live), pipelines.Requests))
		}
	}
	sum, runErr := run()
	runErr = errors.Join(runErr, p.Close())
	if traced != "" {
		runErr = errors.Join(runErr, pipeline.WriteTrace(traced, o.Name, o.Trace))
	}
	if sum == nil {
		return runErr
	}
	return pipelineAnswer(cmd, sum, runErr, check)
}

// startPipeline loads the models and warms up. A library that does not return within the time of a stop is left: the
// process ends.
func startPipeline(ctx context.Context, o pipeline.Options) (*pipeline.Pipeline, error) {
	var p *pipeline.Pipeline
	var err error
	started := make(chan struct{})
	go func() {
		defer close(started)
		p, err = pipeline.New(o)
	}()
	select {
	case <-started:
		return p, err
	case <-ctx.Done():
	}
	if !backoff.WaitClosed(started, stopTime) {
		return nil, fmt.Errorf("pipeline %s: stopped before it began: %w, while a library was loading", o.Name, context.Cause(ctx))
	}
	return p, err
}

// stopTime is how long the start of a pipeline may take to end.
const stopTime = 3 * time.Second

// warnOtherBoard warns if the plan is for another board. A pipeline changes nothing on the
// device, so that it may run anywhere.
func warnOtherBoard(cmd *cobra.Command, p *plan.Plan, id rootfs.Identity) {
	if len(id.Compatible) == 0 {
		return
	}
	if err := planfile.CheckDevice(p, id); errors.Is(err, planfile.ErrBoard) {
		cli.Warn(cmd, "the plan is for %s, and this machine is %s", p.Board, strings.Join(id.Compatible, " "))
	}
}

// setScheduling sets the CPUs and the scheduling policy of this process. It warns where
// they cannot be set.
func setScheduling(cmd *cobra.Command, p *plan.Pipeline) {
	if p.CPUs != "" {
		if err := pipeline.Pin(p.CPUs); err != nil {
			cli.Warn(cmd, "%v; the pipeline may run on any CPU", err)
		}
	}
	if err := pipeline.Schedule(p.Scheduling, p.Priority, p.Nice); err != nil {
		cli.Warn(cmd, "%v; the pipeline runs with the default scheduling policy", err)
	}
}

// eventWords describes an event.
func eventWords(e pipeline.Event) string {
	switch e.Kind {
	case pipeline.EventLevel:
		return fmt.Sprintf("%s: level %d to %d: %s", e.Kind, e.From, e.To, e.Why)
	case pipeline.EventRate:
		return fmt.Sprintf("%s: from %d to %d %% of the frames: %s", e.Kind, e.From, e.To, e.Why)
	}
	return fmt.Sprintf("%s: %s", e.Kind, e.Why)
}

// traceEvents is what --trace keeps for each worker: 2.6 MiB, half an hour at 30
// frames a second.
const traceEvents = 1 << 16

// choosePipeline finds the pipeline that an argument names, or the only one.
func choosePipeline(p *plan.Plan, name []string) (string, plan.Pipeline, error) {
	names := slices.Sorted(maps.Keys(p.Pipelines))
	switch {
	case len(names) == 0:
		return "", plan.Pipeline{}, errors.New("the plan has no pipelines")
	case len(name) == 0 && len(names) == 1:
		name = names
	case len(name) == 0:
		return "", plan.Pipeline{}, fmt.Errorf("the plan has %d pipelines; choose one of %s", len(names), strings.Join(names, ", "))
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
func pipelineAnswer(cmd *cobra.Command, sum *pipeline.Summary, runErr error, check bool) error {
	code := cli.ExitCode(!check || sum.SLO == nil || sum.SLO.Met)
	p := cli.NewPrinter(cmd)
	if runErr != nil {
		code = cli.ExitFailed
		printable.Fprintf(cmd.ErrOrStderr(), "yoctuned: %v\n", runErr)
		if p.JSON {
			p.Error(runErr)
		}
	}
	if p.JSON {
		p.Encode(pipelineSummary{sum, "pipeline run", code})
	} else {
		pipelineText(p, sum)
	}
	return cli.Exit(code)
}

// cropsText describes what a roi stage did with the boxes that it received.
func cropsText(stage string, c live.Crops) string {
	text := fmt.Sprintf("%s: %d boxes, %d crops", stage, c.Boxes, c.Crops)
	lost := c.Lost()
	for _, why := range slices.Sorted(maps.Keys(lost)) {
		if lost[why] > 0 {
			text += fmt.Sprintf(", %d %s", lost[why], why)
		}
	}
	if c.Cut > 0 {
		text += fmt.Sprintf("; %d cut at the edge", c.Cut)
	}
	return text
}

func pipelineText(w cli.Printer, s *pipeline.Summary) {
	row := func(q *pipeline.Quantiles) [4]string {
		if q == nil {
			return [4]string{"-", "-", "-", "-"}
		}
		return [4]string{formatMilliseconds(q.P50), formatMilliseconds(q.P95), formatMilliseconds(q.P99), formatMilliseconds(q.Max)}
	}
	f := s.Frames
	skipped := ""
	if len(s.Skips) > 0 {
		skipped = fmt.Sprintf(", %d skipped", f.Skipped)
	}
	w.Printf("\n%s: %d frames read: %d done, %d dropped, %d failed%s; %.1f fps over %.2f s (%s)\n",
		s.Pipeline, f.Read, f.Done, f.Dropped, f.Failed, skipped, s.FPS, float64(s.Duration)/1e9, s.Ended)
	for _, r := range slices.Sorted(maps.Keys(s.Drops)) {
		w.Printf("  dropped %d: %s\n", s.Drops[r], r)
	}
	for _, r := range slices.Sorted(maps.Keys(s.Failures)) {
		w.Printf("  failed %d: stage %s\n", s.Failures[r], r)
	}
	for _, stage := range slices.Sorted(maps.Keys(s.Fallbacks)) {
		w.Printf("  run by the CPU in place of the GPU %d: stage %s\n", s.Fallbacks[stage], stage)
	}
	for _, stage := range slices.Sorted(maps.Keys(s.Crops)) {
		w.Printf("  stage %s\n", cropsText(stage, s.Crops[stage]))
	}
	for _, g := range s.Runtime.GPUs {
		for _, stage := range slices.Sorted(maps.Keys(g.Frames)) {
			w.Printf("  run by GPU %d %d: stage %s\n", g.GPU, g.Frames[stage], stage)
		}
	}
	for _, e := range s.Events {
		w.Printf("  %s\n", eventWords(e))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "ms\tqueue p50\tp95\tservice p50\tp95\tp99\tmax\t\n")
	for _, id := range s.Order {
		q, v := row(s.Latency.Stages[id].Queue), row(s.Latency.Stages[id].Service)
		printable.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", id, q[0], q[1], v[0], v[1], v[2], v[3])
	}
	q := row(s.Latency.Total)
	fmt.Fprintf(t, "end to end\t\t\t%s\t%s\t%s\t%s\t\n", q[0], q[1], q[2], q[3])
	_ = t.Flush()
	if s.SLO != nil {
		writeSLO(w, s)
	}
	if s.Runtime.Backend != "" {
		w.Printf("preprocessing on %s; ", s.Runtime.Backend)
	}
	if s.Runtime.ONNXRuntime != "" {
		w.Printf("ONNX Runtime %s on %s; ", s.Runtime.ONNXRuntime, s.Runtime.Provider)
	}
	w.Printf("%d frames in %.1f MiB\n", s.Runtime.Frames, float64(s.Runtime.Bytes)/(1<<20))
}

// writeSLO writes whether the run met its objectives.
func writeSLO(w cli.Printer, s *pipeline.Summary) {
	verdict := map[bool]string{true: "met", false: "missed"}
	most := func(what string, o *pipeline.Objective, unit string, scale float64, unknown string) {
		if o == nil {
			return
		}
		found := unknown
		if o.Found != nil {
			found = fmt.Sprintf("%.2f %s measured", *o.Found/scale, unit)
		}
		w.Printf("slo %s: %s, %.2f %s wanted, %s\n", what, verdict[o.Met], o.Wanted/scale, unit, found)
	}
	const none = "no frame was done"
	most("latency p50", s.SLO.LatencyP50, "ms", 1e6, none)
	most("latency p95", s.SLO.LatencyP95, "ms", 1e6, none)
	most("latency p99", s.SLO.LatencyP99, "ms", 1e6, none)
	most("memory", s.SLO.Memory, "MiB", 1<<20, "the kernel does not give it")
	most("energy", s.SLO.Energy, "mJ a frame", 1e3, "no sensor measures the module's power")
	if o := s.SLO.MinFPS; o != nil {
		w.Printf("slo rate: %s, %.1f fps of %.0f\n", verdict[o.Met], s.FPS, o.Wanted)
	}
}

// formatMilliseconds formats nanoseconds as milliseconds.
func formatMilliseconds(ns int64) string { return fmt.Sprintf("%.2f", float64(ns)/1e6) }
