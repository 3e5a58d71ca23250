package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/cpu"

	"github.com/yoctune/yoctune/runtime/engine/core"
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

func TestEverySuiteHasReferences(t *testing.T) {
	d := openCPU(t)
	names, kernels := map[string]bool{}, map[string]bool{}
	left := 0
	report, err := Run(context.Background(), d, Options{
		Suite: All, Samples: 1,
		Progress: func(number, total int, name string) { left = total - number },
		Each: func(m Measurement) error {
			if m.P50 <= 0 || m.P95 < m.P50 || m.P99 < m.P95 || m.Samples != 1 || m.Backend != "cpu" || m.Device == "" {
				t.Errorf("%+v", m)
			}
			if names[m.Suite+m.Name] {
				t.Errorf("two benchmarks of %s are called %q", m.Suite, m.Name)
			}
			names[m.Suite+m.Name] = true
			if (m.Reference == nil) != (m.Ratio == nil) {
				t.Errorf("%s: reference and ratio do not agree", m.Name)
			}
			if m.Ratio != nil && math.Abs(*m.Ratio-float64(m.Reference.P50)/float64(m.P50)) > 1e-9 {
				t.Errorf("%s: ratio %g", m.Name, *m.Ratio)
			}
			if m.Kernel != nil {
				kernels[*m.Kernel] = true
				if m.Bytes == nil {
					t.Errorf("%s: a kernel moves bytes", m.Name)
				}
			}
			if m.Times != nil {
				t.Errorf("%s: samples are for baselines", m.Name)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 15; i++ {
		if k := fmt.Sprintf("K%d", i); !kernels[k] {
			t.Errorf("no benchmark of %s", k)
		}
	}
	if left != 0 || len(report.Measurements) != len(names) || report.Measurements[0].Times == nil {
		t.Errorf("progress stopped %d short, %d of %d reported", left, len(report.Measurements), len(names))
	}
	if c := report.Ceilings; len(c.Memory) != 6 || len(c.Compute) == 0 || c.Memory[0].Rate < c.Memory[5].Rate || c.Compute[0].Rate <= 0 {
		t.Errorf("ceilings %+v", c)
	}
}

// What libraries are on the machine differs; what they must not do is differ in results.
func TestForeignReferencesComputeTheSame(t *testing.T) {
	if !haveReferences {
		t.Skip("the references are C; this is a build without cgo")
	}
	o := findLibraries("")
	defer o.release()
	if o.blas == nil && o.sws == nil {
		t.Skip("neither OpenBLAS nor libswscale is installed")
	}
	if o.blas != nil {
		if cpu.X86.HasAVX2 && cpu.X86.HasFMA && strings.Contains(o.blas.name(), "Prescott") {
			t.Errorf("%s does not use the instructions of this processor", o.blas.name())
		}
		x, y, own, other := ramp(64*48), ramp(48*32), make([]float32, 64*32), make([]float32, 64*32)
		refGemm(x, y, own, 64, 32, 48)
		o.blas.gemm(x, y, other, 64, 32, 48)
		for i := range own {
			if math.Abs(float64(own[i]-other[i])) > 1e-4 {
				t.Fatalf("%s: element %d is %g, plain C computes %g", o.blas.name(), i, other[i], own[i])
			}
		}
		if a, b := refSum(x), o.blas.sum(x); math.Abs(float64(a-b)) > 1e-3*float64(a) {
			t.Errorf("%s: sum %g, plain C computes %g", o.blas.name(), b, a)
		}
		if at := o.blas.indexOfMax(x); x[at] != refMax(x) {
			t.Errorf("%s: %g is not the largest, %g is", o.blas.name(), x[at], refMax(x))
		}
	}
	if o.sws == nil {
		return
	}
	r, err := newRig(openCPU(t))
	if err != nil {
		t.Fatal(err)
	}
	p := preprocess1080(core.ChromaBilinear)
	planes, _ := r.frame(p)
	s := o.sws.newScaler("nv12", p, planes)
	if s == nil {
		t.Fatal("libswscale does not take nv12")
	}
	p.Out, p.Planes = make([]float32, p.OutLen()), [3][]byte{planes[0].Bytes(), planes[1].Bytes()}
	if err := r.d.Preprocess(context.Background(), *p); err != nil {
		t.Fatal(err)
	}
	out, difference := make([]float32, p.OutLen()), 0.0
	s.tensor(out)
	for i := range out {
		difference += math.Abs(float64(out[i]-p.Out[i])) * 255
	}
	if difference /= float64(len(out)); !(difference < 2) {
		t.Errorf("%s differs by %.2f of an 8-bit step on average", o.sws.name(), difference)
	}
	if o.sws.hasSAD() {
		a, b := noise(64*64), picture(core.Gray8, 64, 64)
		if x, y := refDiff(a, b), o.sws.sad(a, b, 64, 64); x != y {
			t.Errorf("libavutil's SAD is %d, plain C's %d", y, x)
		}
	}
	if err := errors.Join(s.release(), r.release()); err != nil {
		t.Error(err)
	}
}

func TestTheRooflineIsTheLowestCeiling(t *testing.T) {
	c := Ceilings{
		Memory:  []MemoryCeiling{{WorkingSet: 1000, Rate: 2e9}, {WorkingSet: 10000, Rate: 1e9}},
		Compute: []ComputeCeiling{{Numbers: "f32", Rate: 4e9}},
	}
	for _, tc := range []struct {
		b     benchmark
		bound string
		share float64
	}{
		{benchmark{bytes: count(1000)}, "memory", 0.5},                                    // 500 ns of 1000
		{benchmark{bytes: count(100_000)}, "memory", 100},                                 // beyond the last size its rate holds
		{benchmark{bytes: count(1000), flops: count(4000), numbers: "f32"}, "compute", 1}, // 1000 ns
		{benchmark{bytes: count(1000), flops: count(400), numbers: "f32"}, "memory", 0.5}, // 100 ns
		{benchmark{bytes: count(1000), flops: count(4000), numbers: "i8"}, "", 0},         // its ceiling is not known
		{benchmark{}, "", 0},
	} {
		r := c.rooflineOf(tc.b, 1000)
		if tc.bound == "" {
			if r != nil {
				t.Errorf("%+v: %+v", tc.b, r)
			}
			continue
		}
		if r == nil || r.Bound != tc.bound || math.Abs(r.Share-tc.share) > 1e-9 {
			t.Errorf("%+v: %+v, want %s %g", tc.b, r, tc.bound, tc.share)
		}
	}
}

// The fastest measurement raises the ceiling, so that no kernel exceeds it.
func TestNoKernelIsAboveItsCeiling(t *testing.T) {
	c := Ceilings{
		Memory:  []MemoryCeiling{{WorkingSet: 1000, Rate: 3e9}, {WorkingSet: 10000, Rate: 2e9}, {WorkingSet: 100000, Rate: 1e9}},
		Compute: []ComputeCeiling{{Numbers: "f32", Rate: 4e9}, {Numbers: "i8", Rate: 4e9}},
	}
	for _, b := range []benchmark{
		{name: "quick", bytes: count(20000)}, {name: "product", bytes: count(10), flops: count(50000), numbers: "i8"}, {name: "slow", bytes: count(100)}, {},
	} {
		c.raise(b, 8000)
		if r := c.rooflineOf(b, 8000); r != nil && r.Share > 1 {
			t.Errorf("%s: %+v", b.name, r)
		}
	}
	want := Ceilings{
		Memory:  []MemoryCeiling{{1000, 3e9, ""}, {10000, 2.5e9, "quick"}, {100000, 2.5e9, "quick"}},
		Compute: []ComputeCeiling{{"f32", 4e9, ""}, {"i8", 6.25e9, "product"}},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("%+v, want %+v", c, want)
	}
}

func TestUnknownIsNullInJSON(t *testing.T) {
	out, err := json.Marshal(Measurement{Type: "measurement", Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{`"bytes":null`, `"flops":null`, `"reference":null`, `"ratio":null`, `"kernel":null`, `"roofline":null`, `"cpu_hz":null`, `"temperature_mc":null`} {
		if !strings.Contains(string(out), field) {
			t.Errorf("%s lacks %s", out, field)
		}
	}
}

func TestRunRefusesInvalidOptions(t *testing.T) {
	d := openCPU(t)
	run := func(ctx context.Context, o Options) error { _, err := Run(ctx, d, o); return err }
	if err := run(context.Background(), Options{Suite: "speed"}); !errors.Is(err, errSuite) || !strings.Contains(err.Error(), "use bandwidth, compute, kernels, latency, profiler or all") {
		t.Errorf("unknown suite: %v", err)
	}
	if err := run(context.Background(), Options{Suite: latency, Samples: -1}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("negative samples: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := run(ctx, Options{Suite: latency}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	full := errors.New("disk full")
	if err := run(context.Background(), Options{Suite: latency, Samples: 1, Each: func(Measurement) error { return full }}); !errors.Is(err, full) {
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
	out := make([]float32, p.OutLen())
	refTwoPass(p, frame, make([]byte, 3*p.Width*p.Height), out)
	for i := range out {
		if diff := math.Abs(float64(out[i] - p.Out[i])); !(diff <= 3.0/255) {
			t.Fatalf("value %d is %g, the core computes %g", i, out[i], p.Out[i])
		}
	}
}
