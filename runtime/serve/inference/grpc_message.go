package inference

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/yoctune/yoctune/runtime/serve/inference/protocol"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// readMessage reads a request. Raw data of tensors is not copied.
func readMessage(r *protocol.ModelInferRequest) (*Request, error) {
	if len(r.Inputs) > maxListed || len(r.Outputs) > maxListed || len(r.RawInputContents) > maxListed {
		return nil, Errorf(Invalid, "the request lists %d inputs, %d outputs and %d raw contents, and no model has more than %d", len(r.Inputs), len(r.Outputs), len(r.RawInputContents), registry.MaxTensors)
	}
	out := &Request{Model: r.ModelName, Version: r.ModelVersion, ID: r.Id}
	var err error
	if out.Parameters, err = readParameterMap(r.Parameters); err != nil {
		return nil, err
	}
	raw, isRaw := r.RawInputContents, len(r.RawInputContents) > 0
	for _, in := range r.Inputs {
		t := Tensor{Name: in.GetName(), Datatype: in.GetDatatype(), Shape: in.GetShape()}
		if t.Parameters, err = readParameterMap(in.GetParameters()); err != nil {
			return nil, fmt.Errorf("input %.80q: %w", t.Name, err)
		}
		_, shared := t.Parameters["shared_memory_region"]
		switch {
		case in.GetContents() != nil && (isRaw || shared):
			return nil, Errorf(Invalid, "input %.80q has contents, and its data is in raw_input_contents or shared memory", t.Name)
		case shared:
		case isRaw && len(raw) == 0:
			return nil, Errorf(Invalid, "raw_input_contents has %d entries, which are too few: it needs one for each input without shared memory", len(r.RawInputContents))
		case isRaw:
			t.Data, raw = raw[0], raw[1:]
		default:
			if t.Data, err = readContents(t.Datatype, in.GetContents()); err != nil {
				return nil, fmt.Errorf("input %.80q: %w", t.Name, err)
			}
		}
		out.Inputs = append(out.Inputs, t)
	}
	if len(raw) > 0 {
		return nil, Errorf(Invalid, "raw_input_contents has %d entries, %d of them too many: it needs one for each input without shared memory", len(r.RawInputContents), len(raw))
	}
	for _, o := range r.Outputs {
		w := Requested{Name: o.GetName()}
		if w.Parameters, err = readParameterMap(o.GetParameters()); err != nil {
			return nil, fmt.Errorf("output %.80q: %w", w.Name, err)
		}
		out.Outputs = append(out.Outputs, w)
	}
	return out, nil
}

// maxParameters is the most parameters that are looked at.
const maxParameters = 256

func readParameterMap(p map[string]*protocol.InferParameter) (map[string]any, error) {
	if len(p) > maxParameters {
		return nil, Errorf(Invalid, "%d parameters, and at most %d are taken", len(p), maxParameters)
	}
	var out map[string]any
	for name, v := range p {
		if out == nil {
			out = map[string]any{}
		}
		switch v := v.GetParameterChoice().(type) {
		case *protocol.InferParameter_BoolParam:
			out[name] = v.BoolParam
		case *protocol.InferParameter_Int64Param:
			out[name] = v.Int64Param
		case *protocol.InferParameter_Uint64Param:
			out[name] = v.Uint64Param
		case *protocol.InferParameter_DoubleParam:
			out[name] = v.DoubleParam
		case *protocol.InferParameter_StringParam:
			out[name] = v.StringParam
		default:
			return nil, Errorf(Invalid, "parameter %.80q has no value", name)
		}
	}
	return out, nil
}

// readContents encodes the elements of a tensor that are in the field of its type.
func readContents(datatype string, c *protocol.InferTensorContents) ([]byte, error) {
	kind, known := dtypeOf(datatype)
	if !known && datatype != Bytes {
		return nil, nil // the model refuses it by its name
	}
	field, n := "bytes_contents", len(c.GetBytesContents())
	if datatype != Bytes {
		switch kind {
		case registry.F32:
			field, n = "fp32_contents", len(c.GetFp32Contents())
		case registry.I8, registry.I32:
			field, n = "int_contents", len(c.GetIntContents())
		case registry.I64:
			field, n = "int64_contents", len(c.GetInt64Contents())
		case registry.U8:
			field, n = "uint_contents", len(c.GetUintContents())
		case registry.Bool:
			field, n = "bool_contents", len(c.GetBoolContents())
		default:
			return nil, Errorf(Invalid, "%s has no field for its elements: use raw_input_contents", datatype)
		}
	}
	if other := elements(c) - n; other > 0 {
		return nil, Errorf(Invalid, "%d elements are in other fields than %s, that of %s", other, field, datatype)
	}
	if datatype == Bytes {
		return appendElements(c), nil
	}
	out := make([]byte, 0, n*int(kind.Bytes()))
	switch kind {
	case registry.F32:
		for _, v := range c.GetFp32Contents() {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	case registry.I32:
		for _, v := range c.GetIntContents() {
			out = binary.LittleEndian.AppendUint32(out, uint32(v))
		}
	case registry.I8:
		for i, v := range c.GetIntContents() {
			if v < math.MinInt8 || v > math.MaxInt8 {
				return nil, Errorf(Invalid, "element %d is %d, and INT8 has %d to %d", i, v, math.MinInt8, math.MaxInt8)
			}
			out = append(out, byte(v))
		}
	case registry.U8:
		for i, v := range c.GetUintContents() {
			if v > math.MaxUint8 {
				return nil, Errorf(Invalid, "element %d is %d, and UINT8 has 0 to %d", i, v, math.MaxUint8)
			}
			out = append(out, byte(v))
		}
	case registry.I64:
		for _, v := range c.GetInt64Contents() {
			out = binary.LittleEndian.AppendUint64(out, uint64(v))
		}
	case registry.Bool:
		for _, v := range c.GetBoolContents() {
			b := byte(0)
			if v {
				b = 1
			}
			out = append(out, b)
		}
	}
	return out, nil
}

func appendElements(c *protocol.InferTensorContents) []byte {
	var out []byte
	for _, v := range c.GetBytesContents() {
		out = AppendBytes(out, v)
	}
	return out
}

// elements is the number of elements in all fields.
func elements(c *protocol.InferTensorContents) int {
	return len(c.GetBoolContents()) + len(c.GetIntContents()) + len(c.GetInt64Contents()) + len(c.GetUintContents()) + len(c.GetUint64Contents()) +
		len(c.GetFp32Contents()) + len(c.GetFp64Contents()) + len(c.GetBytesContents())
}

// writeMessage writes an answer, with raw data.
func writeMessage(r *Response) (*protocol.ModelInferResponse, error) {
	out := &protocol.ModelInferResponse{ModelName: r.Model, ModelVersion: r.Version, Id: r.ID, RawOutputContents: make([][]byte, len(r.Outputs))}
	var err error
	if out.Parameters, err = writeParameters(r.Parameters); err != nil {
		return nil, err
	}
	for i := range r.Outputs {
		t := &r.Outputs[i]
		m := &protocol.ModelInferResponse_InferOutputTensor{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape}
		if m.Parameters, err = writeParameters(t.Parameters); err != nil {
			return nil, err
		}
		out.Outputs = append(out.Outputs, m)
		out.RawOutputContents[i] = t.Data
	}
	return out, nil
}

func writeParameters(p map[string]any) (map[string]*protocol.InferParameter, error) {
	var out map[string]*protocol.InferParameter
	for name, v := range p {
		if out == nil {
			out = map[string]*protocol.InferParameter{}
		}
		m := &protocol.InferParameter{}
		switch v := v.(type) {
		case bool:
			m.ParameterChoice = &protocol.InferParameter_BoolParam{BoolParam: v}
		case int64:
			m.ParameterChoice = &protocol.InferParameter_Int64Param{Int64Param: v}
		case uint64:
			m.ParameterChoice = &protocol.InferParameter_Uint64Param{Uint64Param: v}
		case float64:
			m.ParameterChoice = &protocol.InferParameter_DoubleParam{DoubleParam: v}
		case string:
			m.ParameterChoice = &protocol.InferParameter_StringParam{StringParam: v}
		default:
			return nil, fmt.Errorf("parameter %s of type %T", name, v)
		}
		out[name] = m
	}
	return out, nil
}
