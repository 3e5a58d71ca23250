package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/yoctune/yoctune/runtime/device/histogram"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
)

func pipelineMetrics() []metric {
	return []metric{
		{"pipeline_up_seconds", "Time since the pipeline started.", []string{"pipeline"}},
		{"pipeline_frames_total", "Frames of a pipeline by fate: done, dropped, failed, skipped.", []string{"pipeline", "fate"}},
		{"pipeline_dropped_frames_total", "Dropped frames by reason.", []string{"pipeline", "reason"}},
		{"pipeline_failed_frames_total", "Failed frames by stage.", []string{"pipeline", "stage"}},
		{"pipeline_copies_total", "Copies of frames and tensors in memory.", []string{"pipeline", "where"}},
		{"pipeline_in_flight_frames", "Frames in flight.", []string{"pipeline"}},
		{"pipeline_latency_seconds", "Time from capture to the written result, for frames that were done.", []string{"pipeline"}},
		{"pipeline_latency_target_seconds", "Latency objective of the plan for the 95th percentile.", []string{"pipeline"}},
		{"pipeline_objective_wanted", "Objective of the plan: latency_p50, latency_p95, latency_p99 (seconds), min_fps, memory (bytes), energy (joules for a frame).", []string{"pipeline", "objective"}},
		{"pipeline_objective_found", "What was measured for an objective since the pipeline started; absent while it is unknown.", []string{"pipeline", "objective"}},
		{"pipeline_objective_met", "1 while an objective is met; absent while it is unknown.", []string{"pipeline", "objective"}},
		{"pipeline_requests_total", "Requests by outcome: done, refused, expired, canceled, dropped, failed.", []string{"pipeline", "outcome"}},
		{"pipeline_requests_active", "Requests that wait or are in work.", []string{"pipeline"}},
		{"pipeline_requests_waiting", "Requests that wait for the first stage.", []string{"pipeline"}},
		{"pipeline_requests_limit", "Requests at once; others are refused.", []string{"pipeline"}},
		{"pipeline_delivery_state", "1 for the current state of results that go to a stream: stored, waiting, full, refused.", []string{"pipeline", "state"}},
		{"pipeline_delivery_accepted", "Number of the last result that the sink took; numbers count on when the pipeline starts again.", []string{"pipeline"}},
		{"pipeline_delivery_stored", "Number of the last result that the stream on the device has.", []string{"pipeline"}},
		{"pipeline_delivery_dropped_total", "Results that the stream did not take.", []string{"pipeline"}},
		{"pipeline_delivery_batches_total", "Batches that were stored.", []string{"pipeline"}},
		{"pipeline_delivery_bytes_total", "Size of results in stored batches (results), and of the batches (sent).", []string{"pipeline", "kind"}},
		{"pipeline_stage_seconds", "Time of a frame in a stage: in its queue (queue), or in work (service).", []string{"pipeline", "stage", "kind"}},
		{"pipeline_stage_instances", "Workers of a stage.", []string{"pipeline", "stage"}},
		{"pipeline_queue_depth_frames", "Frames in the queue of a stage.", []string{"pipeline", "stage"}},
		{"pipeline_queue_capacity_frames", "Capacity of the queue of a stage.", []string{"pipeline", "stage"}},
		{"pipeline_degrade_level", "Level of the degradation ladder; 0 is full quality.", []string{"pipeline"}},
		{"pipeline_throttled", "1 while the device is throttled for temperature or power.", []string{"pipeline"}},
		{"pipeline_cpu_seconds_total", "CPU time of the pipeline's process.", []string{"pipeline"}},
		{"pipeline_page_faults_total", "Page faults of the process: minor, or major (with disk access).", []string{"pipeline", "kind"}},
		{"pipeline_context_switches_total", "Context switches of the process: voluntary or involuntary.", []string{"pipeline", "kind"}},
		{"pipeline_cpu_migrations_total", "Migrations of threads of the process to another core.", []string{"pipeline"}},
		{"pipeline_cpu_events_total", "Hardware events in user space: cycles, instructions, cache_misses, branch_misses.", []string{"pipeline", "event"}},
		{"pipeline_fallback_frames_total", "Frames processed on the CPU in place of the GPU, by stage.", []string{"pipeline", "stage"}},
		{"pipeline_crops_total", "Crops that a roi stage made of boxes.", []string{"pipeline", "stage"}},
		{"pipeline_uncropped_boxes_total", "Boxes that a roi stage did not crop, by reason: beyond, other, outside, empty, invalid.", []string{"pipeline", "stage", "reason"}},
		{"pipeline_worker_state", "1 for the current state of the GPU worker process: ready, starting, trial, resting, stuck, failed.", []string{"pipeline", "state"}},
		{"pipeline_worker_starts_total", "GPU worker processes that became ready.", []string{"pipeline"}},
		{"pipeline_worker_losses_total", "GPU worker processes that were lost, by cause: hang, sticky, lost, exit, signal, garbage, start.", []string{"pipeline", "cause"}},
		{"pipeline_custom_total", "Counters defined by stages.", []string{"pipeline", "stage", "metric"}},
		{"pipeline_custom_value", "Gauges defined by stages.", []string{"pipeline", "stage", "metric"}},
	}
}

// sender sends metrics, each series once.
type sender struct {
	c    *Collector
	out  chan<- prometheus.Metric
	seen map[string]bool
}

// isNew reports whether a series is new. Of two zones with one name the first is used.
func (s *sender) isNew(name string, labels []string) bool {
	key := fmt.Sprint(name, labels)
	was := s.seen[key]
	s.seen[key] = true
	return !was
}

func (s *sender) emit(name string, m prometheus.Metric, err error) {
	if err != nil { // a label is not valid UTF-8
		m = prometheus.NewInvalidMetric(s.c.descs[name], err)
	}
	s.out <- m
}

func (s *sender) send(name string, kind prometheus.ValueType, v float64, labels ...string) {
	if s.isNew(name, labels) {
		m, err := prometheus.NewConstMetric(s.c.descs[name], kind, v, labels...)
		s.emit(name, m, err)
	}
}

// gauge sends a value unless it is unknown.
func (s *sender) gauge(name string, v *int64, scale float64, labels ...string) {
	if v != nil {
		s.send(name, prometheus.GaugeValue, float64(*v)/scale, labels...)
	}
}

// flag sends 1 for true and 0 for false.
func (s *sender) flag(name string, on bool, labels ...string) {
	value := 0.0
	if on {
		value = 1
	}
	s.send(name, prometheus.GaugeValue, value, labels...)
}

// counter sends a count unless it is unknown.
func (s *sender) counter(name string, v *int64, scale float64, labels ...string) {
	if v != nil {
		s.send(name, prometheus.CounterValue, float64(*v)/scale, labels...)
	}
}

// Buckets for each power of two in histograms. Alerts compare the total latency with an
// objective, while stages have many series.
const (
	wholeSteps = 4
	stageSteps = 1
)

func (s *sender) histogram(name string, steps uint64, l histogram.Histogram, labels ...string) {
	if !s.isNew(name, labels) {
		return
	}
	bounds, buckets := histogram.Bounds(steps), map[float64]uint64{}
	for i, n := range l.Cumulative(bounds) {
		buckets[float64(bounds[i])/1e9] = n
	}
	m, err := prometheus.NewConstHistogram(s.c.descs[name], l.Count, float64(l.Sum)/1e9, buckets, labels...)
	s.emit(name, m, err)
}

// objectiveScale converts objectives to the base units of Prometheus.
var objectiveScale = map[string]float64{"latency_p50": 1e9, "latency_p95": 1e9, "latency_p99": 1e9, "min_fps": 1, "memory": 1, "energy": 1e6}

func (s *sender) sendPipeline(p *live.Snapshot) {
	name := p.Pipeline
	count := func(metric string, n uint64, labels ...string) {
		s.send(metric, prometheus.CounterValue, float64(n), append([]string{name}, labels...)...)
	}
	s.gauge("pipeline_up_seconds", &p.Up, 1e9, name)
	count("pipeline_frames_total", p.Frames.Done, "done")
	count("pipeline_frames_total", p.Frames.Dropped, "dropped")
	count("pipeline_frames_total", p.Frames.Failed, "failed")
	count("pipeline_frames_total", p.Frames.Skipped, "skipped")
	for metric, counts := range map[string]map[string]uint64{
		"pipeline_dropped_frames_total": p.Drops, "pipeline_failed_frames_total": p.Failures, "pipeline_copies_total": p.Copies,
	} {
		for what, n := range counts {
			count(metric, n, what)
		}
	}
	s.send("pipeline_in_flight_frames", prometheus.GaugeValue, float64(p.InFlight), name)
	s.send("pipeline_degrade_level", prometheus.GaugeValue, float64(p.Level), name)
	s.gauge("pipeline_latency_target_seconds", p.Target, 1e9, name)
	s.histogram("pipeline_latency_seconds", wholeSteps, p.Latency, name)
	for _, o := range p.Objectives {
		scale := objectiveScale[o.Name]
		if scale == 0 {
			continue // of a newer pipeline
		}
		s.send("pipeline_objective_wanted", prometheus.GaugeValue, o.Wanted/scale, name, o.Name)
		if o.Found != nil {
			s.send("pipeline_objective_found", prometheus.GaugeValue, *o.Found/scale, name, o.Name)
			s.flag("pipeline_objective_met", o.Met, name, o.Name)
		}
	}
	if r := p.Requests; r != nil {
		for outcome, n := range r.Outcomes {
			count("pipeline_requests_total", n, outcome)
		}
		s.send("pipeline_requests_active", prometheus.GaugeValue, float64(r.Active), name)
		s.send("pipeline_requests_waiting", prometheus.GaugeValue, float64(r.Waiting), name)
		s.send("pipeline_requests_limit", prometheus.GaugeValue, float64(r.Limit), name)
	}
	if d := p.Delivery; d != nil {
		for _, state := range []string{live.Stored, live.Waiting, live.Full, live.Refused} {
			s.flag("pipeline_delivery_state", d.State == state, name, state)
		}
		s.send("pipeline_delivery_accepted", prometheus.GaugeValue, float64(d.Accepted), name)
		s.send("pipeline_delivery_stored", prometheus.GaugeValue, float64(d.Stored), name)
		count("pipeline_delivery_dropped_total", d.Dropped)
		count("pipeline_delivery_batches_total", d.Batches)
		count("pipeline_delivery_bytes_total", d.Bytes, "results")
		count("pipeline_delivery_bytes_total", d.Sent, "sent")
	}
	for _, st := range p.Stages {
		s.histogram("pipeline_stage_seconds", stageSteps, st.Service, name, st.ID, "service")
		s.send("pipeline_stage_instances", prometheus.GaugeValue, float64(st.Instances), name, st.ID)
		if st.Queue != nil {
			s.histogram("pipeline_stage_seconds", stageSteps, st.Wait, name, st.ID, "queue")
			s.send("pipeline_queue_depth_frames", prometheus.GaugeValue, float64(st.Queue.Depth), name, st.ID)
			s.send("pipeline_queue_capacity_frames", prometheus.GaugeValue, float64(st.Queue.Capacity), name, st.ID)
		}
	}
	if p.Throttled != nil {
		s.flag("pipeline_throttled", len(p.Throttled) > 0, name)
	}
	k := p.Counts
	s.counter("pipeline_cpu_seconds_total", k.CPU, 1e9, name)
	s.counter("pipeline_page_faults_total", k.MinorFaults, 1, name, "minor")
	s.counter("pipeline_page_faults_total", k.MajorFaults, 1, name, "major")
	s.counter("pipeline_context_switches_total", k.Switches, 1, name, "voluntary")
	s.counter("pipeline_context_switches_total", k.Preemptions, 1, name, "involuntary")
	s.counter("pipeline_cpu_migrations_total", k.Migrations, 1, name)
	for event, v := range map[string]*int64{"cycles": k.Cycles, "instructions": k.Instructions, "cache_misses": k.CacheMisses, "branch_misses": k.BranchMisses} {
		s.counter("pipeline_cpu_events_total", v, 1, name, event)
	}
	for stage, n := range p.Fallbacks {
		count("pipeline_fallback_frames_total", n, stage)
	}
	for stage, c := range p.Crops {
		count("pipeline_crops_total", c.Crops, stage)
		for reason, n := range c.Lost() {
			count("pipeline_uncropped_boxes_total", n, stage, reason)
		}
	}
	if w := p.Worker; w != nil {
		s.send("pipeline_worker_state", prometheus.GaugeValue, 1, name, string(w.State))
		count("pipeline_worker_starts_total", w.Starts)
		for cause, n := range w.Losses {
			count("pipeline_worker_losses_total", n, string(cause))
		}
	}
	for _, n := range p.Numbers {
		switch {
		case n.Value == nil:
		case n.Kind == live.KindCounter:
			s.send("pipeline_custom_total", prometheus.CounterValue, *n.Value, name, n.Stage, n.Name)
		default:
			s.send("pipeline_custom_value", prometheus.GaugeValue, *n.Value, name, n.Stage, n.Name)
		}
	}
}
