// Package inference starts the built yoctuned-serve on declared plans and sends it requests as clients
// do: raw HTTP, curl, and NVIDIA's tritonclient from PyPI.
package inference

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom/plugin"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// programs is the folder with the built programs.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "inference-programs-")
	if err != nil {
		return "", err
	}
	for name, tags := range map[string]string{"yoctuned": "", "yoctuned-serve": "serve"} {
		if out, err := exec.Command("go", "build", "-tags", tags, "-o", filepath.Join(dir, name), "../../cmd/yoctuned").CombinedOutput(); err != nil {
			return dir, fmt.Errorf("%w\n%s", err, out)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := programs(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// service is a running pipeline.
type service struct {
	t      *testing.T
	name   string
	dir    string
	socket string
	client *http.Client
	cmd    *exec.Cmd
	log    *logged
	ended  chan struct{}
	once   sync.Once // the first signal
}

// logged keeps what a program writes.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serve starts a pipeline. Its models are written to a folder first.
func serve(t *testing.T, p plan.Pipeline, files map[string][]byte) *service {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "inference") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.Sink.Kind, p.Source.Kind = "reply", "request"
	if p.Source.Request == nil {
		p.Source.Request = &plan.Request{}
	}
	if p.Source.Request.Model == "" {
		p.Source.Request.Model = "m"
	}
	whole := plan.Plan{Board: "orin-nano-8gb", Layer: "t", Target: "t", Release: "scarthgap", Pipelines: map[string]plan.Pipeline{"m": p}}
	if err := whole.Seal(); err != nil {
		t.Fatal(err)
	}
	text, err := whole.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plan.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	// The smaller program starts the larger one.
	cmd := exec.Command(filepath.Join(bin, "yoctuned"), "pipeline", "run", filepath.Join(dir, "plan.json"), "m", "--format", "json", "--library", models.Library(t))
	cmd.Env = append(os.Environ(), "RUNTIME_DIRECTORY="+dir, "GOMAXPROCS=2")
	s := &service{t: t, name: p.Source.Request.Model, dir: dir, socket: filepath.Join(dir, "requests"), cmd: cmd, log: &logged{}, ended: make(chan struct{})}
	cmd.Stderr, cmd.Stdout = s.log, s.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait(); close(s.ended) }()
	t.Cleanup(func() { s.stop() })
	s.client = &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.socket)
		},
	}}
	for until := time.Now().Add(30 * time.Second); !strings.Contains(s.log.String(), " answers on "); {
		select {
		case <-s.ended:
			t.Fatalf("it ended: %s", s.log)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(until) {
			t.Fatalf("it does not answer: %s", s.log)
		}
	}
	return s
}

// stop ends the program, and returns its exit status.
func (s *service) stop() int {
	s.signal()
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		_ = s.cmd.Process.Kill()
		s.t.Errorf("it did not end: %s", s.log)
		<-s.ended
	}
	return s.cmd.ProcessState.ExitCode()
}

// signal asks the program to end. A second signal would end it at once.
func (s *service) signal() {
	s.once.Do(func() { _ = s.cmd.Process.Signal(syscall.SIGTERM) })
}

// identity is a model that gives its input of float32 [n, width], and with several outputs its negation.
func identity(width int64, negated bool) []byte {
	g := onnx.Graph{
		Nodes:   []onnx.Node{{Op: "Identity", In: []string{"x"}, Out: []string{"y"}}},
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 0, width)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 0, width)},
	}
	if negated {
		g.Nodes = append(g.Nodes, onnx.Node{Op: "Neg", In: []string{"x"}, Out: []string{"z"}})
		g.Outputs = append(g.Outputs, onnx.Tensor("z", onnx.Float32, 0, width))
	}
	return g.Encode()
}

// id4 answers rows of four numbers with themselves.
func id4(buckets ...int) plan.Pipeline {
	p := plan.Pipeline{
		Source: plan.PipelineSource{Format: "tensor", Shape: []int64{1, 4}, Request: &plan.Request{}},
		Stages: []plan.PipelineStage{{ID: "id", Kind: "model", Input: "source", Model: &plan.Model{Path: "m.onnx"}}},
		Queue:  plan.PipelineQueue{Capacity: 8, Policy: "block"},
	}
	if len(buckets) > 0 {
		p.Stages[0].Model.Batch = &plan.ModelBatch{Buckets: buckets}
	}
	return p
}

// answer is an answer of the server.
type answer struct {
	status int
	header http.Header
	body   []byte

	Error      string
	ID         string
	Parameters map[string]any
	Outputs    []struct {
		Name, Datatype string
		Shape          []int64
		Data           []any
		Parameters     map[string]any
	}
}

// request is a request over HTTP.
type request struct {
	method, path string
	header       map[string]string
	body         []byte
}

func (s *service) do(r request) (answer, error) {
	method := "POST"
	if r.method != "" {
		method = r.method
	}
	path := "/v2/models/m/infer"
	if r.path != "" {
		path = r.path
	}
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	q, err := http.NewRequest(method, "http://unix"+path, body)
	if err != nil {
		return answer{}, err
	}
	for k, v := range r.header {
		q.Header[k] = []string{v}
	}
	p, err := s.client.Do(q)
	if err != nil {
		return answer{}, err
	}
	defer p.Body.Close()
	a := answer{status: p.StatusCode, header: p.Header}
	if a.body, err = io.ReadAll(p.Body); err != nil {
		return a, err
	}
	text := a.body
	if n, err := strconv.Atoi(p.Header.Get("Inference-Header-Content-Length")); err == nil {
		text = text[:n]
	}
	if len(text) > 0 && text[0] == '{' {
		return a, json.Unmarshal(text, &a)
	}
	return a, nil
}

// must sends a request that is answered.
func (s *service) must(r request) answer {
	s.t.Helper()
	a, err := s.do(r)
	if err != nil || a.status != http.StatusOK {
		s.t.Fatalf("%v, status %d: %s\n%s", err, a.status, a.body, s.log)
	}
	return a
}

// floats are numbers as binary data.
func floats(v ...float32) []byte {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

// binaryRequest is a request whose only input is binary.
func binaryRequest(shape string, data []byte, more string) request {
	head := fmt.Sprintf(`{"inputs":[{"name":"input","shape":%s,"datatype":"FP32","parameters":{"binary_data_size":%d}}]%s}`, shape, len(data), more)
	return request{header: map[string]string{"Inference-Header-Content-Length": strconv.Itoa(len(head))}, body: append([]byte(head), data...)}
}

func jsonRequest(text string) request { return request{body: []byte(text)} }

func TestRequestsAreAnsweredInTheProtocol(t *testing.T) {
	s := serve(t, id4(1, 2, 4), map[string][]byte{"m.onnx": identity(4, true)})
	for path, want := range map[string]string{
		"/v2/health/live":                `^$`,
		"/v2/health/ready":               `^$`,
		"/v2/models/m/ready":             `^$`,
		"/v2/models/m/versions/1/ready":  `^$`,
		"/v2":                            `"extensions":["binary_tensor_data","classification",`,
		"/v2/models/m":                   `"inputs":[{"name":"input","datatype":"FP32","shape":[-1,4]}],"outputs":[{"name":"y","datatype":"FP32","shape":[-1,4]},{"name":"z"`,
		"/v2/models/m/config":            `"max_batch_size":16,"input":[{"name":"input","data_type":"TYPE_FP32","dims":[4]}]`,
		"/v2/models/m/versions/1/config": `"preferred_batch_size":[1,2,4]`,
		"/v2/models/m/stats":             `{"model_stats":[{"name":"m","version":"1"`,
		"/v2/models/stats":               `"inference_stats":{"success":{`,
	} {
		a := s.must(request{method: "GET", path: path})
		if text := string(a.body); want == `^$` && text != "" || want != `^$` && !strings.Contains(text, want) {
			t.Errorf("%s: %s", path, text)
		}
	}
	if a := s.must(request{path: "/v2/repository/index"}); string(bytes.TrimSpace(a.body)) != `[{"name":"m","version":"1","state":"READY","reason":""}]` {
		t.Errorf("index: %s", a.body)
	}

	// Outputs in the order of the request, one of them binary; id and parameters of the caller.
	r := binaryRequest("[2,4]", floats(1, 2, 3, 4, 5, 6, 7, 8), `,"id":"b","parameters":{"tag":"b","priority":1,"timeout":5000000},"outputs":[{"name":"z"},{"name":"y","parameters":{"binary_data":true}}]`)
	a := s.must(r)
	n, _ := strconv.Atoi(a.header.Get("Inference-Header-Content-Length"))
	if a.ID != "b" || fmt.Sprint(a.Parameters) != "map[tag:b]" || len(a.Outputs) != 2 || a.Outputs[0].Name != "z" || a.Outputs[1].Name != "y" ||
		fmt.Sprint(a.Outputs[0].Data) != "[-1 -2 -3 -4 -5 -6 -7 -8]" || fmt.Sprint(a.Outputs[0].Shape) != "[2 4]" ||
		!bytes.Equal(a.body[n:], floats(1, 2, 3, 4, 5, 6, 7, 8)) {
		t.Errorf("%s", a.body)
	}
	a = s.must(jsonRequest(`{"inputs":[{"name":"input","shape":[1,4],"datatype":"FP32","data":[[0.5,1e2,-3,4]]}],"outputs":[{"name":"y","parameters":{"classification":2}}]}`))
	if got := fmt.Sprint(a.Outputs[0].Data); got != "[100.000000:1 4.000000:3]" || a.Outputs[0].Datatype != "BYTES" {
		t.Errorf("classes: %s", got)
	}
	// A body without JSON is the data of the only input.
	a = s.must(request{header: map[string]string{"Inference-Header-Content-Length": "0"}, body: floats(1, 2, 3, 4, 5, 6, 7, 8)})
	if fmt.Sprint(a.Outputs[0].Data) != "[1 2 3 4 5 6 7 8]" || fmt.Sprint(a.Outputs[0].Shape) != "[2 4]" {
		t.Errorf("%s", a.body)
	}
	// curl, which compresses nothing, and accepts compressed answers.
	out, err := exec.Command("curl", "-sS", "--fail", "--compressed", "--unix-socket", s.socket, "http://x/v2/models/m/infer", "-d",
		`{"inputs":[{"name":"input","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}],"outputs":[{"name":"y"}]}`).CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"data":[1,2,3,4]`) {
		t.Errorf("curl: %v %s", err, out)
	}
	if code := s.stop(); code != 0 {
		t.Errorf("exit %d: %s", code, s.log)
	}
}

// Each caller sends numbers of its own, in rows of any number, and gets those: batches are made of
// rows of several callers.
func TestCallersGetTheirOwnRows(t *testing.T) {
	s := serve(t, id4(1, 2, 4, 8), map[string][]byte{"m.onnx": identity(4, true)})
	var all sync.WaitGroup
	for caller := range 24 {
		all.Go(func() {
			for n := range 40 {
				rows := 1 + (caller+n)%3
				var want []float32
				for i := range 4 * rows {
					want = append(want, float32(caller*100000+n*100+i))
				}
				a, err := s.do(binaryRequest(fmt.Sprintf("[%d,4]", rows), floats(want...), fmt.Sprintf(`,"id":"%d","parameters":{"binary_data_output":true}`, caller)))
				if err != nil || a.status != 200 {
					t.Errorf("caller %d: %v %s", caller, err, a.body)
					return
				}
				length, _ := strconv.Atoi(a.header.Get("Inference-Header-Content-Length"))
				got := a.body[length:]
				if a.ID != strconv.Itoa(caller) || !bytes.Equal(got[:16*rows], floats(want...)) {
					t.Errorf("caller %d got the rows of another", caller)
					return
				}
			}
		})
	}
	all.Wait()
	a := s.must(request{method: "GET", path: "/v2/models/m/stats"})
	var stats struct {
		ModelStats []struct {
			InferenceCount int `json:"inference_count"`
			ExecutionCount int `json:"execution_count"`
			BatchStats     []struct {
				BatchSize int `json:"batch_size"`
			} `json:"batch_stats"`
		} `json:"model_stats"`
	}
	if err := json.Unmarshal(a.body, &stats); err != nil {
		t.Fatal(err)
	}
	m := stats.ModelStats[0]
	if m.ExecutionCount >= m.InferenceCount || m.BatchStats[len(m.BatchStats)-1].BatchSize > 8 {
		t.Errorf("rows were not batched: %s", a.body)
	}
}

// slowStage takes a time for each frame.
func slowPlugin(t *testing.T, ms int) []byte {
	t.Helper()
	dir := t.TempDir()
	text := strings.ReplaceAll(slowText, "MS", strconv.Itoa(ms))
	for name, data := range map[string]string{"yoctune_stage.h": plugin.Header, "slow.c": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	so := filepath.Join(dir, "slow.so")
	if out, err := exec.Command("gcc", "-D_DEFAULT_SOURCE", "-std=c11", "-shared", "-fPIC", "-I", dir, "-o", so, filepath.Join(dir, "slow.c")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(so)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const slowText = `
#include "yoctune_stage.h"
#include <string.h>
#include <unistd.h>
static int open_stage(void **s, const yoctune_port *in, const yoctune_port *out, const char *o, const yoctune_host *h, char *e, size_t n)
{
	(void)in; (void)out; (void)o; (void)h; (void)e; (void)n;
	*s = 0;
	return 0;
}
static int run(void *s, yoctune_item *i, char *e, size_t n)
{
	(void)s; (void)e; (void)n;
	usleep(MS * 1000);
	memcpy(i->out, i->in, 16);
	return 0;
}
static void shut(void *s) { (void)s; }
const uint32_t yoctune_stage_flags = YOCTUNE_ANY_DTYPE;
const yoctune_stage *yoctune_stage_entry(uint32_t abi)
{
	static const yoctune_stage st = { sizeof st, YOCTUNE_STAGE_ABI, "slow", open_stage, run, shut };
	return abi == YOCTUNE_STAGE_ABI ? &st : 0;
}
`

// slow answers a row after a time, one at a time.
func slow(t *testing.T, ms, limit int) *service {
	t.Helper()
	p := id4()
	p.Source.Request.Limit = limit
	p.Stages = []plan.PipelineStage{{ID: "slow", Kind: "custom", Input: "source", Custom: &plan.Custom{Plugin: "slow.so", Shape: []int64{1, 4}}}}
	p.Queue.Capacity = 1
	return serve(t, p, map[string][]byte{"slow.so": slowPlugin(t, ms)})
}

// one is a request of one row, with a timeout in microseconds.
func one(v float32, timeout int) request {
	return binaryRequest("[1,4]", floats(v, v, v, v), fmt.Sprintf(`,"parameters":{"timeout":%d}`, timeout))
}

// A request that waits is answered at its deadline, not when the running one ends, and never runs.
func TestADeadlineEndsTheWait(t *testing.T) {
	s := slow(t, 400, 8)
	first := make(chan answer, 1)
	go func() {
		a, _ := s.do(one(1, 0))
		first <- a
	}()
	for s.active() == 0 {
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	a, err := s.do(one(2, 50_000))
	took := time.Since(began)
	if err != nil || a.status != http.StatusGatewayTimeout || !strings.Contains(a.Error, "50ms") || took > 300*time.Millisecond {
		t.Errorf("after %v: %v %d %s", took, err, a.status, a.body)
	}
	if a := <-first; a.status != 200 || a.Outputs[0].Data[0] != 1.0 {
		t.Errorf("the running request: %d %s", a.status, a.body)
	}
	// A caller that goes away frees its place, and its row never runs either.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	r := one(3, 0)
	q, _ := http.NewRequestWithContext(ctx, "POST", "http://unix/v2/models/m/infer", bytes.NewReader(r.body))
	q.Header["Inference-Header-Content-Length"] = []string{r.header["Inference-Header-Content-Length"]}
	if _, err := s.client.Do(q); err == nil {
		t.Error("it was answered in less than its work takes")
	}
	for until := time.Now().Add(5 * time.Second); s.active() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the place of a caller that has gone is still taken")
		}
	}
	s.must(one(4, 0))
	if code := s.stop(); code != 0 || !strings.Contains(s.log.String(), `"not-wanted":2`) {
		t.Errorf("exit %d, the rows of two callers were not dropped: %s", code, s.log)
	}
}

// active is the number of requests in the pipeline.
func (s *service) active() int {
	a, err := s.do(request{method: "GET", path: "/v2/models/m/stats"})
	if err != nil {
		s.t.Fatal(err)
	}
	var stats struct {
		ModelStats []struct {
			Active int `json:"active_count"`
		} `json:"model_stats"`
	}
	if err := json.Unmarshal(a.body, &stats); err != nil || len(stats.ModelStats) != 1 {
		s.t.Fatalf("%v: %s", err, a.body)
	}
	return stats.ModelStats[0].Active
}

// The number of requests is kept exactly, and those beyond it are refused at once.
func TestABurstIsRefusedAtOnce(t *testing.T) {
	const limit, burst = 5, 20
	s := slow(t, 300, limit)
	type outcome struct {
		status int
		took   time.Duration
	}
	outcomes := make(chan outcome, burst)
	var start sync.WaitGroup
	start.Add(1)
	for range burst {
		go func() {
			start.Wait()
			began := time.Now()
			a, err := s.do(one(1, 0))
			if err != nil {
				t.Error(err)
			}
			outcomes <- outcome{a.status, time.Since(began)}
		}()
	}
	start.Done()
	count := map[int]int{}
	for range burst {
		o := <-outcomes
		count[o.status]++
		if o.status == http.StatusTooManyRequests && o.took > 250*time.Millisecond {
			t.Errorf("refused after %v", o.took)
		}
	}
	if count[200] != limit || count[http.StatusTooManyRequests] != burst-limit {
		t.Errorf("by status: %v", count)
	}
}

// A stop answers what is in work, refuses the rest as unavailable, and ends with success.
func TestAStopAnswersWhatIsInWork(t *testing.T) {
	s := slow(t, 300, 16)
	answers := make(chan answer, 3)
	for n := range 3 {
		go func() {
			a, err := s.do(one(float32(n), 0))
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	for s.active() < 3 {
		time.Sleep(time.Millisecond)
	}
	idle := s.dial()
	s.signal()
	for {
		fmt.Fprint(idle, "GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n")
		p, err := http.ReadResponse(bufio.NewReader(idle), nil)
		if err != nil {
			t.Fatal(err)
		}
		if p.StatusCode == 503 {
			if p.Header.Get("Connection") != "close" && !p.Close {
				t.Errorf("the connection stays: %v", p.Header)
			}
			break
		}
		_ = p.Body.Close()
	}
	for range 3 {
		if a := <-answers; a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if code := s.stop(); code != 0 {
		t.Errorf("exit %d: %s", code, s.log)
	}
}

// dial connects to the socket.
func (s *service) dial() net.Conn {
	s.t.Helper()
	c, err := net.Dial("unix", s.socket)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	return c
}
