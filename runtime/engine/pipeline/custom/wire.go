package custom

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Types of messages.
const (
	typeOpen   = 1
	typeReady  = 2
	typeRun    = 3
	typeDone   = 4
	typeMetric = 5
	typeBuffer = 6
	typeEvent  = 7
)

// Flags in OPEN.
const acceptsEvents = 1 // the pipeline accepts EVENT

// Flags in READY, of programs that accept BUFFER and that read the types of elements.
const (
	takesBuffers = 1
	takesTypes   = 2
)

const (
	magic      = "YTS1"
	headerSize = 24
	portSize   = 96
	maxPayload = 64 << 10
)

// message is one message; its payload is valid until the next is read.
type message struct {
	typ     uint32
	frame   uint64
	status  uint32
	payload []byte
}

// wire is one side of a connection.
type wire struct {
	r       io.Reader
	w       io.Writer
	head    [headerSize]byte
	payload []byte
	out     []byte
}

var native = binary.NativeEndian

func (c *wire) send(typ uint32, frame uint64, status uint32, payload []byte) error {
	_, err := c.w.Write(c.compose(typ, frame, status, payload))
	return err
}

// compose encodes a message, which is valid until the next call.
func (c *wire) compose(typ uint32, frame uint64, status uint32, payload []byte) []byte {
	b := append(c.out[:0], magic...)
	b = native.AppendUint32(b, typ)
	b = native.AppendUint64(b, frame)
	b = native.AppendUint32(b, status)
	b = native.AppendUint32(b, uint32(len(payload)))
	c.out = append(b, payload...)
	return c.out
}

func (c *wire) receive() (message, error) {
	if _, err := io.ReadFull(c.r, c.head[:]); err != nil {
		return message{}, err
	}
	m := message{typ: native.Uint32(c.head[4:]), frame: native.Uint64(c.head[8:]), status: native.Uint32(c.head[16:])}
	n := native.Uint32(c.head[20:])
	if string(c.head[:4]) != magic || n > maxPayload {
		return m, fmt.Errorf("%w: the program wrote %q to its standard output, which is reserved for messages", ErrFailed, c.head[:])
	}
	if cap(c.payload) < int(n) {
		c.payload = make([]byte, n)
	}
	m.payload = c.payload[:n]
	_, err := io.ReadFull(c.r, m.payload)
	return m, err
}

// run is the payload of RUN.
type run struct {
	capture int64
	bytes   int
	buffer  int // number of the buffer that holds the input, 0: shared memory
}

func (r run) append(b []byte) []byte {
	b = native.AppendUint64(b, uint64(r.capture))
	b = native.AppendUint64(b, uint64(r.bytes))
	b = native.AppendUint32(b, uint32(r.buffer))
	return native.AppendUint32(b, 0)
}

func readRun(b []byte) (r run, err error) {
	if len(b) < 24 {
		return r, fmt.Errorf("%w: RUN has %d bytes", ErrFailed, len(b))
	}
	return run{int64(native.Uint64(b)), int(native.Uint64(b[8:])), int(native.Uint32(b[16:]))}, nil
}

func (p *Port) append(b []byte) []byte {
	for _, v := range []uint32{p.Kind, p.Format, p.Width, p.Height, uint32(len(p.Shape)), p.DType} {
		b = native.AppendUint32(b, v)
	}
	for n := range MaxRank {
		v := int64(0)
		if n < len(p.Shape) {
			v = p.Shape[n]
		}
		b = native.AppendUint64(b, uint64(v))
	}
	return native.AppendUint64(b, uint64(p.Bytes))
}

func readPort(b []byte) Port {
	p := Port{Kind: native.Uint32(b), Format: native.Uint32(b[4:]), Width: native.Uint32(b[8:]), Height: native.Uint32(b[12:]), DType: native.Uint32(b[20:])}
	for n := range min(native.Uint32(b[16:]), MaxRank) {
		p.Shape = append(p.Shape, int64(native.Uint64(b[24+8*n:])))
	}
	p.Bytes = int(native.Uint64(b[88:]))
	return p
}

// open is the payload of OPEN.
type open struct {
	in, out     Port
	inAt, outAt int // offsets in the shared memory
	size        int // of the shared memory
	flags       uint32
	options     string
}

func (o *open) append(b []byte) []byte {
	b = native.AppendUint32(b, abi)
	b = native.AppendUint32(b, o.flags)
	b = o.out.append(o.in.append(b))
	for _, v := range []int{o.inAt, o.outAt, o.size} {
		b = native.AppendUint64(b, uint64(v))
	}
	return append(b, o.options...)
}

func readOpen(b []byte) (o open, err error) {
	if len(b) < 8+2*portSize+24 {
		return o, fmt.Errorf("%w: OPEN has %d bytes", ErrFailed, len(b))
	}
	if v := native.Uint32(b); v != abi {
		return o, fmt.Errorf("%w: protocol version %d, want %d", ErrPlugin, v, abi)
	}
	o.flags = native.Uint32(b[4:])
	b = b[8:]
	o.in, o.out = readPort(b), readPort(b[portSize:])
	b = b[2*portSize:]
	o.inAt, o.outAt, o.size = int(native.Uint64(b)), int(native.Uint64(b[8:])), int(native.Uint64(b[16:]))
	o.options = string(b[24:])
	return o, nil
}

// metric decodes METRIC.
func (m *message) metric(to func(name string, value float64, counter bool)) {
	if len(m.payload) > 16 && to != nil {
		to(string(m.payload[16:]), math.Float64frombits(native.Uint64(m.payload[8:])), native.Uint32(m.payload) == 1)
	}
}

func appendMetric(b []byte, name string, value float64, counter bool) []byte {
	kind := uint32(0)
	if counter {
		kind = 1
	}
	b = native.AppendUint32(b, kind)
	b = native.AppendUint32(b, 0)
	b = native.AppendUint64(b, math.Float64bits(value))
	return append(b, name...)
}

// event decodes EVENT.
func (m *message) event(to func(Event)) {
	if len(m.payload) <= 32 || to == nil {
		return
	}
	e := Event{
		Name: string(m.payload[32:]), Span: native.Uint32(m.payload) == 1,
		Start: int64(native.Uint64(m.payload[8:])), End: int64(native.Uint64(m.payload[16:])), Value: math.Float64frombits(native.Uint64(m.payload[24:])),
	}
	to(e)
}

func appendEvent(b []byte, e Event) []byte {
	kind := uint32(0)
	if e.Span {
		kind = 1
	}
	b = native.AppendUint32(b, kind)
	b = native.AppendUint32(b, 0)
	b = native.AppendUint64(b, uint64(e.Start))
	b = native.AppendUint64(b, uint64(e.End))
	b = native.AppendUint64(b, math.Float64bits(e.Value))
	return append(b, e.Name...)
}
