package inference

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// classify returns the n largest values of each row, as texts "value:index".
func classify(t registry.Tensor, data []byte, rows, n int) (out []byte, shape []int64, err error) {
	each := len(data) / rows
	classes := each / int(t.DType.Bytes())
	if classes < 1 {
		return nil, nil, Errorf(Invalid, "it has no classes")
	}
	n = min(n, classes)
	values := make([]float64, classes)
	order := make([]int, classes)
	for r := range rows {
		for i := range order {
			order[i] = i
			values[i] = valueAt(t.DType, data[r*each:], i)
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
		for _, i := range order[:n] {
			out = AppendBytes(out, fmt.Appendf(nil, "%s:%d", strconv.FormatFloat(values[i], 'f', 6, 64), i))
		}
	}
	return out, []int64{int64(rows), int64(n)}, nil
}

// valueAt returns an element of a tensor.
func valueAt(t registry.DType, b []byte, i int) float64 {
	b = b[i*int(t.Bytes()):]
	switch t {
	case registry.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case registry.BF16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
	case registry.I8:
		return float64(int8(b[0]))
	case registry.U8, registry.Bool:
		return float64(b[0])
	case registry.I32:
		return float64(int32(binary.LittleEndian.Uint32(b)))
	case registry.I64:
		return float64(int64(binary.LittleEndian.Uint64(b)))
	}
	return halfFloat(binary.LittleEndian.Uint16(b))
}

// halfFloat is the value of a float16.
func halfFloat(h uint16) float64 {
	exponent, fraction := int(h>>10&31), float64(h&1023)
	v := math.Ldexp(fraction, -24)
	switch {
	case exponent == 31 && fraction > 0:
		return math.NaN()
	case exponent == 31:
		v = math.Inf(1)
	case exponent > 0:
		v = math.Ldexp(1024+fraction, exponent-25)
	}
	if h&0x8000 != 0 {
		return -v
	}
	return v
}
