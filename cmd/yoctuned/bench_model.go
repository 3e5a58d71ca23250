package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/flattar"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/internal/signature"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/modelbench"
	"github.com/yoctune/yoctune/runtime/engine/tensorrt"
	"github.com/yoctune/yoctune/schema/formats/measurement"
	"github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/schema/units"
)

// modelFlags are the flags of bench model.
type modelFlags struct {
	request, examples, metric, head, library, check, output, key string
	precision, engines                                           string
	archive, sign, quiet                                         bool
	batches                                                      []int
	sizes, providers                                             []string
	threads, rounds, runs                                        int
	limit                                                        time.Duration
	objective                                                    objective
	maxMemory                                                    string
}

// objective is what a model must reach; a 0 is not asked for.
type objective struct {
	latency time.Duration // 95th percentile of a run with the smallest batch
	rate    float64       // examples a second, with the best batch
	memory  int64         // bytes
}

// objectives are those of usual models, by name.
var objectives = []struct {
	name string
	objective
}{
	{"mobilenet", objective{10 * time.Millisecond, 100, 50e6}},
	{"resnet-50", objective{30 * time.Millisecond, 30, 100e6}},
	{"bert", objective{50 * time.Millisecond, 20, 200e6}},
	{"efficientnet-b0", objective{12 * time.Millisecond, 82, 67e6}},
}

func newBenchModelCommand() *cobra.Command {
	var f modelFlags
	var names []string
	for _, o := range objectives {
		names = append(names, o.name)
	}
	cmd := &cobra.Command{
		Use:   "model [MODEL.onnx...]",
		Short: "Measure models: time, memory, energy and accuracy",
		Long: `Run ONNX models on this device and record the time of each run, the memory of the
process, the energy where the device measures its power, and with a labelled set the
accuracy, at every batch size. The first model is the original; the others are compared
with it. Each model runs in a process of its own, and the models take turns.

The labelled set is a safetensors file with a tensor for each input of the model, the
examples along its first axis, and a tensor "label" or "boxes". Metrics: top-1, f1, cer,
map, and cosine, which compares all outputs with those of the original and needs no
labels. Without a set the inputs are random, and axes that are free need --size.

--request and --archive take a request that 'yoctune model optimise' wrote: a folder, or
a tar archive on standard input. The record is JSON with --format json or -o FILE. With
--sign, FILE.minisig is its signature by the device's key (yoctuned keygen), which makes
a record that was carried by hand acceptable to 'yoctune model judge'.

A model whose providers include tensorrt gets its engine first, which stays in the store:
a pipeline with the same batch sizes loads it.

--check compares the first model with declared objectives: the 95th percentile of the
time of a run, examples a second, and memory. mobilenet is 10 ms, 100 a second and 50 MB;
resnet-50 is 30 ms, 30 and 100 MB; bert is 50 ms, 20 and 200 MB; efficientnet-b0 is 12 ms,
82 and 67 MB. --max-latency, --min-rate and --max-memory declare others.

Exit status: 0 measured, and every objective is met, 1 failed, 2 wrong usage, 3 an
objective is missed.`,
		Example: `  yoctuned bench model yolo.onnx --batch 1,4
  yoctuned bench model bert.onnx --size sequence_length=128 --check bert
  yoctuned bench model full.onnx int8.onnx --examples set.safetensors --metric top-1 -o measured.json --sign
  yoctuned bench model --archive -o measured.json < request.tar`,
		RunE: func(cmd *cobra.Command, args []string) error { return runBenchModel(cmd, args, f) },
	}
	s := cmd.Flags()
	s.StringVar(&f.request, "request", "", "`DIR` with a request and its files")
	s.BoolVar(&f.archive, "archive", false, "read a request and its files as a tar archive from standard input")
	s.StringVar(&f.examples, "examples", "", "`FILE` with the labelled set")
	s.StringVar(&f.metric, "metric", measurement.Cosine, "`METRIC` of accuracy: "+strings.Join(measurement.Metrics(), ", "))
	s.StringVar(&f.head, "head", "", "`HEAD` of a detector, with metric map, as in a postprocess stage")
	s.IntSliceVar(&f.batches, "batch", []int{1}, "`SIZES` of batches, ascending")
	s.StringArrayVar(&f.sizes, "size", nil, "`AXIS=N` size of a free axis; may be repeated")
	s.StringSliceVar(&f.providers, "provider", nil, "`PROVIDERS` of ONNX Runtime, best first (default: cpu)")
	cli.ChoiceVar(cmd, &f.precision, "precision", "", "`PRECISION` of TensorRT engines", "fp32", "fp16")
	s.StringVar(&f.engines, "engines", "", "`DIR` of TensorRT engines (default: "+tensorrt.Dir+")")
	s.IntVar(&f.threads, "threads", 0, "`N` threads inside an operator (default: one per core)")
	s.IntVar(&f.rounds, "rounds", 10, "`N` rounds")
	s.IntVar(&f.runs, "runs", 10, "`N` runs of each model in a round")
	s.DurationVar(&f.limit, "limit", 10*time.Minute, "`TIME` limit of each step of a model")
	s.StringVar(&f.library, "library", "", "`FILE` of the ONNX Runtime library")
	cli.ChoiceVar(cmd, &f.check, "check", "", "`NAME` of objectives to compare with", names...)
	s.DurationVar(&f.objective.latency, "max-latency", 0, "`TIME` that the 95th percentile may take")
	s.Float64Var(&f.objective.rate, "min-rate", 0, "`N` examples a second, with the best batch")
	s.StringVar(&f.maxMemory, "max-memory", "", "`SIZE` of the memory, such as 50MB")
	s.StringVarP(&f.output, "output", "o", "", "`FILE` to write the record to")
	s.BoolVar(&f.sign, "sign", false, "sign the record with the device's key")
	s.StringVar(&f.key, "key", "", "`FILE` with the device's key (default: "+deviceKey+")")
	s.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	cmd.MarkFlagsMutuallyExclusive("request", "archive")
	return cmd
}

func newBenchModelProcessCommand() *cobra.Command {
	return &cobra.Command{
		Use:     modelbench.Command,
		Short:   "Run one model for the measurement that started it",
		Long:    `yoctuned bench model starts this command for each model. Do not run it directly.`,
		Example: `  yoctuned bench model yolo.onnx`,
		Hidden:  true,
		RunE:    func(cmd *cobra.Command, _ []string) error { return modelbench.Serve(cmd.InOrStdin(), os.Stdout) },
	}
}

func runBenchModel(cmd *cobra.Command, args []string, f modelFlags) error {
	if f.sign && f.output == "" {
		return cli.UsageError(errors.New("--sign writes the signature beside the record: add -o FILE"))
	}
	asked, err := f.asked()
	if err != nil {
		return cli.UsageError(err)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	req, dir, cleanup, err := f.load(cmd, args)
	if err != nil {
		return err
	}
	defer cleanup()
	root, err := rootfs.Open(rootDir(cmd))
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	sizes, err := parseSizes(f.sizes)
	if err != nil {
		return cli.UsageError(err)
	}
	sampler := monitor.New(root)
	engines := engineFlags{dir: f.engines}
	o := modelbench.Options{Host: tensorrt.DetectHost(rootDir(cmd), rootfs.Identify(root).Compatible), Engines: engines.store(rootDir(cmd)), Program: program, Dir: dir, Library: f.library, Sizes: sizes, Device: identifyDevice(root, sampler), Now: time.Now}
	if sampler.Take().ModulePower() != nil {
		o.Power = func() *int64 { return sampler.Take().ModulePower() }
	}
	if !f.quiet {
		o.Progress = func(model, what string) { fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", model, what) }
	}
	rec, err := modelbench.Run(ctx, req, o)
	if err != nil {
		return err
	}
	data, err := plan.Canonical(rec)
	if err != nil {
		return err
	}
	if err := f.write(data); err != nil {
		return err
	}
	return f.show(cli.NewPrinter(cmd), rec, data, asked)
}

// asked returns the objectives of the flags.
func (f *modelFlags) asked() (objective, error) {
	want := f.objective
	if f.maxMemory != "" {
		n, err := units.ParseSize(f.maxMemory)
		if err != nil {
			return want, fmt.Errorf("--max-memory: %w", err)
		}
		want.memory = n
	}
	for _, o := range objectives {
		if o.name != f.check {
			continue
		}
		if want != (objective{}) {
			return want, errors.New("--check names the objectives; leave it out to declare others")
		}
		want = o.objective
	}
	return want, nil
}

// load returns the request, the folder of its files, and a function that removes what it made.
func (f *modelFlags) load(cmd *cobra.Command, args []string) (*measurement.Request, string, func(), error) {
	none := func() {}
	if f.request == "" && !f.archive {
		req, err := f.requestOf(args)
		return req, "", none, err
	}
	if len(args) > 0 {
		return nil, "", none, cli.UsageError(errors.New("a request names the models: leave the others out"))
	}
	dir := f.request
	if f.archive {
		tmp, err := os.MkdirTemp("", "yoctune-request-")
		if err != nil {
			return nil, "", none, err
		}
		none = func() { os.RemoveAll(tmp) }
		if err := flattar.Unpack(cmd.InOrStdin(), tmp); err != nil {
			none()
			return nil, "", func() {}, fmt.Errorf("reading the archive: %w", err)
		}
		dir = tmp
	}
	data, err := infile.Read(filepath.Join(dir, measurement.RequestFile), 1<<20)
	if err == nil {
		var req *measurement.Request
		if req, err = measurement.DecodeRequest(data); err == nil {
			return req, dir, none, nil
		}
	}
	none()
	return nil, "", func() {}, err
}

// requestOf makes a request for files of the command line, which may be in any folder.
func (f *modelFlags) requestOf(args []string) (*measurement.Request, error) {
	if len(args) == 0 {
		return nil, cli.UsageError(errors.New("missing argument: MODEL.onnx, or --request or --archive"))
	}
	if !slices.IsSorted(f.batches) || len(f.batches) == 0 || f.batches[0] < 1 || f.batches[len(f.batches)-1] > measurement.MaxBatch || len(f.batches) > measurement.MaxBatches {
		return nil, cli.UsageError(fmt.Errorf("--batch %v: list 1 to %d sizes from 1 to %d, ascending", f.batches, measurement.MaxBatches, measurement.MaxBatch))
	}
	if f.rounds < 1 || f.rounds > measurement.MaxRounds || f.runs < 1 || f.runs > measurement.MaxRounds {
		return nil, cli.UsageError(fmt.Errorf("--rounds %d --runs %d: choose 1 to %d", f.rounds, f.runs, measurement.MaxRounds))
	}
	if f.limit <= 0 {
		return nil, cli.UsageError(fmt.Errorf("--limit %v: choose a longer time", f.limit))
	}
	req := &measurement.Request{Batches: f.batches, Threads: f.threads, Providers: f.providers, Precision: f.precision, Rounds: f.rounds, Runs: f.runs, Limit: int64(f.limit)}
	if f.examples != "" {
		path, err := filepath.Abs(f.examples)
		if err != nil {
			return nil, err
		}
		if _, ok := measurement.MetricOf(f.metric); !ok {
			return nil, cli.UsageError(fmt.Errorf("--metric %s: choose one of %s", f.metric, strings.Join(measurement.Metrics(), ", ")))
		}
		req.Examples, req.Metric, req.Head = path, f.metric, f.head
	}
	if f.head != "" {
		if !slices.Contains(pipeline.HeadNames(), f.head) {
			return nil, cli.UsageError(fmt.Errorf("--head %s: choose one of %s", f.head, strings.Join(pipeline.HeadNames(), ", ")))
		}
	}
	for _, a := range args {
		path, err := filepath.Abs(a)
		if err != nil {
			return nil, err
		}
		sum, err := modelbench.Digest(path)
		if err != nil {
			return nil, err
		}
		req.Models = append(req.Models, measurement.RequestModel{Name: strings.TrimSuffix(filepath.Base(a), ".onnx"), File: path, SHA256: sum})
	}
	return req, nil
}

// parseSizes reads AXIS=N.
func parseSizes(texts []string) (map[string]int64, error) {
	out := map[string]int64{}
	for _, t := range texts {
		axis, size, ok := strings.Cut(t, "=")
		n, err := strconv.ParseInt(size, 10, 64)
		if !ok || axis == "" || err != nil || n < 1 || n > 1<<30 {
			return nil, fmt.Errorf("--size %s: write AXIS=N, such as sequence_length=128", t)
		}
		out[axis] = n
	}
	return out, nil
}

func identifyDevice(root *rootfs.Root, sampler *monitor.Sampler) measurement.Device {
	id := rootfs.Identify(root)
	d := measurement.Device{Identities: []string{}, Model: id.Model, Kernel: id.Kernel, L4T: id.L4T, Cores: runtime.NumCPU()}
	d.Identities = append(d.Identities, id.Compatible...)
	if id.Product != "" {
		d.Identities = append(d.Identities, id.Product)
	}
	for line := range strings.Lines(rootfs.ReadText(root, "/proc/cpuinfo")) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			d.CPU = strings.TrimSpace(value)
			break
		}
	}
	s := sampler.Take()
	if s.PowerMode != nil {
		d.PowerMode = *s.PowerMode
	}
	for _, c := range s.CPUs {
		if c.Governor != nil {
			d.Governor = *c.Governor
			break
		}
	}
	return d
}

// write writes the record and its signature.
func (f *modelFlags) write(data []byte) error {
	if f.output == "" {
		return nil
	}
	var signed []byte
	if f.sign {
		secret, err := readDeviceKey(f.key)
		if err != nil {
			return err
		}
		signed = secret.Sign(data, "yoctune measurement")
	}
	if err := outfile.Write(f.output, data); err != nil || !f.sign {
		return err
	}
	return outfile.Write(f.output+signature.Extension, signed)
}

const modelRowFormat = "%-28s %5s %10s %10s %10s %9s %8s %9s %9s %9s\n"

func (f *modelFlags) show(p cli.Printer, rec *measurement.Record, data []byte, want objective) error {
	if p.JSON {
		p.Encode(rec)
	} else {
		p.Printf("ONNX Runtime %s on %s, %d cores\n", rec.Runtime.ONNXRuntime, deviceName(rec.Device.Model, rec.Device.CPU), rec.Device.Cores)
		p.Printf(modelRowFormat, "model", "batch", "p50", "p95", "p99", "per s", "speedup", rec.MetricName(), "memory", "energy")
	}
	for i := range rec.Models {
		m := &rec.Models[i]
		if !p.JSON {
			showModel(p, rec, m)
		}
	}
	if want == (objective{}) {
		return p.Err()
	}
	met := checkObjectives(p, &rec.Models[0], want)
	return cli.Answer(met)
}

func deviceName(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return "an unknown device"
}

func showModel(p cli.Printer, rec *measurement.Record, m *measurement.Model) {
	if m.Failed != "" && len(m.Batches) == 0 {
		p.Printf("%-28s failed: %s\n", m.Name, m.Failed)
		return
	}
	for i := range m.Batches {
		b := &m.Batches[i]
		if b.Failed != "" {
			p.Printf("%-28s %5d failed: %s\n", m.Name, b.Batch, b.Failed)
			continue
		}
		speedup, metric, memory, energy := "-", "-", "-", "-"
		if first := rec.Models[0].Find(b.Batch); first != nil && m != &rec.Models[0] && first.Failed == "" {
			speedup = fmt.Sprintf("%.2f", float64(first.Percentile(50))/float64(b.Percentile(50)))
		}
		if v, ok := rec.Accuracy(b); ok {
			metric = fmt.Sprintf("%.4f", v)
		}
		if m.Memory != nil {
			memory = units.RoundSize(*m.Memory)
		}
		if b.Energy != nil {
			energy = fmt.Sprintf("%.1f mJ", float64(*b.Energy)/1000)
		}
		p.Printf(modelRowFormat, m.Name, strconv.Itoa(b.Batch), formatTime(b.Percentile(50)), formatTime(b.Percentile(95)), formatTime(b.Percentile(99)),
			fmt.Sprintf("%.1f", b.Rate()), speedup, metric, memory, energy)
	}
}

// checked is an objective and what was measured.
type checked struct {
	Objective string `json:"objective"`
	Want      string `json:"want"`
	Got       string `json:"got"`
	Met       bool   `json:"met"`
	Weights   string `json:"weights"` // real, or generated for the measurement
}

func checkObjectives(p cli.Printer, m *measurement.Model, want objective) bool {
	weights := "real"
	if m.Weights != "" {
		weights = m.Weights
	}
	all := true
	report := func(c checked) {
		c.Weights = weights
		all = all && c.Met
		word := "met"
		if !c.Met {
			word = "missed"
		}
		if p.JSON {
			p.Line("objective", c)
		} else {
			p.Printf("%s: %s, wanted %s: %s (%s weights)\n", c.Objective, c.Got, c.Want, word, weights)
		}
	}
	var best *measurement.Batch
	for i := range m.Batches {
		if b := &m.Batches[i]; b.Failed == "" && (best == nil || b.Rate() > best.Rate()) {
			best = b
		}
	}
	if want.latency > 0 {
		p95 := m.Batches[0].Percentile(95)
		report(checked{Objective: "latency", Want: "at most " + want.latency.String(), Got: formatTime(p95), Met: p95 <= int64(want.latency)})
	}
	if want.rate > 0 {
		report(checked{Objective: "rate", Want: fmt.Sprintf("at least %g a second", want.rate), Got: fmt.Sprintf("%.1f a second with batch %d", best.Rate(), best.Batch), Met: best.Rate() >= want.rate})
	}
	if want.memory > 0 {
		if m.Memory == nil {
			report(checked{Objective: "memory", Want: "at most " + units.RoundSize(want.memory), Got: "unknown"})
		} else {
			report(checked{Objective: "memory", Want: "at most " + units.RoundSize(want.memory), Got: units.RoundSize(*m.Memory), Met: *m.Memory <= want.memory})
		}
	}
	return all
}
