package bench

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkPreprocessBesideSwscale measures the core's fused preprocess and libswscale
// in one process, turn by turn, in CPU time: 1080p NV12 into a 640x640 tensor.
func BenchmarkPreprocessBesideSwscale(b *testing.B) {
	program := swscaleProgram(b)
	best := map[string]float64{}
	for b.Loop() {
		out, err := exec.Command(program).Output()
		if err != nil {
			b.Fatal(err)
		}
		for name, v := range swscaleFigures(b, out) {
			if old, ok := best[name]; !ok || v.min < old {
				best[name] = v.min
			}
		}
	}
	for name, ns := range best {
		b.ReportMetric(ns/1e3, strings.ReplaceAll(name, " ", "-")+"-us")
	}
	b.ReportMetric(best["swscale fast_bilinear"]/best["core nearest"], "times-fast_bilinear")
	b.ReportMetric(best["swscale bilinear"]/best["core bilinear"], "times-bilinear")
}

// The ratio is meaningful only if both compute the same.
func TestSwscaleComputesTheSame(t *testing.T) {
	out, err := exec.Command(swscaleProgram(t)).Output()
	if err != nil {
		t.Fatal(err)
	}
	figures := swscaleFigures(t, out)
	if len(figures) != 4 {
		t.Fatalf("figures of %d ways: %s", len(figures), out)
	}
	for name, v := range figures {
		t.Logf("%s: fastest %.0f us, differs by %.2f of an 8-bit step on average", name, v.min/1e3, v.difference)
		if v.min <= 0 || v.difference > 3 { // swscale dithers and rounds to 8 bits on the way
			t.Errorf("%s: %+v", name, v)
		}
	}
}

type swscaleFigure struct{ min, difference float64 }

func swscaleFigures(tb testing.TB, out []byte) map[string]swscaleFigure {
	tb.Helper()
	figures := map[string]swscaleFigure{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		f := strings.Split(lines.Text(), "\t")
		if len(f) != 4 {
			tb.Fatalf("unexpected line %q", lines.Text())
		}
		least, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			tb.Fatal(err)
		}
		difference, err := strconv.ParseFloat(f[3], 64)
		if err != nil {
			tb.Fatal(err)
		}
		figures[f[0]] = swscaleFigure{least, difference}
	}
	return figures
}

// swscaleProgram builds swscale/swscale.c with the core's own sources and options.
func swscaleProgram(tb testing.TB) string {
	tb.Helper()
	flags, err := exec.Command("pkg-config", "--cflags", "--libs", "libswscale", "libavutil").Output()
	if err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_SWSCALE") != "" {
			tb.Fatalf("pkg-config libswscale: %v", err)
		}
		tb.Skip("libswscale's headers are not installed (libswscale-dev)")
	}
	core, program := filepath.Join(repo(tb), "runtime", "core", "c"), filepath.Join(tb.TempDir(), "swscale")
	// The options of cgo for the core.
	args := []string{"-std=c11", "-O3", "-I", core, "-o", program, filepath.Join(repo(tb), "bench", "swscale", "swscale.c")}
	sources, err := filepath.Glob(filepath.Join(core, "yt_cpu*.c"))
	if err != nil {
		tb.Fatal(err)
	}
	args = append(args, sources...)
	args = append(args, filepath.Join(core, "yt_guard.c"))
	args = append(args, strings.Fields(string(flags))...)
	args = append(args, "-lm", "-lpthread")
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		tb.Fatalf("cc: %v\n%s", err, out)
	}
	return program
}
