// Package bench measures the core on the machine it runs on, each figure beside
// a reference measured in the same run, turn by turn: on a busy or throttled
// machine the ratio still means something when the times do not.
//
// What a machine or backend does not tell is nil, never zero.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yoctune/yoctune/runtime/core"
)

// Suites that Run knows.
const (
	Bandwidth = "bandwidth" // copies and fills, and what a submission costs
	Kernels   = "kernels"   // preprocess and reductions
)

// ErrSuite is an unknown suite.
var ErrSuite = errors.New("unknown benchmark suite")

// Measurement is one benchmark's result.
type Measurement struct {
	Type      string     `json:"type"` // "measurement"
	Name      string     `json:"name"`
	Backend   string     `json:"backend"`
	Device    string     `json:"device"`
	Bytes     *int64     `json:"bytes"` // read and written at least once, per run
	Flops     *int64     `json:"flops"` // per run
	Samples   int        `json:"samples"`
	P50       int64      `json:"p50_ns"`
	P95       int64      `json:"p95_ns"`
	Reference *Reference `json:"reference"` // nil: none on this backend
	Ratio     *float64   `json:"ratio"`     // reference p50 / p50: above 1 is faster than the reference
}

// Reference is another way to the same result.
type Reference struct {
	Name string `json:"name"`
	P50  int64  `json:"p50_ns"`
}

// Options of Run.
type Options struct {
	Suite   string
	Samples int // runs of each benchmark, after two to warm up; 0: 30
}

// benchmark is one thing to measure. Both functions return the time of one run.
type benchmark struct {
	name         string
	bytes, flops *int64
	run          func(context.Context) (time.Duration, error)
	reference    string
	runReference func() time.Duration // nil: no reference
}

// Run measures a suite on d and gives each result to emit as soon as it is
// there.
func Run(ctx context.Context, d *core.Device, o Options, emit func(Measurement) error) error {
	var list func(*rig) ([]benchmark, error)
	switch o.Suite {
	case Bandwidth:
		list = bandwidth
	case Kernels:
		list = kernels
	default:
		return fmt.Errorf("%w %q: use %s or %s", ErrSuite, o.Suite, Bandwidth, Kernels)
	}
	if o.Samples < 0 {
		return fmt.Errorf("%d samples: must not be negative: %w", o.Samples, core.ErrInvalid)
	}
	if o.Samples == 0 {
		o.Samples = 30
	}
	info, err := d.Info()
	if err != nil {
		return err
	}
	r, err := newRig(d)
	if err != nil {
		return fmt.Errorf("prepare %s: %w", o.Suite, err)
	}
	benchmarks, err := list(r)
	if err == nil {
		for _, b := range benchmarks {
			var m Measurement
			if m, err = measure(ctx, b, o.Samples); err != nil {
				err = fmt.Errorf("measure %s: %w", b.name, err)
				break
			}
			m.Backend, m.Device = info.Backend, info.Name
			if err = emit(m); err != nil {
				break
			}
		}
	}
	return errors.Join(err, r.release())
}

const warmUp = 2

func measure(ctx context.Context, b benchmark, samples int) (Measurement, error) {
	var own, other []time.Duration
	for i := range warmUp + samples {
		if err := ctx.Err(); err != nil {
			return Measurement{}, err
		}
		took, err := b.run(ctx)
		if err != nil {
			return Measurement{}, err
		}
		var ref time.Duration
		if b.runReference != nil {
			ref = b.runReference()
		}
		if i >= warmUp {
			own, other = append(own, took), append(other, ref)
		}
	}
	m := Measurement{
		Type: "measurement", Name: b.name, Bytes: b.bytes, Flops: b.flops, Samples: samples,
		P50: percentile(own, 50).Nanoseconds(), P95: percentile(own, 95).Nanoseconds(),
	}
	if b.runReference != nil {
		m.Reference = &Reference{Name: b.reference, P50: percentile(other, 50).Nanoseconds()}
		if m.P50 > 0 {
			ratio := float64(m.Reference.P50) / float64(m.P50)
			m.Ratio = &ratio
		}
	}
	return m, nil
}

// percentile is the nearest rank: the smallest value that p percent of the
// values do not exceed.
func percentile(values []time.Duration, p int) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := (p*len(sorted) + 99) / 100
	return sorted[max(rank, 1)-1]
}

// rig is a stream with two events around whatever is measured.
type rig struct {
	d          *core.Device
	stream     *core.Stream
	start, end *core.Event
	buffers    []*core.Buffer
}

func newRig(d *core.Device) (*rig, error) {
	r := &rig{d: d}
	var err error
	if r.stream, err = d.NewStream(0); err != nil {
		return nil, err
	}
	if r.start, err = d.NewEvent(); err != nil {
		return nil, errors.Join(err, r.release())
	}
	if r.end, err = d.NewEvent(); err != nil {
		return nil, errors.Join(err, r.release())
	}
	return r, nil
}

func (r *rig) release() error {
	var errs []error
	if r.stream != nil { // first: its work uses the rest
		errs = append(errs, r.stream.Release())
	}
	for _, e := range []*core.Event{r.start, r.end} {
		if e != nil {
			errs = append(errs, e.Release())
		}
	}
	for _, b := range r.buffers {
		errs = append(errs, b.Release())
	}
	return errors.Join(errs...)
}

func (r *rig) alloc(n int, m core.Mode) (*core.Buffer, error) {
	b, err := r.d.Alloc(n, m)
	if err == nil {
		r.buffers = append(r.buffers, b)
	}
	return b, err
}

// timed returns a function that runs the commands and gives the device's time.
func (r *rig) timed(add func(*core.List)) func(context.Context) (time.Duration, error) {
	l := r.stream.List().Record(r.start)
	add(l)
	l.Record(r.end)
	return func(ctx context.Context) (time.Duration, error) {
		if err := l.Submit(); err != nil {
			return 0, err
		}
		if err := r.stream.Wait(ctx); err != nil {
			return 0, err
		}
		return r.end.Since(r.start)
	}
}

func count(n int) *int64 {
	v := int64(n)
	return &v
}

func since(f func()) func() time.Duration {
	return func() time.Duration {
		t := time.Now()
		f()
		return time.Since(t)
	}
}
