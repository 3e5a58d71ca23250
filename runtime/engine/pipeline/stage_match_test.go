package pipeline_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// texts is a sink that remembers results as JSON.
type texts struct{ all []string }

func (s *texts) Write(r *result.Record) error {
	s.all = append(s.all, string(result.AppendResults(nil, r.Results)))
	return nil
}

func (s *texts) Close() error { return nil }

// dimension is that of the embeddings of [embeddingPlan]: a picture of 4 by 2 pixels.
const dimension = 24

// write writes a file below a directory, and returns its path and digest.
func write(t testing.TB, dir, name string, b []byte) (path, sum string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, digest(b)
}

// flatten is a model that gives its input as rows of one vector.
func flatten(rows int64) []byte {
	g := onnx.Graph{
		Nodes:   []onnx.Node{{Op: "Reshape", In: []string{"x", "shape"}, Out: []string{"y"}}},
		Weights: []onnx.Weight{{Name: "shape", Dims: []int64{2}, Data: []int64{rows, dimension / rows}}},
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 1, 3, 2, 4)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, rows, dimension/rows)},
	}
	return g.Encode()
}

// digest returns the SHA-256 of a file.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// safetensors is a gallery, without a model if that is "".
func safetensors(names []string, model string, vectors ...[]float32) []byte {
	list, _ := json.Marshal(names)
	meta, _ := json.Marshal(map[string]string{"names": string(list), "model": model})
	if model == "" {
		meta, _ = json.Marshal(map[string]string{"names": string(list)})
	}
	n := len(vectors) * len(vectors[0])
	header := fmt.Sprintf(`{"__metadata__":%s,"embeddings":{"dtype":"F32","shape":[%d,%d],"data_offsets":[0,%d]}}`, meta, len(vectors), len(vectors[0]), 4*n)
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	for _, v := range vectors {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b
}

// picture is a frame whose embedding is a vector of whole numbers by 255.
func picture(v []float32) []byte {
	b := make([]byte, dimension) // red, green and blue of each pixel
	for c := range 3 {
		for i := range 8 {
			b[3*i+c] = byte(v[8*c+i])
		}
	}
	return b
}

// embeddingPlan compares pictures with a gallery.
func embeddingPlan(t testing.TB, dir string, gallery []byte, pictures ...[]float32) plan.Pipeline {
	var clip []byte
	for _, v := range pictures {
		clip = append(clip, picture(v)...)
	}
	write(t, dir, "clip.rgb", clip)
	write(t, dir, "flatten.onnx", flatten(1))
	write(t, dir, "staff.safetensors", gallery)
	return plan.Pipeline{
		Source: plan.PipelineSource{Kind: "file", Path: "clip.rgb", Format: "rgb", Width: 4, Height: 2, FPSNum: 10, FPSDen: 1},
		Stages: []plan.PipelineStage{
			{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 4, Height: 2, Fit: "stretch"}},
			{ID: "embed", Kind: "model", Input: "pre", Model: &plan.Model{Path: "flatten.onnx"}},
			{ID: "who", Kind: "match", Input: "embed", Match: &plan.Match{Gallery: "staff.safetensors"}},
		},
	}
}

func randomVector(rng *rand.Rand) []float32 {
	v := make([]float32, dimension)
	for i := range v {
		v[i] = float32(rng.IntN(256))
	}
	return v
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+float64(a[i])*float64(b[i]), aa+float64(a[i])*float64(a[i]), bb+float64(b[i])*float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// The entries are those of the largest cosines, best first, on the CPU and on the GPU. Equals are in the
// order of the gallery.
func TestMatchesAreThoseOfTheLargestCosines(t *testing.T) {
	library, dir := models.Library(t), t.TempDir()
	rng := rand.New(rand.NewPCG(3, 4))
	const entries, frames, top = 300, 20, 7
	var names []string
	var vectors, pictures [][]float32
	for i := range entries {
		v := randomVector(rng)
		if i%5 == 4 {
			v = slices.Clone(vectors[rng.IntN(i)]) // equal to another
		}
		names, vectors = append(names, fmt.Sprintf("entry %d", i)), append(vectors, v)
	}
	for n := range frames {
		pictures = append(pictures, randomVector(rng))
		if n%2 == 0 {
			pictures[n] = vectors[rng.IntN(entries)]
		}
	}
	pl := embeddingPlan(t, dir, safetensors(names, digest(flatten(1)), vectors...), pictures...)
	pl.Stages[2].Match.Top = top
	for _, c := range []struct {
		device []string
		edit   func(*plan.Pipeline)
	}{
		{},
		{edit: func(p *plan.Pipeline) { p.Stages[2].Instances = 3 }},
		{device: []string{"who"}},
		{device: []string{"embed", "who"}},
		{device: []string{"pre", "embed", "who"}, edit: func(p *plan.Pipeline) { p.Stages[2].Instances = 2 }},
	} {
		got := &texts{}
		o := pipeline.Options{Name: "staff", Plan: onGPU(pl, 10e9, "", c.device...), Dir: dir, Library: library, Sink: got, GPU: standIn("")}
		if c.edit != nil {
			c.edit(&o.Plan)
		}
		sum := run(t, o)
		if len(got.all) != frames {
			t.Fatalf("%d records", len(got.all))
		}
		for stage, n := range sum.Fallbacks {
			if n > 0 {
				t.Errorf("the CPU did %d frames of %s: %s", n, stage, sum.Runtime.Worker.Last)
			}
		}
		for n, text := range got.all {
			var found []struct {
				Match string
				Entry int
				Score float64
			}
			if err := json.Unmarshal([]byte("["+text+"]"), &found); err != nil || len(found) != top {
				t.Fatalf("%v: %s", err, text)
			}
			want := make([]int, entries)
			for i := range want {
				want[i] = i
			}
			slices.SortStableFunc(want, func(a, b int) int {
				x, y := cosine(vectors[a], pictures[n]), cosine(vectors[b], pictures[n])
				switch {
				case x > y:
					return -1
				case x < y:
					return 1
				}
				return 0
			})
			for k, f := range found {
				if math.Abs(f.Score-cosine(vectors[want[k]], pictures[n])) > 2e-6 || f.Score > 1 || f.Match != names[f.Entry] {
					t.Errorf("%v, frame %d, place %d: %+v, want entry %d of %.6f", c.device, n, k, f, want[k], cosine(vectors[want[k]], pictures[n]))
				}
				if k > 0 && slices.Equal(vectors[f.Entry], vectors[found[k-1].Entry]) && f.Entry < found[k-1].Entry {
					t.Errorf("equal entries %d and %d are not in order", found[k-1].Entry, f.Entry)
				}
			}
			if n%2 == 0 && found[0].Score < 0.999998 {
				t.Errorf("an exact copy has a similarity of %f", found[0].Score)
			}
		}
	}
}

// An embedding without a direction is reported, and the next frame is compared. Nothing is NaN.
func TestAnEmbeddingWithoutADirectionHasNoMatch(t *testing.T) {
	library, dir := models.Library(t), t.TempDir()
	rng := rand.New(rand.NewPCG(5, 6))
	a, zero := randomVector(rng), make([]float32, dimension)
	pl := embeddingPlan(t, dir, safetensors([]string{"anna"}, digest(flatten(1)), a), a, zero, a)
	none := `{"match":null,"reason":"embedding has no direction"}`
	for _, device := range [][]string{nil, {"embed", "who"}} {
		got := &texts{}
		o := pipeline.Options{Name: "staff", Plan: onGPU(pl, 10e9, "", device...), Dir: dir, Library: library, Sink: got, GPU: standIn("")}
		run(t, o)
		if anna := `{"match":"anna","entry":0,"score":1}`; !slices.Equal(got.all, []string{anna, none, anna}) {
			t.Errorf("%v: %q", device, got.all)
		}
	}
	// Not a number, infinite, and so short or long that its square is neither.
	for _, expression := range []string{"log(x * 0 - 1)", "log(x * 0)", "x * 1e-20", "x * 1e25", "sqrt(x - 5)"} {
		for _, device := range [][]string{nil, {"embed", "odd", "who"}} {
			got := &texts{}
			pl := onGPU(pl, 10e9, "", device...)
			who := pl.Stages[2]
			who.Input = "odd"
			odd := plan.PipelineStage{ID: "odd", Kind: "map", Input: "embed", Map: &plan.Map{Expressions: []string{expression}}, Device: who.Device, Deadline: who.Deadline}
			pl.Stages = []plan.PipelineStage{pl.Stages[0], pl.Stages[1], odd, who}
			run(t, pipeline.Options{Name: "staff", Plan: pl, Dir: dir, Library: library, Sink: got, GPU: standIn("")})
			if !slices.Equal(got.all, []string{none, none, none}) {
				t.Errorf("%s on %v: %q", expression, device, got.all)
			}
		}
	}
	// Opposite and right-angled vectors are not similar.
	pl.Stages = slices.Clone(pl.Stages)
	who := pl.Stages[2]
	who.Input = "minus"
	pl.Stages = []plan.PipelineStage{pl.Stages[0], pl.Stages[1], {ID: "minus", Kind: "map", Input: "embed", Map: &plan.Map{Expressions: []string{"-x"}}}, who}
	got := &texts{}
	run(t, pipeline.Options{Name: "staff", Plan: pl, Dir: dir, Library: library, Sink: got})
	if !slices.Equal(got.all, []string{"", none, ""}) {
		t.Errorf("%q", got.all)
	}
}

// A frame can have several embeddings, one in each row.
func TestEachRowOfAnEmbeddingIsMatched(t *testing.T) {
	library, dir := models.Library(t), t.TempDir()
	rng := rand.New(rand.NewPCG(7, 8))
	a, b := randomVector(rng), randomVector(rng)
	copy(b[:12], a[12:])
	clear(b[12:])
	pl := embeddingPlan(t, dir, safetensors([]string{"left", "right"}, digest(flatten(2)), a[:12], a[12:]), a, b)
	write(t, dir, "flatten.onnx", flatten(2))
	for _, device := range [][]string{nil, {"embed", "who"}} {
		got := &texts{}
		pl.Stages[2].Match = &plan.Match{Gallery: "staff.safetensors", Threshold: "0.999"}
		run(t, pipeline.Options{Name: "staff", Plan: onGPU(pl, 10e9, "", device...), Dir: dir, Library: library, Sink: got, GPU: standIn("")})
		if want := []string{
			`{"match":"left","entry":0,"score":1,"row":0},{"match":"right","entry":1,"score":1,"row":1}`,
			`{"match":"right","entry":1,"score":1,"row":0},{"match":null,"reason":"embedding has no direction","row":1}`,
		}; !slices.Equal(got.all, want) {
			t.Errorf("%v: %q", device, got.all)
		}
	}
}

// What cannot be compared is refused before the first frame.
func TestGalleriesMustMatchTheModel(t *testing.T) {
	library := models.Library(t)
	rng := rand.New(rand.NewPCG(9, 10))
	a := randomVector(rng)
	made := digest(flatten(1))
	whole := safetensors([]string{"anna"}, made, a)
	for _, c := range []struct {
		name     string
		gallery  []byte
		edit     func(dir string, p *plan.Pipeline)
		wantText string
	}{
		{"right", whole, nil, ""},
		{"right digest", whole, func(_ string, p *plan.Pipeline) {
			p.Stages[2].Match.SHA256, p.Stages[1].Model.SHA256 = digest(whole), made
		}, ""},
		{"other model", safetensors([]string{"anna"}, strings.Repeat("0", 64), a), nil, "gallery staff.safetensors was made with the model 000000000000…, and stage embed runs " + made[:12]},
		{"other length", safetensors([]string{"anna"}, made, a[:12]), nil, "an embedding has 24 values (the input is [1 24]), and those of gallery"},
		{"other digest", whole, func(_ string, p *plan.Pipeline) { p.Stages[2].Match.SHA256 = strings.Repeat("0", 64) }, "the file is damaged or a different gallery"},
		{"truncated", whole[:len(whole)-1], nil, "it is truncated or damaged"},
		{"no file", whole, func(_ string, p *plan.Pipeline) { p.Stages[2].Match.Gallery = "none" }, "gallery: "},
		{"a link to a device", whole, func(dir string, _ *plan.Pipeline) {
			_ = os.Remove(filepath.Join(dir, "staff.safetensors"))
			_ = os.Symlink("/dev/zero", filepath.Join(dir, "staff.safetensors"))
		}, "neither a regular file nor a pipe"},
		{"a pipe without a writer", whole, func(dir string, p *plan.Pipeline) {
			p.Stages[2].Match.Gallery = filepath.Join(dir, "pipe") // an absolute path
			if err := unix.Mkfifo(p.Stages[2].Match.Gallery, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "is not a regular file"},
		{"no model", safetensors([]string{"anna"}, "", a), nil, "add model, the SHA-256 of the model file"},
		{"a pipe", whole, func(dir string, p *plan.Pipeline) { p.Stages[2].Match.Gallery = "/proc/self/fd/0" }, "gallery"},
		{"zero vector", safetensors([]string{"anna"}, made, make([]float32, dimension)), nil, `entry 0, "anna", has no direction`},
		{"threshold", whole, func(_ string, p *plan.Pipeline) { p.Stages[2].Match.Threshold = "-1" }, `threshold "-1"`},
		{"top", whole, func(_ string, p *plan.Pipeline) { p.Stages[2].Match.Top = 33 }, "top is 1 to 32"},
		{"metric", whole, func(_ string, p *plan.Pipeline) { p.Stages[2].Match.Metric = "l2" }, `unknown metric "l2"`},
		{"pixels", whole, func(_ string, p *plan.Pipeline) {
			p.Stages = []plan.PipelineStage{p.Stages[0], p.Stages[2]}
			p.Stages[1].Input = "pre"
		}, "a preprocess stage gives pixels"},
	} {
		dir := t.TempDir()
		pl := embeddingPlan(t, dir, c.gallery, a)
		if c.edit != nil {
			c.edit(dir, &pl)
		}
		p, err := pipeline.New(pipeline.Options{Name: "staff", Plan: pl, Dir: dir, Library: library, Sink: &texts{}})
		switch {
		case err == nil:
			if err := p.Close(); err != nil || c.wantText != "" {
				t.Errorf("%s: accepted, %v", c.name, err)
			}
		case c.wantText == "" || !strings.Contains(err.Error(), c.wantText):
			t.Errorf("%s: %v, want %q", c.name, err, c.wantText)
		}
	}
}

// A chain equals its expressions one by one, to the bit, here and on the GPU.
func TestAChainEqualsItsExpressions(t *testing.T) {
	library, dir := models.Library(t), t.TempDir()
	rng := rand.New(rand.NewPCG(11, 12))
	pl := embeddingPlan(t, dir, safetensors([]string{"anna"}, digest(flatten(1)), randomVector(rng)), randomVector(rng), randomVector(rng), randomVector(rng))
	p, q := []string{"0.485", "0.456", "0.406"}, []string{"0.229", "0.224", "0.225"}
	list := []string{"(x - p) / q", "silu(x * 3)", "clamp(exp(x) - in, -6, 6)"}
	mapped := func(maps ...plan.Map) plan.Pipeline {
		out := pl
		out.Stages = slices.Clone(pl.Stages[:1])
		for i := range maps {
			out.Stages = append(out.Stages, plan.PipelineStage{ID: fmt.Sprint("m", i), Kind: "map", Input: out.Stages[i].ID, Map: &maps[i]})
		}
		dump := plan.PipelineStage{ID: "dump", Kind: "postprocess", Input: out.Stages[len(maps)].ID, Post: &plan.Post{Kind: "raw"}}
		out.Stages = append(out.Stages, dump)
		return out
	}
	values := func(pl plan.Pipeline, device ...string) string {
		s := &bits{}
		sum := run(t, pipeline.Options{Name: "m", Plan: onGPU(pl, 10e9, "", device...), Dir: dir, Library: library, Sink: s, GPU: standIn("")})
		for stage, n := range sum.Fallbacks {
			if n > 0 {
				t.Errorf("the CPU did %d frames of %s: %s", n, stage, sum.Runtime.Worker.Last)
			}
		}
		return s.text
	}
	want := values(mapped(plan.Map{Expressions: list[:1], P: p, Q: q}, plan.Map{Expressions: list[1:2]}, plan.Map{Expressions: []string{"clamp(exp(x), -1000, 1000)"}}))
	for _, device := range [][]string{{"m0"}, {"pre", "m0"}, {"pre", "m0", "m1", "m2"}, {"m1", "m2"}} {
		if got := values(mapped(plan.Map{Expressions: list[:1], P: p, Q: q}, plan.Map{Expressions: list[1:2]}, plan.Map{Expressions: []string{"clamp(exp(x), -1000, 1000)"}}), device...); got != want {
			t.Errorf("on %v: %s, want %s", device, got, want)
		}
	}
	chain := plan.Map{Expressions: []string{list[0], list[1], "clamp(exp(x), -1000, 1000)"}, P: p, Q: q}
	if got := values(mapped(chain)); got != want {
		t.Errorf("the chain gives %s, its expressions %s", got, want)
	}
	if got := values(mapped(chain), "pre", "m0"); got != want {
		t.Errorf("on the GPU the chain gives %s", got)
	}
	// Several chains, each on two GPUs.
	s := &bits{}
	two := pipeline.Options{Name: "m", Plan: onGPU(mapped(plan.Map{Expressions: list[:1], P: p, Q: q}, plan.Map{Expressions: list[1:2]}, plan.Map{Expressions: []string{"clamp(exp(x), -1000, 1000)"}}), 10e9, "", "pre", "m0", "m2"),
		Dir: dir, Library: library, Sink: s, GPU: standIn("")}
	two.Plan.GPUs, two.GPU.Devices = []int{0, 1}, 2
	two.Note = func(err error) { t.Error(err) }
	sum := run(t, two)
	for stage, n := range sum.Fallbacks {
		if n > 0 || len(sum.Runtime.GPUs) != 2 {
			t.Errorf("the CPU did %d frames of %s: %+v", n, stage, sum.Runtime.GPUs)
		}
	}
	if s.text != want {
		t.Errorf("on two GPUs %s, want %s", s.text, want)
	}
	// The CPU does the work of a lost GPU.
	s = &bits{}
	lost := pipeline.Options{Name: "m", Plan: onGPU(mapped(plan.Map{Expressions: list, P: p, Q: q}), 50e6, "", "pre", "m0"), Dir: dir, Library: library, Sink: s, GPU: standIn("launch:hang=1s@n=8"), Backoff: soon}
	run(t, lost)
	if want := values(mapped(plan.Map{Expressions: list, P: p, Q: q})); s.text != want {
		t.Errorf("after a loss %s, want %s", s.text, want)
	}
}

// bits is a sink that remembers values to the bit.
type bits struct{ text string }

func (s *bits) Write(r *result.Record) error {
	for _, v := range r.Results[0].Values {
		s.text += fmt.Sprintf("%08x ", math.Float32bits(v))
	}
	return nil
}

func (s *bits) Close() error { return nil }

func TestInvalidMapsAreRefused(t *testing.T) {
	for _, c := range []struct {
		m        plan.Map
		wantText string
	}{
		{plan.Map{}, "the chain has no expressions"},
		{plan.Map{Expressions: []string{"x", "x +"}}, "expression 2, line 1, column 4: expected operand"},
		{plan.Map{Expressions: []string{"x + y"}}, "y is an element of a second tensor, and a map stage takes one"},
		{plan.Map{Expressions: []string{"x + p"}}, "the expressions read p, which has no values"},
		{plan.Map{Expressions: []string{"x"}, Q: []string{"1"}}, "q has values, and the expressions do not read it"},
		{plan.Map{Expressions: []string{"x + p + q"}, P: []string{"1", "2", "3"}, Q: []string{"1"}}, "p and q have 3 and 1 values"},
		{plan.Map{Expressions: []string{"x + p"}, P: []string{"1", "2"}}, "2 values for the channels of a tensor [1 3 1 2]"},
		{plan.Map{Expressions: []string{"x + p"}, P: []string{"1", "2", "NaN"}}, `"NaN" is not a decimal number`},
		{plan.Map{Expressions: []string{strings.Repeat("x", 1<<16)}}, "at most 4096"},
	} {
		pl := gated(writeScene(t, "grey", 8), "grey", plan.Gate{})
		pl.Stages = slices.Clone(pl.Stages)
		pl.Stages[2].Input = "e"
		pl.Stages = slices.Insert(pl.Stages, 2, plan.PipelineStage{ID: "e", Kind: "map", Input: "pre", Map: &c.m})
		_, err := pipeline.New(pipeline.Options{Name: "bad", Plan: pl, Sink: &seen{}})
		if err == nil || !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%v, want %q", err, c.wantText)
		}
	}
}

// quiet is a sink that writes into memory that it has.
type quiet struct{ room []byte }

func (s *quiet) Write(r *result.Record) error {
	s.room = r.AppendJSON(s.room[:0])
	return nil
}

func (s *quiet) Close() error { return nil }

// After warm-up, gate, map, match and repeated results allocate nothing, here and in front of the GPU.
func TestStagesOfTheCoreAllocateNothing(t *testing.T) {
	library, dir := models.Library(t), t.TempDir()
	rng := rand.New(rand.NewPCG(13, 14))
	var pictures, vectors [][]float32
	var names []string
	for i := range 2400 {
		pictures = append(pictures, randomVector(rng))
		if i%3 > 0 {
			pictures[i] = pictures[i-1]
		}
		if i < 40 {
			vectors, names = append(vectors, pictures[i]), append(names, "x")
		}
	}
	pl := embeddingPlan(t, dir, safetensors(names, digest(flatten(1)), vectors...), pictures...)
	pl.Stages = []plan.PipelineStage{
		{ID: "quiet", Kind: "gate", Input: "source", Gate: &plan.Gate{Threshold: "0", Area: "0", Grid: 4, Repeat: true, MaxAge: 60e9}},
		pl.Stages[0],
		{ID: "scale", Kind: "map", Input: "pre", Map: &plan.Map{Expressions: []string{"x * p", "clamp(x, 0, 1)"}, P: []string{"1", "1", "1"}}},
		pl.Stages[1], pl.Stages[2],
	}
	pl.Stages[1].Input, pl.Stages[3].Input, pl.Stages[4].Match = "quiet", "scale", &plan.Match{Gallery: "staff.safetensors", Top: 5, Threshold: "0"}
	for _, device := range [][]string{nil, {"quiet", "pre", "scale", "embed", "who"}} {
		mallocs := func(frames uint64) int64 {
			p, err := pipeline.New(pipeline.Options{Name: "m", Plan: onGPU(pl, 10e9, "", device...), Dir: dir, Library: library, Sink: &quiet{}, GPU: standIn(""), Frames: frames})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			sum, err := p.Run(t.Context())
			runtime.ReadMemStats(&after)
			if err != nil || sum.Frames.Done != frames/3 || sum.Frames.Skipped != frames-frames/3 {
				t.Fatalf("%+v, %v", sum.Frames, err)
			}
			return int64(after.Mallocs - before.Mallocs)
		}
		if extra := mallocs(2400) - mallocs(300); extra > 200 {
			t.Errorf("%v: 2,100 frames made %d allocations", device, extra)
		}
	}
}

// The embeddings of crops are matched, each for its box, also when a gate repeats the results.
func TestCropsAreMatched(t *testing.T) {
	c := newCascade(t, 0, 0, 0)
	var names []string
	var vectors [][]float32
	for n := range 12 {
		v := cellColor(n)
		names, vectors = append(names, fmt.Sprintf("cell %d", n)), append(vectors, []float32{float32(v[0]), float32(v[1]), float32(v[2])})
	}
	c.write("cells.safetensors", safetensors(names, digest(cropMean(0)), vectors...))
	for _, device := range [][]string{nil, {"pre", "find", "boxes", "crops", "look", "mean"}, {"quiet", "pre", "find", "boxes", "crops", "look", "mean"}} {
		pl := c.plan(5, &plan.ModelBatch{Buckets: []int{1, 4}})
		pl.Stages[5] = plan.PipelineStage{ID: "mean", Kind: "match", Input: "look", Match: &plan.Match{Gallery: "cells.safetensors", Threshold: "0.9"}}
		pl.Stages[0].Input = "quiet"
		pl.Stages = slices.Insert(pl.Stages, 0, plan.PipelineStage{ID: "quiet", Kind: "gate", Input: "source", Gate: &plan.Gate{MaxAge: 60e9, Repeat: true}})
		frames, sum := c.run(onGPU(pl, 10e9, "", device...), pipeline.Options{})
		if sum.Frames.Done != 1 || sum.Frames.Skipped != 2 || frames[1] != frames[0] || frames[2] != frames[0] {
			t.Fatalf("%v: %+v\n%s", device, sum.Frames, strings.Join(frames, "\n"))
		}
		for stage, n := range sum.Fallbacks {
			if n > 0 {
				t.Errorf("the CPU did %d frames of %s: %s", n, stage, sum.Runtime.Worker.Last)
			}
		}
		var boxes []struct {
			Then map[string][]struct{ Match string }
		}
		if err := json.Unmarshal([]byte(frames[0]), &boxes); err != nil || len(boxes) < 6 || boxes[5].Then != nil {
			t.Fatalf("%v: %v: %s", device, err, frames[0])
		}
		for n, b := range boxes[:5] {
			if m := b.Then["mean"]; len(m) != 1 || m[0].Match != names[n] {
				t.Errorf("%v: box %d is %v", device, n, m)
			}
		}
	}
}
