package pipeline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"unsafe"

	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/tensorrt"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	"github.com/yoctune/yoctune/schema/formats/gallery"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// matcher compares embeddings with a gallery. A vector that several entries share is compared once.
type matcher struct {
	names     []string
	entries   [][]int // of each vector, in the order of the gallery
	dimension int
	rows      int // embeddings of a frame
	top       int
	best      int // vectors that a comparison returns
	threshold float32
}

// buildMatch builds a stage that finds the entries of a gallery which are most similar to the embeddings
// of a frame.
func buildMatch(b stageBuilder) (work, error) {
	m, vectors, err := b.openMatcher()
	if err != nil {
		return nil, err
	}
	dev, err := b.core()
	if err != nil {
		return nil, err
	}
	bytes := vectorBytes(vectors)
	if err := b.account(1, int64(len(bytes))); err != nil {
		return nil, err
	}
	shelf, err := dev.Alloc(len(bytes), core.MemHost)
	if err != nil {
		return nil, err
	}
	b.p.closers = append(b.p.closers, shelf.Release)
	copy(shelf.Bytes(), bytes)
	all := make([]*comparison, b.st.workers())
	for i := range all {
		if all[i], err = b.newComparison(dev, m, shelf.All()); err != nil {
			return nil, err
		}
	}
	b.st.backend = dev.Backend()
	cpu := b.decodeFrames(func(instance int, t *frame.Tensor, into []result.Result) ([]result.Result, error) {
		c := all[instance]
		copy(c.query.Bytes(), t.Bytes())
		if err := c.list.Submit(); err != nil {
			return into, err
		}
		if err := c.stream.Wait(context.Background()); err != nil {
			return into, err
		}
		return m.describe(c.best.Bytes(), c.lengths.Bytes(), into), nil
	})
	if b.gpu == nil || !onGPU(b.s) {
		return cpu, nil
	}
	by, err := b.gpu.newBalance(b.st.workers())
	if err != nil {
		return nil, err
	}
	do, err := b.matchOnGPU(m, bytes, by)
	if err != nil {
		return nil, err
	}
	return b.gpuStage(b.k, b.s, cpu, do, by), nil
}

// openMatcher reads the gallery of a stage and compares it with the stage's input. It returns the
// distinct vectors.
func (b *stageBuilder) openMatcher() (*matcher, []float32, error) {
	p := b.s.Match
	m := &matcher{top: max(p.Top, 1), rows: 1}
	var err error
	if m.threshold, err = registry.Fraction("threshold", cmp.Or(p.Threshold, registry.MatchThreshold)); err != nil {
		return nil, nil, err
	}
	path, err := b.files.findNamed(p.Gallery)
	if err != nil {
		return nil, nil, fmt.Errorf("gallery: %w", err)
	}
	g, err := readGallery(path, p.SHA256)
	if err != nil {
		return nil, nil, err
	}
	in := b.made[0]
	if in.DType != registry.F32 {
		return nil, nil, fmt.Errorf("%w: embeddings are float32, and the input is %v", ErrPlan, in)
	}
	if len(in.Shape) > 1 {
		m.rows = int(in.Shape[0])
	}
	if m.dimension = int(in.Bytes()) / 4 / m.rows; m.dimension != g.Dimension {
		return nil, nil, fmt.Errorf("%w: an embedding has %d values (the input is %v), and those of gallery %s have %d: it was made with another model", ErrPlan, m.dimension, in.Shape, path, g.Dimension)
	}
	if err := b.compareModel(path, g.Model); err != nil {
		return nil, nil, err
	}
	m.names = g.Names
	var vectors []float32
	at := map[string]int{}
	for i := range g.Names {
		v := g.Vectors[i*g.Dimension:][:g.Dimension]
		key := string(vectorBytes(v))
		n, known := at[key]
		if !known {
			n = len(m.entries)
			at[key] = n
			m.entries = append(m.entries, nil)
			vectors = append(vectors, v...)
		}
		m.entries[n] = append(m.entries[n], i)
	}
	m.best = min(m.top, len(m.entries))
	return m, vectors, nil
}

// readGallery reads a gallery, whose digest is sum unless that is "".
func readGallery(path, sum string) (*gallery.Gallery, error) {
	f, err := infile.Open(path) // does not wait for the writer of a pipe
	if err != nil {
		return nil, fmt.Errorf("%w: gallery: %w", ErrModelFile, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w: gallery: %w", ErrModelFile, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: gallery %s is not a regular file", ErrModelFile, path)
	}
	h := sha256.New()
	g, err := gallery.Read(io.TeeReader(f, h), info.Size())
	if err != nil {
		return nil, fmt.Errorf("%w: gallery %s: %w", ErrModelFile, path, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); sum != "" && got != sum {
		return nil, fmt.Errorf("%w: the sha256 of gallery %s is %s, but the plan has %s: the file is damaged or a different gallery", ErrModelFile, path, got, sum)
	}
	return g, nil
}

// compareModel refuses a gallery that another model has made than the last one before the stage.
func (b *stageBuilder) compareModel(path, made string) error {
	stages := b.levels[b.now].stages
	k := b.k - 1
	for k >= 0 && stages[k].Model == nil {
		k--
	}
	if k < 0 {
		return nil
	}
	m := registry.Models(&stages[k])[0]
	sum := m.SHA256
	if sum == "" {
		file, err := b.files.find(m.Path, "")
		if err != nil {
			return err
		}
		if sum, err = tensorrt.Digest(file); err != nil {
			return err
		}
	}
	if sum != made {
		return fmt.Errorf("%w: gallery %s was made with the model %.12s…, and stage %s runs %.12s…: make it anew with that model", ErrPlan, filepath.Base(path), made, stages[k].ID, sum)
	}
	return nil
}

func vectorBytes(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// Sizes of the memory of a comparison, in bytes.
func (m *matcher) scoreBytes() int  { return 4 * m.rows * len(m.entries) }
func (m *matcher) lengthBytes() int { return 4 * m.rows }
func (m *matcher) bestBytes() int   { return 8 * m.rows * m.best }
func (m *matcher) queryBytes() int  { return 4 * m.rows * m.dimension }

// add adds a comparison to a list: the products of embeddings and vectors, those of each embedding with
// itself, and the best of the former.
func (m *matcher) add(l *core.List, best, lengths, scores, query, shelf core.Region) {
	rows, d := uint32(m.rows), uint32(m.dimension)
	l.Gemm(scores, query, shelf, core.Region{}, core.GemmArgs{M: rows, N: uint32(len(m.entries)), K: d, Flags: core.GemmTransB, Alpha: 1})
	l.Gemm(lengths, query, query, core.Region{}, core.GemmArgs{
		M: 1, N: 1, K: d, Flags: core.GemmTransB, Alpha: 1, Batch: rows, StrideA: uint64(d), StrideB: uint64(d), StrideC: 1,
	})
	l.TopK(best, scores, core.RowsArgs{Rows: rows, Cols: uint32(len(m.entries)), K: uint32(m.best)})
}

// noDirection is why an embedding has no match.
const noDirection = "embedding has no direction"

// describe makes results of a comparison.
func (m *matcher) describe(best, lengths []byte, into []result.Result) []result.Result {
	into = into[:0]
	number := func(b []byte) float32 { return math.Float32frombits(binary.NativeEndian.Uint32(b)) }
	for row := range m.rows {
		length := float32(math.Sqrt(float64(number(lengths[4*row:]))))
		if !(length >= gallery.MinLength && length <= gallery.MaxLength) { // NaN is neither
			into = append(into, result.Result{Kind: registry.Match.Kind, Class: -1, Text: noDirection, Row: row, Rows: m.rows})
			continue
		}
		left := m.top
		for k := range m.best {
			pair := best[8*(m.best*row+k):] // a number and its index
			score := min(max(number(pair)/length, -1), 1)
			if !(score >= m.threshold) {
				break
			}
			for _, entry := range m.entries[binary.NativeEndian.Uint32(pair[4:])] {
				if left == 0 {
					break
				}
				left--
				into = append(into, result.Result{Kind: registry.Match.Kind, Class: entry, Label: m.names[entry], Score: score, Row: row, Rows: m.rows})
			}
		}
	}
	return into
}

// comparison is the memory of an instance on the CPU.
type comparison struct {
	stream               *core.Stream
	list                 *core.List
	query, lengths, best *core.Buffer
}

func (b *stageBuilder) newComparison(dev *core.Device, m *matcher, shelf core.Region) (*comparison, error) {
	c := &comparison{}
	var scores *core.Buffer
	for _, need := range []struct {
		buffer **core.Buffer
		bytes  int
	}{{&c.query, m.queryBytes()}, {&scores, m.scoreBytes()}, {&c.lengths, m.lengthBytes()}, {&c.best, m.bestBytes()}} {
		if err := b.account(1, int64(need.bytes)); err != nil {
			return nil, err
		}
		buffer, err := dev.Alloc(need.bytes, core.MemHost)
		if err != nil {
			return nil, err
		}
		b.p.closers = append(b.p.closers, buffer.Release)
		*need.buffer = buffer
	}
	var err error
	if c.stream, err = dev.NewStream(); err != nil {
		return nil, err
	}
	b.p.closers = append(b.p.closers, c.stream.Release)
	c.list = c.stream.List()
	m.add(c.list, c.best.All(), c.lengths.All(), scores.All(), c.query.All(), shelf)
	return c, nil
}

// matchOnGPU builds the work of a match stage in the worker. The gallery stays in the device's memory from
// the warm-up on, and only the best entries come back.
func (b *stageBuilder) matchOnGPU(m *matcher, vectors []byte, by *gpuBalance) (work, error) {
	g, limit, lane := b.gpu, b.st.limit, b.gpu.lanes[b.k]
	var err error
	room := func(bytes int) (p []byte) {
		if err == nil {
			err = b.account(1, int64(bytes))
		}
		if err == nil {
			p, err = g.alloc(bytes)
		}
		return p
	}
	shelf := room(len(vectors))
	type instance struct {
		list                  *core.List
		best, lengths, scores []byte
	}
	open := func() instance {
		return instance{g.clients[0].Draft().List(), room(m.bestBytes()), room(m.lengthBytes()), room(m.scoreBytes())}
	}
	all := make([]instance, b.st.workers())
	for i := range all {
		all[i] = open()
	}
	first, query := open(), room(m.queryBytes())
	if err != nil {
		return nil, err
	}
	copy(shelf, vectors)
	m.add(first.list, g.region(first.best), g.region(first.lengths), g.resident(first.scores), g.region(query), g.region(shelf))
	for _, c := range g.clients {
		c.Warm(first.list)
	}
	return b.decodeFrames(func(number int, t *frame.Tensor, into []result.Result) ([]result.Result, error) {
		in := &all[number]
		m.add(in.list.Reset(), g.region(in.best), g.region(in.lengths), g.resident(in.scores), g.where(t), g.resident(shelf))
		if err := by.runOnGPU(number, 1, func(c *worker.Client) error {
			_, err := c.RunOn(t.On, lane+number, in.list, limit)
			return err
		}); err != nil {
			return into, err
		}
		return m.describe(in.best, in.lengths, into), nil
	}), nil
}
