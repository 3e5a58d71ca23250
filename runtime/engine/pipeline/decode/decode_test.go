package decode

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
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
	b := newBench(t)
	in := b.tensor(data, shape...)
	got := decoded(t, b.decoder(plan.Post{Kind: registry.CTC, Threshold: "0.5"}, in, Picture{}, labels...), in)
	if len(got) != 1 || got[0].Text != "aab  b" || got[0].Score < 0.79 || got[0].Score > 0.81 {
		t.Errorf("%+v", got)
	}
	if got := decoded(t, b.decoder(plan.Post{Kind: registry.CTC, Threshold: "0.9"}, in, Picture{}, labels...), in); len(got) != 0 {
		t.Errorf("below the threshold: %+v", got)
	}
	if _, err := newCTC(shape, []string{"a"}, 0); !errors.Is(err, registry.ErrPlan) || !strings.Contains(err.Error(), "has 1 lines") {
		t.Errorf("%v", err)
	}
	if _, err := newCTC([]int64{2, 3}, labels, 0); !errors.Is(err, registry.ErrPlan) || !strings.Contains(err.Error(), "[2 3]") {
		t.Errorf("%v", err)
	}
	// A step without numbers is a blank.
	copy(in.Data[4*2:], []float32{0, float32(math.NaN()), 0, 0})
	if got := decoded(t, b.decoder(plan.Post{Kind: registry.CTC}, in, Picture{}, labels...), in); len(got) != 1 || got[0].Text != "aab  b" {
		t.Errorf("with a NaN: %+v", got)
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
	b := newBench(t)
	shape := []int64{1, 3}
	for _, c := range []struct {
		name      string
		data      []float32
		labels    []string
		threshold string
		top       int
		want      string
	}{
		{"probabilities", []float32{0.2, 0.7, 0.1}, []string{"x", "y", "z"}, "", 2, "y 0.70, x 0.20"},
		{"logits", []float32{0, 2, 0}, nil, "", 1, "1 0.79"},
		{"threshold", []float32{0.2, 0.7, 0.1}, nil, "0.5", 3, "1 0.70"},
		{"more than there are", []float32{0.2, 0.7, 0.1}, nil, "", 9, "1 0.70, 0 0.20, 2 0.10"},
		{"not numbers", []float32{0.2, float32(math.NaN()), 0.1}, nil, "", 3, ""},
		{"infinite", []float32{0.2, float32(math.Inf(1)), 0.1}, nil, "", 3, ""},
	} {
		in := b.tensor(c.data, shape...)
		var got []string
		for _, r := range decoded(t, b.decoder(plan.Post{Kind: registry.Argmax, Threshold: c.threshold, Top: c.top}, in, Picture{}, c.labels...), in) {
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
	if _, err := newArgmax([]int64{1, 4, 3}, nil, 0, 1); !errors.Is(err, registry.ErrPlan) {
		t.Errorf("%v", err)
	}
	if _, err := newArgmax(shape, []string{"x"}, 0, 1); !errors.Is(err, registry.ErrPlan) {
		t.Errorf("%v", err)
	}
}
