// Package grpc sends requests to the built program over gRPC and through shared memory, with NVIDIA's
// client and as hostile callers do.
package grpc

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom/plugin"
	"github.com/yoctune/yoctune/runtime/serve/inference/protocol"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

var program string // the built yoctuned-serve

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("/tmp", "grpc")
	if err == nil {
		program = filepath.Join(dir, "yoctuned-serve")
		cmd := exec.Command("go", "build", "-tags", "serve", "-o", program, "github.com/yoctune/yoctune/cmd/yoctuned")
		cmd.Stderr = os.Stderr
		err = cmd.Run()
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// python returns the interpreter with NVIDIA's client, or skips the test.
func python(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../build/grpc-venv/bin/python")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skipf("no client of Triton: run scripts/setup.sh python (%v)", err)
	}
	return path
}

// device runs pipelines in a folder.
type device struct {
	t   *testing.T
	dir string
}

func newDevice(t *testing.T) *device {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "grpc") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &device{t, dir}
}

func (d *device) write(name string, data []byte) string {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		d.t.Fatal(err)
	}
	return path
}

// socket is where a pipeline answers by default.
func (d *device) socket(name string) string {
	return filepath.Join(filepath.Dir(pipelines.Path(filepath.Join(d.dir, pipelines.Dir), name)), "requests")
}

// freeAddress returns an address of the loopback interface on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// process is a pipeline that runs.
type process struct {
	cmd *exec.Cmd
	out *bytes.Buffer
}

// start runs a pipeline until the test ends.
func (d *device) start(name string, p plan.Pipeline) *process {
	d.t.Helper()
	all := plan.Plan{Layer: "test", Target: "t", Board: "orin-nano-8gb", Release: "scarthgap", Pipelines: map[string]plan.Pipeline{name: p}}
	if err := all.Seal(); err != nil {
		d.t.Fatal(err)
	}
	b, err := all.Encode()
	if err != nil {
		d.t.Fatal(err)
	}
	r := &process{cmd: exec.Command(program, "pipeline", "run", d.write(name+".json", b), name, "--root", d.dir, "--library", models.Library(d.t)), out: &bytes.Buffer{}}
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = d.dir, r.out, r.out
	if err := r.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { r.stop(d.t) })
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", p.Source.Request.Address); err == nil {
			_ = c.Close()
			return r
		}
		if time.Now().After(end) {
			d.t.Fatalf("%s does not answer: %s", name, r.out.String())
		}
	}
}

func (r *process) stop(t *testing.T) {
	t.Helper()
	if r.cmd.ProcessState != nil {
		return
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, r.out.String())
	}
}

// memory returns the resident memory of the process in KiB.
func (r *process) memory(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if err != nil {
		t.Fatalf("the server has ended: %v\n%s", err, r.out.String())
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// id4 returns its input of four elements, up to eight rows in a batch.
func (d *device) id4(request plan.Request) plan.Pipeline { return d.identity("id4", 4, request) }

// identity is a model that returns its input of some elements.
func (d *device) identity(name string, elements int64, request plan.Request) plan.Pipeline {
	g := onnx.Graph{
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 0, elements)},
		Nodes:   []onnx.Node{{Op: "Identity", In: []string{"x"}, Out: []string{"y"}}},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 0, elements)},
	}
	request.Model, request.Inputs = name, []plan.RequestInput{{Name: "x", Shape: []int64{1, elements}}}
	return plan.Pipeline{
		Source: plan.PipelineSource{Kind: "request", Format: "tensor", Request: &request},
		Stages: []plan.PipelineStage{{ID: "infer", Kind: "model", Input: "source", Model: &plan.Model{
			Path: d.write(name+".onnx", g.Encode()), Batch: &plan.ModelBatch{Buckets: []int{1, 2, 4, 8}},
		}}},
		Sink: plan.PipelineSink{Kind: "reply"},
	}
}

// types returns an input of each type.
func (d *device) types(address string) plan.Pipeline {
	kinds := map[string]onnx.Type{"i8": onnx.Int8, "u8": onnx.Uint8, "i32": onnx.Int32, "i64": onnx.Int64, "bool": onnx.Bool, "f16": onnx.Float16}
	var g onnx.Graph
	m := plan.Model{}
	r := plan.Request{Model: "types", Address: address, Plain: true}
	for _, name := range []string{"i8", "u8", "i32", "i64", "bool", "f16"} {
		out := name + "_out"
		g.Inputs = append(g.Inputs, onnx.Tensor(name, kinds[name], 1, 3))
		g.Outputs = append(g.Outputs, onnx.Tensor(out, kinds[name], 1, 3))
		g.Nodes = append(g.Nodes, onnx.Node{Op: "Identity", In: []string{name}, Out: []string{out}})
		r.Inputs = append(r.Inputs, plan.RequestInput{Name: name, DType: name, Shape: []int64{1, 3}})
		m.Inputs = append(m.Inputs, plan.ModelInput{Name: name, From: "source", Tensor: name})
		if name == "i8" {
			m.Output = out
		} else {
			m.Outputs = append(m.Outputs, out)
		}
	}
	m.Path = d.write("types.onnx", g.Encode())
	return plan.Pipeline{
		Source: plan.PipelineSource{Kind: "request", Format: "tensor", Request: &r},
		Stages: []plan.PipelineStage{{ID: "infer", Kind: "model", Input: "source", Model: &m}},
		Sink:   plan.PipelineSink{Kind: "reply"},
	}
}

const slowSource = `
#define _DEFAULT_SOURCE
#include "yoctune_stage.h"
#include <string.h>
#include <unistd.h>
static int open_stage(void **s, const yoctune_port *in, const yoctune_port *out, const char *o, const yoctune_host *h, char *e, size_t n)
{
	(void)s; (void)in; (void)out; (void)o; (void)h; (void)e; (void)n;
	return 0;
}
static int run(void *s, yoctune_item *i, char *e, size_t n)
{
	(void)s; (void)e; (void)n;
	usleep(300000);
	memcpy(i->out, i->in, i->in_bytes);
	return 0;
}
const yoctune_stage *yoctune_stage_entry(uint32_t abi)
{
	static const yoctune_stage st = { sizeof st, YOCTUNE_STAGE_ABI, "slow", open_stage, run, NULL };
	return abi == YOCTUNE_STAGE_ABI ? &st : NULL;
}
`

// slow returns its input after 300 ms; one request runs and four wait.
func (d *device) slow(address string) plan.Pipeline {
	d.t.Helper()
	d.write("yoctune_stage.h", []byte(plugin.Header))
	so := filepath.Join(d.dir, "slow.so")
	if out, err := exec.Command("gcc", "-std=c11", "-shared", "-fPIC", "-I", d.dir, "-o", so, d.write("slow.c", []byte(slowSource))).CombinedOutput(); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	return plan.Pipeline{
		Source: plan.PipelineSource{Kind: "request", Format: "tensor", Request: &plan.Request{
			Model: "slow", Address: address, Plain: true, Limit: 5, Inputs: []plan.RequestInput{{Name: "x", Shape: []int64{1, 4}}},
		}},
		Stages: []plan.PipelineStage{{ID: "wait", Kind: "custom", Input: "source", Custom: &plan.Custom{Plugin: so, Shape: []int64{1, 4}}}},
		Sink:   plan.PipelineSink{Kind: "reply"},
	}
}

// Every row of client.py, which has their meaning.
func TestTritonClient(t *testing.T) {
	interpreter := python(t)
	d := newDevice(t)
	fast, types, slow := freeAddress(t), freeAddress(t), freeAddress(t)
	p := d.start("id4", d.id4(plan.Request{Address: fast, Plain: true, SharedMemory: true}))
	d.start("types", d.types(types))
	d.start("slow", d.slow(slow))
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(protocol.File_inference_proto)}})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(interpreter, "client.py", fast, d.socket("id4"), slow)
	cmd.Env = append(os.Environ(), "TYPES_ADDRESS="+types, "INFERENCE_PROTO_SET="+d.write("set.pb", set))
	before := p.memory(t)
	out, err := cmd.CombinedOutput()
	t.Logf("%s%d KiB before, %d KiB after", out, before, p.memory(t))
	if err != nil {
		t.Errorf("%v", err)
	}
}

// NVIDIA's load generator over gRPC, alone and in streams, over HTTP, and with tensors in shared memory. The program needs a
// newer C library than some hosts have, so that its path, or that of a script that starts it, is given.
func TestPerfAnalyzer(t *testing.T) {
	path := os.Getenv("YOCTUNE_PERF_ANALYZER")
	if path == "" {
		t.Skip("set YOCTUNE_PERF_ANALYZER to the program of PyPI's perf-analyzer")
	}
	d := newDevice(t)
	small, large := freeAddress(t), freeAddress(t)
	p := d.start("id4", d.id4(plan.Request{Address: small, Plain: true, SharedMemory: true}))
	d.start("picture", d.identity("picture", 3*640*640, plan.Request{Address: large, Plain: true, SharedMemory: true, Rows: 1}))
	shared := []string{"--shared-memory", "system", "--output-shared-memory-size", strconv.Itoa(4 * 3 * 640 * 640)}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"gRPC", []string{"-i", "grpc"}},
		{"gRPC, streams", []string{"-i", "grpc", "--streaming", "--async"}},
		{"gRPC, shared memory", append([]string{"-i", "grpc"}, shared...)},
		{"HTTP", []string{"-i", "http"}},
		{"HTTP, shared memory", append([]string{"-i", "http"}, shared...)},
	} {
		for _, to := range [][3]string{{"id4", small, "1"}, {"id4", small, "8"}, {"id4", small, "64"}, {"picture", large, "1"}} {
			t.Run(c.name+"/"+to[0]+"/"+to[2], func(t *testing.T) {
				args := append([]string{"-m", to[0], "-u", to[1], "--concurrency-range", to[2], "--measurement-interval", "1000", "--max-trials", "3", "--stability-percentage", "1000", "-b", "1", "--percentile", "99"}, c.args...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
				switch {
				case bytes.Contains(out, []byte("Failed to obtain stable measurement")):
					t.Logf("the machine is too busy for a measurement")
					return
				case err != nil:
					t.Fatalf("%v\n%s", err, out)
				}
				t.Logf("%s", regexp.MustCompile(`(?m)^Concurrency: .*$`).Find(out))
			})
		}
	}
	t.Logf("%d KiB at the end", p.memory(t))
}

// grpcurl reads the definitions and speaks to the unix socket and to the address.
func TestGRPCurl(t *testing.T) {
	path := os.Getenv("YOCTUNE_GRPCURL")
	if path == "" {
		t.Skip("set YOCTUNE_GRPCURL to the program: go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3")
	}
	d := newDevice(t)
	address := freeAddress(t)
	d.start("id4", d.id4(plan.Request{Address: address, Plain: true}))
	definitions := []string{"-import-path", "../../runtime/serve/inference/protocol", "-proto", "inference.proto", "-plaintext"}
	const service = "inference.GRPCInferenceService/"
	for _, c := range []struct {
		name, want string
		args       []string
	}{
		{"ready", `"ready": true`, []string{address, service + "ServerReady"}},
		{"ready on the socket", `"ready": true`, []string{"unix://" + d.socket("id4"), service + "ServerReady"}},
		{"metadata", `"datatype": "FP32"`, []string{"-d", `{"name":"id4"}`, address, service + "ModelMetadata"}},
		{"infer", `"AACAPwAAAEAAAEBAAACAQA=="`, []string{"-d", `{"model_name":"id4","inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"contents":{"fp32_contents":[1,2,3,4]}}]}`, address, service + "ModelInfer"}},
		{"statistics", `"inferenceCount": "1"`, []string{"-d", `{"name":"id4"}`, address, service + "ModelStatistics"}},
		{"another model", "Code: NotFound", []string{"-d", `{"name":"../x"}`, address, service + "ModelConfig"}},
	} {
		out, _ := exec.Command(path, append(slices.Clone(definitions), c.args...)...).CombinedOutput()
		if !strings.Contains(string(out), c.want) {
			t.Errorf("%s: no %q in %s", c.name, c.want, out)
		}
	}
}

// A caller who sends frames without sense ends its own connection; others are answered, and the memory of
// the server stays as it is.
func TestHostileConnections(t *testing.T) {
	d := newDevice(t)
	address := freeAddress(t)
	p := d.start("id4", d.id4(plan.Request{Address: address, Plain: true, Limit: 8}))
	client := dial(t, "passthrough:///"+address)
	mustAnswer(t, client)
	before := p.memory(t)
	for name, attack := range map[string]func(*testing.T, *http2.Framer, net.Conn){
		"a flood of pings": func(_ *testing.T, f *http2.Framer, _ net.Conn) {
			for range 20_000 {
				if f.WritePing(false, [8]byte{}) != nil {
					return
				}
			}
		},
		"a flood of settings": func(_ *testing.T, f *http2.Framer, _ net.Conn) {
			for range 20_000 {
				if f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}) != nil {
					return
				}
			}
		},
		"streams that are reset at once": func(t *testing.T, f *http2.Framer, _ net.Conn) {
			for id := uint32(1); id < 40_000; id += 2 {
				if f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: inferHeader(t), EndHeaders: true}) != nil || f.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
					return
				}
			}
		},
		"streams that send nothing": func(t *testing.T, f *http2.Framer, _ net.Conn) {
			for id := uint32(1); id < 4000; id += 2 {
				if f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: inferHeader(t), EndHeaders: true}) != nil {
					return
				}
			}
		},
		"headers without end": func(t *testing.T, f *http2.Framer, _ net.Conn) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: inferHeader(t)})
			for range 20_000 {
				if f.WriteContinuation(1, false, bytes.Repeat([]byte{0x82}, 1000)) != nil {
					return
				}
			}
		},
		"a message that claims 4 GiB": func(t *testing.T, f *http2.Framer, _ net.Conn) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: inferHeader(t), EndHeaders: true})
			_ = f.WriteData(1, false, []byte{0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3})
		},
		"large messages without tensors": func(t *testing.T, f *http2.Framer, _ net.Conn) {
			for id := uint32(1); id < 2000; id += 2 {
				header := headerOf(t, protocol.GRPCInferenceService_ServerLive_FullMethodName)
				if f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: header, EndHeaders: true}) != nil ||
					f.WriteData(id, false, append([]byte{0, 0, 15, 255, 255}, make([]byte, 4000)...)) != nil {
					return
				}
			}
		},
		"frames beyond the window": func(t *testing.T, f *http2.Framer, _ net.Conn) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: inferHeader(t), EndHeaders: true})
			for range 2000 {
				if f.WriteData(1, false, make([]byte, 16<<10)) != nil {
					return
				}
			}
		},
		"noise": func(_ *testing.T, _ *http2.Framer, c net.Conn) {
			noise := make([]byte, 1<<20)
			for i := range noise {
				noise[i] = byte(i * 7919 >> 3)
			}
			_, _ = c.Write(noise)
		},
		"the beginning only": func(*testing.T, *http2.Framer, net.Conn) {},
	} {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					c, err := net.Dial("tcp", address)
					if err != nil {
						t.Error(err)
						return
					}
					defer c.Close()
					_ = c.SetDeadline(time.Now().Add(10 * time.Second))
					_, _ = c.Write([]byte(http2.ClientPreface))
					go func() { _, _ = io.Copy(io.Discard, c) }()
					f := http2.NewFramer(c, nil)
					_ = f.WriteSettings()
					attack(t, f, c)
				})
			}
			all.Wait()
			mustAnswer(t, client)
		})
	}
	// Connections that say nothing are closed, and more than the server keeps are refused at once.
	var idle []net.Conn
	for range 400 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		idle = append(idle, c)
	}
	mustAnswer(t, client)
	for _, c := range idle {
		_ = c.Close()
	}
	if after := p.memory(t); after > before+(64<<10) {
		t.Errorf("%d KiB before, %d KiB after", before, after)
	} else {
		t.Logf("saw: hostile connections: %d MiB before, %d MiB after", before>>10, after>>10)
	}
}

// inferHeader encodes the header of a request to a model.
func inferHeader(t *testing.T) []byte {
	t.Helper()
	return headerOf(t, protocol.GRPCInferenceService_ModelInfer_FullMethodName)
}

func headerOf(t *testing.T, method string) []byte {
	t.Helper()
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, f := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "x"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		if err := e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func dial(t *testing.T, target string, options ...grpc.DialOption) protocol.GRPCInferenceServiceClient {
	t.Helper()
	if len(options) == 0 {
		options = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	c, err := grpc.NewClient(target, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return protocol.NewGRPCInferenceServiceClient(c)
}

func ask(ctx context.Context, c protocol.GRPCInferenceServiceClient, model string) error {
	raw := make([]byte, 16)
	for i := range raw {
		raw[i] = byte(i)
	}
	r, err := c.ModelInfer(ctx, &protocol.ModelInferRequest{
		ModelName: model, RawInputContents: [][]byte{raw},
		Inputs: []*protocol.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "FP32", Shape: []int64{1, 4}}},
	})
	if err == nil && !bytes.Equal(r.RawOutputContents[0], raw) {
		return fmt.Errorf("the answer has %x", r.RawOutputContents[0])
	}
	return err
}

// mustAnswer waits for an answer: a server may refuse while it still holds the requests of an attack.
func mustAnswer(t *testing.T, c protocol.GRPCInferenceServiceClient) {
	t.Helper()
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = ask(t.Context(), c, "id4"); err == nil {
			return
		}
		if code := status.Code(err); code != codes.ResourceExhausted && code != codes.Unavailable {
			break
		}
	}
	t.Errorf("not answered: %v", err)
}

// At a stop the requests in work are answered, and further ones get UNAVAILABLE.
func TestAStopAnswersWhatIsInWork(t *testing.T) {
	d := newDevice(t)
	address := freeAddress(t)
	p := d.start("slow", d.slow(address))
	client := dial(t, "passthrough:///"+address)
	stream, err := client.ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan error, 3)
	for range 3 {
		go func() { answers <- ask(t.Context(), client, "slow") }()
	}
	time.Sleep(150 * time.Millisecond) // the first is in work
	began := time.Now()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	time.Sleep(50 * time.Millisecond)
	if err := ask(t.Context(), client, "slow"); status.Code(err) != codes.Unavailable {
		t.Errorf("a request after the stop: %v", err)
	}
	for range 3 {
		if err := <-answers; err != nil {
			t.Errorf("a request before the stop: %v", err)
		}
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ends with %v", err)
	}
	if err := p.cmd.Wait(); err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %v\n%s", err, time.Since(began), p.out.String())
	}
}

// certificates writes an authority, and what it issued to the server and to a client.
func (d *device) certificates() (ca *x509.CertPool, client tls.Certificate) {
	d.t.Helper()
	fail := func(err error) {
		if err != nil {
			d.t.Fatal(err)
		}
	}
	issue := func(name string, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		fail(err)
		c := &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: parent == nil, BasicConstraintsValid: true,
		}
		if parent == nil {
			parent, by = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
		fail(err)
		secret, err := x509.MarshalPKCS8PrivateKey(key)
		fail(err)
		d.write(name+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
		d.write(name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
		made, err := x509.ParseCertificate(der)
		fail(err)
		return made, key
	}
	authority, key := issue("ca", nil, nil)
	issue("server", authority, key)
	issue("client", authority, key)
	ca = x509.NewCertPool()
	ca.AddCert(authority)
	client, err := tls.LoadX509KeyPair(filepath.Join(d.dir, "client.pem"), filepath.Join(d.dir, "client.key"))
	fail(err)
	return ca, client
}

type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}
func (bearer) RequireTransportSecurity() bool { return true }

func TestCallersProveWhoTheyAre(t *testing.T) {
	d := newDevice(t)
	ca, own := d.certificates()
	const token = "0123456789abcdef-token"
	d.write("tokens", []byte("# callers\n"+token+"\n"))
	file := func(name string) string { return filepath.Join(d.dir, name) }
	withToken, withCertificate := freeAddress(t), freeAddress(t)
	d.start("tokens", d.id4(plan.Request{Address: withToken, Tokens: file("tokens"), TLS: &plan.TLS{Certificate: file("server.pem"), Key: file("server.key")}}))
	d.start("mutual", d.id4(plan.Request{Address: withCertificate, TLS: &plan.TLS{Certificate: file("server.pem"), Key: file("server.key"), ClientCA: file("ca.pem")}}))
	secure := func(c *tls.Config) grpc.DialOption { return grpc.WithTransportCredentials(credentials.NewTLS(c)) }
	for _, c := range []struct {
		name, address string
		options       []grpc.DialOption
		want          codes.Code
	}{
		{"token", withToken, []grpc.DialOption{secure(&tls.Config{RootCAs: ca}), grpc.WithPerRPCCredentials(bearer(token))}, codes.OK},
		{"another token", withToken, []grpc.DialOption{secure(&tls.Config{RootCAs: ca}), grpc.WithPerRPCCredentials(bearer(token + "x"))}, codes.Unauthenticated},
		{"no token", withToken, []grpc.DialOption{secure(&tls.Config{RootCAs: ca})}, codes.Unauthenticated},
		{"no TLS", withToken, []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, codes.Unavailable},
		{"an unknown authority", withToken, []grpc.DialOption{secure(&tls.Config{})}, codes.Unavailable},
		{"certificate", withCertificate, []grpc.DialOption{secure(&tls.Config{RootCAs: ca, Certificates: []tls.Certificate{own}})}, codes.OK},
		{"no certificate", withCertificate, []grpc.DialOption{secure(&tls.Config{RootCAs: ca})}, codes.Unavailable},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		client := dial(t, "passthrough:///"+c.address, c.options...)
		if err := ask(ctx, client, "id4"); status.Code(err) != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if _, err := client.ServerReady(ctx, &protocol.ServerReadyRequest{}); status.Code(err) != c.want {
			t.Errorf("%s, ready: %v, want %v", c.name, err, c.want)
		}
		cancel()
	}
	// The same address answers HTTP, also a client that could speak HTTP/2, as curl can.
	web := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca}, ForceAttemptHTTP2: true}}
	r, err := web.Get("https://" + withToken + "/v2/health/live")
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if r.StatusCode != http.StatusUnauthorized || r.Proto != "HTTP/1.1" {
		t.Errorf("%s %s", r.Proto, r.Status)
	}
}

// A caller on the unix socket uses memory of its own only: the server would otherwise read what the caller may not.
func TestSharedMemoryOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	interpreter := python(t)
	d := newDevice(t)
	p := d.id4(plan.Request{Address: freeAddress(t), Plain: true, Everyone: true})
	d.start("id4", p)
	const key = "/yoctune-test-secret"
	if err := os.WriteFile("/dev/shm"+key, make([]byte, 64), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove("/dev/shm" + key) })
	socket := d.socket("id4")
	for path := filepath.Dir(socket); path != "/tmp"; path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := fmt.Sprintf(`
import os, grpc
from tritonclient.grpc import service_pb2 as pb, service_pb2_grpc as s
def register(c, name, key):
    try:
        c.SystemSharedMemoryRegister(pb.SystemSharedMemoryRegisterRequest(name=name, key=key, byte_size=64))
        return "registered"
    except grpc.RpcError as e:
        return e.details()
def names(c):
    return sorted(c.SystemSharedMemoryStatus(pb.SystemSharedMemoryStatusRequest()).regions)
def client():
    return s.GRPCInferenceServiceStub(grpc.insecure_channel("unix:%s"))
if os.fork() == 0:
    os.setgid(65534); os.setuid(65534)
    c = client()
    print("nobody:", register(c, "secret", "%s"))
    fd = os.open("/dev/shm/yoctune-test-nobody", os.O_RDWR | os.O_CREAT, 0o600); os.ftruncate(fd, 64)
    print("nobody:", register(c, "mine", "/yoctune-test-nobody"), names(c), flush=True)
    os.unlink("/dev/shm/yoctune-test-nobody")
    os._exit(0)
os.wait()
c = client()
print("root:", register(c, "secret", "%s"), names(c), flush=True)
if os.fork() == 0:
    os.setgid(65534); os.setuid(65534)
    print("nobody again:", names(client()), flush=True)
    os._exit(0)
os.wait()
`, socket, key, key)
	out, err := exec.Command(interpreter, "-c", script).CombinedOutput()
	want := "nobody: region secret: shared memory " + key + " belongs to another user\nnobody: registered ['mine']\nroot: registered ['mine', 'secret']\nnobody again: ['mine']\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}
