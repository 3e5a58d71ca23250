package cluster

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Every codec and level gives what its own format's reader reads, and only where that is smaller.
func TestCompressionIsOffWhereItGainsLittle(t *testing.T) {
	var text []byte
	for i := range 200 {
		text = fmt.Appendf(text, `{"type":"result","pipeline":"door","frame":%d,"results":[{"kind":"argmax","class":%d,"score":0.%d}]}`+"\n", i, i%7, i)
	}
	noise := make([]byte, 20000)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	zr, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer zr.Close()
	for name, top := range map[string]int{"s2": 3, "zstd": 4} {
		for level := 0; level <= top; level++ {
			c, err := newCodec(name, level)
			if err != nil {
				t.Fatal(err)
			}
			packed, how := c.apply(text)
			var back []byte
			if name == "s2" {
				back, err = s2.Decode(nil, packed)
			} else {
				back, err = zr.DecodeAll(packed, nil)
			}
			if err != nil || how != name || !bytes.Equal(back, text) || len(packed) > len(text)/2 {
				t.Errorf("%s %d: %v, %q, %d of %d bytes", name, level, err, how, len(packed), len(text))
			}
			// Noise turns it off for a while.
			for range retryAfter + 1 {
				if packed, how = c.apply(noise); how != "" || !bytes.Equal(packed, noise) {
					t.Fatalf("%s %d: noise was sent as %q", name, level, how)
				}
			}
			if _, how = c.apply(text); how != name {
				t.Errorf("%s %d: it is not tried again", name, level)
			}
			c.close()
		}
	}
	if c, err := newCodec("", 0); err != nil {
		t.Error(err)
	} else if packed, how := c.apply(text); how != "" || !bytes.Equal(packed, text) {
		t.Errorf("without a codec: %q", how)
	}
}
