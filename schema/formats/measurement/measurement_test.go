package measurement_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/formats/measurement"
)

func TestMetricsOfExamples(t *testing.T) {
	for _, c := range []struct {
		metric   string
		examples []measurement.Example
		want     float64
	}{
		{measurement.Top1, []measurement.Example{{Counts: []int64{1}}, {Counts: []int64{0}}, {Counts: []int64{1}}, {Counts: []int64{1}}}, 0.75},
		{measurement.Cosine, []measurement.Example{{Counts: []int64{1e9}}, {Counts: []int64{5e8}}}, 0.75},
		{measurement.F1, []measurement.Example{{Counts: []int64{2, 1, 1}}, {Counts: []int64{1, 0, 0}}}, 0.75},
		{measurement.CER, []measurement.Example{{Counts: []int64{1, 4}}, {Counts: []int64{0, 6}}}, 0.1},
		// Two objects of one class, both found above every overlap, with a wrong box between them:
		// precision 1 up to a recall of one half, two thirds above it.
		{measurement.MAP, []measurement.Example{
			{Objects: [][2]int64{{3, 1}}, Detections: [][3]int64{{3, 900000, 1023}}},
			{Objects: [][2]int64{{3, 1}}, Detections: [][3]int64{{3, 800000, 0}, {3, 700000, 1023}}},
		}, (51 + 50*2.0/3) / 101},
		// Found at an overlap of 0.5 only.
		{measurement.MAP, []measurement.Example{{Objects: [][2]int64{{0, 1}}, Detections: [][3]int64{{0, 1, 1}}}}, 0.1},
	} {
		m, ok := measurement.MetricOf(c.metric)
		if !ok {
			t.Fatal(c.metric)
		}
		pick := make([]int, len(c.examples))
		for i := range pick {
			pick[i] = i
		}
		if got, known := m.Value(c.examples, pick); !known || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.metric, got, c.want)
		}
		if _, known := m.Value(nil, nil); known {
			t.Errorf("%s of no example is known", c.metric)
		}
	}
	if m, _ := measurement.MetricOf(measurement.CER); m.Loss(0.25, 0.75) != 0.5 {
		t.Error("a higher error rate is a loss")
	}
}

const record = `{"$schema":"yoctune.measurement/1","created":"2026-11-29T12:00:00Z","device":{"identities":["x"],"cores":2},` +
	`"runtime":{"yoctuned":"0.2.0","onnxruntime":"1.30.0","providers":["cpu"],"threads":0},"examples":{"sha256":"e3","count":1},"metric":"top-1","rounds":1,"runs":2,` +
	`"models":[{"name":"m","sha256":"e3","bytes":10,"batches":[{"batch":1,"times":[[3,5]],"scores":[{"c":[1]}]}]}]}`

func TestRecordsThatCannotBeJudgedAreRefused(t *testing.T) {
	r, err := measurement.Decode([]byte(record))
	if err != nil {
		t.Fatal(err)
	}
	b := r.Models[0].Find(1)
	if b.Percentile(50) != 3 || b.Percentile(99) != 5 || r.Models[0].Find(2) != nil {
		t.Errorf("percentiles %d, %d", b.Percentile(50), b.Percentile(99))
	}
	for _, c := range []struct{ name, from, to, want string }{
		{"empty", record, "", "unexpected end"},
		{"another document", "yoctune.measurement/1", "yoctune.plan/2", `"yoctune.plan/2"`},
		{"unknown field", `"rounds":1`, `"round":1`, "unknown field"},
		{"more behind it", `[1]}]}]}]}`, `[1]}]}]}]}{}`, "after top-level value"},
		{"no models", record[strings.Index(record, `"models"`):], `"models":[]}`, "0 models"},
		{"no time", "[3,5]", "[0,5]", "a run of 0 ns"},
		{"fewer runs", "[3,5]", "[3]", "a round of 1 runs"},
		{"no rounds", "[[3,5]]", "[]", "0 rounds"},
		{"fewer scores", `"scores":[{"c":[1]}]`, `"scores":[]`, "0 scores of 1 examples"},
		{"other scores", `{"c":[1]}`, `{"c":[1,2]}`, "with 2 values"},
		{"unknown metric", "top-1", "top-9", "unknown metric"},
		{"no examples", `"count":1`, `"count":0`, "a metric without examples"},
		{"a huge batch", `"batch":1`, `"batch":100000`, "and the record has"},
	} {
		if _, err := measurement.Decode([]byte(strings.Replace(record, c.from, c.to, 1))); !errors.Is(err, measurement.ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

const request = `{"$schema":"yoctune.measure/1","models":[{"name":"m","file":"m.onnx","sha256":"e3"}],"batches":[1,4],"rounds":1,"runs":1,"limit":1000}`

func TestRequestsStayInTheirFolder(t *testing.T) {
	if _, err := measurement.DecodeRequest([]byte(request)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"../m.onnx", "/etc/shadow", "a/b", "", "-o", ".ssh", "a b", "a;b"} {
		quoted, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := measurement.DecodeRequest([]byte(strings.Replace(request, `"m.onnx"`, string(quoted), 1))); !errors.Is(err, measurement.ErrFormat) {
			t.Errorf("%q: %v", file, err)
		}
	}
	for from, to := range map[string]string{
		"[1,4]": "[4,1]", `"rounds":1`: `"rounds":0`, `"runs":1`: `"runs":9999`, `"limit":1000`: `"limit":0`, `[{"name"`: `[],"x":[{"name"`,
		`"batches"`: `"metric":"top-1","batches"`, `"batches":[1,4]`: `"examples":"s","metric":"best","batches":[1]`, `"batches"` + ":": `"threads":-1,"batches":`,
	} {
		if _, err := measurement.DecodeRequest([]byte(strings.Replace(request, from, to, 1))); !errors.Is(err, measurement.ErrFormat) {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(record))
	f.Add([]byte(request))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := measurement.Decode(data); err == nil {
			for i := range r.Models {
				for k := range r.Models[i].Batches {
					b := &r.Models[i].Batches[k]
					b.Percentile(95)
					b.Rate()
					r.Accuracy(b)
				}
			}
		}
		if r, err := measurement.DecodeRequest(data); err == nil && strings.Contains(r.Models[0].File, "/") {
			t.Fatalf("file %q", r.Models[0].File)
		}
	})
}
