package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/request"
)

// load is how a measured pipeline is driven.
type load struct {
	callers  int // of a pipeline that answers requests
	duration time.Duration
}

func newBenchPipelineCommand() *cobra.Command {
	var o pipeline.Options
	var l load
	cmd := &cobra.Command{
		Use:   "pipeline PLAN [NAME]",
		Short: "Run a pipeline for a time and compare it with its objectives",
		Long: `Run a pipeline of the plan for a time, and compare latency, rate, memory and energy with
its slo. A pipeline that answers requests gets them from this program, without a
transport: --callers requests of one row at a time, with zeros as input. Other sources
are those of the plan.

Exit status: 0 the run met the plan's slo, 1 bad plan, model or source, or frames failed,
2 wrong usage, 3 it missed the slo.`,
		Example: `  yoctuned bench pipeline plan.json
  yoctuned bench pipeline plan.json orientation --callers 4 --duration 30s`,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, args []string) error {
			if l.callers < 1 || l.callers > 4096 || l.duration <= 0 {
				return cli.UsageError(fmt.Errorf("--callers %d, --duration %v: choose 1 to 4096, and a time above 0", l.callers, l.duration))
			}
			return runPipeline(cmd, dev, args, o, "", true, &l)
		}),
	}
	f := cmd.Flags()
	f.IntVar(&l.callers, "callers", 1, "`N` requests at a time")
	f.DurationVar(&l.duration, "duration", 10*time.Second, "`TIME` to measure")
	f.StringVar(&o.Source, "source", "", "`FILE` with video to read instead of the plan's source")
	f.StringVar(&o.Library, "library", "", "`FILE` of the ONNX Runtime library (default: $YOCTUNE_ORT_LIBRARY, else the system's)")
	f.StringVar(&o.Models, "models", "", "`DIR` to search for models and labels first")
	cli.ChoiceVar(cmd, &o.GPU.Backend, "gpu-backend", core.CUDA, "`BACKEND` of stages with device gpu", core.CUDA, core.CPU, core.Strict)
	f.StringVar(&o.GPU.Library, "gpu-library", core.DefaultLibrary, "`FILE` of the CUDA backend library")
	_ = cmd.MarkFlagDirname("models")
	_ = cmd.MarkFlagFilename("source", "y4m", "nv12", "i420", "yuv")
	return cmd
}

// run runs a pipeline whose requests come from this process, until ctx ends.
func (l *load) run(ctx context.Context, p *pipeline.Pipeline, port *request.Port) (*pipeline.Summary, error) {
	running := startAnswering(ctx, p, port)
	defer running.stop()
	errs := make([]error, l.callers)
	var all sync.WaitGroup
	for n := range errs {
		all.Go(func() {
			for ctx.Err() == nil && errs[n] == nil {
				call := &request.Call{Rows: 1}
				for _, in := range port.Inputs() {
					call.Inputs = append(call.Inputs, make([]byte, in.Bytes()))
				}
				// A request that has begun is answered, and counts.
				errs[n] = port.Do(context.WithoutCancel(ctx), call, nil)
			}
		})
	}
	all.Wait()
	sum, runErr := running.end()
	failed := errors.Join(errs...)
	if errors.Is(failed, request.ErrClosed) && runErr != nil {
		failed = nil // the run's own error says why
	}
	return sum, errors.Join(runErr, failed)
}

// answering is a run of a pipeline that takes requests.
type answering struct {
	stop  context.CancelFunc
	ended chan struct{} // closed when sum and err are set
	sum   *pipeline.Summary
	err   error
}

// startAnswering runs a pipeline until it is stopped: the end of ctx lets requests in work be answered.
func startAnswering(ctx context.Context, p *pipeline.Pipeline, port *request.Port) *answering {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	a := &answering{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(a.ended)
		a.sum, a.err = p.Run(running)
		port.Close(request.ErrClosed)
	}()
	return a
}

// end stops the run and waits for it.
func (a *answering) end() (*pipeline.Summary, error) {
	a.stop()
	<-a.ended
	return a.sum, a.err
}
