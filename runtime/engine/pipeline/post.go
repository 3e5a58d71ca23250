package pipeline

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// post turns a tensor into results, which it puts in into[:0].
type post func(t frame.Tensor, into []result.Result) ([]result.Result, error)

// post reads results from the tensor before it.
func (b *builder) post(k int, s *plan.PipelineStage) (work, error) {
	labels, err := b.readLabels(s.Post.Labels)
	if err != nil {
		return nil, err
	}
	var threshold float32
	if s.Post.Threshold != "" {
		if threshold, err = fraction("threshold", s.Post.Threshold); err != nil {
			return nil, err
		}
	}
	if err := b.lend(k, s.Post.Kind); err != nil {
		return nil, err
	}
	// A decoder may have memory of its own.
	decoders := make([]post, b.p.steps[k].workers())
	for i := range decoders {
		if decoders[i], err = b.newPost(s.Post, labels, threshold); err != nil {
			return nil, err
		}
	}
	return func(_ context.Context, instance int, batch []*frame.Frame) error {
		for _, f := range batch {
			var err error
			if f.Results, err = decoders[instance](f.Tensors[f.Level][k-1], f.Results); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// lend lets the core read the tensors before stage k, for the kinds it decodes.
func (b *builder) lend(k int, kind string) error {
	if d, _ := registry.DecodeOf(kind); !d.Boxes {
		return nil
	}
	dev, err := b.core()
	if err != nil {
		return err
	}
	for i := range b.p.frames {
		t := &b.p.frames[i].Tensors[b.now][k-1]
		if t.ORT == nil {
			return fmt.Errorf("%w: %s reads the output of a model", ErrPlan, kind)
		}
		if t.Buf != nil {
			continue
		}
		if t.Buf, err = dev.Register(bytesOf(t.Data)); err != nil {
			return err
		}
		b.p.closers = append(b.p.closers, t.Buf.Release)
	}
	return nil
}

func (b *builder) newPost(p *plan.Post, labels []string, threshold float32) (post, error) {
	switch p.Kind {
	case registry.CTC:
		if labels == nil {
			return nil, fmt.Errorf("%w: ctc needs a labels file", ErrPlan)
		}
		return ctc(b.shape, labels, threshold)
	case registry.Argmax:
		return argmax(b.shape, labels, threshold, p.Top)
	case registry.Detect, registry.Segment, registry.Keypoints:
		d, err := newDetector(b.dev, p, b.shape, b.more, b.at, labels, threshold)
		if err != nil {
			return nil, err
		}
		b.p.closers = append(b.p.closers, d.release)
		return d.results, nil
	case registry.Regions:
		r, err := newRegions(b.shape, b.at, threshold, p.Threshold == "", p.Top)
		if err != nil {
			return nil, err
		}
		return r.results, nil
	case registry.Raw:
		return raw(b.shape)
	}
	return nil, fmt.Errorf("%w: unknown decode %q", ErrPlan, p.Kind)
}

// ctc reads text from the output of a recogniser, [1, steps, classes]: the best
// class of each step, repeats once, blanks not at all. Class 0 is the blank, the
// following ones are the labels in order, and one more, when the model has it,
// is the space. The score is the mean of the best values that made a letter.
func ctc(shape []int64, labels []string, threshold float32) (post, error) {
	if len(shape) != 3 || shape[0] != 1 {
		return nil, fmt.Errorf("%w: ctc reads a tensor [1 steps classes], the model gives %v", ErrPlan, shape)
	}
	steps, classes := int(shape[1]), int(shape[2])
	switch classes {
	case len(labels) + 1:
	case len(labels) + 2:
		labels = append(labels[:len(labels):len(labels)], " ")
	default:
		return nil, fmt.Errorf("%w: the labels file has %d lines, the model's %d classes need %d (and a blank), or %d (and a blank and a space)",
			ErrPlan, len(labels), classes, classes-1, classes-2)
	}
	return func(t frame.Tensor, into []result.Result) ([]result.Result, error) {
		var text strings.Builder
		var sum float32
		letters, last := 0, 0
		for s := range steps {
			best, value := top(t.Data[s*classes:][:classes])
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

// top returns the index and value of the largest element.
func top(v []float32) (int, float32) {
	best, value := 0, v[0]
	for i, x := range v {
		if x > value {
			best, value = i, x
		}
	}
	return best, value
}

// argmax gives the classes with the best scores, best first. Scores are taken as
// probabilities when they are between 0 and 1 and add up to 1; otherwise they
// are taken as logits, and softmax makes probabilities of them.
func argmax(shape []int64, labels []string, threshold float32, n int) (post, error) {
	classes := int(shape[len(shape)-1])
	for _, d := range shape[:len(shape)-1] {
		if d != 1 {
			return nil, fmt.Errorf("%w: argmax reads a tensor of one row of classes, the model gives %v", ErrPlan, shape)
		}
	}
	if len(labels) > 0 && len(labels) != classes {
		return nil, fmt.Errorf("%w: the labels file has %d lines, the model gives %d classes", ErrPlan, len(labels), classes)
	}
	n = min(max(n, 1), classes)
	scores := make([]float32, classes)
	return func(t frame.Tensor, into []result.Result) ([]result.Result, error) {
		copy(scores, t.Data)
		probabilities(scores)
		into = into[:0]
		for range n {
			c, score := top(scores)
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
	_, most := top(v)
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

// raw gives the tensor as it is.
func raw(shape []int64) (post, error) {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	if n > registry.MaxRaw {
		return nil, fmt.Errorf("%w: raw would write the %d values of %v for every frame; it writes at most %d", ErrPlan, n, shape, registry.MaxRaw)
	}
	return func(t frame.Tensor, into []result.Result) ([]result.Result, error) {
		return append(into[:0], result.Result{Kind: registry.Raw, Shape: t.Shape, Values: t.Data}), nil
	}, nil
}

// maxLabels bounds a labels file, in bytes.
const maxLabels = 4 << 20

// readLabels finds a file of labels where models are looked for; nil without one.
func (b *builder) readLabels(name string) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	var tries []string
	if b.o.Models != "" {
		if !filepath.IsAbs(name) {
			tries = append(tries, filepath.Join(b.o.Models, name))
		}
		tries = append(tries, filepath.Join(b.o.Models, filepath.Base(name)))
	}
	path, err := firstFile(append(tries, locate(b.o.Dir, name)))
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	if b.labels[path] == nil {
		if b.labels[path], err = readLabels(path); err != nil {
			return nil, err
		}
	}
	return b.labels[path], nil
}

// readLabels reads one label a line. Blanks inside a line belong to the label.
func readLabels(path string) ([]string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	if !st.Mode().IsRegular() || st.Size() > maxLabels {
		return nil, fmt.Errorf("%w: labels %s is not a file of at most %d bytes", ErrPlan, path, maxLabels)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	text := strings.TrimSuffix(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n")
	if text == "" {
		return nil, fmt.Errorf("%w: labels %s is empty", ErrPlan, path)
	}
	return strings.Split(text, "\n"), nil
}
