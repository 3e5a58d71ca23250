package inference

import (
	"encoding/binary"
	"fmt"
	"math"

	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Bytes is the datatype of elements of any length: texts, and files such as pictures.
const Bytes = "BYTES"

// datatypes are the names of the engine's types in the protocol, in their order.
var datatypes = map[registry.DType]string{
	registry.F32: "FP32", registry.F16: "FP16", registry.BF16: "BF16", registry.I8: "INT8", registry.U8: "UINT8",
	registry.I32: "INT32", registry.I64: "INT64", registry.Bool: "BOOL",
}

// Tensor is an input or an output.
type Tensor struct {
	Name       string
	Datatype   string
	Shape      []int64
	Parameters map[string]any
	// Data is the elements in row-major order and little-endian bytes; those of Bytes each follow their length in
	// four bytes. It is nil for an output that was written to shared memory.
	Data []byte
}

// volume is the number of elements of a shape. It fails for negative sizes, and for more elements than a
// request can have.
func volume(shape []int64) (int64, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v has the negative size %d", shape, d)
		}
		if d > 0 && n > math.MaxInt32*int64(8)/d {
			return 0, fmt.Errorf("shape %v has more elements than a request can have", shape)
		}
		n *= d
	}
	return n, nil
}

// AppendBytes appends an element of type Bytes.
func AppendBytes(b, element []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(element)))
	return append(b, element...)
}

// SplitBytes returns the n elements of a tensor of type Bytes. They share its memory.
func SplitBytes(data []byte, n int) ([][]byte, error) {
	if n > len(data)/4 {
		return nil, fmt.Errorf("%d bytes are too few for %d elements, each with its length in four bytes", len(data), n)
	}
	all := make([][]byte, n)
	for i := range all {
		if len(data) < 4 {
			return nil, fmt.Errorf("the data ends before element %d of %d", i, n)
		}
		size := int64(binary.LittleEndian.Uint32(data))
		if size > int64(len(data)-4) {
			return nil, fmt.Errorf("element %d has %d bytes by its length, and %d follow", i, size, len(data)-4)
		}
		all[i], data = data[4:4+size:4+size], data[4+size:]
	}
	if len(data) > 0 {
		return nil, fmt.Errorf("%d bytes follow the last of %d elements", len(data), n)
	}
	return all, nil
}
