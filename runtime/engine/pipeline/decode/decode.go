// Package decode turns the output of models into results: text, classes, boxes with masks or
// keypoints, and regions of text. Each decoder in the registry has a file here.
package decode

import (
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Input describes the tensors to decode.
type Input struct {
	Tensors []registry.Tensor // the output of a stage, and further outputs of a model
	At      Picture           // where they lie in the frame
	Reused  bool              // the memory of the tensors holds those of the next frame before a sink has the results
}

// shape is that of the first tensor.
func (in Input) shape() []int64 { return in.Tensors[0].Shape }

// Decoder decodes float32 tensors into results, which it stores in into[:0].
type Decoder func(t frame.Tensor, into []result.Result) ([]result.Result, error)

// decoders maps the kinds that this program decodes on its own to the function that makes the decoder.
var decoders = map[string]func(p *plan.Post, in Input, threshold float32) (Decoder, error){
	registry.Regions: func(p *plan.Post, in Input, threshold float32) (Decoder, error) {
		r, err := newRegions(in.shape(), in.At, threshold, p.Threshold == "", p.Top)
		if err != nil {
			return nil, err
		}
		return r.results, nil
	},
	registry.Raw: func(_ *plan.Post, in Input, _ float32) (Decoder, error) { return raw(in) },
}

// New makes the decoder of a postprocess stage. Those in parts run on dev; release frees what they
// allocate there and is nil for other decoders.
func New(dev *core.Device, p *plan.Post, in Input, labels []string) (d Decoder, release func() error, err error) {
	if kind, _ := registry.DecodeOf(p.Kind); kind.Core {
		parts, err := NewParts(p, in, labels)
		if err != nil {
			return nil, nil, err
		}
		boxes, ok := parts.(*detector)
		if ok && boxes.reader() != nil {
			return boxes.reader(), nil, nil
		}
		if ok && boxes.head == registry.HeadSSD {
			parts = suppression{boxes}
		}
		l, err := newLocal(dev, parts, p, in.shape())
		if err != nil {
			return nil, nil, err
		}
		return l.decode, l.release, nil
	}
	threshold, err := thresholdOf(p)
	if err != nil {
		return nil, nil, err
	}
	make := decoders[p.Kind]
	if make == nil {
		return nil, nil, fmt.Errorf("%w: unknown decode %q", registry.ErrPlan, p.Kind)
	}
	d, err = make(p, in, threshold)
	return d, nil, err
}

// thresholdOf returns the threshold of a postprocess stage, 0 without one.
func thresholdOf(p *plan.Post) (float32, error) {
	if p.Threshold == "" {
		return 0, nil
	}
	return registry.Fraction("threshold", p.Threshold)
}

// maximum returns the index and value of the largest element.
func maximum(v []float32) (int, float32) {
	best, value := 0, v[0]
	for i, x := range v {
		if x > value {
			best, value = i, x
		}
	}
	return best, value
}

// raw returns the tensors unchanged; several have the names of the model's outputs.
func raw(in Input) (Decoder, error) {
	n := int64(0)
	for _, t := range in.Tensors {
		n += t.Bytes() / t.DType.Bytes()
	}
	if n > registry.MaxRaw {
		return nil, fmt.Errorf("%w: raw would write %d values of %v per frame; at most %d are allowed", registry.ErrPlan, n, in.Tensors, registry.MaxRaw)
	}
	return func(t frame.Tensor, into []result.Result) ([]result.Result, error) {
		into = into[:0]
		for i := range in.Tensors {
			one := &t
			if i > 0 {
				one = &t.More[i-1]
			}
			var r *result.Result
			into, r = appendEmpty(into, registry.Raw)
			r.Shape = one.Shape
			if in.Reused {
				r.Values = append(r.Values, one.Data...)
			} else {
				r.Values = one.Data
			}
			if len(in.Tensors) > 1 {
				r.Text = in.Tensors[i].Name
			}
		}
		return into, nil
	}, nil
}
