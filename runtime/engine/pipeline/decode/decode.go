// Package decode turns the output of models into results: text, classes, boxes with masks or
// keypoints, and regions of text. Each decoder in the registry has a file here.
package decode

import (
	"fmt"
	"math"
	"strings"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Input is the tensor to decode.
type Input struct {
	Shape []int64
	More  []int64 // shape of a second tensor, nil without one
	At    Picture // where the tensor lies in the frame
}

// Decoder decodes a tensor into results, which it stores in into[:0].
type Decoder func(t frame.Tensor, into []result.Result) ([]result.Result, error)

// decoders maps each kind to the function that makes its decoder and the decoder's release, nil
// if there is nothing to release.
var decoders = map[string]func(dev *core.Device, p *plan.Post, in Input, labels []string, threshold float32) (Decoder, func() error, error){
	registry.CTC: func(_ *core.Device, _ *plan.Post, in Input, labels []string, threshold float32) (Decoder, func() error, error) {
		d, err := ctc(in.Shape, labels, threshold)
		return d, nil, err
	},
	registry.Argmax: func(_ *core.Device, p *plan.Post, in Input, labels []string, threshold float32) (Decoder, func() error, error) {
		d, err := argmax(in.Shape, labels, threshold, p.Top)
		return d, nil, err
	},
	registry.Detect:    openDetector,
	registry.Segment:   openDetector,
	registry.Keypoints: openDetector,
	registry.Regions: func(_ *core.Device, p *plan.Post, in Input, _ []string, threshold float32) (Decoder, func() error, error) {
		r, err := newRegions(in.Shape, in.At, threshold, p.Threshold == "", p.Top)
		if err != nil {
			return nil, nil, err
		}
		return r.results, nil, nil
	},
	registry.Raw: func(_ *core.Device, _ *plan.Post, in Input, _ []string, _ float32) (Decoder, func() error, error) {
		d, err := raw(in.Shape)
		return d, nil, err
	},
}

// New makes the decoder of a postprocess stage. Detectors run on dev; release frees what they
// allocate there and is nil for other decoders.
func New(dev *core.Device, p *plan.Post, in Input, labels []string) (d Decoder, release func() error, err error) {
	threshold, err := thresholdOf(p)
	if err != nil {
		return nil, nil, err
	}
	make := decoders[p.Kind]
	if make == nil {
		return nil, nil, fmt.Errorf("%w: unknown decode %q", registry.ErrPlan, p.Kind)
	}
	return make(dev, p, in, labels, threshold)
}

// thresholdOf returns the threshold of a postprocess stage, 0 without one.
func thresholdOf(p *plan.Post) (float32, error) {
	if p.Threshold == "" {
		return 0, nil
	}
	return registry.Fraction("threshold", p.Threshold)
}

func openDetector(dev *core.Device, p *plan.Post, in Input, labels []string, threshold float32) (Decoder, func() error, error) {
	d, err := newDetector(dev, p, in.Shape, in.More, in.At, labels, threshold)
	if err != nil {
		return nil, nil, err
	}
	return d.results, d.release, nil
}

// ctc decodes text from the output of a recogniser, [1, steps, classes]. It takes the best
// class of each step, merges repeats and removes blanks. Class 0 is the blank, the labels
// follow in order, and one more class, if the model has it, is the space. The score is the mean
// of the best values that produced a letter.
func ctc(shape []int64, labels []string, threshold float32) (Decoder, error) {
	if len(shape) != 3 || shape[0] != 1 {
		return nil, fmt.Errorf("%w: ctc expects a tensor [1 steps classes], but the model outputs %v", registry.ErrPlan, shape)
	}
	steps, classes := int(shape[1]), int(shape[2])
	switch classes {
	case len(labels) + 1:
	case len(labels) + 2:
		labels = append(labels[:len(labels):len(labels)], " ")
	default:
		return nil, fmt.Errorf("%w: the labels file has %d lines, but a model with %d classes needs %d (and a blank), or %d (and a blank and a space)",
			registry.ErrPlan, len(labels), classes, classes-1, classes-2)
	}
	return func(t frame.Tensor, into []result.Result) ([]result.Result, error) {
		var text strings.Builder
		var sum float32
		letters, last := 0, 0
		for s := range steps {
			best, value := maximum(t.Data[s*classes:][:classes])
			if best != last && best != 0 {
				text.WriteString(labels[best-1])
				sum += value
				letters++
			}
			last = best
		}
		if letters == 0 {
			return into[:0], nil
		}
		r := result.Result{Kind: registry.CTC, Text: text.String(), Score: sum / float32(letters)}
		if r.Score < threshold {
			return into[:0], nil
		}
		return append(into[:0], r), nil
	}, nil
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

// argmax returns the classes with the best scores, best first. Scores that are between 0 and 1
// and add up to 1 are taken as probabilities; others are logits, which softmax turns into
// probabilities.
func argmax(shape []int64, labels []string, threshold float32, n int) (Decoder, error) {
	classes := int(shape[len(shape)-1])
	for _, d := range shape[:len(shape)-1] {
		if d != 1 {
			return nil, fmt.Errorf("%w: argmax expects a tensor of one row of classes, but the model outputs %v", registry.ErrPlan, shape)
		}
	}
	if len(labels) > 0 && len(labels) != classes {
		return nil, fmt.Errorf("%w: the labels file has %d lines, but the model has %d classes", registry.ErrPlan, len(labels), classes)
	}
	n = min(max(n, 1), classes)
	scores := make([]float32, classes)
	return func(t frame.Tensor, into []result.Result) ([]result.Result, error) {
		copy(scores, t.Data)
		probabilities(scores)
		into = into[:0]
		for range n {
			c, score := maximum(scores)
			if math.IsNaN(float64(score)) || score < threshold || score < 0 {
				break
			}
			r := result.Result{Kind: registry.Argmax, Class: c, Score: score}
			if len(labels) > 0 {
				r.Label = labels[c]
			}
			into = append(into, r)
			scores[c] = -1
		}
		return into, nil
	}, nil
}

// probabilities applies softmax unless v is a distribution already.
func probabilities(v []float32) {
	var sum float64
	distribution := true
	for _, x := range v {
		sum += float64(x)
		distribution = distribution && x >= 0 && x <= 1
	}
	if distribution && math.Abs(sum-1) < 1e-2 {
		return
	}
	_, most := maximum(v)
	sum = 0
	for i, x := range v {
		e := math.Exp(float64(x - most))
		v[i] = float32(e)
		sum += e
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / sum)
	}
}

// raw returns the tensor unchanged.
func raw(shape []int64) (Decoder, error) {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	if n > registry.MaxRaw {
		return nil, fmt.Errorf("%w: raw would write %d values of %v per frame; at most %d are allowed", registry.ErrPlan, n, shape, registry.MaxRaw)
	}
	return func(t frame.Tensor, into []result.Result) ([]result.Result, error) {
		return append(into[:0], result.Result{Kind: registry.Raw, Shape: t.Shape, Values: t.Data}), nil
	}, nil
}
