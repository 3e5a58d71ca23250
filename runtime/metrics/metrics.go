// Package metrics gives samples and drift to Prometheus. Names and labels are a
// contract with dashboards: docs/monitoring.md lists them. What is unknown has no
// series; nothing is ever reported as 0 for want of knowing.
package metrics

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/yoctune/yoctune/internal/version"
	"github.com/yoctune/yoctune/runtime/monitor"
	"github.com/yoctune/yoctune/runtime/watch"
)

// Source is where a scrape gets its numbers.
type Source struct {
	Sample func() *monitor.Sample
	Watch  func() *watch.State // nil result: nobody watches
}

// Collector is a Prometheus collector of one device.
type Collector struct {
	source Source
	descs  map[string]*prometheus.Desc
}

// metric describes one name.
type metric struct {
	name, help string
	labels     []string
}

func metrics() []metric {
	return []metric{
		{"build_info", "Version of yoctuned; always 1.", []string{"version"}},
		{"power_mode_info", "The nvpmodel mode in force; always 1.", []string{"mode"}},
		{"cpu_online", "1 when the core is online.", []string{"cpu"}},
		{"cpu_load_ratio", "Share of the time since the sample before in which the core worked.", []string{"cpu"}},
		{"cpu_frequency_hertz", "Clock of the core.", []string{"cpu"}},
		{"gpu_load_ratio", "Load of the GPU as its driver says.", []string{"gpu"}},
		{"gpu_frequency_hertz", "Clock of the GPU.", []string{"gpu"}},
		{"memory_controller_load_ratio", "Share of the memory bandwidth in use.", nil},
		{"memory_controller_frequency_hertz", "Clock of the memory controller.", nil},
		{"rail_power_watts", "Power drawn through a rail.", []string{"rail"}},
		{"temperature_celsius", "Temperature of a thermal zone.", []string{"zone"}},
		{"temperature_limit_celsius", "Where the kernel slows the device (passive) or switches it off (critical).", []string{"zone", "kind"}},
		{"fan_speed_rpm", "Speed of a fan in revolutions per minute.", []string{"fan"}},
		{"fan_pwm_ratio", "Drive of a fan.", []string{"fan"}},
		{"cooling_state", "Step of a cooling device; 0 does nothing.", []string{"device"}},
		{"throttled", "1 when a cooling device other than a fan is active.", nil},
		{"over_current_events_total", "Over-current events since boot.", []string{"counter"}},
		{"memory_bytes", "Memory by kind: total, available, cached, slab, cma_total, cma_free, gpu, swap_total, swap_used, largest_free_block.", []string{"kind"}},
		{"pressure_ratio", "Share of the last ten seconds in which some task waited.", []string{"resource"}},
		{"sensor_stale_seconds", "How long a sensor has not answered; no series when it does.", []string{"sensor"}},
		{"enforcer_up", "1 while a process keeps the plan true.", nil},
		{"drift_events_total", "Changes by others since the enforcer started.", nil},
		{"drift_repairs_total", "Of those, put right.", nil},
		{"contested_nodes", "Nodes that somebody keeps changing and the enforcer has yielded.", nil},
	}
}

// Names lists the names of all metrics.
func Names() []string {
	var out []string
	for _, m := range metrics() {
		out = append(out, prefix+m.name)
	}
	return out
}

const prefix = "yoctuned_"

// New returns a collector.
func New(source Source) *Collector {
	c := &Collector{source: source, descs: map[string]*prometheus.Desc{}}
	for _, m := range metrics() {
		c.descs[m.name] = prometheus.NewDesc(prefix+m.name, m.help, m.labels, nil)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range metrics() {
		out <- c.descs[m.name]
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	seen := map[string]bool{}
	send := func(name string, kind prometheus.ValueType, v float64, labels ...string) {
		key := fmt.Sprint(name, labels)
		if seen[key] { // two zones of one name: the first counts
			return
		}
		seen[key] = true
		m, err := prometheus.NewConstMetric(c.descs[name], kind, v, labels...)
		if err != nil { // a label that is not UTF-8
			m = prometheus.NewInvalidMetric(c.descs[name], err)
		}
		out <- m
	}
	gauge := func(name string, v *int64, scale float64, labels ...string) {
		if v != nil {
			send(name, prometheus.GaugeValue, float64(*v)/scale, labels...)
		}
	}
	send("build_info", prometheus.GaugeValue, 1, version.Version)
	c.sample(gauge, send)
	c.drift(send)
}

func (c *Collector) sample(gauge func(string, *int64, float64, ...string), send func(string, prometheus.ValueType, float64, ...string)) {
	s := c.source.Sample()
	if s.PowerMode != nil {
		send("power_mode_info", prometheus.GaugeValue, 1, *s.PowerMode)
	}
	for _, p := range s.CPUs {
		n := strconv.Itoa(p.Number)
		online := int64(0)
		if p.Online {
			online = 1
		}
		gauge("cpu_online", &online, 1, n)
		gauge("cpu_load_ratio", p.Load, 1000, n)
		gauge("cpu_frequency_hertz", p.Freq, 1, n)
	}
	for _, g := range s.GPUs {
		gauge("gpu_load_ratio", g.Load, 1000, g.Name)
		gauge("gpu_frequency_hertz", g.Freq, 1, g.Name)
	}
	if s.EMC != nil {
		gauge("memory_controller_load_ratio", s.EMC.Load, 1000)
		gauge("memory_controller_frequency_hertz", s.EMC.Freq, 1)
	}
	for _, r := range s.Rails {
		gauge("rail_power_watts", r.Power, 1000, r.Label)
	}
	for _, z := range s.Zones {
		if z.Placeholder {
			continue
		}
		gauge("temperature_celsius", z.Temp, 1000, z.Name)
		gauge("temperature_limit_celsius", z.Passive, 1000, z.Name, "passive")
		gauge("temperature_limit_celsius", z.Critical, 1000, z.Name, "critical")
	}
	for _, f := range s.Fans {
		gauge("fan_speed_rpm", f.RPM, 1, f.Name)
		gauge("fan_pwm_ratio", f.PWM, 255, f.Name)
	}
	known := false
	for _, d := range s.Cooling {
		gauge("cooling_state", d.State, 1, d.Name)
		known = known || d.State != nil && !d.Fan()
	}
	if known {
		hot := int64(0)
		if len(s.Throttled()) > 0 {
			hot = 1
		}
		gauge("throttled", &hot, 1)
	}
	for _, a := range s.Alarms {
		if a.Events != nil {
			send("over_current_events_total", prometheus.CounterValue, float64(*a.Events), a.Name)
		}
	}
	m := s.Memory
	for kind, v := range map[string]*int64{
		"total": m.Total, "available": m.Available, "cached": m.Cached, "slab": m.Slab, "cma_total": m.CMATotal, "cma_free": m.CMAFree,
		"gpu": m.NVMap, "swap_total": m.SwapTotal, "swap_used": m.SwapUsed, "largest_free_block": m.Largest,
	} {
		gauge("memory_bytes", v, 1, kind)
	}
	for resource, v := range map[string]*float64{"cpu": s.Pressure.CPU, "memory": s.Pressure.Memory, "io": s.Pressure.IO} {
		if v != nil {
			send("pressure_ratio", prometheus.GaugeValue, *v/100, resource)
		}
	}
	for _, st := range s.Stale {
		send("sensor_stale_seconds", prometheus.GaugeValue, float64(st.For)/1000, st.Sensor)
	}
}

func (c *Collector) drift(send func(string, prometheus.ValueType, float64, ...string)) {
	w := c.source.Watch()
	if w == nil {
		send("enforcer_up", prometheus.GaugeValue, 0)
		return
	}
	up := 0.0
	if w.PID != 0 {
		up = 1
	}
	send("enforcer_up", prometheus.GaugeValue, up)
	send("drift_events_total", prometheus.CounterValue, float64(w.Drifts))
	send("drift_repairs_total", prometheus.CounterValue, float64(w.Repairs))
	send("contested_nodes", prometheus.GaugeValue, float64(len(w.Contested)))
}

// Handler serves the metrics of one source, and nothing of this program itself.
func Handler(source Source) (http.Handler, error) {
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(New(source)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4, ErrorHandling: promhttp.ContinueOnError}), nil
}
