// Package modelbench measures models on this device: time, memory, energy and accuracy of an
// original and its candidates, at every batch size.
//
// Each model runs in a process of its own, so that a model which crashes, hangs or exhausts the
// memory is a failed candidate and nothing else, and so that memory is that of one model. The
// models take turns in rounds: a clock that drops meets them all.
package modelbench

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/yoctune/yoctune/schema/formats/measurement"
)

// Command is the hidden command of yoctuned that serves one model; see [Serve].
const Command = "model-process"

// Operations of a process.
const (
	opOpen  = "open"
	opBind  = "bind"
	opTime  = "time"
	opScore = "score"
)

// call is a line to a process.
type call struct {
	Op string `json:"op"`

	// of open
	File      string           `json:"file,omitempty"`
	SHA256    string           `json:"sha256,omitempty"`
	Library   string           `json:"library,omitempty"`
	Examples  string           `json:"examples,omitempty"` // path of the set
	Metric    string           `json:"metric,omitempty"`
	Head      string           `json:"head,omitempty"`
	Sizes     map[string]int64 `json:"sizes,omitempty"` // of free axes, with random inputs
	Providers []string         `json:"providers,omitempty"`
	Threads   int              `json:"threads,omitempty"`
	Engine    string           `json:"engine,omitempty"`    // path of the TensorRT engine
	NoEngine  string           `json:"no_engine,omitempty"` // why there is none

	Batch int `json:"batch,omitempty"` // of bind
	Runs  int `json:"runs,omitempty"`  // of time

	// of score: the outputs of the original, which the original writes
	Reference string `json:"reference,omitempty"`
	Write     bool   `json:"write,omitempty"`
}

// answer is a line of a process.
type answer struct {
	Error string `json:"error,omitempty"`

	Bytes       int64  `json:"bytes,omitempty"`
	ONNXRuntime string `json:"onnxruntime,omitempty"`
	Provider    string `json:"provider,omitempty"`
	Missing     string `json:"missing,omitempty"` // why the first provider did not run it
	Weights     string `json:"weights,omitempty"`
	Count       int    `json:"count,omitempty"` // examples

	Times  []int64               `json:"times,omitempty"`
	Scores []measurement.Example `json:"scores,omitempty"`
	Memory int64                 `json:"memory,omitempty"` // growth at its peak so far
}

// Serve answers calls until the input ends.
func Serve(in io.Reader, out io.Writer) error {
	dec, enc := json.NewDecoder(in), json.NewEncoder(out)
	var h host
	defer h.close()
	for {
		var c call
		if err := dec.Decode(&c); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a call: %w", err)
		}
		a, err := h.do(c)
		if err != nil {
			a.Error = err.Error()
		}
		if err := enc.Encode(a); err != nil {
			return err
		}
	}
}

func (h *host) do(c call) (a answer, err error) {
	switch c.Op {
	case opOpen:
		a, err = h.open(c)
	case opBind:
		err = h.bind(c.Batch)
	case opTime:
		a.Times, err = h.time(c.Runs)
	case opScore:
		a.Scores, err = h.score(c.Reference, c.Write)
	default:
		err = fmt.Errorf("unknown operation %q", c.Op)
	}
	if peak := peakMemory(); err == nil && h.base > 0 && peak > h.base {
		a.Memory = peak - h.base
	}
	return a, err
}
