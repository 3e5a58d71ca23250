package check

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/yoctune/yoctune/compiler/check/budget"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/schema/units"
)

// The rules of this file compare a pipeline with its objective and its budget.

// exampleStages is a pipeline that detects objects, without its end.
const exampleStages = examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx"}, b: {kind: "postprocess", input: "m", decode: "detect"}}, `

// exampleTimes is a pipeline that needs 52 ms for a frame, without its end.
const exampleTimes = `pipelines: p: {source: {kind: "v4l2", path: "/dev/v4l/by-path/a", format: "nv12", width: 1280, height: 720, fps: 15}, stages: {f: {kind: "preprocess", input: "source", width: 640, height: 640, time: "2ms"}, m: {kind: "model", input: "f", path: "yolo.onnx", time: "45ms"}, b: {kind: "postprocess", input: "m", decode: "detect", time: "4ms"}}, sink: {kind: "ndjson", time: "1ms"}, `

func promiseRules() []Rule {
	return []Rule{
		{
			ID: "latency-objective", Severity: diag.Error,
			Title: "the pipeline cannot meet its objective",
			Cause: "With the declared times, a frame that finds the queues full is later than slo.latencyP95 allows, or the slowest stage or a live source gives fewer results than slo.minFps. A file is read as fast as the stages allow, so its queues are always full. The queues of a live source are full when a stage is slower than the source.",
			Fix:   "lower queue.capacity or inFlight, set queue.maxAge, make the slowest stage faster (instances, a smaller model or size), or change the objective",
			Wrong: exampleTimes + `slo: latencyP95: "50ms"}`,
			Right: exampleTimes + `slo: latencyP95: "60ms"}`,
			See:   "yoctune schema SLO",
			run:   checkLatencyObjective,
		},
		{
			ID: "latency-unknown", Severity: diag.Info,
			Title: "the pipeline may not meet its objective",
			Cause: "The worst-case latency is the sum of the longest time of each stage. Only a measurement on the module gives these times.",
			Fix:   `run the pipeline on the module and declare each stage's "service max" of the summary as its time, such as time: "21ms"; or set queue.maxAge`,
			Wrong: exampleStages + `slo: latencyP95: "60ms"}`,
			Right: exampleTimes + `slo: latencyP95: "60ms"}`,
			See:   "yoctune schema SLO",
			run:   checkLatencyUnknown,
		},
		{
			ID: "pipeline-budget", Severity: diag.Error,
			Title: "the pipeline exceeds its budget",
			Cause: "The known use - frames, tensors, weights, raw frames of a file, a line for each result - exceeds the pipeline's bound. The pipeline would be refused or throttled when it starts.",
			Fix:   "raise the bound, or reduce what the pipeline uses",
			Wrong: exampleStages + `budget: memory: "64MiB"}`,
			Right: exampleStages + `budget: memory: "512MiB"}`,
			See:   "yoctune schema PipelineBudget",
			run:   checkPipelineBudget,
		},
		{
			ID: "budget-unused", Severity: diag.Warning,
			Title: "a bound has no effect on this pipeline",
			Cause: "Network bounds apply to what the sink sends or a stream receives, disk bounds to files of frames and results, gpuMemory to the process of the GPU, and keepFree.disk to the disk of the results.",
			Fix:   "remove it",
			Wrong: exampleStages + `budget: netOut: "1MB/s"}`,
			Right: exampleStages + `sink: {kind: "http", url: "http://192.0.2.7/"}, budget: netOut: "1MB/s"}`,
			See:   "yoctune schema PipelineBudget",
			run:   checkBudgetUnused,
		},
		{
			ID: "budget-config", Severity: diag.Warning,
			Title: "the kernel does not enforce a bound of the pipeline",
			Cause: "Memory bounds need MEMCG, disk bounds BLK_CGROUP and BLK_DEV_THROTTLING, which NVIDIA's kernels lack. Without them systemd logs once that it does not enforce the limit. A pipeline still limits its own reads and writes, but the programs that it starts do not.",
			Fix:   "switch the options on in kernel.config",
			Wrong: `{kernel: config: BLK_DEV_THROTTLING: "n", ` + exampleStages + `budget: diskRead: "40MB/s"}}`,
			Right: `{kernel: config: {BLK_CGROUP: "y", BLK_DEV_THROTTLING: "y"}, ` + exampleStages + `budget: diskRead: "40MB/s"}}`,
			See:   "Documentation/admin-guide/cgroup-v2.rst: io.max, memory.max",
			run:   checkBudgetConfig,
		},
	}
}

// pipelines returns each pipeline of the target as it was written and as it was resolved.
func (s *subject) pipelines() iter.Seq2[*config.Pipeline, plan.Pipeline] {
	return func(yield func(*config.Pipeline, plan.Pipeline) bool) {
		for _, c := range s.Config.Pipelines.Entries {
			if p, ok := s.Plan.Pipelines[c.Key()]; ok && !yield(c, p) {
				return
			}
		}
	}
}

// findMissedObjective returns an objective that a pipeline cannot meet, and the reason. Both are
// "" if it can meet them or the times are unknown. With a ladder, only a frame that never
// waits has to meet the objective.
func findMissedObjective(p plan.Pipeline) (objective, why string) {
	if p.SLO == nil {
		return "", ""
	}
	l := budget.ComputeLatency(p, false)
	most, age := time.Duration(p.SLO.LatencyP95), time.Duration(p.Queue.MaxAge)
	ends := l.Own - time.Duration(p.Sink.Time)
	switch {
	case most > 0 && l.Own > most:
		return "latencyP95", fmt.Sprintf("without queueing a frame takes %v (%s), more than the objective of %v", l.Own, formatOwnTimes(l), most)
	case most > 0 && age > 0 && ends > age:
		return "latencyP95", fmt.Sprintf("without queueing a frame takes %v to the sink, and frames older than %v are dropped", ends, age)
	case most > 0 && l.Worst > most && p.Degrade == nil:
		return "latencyP95", fmt.Sprintf("with full queues a frame takes %v (%s), more than the objective of %v", l.Worst, l.Breakdown(), most)
	case p.SLO.MinFPS > 0 && l.Pace > 0 && l.Pace > time.Second/time.Duration(p.SLO.MinFPS) && p.Degrade == nil:
		return "minFps", fmt.Sprintf("%s gives a result every %v (%.1f per second), fewer than the objective of %d", l.Slowest, l.Pace, float64(time.Second)/float64(l.Pace), p.SLO.MinFPS)
	case p.SLO.MinFPS > 0 && p.Source.Live && p.Source.FPSNum > 0 && p.Source.FPSNum < p.SLO.MinFPS*max(p.Source.FPSDen, 1):
		return "minFps", fmt.Sprintf("the source gives %.4g frames per second, fewer than the objective of %d", float64(p.Source.FPSNum)/float64(max(p.Source.FPSDen, 1)), p.SLO.MinFPS)
	}
	return "", ""
}

// formatOwnTimes shows the times of a frame that never waits.
func formatOwnTimes(l budget.Latency) string {
	var all []string
	for _, p := range l.Parts {
		if p.Own > 0 && p.Name != "maxAge" {
			all = append(all, p.Name+" "+p.Own.String())
		}
	}
	return strings.Join(all, " + ")
}

func checkLatencyObjective(s *subject) {
	for c, p := range s.pipelines() {
		if objective, why := findMissedObjective(p); why != "" {
			at := c.SLO.LatencyP95.Place
			if objective == "minFps" {
				at = c.SLO.MinFPS.Place
			}
			s.reportAt(at, at.Show(), "", "pipeline %s: %s", c.Key(), why)
		}
	}
}

func checkLatencyUnknown(s *subject) {
	for c, p := range s.pipelines() {
		if p.SLO == nil || p.SLO.LatencyP95 == 0 || p.Degrade != nil { // a ladder measures
			continue
		}
		l := budget.ComputeLatency(p, true)
		if _, why := findMissedObjective(p); why == "" && len(l.Missing) > 0 {
			s.reportAt(c.SLO.LatencyP95, c.SLO.LatencyP95.Show(), "", "pipeline %s: no time is declared for %s", c.Key(), strings.Join(l.Missing, ", "))
		}
	}
}

func checkPipelineBudget(s *subject) {
	for c, p := range s.pipelines() {
		if p.Budget == nil {
			continue
		}
		b, r := s.budgetOf(p), budget.ComputeRates(c.Key(), p)
		compare := func(bound config.Part, found, most int64, format string, args ...any) {
			if most > 0 && found > most {
				s.reportAt(bound, bound.Where().Show(), "", "pipeline %s: %s", c.Key(), fmt.Sprintf(format, args...))
			}
		}
		requests := ""
		if b.Requests > 0 {
			requests = fmt.Sprintf(", requests up to %d MiB, see maxRequests and maxRows", mib(b.Requests))
		}
		compare(c.Budget.Memory, b.Total(), p.Budget.Memory, "at least %d MiB (%d frames and tensors %d MiB, weights %d MiB%s) of %d MiB",
			mib(b.Total()), b.Frames, mib(b.Pool), mib(b.Weights), requests, p.Budget.Memory>>20)
		compare(c.Budget.GPUMemory, b.GPU, p.Budget.GPUMemory, "the process of the GPU has at least %d MiB of %d MiB", mib(b.GPU), p.Budget.GPUMemory>>20)
		compare(c.Budget.DiskRead, r.DiskRead, p.Budget.DiskRead, "%.4g frames a second of %s are %s a second, of %s", r.Frames, units.RoundDecimal(float64(r.DiskRead)/max(r.Frames, 1)), units.RoundDecimal(float64(r.DiskRead)), units.RoundDecimal(float64(p.Budget.DiskRead)))
		compare(c.Budget.DiskWrite, r.DiskWrite, p.Budget.DiskWrite, "results without anything seen are %s a second, of %s", units.RoundDecimal(float64(r.DiskWrite)), units.RoundDecimal(float64(p.Budget.DiskWrite)))
		compare(c.Budget.NetOut, r.NetOut, p.Budget.NetOut, "results without anything seen are %s a second, of %s", units.RoundDecimal(float64(r.NetOut)), units.RoundDecimal(float64(p.Budget.NetOut)))
	}
}

// mib rounds up.
func mib(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

func checkBudgetUnused(s *subject) {
	for c, p := range s.pipelines() {
		if p.Budget == nil {
			continue
		}
		gpu := slices.ContainsFunc(p.Stages, func(st plan.PipelineStage) bool { return pipeline.Isolated(&p, &st) })
		file := pipeline.WritesFile(&p.Sink)
		sink, _ := pipeline.SinkOf(p.Sink.Kind)
		source, _ := pipeline.SourceOf(p.Source.Kind)
		check := func(bound config.Part, used bool, why string) {
			if bound.Where().IsSet() && !used {
				s.reportAt(bound, bound.Where().Show(), "", "pipeline %s: %s", c.Key(), why)
			}
		}
		check(c.Budget.GPUMemory, gpu, "no stage uses the GPU in a separate process")
		check(c.Budget.DiskRead, source.Disk || sink.Program, "no frames come from a disk")
		check(c.Budget.DiskWrite, file || sink.Program, "no results go to a disk")
		check(c.Budget.NetIn, source.Network, "nothing comes from the network")
		check(c.Budget.NetOut, sink.Network || sink.Program, "no results go to the network")
		check(c.Budget.KeepFree.Disk, file, "no results go to a disk")
	}
}

func checkBudgetConfig(s *subject) {
	for c := range s.pipelines() {
		disk := []string{"BLK_CGROUP", "BLK_DEV_THROTTLING"}
		s.requireForBound(c, c.Budget.Memory, "MEMCG")
		s.requireForBound(c, c.Budget.DiskRead, disk...)
		s.requireForBound(c, c.Budget.DiskWrite, disk...)
	}
}

// requireForBound reports the options that a bound of a pipeline needs and the kernel
// lacks.
func (s *subject) requireForBound(c *config.Pipeline, bound config.Part, symbols ...string) {
	at := bound.Where()
	for _, symbol := range symbols {
		if !at.IsSet() || !s.lacksKernelOption(symbol) || !s.markExplained(symbol) {
			continue
		}
		s.enable(s.raise(bound, "pipeline %s: %s is off in the kernel", c.Key(), symbol).withValue(at.Show()), symbol, "kernel: config: ", 3)
	}
}
