package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/outfile"
)

// schema is the $schema of baselines.
const schema = "yoctune.bench/1"

// maxBaseline is the largest accepted file, in bytes.
const maxBaseline = 64 << 20

// errBaseline means that a file is not a baseline.
var errBaseline = errors.New("not a baseline")

// baseline is a report with all samples.
type baseline struct {
	Schema  string    `json:"$schema"`
	Created time.Time `json:"created"`
	Report
	Measurements []Measurement `json:"measurements"`
}

// Save writes a report as a baseline. The file is replaced atomically.
func Save(path string, r *Report) error {
	data, err := json.MarshalIndent(baseline{Schema: schema, Created: time.Now().UTC(), Report: *r, Measurements: r.Measurements}, "", " ")
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	if err := outfile.Write(path, append(data, '\n')); err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	return nil
}

// Load reads a baseline.
func Load(path string) (*Report, error) {
	data, err := infile.Read(path, maxBaseline)
	if err != nil {
		return nil, fmt.Errorf("read the baseline: %w", err)
	}
	r, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func parse(data []byte) (*Report, error) {
	var b baseline
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&b); err != nil {
		return nil, fmt.Errorf("%w: %w", errBaseline, err)
	}
	if b.Schema != schema {
		return nil, fmt.Errorf("%w: $schema is %q, want %q; save a new baseline with --save-baseline", errBaseline, b.Schema, schema)
	}
	for _, m := range b.Measurements {
		for _, t := range append(append([]int64{m.P50}, m.Times...), m.ReferenceTimes...) {
			if t < 0 {
				return nil, fmt.Errorf("%w: %s took %d ns", errBaseline, m.Name, t)
			}
		}
	}
	b.Report.Measurements = b.Measurements
	return &b.Report, nil
}

// Differences lists why two runs cannot be compared: a different device, driver or clock
// setting. A value that is unknown in either run is not compared.
func Differences(base, now *Report) []string {
	var out []string
	differ := func(what, before, after string) {
		if before != after {
			out = append(out, fmt.Sprintf("%s: %s in the baseline, %s now", what, before, after))
		}
	}
	differ("backend", base.Device.Backend, now.Device.Backend)
	differ("device", base.Device.Name, now.Device.Name)
	compareKnown(differ, "cores", base.Device.Cores, now.Device.Cores)
	compareKnown(differ, "driver", base.Device.Driver, now.Device.Driver)
	compareKnown(differ, "highest CPU clock in Hz", base.After.CPUMax, now.After.CPUMax)
	compareKnown(differ, "highest GPU clock in Hz", base.After.GPUMax, now.After.GPUMax)
	compareKnown(differ, "memory clock in Hz", base.After.Memory, now.After.Memory)
	compareKnown(differ, "power mode", base.After.PowerMode, now.After.PowerMode)
	compareKnown(differ, "CPU governor", base.After.Governor, now.After.Governor)
	return out
}

// compareKnown calls differ if both values are known.
func compareKnown[T any](differ func(what, before, after string), what string, before, after *T) {
	if before != nil && after != nil {
		differ(what, fmt.Sprint(*before), fmt.Sprint(*after))
	}
}
