// Package nametable reads and writes compressed tables of names with facts about each.
package nametable

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
)

// Table is a list of lines, sorted by the name that each begins with. It is compressed in
// blocks, so that a look-up inflates one of them. Layout, numbers as unsigned varints:
//
//	magic
//	blocks    count, then each as length of the first name, first name, compressed size
//	data      the blocks, in DEFLATE
type Table struct {
	first []string
	block [][]byte

	mu   sync.Mutex
	text map[int]string // inflated blocks
}

const (
	magic     = "yoctune-names/1\n"
	blockSize = 16 << 10
)

// Encode writes lines, which begin with a name and a tab, as a table.
func Encode(lines []string) ([]byte, error) {
	if !slices.IsSorted(lines) {
		return nil, errors.New("the lines are not sorted")
	}
	var blocks []string
	for _, l := range lines {
		if n := len(blocks); n == 0 || len(blocks[n-1])+len(l) > blockSize {
			blocks = append(blocks, "")
		}
		blocks[len(blocks)-1] += l + "\n"
	}
	head := binary.AppendUvarint([]byte(magic), uint64(len(blocks)))
	var data bytes.Buffer
	for _, b := range blocks {
		at := data.Len()
		z, err := flate.NewWriter(&data, flate.BestCompression)
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(z, b); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(b, "\t")
		head = append(binary.AppendUvarint(head, uint64(len(name))), name...)
		head = binary.AppendUvarint(head, uint64(data.Len()-at))
	}
	return append(head, data.Bytes()...), nil
}

var errTable = errors.New("not a table of names of this version")

// Decode reads the layout of a table. It inflates no block.
func Decode(data []byte) (*Table, error) {
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	number := func() int {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(data)) {
			ok = false
			return 0
		}
		rest = rest[size:]
		return int(n)
	}
	t := &Table{}
	var sizes []int
	for range number() {
		n := number()
		if !ok || n > len(rest) {
			return nil, errTable
		}
		t.first = append(t.first, string(rest[:n]))
		rest = rest[n:]
		sizes = append(sizes, number())
	}
	for _, n := range sizes {
		if !ok || n > len(rest) {
			return nil, errTable
		}
		t.block = append(t.block, rest[:n])
		rest = rest[n:]
	}
	if !ok || len(rest) > 0 {
		return nil, errTable
	}
	return t, nil
}

// Open reads a table that is part of the program. It returns an empty one where the data are
// damaged: [Table.Check] is for the test that reads every block.
func Open(data []byte) *Table {
	t, err := Decode(data)
	if err != nil {
		return &Table{}
	}
	return t
}

// Check inflates every block.
func (t *Table) Check() error {
	for i := range t.block {
		if _, err := t.inflate(i); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) inflate(i int) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text, ok := t.text[i]; ok {
		return text, nil
	}
	var out strings.Builder
	_, err := io.Copy(&out, io.LimitReader(flate.NewReader(bytes.NewReader(t.block[i])), 16*blockSize))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errTable, err)
	}
	if t.text == nil {
		t.text = map[int]string{}
	}
	t.text[i] = out.String()
	return t.text[i], nil
}

// Find returns what follows the name in its line.
func (t *Table) Find(name string) (string, bool) {
	i, exact := slices.BinarySearch(t.first, name)
	if !exact {
		i--
	}
	if i < 0 {
		return "", false
	}
	text, err := t.inflate(i)
	if err != nil {
		return "", false // a test reads every block
	}
	rest, ok := strings.CutPrefix(text, name+"\t")
	if !ok {
		_, rest, ok = strings.Cut(text, "\n"+name+"\t")
	}
	rest, _, _ = strings.Cut(rest, "\n")
	return rest, ok
}

// All yields every name with what follows it.
func (t *Table) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i := range t.block {
			text, err := t.inflate(i)
			if err != nil {
				return
			}
			for line := range strings.Lines(text) {
				name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
				if !yield(name, rest) {
					return
				}
			}
		}
	}
}
