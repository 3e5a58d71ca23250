// Package gallery reads galleries: named vectors that a match stage compares embeddings with. A
// gallery is a file in the safetensors format (https://github.com/huggingface/safetensors, "Format")
// with one tensor "embeddings" of float32, [entries, dimension], and in its metadata
//
//	names   a JSON array with the name of each entry; several entries may share a name
//	model   SHA-256 of the model that made the vectors; absent: not known
//
// Every vector has a direction: its elements and its length are finite, and the length is not 0.
package gallery

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/yoctune/yoctune/schema/formats/safetensors"
)

// ErrFormat is wrapped by the errors of files that are not galleries.
var ErrFormat = errors.New("not a gallery")

// Limits of a gallery.
const (
	MaxEntries   = 1 << 20
	MaxDimension = 1 << 14
	MaxBytes     = 512 << 20
	maxName      = 1024
)

// Lengths of an embedding between which it has a direction. Outside, the squares of its elements
// leave the range of float32.
const (
	MinLength = 1e-15
	MaxLength = 1e15
)

// Gallery is a list of named vectors.
type Gallery struct {
	Names     []string
	Dimension int
	Model     string    // SHA-256 of the model that made the vectors
	Vectors   []float32 // of unit length, entry after entry
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// Read reads a gallery of size bytes. The vectors are scaled to unit length. The error wraps
// [ErrFormat], or is one of r.
func Read(r io.Reader, size int64) (*Gallery, error) {
	if size > MaxBytes {
		return nil, invalid("%d bytes, and at most %d are allowed", size, MaxBytes)
	}
	h, err := safetensors.ReadHeader(r, size)
	if errors.Is(err, safetensors.ErrFormat) {
		return nil, invalid("%v", err)
	} else if err != nil {
		return nil, err
	}
	g, entries, err := fromHeader(h)
	if err != nil {
		return nil, err
	}
	want := 4 * int64(entries) * int64(g.Dimension)
	if left := size - h.Size; left != want {
		return nil, invalid("%d entries of %d values are %d bytes, and the file has %d: it is truncated or damaged", entries, g.Dimension, want, left)
	}
	return g, g.readVectors(r, entries)
}

// fromHeader returns a gallery without its vectors, and their number.
func fromHeader(h *safetensors.Header) (*Gallery, int, error) {
	t, ok := h.Tensors["embeddings"]
	if !ok || len(h.Tensors) != 1 {
		return nil, 0, invalid("it has one tensor, embeddings")
	}
	meta := h.Meta
	switch {
	case t.DType != "F32":
		return nil, 0, invalid("tensor embeddings has type %.20q, and F32 is needed", t.DType)
	case len(t.Shape) != 2:
		return nil, 0, invalid("tensor embeddings has %d dimensions, and two are needed: entries and values", len(t.Shape))
	case t.Shape[0] == 0:
		return nil, 0, invalid("it has no entries")
	case t.Shape[0] < 0 || t.Shape[0] > MaxEntries || t.Shape[1] < 1 || t.Shape[1] > MaxDimension:
		return nil, 0, invalid("tensor embeddings is %v, and at most %d entries of 1 to %d values are allowed", t.Shape, MaxEntries, MaxDimension)
	case len(t.Offsets) != 2 || t.Offsets[0] != 0 || t.Offsets[1] != 4*t.Shape[0]*t.Shape[1]:
		return nil, 0, invalid("tensor embeddings %v lies at %v", t.Shape, t.Offsets)
	}
	g := &Gallery{Dimension: int(t.Shape[1]), Model: meta["model"]}
	if err := json.Unmarshal([]byte(meta["names"]), &g.Names); err != nil {
		return nil, 0, invalid("names in its metadata is not a JSON array of texts: %v", err)
	}
	if int64(len(g.Names)) != t.Shape[0] {
		return nil, 0, invalid("%d names for %d entries", len(g.Names), t.Shape[0])
	}
	for i, name := range g.Names {
		if name == "" || len(name) > maxName || !utf8.ValidString(name) {
			return nil, 0, invalid("the name of entry %d has %d bytes, and 1 to %d are allowed", i, len(name), maxName)
		}
	}
	switch {
	case g.Model == "":
		return nil, 0, invalid("its metadata does not say which model made the embeddings: add model, the SHA-256 of the model file in lower case")
	case len(g.Model) != 64 || strings.Trim(g.Model, "0123456789abcdef") != "":
		return nil, 0, invalid("its model %.80q is not a SHA-256 in lower case", g.Model)
	}
	return g, int(t.Shape[0]), nil
}

// readVectors reads the vectors, and scales each to unit length.
func (g *Gallery) readVectors(r io.Reader, entries int) error {
	g.Vectors = make([]float32, entries*g.Dimension)
	row := make([]byte, 4*g.Dimension)
	for i := range entries {
		if _, err := io.ReadFull(r, row); err != nil {
			return err
		}
		v := g.Vectors[i*g.Dimension:][:g.Dimension]
		sum := 0.0
		for k := range v {
			v[k] = math.Float32frombits(binary.LittleEndian.Uint32(row[4*k:]))
			sum += float64(v[k]) * float64(v[k])
		}
		length := math.Sqrt(sum)
		if !(length >= MinLength && length <= MaxLength) { // NaN is neither
			return invalid("entry %d, %q, has no direction: its length is %.3g", i, g.Names[i], length)
		}
		for k := range v {
			v[k] = float32(float64(v[k]) / length)
		}
	}
	return nil
}
