package cluster

import (
	"cmp"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Gain of compression, as a fraction of the size, below which batches are sent as they are, and the number of
// batches until it is tried again.
const (
	minGain    = 0.15
	retryAfter = 64
)

// codec compresses batches while that makes them smaller.
type codec struct {
	name  string // "": none
	pack  func(dst, src []byte) []byte
	rest  int // batches until the next attempt
	buf   []byte
	close func()
}

// newCodec returns the codec of a plan, which has been checked.
func newCodec(name string, level int) (*codec, error) {
	c := &codec{name: name, close: func() {}}
	level = cmp.Or(level, 1)
	switch name {
	case "s2":
		c.pack = map[int]func(dst, src []byte) []byte{1: s2.Encode, 2: s2.EncodeBetter, 3: s2.EncodeBest}[level]
	case "zstd":
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevel(level)), zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		c.pack = func(dst, src []byte) []byte { return w.EncodeAll(src, dst[:0]) }
		c.close = func() { _ = w.Close() }
	}
	return c, nil
}

// apply returns the batch as it is sent, and the name of its encoding, "" for none. The result is valid until the
// next call.
func (c *codec) apply(data []byte) ([]byte, string) {
	switch {
	case c.pack == nil:
		return data, ""
	case c.rest > 0:
		c.rest--
		return data, ""
	}
	if n := s2.MaxEncodedLen(len(data)); cap(c.buf) < n {
		c.buf = make([]byte, n)
	}
	c.buf = c.pack(c.buf[:cap(c.buf)], data)
	if float64(len(c.buf)) > (1-minGain)*float64(len(data)) {
		c.rest = retryAfter
		return data, ""
	}
	return c.buf, c.name
}
