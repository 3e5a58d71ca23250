// Package evidence holds why a model of an image is the original or an optimised one: what was
// measured, on which device, and by which criteria it was judged. The file lies beside the model, in
// canonical JSON; numbers with a fraction are decimal text.
package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/formats/measurement"
)

// Schema is the format of the file.
const Schema = "yoctune.evidence/1"

// MaxSize bounds a file, in bytes.
const MaxSize = 4 << 20

// ErrFormat is wrapped by the errors of files of another format.
var ErrFormat = errors.New("not evidence")

// Evidence is the judgement of an original and its candidates.
type Evidence struct {
	Schema      string              `json:"$schema"`
	Model       string              `json:"model"`  // under models
	Target      string              `json:"target"` // of the configuration
	Source      File                `json:"source"` // the original
	Device      measurement.Device  `json:"device"`
	Runtime     measurement.Runtime `json:"runtime"`
	Accept      Accept              `json:"accept"`
	Examples    string              `json:"examples"` // SHA-256 of the labelled set
	Count       int                 `json:"count"`
	Measurement Measurement         `json:"measurement"`
	Candidates  []Candidate         `json:"candidates"` // the original first
	Chosen      *File               `json:"chosen"`     // nil: the original stays
}

// File is a model beside the evidence.
type File struct {
	Name   string `json:"name"` // of a candidate, "original"
	File   string `json:"file"` // without a folder
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// Accept is the criteria.
type Accept struct {
	Metric     string `json:"metric"`
	MaxLoss    string `json:"max_loss"`
	MinSpeedup string `json:"min_speedup"`
	MaxMemory  int64  `json:"max_memory,omitempty"` // bytes, 0: any
	Batches    []int  `json:"batches"`
}

// NewAccept writes criteria; a maxMemory of 0 is any.
func NewAccept(metric string, maxLoss, minSpeedup float64, maxMemory int64, batches []int) Accept {
	return Accept{metric, Decimal(maxLoss), Decimal(minSpeedup), maxMemory, batches}
}

// Decimal writes a number with four decimals.
func Decimal(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }

// Equal compares criteria.
func (a Accept) Equal(b Accept) bool {
	return a.Metric == b.Metric && a.MaxLoss == b.MaxLoss && a.MinSpeedup == b.MinSpeedup && a.MaxMemory == b.MaxMemory && slices.Equal(a.Batches, b.Batches)
}

// Measurement is the record that was judged.
type Measurement struct {
	SHA256  string `json:"sha256"`
	Created string `json:"created"`
	By      string `json:"by"` // how it came: "local", "ssh HOST", "key ID"
}

// Candidate is a model and its verdict.
type Candidate struct {
	File
	Accepted bool              `json:"accepted"`
	Reason   string            `json:"reason"`
	Notes    map[string]string `json:"notes,omitempty"` // of the program that made it
	Memory   *int64            `json:"memory,omitempty"`
	Provider string            `json:"provider,omitempty"` // that ran it
	Batches  []Batch           `json:"batches"`
}

// Batch is a candidate at one batch size.
type Batch struct {
	Batch   int       `json:"batch"`
	P50     int64     `json:"p50"` // ns
	P95     int64     `json:"p95"`
	P99     int64     `json:"p99"`
	Rate    string    `json:"rate"`              // examples a second
	Metric  string    `json:"metric"`            // "" if it is not known
	Loss    *Interval `json:"loss,omitempty"`    // of the metric, against the original at the first batch
	Speedup *Interval `json:"speedup,omitempty"` // against the original at this batch
	Energy  *int64    `json:"energy,omitempty"`  // of an example, in microjoules
}

// Interval is an estimate with the bounds of its 95 % confidence interval.
type Interval struct {
	Low  string `json:"low"`
	Mid  string `json:"mid"`
	High string `json:"high"`
}

// Decode reads evidence. The error wraps [ErrFormat].
func Decode(data []byte) (*Evidence, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("%w: larger than %d MiB", ErrFormat, MaxSize>>20)
	}
	e := &Evidence{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if e.Schema != Schema {
		return nil, fmt.Errorf("%w: its $schema is %.60q, and this program reads %q", ErrFormat, e.Schema, Schema)
	}
	if len(e.Candidates) == 0 || e.Candidates[0].SHA256 != e.Source.SHA256 {
		return nil, fmt.Errorf("%w: its first candidate is not the original", ErrFormat)
	}
	if e.Chosen == nil {
		return e, nil
	}
	if !slices.ContainsFunc(e.Candidates, func(c Candidate) bool { return c.Accepted && c.File == *e.Chosen }) {
		return nil, fmt.Errorf("%w: what it chooses was not accepted", ErrFormat)
	}
	if e.Chosen.File == "" || path.Base(e.Chosen.File) != e.Chosen.File || strings.ContainsFunc(e.Chosen.File, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("%w: %.60q is not the name of a file beside it", ErrFormat, e.Chosen.File)
	}
	return e, nil
}

// Path is where the evidence of a target lies beside the source of a model.
func Path(source, target string) string {
	return strings.TrimSuffix(source, ".onnx") + "." + target + ".evidence.json"
}

// CandidatePath is where a candidate lies.
func CandidatePath(source, target, name string) string {
	return strings.TrimSuffix(source, ".onnx") + "." + target + "." + name + ".onnx"
}
