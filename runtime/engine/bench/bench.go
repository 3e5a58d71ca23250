// Package bench measures the compute core on the machine it runs on. Each benchmark
// alternates with a reference in the same run, so that the ratio stays meaningful on a
// busy or throttled machine.
//
// References are installed libraries: libc, OpenBLAS, libswscale, ONNX Runtime. Where one
// is missing, a plain C loop replaces it; its name contains "plain C".
//
// Unknown values are nil, never zero.
package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// Suites of Run.
const (
	bandwidth = "bandwidth" // copies, fills and reads, by size and kind of memory
	compute   = "compute"   // matrix products, by type and size
	kernels   = "kernels"   // every kernel of the core, on the shapes of pipelines
	latency   = "latency"   // overhead of calls, lists, graphs and allocations
	profiler  = "profiler"  // overhead of recording and monitoring a pipeline
	All       = "all"       // all of these
)

// Suites lists the suites in the order in which All runs them.
func Suites() []string { return []string{bandwidth, compute, kernels, latency, profiler} }

// prepareSuite sets up the benchmarks of each suite.
var prepareSuite = map[string]func(*rig) []benchmark{ // read-only
	bandwidth: bandwidthSuite, compute: computeSuite, kernels: kernelSuite, latency: latencySuite, profiler: profilerSuite,
}

// errSuite is an unknown suite.
var errSuite = errors.New("unknown benchmark suite")

// Measurement is one benchmark's result.
type Measurement struct {
	Type      string     `json:"type"` // "measurement"
	Suite     string     `json:"suite"`
	Name      string     `json:"name"`
	Kernel    *string    `json:"kernel"` // "K1" to "K15", as docs/bench.md numbers them
	Backend   string     `json:"backend"`
	Device    string     `json:"device"`
	Bytes     *int64     `json:"bytes"` // bytes that a run must read and write at least
	Flops     *int64     `json:"flops"` // per run
	Samples   int        `json:"samples"`
	Rounds    int        `json:"rounds"` // parts of the run over which the samples are spread
	Clock     string     `json:"clock"`  // "thread" or "process" (processor time), "wall" or "device"
	P50       int64      `json:"p50_ns"`
	P95       int64      `json:"p95_ns"`
	P99       int64      `json:"p99_ns"`
	Reference *Reference `json:"reference"` // nil: none on this backend
	Ratio     *float64   `json:"ratio"`     // reference p50 / p50; above 1: faster than the reference
	Roofline  *Roofline  `json:"roofline"`  // nil: no known ceiling
	State     State      `json:"state"`     // after the last run

	Times          []int64 `json:"times_ns,omitempty"` // every sample; in baselines only
	ReferenceTimes []int64 `json:"reference_times_ns,omitempty"`
}

// Reference is another implementation of the same computation.
type Reference struct {
	Name    string `json:"name"`
	P50     int64  `json:"p50_ns"`
	Foreign bool   `json:"foreign"` // another library; false: a plain loop of this package
}

// State holds the clocks, temperature and modes that determine a device's speed.
type State struct {
	CPU         *int64  `json:"cpu_hz"`     // current clock of the fastest core
	CPUMax      *int64  `json:"cpu_max_hz"` // limit in force
	GPU         *int64  `json:"gpu_hz"`
	GPUMax      *int64  `json:"gpu_max_hz"`
	Memory      *int64  `json:"memory_hz"`
	Temperature *int64  `json:"temperature_mc"` // the hottest zone
	PowerMode   *string `json:"power_mode"`
	Governor    *string `json:"cpu_governor"`
}

// Report is the result of a run.
type Report struct {
	Suite        string        `json:"suite"`
	Device       core.Info     `json:"device"`
	Before       State         `json:"before"`
	After        State         `json:"after"`
	Ceilings     Ceilings      `json:"ceilings"`
	References   []string      `json:"references"` // libraries that were compared with
	Missing      []string      `json:"missing"`    // libraries that are not installed
	Measurements []Measurement `json:"-"`
}

// Options of Run.
type Options struct {
	Suite       string
	Samples     int          // runs of each benchmark after warming up; 0: 30
	ONNXRuntime string       // path of the library; "": see ort.Find
	Library     string       // path of d's backend, for opening another device
	State       func() State // reads the device's state; nil: unknown

	// Progress, if set, is called before each measurement; number counts from 1.
	Progress func(number, total int, name string)
	// Each, if set, receives every measurement when the run has ended.
	Each func(Measurement) error
}

// benchmark is one operation to measure.
type benchmark struct {
	suite        string
	kernel, name string
	bytes, flops *int64
	numbers      string // type of the flops: selects the ceiling in Ceilings.Compute
	run          func(context.Context) (time.Duration, error)
	clock        string     // "": the rig's clock
	reference    *reference // nil: none
}

// reference is another implementation to measure in turn with a benchmark.
type reference struct {
	name    string
	foreign bool
	run     func() (time.Duration, error)
	do      func() error // one execution without timing; nil: it cannot be repeated
}

// Run measures a suite on d.
func Run(ctx context.Context, d *core.Device, o Options) (*Report, error) {
	suites := Suites()
	if o.Suite != All {
		if !slices.Contains(suites, o.Suite) {
			return nil, fmt.Errorf("%w %q: use %s or %s", errSuite, o.Suite, strings.Join(suites, ", "), All)
		}
		suites = []string{o.Suite}
	}
	if o.Samples < 0 {
		return nil, fmt.Errorf("%d samples: must not be negative: %w", o.Samples, core.ErrInvalid)
	}
	if o.Samples == 0 {
		o.Samples = 30
	}
	if o.State == nil {
		o.State = func() State { return State{} }
	}
	info, err := d.Info()
	if err != nil {
		return nil, err
	}
	r, err := newRig(d)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", o.Suite, err)
	}
	r.library = o.Library
	if r.onCPU() {
		r.libraries = findLibraries(o.ONNXRuntime)
	}
	report := &Report{Suite: o.Suite, Device: info, Before: o.State(), References: r.libraries.names(), Missing: r.libraries.missing}
	runtime.LockOSThread() // the CPU backend is timed by the thread's clock
	defer runtime.UnlockOSThread()
	err = r.measureAll(ctx, suites, o, report)
	report.After = o.State()
	return report, errors.Join(err, r.release())
}

func (r *rig) measureAll(ctx context.Context, suites []string, o Options, report *Report) error {
	var all []benchmark
	for _, suite := range suites {
		var list []benchmark
		if err := r.prepare(func() { list = prepareSuite[suite](r) }); err != nil {
			return fmt.Errorf("prepare %s: %w", suite, err)
		}
		for i := range list {
			list[i].suite = suite
		}
		all = append(all, list...)
	}
	if slices.ContainsFunc(all, func(b benchmark) bool { return b.bytes != nil }) {
		if err := r.prepare(func() { report.Ceilings = r.measureCeilings(ctx) }); err != nil {
			return fmt.Errorf("measure the ceilings: %w", err)
		}
	}
	rounds := roundsFor(o.Samples)
	own, other, states := make([][]int64, len(all)), make([][]int64, len(all)), make([]State, len(all))
	for round := range rounds {
		for i, b := range all {
			if o.Progress != nil {
				o.Progress(round*len(all)+i+1, rounds*len(all), b.name)
			}
			n := o.Samples*(round+1)/rounds - len(own[i])
			if err := takeSamples(ctx, b, n, &own[i], &other[i]); err != nil {
				return fmt.Errorf("measure %s: %w", b.name, err)
			}
			if round == rounds-1 {
				states[i] = o.State()
			}
		}
	}
	for i, b := range all {
		report.Ceilings.raise(b, percentile(own[i], 50))
	}
	for i, b := range all {
		m := r.summarise(b, own[i], other[i], report)
		m.Rounds, m.State = rounds, states[i]
		report.Measurements = append(report.Measurements, m)
		if o.Each != nil {
			m.Times, m.ReferenceTimes = nil, nil
			if err := o.Each(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// roundsFor returns how many times a run cycles through all benchmarks. Other load on the
// machine changes within minutes. Spreading the samples over the run keeps a burst of load
// from affecting all samples of one benchmark.
func roundsFor(samples int) int { return max(1, min(6, samples/5)) }

const warmUp = 2

// takeSamples measures a benchmark n times, alternating with its reference.
func takeSamples(ctx context.Context, b benchmark, n int, own, other *[]int64) error {
	for i := range warmUp + n {
		if err := ctx.Err(); err != nil {
			return err
		}
		took, err := b.run(ctx)
		if err != nil {
			return err
		}
		if i >= warmUp {
			*own = append(*own, took.Nanoseconds())
		}
		if b.reference == nil {
			continue
		}
		if took, err = b.reference.run(); err != nil {
			return fmt.Errorf("reference %s: %w", b.reference.name, err)
		}
		if i >= warmUp {
			*other = append(*other, took.Nanoseconds())
		}
	}
	return nil
}

// summarise turns the samples of a benchmark, in ns, into a measurement.
func (r *rig) summarise(b benchmark, own, other []int64, report *Report) Measurement {
	m := Measurement{
		Type: "measurement", Suite: b.suite, Name: b.name, Bytes: b.bytes, Flops: b.flops, Samples: len(own), Clock: b.clock,
		Backend: report.Device.Backend, Device: report.Device.Name,
		P50: percentile(own, 50), P95: percentile(own, 95), P99: percentile(own, 99), Times: own, ReferenceTimes: other,
	}
	if m.Clock == "" {
		m.Clock = deviceClock
		if r.onCPU() {
			m.Clock = threadClock
		}
	}
	if b.kernel != "" {
		m.Kernel = &b.kernel
	}
	if b.reference != nil {
		m.Reference = &Reference{Name: b.reference.name, P50: percentile(other, 50), Foreign: b.reference.foreign}
		if m.P50 > 0 {
			ratio := float64(m.Reference.P50) / float64(m.P50)
			m.Ratio = &ratio
		}
	}
	m.Roofline = report.Ceilings.rooflineOf(b, m.P50)
	return m
}

// percentile returns the nearest-rank percentile: the smallest value that at least p
// percent of the values do not exceed.
func percentile[T int64 | float64 | time.Duration](values []T, p int) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := (p*len(sorted) + 99) / 100
	return sorted[max(rank, 1)-1]
}
