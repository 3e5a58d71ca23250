package inference

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
)

func compressed(kind string, data []byte) []byte {
	var b bytes.Buffer
	var z io.WriteCloser = gzip.NewWriter(&b)
	if kind == "deflate" {
		z = zlib.NewWriter(&b)
	}
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
}

// with returns a request with another header.
func (r request) with(name, value string) request {
	header := map[string]string{}
	for k, v := range r.header {
		header[k] = v
	}
	header[name] = value
	r.header = header
	return r
}

// hostile is a request that is refused with a status and an error that says why.
type hostile struct {
	name   string
	send   request
	status int
	error  string
}

const length = "Inference-Header-Content-Length"

func hostileRequests() []hostile {
	input := func(text string) request { return jsonRequest(`{"inputs":[` + text + `]}`) }
	full := `{"name":"input","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}`
	good := binaryRequest("[1,4]", floats(1, 2, 3, 4), "")
	head := len(good.body) - 16
	return []hostile{
		{"no header with the length of JSON", request{body: good.body}, 400, fmt.Sprintf("16 bytes follow the %d bytes of JSON: set header Inference-Header-Content-Length", head)},
		{"the length of the whole body", good.with(length, strconv.Itoa(len(good.body))), 400, fmt.Sprintf("the JSON has %d bytes, and the body has %d", head, len(good.body))},
		{"a length of one byte more", good.with(length, strconv.Itoa(head+1)), 400, fmt.Sprintf("is %d, the JSON has %d bytes", head+1, head)},
		{"a length of one byte less", good.with(length, strconv.Itoa(head-1)), 400, "the request is not the JSON of the protocol"},
		{"a length that is text", good.with(length, "abc"), 400, `is "abc", and must be the number of bytes`},
		{"a negative length", good.with(length, "-1"), 400, `is "-1", and must be`},
		{"a raw body of half a row", request{header: map[string]string{length: "0"}, body: floats(1, 2, 3, 4, 5, 6)}, 400, "the body has 24 bytes, and a row of input input has 16"},
		{"a raw body of nothing", request{header: map[string]string{length: "0"}, body: []byte{}}, 400, "has no rows"},
		{"a length beyond the body", good.with(length, "9000"), 400, "is 9000, and the body has"},
		{"truncated binary data", binaryRequest("[1,4]", nil, "").with("X", "").replaced(`"binary_data_size":0`, `"binary_data_size":16`), 400, "its binary_data_size is 16, and 0 bytes of binary data are left"},
		{"fewer bytes than the shape", binaryRequest("[2,4]", floats(1, 2, 3, 4), ""), 400, "it has 16 bytes of data, and shape [2 4] of FP32 has 32"},
		{"more bytes than the shape", binaryRequest("[1,4]", floats(1, 2, 3, 4, 5), ""), 400, "it has 20 bytes of data, and shape [1 4] of FP32 has 16"},
		{"bytes of no input", request{header: good.header, body: append(bytes.Clone(good.body), 1, 2)}, 400, "2 bytes of binary data belong to no input"},
		{"a negative binary_data_size", good.replaced(`"binary_data_size":16`, `"binary_data_size":-9`), 400, "is -9, and must be a number of bytes"},
		{"a huge binary_data_size", good.replaced(`"binary_data_size":16`, `"binary_data_size":9e999`), 400, "is 9e999, and must be"},
		{"a negative size", input(`{"name":"input","shape":[-1,4],"datatype":"FP32","data":[1]}`), 400, "has the negative size -1"},
		{"a size that overflows", input(`{"name":"input","shape":[4611686018427387904,4611686018427387904],"datatype":"FP32","data":[1]}`), 400, "more elements than a request can have"},
		{"no rows", input(`{"name":"input","shape":[0,4],"datatype":"FP32","data":[]}`), 400, "has no rows"},
		{"too many rows", input(`{"name":"input","shape":[17,4],"datatype":"FP32","data":[` + strings.Repeat("1,", 67) + `1]}`), 400, "has 17 rows, and a request has at most 16"},
		{"another shape", input(`{"name":"input","shape":[4],"datatype":"FP32","data":[1,2,3,4]}`), 400, "its shape is [4], and the model takes [1 4] with up to 16 rows"},
		{"another type", input(`{"name":"input","shape":[1,4],"datatype":"INT64","data":[1,2,3,4]}`), 400, `its datatype is "INT64", and the model takes FP32`},
		{"an unknown type", input(`{"name":"input","shape":[1,4],"datatype":"FP128","data":[1,2,3,4]}`), 400, `datatype "FP128" is not known`},
		{"an unknown input", input(full + `,{"name":"more","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}`), 400, `input "more" does not exist; the model takes input`},
		{"an input twice", input(full + "," + full), 400, "input input is given twice"},
		{"no input", input(""), 400, "input input is missing"},
		{"thousands of inputs", input(full + strings.Repeat(","+full, 2000)), 400, "lists 2001 inputs"},
		{"data twice", input(`{"name":"input","shape":[1,4],"datatype":"FP32","data":[1,2,3,4],"parameters":{"binary_data_size":16}}`), 400, "its data is given twice"},
		{"no data", input(`{"name":"input","shape":[1,4],"datatype":"FP32"}`), 400, "it has no data"},
		{"a ragged list", input(`{"name":"input","shape":[2,4],"datatype":"FP32","data":[[1,2,3,4],[5,6,7]]}`), 400, "its data[1] has 3 elements, and shape [2 4] has 4 there"},
		{"a list of another nesting", input(`{"name":"input","shape":[2,4],"datatype":"FP32","data":[[1,2,3,4,5,6,7,8]]}`), 400, "its data[0] has more than the 4 elements"},
		{"a text among numbers", input(`{"name":"input","shape":[1,4],"datatype":"FP32","data":[1,"2",3,4]}`), 400, `its data[1]: "\"2\"" is not a value of type FP32`},
		{"a number that is too large", input(`{"name":"input","shape":[1,4],"datatype":"FP32","data":[1,1e39,3,4]}`), 400, "its data[1]"},
		{"an unknown output", jsonRequest(`{"inputs":[` + full + `],"outputs":[{"name":"../../etc/passwd"}]}`), 400, `output "../../etc/passwd" does not exist; the model gives y`},
		{"an output twice", jsonRequest(`{"inputs":[` + full + `],"outputs":[{"name":"y"},{"name":"y"}]}`), 400, "output y is requested twice"},
		{"too many classes", jsonRequest(`{"inputs":[` + full + `],"outputs":[{"name":"y","parameters":{"classification":100000000}}]}`), 400, "must be a number of classes"},
		{"a negative timeout", jsonRequest(`{"parameters":{"timeout":-1},"inputs":[` + full + `]}`), 400, "parameter timeout is -1"},
		{"an unknown priority", jsonRequest(`{"parameters":{"priority":77},"inputs":[` + full + `]}`), 400, "parameter priority is 77"},
		{"a sequence", jsonRequest(`{"parameters":{"sequence_id":7},"inputs":[` + full + `]}`), 501, "has no sequences"},
		{"shared memory", input(`{"name":"input","shape":[1,4],"datatype":"FP32","parameters":{"shared_memory_region":"../x","shared_memory_byte_size":16}}`), 400, "is not registered"},
		{"JSON of many levels", jsonRequest(strings.Repeat("[", 100000)), 400, "more than 16 levels"},
		{"JSON that ends", jsonRequest(`{"inputs":[`), 400, "not the JSON of the protocol"},
		{"two documents", jsonRequest(`{"inputs":[` + full + `]}{}`), 400, "bytes follow the"},
		{"bytes that are not UTF-8", jsonRequest("{\"id\":\"\xff\",\"inputs\":[" + full + "]}"), 400, "not UTF-8"},
		{"an id that is a number", jsonRequest(`{"id":7,"inputs":[` + full + `]}`), 400, "not the JSON of the protocol"},
		{"nothing", jsonRequest(""), 400, "not the JSON of the protocol"},
		{"a body that is too large", request{body: make([]byte, 4<<20)}, 413, "a request to model m has at most"},
		{"a gzip bomb", request{body: compressed("gzip", make([]byte, 64<<20))}.with("Content-Encoding", "gzip"), 413, "the body has more than"},
		{"a deflate bomb", request{body: compressed("deflate", make([]byte, 64<<20))}.with("Content-Encoding", "deflate"), 413, "the body has more than"},
		{"what is not gzip", good.with("Content-Encoding", "gzip"), 400, "the body is not gzip"},
		{"a picture without a header", request{body: []byte("\xff\xd8\xff\xe0 and so on")}, 400, "set header Inference-Header-Content-Length to 0 if it is the data of the only input, such as a picture"},
		{"an unknown coding", good.with("Content-Encoding", "br"), 400, `Content-Encoding "br" is not known`},
		{"another model", request{path: "/v2/models/n/infer", body: good.body}, 404, `model "n" does not exist; this server has m`},
		{"another version", request{path: "/v2/models/m/versions/9/infer", body: good.body}, 404, `has no version "9"`},
		{"a path in the name", request{path: "/v2/models/..%2f..%2fetc%2fpasswd/infer", body: good.body}, 404, "does not exist"},
		{"a NUL in the name", request{path: "/v2/models/m%00/infer", body: good.body}, 404, "does not exist"},
		{"a long name", request{path: "/v2/models/" + strings.Repeat("m", 4000) + "/infer", body: good.body}, 404, "does not exist"},
		{"another path", request{path: "/v3/models/m/infer", body: good.body}, 404, "is not part of the protocol"},
		{"loading a model", request{path: "/v2/repository/models/m/load", body: []byte("{}")}, 501, "models are part of the device's plan"},
		{"a huge header", good.with("X-Padding", strings.Repeat("x", 64<<10)), 431, ""},
	}
}

// replaced replaces text in the JSON of a binary request.
func (r request) replaced(old, by string) request {
	body := bytes.Replace(r.body, []byte(old), []byte(by), 1)
	n, _ := strconv.Atoi(r.header[length])
	r.body = body
	return r.with(length, strconv.Itoa(n+len(by)-len(old)))
}

// resident is the memory of the program in bytes.
func (s *service) resident() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "Rss:" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	s.t.Fatal("no Rss")
	return 0
}

// Each hostile request gets its status and an error that says why; the server works as before, and its memory
// does not grow with their number.
func TestHostileRequestsAreRefused(t *testing.T) {
	s := serve(t, id4(1, 2, 4), map[string][]byte{"m.onnx": identity(4, true)})
	all := hostileRequests()
	if len(all) < 24 {
		t.Fatalf("%d requests", len(all))
	}
	for _, h := range all {
		a, err := s.do(h.send)
		if err != nil && h.status != 431 && h.status != 413 { // those may close the connection while the body is sent
			t.Errorf("%s: %v", h.name, err)
			continue
		}
		if err == nil && (a.status != h.status || !strings.Contains(a.Error, h.error)) {
			t.Errorf("%s: status %d: %.300s; want %d: %s", h.name, a.status, a.body, h.status, h.error)
		}
	}
	before, most := s.resident(), int64(0)
	const times = 4
	for _, h := range all {
		for range times {
			_, _ = s.do(h.send) // the answer was seen before
		}
		now := s.resident()
		most = max(most, now)
		t.Logf("row: %s | %d | %s | %d MiB", h.name, h.status, strings.ReplaceAll(h.error, "|", "\\|"), now>>20)
	}
	after := s.resident()
	t.Logf("saw: %d rows, %d times each: %d MiB before, %d MiB after, %d MiB at most", len(all), times, before>>20, after>>20, most>>20)
	if after > before+48<<20 {
		t.Errorf("memory grew from %d to %d MiB", before>>20, after>>20)
	}
	// JSON as it is allowed: flat, and nested like the shape, with blanks and numbers of any form.
	for _, data := range []string{`[1,2,3,4,5,6,7,8]`, "[[1,2,3,4],\n [5,6,7,8]]", `[[1.0,2e0,0.3e1,4],[5,6,7,8]]`} {
		a := s.must(jsonRequest(`{"inputs":[{"name":"input","shape":[2,4],"datatype":"FP32","data":` + data + `}],"outputs":[{"name":"y"}]}`))
		if got := fmt.Sprint(a.Outputs[0].Data); got != "[1 2 3 4 5 6 7 8]" {
			t.Errorf("%s: %s", data, got)
		}
	}
	good := binaryRequest("[1,4]", floats(1, 2, 3, 4), "")
	for _, kind := range []string{"gzip", "deflate"} {
		s.must(request{header: good.header, body: compressed(kind, good.body)}.with("Content-Encoding", kind))
	}
}

// Clients that send slowly, or nothing, are closed, and others are answered meanwhile.
func TestSlowClientsAreClosed(t *testing.T) {
	s := serve(t, id4(), map[string][]byte{"m.onnx": identity(4, false)})
	var slow []net.Conn
	for n := range 40 {
		c := s.dial()
		if n%2 == 0 {
			fmt.Fprint(c, "POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nX-Slow: ")
		} else {
			fmt.Fprint(c, "POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
		}
		slow = append(slow, c)
	}
	s.must(binaryRequest("[1,4]", floats(1, 2, 3, 4), ""))
	for _, c := range slow {
		b, _ := io.ReadAll(c) // ends when the server closes the connection
		if text := string(b); text != "" && !strings.Contains(text, " 400 ") && !strings.Contains(text, " 408 ") {
			t.Errorf("%.200s", text)
		}
	}
}

// Elements of any length: their lengths are those of the caller.
func TestHostileBytes(t *testing.T) {
	p := plan.Pipeline{
		Source: plan.PipelineSource{Format: "text", Shape: []int64{1, 16}},
		Stages: []plan.PipelineStage{{ID: "id", Kind: "custom", Input: "source", Custom: &plan.Custom{Plugin: "copy.so", DType: "u8", Shape: []int64{1, 16}}}},
		Queue:  plan.PipelineQueue{Capacity: 1, Policy: "block"},
	}
	s := serve(t, p, map[string][]byte{"copy.so": slowPlugin(t, 0)})
	text := func(size uint32, content string) request {
		data := append(binary.LittleEndian.AppendUint32(nil, size), content...)
		r := binaryRequest("[1,1]", data, "")
		return r.replaced(`"datatype":"FP32"`, `"datatype":"BYTES"`).replaced(`"name":"input"`, `"name":"text"`)
	}
	for _, c := range []struct {
		send  request
		error string
	}{
		{text(100, "ab"), "element 0 has 100 bytes by its length, and 2 follow"},
		{text(1<<32-1, "ab"), "element 0 has 4294967295 bytes"},
		{text(1, "ab"), "1 bytes follow the last of 1 elements"},
		{text(17, "12345678901234567"), "the text has 17 bytes, and at most 16"},
		{text(3, "a\x00b"), "has a NUL byte at 1"},
		{text(2, "\xff\xfe"), "is not UTF-8"},
		{jsonRequest(`{"inputs":[{"name":"text","shape":[1,1],"datatype":"BYTES","data":[["a","b"]]}]}`), "its data[0] has more than the 1 elements"},
		{jsonRequest(`{"inputs":[{"name":"text","shape":[2,1],"datatype":"BYTES","data":[["a"],["b","c"]]}]}`), "its data[1] has more than the 1 elements"},
		{jsonRequest(`{"inputs":[{"name":"text","shape":[2,1],"datatype":"BYTES","data":[["a","b"]]}]}`), "its data[0] has more than the 1 elements"},
	} {
		if a, err := s.do(c.send); err != nil || a.status != http.StatusBadRequest || !strings.Contains(a.Error, c.error) {
			t.Errorf("%v, %d: %s; want %s", err, a.status, a.body, c.error)
		}
	}
	for _, data := range []string{`["a","b"]`, `[["a"],["b"]]`} {
		a := s.must(jsonRequest(`{"inputs":[{"name":"text","shape":[2,1],"datatype":"BYTES","data":` + data + `}]}`))
		if got := fmt.Sprint(a.Outputs[0].Data[0], a.Outputs[0].Data[16]); got != "97 98" {
			t.Errorf("%s: %s", data, got)
		}
	}
	began := time.Now()
	s.must(text(5, "h\u00e4llo"[:5]))
	t.Logf("%v", time.Since(began))
}
