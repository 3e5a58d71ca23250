package inference

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/request"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Request is a request to a model.
type Request struct {
	Model, Version string // Version "": the only one
	ID             string
	Parameters     map[string]any // bool, string, int64, float64 or json.Number
	Inputs         []Tensor
	Outputs        []Requested // nil: all
}

// Requested is an output that a caller asks for.
type Requested struct {
	Name       string
	Parameters map[string]any
}

// Response is the answer to a request.
type Response struct {
	Model, Version string
	ID             string
	Parameters     map[string]any // those of the request that the server does not use
	Outputs        []Tensor       // in the order of the request
}

// Options of a server.
type Options struct {
	Version    string   // of the program
	Shared     *Regions // nil: shared memory is refused
	Pictures   int64    // most bytes of pictures while they are decoded
	Extensions []string // further extensions of the protocol that transports implement
}

// Server is the protocol without a transport.
type Server struct {
	o        Options
	models   map[string]*Model
	names    []string
	bodies   room          // bytes of requests in memory
	decoding chan struct{} // bounds the pictures that are decoded at once
	pictures *semaphore.Weighted

	mu       sync.Mutex
	draining bool
	working  int           // requests that have not been answered
	idle     chan struct{} // closed when draining and nothing is in work
}

// Model is a pipeline that answers requests.
type Model struct {
	Name    string
	Port    *request.Port
	Buckets []int // batches that the pipeline runs, nil: rows run one by one

	stats stats
}

// version is the version of every model: the plan has one.
const version = "1"

// New returns a server of models. They are served until the port of each is closed.
func New(o Options, models ...*Model) *Server {
	// One processor stays free of decoding, for requests that are refused.
	s := &Server{o: o, models: map[string]*Model{}, decoding: make(chan struct{}, max(runtime.NumCPU()-1, 1)), pictures: semaphore.NewWeighted(o.Pictures), idle: make(chan struct{})}
	for _, m := range models {
		s.models[m.Name] = m
		s.bodies.limit += registry.RequestBodies(m.Port.Inputs(), m.Port.Limit(), m.Port.Rows())
		s.names = append(s.names, m.Name)
	}
	slices.Sort(s.names)
	return s
}

// Find returns a model.
func (s *Server) Find(name, ver string) (*Model, error) {
	m := s.models[name]
	switch {
	case m == nil:
		return nil, Errorf(NotFound, "model %.80q does not exist; this server has %s", name, strings.Join(s.names, ", "))
	case ver != "" && ver != version:
		return nil, Errorf(NotFound, "model %s has no version %.20q; it has version %s", name, ver, version)
	}
	return m, nil
}

// Admit returns a model that takes a request now. A transport calls it before it reads the data of a
// request, so that one that would be refused costs nothing.
func (s *Server) Admit(name, ver string) (*Model, error) {
	m, err := s.Find(name, ver)
	if err != nil {
		return nil, err
	}
	if err := s.Ready(); err != nil {
		return nil, err
	}
	if m.Port.Full() {
		m.stats.refuse()
		return nil, Errorf(Full, "model %s works on %d requests, and takes no more at the moment", m.Name, m.Port.Limit())
	}
	return m, nil
}

// Ready returns why the server takes no requests, nil while it does.
func (s *Server) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return errStops
	}
	return nil
}

// ModelReady returns why a model takes no requests, nil while it does.
func (s *Server) ModelReady(name, ver string) error {
	m, err := s.Find(name, ver)
	if err != nil {
		return err
	}
	if err := m.Port.Err(); err != nil {
		return &Error{Unavailable, err}
	}
	return s.Ready()
}

// Drain refuses further requests, and waits until those in work are answered or ctx ends.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	if !s.draining {
		s.draining = true
		if s.working == 0 {
			close(s.idle)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Server) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return errStops
	}
	s.working++
	return nil
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working--
	if s.draining && s.working == 0 {
		close(s.idle)
	}
}

// Infer answers a request. The request's data must not change until it returns.
func (s *Server) Infer(ctx context.Context, r *Request) (*Response, error) {
	began := time.Now()
	m, err := s.Find(r.Model, r.Version)
	if err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.end()
	call, out, err := s.infer(ctx, m, r)
	if err != nil {
		m.stats.fail(time.Since(began), KindOf(err))
		return nil, &Error{KindOf(err), fmt.Errorf("model %s: %w", m.Name, err)}
	}
	m.stats.succeed(time.Since(began), call)
	return out, nil
}

func (s *Server) infer(ctx context.Context, m *Model, r *Request) (*request.Call, *Response, error) {
	call := &request.Call{}
	if err := readParameters(r.Parameters, call); err != nil {
		return nil, nil, err
	}
	wanted, err := m.wanted(r.Outputs)
	if err != nil {
		return nil, nil, err
	}
	if err := m.Port.Do(ctx, call, func() error { return s.fill(ctx, m, r, call) }); err != nil {
		return nil, nil, err
	}
	out := &Response{Model: m.Name, Version: version, ID: r.ID, Parameters: echo(r.Parameters)}
	for _, w := range wanted {
		t, err := s.output(ctx, m, call, w)
		if err != nil {
			return nil, nil, err
		}
		out.Outputs = append(out.Outputs, t)
	}
	return call, out, nil
}

// longest is the longest timeout that a caller can set.
const longest = time.Hour

// readParameters reads the parameters of a request that the server uses.
func readParameters(p map[string]any, c *request.Call) error {
	for name, v := range p {
		switch name {
		case "timeout": // microseconds
			n, err := integer(v)
			if err != nil || n < 0 {
				return Errorf(Invalid, "parameter timeout is %v, and must be a number of microseconds", v)
			}
			c.Timeout = time.Duration(min(n, int64(longest/time.Microsecond))) * time.Microsecond
		case "priority":
			n, err := integer(v)
			if err != nil || n < 0 || n > request.LastPriority {
				return Errorf(Invalid, "parameter priority is %v, and must be 1, the most urgent, to %d, or 0 for the default", v, request.LastPriority)
			}
			c.Priority = int(n)
		case "sequence_id", "sequence_start", "sequence_end":
			if n, err := integer(v); v != false && v != "" && (err != nil || n != 0) {
				return Errorf(Unimplemented, "parameter %s: the pipeline keeps nothing from one request to the next, and has no sequences", name)
			}
		}
	}
	return nil
}

// integer reads a parameter that is a whole number.
func integer(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case uint64:
		if v > math.MaxInt64 {
			return 0, strconv.ErrRange
		}
		return int64(v), nil
	case float64:
		if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
			return 0, strconv.ErrSyntax
		}
		return int64(v), nil
	case interface{ Int64() (int64, error) }: // json.Number
		return v.Int64()
	}
	return 0, strconv.ErrSyntax
}

// used are the parameters that the server uses, or a transport.
var used = []string{"timeout", "priority", "sequence_id", "sequence_start", "sequence_end", "binary_data_output", "headers"}

// echo returns the parameters of the caller's own.
func echo(p map[string]any) map[string]any {
	var own map[string]any
	for name, v := range p {
		if slices.Contains(used, name) {
			continue
		}
		if own == nil {
			own = map[string]any{}
		}
		own[name] = v
	}
	return own
}

// takesRows reports whether requests have several rows, in the first axis of each tensor.
func (m *Model) takesRows() bool {
	first := func(shape []int64) bool { return len(shape) > 0 && shape[0] == 1 }
	return !slices.ContainsFunc(m.Port.Inputs(), func(in registry.Sent) bool { return !first(in.Shape) }) &&
		!slices.ContainsFunc(m.Port.Outputs(), func(t registry.Tensor) bool { return !first(t.Shape) })
}

// fill compares the inputs of a request with those of the model, and gives them to the call.
func (s *Server) fill(ctx context.Context, m *Model, r *Request, call *request.Call) error {
	inputs := m.Port.Inputs()
	call.Inputs = make([][]byte, len(inputs))
	if slices.ContainsFunc(inputs, func(in registry.Sent) bool { return in.Format == registry.ImageFormat }) {
		// A picture waits for its turn to be decoded.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, call.Timeout, request.ErrExpired)
		defer cancel()
	}
	for i := range r.Inputs {
		in := &r.Inputs[i]
		n := slices.IndexFunc(inputs, func(want registry.Sent) bool { return want.Name == in.Name })
		switch {
		case n < 0:
			return Errorf(Invalid, "input %.80q does not exist; the model takes %s", in.Name, inputNames(inputs))
		case call.Inputs[n] != nil:
			return Errorf(Invalid, "input %s is given twice", in.Name)
		}
		data := in.Data
		if region, ok := in.Parameters["shared_memory_region"]; ok {
			var err error
			if data, err = s.readShared(ctx, m, region, in.Parameters); err != nil {
				return fmt.Errorf("input %s: %w", in.Name, err)
			}
		}
		rows, data, err := s.rows(ctx, m, &inputs[n], in, data)
		if err != nil {
			return fmt.Errorf("input %s: %w", in.Name, err)
		}
		if call.Rows != 0 && rows != call.Rows {
			return Errorf(Invalid, "input %s has %d rows, and another input has %d", in.Name, rows, call.Rows)
		}
		call.Rows, call.Inputs[n] = rows, data
	}
	for n := range inputs {
		if call.Inputs[n] == nil {
			return Errorf(Invalid, "input %s is missing; the model takes %s", inputs[n].Name, inputNames(inputs))
		}
	}
	return nil
}

// readShared reads the data of an input from shared memory.
func (s *Server) readShared(ctx context.Context, m *Model, region any, p map[string]any) ([]byte, error) {
	name, offset, size, err := sharedPart(region, p)
	if err != nil {
		return nil, err
	}
	if most := uint64(m.maxMessage()); size > most {
		return nil, Errorf(TooLarge, "shared memory of %d bytes, and an input has at most %d", size, most)
	}
	return s.o.Shared.Read(callerIn(ctx), name, offset, size)
}

// sharedPart returns the part of a region that the parameters of a tensor name.
func sharedPart(region any, p map[string]any) (name string, offset, size uint64, err error) {
	name, ok := region.(string)
	n, err := integer(p["shared_memory_byte_size"])
	at := int64(0)
	if v, has := p["shared_memory_offset"]; has && err == nil {
		at, err = integer(v)
	}
	if !ok || err != nil || n < 0 || at < 0 {
		return "", 0, 0, Errorf(Invalid, "shared memory is named by shared_memory_region, shared_memory_byte_size and shared_memory_offset, which are a text and two numbers from 0")
	}
	return name, uint64(at), uint64(n), nil
}

func inputNames(inputs []registry.Sent) string {
	var all []string
	for _, in := range inputs {
		all = append(all, in.Name)
	}
	return strings.Join(all, ", ")
}

// rows checks an input against what the model takes, and returns its number of rows and their elements
// as the engine reads them.
func (s *Server) rows(ctx context.Context, m *Model, want *registry.Sent, in *Tensor, data []byte) (int, []byte, error) {
	shape, datatype := want.Shape, datatypes[want.DType]
	if want.Format != registry.TensorFormat {
		shape, datatype = []int64{1, 1}, Bytes
		if len(in.Shape) == 1 {
			shape = shape[1:]
		}
	}
	if in.Datatype != datatype {
		return 0, nil, Errorf(Invalid, "its datatype is %.20q, and the model takes %s", in.Datatype, datatype)
	}
	count, err := volume(in.Shape)
	if err != nil {
		return 0, nil, &Error{Invalid, err}
	}
	rows, fits := int64(1), slices.Equal(in.Shape, shape)
	if m.takesRows() && len(in.Shape) == len(shape) {
		rows, fits = in.Shape[0], slices.Equal(in.Shape[1:], shape[1:])
	}
	switch {
	case !fits:
		return 0, nil, Errorf(Invalid, "its shape is %v, and the model takes %s", in.Shape, shapeText(m, shape))
	case rows < 1:
		return 0, nil, Errorf(Invalid, "its shape %v has no rows", in.Shape)
	case rows > int64(m.Port.Rows()):
		return 0, nil, Errorf(Invalid, "its shape %v has %d rows, and a request has at most %d", in.Shape, rows, m.Port.Rows())
	}
	if want.Format != registry.TensorFormat {
		data, err = s.decode(ctx, want, data, int(count))
		return int(rows), data, err
	}
	if size := count * want.DType.Bytes(); int64(len(data)) != size {
		return 0, nil, Errorf(Invalid, "it has %d bytes of data, and shape %v of %s has %d", len(data), in.Shape, datatype, size)
	}
	return int(rows), data, nil
}

func shapeText(m *Model, shape []int64) string {
	if m.takesRows() {
		return fmt.Sprintf("%v with up to %d rows in the first axis", shape, m.Port.Rows())
	}
	return fmt.Sprint(shape)
}

// wanted is an output that is answered.
type wanted struct {
	Requested
	at      int // index in the outputs of the port; of results 0
	classes int // as class extension asks for, 0: the tensor
}

// resultsOutput is the name of the output of pipelines that give results.
const resultsOutput = "results"

// wanted compares the outputs of a request with those of the model.
func (m *Model) wanted(outputs []Requested) ([]wanted, error) {
	var names []string
	for _, t := range m.Port.Outputs() {
		names = append(names, t.Name)
	}
	if names == nil {
		names = []string{resultsOutput}
	}
	var all []wanted
	if len(outputs) == 0 {
		for n, name := range names {
			all = append(all, wanted{Requested: Requested{Name: name}, at: n})
		}
		return all, nil
	}
	for _, o := range outputs {
		w := wanted{Requested: o, at: slices.Index(names, o.Name)}
		switch {
		case w.at < 0:
			return nil, Errorf(Invalid, "output %.80q does not exist; the model gives %s", o.Name, strings.Join(names, ", "))
		case slices.ContainsFunc(all, func(other wanted) bool { return other.at == w.at }):
			return nil, Errorf(Invalid, "output %s is requested twice", o.Name)
		}
		if v, ok := o.Parameters["classification"]; ok {
			n, err := integer(v)
			if err != nil || n < 1 || n > maxClasses || m.Port.Outputs() == nil {
				return nil, Errorf(Invalid, "output %s: parameter classification is %v, and must be a number of classes from 1 to %d of a tensor", o.Name, v, maxClasses)
			}
			w.classes = int(n)
		}
		all = append(all, w)
	}
	return all, nil
}

// output returns an output of a call.
func (s *Server) output(ctx context.Context, m *Model, call *request.Call, w wanted) (Tensor, error) {
	out := Tensor{Name: w.Name}
	if m.Port.Outputs() == nil {
		out.Datatype, out.Shape = Bytes, []int64{int64(call.Rows), 1}
		for _, text := range call.Texts {
			out.Data = AppendBytes(out.Data, text)
		}
	} else {
		t := m.Port.Outputs()[w.at]
		out.Datatype, out.Shape, out.Data = datatypes[t.DType], slices.Clone(t.Shape), call.Outputs[w.at]
		if m.takesRows() {
			out.Shape[0] = int64(call.Rows)
		}
		if w.classes > 0 {
			var err error
			if out.Data, out.Shape, err = classify(t, out.Data, call.Rows, w.classes); err != nil {
				return out, fmt.Errorf("output %s: %w", w.Name, err)
			}
			out.Datatype = Bytes
		}
	}
	region, ok := w.Parameters["shared_memory_region"]
	if !ok {
		return out, nil
	}
	name, offset, size, err := sharedPart(region, w.Parameters)
	if err == nil && size < uint64(len(out.Data)) {
		err = Errorf(Invalid, "it has %d bytes, and %d bytes of shared memory are given", len(out.Data), size)
	}
	if err == nil {
		err = s.o.Shared.Write(callerIn(ctx), name, offset, out.Data)
	}
	if err != nil {
		return out, fmt.Errorf("output %s: %w", w.Name, err)
	}
	out.Parameters = map[string]any{"shared_memory_region": region, "shared_memory_byte_size": int64(len(out.Data))}
	if v, ok := w.Parameters["shared_memory_offset"]; ok {
		out.Parameters["shared_memory_offset"] = v
	}
	out.Data = nil
	return out, nil
}

// maxClasses is the most classes of a row that a caller can ask for.
const maxClasses = 1000

// Models lists the models by name.
func (s *Server) Models() []*Model {
	var all []*Model
	for _, name := range s.names {
		all = append(all, s.models[name])
	}
	return all
}

// errDecode is of bytes that are not the file or text that the model takes.
var errDecode = errors.New("cannot be decoded")
