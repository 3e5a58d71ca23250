package pipeline

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
)

// Limits and defaults of requests.
const (
	DefaultRequests = 64   // at once, waiting or in work
	MaxRequests     = 4096 // that a plan may allow
	DefaultRows     = 16   // of a request, where no batch is larger
	MaxRows         = 4096 // that a plan may allow
	MaxSent         = 32 << 20
	DefaultTimeout  = 10 * time.Second

	// MaxBody is the largest size of all rows of a request in bytes.
	MaxBody = 512 << 20
)

// Sizes of bodies over HTTP, in bytes.
const (
	maxJSON       = 1 << 20  // JSON, without the values of tensors
	jsonElement   = 32       // most of a number in JSON, with what separates it
	maxJSONValues = 64 << 20 // values of tensors in JSON
	leastBodies   = 16 << 20
)

// Memory for decoding the pictures of requests, in bytes.
const (
	mostPictures  = 256 << 20
	leastPictures = 32 << 20
)

// RequestBody is the most bytes of the body of a request over HTTP.
func RequestBody(inputs []Sent, rows int) int64 {
	values, row := int64(0), int64(0)
	sent := false
	for _, in := range inputs {
		row += in.Bytes()
		if in.Format != TensorFormat {
			sent = true
			continue
		}
		values += in.Bytes() / in.DType.Bytes() * jsonElement
	}
	binary := int64(rows) * row
	if sent { // a file may be larger than its pixels, and four bytes of base64 or an escape are six
		binary += int64(rows) * MaxSent
		binary = min(binary, 2*MaxSent)
	}
	return maxJSON + max(binary, min(int64(rows)*values, maxJSONValues))
}

// RequestBodies is the most bytes of all bodies that are in memory, so many requests of so many rows at most.
func RequestBodies(inputs []Sent, limit, rows int) int64 {
	row := int64(0)
	for _, in := range inputs {
		row += in.Bytes()
	}
	return max(2*int64(limit)*row, 2*RequestBody(inputs, rows), leastBodies)
}

// PictureMemory is the most bytes that the pictures of requests take while they are decoded: a quarter of the
// budget, within limits; 0 for other requests.
func PictureMemory(p *plan.Pipeline) int64 {
	if !IsServed(&p.Source) || p.Source.Format != ImageFormat {
		return 0
	}
	if p.Budget == nil || p.Budget.Memory == 0 {
		return mostPictures
	}
	return min(max(p.Budget.Memory/4, leastPictures), mostPictures)
}

// RequestMemory is the most bytes of requests that wait or are in work, without their answers: bodies, pictures that are
// decoded, and the rows made of pictures and texts.
func RequestMemory(p *plan.Pipeline) int64 {
	if !IsServed(&p.Source) || p.Source.Request == nil {
		return 0
	}
	inputs, limit, rows := SentInputs(&p.Source), RequestLimit(&p.Source), RequestRows(p)
	total := RequestBodies(inputs, limit, rows) + PictureMemory(p)
	for _, in := range inputs {
		if in.Format != TensorFormat {
			total += int64(limit) * int64(rows) * in.Bytes()
		}
	}
	return total
}

// tensorAlignment is where tensors of a record begin, which the core and models need.
const tensorAlignment = 256

// TensorStride is the size of a tensor in a record with several.
func TensorStride(t Tensor) int64 {
	return (t.Bytes() + tensorAlignment - 1) / tensorAlignment * tensorAlignment
}

// Sent describes an input of a request: one row of it, as the pipeline sees it.
type Sent struct {
	Tensor
	Format string // [TensorFormat], or that of the bytes that the caller sends: [ImageFormat], [TextFormat]
}

// SentInputs lists the inputs of requests.
func SentInputs(s *plan.PipelineSource) []Sent {
	if s.Format == ImageFormat {
		return []Sent{{Tensor{Name: ImageFormat, DType: U8, Shape: []int64{1, int64(s.Height), int64(s.Width), 3}}, s.Format}}
	}
	var all []Sent
	for _, t := range SourceTensors(s) {
		if t.Name == "" {
			t.Name = "input"
			if s.Format == TextFormat {
				t.Name = TextFormat
			}
		}
		all = append(all, Sent{t, s.Format})
	}
	return all
}

// RequestLimit is how many requests are answered at once, waiting or in work.
func RequestLimit(s *plan.PipelineSource) int {
	if s.Request.Limit > 0 {
		return s.Request.Limit
	}
	return DefaultRequests
}

// RequestTimeout is the time in which a request without a timeout of its own is answered.
func RequestTimeout(s *plan.PipelineSource) time.Duration {
	if s.Timeout > 0 {
		return time.Duration(s.Timeout)
	}
	return DefaultTimeout
}

// RequestRows is how many rows a request may have: 1 where the first axis of an input is not 1, because
// it is no axis of a batch then.
func RequestRows(p *plan.Pipeline) int {
	inputs := SentInputs(&p.Source)
	if slices.ContainsFunc(inputs, func(in Sent) bool { return len(in.Shape) == 0 || in.Shape[0] != 1 }) {
		return 1
	}
	rows := p.Source.Request.Rows
	if rows > 0 {
		return rows
	}
	rows = DefaultRows
	for k := range p.Stages {
		rows = max(rows, LargestBatch(p.Stages, k))
	}
	row := int64(0)
	for _, in := range inputs {
		row += in.Bytes()
	}
	return int(max(min(int64(rows), MaxBody/max(row, 1)), 1))
}

// checkRequestInputs checks the tensors of requests with several inputs.
func checkRequestInputs(s *plan.PipelineSource) []Fault {
	fault := func(field, value, advice, format string, args ...any) []Fault {
		return []Fault{{Topic: Requests, Path: append([]string{"source"}, field), Value: value, Advice: advice, Reason: fmt.Sprintf(format, args...)}}
	}
	switch {
	case s.Format != TensorFormat:
		return fault("inputs", "", "remove inputs, or choose format: \"tensor\"", "requests of %s have one input", s.Format)
	case s.DType != "" || s.Shape != nil:
		return fault("inputs", "", "remove dtype and shape of the source", "each of the inputs has a dtype and a shape of its own")
	case s.Width != 0 || s.Height != 0:
		return fault("format", s.Format, "remove width and height", "a source of tensors has no width and height")
	case len(s.Request.Inputs) > MaxTensors:
		return fault("inputs", "", "", "a request has at most %d inputs", MaxTensors)
	}
	for _, in := range s.Request.Inputs {
		t := Tensor{Shape: in.Shape}
		if _, known := ParseDType(in.DType); !known || len(in.Shape) == 0 || len(in.Shape) > MaxRank || t.Bytes() == 0 {
			f := fault("inputs", fmt.Sprint(in.Shape), "give a smaller shape", "input %s: a tensor has at most %d axes, each at least 1, and a pipeline holds %d MiB", in.Name, MaxRank, MaxPool>>20)
			f[0].Path = []string{"source", "inputs", in.Name}
			return f
		}
	}
	return nil
}

// checkRequests checks a pipeline that answers requests.
func checkRequests(p *plan.Pipeline) []Fault {
	s := &p.Source
	fault := func(path []string, value, advice, format string, args ...any) []Fault {
		return []Fault{{Topic: Requests, Path: path, Value: value, Advice: advice, Reason: fmt.Sprintf(format, args...)}}
	}
	source := func(field string) []string { return []string{"source", field} }
	sink, _ := SinkOf(p.Sink.Kind)
	switch {
	case IsServed(s) != (s.Request != nil):
		return fault(source("kind"), s.Kind, "choose kind: \"request\"", "only a source of requests has settings of requests")
	case sink.Replies && !IsServed(s):
		return fault([]string{"sink", "kind"}, p.Sink.Kind, "choose another sink, or source kind: \"request\"", "a reply goes to a caller, and a source of kind %s has none", s.Kind)
	case !IsServed(s):
		return nil
	case !sink.Replies:
		return fault([]string{"sink", "kind"}, p.Sink.Kind, "remove sink", "results of requests go to their callers")
	case s.Live:
		return fault(source("live"), "true", "remove live", "requests are refused where they are too many, and never dropped for newer ones")
	case s.Request.Limit < 0 || s.Request.Limit > MaxRequests:
		return fault(source("maxRequests"), strconv.Itoa(s.Request.Limit), "", "a pipeline answers at most %d requests at once", MaxRequests)
	case s.Request.Rows < 0 || s.Request.Rows > MaxRows:
		return fault(source("maxRows"), strconv.Itoa(s.Request.Rows), "", "a request has at most %d rows", MaxRows)
	case s.Request.Rows > 1 && RequestRows(p) == 1:
		return fault(source("maxRows"), strconv.Itoa(s.Request.Rows), "give each input a first axis of 1", "a request has one row, because the first axis of an input is not 1")
	case p.Queue.Policy != "" && p.Queue.Policy != Block:
		return fault([]string{"queue", "policy"}, p.Queue.Policy, "remove policy", "no request is dropped for another one")
	}
	if body := int64(RequestRows(p)) * FrameBytes(s); body > MaxBody {
		return fault(source("maxRows"), strconv.Itoa(s.Request.Rows), "lower maxRows", "a request of %d rows has %d MiB, and at most %d are possible", RequestRows(p), body>>20, MaxBody>>20)
	}
	return slices.Concat(checkAddress(s.Request), checkCallers(p))
}

// checkAddress checks where a pipeline listens.
func checkAddress(r *plan.Request) []Fault {
	fault := func(field, value, advice, format string, args ...any) []Fault {
		return []Fault{{Topic: Requests, Path: []string{"source", field}, Value: value, Advice: advice, Reason: fmt.Sprintf(format, args...)}}
	}
	at, err := netip.ParseAddrPort(r.Address)
	switch {
	case r.Address == "" && (r.TLS != nil || r.Tokens != "" || r.Plain || r.SharedMemory):
		field := "plain"
		switch {
		case r.TLS != nil:
			field = "tls"
		case r.Tokens != "":
			field = "tokens"
		case r.SharedMemory:
			field = "sharedMemory"
		}
		return fault(field, "", "set address, or remove "+field, "%s is for TCP, and no address is declared", field)
	case r.Address == "":
		return nil
	case err != nil:
		return fault("address", r.Address, "write it with its port, such as 192.0.2.7:8000 or [::]:8000", "%q is not an address to listen on", r.Address)
	case r.SharedMemory && !at.Addr().IsLoopback():
		return fault("sharedMemory", "true", "remove sharedMemory, or listen on 127.0.0.1", "callers on %s are on other machines, which share no memory with the device", at.Addr())
	case r.Plain && r.TLS != nil:
		return fault("plain", "true", "remove plain or tls", "the address is either with or without TLS")
	case r.Plain && !at.Addr().IsLoopback():
		return fault("plain", "true", "set tls, or listen on 127.0.0.1", "without TLS everyone on the network can read and change requests, and %s is not the loopback address", at.Addr())
	case r.Plain:
		return nil
	case r.TLS == nil:
		return fault("address", r.Address, "set tls with certificate and key, and tokens or tls.clientCA", "the network can reach this address, and requests are neither encrypted nor authenticated")
	case r.Tokens == "" && r.TLS.ClientCA == "":
		return fault("tls", "", "set tokens, a file with one token a line, or tls.clientCA", "everyone who reaches the address can send requests")
	}
	return nil
}

// checkCallers checks that nothing of one caller reaches another.
func checkCallers(p *plan.Pipeline) []Fault {
	for i := range p.Stages {
		s := &p.Stages[i]
		why := ""
		switch {
		case s.Kind == Gate.Kind:
			why = "compares a picture with that of the caller before"
		case s.Kind == Track.Kind:
			why = "follows objects from one picture to the next, and those of requests do not follow each other"
		case ReadsPrevious(s):
			why = "reads the tensor of the caller before"
		default:
			continue
		}
		return []Fault{{Topic: Requests, Path: stagePath(s), Value: s.Kind, Reason: "stage " + s.ID + " " + why, Advice: "remove the stage"}}
	}
	if inputs := SentInputs(&p.Source); len(inputs) > 1 && len(p.Stages) > 0 && p.Stages[0].Model == nil {
		return []Fault{{Topic: Requests, Path: stagePath(&p.Stages[0]), Value: p.Stages[0].Kind,
			Reason: fmt.Sprintf("stage %s takes one tensor, and a request has %d", p.Stages[0].ID, len(inputs)), Advice: "begin with a model stage, or declare one input"}}
	}
	if p.Degrade != nil {
		for _, step := range p.Degrade.Ladder {
			if step.FPS > 0 {
				return []Fault{{Topic: Requests, Path: []string{"degrade", "ladder"}, Value: strconv.Itoa(step.FPS),
					Reason: "callers set the rate of requests", Advice: "change models or sizes, and lower source.maxRequests"}}
			}
		}
	}
	return nil
}
