// Package bench measures the core on the machine it runs on, each figure beside
// a reference measured in the same run, turn by turn: on a busy or throttled
// machine the ratio still means something when the times do not.
//
// References are libraries that others wrote, where the machine has them: libc,
// OpenBLAS, libswscale, ONNX Runtime. Where it has none a plain C loop takes their
// place, and its name says so.
//
// What a machine or backend does not tell is nil, never zero.
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

// Suites that Run knows.
const (
	Bandwidth = "bandwidth" // copies, fills and reads, by size and kind of memory
	Compute   = "compute"   // products of matrices, by type and size
	Kernels   = "kernels"   // every kernel of the core, on what pipelines give it
	Latency   = "latency"   // what a call, a list, a graph and an allocation cost
	Profiler  = "profiler"  // what it costs a pipeline to be recorded and looked at
	All       = "all"       // these five
)

// Suites lists them in the order in which All runs them.
func Suites() []string { return []string{Bandwidth, Compute, Kernels, Latency, Profiler} }

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
	Bytes     *int64     `json:"bytes"` // read and written at least once, per run
	Flops     *int64     `json:"flops"` // per run
	Samples   int        `json:"samples"`
	Rounds    int        `json:"rounds"` // the samples were taken in so many parts of the run
	Clock     string     `json:"clock"`  // what the times are of: "thread" or "process" (processor time), "wall" or "device"
	P50       int64      `json:"p50_ns"`
	P95       int64      `json:"p95_ns"`
	P99       int64      `json:"p99_ns"`
	Reference *Reference `json:"reference"` // nil: none on this backend
	Ratio     *float64   `json:"ratio"`     // reference p50 / p50: above 1 is faster than the reference
	Roofline  *Roofline  `json:"roofline"`  // nil: no ceiling for what it does
	State     State      `json:"state"`     // after the last run

	Times          []int64 `json:"times_ns,omitempty"` // every sample; in baselines only
	ReferenceTimes []int64 `json:"reference_times_ns,omitempty"`
}

// Reference is another way to the same result.
type Reference struct {
	Name    string `json:"name"`
	P50     int64  `json:"p50_ns"`
	Foreign bool   `json:"foreign"` // written by others; false: a plain loop of this package
}

// State is what a device's speed depends on beside its load.
type State struct {
	CPU         *int64  `json:"cpu_hz"`     // the fastest core, now
	CPUMax      *int64  `json:"cpu_max_hz"` // the limit in force
	GPU         *int64  `json:"gpu_hz"`
	GPUMax      *int64  `json:"gpu_max_hz"`
	Memory      *int64  `json:"memory_hz"`
	Temperature *int64  `json:"temperature_mc"` // the hottest zone
	PowerMode   *string `json:"power_mode"`
	Governor    *string `json:"cpu_governor"`
}

// Report is a whole run.
type Report struct {
	Suite        string        `json:"suite"`
	Device       core.Info     `json:"device"`
	Before       State         `json:"before"`
	After        State         `json:"after"`
	Ceilings     Ceilings      `json:"ceilings"`
	References   []string      `json:"references"` // libraries that were there to measure against
	Missing      []string      `json:"missing"`    // and those that were not
	Measurements []Measurement `json:"-"`
}

// Options of Run.
type Options struct {
	Suite       string
	Samples     int          // runs of each benchmark, beside those to warm up; 0: 30
	ONNXRuntime string       // library to measure against; "": where ort.Find finds it
	Library     string       // of d's backend, to open another device of it
	State       func() State // of the device; nil: nothing is known

	// Progress, when set, is told what is measured next; total counts all.
	Progress func(number, total int, name string)
	// Each, when set, gets a measurement as soon as it is there.
	Each func(Measurement) error
}

// benchmark is one thing to measure.
type benchmark struct {
	suite        string
	kernel, name string
	bytes, flops *int64
	numbers      string // of flops: which ceiling of Ceilings.Compute is theirs
	run          func(context.Context) (time.Duration, error)
	clock        string     // "": the rig's
	reference    *reference // nil: none
}

// reference is another way to the same result.
type reference struct {
	name    string
	foreign bool
	run     func() (time.Duration, error)
	do      func() error // one turn, without a clock; nil: it cannot be repeated
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
		r.others = findOthers(o.ONNXRuntime)
	}
	report := &Report{Suite: o.Suite, Device: info, Before: o.State(), References: r.others.names(), Missing: r.others.missing}
	runtime.LockOSThread() // the CPU's clock is the thread's
	defer runtime.UnlockOSThread()
	err = r.measureAll(ctx, suites, o, report)
	report.After = o.State()
	return report, errors.Join(err, r.release())
}

func (r *rig) measureAll(ctx context.Context, suites []string, o Options, report *Report) error {
	lists := map[string]func(*rig) ([]benchmark, error){Bandwidth: bandwidth, Compute: compute, Kernels: kernels, Latency: latency, Profiler: profiler}
	var all []benchmark
	for _, suite := range suites {
		list, err := lists[suite](r)
		if err != nil {
			return fmt.Errorf("prepare %s: %w", suite, err)
		}
		for i := range list {
			list[i].suite = suite
		}
		all = append(all, list...)
	}
	if slices.ContainsFunc(all, func(b benchmark) bool { return b.bytes != nil }) {
		var err error
		if report.Ceilings, err = r.ceilings(ctx); err != nil {
			return fmt.Errorf("measure the ceilings: %w", err)
		}
	}
	rounds := roundsOf(o.Samples)
	own, other, states := make([][]int64, len(all)), make([][]int64, len(all)), make([]State, len(all))
	for round := range rounds {
		for i, b := range all {
			if o.Progress != nil {
				o.Progress(round*len(all)+i+1, rounds*len(all), b.name)
			}
			n := o.Samples*(round+1)/rounds - len(own[i])
			if err := sample(ctx, b, n, &own[i], &other[i]); err != nil {
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
		m := r.measurement(b, own[i], other[i], report)
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

// roundsOf is how often a run goes through all benchmarks. What a machine does beside
// changes within minutes; samples of one moment would all share it, and two runs would
// seem to differ.
func roundsOf(samples int) int { return max(1, min(6, samples/5)) }

const warmUp = 2

// sample measures a benchmark n times, its reference in turn.
func sample(ctx context.Context, b benchmark, n int, own, other *[]int64) error {
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
			return fmt.Errorf("its reference, %s: %w", b.reference.name, err)
		}
		if i >= warmUp {
			*other = append(*other, took.Nanoseconds())
		}
	}
	return nil
}

func (r *rig) measurement(b benchmark, own, other []int64, report *Report) Measurement {
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
	m.Roofline = report.Ceilings.of(b, m.P50)
	return m
}

// percentile is the nearest rank: the smallest value that p percent of the
// values do not exceed.
func percentile[T int64 | float64 | time.Duration](values []T, p int) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := (p*len(sorted) + 99) / 100
	return sorted[max(rank, 1)-1]
}
