package monitor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// ErrRecording is wrapped by errors about a file that is not a recording.
var ErrRecording = errors.New("not a recording of yoctuned monitor")

// maxLine bounds one sample of a recording, in bytes.
const maxLine = 1 << 20

// maxSamples bounds the memory of a summary: a week with one sample a second.
const maxSamples = 7 * 24 * 3600

// Read calls each for every sample of a recording in NDJSON and skips lines of other types. It
// drops an incomplete last line, the result of a power loss.
func Read(r io.Reader, each func(*Sample) error) error {
	buf := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(buf)
		if errors.Is(err, io.EOF) {
			if n == 1 {
				return fmt.Errorf("%w: it has no complete line", ErrRecording)
			}
			return nil
		} else if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var head struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(line, &head); err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrRecording, n, err)
		}
		if head.Type != "sample" {
			continue
		}
		s := &Sample{}
		if err := json.Unmarshal(line, s); err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrRecording, n, err)
		}
		if err := each(s); err != nil {
			return err
		}
	}
}

// readLine returns a complete line.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("%w: longer than %d bytes", ErrRecording, maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// Series is the statistics of a value over a recording. N is the number of samples in which
// the value was known.
type Series struct {
	Type string  `json:"type"` // "series"
	Name string  `json:"name"`
	Unit string  `json:"unit"`
	N    int     `json:"n"`
	Min  float64 `json:"min"`
	Avg  float64 `json:"avg"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Summary collects samples.
type Summary struct {
	Samples     int
	First, Last time.Time
	Duration    time.Duration // by the monotonic clock
	start       int64
	order       []string
	values      map[string][]float64
	unit        map[string]string
	throttled   int
	unthrottled int // samples with unknown state count as neither
}

// NewSummary returns an empty summary.
func NewSummary() *Summary {
	return &Summary{values: map[string][]float64{}, unit: map[string]string{}}
}

// errTooLong reports a recording with more samples than a summary can hold.
var errTooLong = errors.New("recording is too long")

// Add adds a sample.
func (s *Summary) Add(sample *Sample) error {
	if s.Samples == maxSamples {
		return fmt.Errorf("%w: more than %d samples", errTooLong, maxSamples)
	}
	if s.Samples == 0 {
		s.First, s.start = sample.Time, sample.Monotonic
	}
	s.Samples++
	s.Last = sample.Time
	s.Duration = time.Duration(sample.Monotonic - s.start)
	switch {
	case len(sample.Throttled()) > 0:
		s.throttled++
	case sample.ReportsThrottling():
		s.unthrottled++
	}
	for _, v := range sample.Values() {
		if _, ok := s.values[v.Name]; !ok {
			s.order = append(s.order, v.Name)
			s.unit[v.Name] = v.Unit
		}
		s.values[v.Name] = append(s.values[v.Name], v.Value)
	}
	return nil
}

// Throttled returns the fraction of samples with throttling, 0 to 1, among those that report
// it. It is nil if none does.
func (s *Summary) Throttled() *float64 {
	known := s.throttled + s.unthrottled
	if known == 0 {
		return nil
	}
	return new(float64(s.throttled) / float64(known))
}

// Series returns the statistics in the order of first occurrence. Percentiles use the nearest
// rank, so that each is a measured value.
func (s *Summary) Series() []Series {
	out := make([]Series, 0, len(s.order))
	for _, name := range s.order {
		v := slices.Sorted(slices.Values(s.values[name]))
		sum := 0.0
		for _, x := range v {
			sum += x
		}
		rank := func(percent int) float64 { return v[max((len(v)*percent+99)/100-1, 0)] }
		out = append(out, Series{
			Type: "series", Name: name, Unit: s.unit[name], N: len(v),
			Min: v[0], Avg: sum / float64(len(v)), P50: rank(50), P95: rank(95), P99: rank(99), Max: v[len(v)-1],
		})
	}
	return out
}
