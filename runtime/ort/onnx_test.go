package ort_test

// What a test needs of ONNX, a protocol buffer: a graph of one node. Field
// numbers are those of onnx.proto.

type message []byte

func (m message) varint(v uint64) message {
	for ; v >= 0x80; v >>= 7 {
		m = append(m, byte(v)|0x80)
	}
	return append(m, byte(v))
}

func (m message) number(field int, v uint64) message {
	return m.varint(uint64(field) << 3).varint(v)
}

func (m message) bytes(field int, b []byte) message {
	return append(m.varint(uint64(field)<<3|2).varint(uint64(len(b))), b...)
}

func (m message) text(field int, s string) message { return m.bytes(field, []byte(s)) }

// value is a ValueInfoProto; a negative dimension is the axis "n".
func value(name string, dtype int, shape ...int64) message {
	var dims message
	for _, d := range shape {
		var dim message
		if d < 0 {
			dim = dim.text(2, "n")
		} else {
			dim = dim.number(1, uint64(d))
		}
		dims = dims.bytes(1, dim)
	}
	tensor := message{}.number(1, uint64(dtype)).bytes(2, dims)
	return message{}.text(1, name).bytes(2, message{}.bytes(1, tensor))
}

// model is a ModelProto with one node that takes all inputs and gives y.
func model(op string, output message, inputs map[string]message) []byte {
	var node, graph message
	for name := range inputs {
		node = node.text(1, name)
	}
	node = node.text(2, "y").text(4, op)
	graph = graph.bytes(1, node).text(2, "test")
	for _, in := range inputs {
		graph = graph.bytes(11, in)
	}
	graph = graph.bytes(12, output)
	return message{}.number(1, 8).bytes(8, message{}.text(1, "").number(2, 13)).bytes(7, graph)
}
