package inference

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/request"
	"github.com/yoctune/yoctune/runtime/serve/inference/protocol"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// takers are models that take each kind of input.
func takers(t testing.TB) (*Server, []*Model) {
	t.Helper()
	tensor := func(name string, d registry.DType, shape ...int64) registry.Tensor {
		return registry.Tensor{Name: name, DType: d, Shape: shape}
	}
	var all []*Model
	for name, inputs := range map[string][]registry.Sent{
		"tensors": {{Tensor: tensor("x", registry.F32, 1, 4), Format: registry.TensorFormat}, {Tensor: tensor("ids", registry.I64, 1, 2), Format: registry.TensorFormat}},
		"one":     {{Tensor: tensor("x", registry.U8, 2, 3), Format: registry.TensorFormat}},
		"image":   {{Tensor: tensor("image", registry.U8, 1, 8, 8, 3), Format: registry.ImageFormat}},
		"text":    {{Tensor: tensor("text", registry.U8, 1, 16), Format: registry.TextFormat}},
	} {
		port, err := request.NewPort(inputs, 4, 3, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		port.Answers(nil, nil)
		all = append(all, &Model{Name: name, Port: port})
	}
	return New(Options{Pictures: 4 << 20}, all...), all
}

// checkFill gives a request to each model. What a model takes has the bytes of its rows, and what is refused is the
// caller's fault.
func checkFill(t *testing.T, s *Server, all []*Model, r *Request) {
	t.Helper()
	for _, m := range all {
		if _, err := m.wanted(r.Outputs); err != nil && KindOf(err) != Invalid {
			t.Fatalf("%s: %v", m.Name, err)
		}
		call := &request.Call{}
		err := readParameters(r.Parameters, call)
		if err == nil {
			call.Timeout = time.Minute
			err = s.fill(t.Context(), m, r, call)
		}
		if err != nil {
			if k := KindOf(err); k != Invalid && k != TooLarge && k != Unimplemented {
				t.Fatalf("%s: kind %d: %v", m.Name, k, err)
			}
			continue
		}
		for n, in := range m.Port.Inputs() {
			if call.Rows < 1 || call.Rows > m.Port.Rows() || int64(len(call.Inputs[n])) != int64(call.Rows)*in.Bytes() {
				t.Fatalf("%s: %d rows, %d bytes of input %s", m.Name, call.Rows, len(call.Inputs[n]), in.Name)
			}
		}
	}
}

// Any body is read to a request or refused as invalid, over HTTP with JSON, with binary data and without JSON.
func FuzzRequest(f *testing.F) {
	four := binary.LittleEndian.AppendUint32(nil, 4)
	binaryBody := `{"inputs":[{"name":"x","shape":[1,4],"datatype":"FP32","parameters":{"binary_data_size":16}},{"name":"ids","shape":[1,2],"datatype":"INT64","data":[1,2]}],"parameters":{"binary_data_output":true}}`
	f.Add([]byte(`{"inputs":[{"name":"x","shape":[2,4],"datatype":"FP32","data":[[1,2,3,4],[5,6e3,-7,8]]},{"name":"ids","shape":[2,2],"datatype":"INT64","data":[1,2,3,4]}],"outputs":[{"name":"results"}]}`), "")
	f.Add(append([]byte(binaryBody), make([]byte, 16)...), fmt.Sprint(len(binaryBody)))
	f.Add([]byte(`{"inputs":[{"name":"text","shape":[1,1],"datatype":"BYTES","data":["a\u00e4"]}],"parameters":{"timeout":5,"priority":1}}`), "")
	f.Add(append(four, "text"...), "0")
	var b bytes.Buffer
	_ = jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 9, 7)), nil)
	f.Add(bytes.Clone(b.Bytes()), "0")
	b.Reset()
	_ = png.Encode(&b, image.NewRGBA64(image.Rect(0, 0, 3, 5)))
	f.Add(bytes.Clone(b.Bytes()), "0")
	s, all := takers(f)
	f.Fuzz(func(t *testing.T, body []byte, length string) {
		parses := []func([]byte, string) (*Request, wantsBinary, error){parseRequest}
		if length == "0" {
			parses = nil
			for _, m := range all {
				parses = append(parses, m.parseRaw)
			}
		}
		for _, parse := range parses {
			r, _, err := parse(body, length)
			if err != nil {
				if k := KindOf(err); k != Invalid {
					t.Fatalf("kind %d: %v", k, err)
				}
				continue
			}
			checkFill(t, s, all, r)
		}
	})
}

// Raw contents of messages over gRPC are taken only with the bytes of the rows.
func FuzzRawContents(f *testing.F) {
	f.Add("x", "UINT8", int64(2), int64(3), make([]byte, 6), []byte(nil))
	f.Add("text", "BYTES", int64(1), int64(1), append(binary.LittleEndian.AppendUint32(nil, 2), "ab"...), []byte(nil))
	f.Add("x", "FP32", int64(1), int64(4), make([]byte, 16), make([]byte, 16))
	f.Add("image", "BYTES", int64(1<<40), int64(-1), []byte("\x89PNG\r\n\x1a\n"), []byte{1})
	s, all := takers(f)
	f.Fuzz(func(t *testing.T, name, datatype string, a, b int64, first, second []byte) {
		m := &protocol.ModelInferRequest{RawInputContents: [][]byte{first}}
		m.Inputs = append(m.Inputs, &protocol.ModelInferRequest_InferInputTensor{Name: name, Datatype: datatype, Shape: []int64{a, b}})
		if second != nil {
			m.RawInputContents = append(m.RawInputContents, second)
			m.Inputs = append(m.Inputs, &protocol.ModelInferRequest_InferInputTensor{Name: "ids", Datatype: "INT64", Shape: []int64{a, 2}})
		}
		wire, err := proto.Marshal(m)
		if err != nil {
			return // names that are not UTF-8
		}
		var got protocol.ModelInferRequest
		if err := proto.Unmarshal(wire, &got); err != nil {
			t.Fatal(err)
		}
		r, err := readMessage(&got)
		if err != nil {
			if k := KindOf(err); k != Invalid {
				t.Fatalf("kind %d: %v", k, err)
			}
			return
		}
		checkFill(t, s, all, r)
	})
}
