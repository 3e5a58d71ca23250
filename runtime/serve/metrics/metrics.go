// Package metrics exports samples, drift and running pipelines to Prometheus. Names and labels
// are a contract with dashboards, listed in docs/monitoring.md. Unknown values have no series
// and are never 0.
package metrics

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/yoctune/yoctune/internal/version"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
)

// Source provides the values of a scrape.
type Source struct {
	Sample func() *monitor.Sample
	Watch  func() (*watch.State, error) // nil state: no enforcer has run
	// Pipelines returns running pipelines; nil: not exported.
	Pipelines func() []*live.Snapshot
}

// Collector is a Prometheus collector of one device.
type Collector struct {
	source Source
	descs  map[string]*prometheus.Desc
}

// metric describes a metric.
type metric struct {
	name, help string
	labels     []string
}

func describeAll() []metric {
	return append([]metric{
		{"build_info", "Version of yoctuned; always 1.", []string{"version"}},
		{"power_mode_info", "The nvpmodel mode in force; always 1.", []string{"mode"}},
		{"cpu_online", "1 when the core is online.", []string{"cpu"}},
		{"cpu_load_ratio", "Fraction of the time since the previous sample in which the core was busy.", []string{"cpu"}},
		{"cpu_frequency_hertz", "Clock of the core.", []string{"cpu"}},
		{"gpu_load_ratio", "Load of the GPU as reported by its driver.", []string{"gpu"}},
		{"gpu_frequency_hertz", "Clock of the GPU.", []string{"gpu"}},
		{"memory_controller_load_ratio", "Fraction of the memory bandwidth in use.", nil},
		{"memory_controller_frequency_hertz", "Clock of the memory controller.", nil},
		{"rail_power_watts", "Power drawn through a rail.", []string{"rail"}},
		{"temperature_celsius", "Temperature of a thermal zone.", []string{"zone"}},
		{"temperature_limit_celsius", "Temperature at which the kernel throttles (passive) or switches off (critical).", []string{"zone", "kind"}},
		{"fan_speed_rpm", "Speed of a fan in revolutions per minute.", []string{"fan"}},
		{"fan_pwm_ratio", "PWM duty cycle of a fan.", []string{"fan"}},
		{"cooling_state", "State of a cooling device; 0 is inactive.", []string{"device"}},
		{"throttled", "1 when a cooling device other than a fan is active.", nil},
		{"over_current_events_total", "Over-current events since boot.", []string{"counter"}},
		{"memory_bytes", "Memory by kind: total, available, cached, slab, cma_total, cma_free, gpu, swap_total, swap_used, largest_free_block.", []string{"kind"}},
		{"pressure_ratio", "Fraction of the last ten seconds in which some task was stalled.", []string{"resource"}},
		{"sensor_stale_seconds", "Time since a sensor stopped responding; no series while it responds.", []string{"sensor"}},
		{"enforcer_up", "1 while an enforcer is running; no series when its state cannot be read.", nil},
		{"enforcer_ended_seconds", "Age of the last state of an enforcer that has ended; no series while one runs.", nil},
		{"drift_events_total", "Changes by other programs since the enforcer started.", nil},
		{"drift_repairs_total", "Repaired changes since the enforcer started.", nil},
		{"contested_nodes", "Nodes that are not repaired because another program keeps changing them.", nil},
	}, pipelineMetrics()...)
}

const prefix = "yoctuned_"

// NewCollector returns a collector of a source.
func NewCollector(source Source) *Collector {
	c := &Collector{source: source, descs: map[string]*prometheus.Desc{}}
	for _, m := range describeAll() {
		c.descs[m.name] = prometheus.NewDesc(prefix+m.name, m.help, m.labels, nil)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range describeAll() {
		out <- c.descs[m.name]
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	to := &sender{c: c, out: out, seen: map[string]bool{}}
	to.send("build_info", prometheus.GaugeValue, 1, version.Version)
	to.sendSample(c.source.Sample())
	if w, err := c.source.Watch(); err == nil {
		to.sendEnforcer(w, time.Now())
	}
	if c.source.Pipelines != nil {
		for _, p := range c.source.Pipelines() {
			to.sendPipeline(p)
		}
	}
}

func (to *sender) sendSample(s *monitor.Sample) {
	if s.PowerMode != nil {
		to.send("power_mode_info", prometheus.GaugeValue, 1, *s.PowerMode)
	}
	for _, p := range s.CPUs {
		n := strconv.Itoa(p.Number)
		to.flag("cpu_online", p.Online, n)
		to.gauge("cpu_load_ratio", p.Load, 1000, n)
		to.gauge("cpu_frequency_hertz", p.Freq, 1, n)
	}
	for _, g := range s.GPUs {
		to.gauge("gpu_load_ratio", g.Load, 1000, g.Name)
		to.gauge("gpu_frequency_hertz", g.Freq, 1, g.Name)
	}
	if s.EMC != nil {
		to.gauge("memory_controller_load_ratio", s.EMC.Load, 1000)
		to.gauge("memory_controller_frequency_hertz", s.EMC.Freq, 1)
	}
	to.sendThermal(s)
	to.sendMemory(s)
	for _, st := range s.Stale {
		to.send("sensor_stale_seconds", prometheus.GaugeValue, float64(st.For)/1000, st.Sensor)
	}
}

// sendThermal sends power, temperatures and cooling.
func (to *sender) sendThermal(s *monitor.Sample) {
	for _, r := range s.Rails {
		to.gauge("rail_power_watts", r.Power, 1000, r.Label)
	}
	for _, z := range s.Zones {
		if z.Placeholder {
			continue
		}
		to.gauge("temperature_celsius", z.Temp, 1000, z.Name)
		to.gauge("temperature_limit_celsius", z.Passive, 1000, z.Name, "passive")
		to.gauge("temperature_limit_celsius", z.Critical, 1000, z.Name, "critical")
	}
	for _, f := range s.Fans {
		to.gauge("fan_speed_rpm", f.RPM, 1, f.Name)
		to.gauge("fan_pwm_ratio", f.PWM, 255, f.Name)
	}
	for _, d := range s.Cooling {
		to.gauge("cooling_state", d.State, 1, d.Name)
	}
	if s.ReportsThrottling() {
		to.flag("throttled", len(s.Throttled()) > 0)
	}
	for _, a := range s.Alarms {
		to.counter("over_current_events_total", a.Events, 1, a.Name)
	}
}

func (to *sender) sendMemory(s *monitor.Sample) {
	m := s.Memory
	for kind, v := range map[string]*int64{
		"total": m.Total, "available": m.Available, "cached": m.Cached, "slab": m.Slab, "cma_total": m.CMATotal, "cma_free": m.CMAFree,
		"gpu": m.NVMap, "swap_total": m.SwapTotal, "swap_used": m.SwapUsed, "largest_free_block": m.Largest,
	} {
		to.gauge("memory_bytes", v, 1, kind)
	}
	for resource, v := range map[string]*float64{"cpu": s.Pressure.CPU, "memory": s.Pressure.Memory, "io": s.Pressure.IO} {
		if v != nil {
			to.send("pressure_ratio", prometheus.GaugeValue, *v/100, resource)
		}
	}
}

// sendEnforcer sends the state of the enforcer. After its end the counts of a state that it
// left behind are no longer true.
func (to *sender) sendEnforcer(w *watch.State, now time.Time) {
	running := w != nil && w.PID != 0
	to.flag("enforcer_up", running)
	switch {
	case running:
		to.send("drift_events_total", prometheus.CounterValue, float64(w.Drifts))
		to.send("drift_repairs_total", prometheus.CounterValue, float64(w.Repairs))
		to.send("contested_nodes", prometheus.GaugeValue, float64(len(w.Contested)))
	case w != nil && !w.Written.IsZero():
		to.send("enforcer_ended_seconds", prometheus.GaugeValue, now.Sub(w.Written).Seconds())
	}
}

// Handler serves the metrics of a source, without metrics of this process.
func Handler(source Source) (http.Handler, error) {
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(NewCollector(source)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4, ErrorHandling: promhttp.ContinueOnError}), nil
}
