package decode

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

func TestRecognisedTextIsDecodedGreedily(t *testing.T) {
	labels := []string{"a", "b"}
	// Blank, a, b, and the space that the labels do not list.
	steps := []int{0, 1, 1, 0, 1, 2, 3, 0, 3, 2, 2}
	shape := []int64{1, int64(len(steps)), 4}
	data := make([]float32, len(steps)*4)
	for s, c := range steps {
		data[s*4+c] = 0.8
	}
	decode, err := ctc(shape, labels, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	got := decoded(t, decode, frame.Tensor{Shape: shape, Data: data})
	if len(got) != 1 || got[0].Text != "aab  b" || got[0].Score < 0.79 || got[0].Score > 0.81 {
		t.Errorf("%+v", got)
	}
	if decode, err = ctc(shape, labels, 0.9); err != nil {
		t.Fatal(err)
	}
	if got := decoded(t, decode, frame.Tensor{Shape: shape, Data: data}); len(got) != 0 {
		t.Errorf("below the threshold: %+v", got)
	}
	if _, err := ctc(shape, []string{"a"}, 0); !errors.Is(err, registry.ErrPlan) || !strings.Contains(err.Error(), "has 1 lines") {
		t.Errorf("%v", err)
	}
	if _, err := ctc([]int64{2, 3}, labels, 0); !errors.Is(err, registry.ErrPlan) || !strings.Contains(err.Error(), "[2 3]") {
		t.Errorf("%v", err)
	}
}

func decoded(t *testing.T, p Decoder, in frame.Tensor) []result.Result {
	t.Helper()
	got, err := p(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestBestClassesComeFirst(t *testing.T) {
	shape := []int64{1, 3}
	for _, c := range []struct {
		name      string
		data      []float32
		labels    []string
		threshold float32
		top       int
		want      string
	}{
		{"probabilities", []float32{0.2, 0.7, 0.1}, []string{"x", "y", "z"}, 0, 2, "y 0.70, x 0.20"},
		{"logits", []float32{0, 2, 0}, nil, 0, 1, "1 0.79"},
		{"threshold", []float32{0.2, 0.7, 0.1}, nil, 0.5, 3, "1 0.70"},
		{"more than there are", []float32{0.2, 0.7, 0.1}, nil, 0, 9, "1 0.70, 0 0.20, 2 0.10"},
	} {
		decode, err := argmax(shape, c.labels, c.threshold, c.top)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range decoded(t, decode, frame.Tensor{Shape: shape, Data: c.data}) {
			name := r.Label
			if name == "" {
				name = fmt.Sprint(r.Class)
			}
			got = append(got, fmt.Sprintf("%s %.2f", name, r.Score))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
	if _, err := argmax([]int64{1, 4, 3}, nil, 0, 1); !errors.Is(err, registry.ErrPlan) {
		t.Errorf("%v", err)
	}
	if _, err := argmax(shape, []string{"x"}, 0, 1); !errors.Is(err, registry.ErrPlan) {
		t.Errorf("%v", err)
	}
}
