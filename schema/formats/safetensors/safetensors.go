// Package safetensors reads the header of files in the safetensors format
// (https://github.com/huggingface/safetensors, "Format"): eight bytes with the length of a JSON
// object, that object, and the bytes of the tensors.
package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrFormat is wrapped by the errors of files of another format.
var ErrFormat = errors.New("not a safetensors file")

// MaxHeader is the largest header, in bytes.
const MaxHeader = 64 << 20

// Tensor is a tensor as the header declares it; nothing about it was checked.
type Tensor struct {
	DType   string  `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"` // from the end of the header
}

// Header is what a file declares.
type Header struct {
	Tensors map[string]Tensor
	Meta    map[string]string
	Size    int64 // bytes before the first tensor
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// ReadHeader reads the header of a file of size bytes. The error wraps [ErrFormat], or is one of r.
func ReadHeader(r io.Reader, size int64) (*Header, error) {
	var head [8]byte
	if size < int64(len(head)) {
		return nil, invalid("%d bytes are too short for a header", size)
	}
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > MaxHeader || int64(n) > size-int64(len(head)) {
		return nil, invalid("its header would have %d bytes, and the file has %d", n, size)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, invalid("its header is not JSON: %v", err)
	}
	h := &Header{Tensors: map[string]Tensor{}, Size: int64(len(head)) + int64(n)}
	for name, raw := range all {
		if name == "__metadata__" {
			if err := json.Unmarshal(raw, &h.Meta); err != nil {
				return nil, invalid("its metadata is not text: %v", err)
			}
			continue
		}
		var t Tensor
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, invalid("tensor %.60s: %v", name, err)
		}
		h.Tensors[name] = t
	}
	return h, nil
}
