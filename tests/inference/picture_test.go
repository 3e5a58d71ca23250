package inference

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// pictures is the pipeline of the guide: files of pictures in, results out.
func pictures(t *testing.T, budget int64) *service {
	t.Helper()
	dir := models.Dir(t)
	p := plan.Pipeline{
		Source: plan.PipelineSource{Format: "image", Width: 224, Height: 224, Request: &plan.Request{Limit: 16}},
		Stages: []plan.PipelineStage{
			{ID: "frame", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 224, Height: 224, Mean: []string{"0.485", "0.456", "0.406"}, Std: []string{"0.229", "0.224", "0.225"}}},
			{ID: "classify", Kind: "model", Input: "frame", Model: &plan.Model{Path: filepath.Join(dir, models.Orientation), Threads: 1, Batch: &plan.ModelBatch{Buckets: []int{1, 2, 4}}}},
			{ID: "side", Kind: "postprocess", Input: "classify", Post: &plan.Post{Kind: "argmax"}},
		},
		Queue: plan.PipelineQueue{Capacity: 8, Policy: "block"},
	}
	if budget > 0 {
		p.Budget = &plan.PipelineBudget{Memory: budget}
	}
	return serve(t, p, nil)
}

// drawPage draws lines as of text, turned by quarters.
func drawPage(width, height, turns int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(m, m.Rect, image.White, image.Point{}, draw.Src)
	for y := range height {
		for x := range width {
			u, v := x, y
			if turns%2 == 1 {
				u, v = y, x
			}
			if v%24 < 10 && u%9 < 5 && u > 20 && (u/60+v/24)%4 != 0 {
				m.Set(x, y, color.RGBA{20, 20, 40, 255})
			}
		}
	}
	return m
}

func encodePNG(t *testing.T, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// file is a request with a picture.
func file(data []byte) request {
	return request{header: map[string]string{length: "0"}, body: data}
}

// top is the class and the score of an answer.
func (a answer) top(t *testing.T) (class int, score float64) {
	t.Helper()
	var rows []struct {
		Class int
		Score float64
	}
	if len(a.Outputs) != 1 || len(a.Outputs[0].Data) == 0 {
		t.Fatalf("%s", a.body)
	}
	text, _ := a.Outputs[0].Data[0].(string)
	if err := json.Unmarshal([]byte(text), &rows); err != nil || len(rows) == 0 {
		t.Fatalf("%v: %s", err, a.body)
	}
	return rows[0].Class, rows[0].Score
}

// The same picture in each kind of file gives the same class; callers side by side get the answer to their own.
func TestPicturesOfEveryKind(t *testing.T) {
	s := pictures(t, 0)
	page := drawPage(224, 224, 0)
	class, score := s.must(file(encodePNG(t, page))).top(t)
	gray, deep, palette := image.NewGray(page.Rect), image.NewNRGBA64(page.Rect), image.NewPaletted(page.Rect, color.Palette{color.White, color.RGBA{20, 20, 40, 255}})
	var baseline bytes.Buffer
	if err := jpeg.Encode(&baseline, page, &jpeg.Options{Quality: 98}); err != nil {
		t.Fatal(err)
	}
	kinds := map[string][]byte{"JPEG": baseline.Bytes()}
	for name, to := range map[string]draw.Image{"grey PNG": gray, "PNG of 16 bits": deep, "PNG with a palette": palette} {
		draw.Draw(to, page.Rect, page, image.Point{}, draw.Src)
		kinds[name] = encodePNG(t, to)
	}
	for name, data := range kinds {
		got, with := s.must(file(data)).top(t)
		if got != class || with < score-0.1 || with > score+0.1 {
			t.Errorf("%s: class %d with %.3f, and the PNG file has %d with %.3f", name, got, with, class, score)
		}
	}
	var alone [2]string
	files := [2][]byte{encodePNG(t, drawPage(400, 300, 0)), encodePNG(t, drawPage(300, 400, 1))}
	for n := range files {
		alone[n] = string(s.must(file(files[n])).body)
	}
	if alone[0] == alone[1] {
		t.Fatalf("both pages give %s", alone[0])
	}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for range 3 {
				a, err := s.do(file(files[n%2]))
				if err != nil || a.status != 200 {
					t.Errorf("%v %d %s", err, a.status, a.body)
					return
				}
				class, score := a.top(t)
				var want answer
				if err := json.Unmarshal([]byte(alone[n%2]), &want); err != nil {
					t.Error(err)
					return
				}
				if c, with := want.top(t); class != c || score < with-1e-3 || score > with+1e-3 {
					t.Errorf("class %d with %.5f, alone %d with %.5f", class, score, c, with)
				}
			}
		})
	}
	all.Wait()
}

// claims is a PNG file whose header claims a size; its data is missing.
func claims(width, height uint32, depth, kind, interlace byte) []byte {
	head := append([]byte("IHDR"), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)...)
	head = append(head, depth, kind, 0, 0, interlace)
	out := binary.BigEndian.AppendUint32([]byte("\x89PNG\r\n\x1a\n"), 13)
	out = append(out, head...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(head))
}

// A small file that would become a large picture is refused before it is decoded, and pictures that are decoded at the
// same time share one bound.
func TestPicturesAreBounded(t *testing.T) {
	s := pictures(t, 320<<20) // 80 MiB for pictures
	for _, c := range []struct {
		data   []byte
		status int
		error  string
	}{
		{claims(6000, 6000, 16, 6, 0), 413, "takes up to 275 MiB to decode, and at most 80 are used: a quarter of budget.memory"},
		{claims(4000, 4000, 8, 6, 1), 413, "takes up to 123 MiB"},
		{claims(16000, 16000, 8, 0, 0), 413, "at most 64 million are decoded"},
		{claims(0, 1, 8, 0, 0), 400, "cannot be decoded"},
		{claims(100, 100, 8, 2, 0), 400, "cannot be decoded"},
		{[]byte("\xff\xd8\xff\xe0"), 400, "cannot be decoded"},
	} {
		if a, err := s.do(file(c.data)); err != nil || a.status != c.status || !strings.Contains(a.Error, c.error) {
			t.Errorf("%v %d %s; want %d %s", err, a.status, a.body, c.status, c.error)
		}
	}
	large := encodePNG(t, image.NewNRGBA(image.Rect(0, 0, 4000, 3000))) // 46 MiB as pixels
	s.must(file(large))
	before := s.resident()
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			if a, err := s.do(file(large)); err != nil || a.status != 200 {
				t.Errorf("%v %d %s", err, a.status, a.body)
			}
		})
	}
	all.Wait()
	after := s.resident()
	t.Logf("saw: six pictures of 46 MiB at once: %d MiB before, %d MiB after", before>>20, after>>20)
	if after > before+160<<20 {
		t.Errorf("memory grew from %d to %d MiB", before>>20, after>>20)
	}
}
