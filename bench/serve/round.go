package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/ort"
)

// Goals of the server's cost of a request, with one caller on a unix socket.
const (
	maxShare = 60 * time.Microsecond  // waiting and overhead as the server counts them, without the model
	maxRound = 150 * time.Microsecond // round trip of a client in Go, above ONNX Runtime alone
)

// client is an HTTP client of a unix socket.
func client(socket string, connections int) *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		MaxIdleConnsPerHost: connections, MaxIdleConns: connections, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
}

// ask sends a request with binary tensors, and reads its answer.
func ask(c *http.Client, path string, head, data []byte) (status int, answer []byte, err error) {
	q, err := http.NewRequest(http.MethodPost, "http://unix"+path, io.MultiReader(bytes.NewReader(head), bytes.NewReader(data)))
	if err != nil {
		return 0, nil, err
	}
	q.ContentLength = int64(len(head) + len(data))
	q.Header["Inference-Header-Content-Length"] = []string{strconv.Itoa(len(head))}
	p, err := c.Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer p.Body.Close()
	answer, err = io.ReadAll(p.Body)
	return p.StatusCode, answer, err
}

// request is the JSON before the data of one row.
func (m *model) request() []byte {
	shape, _ := json.Marshal(m.shape) // integers
	return fmt.Appendf(nil, `{"inputs":[{"name":%q,"shape":%s,"datatype":"FP32","parameters":{"binary_data_size":%d}}],"parameters":{"binary_data_output":true}}`, m.input, shape, m.bytes())
}

// spent are the sums of the server's statistics, in ns.
type spent struct {
	requests                         int64
	total, queue, input, infer, outs int64
}

func statistics(c *http.Client, name string) (s spent, err error) {
	p, err := c.Get("http://unix/v2/models/" + name + "/stats")
	if err != nil {
		return s, err
	}
	defer p.Body.Close()
	var v struct {
		Stats []struct {
			Infer map[string]struct {
				Count, NS int64
			} `json:"inference_stats"`
		} `json:"model_stats"`
	}
	if err := json.NewDecoder(p.Body).Decode(&v); err != nil || len(v.Stats) != 1 {
		return s, fmt.Errorf("statistics: %w", cmp.Or(err, errors.New("not of one model")))
	}
	i := v.Stats[0].Infer
	return spent{i["success"].Count, i["success"].NS, i["queue"].NS, i["compute_input"].NS, i["compute_infer"].NS, i["compute_output"].NS}, nil
}

// alone runs a model with ONNX Runtime in this process.
type alone struct {
	run   *ort.Runtime
	model *ort.Session
	bound *ort.Binding
	in    *ort.Tensor
	out   *ort.Tensor
}

func (s *study) openAlone(m *model) (a *alone, err error) {
	a = &alone{}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.run, err = ort.Open(s.library); err != nil {
		return a, err
	}
	if a.model, err = a.run.NewSession(s.file(m), ort.Options{Threads: runtime.NumCPU()}); err != nil {
		return a, err
	}
	if a.in, err = a.run.NewTensor(a.model.Inputs()[0].DType, m.shape); err != nil {
		return a, err
	}
	outs, err := a.model.Probe(a.in)
	if err != nil {
		return a, err
	}
	if a.out, err = a.run.NewTensor(outs[0].DType, outs[0].Shape); err != nil {
		return a, err
	}
	a.bound, err = a.model.Bind([]*ort.Tensor{a.in}, a.out)
	return a, err
}

func (a *alone) close() {
	if a.bound != nil {
		a.bound.Close()
	}
	for _, t := range []*ort.Tensor{a.in, a.out} {
		if t != nil {
			t.Close()
		}
	}
	if a.model != nil {
		a.model.Close()
	}
	if a.run != nil {
		a.run.Close()
	}
}

func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

// roundTrips measures one caller, in turns with ONNX Runtime alone in this process.
func (s *study) roundTrips(ctx context.Context) (err error) {
	s.printf("\n## One caller\n\n")
	s.printf("A client in Go (net/http), HTTP over the unix socket, binary tensors; ONNX Runtime in the client's process in turns with it, five rounds. Medians in µs; the\nserver's share is the mean of its statistics, as perf_analyzer prints them.\n\n")
	s.printf("| model | round trip | p99 | ONNX Runtime | p99 | difference | server: queue | overhead | input | output | share |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	var goals []func()
	for i := range models {
		m := &models[i]
		p := s.pipeline(m, "")
		round, raw, used, err := s.roundTrip(ctx, m, func() (*server, error) { return s.start(ctx, p) })
		if err != nil {
			return err
		}
		each := func(ns int64) time.Duration { return time.Duration(ns / max(used.requests, 1)) }
		over := used.total - used.queue - used.input - used.infer - used.outs
		share, above := each(used.total-used.infer), quantile(round, .5)-quantile(raw, .5)
		s.printf("| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", m.name, micros(quantile(round, .5)), micros(quantile(round, .99)),
			micros(quantile(raw, .5)), micros(quantile(raw, .99)), micros(above), micros(each(used.queue)), micros(each(over)), micros(each(used.input)), micros(each(used.outs)), micros(share))
		if m.name != "id4" {
			continue // copying 602 kB costs more than the request
		}
		goals = append(goals, func() {
			s.goal("share of the server in a request of "+m.name, share, maxShare)
			s.goal("round trip of "+m.name+" above ONNX Runtime alone", above, maxRound)
		})
	}
	s.printf("\n")
	for _, goal := range goals {
		goal()
	}
	return nil
}

func (s *study) roundTrip(ctx context.Context, m *model, start func() (*server, error)) (round, raw []time.Duration, used spent, err error) {
	r, err := start()
	if err != nil {
		return nil, nil, used, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	a, err := s.openAlone(m)
	if err != nil {
		return nil, nil, used, err
	}
	defer a.close()
	c := client(r.socket, 1)
	defer c.CloseIdleConnections()
	head, data := m.request(), make([]byte, m.bytes())
	path := "/v2/models/" + m.name + "/infer"
	one := func() error {
		status, answer, err := ask(c, path, head, data)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", status, answer)
		}
		return err
	}
	const rounds = 5
	for range 50 {
		if err := one(); err != nil {
			return nil, nil, used, err
		}
	}
	before, err := statistics(c, m.name)
	if err != nil {
		return nil, nil, used, err
	}
	for range rounds {
		for end := time.Now().Add(s.window / 2); time.Now().Before(end) && ctx.Err() == nil; {
			began := time.Now()
			if err := one(); err != nil {
				return nil, nil, used, err
			}
			round = append(round, time.Since(began))
		}
		for end := time.Now().Add(s.window / 2); time.Now().Before(end) && ctx.Err() == nil; {
			began := time.Now()
			copy(a.in.Bytes(), data)
			if err := a.bound.Run(); err != nil {
				return nil, nil, used, err
			}
			raw = append(raw, time.Since(began))
		}
	}
	after, err := statistics(c, m.name)
	used = spent{after.requests - before.requests, after.total - before.total, after.queue - before.queue, after.input - before.input, after.infer - before.infer, after.outs - before.outs}
	return round, raw, used, err
}
