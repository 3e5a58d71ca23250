package bench

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/core"
)

func openCPU(t *testing.T) *core.Device {
	t.Helper()
	d, err := core.Open(core.Options{Backend: core.CPU})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestEverySuiteMeasuresItselfBesideAReference(t *testing.T) {
	d := openCPU(t)
	for _, suite := range []string{Bandwidth, Kernels} {
		t.Run(suite, func(t *testing.T) {
			names := map[string]bool{}
			err := Run(context.Background(), d, Options{Suite: suite, Samples: 1}, func(m Measurement) error {
				if m.P50 <= 0 || m.P95 < m.P50 || m.Samples != 1 || m.Backend != "cpu" || m.Device == "" {
					t.Errorf("%+v", m)
				}
				if names[m.Name] {
					t.Errorf("two benchmarks are called %q", m.Name)
				}
				names[m.Name] = true
				if (m.Reference == nil) != (m.Ratio == nil) {
					t.Errorf("%s: reference and ratio do not agree", m.Name)
				}
				if m.Reference == nil && !strings.HasPrefix(m.Name, "submit") {
					t.Errorf("%s has no reference", m.Name)
				}
				if m.Ratio != nil && math.Abs(*m.Ratio-float64(m.Reference.P50)/float64(m.P50)) > 1e-9 {
					t.Errorf("%s: ratio %g", m.Name, *m.Ratio)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestUnknownIsNullInJSON(t *testing.T) {
	out, err := json.Marshal(Measurement{Type: "measurement", Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{`"bytes":null`, `"flops":null`, `"reference":null`, `"ratio":null`} {
		if !strings.Contains(string(out), field) {
			t.Errorf("%s lacks %s", out, field)
		}
	}
}

func TestRunRefusesWhatItCannotDo(t *testing.T) {
	d := openCPU(t)
	nothing := func(Measurement) error { return nil }
	if err := Run(context.Background(), d, Options{Suite: "speed"}, nothing); !errors.Is(err, ErrSuite) || !strings.Contains(err.Error(), "use bandwidth or kernels") {
		t.Errorf("unknown suite: %v", err)
	}
	if err := Run(context.Background(), d, Options{Suite: Kernels, Samples: -1}, nothing); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("negative samples: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Run(ctx, d, Options{Suite: Bandwidth}, nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	full := errors.New("disk full")
	if err := Run(context.Background(), d, Options{Suite: Bandwidth, Samples: 1}, func(Measurement) error { return full }); !errors.Is(err, full) {
		t.Errorf("output that fails: %v", err)
	}
}

func TestPercentileIsTheNearestRank(t *testing.T) {
	var v []time.Duration
	for i := 20; i > 0; i-- {
		v = append(v, time.Duration(i))
	}
	for p, want := range map[int]time.Duration{50: 10, 95: 19, 100: 20, 1: 1} {
		if got := percentile(v, p); got != want {
			t.Errorf("p%d is %d, want %d", p, got, want)
		}
	}
}

// A ratio against something that computes something else would mean nothing. On
// a smooth picture all ways agree within the rounding of 8-bit RGB.
func TestTheReferencesComputeTheSame(t *testing.T) {
	if !haveReferences {
		t.Skip("the references are C; this is a build without cgo")
	}
	d := openCPU(t)
	p := preprocess1080(core.ChromaNearest)
	frame := make([]byte, core.FrameBytes(core.NV12, p.Width, p.Height))
	for y := range p.Height {
		for x := range p.Width {
			frame[y*p.Width+x] = byte(40 + 160*x/p.Width)
			if y%2 == 0 {
				frame[p.Width*p.Height+y/2*p.Width+x] = byte(100 + 50*y/p.Height)
			}
		}
	}
	var err error
	if p.Planes, err = core.SplitPlanes(core.NV12, p.Width, p.Height, frame); err != nil {
		t.Fatal(err)
	}
	p.Out = make([]float32, p.OutLen())
	if err := d.Preprocess(context.Background(), *p); err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(out []float32){
		"two passes": func(out []float32) { refTwoPass(p, frame, make([]byte, 3*p.Width*p.Height), out) },
		"scalar":     func(out []float32) { refScalar(p, frame, out) },
	} {
		out := make([]float32, p.OutLen())
		run(out)
		for i := range out {
			if diff := math.Abs(float64(out[i] - p.Out[i])); !(diff <= 3.0/255) {
				t.Fatalf("%s: value %d is %g, the core says %g", name, i, out[i], p.Out[i])
			}
		}
	}
}
