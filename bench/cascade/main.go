// Command cascade compares the cascade of examples/cascade, which finds labels and reads each of them,
// with the same in Python: frames per second and latency, all crops of a frame in one run against a run
// per crop.
//
//	make build && scripts/setup.sh models peer
//	go run ./bench/cascade -o bench/results/$(date -u +%F)-cascade.md
//
// Every row processes the same frames, and its texts are compared with the true labels. The rows run in
// turn in every round; the figures are the best of the rounds.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
)

// Geometry of the shipped clip, in pixels, and its number of frames.
const (
	clipWidth  = 320
	clipHeight = 192
	clipFrames = 5
)

// Models and alphabet, installed by tests/models/fetch.sh.
const (
	detector   = "ch_PP-OCRv4_det_infer.onnx"
	recogniser = "ch_PP-OCRv4_rec_infer.onnx"
	characters = "ppocr_keys_v1.txt"
)

type bench struct {
	yoctuned, python, models, library, dir string
	frames, scale                          int
	truth                                  [][]string // labels of each frame of the clip
	versions                               string     // of the peer
}

// liveRate is the rate of the camera, below that of the work.
const liveRate = 5

// row is one variant.
type row struct {
	name     string
	run      func() (figures, error)
	best     figures
	right    int // frames with all labels
	measured bool
}

// figures are the measurements of a run.
type figures struct {
	Duration int64 `json:"duration_ns"`
	P50      int64 `json:"p50_ns"`
	P95      int64 `json:"p95_ns"`
	Versions string
	texts    [][]string // by frame
	stages   string     // median time in each stage
}

func main() {
	b := &bench{}
	flag.StringVar(&b.yoctuned, "yoctuned", "build/bin/yoctuned", "the program to measure")
	flag.StringVar(&b.python, "python", "build/peer-venv/bin/python", "interpreter with OpenCV and ONNX Runtime")
	flag.StringVar(&b.models, "models", "build/models", "directory of the models, labels and ONNX Runtime")
	flag.IntVar(&b.frames, "frames", 60, "frames of a run")
	flag.IntVar(&b.scale, "scale", 4, "factor by which frames are larger than those of the clip")
	rounds := flag.Int("rounds", 3, "runs of each row")
	out := flag.String("o", "", "file for the table; default: standard output")
	flag.Parse()
	table, err := b.main(*rounds)
	if err == nil && *out != "" {
		err = os.WriteFile(*out, table, 0o644)
	} else if err == nil {
		_, err = os.Stdout.Write(table)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cascade:", err)
		os.Exit(1)
	}
}

func (b *bench) main(rounds int) ([]byte, error) {
	libraries, err := filepath.Glob(filepath.Join(b.models, "*", "libonnxruntime.so.1.30.0"))
	if err != nil || len(libraries) != 1 {
		return nil, fmt.Errorf("ONNX Runtime in %s: %v; run scripts/setup.sh models", b.models, libraries)
	}
	b.library = libraries[0]
	if b.models, err = filepath.Abs(b.models); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "cascade-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(b.dir)
	if err := b.writeClip("examples/cascade/media"); err != nil {
		return nil, err
	}
	load := loadAverage()
	rows := b.rows()
	for round := range rounds {
		for i := range rows {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, rounds, rows[i].name)
			if err := b.measure(&rows[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", rows[i].name, err)
			}
		}
	}
	return b.table(rows, rounds, load), nil
}

func loadAverage() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(load))[:3], " ")
}

func (b *bench) clip() string { return filepath.Join(b.dir, "clip.grey") }

// writeClip writes the enlarged frames, repeated up to the number of a run.
func (b *bench) writeClip(media string) error {
	small, err := os.ReadFile(filepath.Join(media, "belt.grey"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(media, "belt.txt"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		labels := strings.Fields(line)
		slices.Sort(labels)
		b.truth = append(b.truth, labels)
	}
	if len(small) != clipFrames*clipWidth*clipHeight || len(b.truth) != clipFrames {
		return fmt.Errorf("%s: %d bytes and %d lines are not %d frames", media, len(small), len(b.truth), clipFrames)
	}
	var all []byte
	for line := range slices.Chunk(small, clipWidth) {
		var wide []byte
		for _, v := range line {
			wide = append(wide, bytes.Repeat([]byte{v}, b.scale)...)
		}
		all = append(all, bytes.Repeat(wide, b.scale)...)
	}
	each := len(all) / clipFrames
	f, err := os.Create(b.clip())
	if err != nil {
		return err
	}
	defer f.Close()
	for n := range b.frames {
		if _, err := f.Write(all[n%clipFrames*each:][:each]); err != nil {
			return err
		}
	}
	return f.Close()
}

// rows returns the variants.
func (b *bench) rows() []row {
	cpus := runtime.NumCPU()
	alone := plan.PipelineQueue{InFlight: 1, Capacity: 1}
	each, batch := []int{1}, []int{1, 2, 4}
	return []row{
		{name: "Python, a run per crop, one thread", run: b.runPython("one", 1)},
		{name: "Python, all crops in one run, one thread", run: b.runPython("all", 1)},
		{name: "Python, a run per crop", run: b.runPython("one", cpus)},
		{name: "Python, all crops in one run", run: b.runPython("all", cpus)},
		{name: "yoctune, one frame at a time, a run per crop, one thread", run: b.runYoctuned(alone, each, 1, 0, false)},
		{name: "yoctune, one frame at a time, runs of 4, 2 and 1 crops, one thread", run: b.runYoctuned(alone, batch, 1, 0, false)},
		{name: "yoctune, one frame at a time, a run per crop", run: b.runYoctuned(alone, each, cpus, 0, false)},
		{name: "yoctune, one frame at a time, a run per crop, threads spin as in Python", run: b.runYoctuned(alone, each, cpus, 0, true)},
		{name: "yoctune, one frame at a time, runs of 4, 2 and 1 crops", run: b.runYoctuned(alone, batch, cpus, 0, false)},
		{name: "yoctune, stages in parallel, a run per crop, one thread each", run: b.runYoctuned(plan.PipelineQueue{}, each, 1, 0, false)},
		{name: "yoctune, stages in parallel, runs of 4, 2 and 1 crops, one thread each", run: b.runYoctuned(plan.PipelineQueue{}, batch, 1, 0, false)},
		{name: fmt.Sprintf("yoctune, a camera at %d fps, a run per crop", liveRate), run: b.runYoctuned(plan.PipelineQueue{Capacity: 4}, each, cpus, liveRate, false)},
		{name: fmt.Sprintf("yoctune, a camera at %d fps, a run per crop, threads spin as in Python", liveRate), run: b.runYoctuned(plan.PipelineQueue{Capacity: 4}, each, cpus, liveRate, true)},
	}
}

func (b *bench) runPython(batch string, threads int) func() (figures, error) {
	return func() (f figures, err error) {
		out, err := b.output(b.python, "bench/cascade/peer.py", filepath.Join(b.models, detector), filepath.Join(b.models, recogniser), filepath.Join(b.models, characters),
			b.clip(), strconv.Itoa(clipWidth*b.scale), strconv.Itoa(clipHeight*b.scale), strconv.Itoa(b.frames), batch, strconv.Itoa(threads))
		if err != nil {
			return f, err
		}
		for _, line := range out[:len(out)-1] {
			var r struct{ Texts []string }
			if err := json.Unmarshal(line, &r); err != nil {
				return f, err
			}
			f.texts = append(f.texts, r.Texts)
		}
		err = json.Unmarshal(out[len(out)-1], &f)
		b.versions = f.Versions
		return f, err
	}
}

// runYoctuned runs the pipeline of the example on the enlarged frames, as fast as it can or with a live
// source of a rate.
func (b *bench) runYoctuned(queue plan.PipelineQueue, buckets []int, threads, live int, spin bool) func() (figures, error) {
	half := []string{"0.5", "0.5", "0.5"}
	p := plan.Pipeline{
		Source: plan.PipelineSource{Kind: "file", Path: b.clip(), Format: "grey", Width: clipWidth * b.scale, Height: clipHeight * b.scale, FPSNum: max(live, 1), FPSDen: 1, Live: live > 0},
		Queue:  queue, Sink: plan.PipelineSink{Kind: "ndjson"},
		Stages: []plan.PipelineStage{
			{ID: "frame", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{
				Width: clipWidth, Height: clipHeight, Color: "bgr", Mean: []string{"0.485", "0.456", "0.406"}, Std: []string{"0.229", "0.224", "0.225"},
			}},
			{ID: "find", Kind: "model", Input: "frame", Model: &plan.Model{Path: detector, Threads: threads, Spinning: spin}},
			{ID: "labels", Kind: "postprocess", Input: "find", Post: &plan.Post{Kind: "regions", Threshold: "0.5"}},
			{ID: "crops", Kind: "roi", Input: "labels", ROI: &plan.ROI{Width: 320, Height: 48, Fit: "letterbox", Color: "bgr", Pad: 128, Mean: half, Std: half, Count: 6, Margin: "0.05"}},
			{ID: "read", Kind: "model", Input: "crops", Model: &plan.Model{Path: recogniser, Threads: threads, Spinning: spin, Batch: &plan.ModelBatch{Buckets: buckets}}},
			{ID: "text", Kind: "postprocess", Input: "read", Post: &plan.Post{Kind: "ctc", Labels: characters, Threshold: "0.5"}},
		},
	}
	return func() (f figures, err error) {
		pl := plan.Plan{Layer: "cascade", Target: "host", Board: "orin-nano-8gb", Release: "scarthgap", Pipelines: map[string]plan.Pipeline{"belt": p}}
		if err := pl.Seal(); err != nil {
			return f, err
		}
		data, err := pl.Encode()
		if err != nil {
			return f, err
		}
		path := filepath.Join(b.dir, "plan.json")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return f, err
		}
		out, err := b.output(b.yoctuned, "pipeline", "run", path, "--models", b.models, "--format", "json")
		if err != nil {
			return f, err
		}
		for _, line := range out[:len(out)-1] {
			var r struct {
				Results []struct {
					Then map[string][]struct{ Text string }
				}
			}
			if err := json.Unmarshal(line, &r); err != nil {
				return f, err
			}
			var texts []string
			for _, box := range r.Results {
				for _, t := range box.Then["text"] {
					texts = append(texts, t.Text)
				}
			}
			f.texts = append(f.texts, texts)
		}
		var sum struct {
			Duration int64 `json:"duration_ns"`
			Latency  struct {
				Total  struct{ P50, P95 int64 }
				Stages map[string]struct{ Service struct{ P50 int64 } }
			} `json:"latency_ns"`
		}
		err = json.Unmarshal(out[len(out)-1], &sum)
		f.Duration, f.P50, f.P95 = sum.Duration, sum.Latency.Total.P50, sum.Latency.Total.P95
		for _, id := range []string{"source", "frame", "find", "labels", "crops", "read", "text", "sink"} {
			f.stages += fmt.Sprintf(" %s %.2f", id, float64(sum.Latency.Stages[id].Service.P50)/1e6)
		}
		return f, err
	}
}

// output returns the lines that a program prints; the last is its summary.
func (b *bench) output(name string, args ...string) ([][]byte, error) {
	var errs bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "YOCTUNE_ORT_LIBRARY="+b.library)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, errs.String())
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != b.frames+1 {
		return nil, fmt.Errorf("%d lines for %d frames", len(lines), b.frames)
	}
	return lines, nil
}

// measure runs a row once and keeps the best run.
func (b *bench) measure(r *row) error {
	f, err := r.run()
	if err != nil {
		return err
	}
	if r.measured && f.Duration >= r.best.Duration {
		return nil
	}
	r.best, r.right, r.measured = f, 0, true
	for n, texts := range f.texts {
		slices.Sort(texts)
		if slices.Equal(texts, b.truth[n%clipFrames]) {
			r.right++
		}
	}
	return nil
}

func (b *bench) table(rows []row, rounds int, load string) []byte {
	var w bytes.Buffer
	fmt.Fprintf(&w, "# A cascade: find labels, then read each of them\n\n")
	fmt.Fprintf(&w, "%d frames of %d×%d grey pixels with none to four labels, two on average: PP-OCRv4's detector on %d×%d, then its recogniser on crops of 320×48. %d processors, no GPU. The best of %d rounds with interleaved rows.\n",
		b.frames, clipWidth*b.scale, clipHeight*b.scale, clipWidth, clipHeight, runtime.NumCPU(), rounds)
	fmt.Fprintf(&w, "Peer: %s; yoctune with %s.\n\n", b.versions, filepath.Base(b.library))
	fmt.Fprintf(&w, "| | fps | × | p50 ms | p95 ms | frames with every label right |\n|---|--:|--:|--:|--:|--:|\n")
	rate := func(r row) float64 { return float64(b.frames) / time.Duration(r.best.Duration).Seconds() }
	for _, r := range rows {
		fmt.Fprintf(&w, "| %s | %.1f | %.2f | %.1f | %.1f | %d of %d |\n", r.name, rate(r), rate(r)/rate(rows[0]), float64(r.best.P50)/1e6, float64(r.best.P95)/1e6, r.right, b.frames)
	}
	fmt.Fprintf(&w, "\nLatency is from the capture of a frame to its result. A file is read ahead and keeps the queues full; the camera shows the\nlatency of the work, as the rows of Python do. Models run on all processors where the row has no number of threads.\n\nMedian time of each stage in ms:\n\n")
	for _, r := range rows {
		if r.best.stages != "" {
			fmt.Fprintf(&w, "- %s:%s\n", r.name, r.best.stages)
		}
	}
	fmt.Fprintf(&w, "\nLoad average at the beginning: %s; at the end: %s.\n", load, loadAverage())
	return w.Bytes()
}
