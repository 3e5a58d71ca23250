// Package bench measures whole processes: CPU time and peak memory as the
// kernel accounts them, with the reference measured in the same run.
package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"syscall"
	"testing"
	"time"
)

// usage is the resource use of a finished process.
type usage struct {
	cpu, wall time.Duration
	rss       int64 // bytes, peak
}

// run starts argv and waits for it. The exit code must be one of ok.
func run(tb testing.TB, dir string, ok []int, argv ...string) usage {
	tb.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	if cmd.ProcessState == nil {
		tb.Fatalf("%v: %v", argv, err)
	}
	code := cmd.ProcessState.ExitCode()
	for _, c := range ok {
		if c == code {
			ru, isRusage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			if !isRusage {
				tb.Fatal("no resource usage on this system")
			}
			return usage{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), wall, ru.Maxrss * 1024}
		}
	}
	tb.Fatalf("%v: exit %d\n%s", argv, code, out.String())
	return usage{}
}

// median runs f n times and returns the median of each figure.
func median(n int, f func() usage) usage {
	cpu, wall, rss := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		u := f()
		cpu[i], wall[i], rss[i] = float64(u.cpu), float64(u.wall), float64(u.rss)
	}
	mid := func(s []float64) float64 { sort.Float64s(s); return s[len(s)/2] }
	return usage{time.Duration(mid(cpu)), time.Duration(mid(wall)), int64(mid(rss))}
}

func repo(tb testing.TB) string {
	tb.Helper()
	wd, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	return filepath.Dir(wd)
}

// tool builds a program of this module once, with the flags of a release: yoctune is pure Go,
// yoctuned needs cgo.
func tool(tb testing.TB, pkg string, ldflags ...string) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), filepath.Base(pkg))
	args := append([]string{"build", "-o", out}, ldflags...)
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = repo(tb)
	if pkg != "./cmd/yoctuned" {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if b, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("go build %s: %v\n%s", pkg, err, b)
	}
	return out
}

// cueTool finds the cue command, the reference: CUE in the environment, or in
// PATH. `make bench` installs the version go.mod pins.
func cueTool(tb testing.TB) string {
	tb.Helper()
	if p := os.Getenv("CUE"); p != "" {
		return p
	}
	p, err := exec.LookPath("cue")
	if err != nil {
		tb.Skip("no cue command: set CUE to one (make bench installs it)")
	}
	return p
}

// cueModule writes a configuration as a CUE module with the vendored schema.
func cueModule(tb testing.TB, config string) string {
	tb.Helper()
	dir := tb.TempDir()
	vendored := filepath.Join(dir, "cue.mod", "pkg", "github.com", "yoctune", "yoctune", "schema")
	if err := os.MkdirAll(vendored, 0o755); err != nil {
		tb.Fatal(err)
	}
	mod := "module: \"example.com/bench@v0\"\nlanguage: version: \"v0.17.0\"\n"
	if err := os.WriteFile(filepath.Join(dir, "cue.mod", "module.cue"), []byte(mod), 0o644); err != nil {
		tb.Fatal(err)
	}
	copyCUE(tb, filepath.Join(repo(tb), "schema"), vendored)
	copyCUE(tb, config, dir)
	return dir
}

func copyCUE(tb testing.TB, from, to string) {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(from, "*.cue"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no CUE files in %s (%v)", from, err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(f)), raw, 0o644); err != nil {
			tb.Fatal(err)
		}
	}
}

func show(name string, u usage) string {
	return fmt.Sprintf("%-28s cpu %8.1f ms  wall %8.1f ms  peak %6.1f MB", name,
		float64(u.cpu)/1e6, float64(u.wall)/1e6, float64(u.rss)/1e6)
}
