// Package measurement holds what measuring models takes and gives: a request with an original
// and its candidates, the record of a run on one device, and the metrics of accuracy.
//
// Records are canonical JSON: times in nanoseconds, memory in bytes, energy in microjoules. A
// value that could not be measured is absent.
package measurement

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Formats of the two documents.
const (
	RequestSchema = "yoctune.measure/1"
	Schema        = "yoctune.measurement/1"
)

// Limits of a request and a record.
const (
	MaxSize     = 256 << 20 // bytes of a record
	MaxModels   = 64
	MaxBatches  = 16
	MaxBatch    = 256
	MaxExamples = 100_000
	MaxRounds   = 1000
)

// ErrFormat is wrapped by errors of documents that are not of this format.
var ErrFormat = errors.New("not a measurement")

// Request asks a device to measure models. Files are names without folders, beside the request.
type Request struct {
	Schema    string         `json:"$schema"`
	Models    []RequestModel `json:"models"`             // the first is the original
	Examples  string         `json:"examples,omitempty"` // file of the labelled set; "": random inputs, and no accuracy
	Metric    string         `json:"metric,omitempty"`   // see [Metrics]
	Head      string         `json:"head,omitempty"`     // of a detector, with metric map
	Batches   []int          `json:"batches"`            // examples in one run, ascending
	Threads   int            `json:"threads,omitempty"`  // 0: one per core
	Providers []string       `json:"providers,omitempty"`
	Precision string         `json:"precision,omitempty"` // of TensorRT engines: fp32, fp16; "": fp32
	Workspace int64          `json:"workspace,omitempty"` // bytes that TensorRT may use to build one, 0: its own choice
	Rounds    int            `json:"rounds"`              // models take turns
	Runs      int            `json:"runs"`                // of each model in a round
	Limit     int64          `json:"limit"`               // time limit of each model, ns
}

// RequestModel is a model of a request.
type RequestModel struct {
	Name   string `json:"name"`
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

// Record is the result of a request.
type Record struct {
	Schema   string    `json:"$schema"`
	Request  string    `json:"request"` // SHA-256 of the request's canonical JSON
	Created  string    `json:"created"` // RFC 3339, UTC
	Device   Device    `json:"device"`
	Runtime  Runtime   `json:"runtime"`
	Examples *Examples `json:"examples,omitempty"` // nil: random inputs
	Metric   string    `json:"metric,omitempty"`
	Rounds   int       `json:"rounds"`
	Runs     int       `json:"runs"`
	Models   []Model   `json:"models"` // the first is the original
}

// Device is what identifies a device and its state.
type Device struct {
	Identities []string `json:"identities"` // the device tree's compatible, and the firmware's product
	Model      string   `json:"model,omitempty"`
	Kernel     string   `json:"kernel,omitempty"`
	L4T        string   `json:"l4t,omitempty"`
	CPU        string   `json:"cpu,omitempty"`
	Cores      int      `json:"cores"`
	PowerMode  string   `json:"power_mode,omitempty"`
	Governor   string   `json:"governor,omitempty"`
}

// Runtime is what ran the models.
type Runtime struct {
	Yoctuned    string   `json:"yoctuned"`
	ONNXRuntime string   `json:"onnxruntime"`
	Providers   []string `json:"providers"`           // that were allowed, best first
	Threads     int      `json:"threads"`             // 0: one per core
	Precision   string   `json:"precision,omitempty"` // of TensorRT engines, as in the request
	Workspace   int64    `json:"workspace,omitempty"` // as in the request
}

// Examples is the labelled set.
type Examples struct {
	SHA256 string `json:"sha256"`
	Count  int    `json:"count"`
}

// Model is the result of one model.
type Model struct {
	Name     string  `json:"name"`
	SHA256   string  `json:"sha256"`
	Bytes    int64   `json:"bytes"`
	Weights  string  `json:"weights,omitempty"`  // "generated": made for the measurement, not trained
	Provider string  `json:"provider,omitempty"` // that ran it
	Missing  string  `json:"missing,omitempty"`  // why the first provider did not run it
	Memory   *int64  `json:"memory,omitempty"`   // growth of the process at its peak
	Failed   string  `json:"failed,omitempty"`   // why it was not measured
	Batches  []Batch `json:"batches"`
}

// Batch is a model at one batch size.
type Batch struct {
	Batch  int       `json:"batch"`
	Times  [][]int64 `json:"times"`            // of one run, by round
	Energy *int64    `json:"energy,omitempty"` // of the whole module, for one example
	Scores []Example `json:"scores,omitempty"` // by example
	Failed string    `json:"failed,omitempty"`
}

// Example is what a metric counts for one example; see [Metric].
type Example struct {
	Counts     []int64    `json:"c,omitempty"`
	Detections [][3]int64 `json:"d,omitempty"` // class, score in millionths, thresholds of overlap that it meets, bit by bit
	Objects    [][2]int64 `json:"o,omitempty"` // class, number of labelled objects
}

// DecodeRequest reads a request. The error wraps [ErrFormat].
func DecodeRequest(data []byte) (*Request, error) {
	r := &Request{}
	if err := decode(data, RequestSchema, r); err != nil {
		return nil, err
	}
	switch {
	case len(r.Models) == 0 || len(r.Models) > MaxModels:
		return nil, invalid("%d models: 1 to %d are measured", len(r.Models), MaxModels)
	case len(r.Batches) == 0 || len(r.Batches) > MaxBatches || !slices.IsSorted(r.Batches) || r.Batches[0] < 1 || r.Batches[len(r.Batches)-1] > MaxBatch:
		return nil, invalid("batches %v: list 1 to %d sizes from 1 to %d, ascending", r.Batches, MaxBatches, MaxBatch)
	case r.Rounds < 1 || r.Rounds > MaxRounds || r.Runs < 1 || r.Runs > MaxRounds:
		return nil, invalid("%d rounds of %d runs: each is 1 to %d", r.Rounds, r.Runs, MaxRounds)
	case r.Limit < 1:
		return nil, invalid("the time limit is missing")
	case r.Threads < 0 || r.Threads > 256:
		return nil, invalid("%d threads", r.Threads)
	case r.Precision != "" && r.Precision != "fp32" && r.Precision != "fp16":
		return nil, invalid("unknown precision %.40q", r.Precision)
	case r.Workspace < 0:
		return nil, invalid("a workspace of %d bytes", r.Workspace)
	case (r.Metric == "") != (r.Examples == ""):
		return nil, invalid("a labelled set and a metric belong together")
	}
	if r.Metric != "" {
		if _, ok := MetricOf(r.Metric); !ok {
			return nil, invalid("unknown metric %.40q; known are %v", r.Metric, Metrics())
		}
	}
	files := []string{r.Examples}
	for _, m := range r.Models {
		if m.Name == "" || m.File == "" {
			return nil, invalid("a model without a name or a file")
		}
		files = append(files, m.File)
	}
	for _, f := range files {
		if f != "" && !isPlain(f) {
			return nil, invalid("file %.60q is not the plain name of a file", f)
		}
	}
	return r, nil
}

// isPlain reports whether a name has neither a folder nor anything that a shell acts on.
func isPlain(name string) bool {
	for i, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-' && i > 0, c == '.' && i > 0:
		default:
			return false
		}
	}
	return name != "" && len(name) <= 200
}

// Decode reads a record and checks what a judgement relies on. The error wraps [ErrFormat].
func Decode(data []byte) (*Record, error) {
	r := &Record{}
	if err := decode(data, Schema, r); err != nil {
		return nil, err
	}
	if len(r.Models) == 0 || len(r.Models) > MaxModels {
		return nil, invalid("it has %d models", len(r.Models))
	}
	metric, known := MetricOf(r.Metric)
	if r.Metric != "" && !known {
		return nil, invalid("unknown metric %.40q", r.Metric)
	}
	if known && (r.Examples == nil || r.Examples.Count < 1 || r.Examples.Count > MaxExamples) {
		return nil, invalid("a metric without examples")
	}
	for _, m := range r.Models {
		if m.Failed != "" {
			continue
		}
		if m.Bytes < 1 || len(m.Batches) == 0 || len(m.Batches) > MaxBatches || m.Memory != nil && *m.Memory < 0 {
			return nil, invalid("model %.60q was not measured", m.Name)
		}
		for _, b := range m.Batches {
			if b.Failed != "" {
				continue
			}
			if err := b.check(r, metric); err != nil {
				return nil, fmt.Errorf("model %.60q, batch %d: %w", m.Name, b.Batch, err)
			}
		}
	}
	return r, nil
}

func (b *Batch) check(r *Record, metric Metric) error {
	if b.Batch < 1 || b.Batch > MaxBatch || len(b.Times) != r.Rounds || len(b.Times) == 0 {
		return invalid("%d rounds, and the record has %d", len(b.Times), r.Rounds)
	}
	for _, round := range b.Times {
		if len(round) != r.Runs || len(round) == 0 {
			return invalid("a round of %d runs", len(round))
		}
		for _, t := range round {
			if t < 1 {
				return invalid("a run of %d ns", t)
			}
		}
	}
	if metric.Name == "" {
		return nil
	}
	if len(b.Scores) != r.Examples.Count {
		return invalid("%d scores of %d examples", len(b.Scores), r.Examples.Count)
	}
	for _, s := range b.Scores {
		if len(s.Counts) != metric.counts {
			return invalid("a score of metric %s with %d values", metric.Name, len(s.Counts))
		}
	}
	return nil
}

// Find returns the result at a batch size, nil if there is none.
func (m *Model) Find(batch int) *Batch {
	for i := range m.Batches {
		if m.Batches[i].Batch == batch {
			return &m.Batches[i]
		}
	}
	return nil
}

func decode(data []byte, schema string, into any) error {
	if len(data) > MaxSize {
		return invalid("larger than %d MiB", MaxSize>>20)
	}
	var head struct {
		Schema string `json:"$schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return invalid("%v", err)
	}
	if head.Schema != schema {
		return invalid("its $schema is %.60q, and this program reads %q", head.Schema, schema)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return invalid("%v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid("something follows it")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// LibraryVariable is the environment variable with the ONNX Runtime library that yoctuned takes where
// none is named or installed: yoctune passes that of the Python environment, which makes candidates.
const LibraryVariable = "YOCTUNE_ORT_FALLBACK"

// RequestFile is the name of a request beside its files.
const RequestFile = "request.json"

// MetricName is the metric of a record, "metric" where there is none.
func (r *Record) MetricName() string { return cmp.Or(r.Metric, "metric") }

// Accuracy is the metric of a batch over all examples.
func (r *Record) Accuracy(b *Batch) (float64, bool) {
	m, ok := MetricOf(r.Metric)
	if !ok || len(b.Scores) == 0 {
		return 0, false
	}
	pick := make([]int, len(b.Scores))
	for i := range pick {
		pick[i] = i
	}
	return m.Value(b.Scores, pick)
}

// sorted returns the times of all runs, ascending.
func (b *Batch) sorted() []int64 {
	var all []int64
	for _, round := range b.Times {
		all = append(all, round...)
	}
	slices.Sort(all)
	return all
}

// Percentile is a percentile, 1 to 100, of the time of a run in ns; 0 without runs.
func (b *Batch) Percentile(p int) int64 {
	all := b.sorted()
	if len(all) == 0 {
		return 0
	}
	return all[min(len(all)-1, (len(all)*p+99)/100-1)]
}

// Rate is the number of examples a second, by the median run.
func (b *Batch) Rate() float64 {
	t := b.Percentile(50)
	if t == 0 {
		return 0
	}
	return float64(b.Batch) * 1e9 / float64(t)
}
