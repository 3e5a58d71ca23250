package pipeline

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// DType is the type of the elements of a tensor. The zero value is float32.
type DType uint8

// Element types.
const (
	F32 DType = iota
	F16
	BF16
	I8
	U8
	I32
	I64
	Bool
)

// elements describes the types in their order: name, bytes of an element, number in ONNX.
var elements = [...]struct {
	name  string
	bytes int64
	onnx  int
}{{"f32", 4, 1}, {"f16", 2, 10}, {"bf16", 2, 16}, {"i8", 1, 3}, {"u8", 1, 2}, {"i32", 4, 6}, {"i64", 8, 7}, {"bool", 1, 9}}

// String returns the name of the type in a plan.
func (t DType) String() string {
	if int(t) < len(elements) {
		return elements[t].name
	}
	return "type " + strconv.Itoa(int(t))
}

// Bytes returns the size of an element.
func (t DType) Bytes() int64 { return elements[t].bytes }

// ONNX returns the number of the type in ONNX.
func (t DType) ONNX() int { return elements[t].onnx }

// IsInteger reports whether the elements are integers.
func (t DType) IsInteger() bool { return t >= I8 && t <= I64 }

// InCore reports whether the core, and with it the GPU, reads the elements.
func (t DType) InCore() bool { return t <= I32 }

// ParseDType finds a type by its name; "" is float32.
func ParseDType(name string) (DType, bool) {
	if name == "" {
		return F32, true
	}
	return findDType(func(t DType) bool { return t.String() == name })
}

// DTypeOfONNX finds a type by its number in ONNX.
func DTypeOfONNX(n int) (DType, bool) { return findDType(func(t DType) bool { return t.ONNX() == n }) }

func findDType(is func(DType) bool) (DType, bool) {
	i := slices.IndexFunc(DTypes(), is)
	return DType(max(i, 0)), i >= 0
}

// DTypes lists the types.
func DTypes() []DType {
	all := make([]DType, len(elements))
	for i := range all {
		all[i] = DType(i)
	}
	return all
}

// MaxTensors is the largest number of inputs, and of outputs that are read, of a model.
const MaxTensors = 8

// AppendElement appends a decimal number as an element of a tensor, in the byte order of the
// machine. Floats are rounded to nearest even.
func AppendElement(b []byte, t DType, text string) ([]byte, error) {
	if t.IsInteger() || t == Bool {
		low, high := int64(math.MinInt64), int64(math.MaxInt64)
		switch t {
		case I8:
			low, high = math.MinInt8, math.MaxInt8
		case U8:
			low, high = 0, math.MaxUint8
		case I32:
			low, high = math.MinInt32, math.MaxInt32
		case Bool:
			low, high = 0, 1
		}
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < low || v > high {
			return b, fmt.Errorf("%q is not an integer from %d to %d", text, low, high)
		}
		switch t.Bytes() {
		case 1:
			return append(b, byte(v)), nil
		case 4:
			return binary.NativeEndian.AppendUint32(b, uint32(v)), nil
		}
		return binary.NativeEndian.AppendUint64(b, uint64(v)), nil
	}
	v, err := Decimal(text)
	if err != nil {
		return b, err
	}
	bits := math.Float32bits(v)
	switch t {
	case F32:
		return binary.NativeEndian.AppendUint32(b, bits), nil
	case BF16:
		return binary.NativeEndian.AppendUint16(b, uint16((bits+0x7fff+bits>>16&1)>>16)), nil
	}
	h := halfBits(v)
	if h&0x7fff == 0x7c00 {
		return b, fmt.Errorf("%q is beyond the largest f16, 65504", text)
	}
	return binary.NativeEndian.AppendUint16(b, h), nil
}

// halfBits rounds a finite number to a float16.
func halfBits(v float32) uint16 {
	sign := uint16(0)
	if math.Signbit(float64(v)) {
		sign = 0x8000
	}
	x := math.Abs(float64(v))
	if x < 0x1p-14 { // subnormal: multiples of 2^-24
		return sign | uint16(math.RoundToEven(x*0x1p24))
	}
	fraction, exponent := math.Frexp(x) // 0.5 <= fraction < 1
	bits := int(math.RoundToEven(fraction*0x1p11)) - 1<<10 + (exponent+14)<<10
	return sign | uint16(min(bits, 0x7c00))
}

// TensorBytes is the size of a tensor, 0 where its shape is not known or beyond bounds.
func TensorBytes(t DType, shape []int64) int64 { return volume(shape) * t.Bytes() }

// Tensor describes a tensor.
type Tensor struct {
	Name  string // of a model's output, "" for others
	DType DType
	Shape []int64
}

// Bytes is the size of the tensor, see [TensorBytes].
func (t Tensor) Bytes() int64 { return TensorBytes(t.DType, t.Shape) }

// Equal reports whether two tensors have the same elements and shape.
func (t Tensor) Equal(o Tensor) bool { return t.DType == o.DType && slices.Equal(t.Shape, o.Shape) }

func (t Tensor) String() string { return fmt.Sprintf("%s %v", t.DType, t.Shape) }
