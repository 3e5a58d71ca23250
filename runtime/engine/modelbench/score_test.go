package modelbench

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/schema/formats/examples"
	"github.com/yoctune/yoctune/schema/formats/measurement"
)

// The metrics of drawn examples are those of pycocotools, scikit-learn and jiwer, which
// tests/models/reference.py asked.
func TestMetricsAgreeWithOthers(t *testing.T) {
	data, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Map []struct {
			Images []struct {
				Objects [][5]float64 // class, left, top, right, bottom
				Found   [][6]float64 // class, score, left, top, right, bottom
			}
			Want float64
		}
		F1 []struct {
			Labels [][]int64
			Scores [][]float64
			Want   float64
		}
		Top1 []struct {
			Labels [][]int64
			Scores [][]float64
			Want   float64
		} `json:"top-1"`
		CER []struct {
			Texts, Read []string
			Want        float64
		}
		Cosine []struct {
			Scores, Others [][]float64
			Want           float64
		}
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	check := func(metric string, got []measurement.Example, want float64) {
		t.Helper()
		m, _ := measurement.MetricOf(metric)
		pick := make([]int, len(got))
		for i := range pick {
			pick[i] = i
		}
		if v, known := m.Value(got, pick); !known || math.Abs(v-want) > 1e-6 {
			t.Errorf("%s: %v, and others have %v", metric, v, want)
		}
	}
	for _, c := range all.Map {
		var got []measurement.Example
		for _, im := range c.Images {
			var objects []examples.Box
			for _, o := range im.Objects {
				objects = append(objects, examples.Box{Class: int64(o[0]), Left: o[1], Top: o[2], Right: o[3], Bottom: o[4]})
			}
			var found []result.Result
			for _, f := range im.Found {
				found = append(found, result.Result{Class: int(f[0]), Score: float32(f[1]), Box: [4]float32{float32(f[2]), float32(f[3]), float32(f[4]), float32(f[5])}})
			}
			got = append(got, match(found, objects))
		}
		check(measurement.MAP, got, c.Want)
	}
	for _, c := range all.F1 {
		var got []measurement.Example
		for i := range c.Labels {
			counts, err := confusion(c.Scores[i], c.Labels[i])
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, measurement.Example{Counts: counts})
		}
		check(measurement.F1, got, c.Want)
	}
	for _, c := range all.Top1 {
		var got []measurement.Example
		for i := range c.Labels {
			got = append(got, measurement.Example{Counts: []int64{flag(int64(best(c.Scores[i])) == c.Labels[i][0])}})
		}
		check(measurement.Top1, got, c.Want)
	}
	for _, c := range all.CER {
		var got []measurement.Example
		for i := range c.Texts {
			got = append(got, measurement.Example{Counts: []int64{edits(letters(c.Read[i]), letters(c.Texts[i])), int64(len(c.Texts[i]))}})
		}
		check(measurement.CER, got, c.Want)
	}
	for _, c := range all.Cosine {
		var got []measurement.Example
		for i := range c.Scores {
			v, known := cosine(c.Others[i], c.Scores[i], []int64{int64(len(c.Scores[i]))})
			if !known {
				t.Fatal("not known")
			}
			got = append(got, measurement.Example{Counts: []int64{int64(math.Round(v * measurement.Billionth))}})
		}
		check(measurement.Cosine, got, c.Want)
	}
}

func letters(text string) []int64 {
	var out []int64
	for _, c := range text {
		out = append(out, int64(c))
	}
	return out
}
