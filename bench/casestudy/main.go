// Command casestudy enables the optimisations of a pipeline one by one on a real task and
// compares them with the same pipeline in Python. A trained model reads labels in frames of
// a line camera.
//
//	make build && scripts/setup.sh models peer
//	go run ./bench/casestudy -o bench/results/$(date -u +%F)-casestudy.md
//
// Every row processes the same frames, and its results are compared with the true labels.
// The rows run in turn in every round; the figures are the best of the rounds.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/schema/plan"
)

// Geometry of the shipped clip, in pixels, and the size of a frame of it.
const (
	clipWidth  = 192
	clipHeight = 48
	clipFrame  = clipWidth * clipHeight * 3 / 2
)

// The model and its alphabet, installed by tests/models/fetch.sh.
const (
	modelFile = "ch_PP-OCRv4_rec_infer.onnx"
	labelFile = "ppocr_keys_v1.txt"
)

type study struct {
	yoctuned, python, peer string
	models, library        string
	dir                    string // for intermediate files
	frames, scale          int
	truth                  []string // text on each frame of the clip
	versions               string   // of the Python peer
	load                   string   // load averages at the start
}

// row is one variant of the pipeline.
type row struct {
	name string
	run  func(frames int) (figures, error)

	fps, p50, p95, cpu, busy []float64
	right, done              int
	stages                   stages // of the run with the highest rate
	live                     bool   // frames may be dropped
	held                     string // locked memory and large pages that the kernel granted
	doubts                   []string
}

// stages are the times of the steps of a frame.
type stages map[string]struct{ Service struct{ P50 int64 } }

func (s stages) String() string {
	var parts []string
	for _, id := range []string{"source", "frame", "read", "text", "sink"} {
		if st, ok := s[id]; ok {
			parts = append(parts, fmt.Sprintf("%s %.2f", id, float64(st.Service.P50)/1e6))
		}
	}
	return strings.Join(parts, ", ")
}

// figures are the measurements of one run.
type figures struct {
	frames   int
	duration time.Duration  // first frame to last result
	cpu      time.Duration  // of the process, including loading
	p50, p95 time.Duration  // of a frame, from its capture to its result
	texts    map[int]string // by frame
	stages   stages         // in p50, where the time goes

	locked, huge *int64 // bytes; nil: not requested or unknown
	doubts       string // warnings of the program
}

func main() {
	s := &study{peer: "bench/casestudy/peer.py"}
	flag.StringVar(&s.yoctuned, "yoctuned", "build/bin/yoctuned", "the program to measure")
	flag.StringVar(&s.python, "python", "build/peer-venv/bin/python", "interpreter with OpenCV and ONNX Runtime")
	flag.StringVar(&s.models, "models", "build/models", "directory of the model, its labels and ONNX Runtime")
	flag.IntVar(&s.frames, "frames", 200, "frames of a run")
	flag.IntVar(&s.scale, "scale", 10, "factor by which frames are larger than those of the clip")
	rounds := flag.Int("rounds", 5, "runs of each row")
	only := flag.String("rows", "", "`REGEXP` of the rows to measure; default: all")
	out := flag.String("o", "", "file for the table; default: standard output")
	flag.Parse()
	if err := s.main(*only, *rounds, *out); err != nil {
		fmt.Fprintln(os.Stderr, "casestudy:", err)
		os.Exit(1)
	}
}

func (s *study) main(only string, rounds int, out string) error {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-rows: %w", err)
	}
	libraries, err := filepath.Glob(filepath.Join(s.models, "*", "libonnxruntime.so.*"))
	if err != nil || len(libraries) == 0 {
		return fmt.Errorf("no ONNX Runtime in %s; run scripts/setup.sh models", s.models)
	}
	// The newest, which is the release that the peer has: the oldest is here for tests, and computes differently.
	s.library = slices.MaxFunc(libraries, func(a, b string) int { return slices.Compare(releaseOf(a), releaseOf(b)) })
	if s.models, err = filepath.Abs(s.models); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "casestudy-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	if err := s.writeClip("examples/video-analytics/media"); err != nil {
		return err
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		s.load = strings.Join(strings.Fields(string(load))[:3], " ")
	}
	rows := slices.DeleteFunc(s.rows(), func(r row) bool { return !chosen.MatchString(r.name) })
	for round := range rounds {
		for i := range rows {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, rounds, rows[i].name)
			if err := s.measure(&rows[i]); err != nil {
				return fmt.Errorf("%s: %w", rows[i].name, err)
			}
		}
	}
	var b bytes.Buffer
	s.table(&b, rows, rounds)
	if out == "" {
		_, err = b.WriteTo(os.Stdout)
		return err
	}
	return os.WriteFile(out, b.Bytes(), 0o644)
}

// releaseOf returns the numbers of the release in a library's name.
func releaseOf(path string) []int {
	var release []int
	for part := range strings.SplitSeq(path[strings.LastIndex(path, ".so.")+len(".so."):], ".") {
		n, _ := strconv.Atoi(part)
		release = append(release, n)
	}
	return release
}

// writeClip writes the enlarged frames, repeated up to the required number.
func (s *study) writeClip(media string) error {
	small, err := os.ReadFile(filepath.Join(media, "serials.nv12"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(media, "serials.txt"))
	if err != nil {
		return err
	}
	s.truth = strings.Fields(string(text))
	if len(small) != len(s.truth)*clipFrame {
		return fmt.Errorf("%s: %d bytes are not %d frames", media, len(small), len(s.truth))
	}
	var large []byte
	for n := range s.truth {
		f := small[n*clipFrame : (n+1)*clipFrame]
		large = enlarge(large, f[:clipWidth*clipHeight], clipWidth, 1, s.scale)
		large = enlarge(large, f[clipWidth*clipHeight:], clipWidth/2, 2, s.scale)
	}
	f, err := os.Create(s.path())
	if err != nil {
		return err
	}
	size := len(large) / len(s.truth)
	for n := range s.frames {
		i := n % len(s.truth)
		if _, err := f.Write(large[i*size : (i+1)*size]); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

func (s *study) path() string { return filepath.Join(s.dir, "clip.nv12") }

// enlarge repeats each sample of a plane in both directions.
func enlarge(to, plane []byte, width, bytesEach, times int) []byte {
	for line := range slices.Chunk(plane, width*bytesEach) {
		var wide []byte
		for sample := range slices.Chunk(line, bytesEach) {
			for range times {
				wide = append(wide, sample...)
			}
		}
		for range times {
			to = append(to, wide...)
		}
	}
	return to
}

// rows returns the variants. Each row of yoctuned adds one optimisation to the previous
// row.
func (s *study) rows() []row {
	model := func(p *plan.Pipeline) *plan.PipelineStage { return &p.Stages[1] }
	steps := []struct {
		name string
		do   func(*plan.Pipeline)
	}{
		{"one frame at a time, preprocessing fused", func(p *plan.Pipeline) { p.Queue = plan.PipelineQueue{InFlight: 1, Capacity: 1} }},
		{"+ stages in parallel", func(p *plan.Pipeline) { p.Queue = plan.PipelineQueue{} }},
		{"+ the model on all processors", func(p *plan.Pipeline) { model(p).Model.Threads = runtime.NumCPU() }},
		{"+ batches of up to 4", func(p *plan.Pipeline) {
			model(p).Model.Batch = &plan.ModelBatch{Buckets: []int{1, 2, 4}, Delay: int64(5 * time.Millisecond)}
		}},
		{"+ one instance of the model per processor instead", func(p *plan.Pipeline) {
			model(p).Model.Batch, model(p).Model.Threads = nil, 1
			model(p).Instances = runtime.NumCPU()
		}},
		{"+ placement on all processors", func(p *plan.Pipeline) { p.CPUs = fmt.Sprintf("0-%d", runtime.NumCPU()-1) }},
		{"+ memory locked", func(p *plan.Pipeline) { p.Memory = &plan.PipelineMemory{Lock: true} }},
		{"+ large pages", func(p *plan.Pipeline) { p.Memory = &plan.PipelineMemory{Lock: true, HugePages: true} }},
		{"+ higher priority (nice -10)", func(p *plan.Pipeline) { p.Nice = new(-10) }},
	}
	rows := []row{
		{name: "Python, sequential", run: s.runPython("sequential", 1)},
		{name: "Python, one thread per step", run: s.runPython("threads", 1)},
		{name: "Python, sequential, the model on all processors", run: s.runPython("sequential", runtime.NumCPU())},
		{name: "Python, one thread per step, the model on all processors", run: s.runPython("threads", runtime.NumCPU())},
	}
	p := s.pipeline()
	for _, st := range steps {
		st.do(&p)
		rows = append(rows, row{name: "yoctune, " + st.name, run: s.runYoctuned(clone(p))})
	}
	p = s.pipeline()
	p.Source.Live = true
	return append(rows,
		row{name: fmt.Sprintf("camera at %d fps: Python, a thread reads, the newest frame is processed", liveRate), run: s.runPython("live", 1), live: true},
		row{name: fmt.Sprintf("camera at %d fps: yoctune, as for a live source", liveRate), run: s.runYoctuned(p), live: true},
	)
}

// liveRate is the rate of the paced camera, in frames per second: below that of one thread, so that the latency is that
// of the work and not of a queue.
const liveRate = 25

func clone(p plan.Pipeline) plan.Pipeline {
	p.Stages = slices.Clone(p.Stages)
	for i, st := range p.Stages {
		if st.Model != nil {
			m := *st.Model
			p.Stages[i].Model = &m
		}
	}
	return p
}

// pipeline returns the pipeline of examples/video-analytics for the enlarged frames.
func (s *study) pipeline() plan.Pipeline {
	half := []string{"0.5", "0.5", "0.5"}
	return plan.Pipeline{
		Source: plan.PipelineSource{Kind: "file", Path: s.path(), Format: "nv12", Width: clipWidth * s.scale, Height: clipHeight * s.scale, FPSNum: liveRate, FPSDen: 1},
		Stages: []plan.PipelineStage{
			{ID: "frame", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{
				Width: 320, Height: 48, Fit: "letterbox", Layout: "nchw", Color: "bgr", DType: "f32", Pad: 128, Mean: half, Std: half,
			}},
			{ID: "read", Kind: "model", Input: "frame", Model: &plan.Model{Path: modelFile, Threads: 1}},
			{ID: "text", Kind: "postprocess", Input: "read", Post: &plan.Post{Kind: "ctc", Labels: labelFile, Threshold: "0.5"}},
		},
		Sink: plan.PipelineSink{Kind: "ndjson"},
	}
}

// runYoctuned runs a pipeline in yoctuned.
func (s *study) runYoctuned(p plan.Pipeline) func(int) (figures, error) {
	return func(frames int) (figures, error) {
		pl := plan.Plan{Layer: "casestudy", Target: "host", Board: "orin-nano-8gb", Release: "scarthgap", Pipelines: map[string]plan.Pipeline{"labels": p}}
		if err := pl.Seal(); err != nil {
			return figures{}, err
		}
		data, err := pl.Encode()
		if err != nil {
			return figures{}, err
		}
		path := filepath.Join(s.dir, "plan.json")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return figures{}, err
		}
		var sum struct {
			Frames   struct{ Done int }
			Duration int64 `json:"duration_ns"`
			Latency  struct {
				Total  struct{ P50, P95 int64 }
				Stages stages
			} `json:"latency_ns"`
			Runtime struct {
				Locked *int64 `json:"locked_bytes"`
				Huge   *int64 `json:"hugepage_bytes"`
			}
		}
		f, err := s.runProgram(&sum, s.yoctuned, "pipeline", "run", path, "--models", s.models, "--frames", strconv.Itoa(frames), "--format", "json")
		f.frames, f.duration = sum.Frames.Done, time.Duration(sum.Duration)
		f.p50, f.p95 = time.Duration(sum.Latency.Total.P50), time.Duration(sum.Latency.Total.P95)
		f.stages = sum.Latency.Stages
		f.locked, f.huge = sum.Runtime.Locked, sum.Runtime.Huge
		return f, err
	}
}

// runPython runs the Python peer.
func (s *study) runPython(mode string, processors int) func(int) (figures, error) {
	return func(frames int) (figures, error) {
		var sum struct {
			Frames   int
			Duration int64 `json:"duration_ns"`
			P50      int64 `json:"p50_ns"`
			P95      int64 `json:"p95_ns"`
			Versions string
			Stages   stages
		}
		f, err := s.runProgram(&sum, s.python, s.peer, filepath.Join(s.models, modelFile), filepath.Join(s.models, labelFile), s.path(),
			strconv.Itoa(clipWidth*s.scale), strconv.Itoa(clipHeight*s.scale), strconv.Itoa(frames), mode, strconv.Itoa(processors), strconv.Itoa(liveRate))
		f.frames, f.duration, f.p50, f.p95 = sum.Frames, time.Duration(sum.Duration), time.Duration(sum.P50), time.Duration(sum.P95)
		s.versions, f.stages = sum.Versions, sum.Stages
		return f, err
	}
}

// runProgram runs a program that prints one JSON object per result and a summary at the end.
func (s *study) runProgram(summary any, name string, args ...string) (figures, error) {
	f := figures{texts: map[int]string{}}
	var out, errs bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "YOCTUNE_ORT_LIBRARY="+s.library)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return f, fmt.Errorf("%w: %s", err, errs.String())
	}
	f.doubts = strings.TrimSpace(errs.String())
	f.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	lines := bufio.NewScanner(&out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Type    string
			Frame   int
			Text    string
			Results []struct{ Text string }
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return f, err
		}
		switch {
		case line.Type == "summary":
			return f, json.Unmarshal(lines.Bytes(), summary)
		case len(line.Results) > 0:
			f.texts[line.Frame] = line.Results[0].Text
		default:
			f.texts[line.Frame] = line.Text
		}
	}
	return f, errors.Join(lines.Err(), errors.New("no summary"))
}

// measure runs a row once. A run of one frame measures the loading time.
func (s *study) measure(r *row) error {
	load, err := r.run(1)
	if err != nil {
		return err
	}
	f, err := r.run(s.frames)
	if err != nil {
		return err
	}
	if f.frames != s.frames && !r.live || f.duration <= 0 {
		return fmt.Errorf("only %d of %d frames were processed", f.frames, s.frames)
	}
	r.right, r.done = 0, f.frames
	for n, text := range f.texts {
		if text == s.truth[n%len(s.truth)] {
			r.right++
		}
	}
	if f.locked != nil && f.huge != nil {
		r.held = fmt.Sprintf("%d MiB locked, %d MiB of it on large pages", *f.locked>>20, *f.huge>>20)
	}
	if f.doubts != "" && !slices.Contains(r.doubts, f.doubts) {
		r.doubts = append(r.doubts, f.doubts)
	}
	cpu := float64(f.cpu - load.cpu)
	if rate := float64(f.frames) / f.duration.Seconds(); len(r.fps) == 0 || rate > slices.Max(r.fps) {
		r.stages = f.stages
	}
	r.fps = append(r.fps, float64(f.frames)/f.duration.Seconds())
	r.p50, r.p95 = append(r.p50, float64(f.p50)/1e6), append(r.p95, float64(f.p95)/1e6)
	r.cpu = append(r.cpu, cpu/1e6/float64(max(f.frames-1, 1)))
	r.busy = append(r.busy, 100*cpu/float64(f.duration)/float64(runtime.NumCPU()))
	return nil
}

func (s *study) table(w io.Writer, rows []row, rounds int) {
	fmt.Fprintf(w, "# Case study: labels of a line camera, optimisations one by one\n\n")
	fmt.Fprintf(w, "%d frames of %d×%d NV12, PP-OCRv4 recogniser (320×48), %d processors, no GPU. The best of %d rounds with interleaved rows: the machine is shared, and other programs only make a row slower.\n",
		s.frames, clipWidth*s.scale, clipHeight*s.scale, runtime.NumCPU(), rounds)
	fmt.Fprintf(w, "Peer: %s; yoctune with %s.\n\n", s.versions, filepath.Base(s.library))
	fmt.Fprintf(w, "| | fps | × | p50 ms | p95 ms | CPU ms per frame | busy processors | energy per frame | correct |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	base := slices.Max(rows[0].fps)
	for _, r := range rows {
		fps := slices.Max(r.fps)
		fmt.Fprintf(w, "| %s | %.1f | %.2f | %.1f | %.1f | %.2f | %.0f %% | unknown | %d of %d |\n",
			r.name, fps, fps/base, slices.Min(r.p50), slices.Min(r.p95), slices.Min(r.cpu), slices.Max(r.busy), r.right, r.done)
	}
	fmt.Fprintf(w, "\nLatency is the time from the capture of a frame to its result. The file source keeps all queues full, so a longer pipeline has a longer latency. ")
	fmt.Fprintf(w, "All rows of yoctune use fused preprocessing: one pass from NV12 to the tensor, where Python needs five. ")
	fmt.Fprintf(w, "Energy per frame: %s. Pinned and mapped GPU memory: not measured, because the machine has no GPU.\n", whyNoEnergy())
	fmt.Fprintf(w, "\nWhere the time of a frame goes, in ms (p50 of the run with the highest rate; frame is preprocessing, read is the model):\n\n")
	for _, r := range rows {
		fmt.Fprintf(w, "- %s: %s\n", r.name, r.stages)
	}
	fmt.Fprintf(w, "\n%s", seedTable)
	for _, r := range rows {
		if r.held != "" {
			fmt.Fprintf(w, "\n%s: %s.\n", r.name, r.held)
		}
		for _, d := range r.doubts {
			fmt.Fprintf(w, "\n%s: %s\n", r.name, d)
		}
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		if a, err := unix.SchedGetAttr(0, 0); err == nil && (a.Policy == unix.SCHED_RR || a.Policy == unix.SCHED_FIFO) {
			fmt.Fprintf(w, "\nAll rows ran with a real-time policy (chrt), which keeps the other programs of the machine from their processors.\n")
		}
		fmt.Fprintf(w, "\nLoad average at the end: %s; at the beginning: %s.\n", strings.Join(strings.Fields(string(load))[:3], " "), s.load)
	}
}

// seedTable maps the optimisations of the usual account of such a pipeline on a Jetson (15 to 30 fps on 4K video) to
// rows of this one.
const seedTable = `| optimisation on a GPU | row here |
|---|---|
| streams for parallel transfers (15 %) | stages in parallel; no transfers without a GPU |
| unified memory with prefetch (10 %) | none: one memory; locked memory and large pages are its counterpart |
| kernels in place of OpenCV's operations (30 %) | preprocessing fused, beside OpenCV's in the rows of Python |
| batches of the best size (25 %) | batches of up to 4, and one instance per processor instead |
| power mode and clocks (10 %) | priority and placement; a virtual machine has no power modes or clocks |
| utilisation 45 to 85 % | busy processors |
| power 25 to 22 W | unknown: no sensor |
| latency 66 to 33 ms | the rows of the camera |
`

// whyNoEnergy explains why the energy is unknown.
func whyNoEnergy() string {
	for _, pattern := range []string{"/sys/class/hwmon/hwmon*/power*_input", "/sys/class/hwmon/hwmon*/in*_label", "/sys/class/powercap/*/energy_uj"} {
		if files, err := filepath.Glob(pattern); err == nil && len(files) > 0 {
			return "unknown, " + files[0] + " also measures other programs"
		}
	}
	return "unknown, this machine has no power sensor"
}
