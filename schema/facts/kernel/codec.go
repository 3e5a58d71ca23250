package kernel

import (
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The compact form: several trees in one compressed stream, in which a symbol
// that is the same in two kernels is written once. Only the wanted tree is
// built. Layout, all numbers unsigned varints after the magic:
//
//	strings   count, then each as (bytes shared with the previous, rest)
//	kernels   count, then each as name, release, arch, flags, record numbers
//	records   count, then each as name, type, definitions
//	groups    for each kernel its choices and its base configuration
//
// Expressions are in prefix form; a compound one that was written before is a
// reference to its number.

// ErrFormat is returned for data that is not a tree of this version.
var ErrFormat = errors.New("not a kernel facts file of this version")

const magic = "yoctune-kconfig/1\n"

// maxRaw bounds what a file may expand to; the seven embedded trees need 3 MB.
const maxRaw = 64 << 20

// Entry is a tree with the configuration it starts from.
type Entry struct {
	Tree *Tree
	Base []Value
}

// Expression tags, in the low two bits of the first number.
const (
	tagOp   = iota // the rest is the operator; Always is tagOp with True
	tagWord        // the rest is a string: a name
	tagText        // the rest is a string: a constant
	tagBack        // the rest is how many compound expressions ago
)

const (
	hasPrompt = 1 << iota
	hasSelects
	hasImplies
	hasDefaults
	hasRanges
	hasPosition
)

const (
	flagByOrder = 1 << iota
	flagZero
)

const (
	choicePrompt = 1 << iota
	choiceOptional
)

// Encode writes entries in the compact form.
func Encode(w io.Writer, entries ...Entry) error {
	e := newEncoder()
	for _, en := range entries {
		e.add(en)
	}
	if _, err := io.WriteString(w, magic); err != nil {
		return err
	}
	raw := e.bytes()
	head := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(raw))
	if _, err := w.Write(binary.LittleEndian.AppendUint32(head, uint32(len(raw)))); err != nil {
		return err
	}
	z, err := flate.NewWriter(w, flate.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(raw); err != nil {
		return err
	}
	return z.Close()
}

type encoder struct {
	strs    []string
	strID   map[string]uint64
	exprs   map[gexpr]int32 // the expressions of all trees, shared
	nodes   []gexpr
	known   map[string]int // a record's content, to its number
	records []symRecord
	kernels []kernelRecord
}

type kernelRecord struct {
	name, release, arch uint64
	flags               uint64
	symbols             []int // record numbers
	choices             []choiceRecord
	base                [][2]uint64
}

type choiceRecord struct {
	flags            uint64
	typ              Type
	depends, visible int32
	defaults         []gpair
	members          [][2]int // symbol of the kernel, which of its definitions
}

// gexpr is an expression over strings instead of a tree's symbols.
type gexpr struct {
	op   Op
	a, b int64
}

type symRecord struct {
	name uint64
	typ  Type
	defs []gdef
}

type gdef struct {
	flags            uint64
	depends, visible int32
	selects, implies []gpair
	defaults         []gpair
	ranges           []grange
	file, line       uint64
}

type gpair struct {
	what int64
	cond int32
}

type grange struct {
	lo, hi int64
	cond   int32
}

func newEncoder() *encoder {
	e := &encoder{strID: map[string]uint64{}, exprs: map[gexpr]int32{}, known: map[string]int{}}
	e.nodes = append(e.nodes, gexpr{op: True})
	e.exprs[gexpr{op: True}] = 0
	return e
}

func (e *encoder) str(s string) uint64 {
	id, ok := e.strID[s]
	if !ok {
		id = uint64(len(e.strs))
		e.strID[s] = id
		e.strs = append(e.strs, s)
	}
	return id
}

// operand is a string number with its kind in the low bit.
func (e *encoder) operand(t *Tree, r Ref) int64 {
	if r.IsSymbol() {
		return int64(e.str(t.Symbols[r].Name)) << 1
	}
	l := t.Literals[^r]
	if l.Word {
		return int64(e.str(l.Text)) << 1
	}
	return int64(e.str(l.Text))<<1 | 1
}

func (e *encoder) add(en Entry) {
	t := en.Tree
	shared := make([]int32, len(t.Exprs))
	for i, x := range t.Exprs {
		g := gexpr{op: x.Op}
		switch x.Op {
		case True:
		case Symbol:
			g.a = e.operand(t, Ref(x.A))
		case Not:
			g.a = int64(shared[x.A])
		case And, Or:
			g.a, g.b = int64(shared[x.A]), int64(shared[x.B])
		default:
			g.a, g.b = e.operand(t, Ref(x.A)), e.operand(t, Ref(x.B))
		}
		id, ok := e.exprs[g]
		if !ok {
			id = int32(len(e.nodes))
			e.exprs[g] = id
			e.nodes = append(e.nodes, g)
		}
		shared[i] = id
	}

	k := kernelRecord{name: e.str(t.Name), release: e.str(t.Release), arch: e.str(t.Arch)}
	if t.ChoiceByOrder {
		k.flags |= flagByOrder
	}
	if t.ZeroDefaults {
		k.flags |= flagZero
	}
	for i := range t.Symbols {
		k.symbols = append(k.symbols, e.record(t, &t.Symbols[i], shared))
	}
	for ci := range t.Choices {
		c := &t.Choices[ci]
		g := choiceRecord{typ: c.Type, depends: shared[c.Depends], visible: shared[c.Visible]}
		if c.Prompt {
			g.flags |= choicePrompt
		}
		if c.Optional {
			g.flags |= choiceOptional
		}
		for _, d := range c.Defaults {
			g.defaults = append(g.defaults, gpair{e.operand(t, d.Symbol), shared[d.If]})
		}
		for _, m := range c.Members {
			for di, d := range t.Symbols[m].Defs {
				if d.Choice == int32(ci) {
					g.members = append(g.members, [2]int{int(m), di})
				}
			}
		}
		k.choices = append(k.choices, g)
	}
	for _, v := range en.Base {
		k.base = append(k.base, [2]uint64{e.str(v.Name), e.str(v.Value)})
	}
	e.kernels = append(e.kernels, k)
}

func (e *encoder) record(t *Tree, s *Sym, shared []int32) int {
	rec := symRecord{name: e.str(s.Name), typ: s.Type}
	pairs := func(ts []Target) (out []gpair) {
		for _, x := range ts {
			out = append(out, gpair{e.operand(t, x.Symbol), shared[x.If]})
		}
		return out
	}
	for i := range s.Defs {
		d := &s.Defs[i]
		g := gdef{depends: shared[d.Depends], visible: shared[d.Visible]}
		if d.Prompt {
			g.flags |= hasPrompt
		}
		if g.selects = pairs(d.Selects); g.selects != nil {
			g.flags |= hasSelects
		}
		if g.implies = pairs(d.Implies); g.implies != nil {
			g.flags |= hasImplies
		}
		for _, x := range d.Defaults {
			g.defaults = append(g.defaults, gpair{int64(shared[x.Value]), shared[x.If]})
			g.flags |= hasDefaults
		}
		for _, x := range d.Ranges {
			g.ranges = append(g.ranges, grange{e.operand(t, x.Low), e.operand(t, x.High), shared[x.If]})
			g.flags |= hasRanges
		}
		if d.File >= 0 {
			g.flags |= hasPosition
			g.file, g.line = e.str(t.Files[d.File]), uint64(d.Line)
		}
		rec.defs = append(rec.defs, g)
	}
	key := fmt.Sprint(rec)
	n, ok := e.known[key]
	if !ok {
		n = len(e.records)
		e.known[key] = n
		e.records = append(e.records, rec)
	}
	return n
}

func (e *encoder) bytes() []byte {
	var out []byte
	put := func(v uint64) { out = binary.AppendUvarint(out, v) }

	number := make([]uint64, len(e.nodes)) // of compound expressions, from 1
	var written uint64
	var expr func(id int32)
	expr = func(id int32) {
		n := e.nodes[id]
		switch {
		case n.op == True:
			put(tagOp)
			return
		case n.op == Symbol && n.a&1 == 0:
			put(uint64(n.a>>1)<<2 | tagWord)
			return
		case n.op == Symbol:
			put(uint64(n.a>>1)<<2 | tagText)
			return
		case number[id] != 0:
			put((written-number[id])<<2 | tagBack)
			return
		}
		put(uint64(n.op)<<2 + tagOp)
		switch n.op {
		case Not:
			expr(int32(n.a))
		case And, Or:
			expr(int32(n.a))
			expr(int32(n.b))
		default:
			put(uint64(n.a))
			put(uint64(n.b))
		}
		written++
		number[id] = written
	}
	pairs := func(ps []gpair) {
		put(uint64(len(ps)))
		for _, p := range ps {
			put(uint64(p.what))
			expr(p.cond)
		}
	}

	put(uint64(len(e.strs)))
	prev := ""
	for _, s := range e.strs {
		n := 0
		for n < len(s) && n < len(prev) && s[n] == prev[n] {
			n++
		}
		put(uint64(n))
		put(uint64(len(s) - n))
		out = append(out, s[n:]...)
		prev = s
	}

	put(uint64(len(e.kernels)))
	for _, k := range e.kernels {
		put(k.name)
		put(k.release)
		put(k.arch)
		put(k.flags)
		put(uint64(len(k.symbols)))
		last := -1
		for _, n := range k.symbols {
			out = binary.AppendVarint(out, int64(n-last-1))
			last = n
		}
	}

	put(uint64(len(e.records)))
	for _, r := range e.records {
		put(r.name)
		put(uint64(r.typ))
		put(uint64(len(r.defs)))
		for _, d := range r.defs {
			put(d.flags)
			expr(d.depends)
			if d.flags&hasPrompt != 0 {
				expr(d.visible)
			}
			if d.flags&hasSelects != 0 {
				pairs(d.selects)
			}
			if d.flags&hasImplies != 0 {
				pairs(d.implies)
			}
			if d.flags&hasDefaults != 0 {
				put(uint64(len(d.defaults)))
				for _, p := range d.defaults {
					expr(int32(p.what))
					expr(p.cond)
				}
			}
			if d.flags&hasRanges != 0 {
				put(uint64(len(d.ranges)))
				for _, p := range d.ranges {
					put(uint64(p.lo))
					put(uint64(p.hi))
					expr(p.cond)
				}
			}
			if d.flags&hasPosition != 0 {
				put(d.file)
				put(d.line)
			}
		}
	}

	for _, k := range e.kernels {
		put(uint64(len(k.choices)))
		for _, c := range k.choices {
			put(c.flags)
			put(uint64(c.typ))
			expr(c.depends)
			expr(c.visible)
			pairs(c.defaults)
			put(uint64(len(c.members)))
			for _, m := range c.members {
				put(uint64(m[0]))
				put(uint64(m[1]))
			}
		}
		put(uint64(len(k.base)))
		for _, v := range k.base {
			put(v[0])
			put(v[1])
		}
	}
	return out
}
