package models_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler/models"
	"github.com/yoctune/yoctune/schema/formats/evidence"
	"github.com/yoctune/yoctune/schema/formats/measurement"
)

// model is a model that takes some time, with noise, and is right in some of its examples; by batch.
func model(name string, ns int64, examples, right int, batches ...int) measurement.Model {
	m := measurement.Model{Name: name, SHA256: name, Bytes: 100, Provider: "cpu", Memory: new(int64(50 << 20))}
	for _, size := range batches {
		b := measurement.Batch{Batch: size}
		for round := range int64(10) {
			b.Times = append(b.Times, []int64{ns*int64(size) + round, ns*int64(size) + 2*round, ns*int64(size) + 3*round})
		}
		for i := range examples {
			hit := int64(0)
			if i < right {
				hit = 1
			}
			b.Scores = append(b.Scores, measurement.Example{Counts: []int64{hit}})
		}
		m.Batches = append(m.Batches, b)
	}
	return m
}

func record(all ...measurement.Model) *measurement.Record {
	return &measurement.Record{
		Schema: measurement.Schema, Metric: measurement.Top1, Rounds: 10, Runs: 3, Models: all,
		Examples: &measurement.Examples{SHA256: "e", Count: len(all[0].Batches[0].Scores)},
		Runtime:  measurement.Runtime{ONNXRuntime: "1.30.0", Providers: []string{"cpu"}},
	}
}

func criteria() models.Criteria {
	return models.Criteria{Metric: measurement.Top1, MaxLoss: 0.02, MinSpeedup: 1.2, MaxMemory: 60 << 20, Batches: []int{1, 4}}
}

func TestOnlyWhatHoldsWithConfidenceIsAccepted(t *testing.T) {
	const n = 400
	original := model(models.Original, 3000, n, 390, 1, 4)
	wrongAtFour := model("m", 1500, n, 390, 1, 4)
	wrongAtFour.Batches[1].Scores = model("x", 1, n, 200, 1).Batches[0].Scores
	slowAtFour := model("m", 1500, n, 390, 1, 4)
	slowAtFour.Batches[1].Times = model("x", 12000, n, 390, 1).Batches[0].Times
	large := model("m", 1500, n, 390, 1, 4)
	large.Memory = new(int64(70 << 20))
	unknown := model("m", 1500, n, 390, 1, 4)
	unknown.Memory = nil
	otherwise := model("m", 1500, n, 390, 1, 4)
	otherwise.Provider = "cuda"
	failed := measurement.Model{Name: "m", SHA256: "m", Failed: "Frobnicate"}
	partly := model("m", 1500, n, 390, 1)
	partly.Batches = append(partly.Batches, measurement.Batch{Batch: 4, Failed: "the first axis is fixed"})
	for _, c := range []struct {
		name   string
		model  measurement.Model
		reason string // "": accepted
	}{
		{"faster and as good", model("m", 1500, n, 390, 1, 4), ""},
		{"a little worse", model("m", 1500, n, 388, 1, 4), ""},
		{"worse on average, and perhaps more", model("m", 1500, n, 384, 1, 4), "it may lose"},
		{"much worse", model("m", 1500, n, 300, 1, 4), "it may lose"},
		{"slower", model("m", 3100, n, 390, 1, 4), "its speedup may be 0.9"},
		{"not fast enough", model("m", 2600, n, 390, 1, 4), "1.2000 is asked for"},
		{"wrong for a batch", wrongAtFour, "batch 4: it may lose"},
		{"slow for a batch", slowAtFour, "batch 4: its speedup"},
		{"too large", large, "it takes 70 MiB of memory"},
		{"of unknown size", unknown, "its memory is not known"},
		{"on another provider", otherwise, "cuda ran it, and cpu is the first choice"},
		{"failed", failed, "it failed: Frobnicate"},
		{"failed for a batch", partly, "batch 4: the first axis is fixed"},
	} {
		e, err := models.Judge(record(original, c.model), criteria())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		v := e.Candidates[1]
		if v.Accepted != (c.reason == "") || !strings.Contains(v.Reason, c.reason) || (e.Chosen != nil) != v.Accepted {
			t.Errorf("%s: accepted %v, %s", c.name, v.Accepted, v.Reason)
		}
	}
}

func TestFewExamplesProveLittle(t *testing.T) {
	// Equal on 100 examples: the loss may still be 3 %.
	e, err := models.Judge(record(model(models.Original, 3000, 100, 100, 1, 4), model("m", 1500, 100, 100, 1, 4)), criteria())
	if err != nil || e.Candidates[1].Accepted || e.Candidates[1].Batches[0].Loss.High != "0.0300" {
		t.Errorf("%+v %v", e.Candidates[1], err)
	}
	if _, err := models.Judge(record(model(models.Original, 3000, 19, 19, 1, 4)), criteria()); err == nil || !strings.Contains(err.Error(), "at least 20") {
		t.Error(err)
	}
}

func TestTheFastestAcceptedIsChosen(t *testing.T) {
	r := record(model(models.Original, 3000, 400, 390, 1, 4), model("fast", 1000, 400, 390, 1, 4), model("faster", 900, 400, 390, 1, 4), model("fastest", 100, 400, 10, 1, 4))
	e, err := models.Judge(r, criteria())
	if err != nil || e.Chosen == nil || e.Chosen.Name != "faster" {
		t.Fatalf("%+v %v", e.Chosen, err)
	}
	if again, err := models.Judge(r, criteria()); err != nil || *again.Candidates[2].Batches[1].Speedup != *e.Candidates[2].Batches[1].Speedup {
		t.Error("a record has two verdicts", err)
	}
	var low, high evidence.Interval
	low, high = *e.Candidates[1].Batches[0].Speedup, *e.Candidates[2].Batches[0].Speedup
	if low.Low > low.Mid || high.Mid > high.High {
		t.Error(low, high)
	}
}

func TestAnOriginalThatIsWrongForABatchIsAnError(t *testing.T) {
	o := model(models.Original, 3000, 400, 390, 1, 4)
	o.Batches[1].Scores = model("x", 1, 400, 100, 1).Batches[0].Scores
	if _, err := models.Judge(record(o, model("m", 1500, 400, 390, 1, 4)), criteria()); err == nil || !strings.Contains(err.Error(), "the original is wrong: batch 4") {
		t.Error(err)
	}
}

func TestRecordsOfOtherConditionsAreRefused(t *testing.T) {
	r := record(model(models.Original, 3000, 400, 390, 1))
	for want, change := range map[string]func(c *models.Criteria){
		"lacks the original at batch 4": func(*models.Criteria) {},
		`accept has "f1"`:               func(c *models.Criteria) { c.Metric = measurement.F1 },
	} {
		c := criteria()
		change(&c)
		if _, err := models.Judge(r, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
