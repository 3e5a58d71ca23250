package inference

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// jsonTensor is an input or an output in JSON.
type jsonTensor struct {
	Name       string          `json:"name"`
	Datatype   string          `json:"datatype"`
	Shape      []int64         `json:"shape"`
	Parameters map[string]any  `json:"parameters"`
	Data       json.RawMessage `json:"data"`
}

// jsonRequest is a request in JSON.
type jsonRequest struct {
	ID         string         `json:"id"`
	Parameters map[string]any `json:"parameters"`
	Inputs     []jsonTensor   `json:"inputs"`
	Outputs    []Requested    `json:"outputs"`
}

// wantsBinary reports for each output whether it is sent as binary data.
type wantsBinary struct {
	all   bool
	named map[string]bool // where the output itself says
}

func (w wantsBinary) of(name string) bool {
	if own, ok := w.named[name]; ok {
		return own
	}
	return w.all
}

// maxListed is the most inputs or outputs that are looked at: no model has as many.
const maxListed = 2 * registry.MaxTensors

// parseRequest reads a body: JSON, and with its length in the header binary data after it.
func parseRequest(body []byte, length string) (*Request, wantsBinary, error) {
	none := wantsBinary{}
	text, rest, err := splitBody(body, length)
	if err != nil {
		return nil, none, err
	}
	if err := checkNesting(text); err != nil {
		return nil, none, explainLength(text, rest, length, err)
	}
	if !utf8.Valid(text) { // encoding/json would replace what is not
		return nil, none, explainLength(text, rest, length, Errorf(Invalid, "the JSON is not UTF-8"))
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // parameters keep their digits
	var q jsonRequest
	if err := dec.Decode(&q); err != nil {
		return nil, none, explainLength(text, rest, length, Errorf(Invalid, "the request is not the JSON of the protocol: %w", errJSON(err)))
	}
	if after := bytes.TrimSpace(text[dec.InputOffset():]); len(after) > 0 {
		return nil, none, explainLength(text, rest, length, Errorf(Invalid, "%d bytes follow the JSON", len(after)))
	}
	if len(q.Inputs) > maxListed || len(q.Outputs) > maxListed {
		return nil, none, Errorf(Invalid, "the request lists %d inputs and %d outputs, and no model has more than %d", len(q.Inputs), len(q.Outputs), registry.MaxTensors)
	}
	r := &Request{ID: q.ID, Parameters: q.Parameters, Outputs: q.Outputs}
	for i := range q.Inputs {
		in := &q.Inputs[i]
		t := Tensor{Name: in.Name, Datatype: in.Datatype, Shape: in.Shape, Parameters: in.Parameters}
		if t.Data, rest, err = tensorData(in, rest); err != nil {
			return nil, none, fmt.Errorf("input %.80q: %w", in.Name, err)
		}
		r.Inputs = append(r.Inputs, t)
	}
	if len(rest) > 0 {
		return nil, none, Errorf(Invalid, "%d bytes of binary data belong to no input: binary_data_size of the inputs and header %s must add up to the %d bytes of the body", len(rest), jsonLength, len(body))
	}
	binary := wantsBinary{named: map[string]bool{}}
	if binary.all, err = boolean(q.Parameters, "binary_data_output"); err != nil {
		return nil, none, err
	}
	for _, o := range q.Outputs {
		if _, has := o.Parameters["binary_data"]; has {
			if binary.named[o.Name], err = boolean(o.Parameters, "binary_data"); err != nil {
				return nil, none, err
			}
		}
	}
	return r, binary, nil
}

// parseRaw reads a body without JSON: the data of the only input, as many rows as there are bytes for, or one file or
// text.
func (m *Model) parseRaw(body []byte, _ string) (*Request, wantsBinary, error) {
	inputs := m.Port.Inputs()
	if len(inputs) != 1 {
		return nil, wantsBinary{}, Errorf(Invalid, "a body without JSON is the data of one input, and the model takes %s", inputNames(inputs))
	}
	in := inputs[0]
	t := Tensor{Name: in.Name, Datatype: datatypes[in.DType], Shape: slices.Clone(in.Shape), Data: body}
	switch each := in.Bytes(); {
	case in.Format != registry.TensorFormat:
		t.Datatype, t.Shape, t.Data = Bytes, []int64{1, 1}, AppendBytes(make([]byte, 0, len(body)+4), body)
	case int64(len(body))%each != 0:
		return nil, wantsBinary{}, Errorf(Invalid, "the body has %d bytes, and a row of input %s has %d", len(body), in.Name, each)
	case m.takesRows():
		t.Shape[0] = int64(len(body)) / each
	}
	return &Request{Inputs: []Tensor{t}}, wantsBinary{}, nil
}

// boolean reads a parameter that is true or false; absent is false.
func boolean(p map[string]any, name string) (bool, error) {
	v, has := p[name]
	if !has {
		return false, nil
	}
	on, ok := v.(bool)
	if !ok {
		return false, Errorf(Invalid, "parameter %s is %v, and must be true or false", name, v)
	}
	return on, nil
}

// tensorData returns the elements of an input, and the binary data that is left.
func tensorData(in *jsonTensor, rest []byte) (data, left []byte, err error) {
	size, isBinary := in.Parameters["binary_data_size"]
	_, isShared := in.Parameters["shared_memory_region"]
	isJSON := in.Data != nil && !bytes.Equal(in.Data, []byte("null"))
	switch {
	case isShared && (isBinary || isJSON), isBinary && isJSON:
		return nil, rest, Errorf(Invalid, "its data is given twice: data, binary_data_size and shared_memory_region exclude each other")
	case isShared:
		return nil, rest, nil
	case !isBinary && !isJSON:
		return nil, rest, Errorf(Invalid, "it has no data: give data, or parameter binary_data_size with binary data after the JSON")
	case isJSON:
		data, err = parseData(in.Data, in.Datatype, in.Shape)
		return data, rest, err
	}
	n, err := integer(size)
	switch {
	case err != nil || n < 0:
		return nil, rest, Errorf(Invalid, "parameter binary_data_size is %v, and must be a number of bytes", size)
	case n > int64(len(rest)):
		return nil, rest, Errorf(Invalid, "its binary_data_size is %d, and %d bytes of binary data are left in the body", n, len(rest))
	}
	return rest[:n:n], rest[n:], nil
}

// dtypeOf finds the engine's type of a datatype.
func dtypeOf(name string) (registry.DType, bool) {
	for t, n := range datatypes {
		if n == name {
			return t, true
		}
	}
	return 0, false
}

// parser reads the values of a tensor in JSON: a flat list, or lists nested like the shape. A flat list is
// allowed by the protocol whatever the shape.
type parser struct {
	b     []byte
	at    int
	shape []int64
	put   func(token []byte) error // a number, a word or a text with its quotes
	n     int64                    // values
}

// parseData reads the values of a tensor.
func parseData(text []byte, datatype string, shape []int64) ([]byte, error) {
	count, err := volume(shape)
	if err != nil {
		return nil, &Error{Invalid, err}
	}
	var out []byte
	p := parser{b: text, shape: shape}
	t, known := dtypeOf(datatype)
	switch {
	case datatype == Bytes:
		p.put = func(token []byte) error {
			var s string
			if err := json.Unmarshal(token, &s); err != nil {
				return Errorf(Invalid, "%.40q is not a text", token)
			}
			out = AppendBytes(out, []byte(s))
			return nil
		}
	case !known:
		return nil, Errorf(Invalid, "datatype %.20q is not known", datatype)
	case t == registry.F16 || t == registry.BF16:
		return nil, Errorf(Invalid, "JSON has no numbers of type %s: send binary data", datatype)
	default:
		out = make([]byte, 0, min(count*t.Bytes(), int64(len(text))*8))
		p.put = func(token []byte) (err error) {
			out, err = appendNumber(out, t, token)
			return err
		}
	}
	if err := p.parse(count); err != nil {
		return nil, err
	}
	return out, nil
}

func (p *parser) blanks() {
	for p.at < len(p.b) && (p.b[p.at] == ' ' || p.b[p.at] == '\n' || p.b[p.at] == '\t' || p.b[p.at] == '\r') {
		p.at++
	}
}

// parse reads all values. encoding/json has checked the syntax.
func (p *parser) parse(count int64) error {
	p.blanks()
	if p.at >= len(p.b) || p.b[p.at] != '[' {
		return Errorf(Invalid, "its data is not a list")
	}
	next := p.at + 1
	for next < len(p.b) && (p.b[next] == ' ' || p.b[next] == '\n' || p.b[next] == '\t' || p.b[next] == '\r') {
		next++
	}
	nested := next < len(p.b) && p.b[next] == '['
	shape := []int64{count}
	switch {
	case nested && len(p.shape) == 0:
		return Errorf(Invalid, "its data has lists in a list, and it is a tensor without axes")
	case nested:
		shape = p.shape
	}
	return p.list(shape, nil)
}

// list reads a list of the shape, at a place among the lists around it.
func (p *parser) list(shape []int64, place []int64) error {
	p.at++ // [
	n := int64(0)
	for {
		p.blanks()
		if p.b[p.at] == ']' {
			p.at++
			break
		}
		if p.b[p.at] == ',' {
			p.at++
			continue
		}
		inner := p.b[p.at] == '['
		switch {
		case inner && len(shape) == 1:
			return Errorf(Invalid, "its data%s has more levels than shape %v", placeText(append(place, n)), p.shape)
		case !inner && len(shape) > 1:
			return Errorf(Invalid, "its data%s is a value, and shape %v has a list there", placeText(append(place, n)), p.shape)
		case n == shape[0]:
			return Errorf(Invalid, "its data%s has more than the %d elements of shape %v", placeText(place), shape[0], p.shape)
		case inner:
			if err := p.list(shape[1:], append(slices.Clip(place), n)); err != nil {
				return err
			}
		default:
			token := p.token()
			if err := p.put(token); err != nil {
				return fmt.Errorf("its data%s: %w", placeText(append(place, n)), err)
			}
		}
		n++
	}
	if n != shape[0] {
		return Errorf(Invalid, "its data%s has %d elements, and shape %v has %d there", placeText(place), n, p.shape, shape[0])
	}
	return nil
}

// token returns the next value: up to what ends it.
func (p *parser) token() []byte {
	from := p.at
	if p.b[p.at] == '"' {
		for p.at++; p.b[p.at] != '"'; p.at++ {
			if p.b[p.at] == '\\' {
				p.at++
			}
		}
		p.at++
		return p.b[from:p.at]
	}
	for p.at < len(p.b) && !bytes.ContainsRune([]byte(",] \n\t\r"), rune(p.b[p.at])) {
		p.at++
	}
	return p.b[from:p.at]
}

// placeText is a place in nested lists: "[0][2]".
func placeText(place []int64) string {
	var b []byte
	for _, n := range place {
		b = append(strconv.AppendInt(append(b, '['), n, 10), ']')
	}
	return string(b)
}

// appendNumber appends a number of JSON, or true and false, as an element.
func appendNumber(b []byte, t registry.DType, token []byte) ([]byte, error) {
	wrong := func() ([]byte, error) {
		return b, Errorf(Invalid, "%.40q is not a value of type %s", token, datatypes[t])
	}
	text := string(token)
	if t == registry.Bool {
		switch text {
		case "true", "1":
			return append(b, 1), nil
		case "false", "0":
			return append(b, 0), nil
		}
		return wrong()
	}
	if t == registry.F32 {
		v, err := strconv.ParseFloat(text, 32)
		if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
			return wrong()
		}
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v))), nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		// A client may write 3.0.
		f, ferr := strconv.ParseFloat(text, 64)
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return wrong()
		}
		v = int64(f)
	}
	out, err := registry.AppendElement(b, t, strconv.FormatInt(v, 10))
	if err != nil {
		return wrong()
	}
	return out, nil
}

// encodeResponse writes an answer: JSON, and the binary data that follows it.
func encodeResponse(r *Response, binary wantsBinary) (head []byte, parts [][]byte, err error) {
	b := append(make([]byte, 0, 256), `{"model_name":`...)
	b = appendJSON(b, r.Model)
	b = appendJSON(append(b, `,"model_version":`...), r.Version)
	if r.ID != "" {
		b = appendJSON(append(b, `,"id":`...), r.ID)
	}
	if len(r.Parameters) > 0 {
		b = appendJSON(append(b, `,"parameters":`...), r.Parameters)
	}
	b = append(b, `,"outputs":[`...)
	for i := range r.Outputs {
		t := &r.Outputs[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSON(append(b, `{"name":`...), t.Name)
		b = appendJSON(append(b, `,"datatype":`...), t.Datatype)
		b = appendJSON(append(b, `,"shape":`...), t.Shape)
		switch {
		case t.Data == nil: // in shared memory: Triton's clients expect no parameters then
		case binary.of(t.Name):
			b = append(b, `,"parameters":{"binary_data_size":`...)
			b = append(strconv.AppendInt(b, int64(len(t.Data)), 10), '}')
			parts = append(parts, t.Data)
		default:
			if b, err = appendData(append(b, `,"data":[`...), t); err != nil {
				return nil, nil, fmt.Errorf("output %s: %w", t.Name, err)
			}
			b = append(b, ']')
		}
		b = append(b, '}')
	}
	return append(b, `]}`...), parts, nil
}

// appendJSON appends a value that encoding/json can always write.
func appendJSON(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte("null")
	}
	return append(b, text...)
}

// appendData appends the values of a tensor as a flat list.
func appendData(b []byte, t *Tensor) ([]byte, error) {
	if t.Datatype == Bytes {
		n, _ := volume(t.Shape)
		all, err := SplitBytes(t.Data, int(n))
		if err != nil {
			return b, err
		}
		for i, element := range all {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, string(element))
		}
		return b, nil
	}
	kind, _ := dtypeOf(t.Datatype)
	each := int(kind.Bytes())
	for at := 0; at < len(t.Data); at += each {
		if at > 0 {
			b = append(b, ',')
		}
		e := t.Data[at:]
		switch kind {
		case registry.F32:
			v := float64(math.Float32frombits(binary.LittleEndian.Uint32(e)))
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return b, Errorf(Invalid, "element %d is %v, which JSON cannot express: ask for binary data", at/each, v)
			}
			b = strconv.AppendFloat(b, v, 'g', -1, 32)
		case registry.Bool:
			b = strconv.AppendBool(b, e[0] != 0)
		case registry.U8:
			b = strconv.AppendUint(b, uint64(e[0]), 10)
		case registry.I8:
			b = strconv.AppendInt(b, int64(int8(e[0])), 10)
		case registry.I32:
			b = strconv.AppendInt(b, int64(int32(binary.LittleEndian.Uint32(e))), 10)
		case registry.I64:
			b = strconv.AppendInt(b, int64(binary.LittleEndian.Uint64(e)), 10)
		default:
			return b, Errorf(Invalid, "JSON has no numbers of type %s: ask for binary data", t.Datatype)
		}
	}
	return b, nil
}
