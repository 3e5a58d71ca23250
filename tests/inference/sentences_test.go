package inference

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// tokens is the number of tokens of each row.
const tokens = 64

// sentences embeds rows of tokens: three inputs of int64 [1, 64], an output of float32 [1, 64, 384].
func sentences(t *testing.T, buckets ...int) *service {
	t.Helper()
	p := plan.Pipeline{
		Source: plan.PipelineSource{Format: "tensor", Request: &plan.Request{}},
		Stages: []plan.PipelineStage{{ID: "embed", Kind: "model", Input: "source", Model: &plan.Model{Path: models.Sentences(t), Output: "last_hidden_state", Threads: 1}}},
		Queue:  plan.PipelineQueue{Capacity: 8, Policy: "block"},
	}
	if len(buckets) > 0 {
		p.Stages[0].Model.Batch = &plan.ModelBatch{Buckets: buckets, Delay: 20e6}
	}
	for _, name := range []string{"input_ids", "attention_mask", "token_type_ids"} {
		p.Source.Request.Inputs = append(p.Source.Request.Inputs, plan.RequestInput{Name: name, DType: "i64", Shape: []int64{1, tokens}})
		p.Stages[0].Model.Inputs = append(p.Stages[0].Model.Inputs, plan.ModelInput{Name: name, From: "source", Tensor: name})
	}
	return serve(t, p, nil)
}

// sentence is a request of some tokens, padded to length.
func sentence(ids []int64, length int) request {
	var body []byte
	for _, value := range []func(i int) int64{
		func(i int) int64 {
			if i < len(ids) {
				return ids[i]
			}
			return 0
		},
		func(i int) int64 {
			if i < len(ids) {
				return 1
			}
			return 0
		},
		func(int) int64 { return 0 },
	} {
		for i := range length {
			body = binary.LittleEndian.AppendUint64(body, uint64(value(i)))
		}
	}
	var inputs []string
	for _, name := range []string{"input_ids", "attention_mask", "token_type_ids"} {
		inputs = append(inputs, fmt.Sprintf(`{"name":%q,"shape":[1,%d],"datatype":"INT64","parameters":{"binary_data_size":%d}}`, name, length, 8*length))
	}
	head := `{"parameters":{"binary_data_output":true},"inputs":[` + strings.Join(inputs, ",") + `]}`
	return request{header: map[string]string{"Inference-Header-Content-Length": strconv.Itoa(len(head))}, body: append([]byte(head), body...)}
}

// embedding returns the numbers of an answer's first token.
func (a answer) embedding() []float64 {
	n, _ := strconv.Atoi(a.header.Get("Inference-Header-Content-Length"))
	var out []float64
	for i := range 384 {
		out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(a.body[n+4*i:]))))
	}
	return out
}

func cosine(a, b []float64) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
	}
	return ab / math.Sqrt(aa*bb)
}

// Sentences of several callers, of different lengths, are run in one batch: each gets the embedding that it gets
// alone. A sentence of another length than the model's is refused with the reason.
func TestSentencesOfSeveralCallersShareBatches(t *testing.T) {
	sets := [][]int64{}
	for n := range 12 {
		ids := []int64{101}
		for i := range 3 + 4*n {
			ids = append(ids, int64(1996+(n*977+i*31)%20000))
		}
		sets = append(sets, append(ids, 102))
	}
	s := sentences(t, 1, 2, 4)
	alone := make([][]float64, len(sets))
	for n, ids := range sets {
		alone[n] = s.must(sentence(ids, tokens)).embedding()
	}
	worst := 1.0
	var mu sync.Mutex
	var all sync.WaitGroup
	for n, ids := range sets {
		all.Go(func() {
			for range 5 {
				a, err := s.do(sentence(ids, tokens))
				if err != nil || a.status != 200 {
					t.Errorf("%v %d %s", err, a.status, a.body)
					return
				}
				got := a.embedding()
				own, other := cosine(got, alone[n]), -1.0
				for m := range alone {
					if m != n {
						other = max(other, cosine(got, alone[m]))
					}
				}
				mu.Lock()
				worst = min(worst, own)
				mu.Unlock()
				if own < other {
					t.Errorf("sentence %d: similarity %.4f to its own embedding, %.4f to another's", n, own, other)
				}
			}
		})
	}
	all.Wait()
	stats := string(s.must(request{method: "GET", path: "/v2/models/m/stats"}).body)
	if !strings.Contains(stats, `"batch_size":4`) {
		t.Errorf("no batch of four: %s", stats)
	}
	t.Logf("saw: sentences in batches, similarity to the embedding alone at least %.6f", worst)
	a, err := s.do(sentence(sets[0], 40))
	if err != nil || a.status != 400 || !strings.Contains(a.Error, "its shape is [1 40], and the model takes [1 64]") {
		t.Errorf("%v %d %s", err, a.status, a.body)
	}
}
