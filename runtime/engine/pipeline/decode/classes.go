package decode

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// rank is a value and its index, as [core.List.TopK] writes them.
type rank struct {
	value float32
	index int
}

const rankBytes = 8

func readRank(b []byte, n int) rank {
	b = b[rankBytes*n:]
	return rank{readFloat(b), int(binary.NativeEndian.Uint32(b[4:]))}
}

func readFloat(b []byte) float32 { return math.Float32frombits(binary.NativeEndian.Uint32(b)) }

// ctc decodes text from the output of a recogniser, [1, steps, classes]. It takes the best
// class of each step, merges repeats and removes blanks. Class 0 is the blank, the labels
// follow in order, and one more class, if the model has it, is the space. The score is the mean
// of the best values that produced a letter. A step with a NaN is a blank.
type ctc struct {
	rows      core.RowsArgs
	labels    []string
	threshold float32
	best      []rank
}

func newCTC(shape []int64, labels []string, threshold float32) (*ctc, error) {
	if len(shape) != 3 || shape[0] != 1 {
		return nil, fmt.Errorf("%w: ctc expects a tensor [1 steps classes], but the model outputs %v", registry.ErrPlan, shape)
	}
	steps, classes := int(shape[1]), int(shape[2])
	if err := registry.CheckLabels(&plan.Post{Kind: registry.CTC}, len(labels), classes); err != nil {
		return nil, err
	}
	if len(labels) == classes-2 {
		labels = append(labels[:len(labels):len(labels)], " ")
	}
	return &ctc{
		rows: core.RowsArgs{Rows: uint32(steps), Cols: uint32(classes), K: 1}, labels: labels, threshold: threshold, best: make([]rank, steps),
	}, nil
}

func (d *ctc) Add(l *core.List, m Memory, in Source) {
	l.TopK(part(m.Back, 0, rankBytes*len(d.best)), in.Tensor, d.rows)
}

func (d *ctc) Read(back []byte) (more bool, err error) {
	for s := range d.best {
		if d.best[s] = readRank(back, s); d.best[s].index >= int(d.rows.Cols) {
			return false, fmt.Errorf("step %d: class %d of %d", s, d.best[s].index, d.rows.Cols)
		}
	}
	return false, nil
}

func (*ctc) AddMore(*core.List, Memory, Source) {}

func (d *ctc) Results(into []result.Result) ([]result.Result, error) {
	var text strings.Builder
	var sum float32
	letters, last := 0, 0
	for _, b := range d.best {
		if b.value != b.value {
			b.index = 0
		}
		if b.index != last && b.index != 0 {
			text.WriteString(d.labels[b.index-1])
			sum += b.value
			letters++
		}
		last = b.index
	}
	if letters == 0 {
		return into[:0], nil
	}
	r := result.Result{Kind: registry.CTC, Text: text.String(), Score: sum / float32(letters)}
	if !(r.Score >= d.threshold) || math.IsInf(float64(r.Score), 0) {
		return into[:0], nil
	}
	return append(into[:0], r), nil
}

// argmax finds the classes with the best scores, best first. Scores that are between 0 and 1
// and add up to 1 are taken as probabilities; others are logits, which softmax turns into
// probabilities.
type argmax struct {
	rows      core.RowsArgs
	labels    []string
	threshold float32
	found     []rank
}

func newArgmax(shape []int64, labels []string, threshold float32, n int) (*argmax, error) {
	classes := int(shape[len(shape)-1])
	for _, d := range shape[:len(shape)-1] {
		if d != 1 {
			return nil, fmt.Errorf("%w: argmax expects a tensor of one row of classes, but the model outputs %v", registry.ErrPlan, shape)
		}
	}
	if err := registry.CheckLabels(&plan.Post{Kind: registry.Argmax}, len(labels), classes); err != nil {
		return nil, err
	}
	n = min(max(n, 1), classes)
	if n > registry.MaxTop {
		return nil, fmt.Errorf("%w: argmax finds at most %d classes", registry.ErrPlan, registry.MaxTop)
	}
	return &argmax{
		rows: core.RowsArgs{Rows: 1, Cols: uint32(classes), K: uint32(n)}, labels: labels, threshold: threshold, found: make([]rank, n),
	}, nil
}

// What comes back: the sum and the smallest of the scores, the best scores, and the best
// probabilities that softmax makes of them.
const rankedAt = 8

func (d *argmax) Add(l *core.List, m Memory, in Source) {
	n := rankBytes * len(d.found)
	soft := part(m.Work, 0, 4*int(d.rows.Cols))
	l.Reduce(part(m.Back, 0, 4), in.Tensor, core.Sum)
	l.Reduce(part(m.Back, 4, 4), in.Tensor, core.Min)
	l.TopK(part(m.Back, rankedAt, n), in.Tensor, d.rows)
	l.Softmax(soft, in.Tensor, d.rows)
	l.TopK(part(m.Back, rankedAt+n, n), soft, d.rows)
}

func (d *argmax) Read(back []byte) (more bool, err error) {
	sum, least, n := readFloat(back), readFloat(back[4:]), len(d.found)
	at := n
	if best := readRank(back[rankedAt:], 0).value; math.Abs(float64(sum)-1) < 1e-2 && least >= 0 && best <= 1 {
		at = 0
	}
	for i := range d.found {
		if d.found[i] = readRank(back[rankedAt:], at+i); d.found[i].index >= int(d.rows.Cols) {
			return false, fmt.Errorf("class %d of %d", d.found[i].index, d.rows.Cols)
		}
	}
	return false, nil
}

func (*argmax) AddMore(*core.List, Memory, Source) {}

func (d *argmax) Results(into []result.Result) ([]result.Result, error) {
	into = into[:0]
	for _, f := range d.found {
		if !(f.value >= d.threshold && f.value >= 0) { // false for NaN
			break
		}
		r := result.Result{Kind: registry.Argmax, Class: f.index, Score: f.value}
		if len(d.labels) > 0 {
			r.Label = d.labels[f.index]
		}
		into = append(into, r)
	}
	return into, nil
}
