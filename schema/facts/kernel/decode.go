package kernel

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// Decode reads the tree called name, or the only one if name is empty, and its
// base configuration. Data of another format, truncated or altered, gives
// [ErrFormat]; a name that is not there [ErrUnknown].
func Decode(data []byte, name string) (*Tree, []Value, error) {
	raw, err := inflate(data)
	if err != nil {
		return nil, nil, err
	}
	return decode(raw, name)
}

func inflate(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte(magic)) {
		return nil, ErrFormat
	}
	data = data[len(magic):]
	if len(data) < 8 {
		return nil, fmt.Errorf("%w: truncated", ErrFormat)
	}
	sum, size := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:])
	// Deflate cannot expand by more than about 1030.
	if size > maxRaw || int(size) > 1100*len(data) {
		return nil, fmt.Errorf("%w: length %d cannot be", ErrFormat, size)
	}
	raw := make([]byte, size)
	if _, err := io.ReadFull(flate.NewReader(bytes.NewReader(data[8:])), raw); err != nil {
		return nil, fmt.Errorf("%w: the compressed stream is damaged", ErrFormat)
	}
	if crc32.ChecksumIEEE(raw) != sum {
		return nil, fmt.Errorf("%w: checksum differs", ErrFormat)
	}
	return raw, nil
}

// decode reads what was compressed.
func decode(raw []byte, name string) (*Tree, []Value, error) {
	d := decoder{in: raw}
	t, base := d.readEntry(name)
	if d.err != nil {
		return nil, nil, d.err
	}
	if t == nil {
		return nil, nil, fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	return t, base, nil
}

type decoder struct {
	in   []byte
	off  int
	err  error
	strs []string

	// Compound expressions in the order written, as (operator, operands). An
	// operand that is itself an expression is a code as in the stream, with a
	// back reference replaced by the absolute number.
	ops []rawExpr

	// While the wanted tree is built, an operand is a string number with its
	// kind in the low bit; which names are symbols is known at the end.
	t     *Tree
	leaf  []ExprID // what a name or constant became; zero, nothing yet
	done  []ExprID // the same for compound expressions
	sizes []int32  // by ExprID: how many nodes evaluating it visits
	named []int32  // by string number: the symbol of that name, plus one
	files map[uint64]int32
}

type rawExpr struct {
	op   Op
	a, b uint64
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s at byte %d", ErrFormat, what, d.off)
		d.off = len(d.in)
	}
}

func (d *decoder) readUint() uint64 {
	// Most numbers are one or two bytes; binary.Uvarint's loop is the slow path.
	if d.off < len(d.in) && d.in[d.off] < 0x80 {
		v := d.in[d.off]
		d.off++
		return uint64(v)
	}
	v, n := binary.Uvarint(d.in[d.off:])
	if n <= 0 {
		d.fail("number expected")
		return 0
	}
	d.off += n
	return v
}

func (d *decoder) readInt() int64 {
	v, n := binary.Varint(d.in[d.off:])
	if n <= 0 {
		d.fail("number expected")
		return 0
	}
	d.off += n
	return v
}

// count reads a number of items, each of which needs at least one byte.
func (d *decoder) count() int {
	n := d.readUint()
	if n > uint64(len(d.in)-d.off) {
		d.fail("count beyond the end")
		return 0
	}
	return int(n)
}

func (d *decoder) readText() string {
	i := d.readUint()
	if i >= uint64(len(d.strs)) {
		d.fail("unknown string")
		return ""
	}
	return d.strs[i]
}

func (d *decoder) readStrings() {
	n := d.count()
	d.strs = make([]string, 0, n)
	var arena []byte
	starts := make([]int, 0, n+1)
	prev := 0
	for range n {
		keep, rest := d.readCountPair()
		if d.err != nil {
			return
		}
		if keep > len(arena)-prev {
			d.fail("shared prefix longer than the string")
			return
		}
		start := len(arena)
		if start+keep+rest > maxRaw {
			d.fail("strings too long")
			return
		}
		arena = append(arena, arena[prev:prev+keep]...)
		arena = append(arena, d.in[d.off:d.off+rest]...)
		d.off += rest
		starts = append(starts, start)
		prev = start
	}
	all := string(arena)
	starts = append(starts, len(all))
	for i := range n {
		d.strs = append(d.strs, all[starts[i]:starts[i+1]])
	}
}

func (d *decoder) readCountPair() (keep, rest int) {
	k := d.readUint()
	if k > maxRaw {
		d.fail("shared prefix too long")
		return 0, 0
	}
	return int(k), d.count()
}

// readCode reads one expression and returns its code.
func (d *decoder) readCode(depth int) uint64 {
	if depth > 10000 {
		d.fail("expression nested too deeply")
		return tagOp
	}
	c := d.readUint()
	switch c & 3 {
	case tagWord, tagText:
		if c>>2 >= uint64(len(d.strs)) {
			d.fail("unknown string")
			return tagOp
		}
		return c
	case tagBack:
		back := c >> 2
		if back >= uint64(len(d.ops)) {
			d.fail("reference before the first expression")
			return tagOp
		}
		return (uint64(len(d.ops))-1-back)<<2 | tagBack
	}
	x := rawExpr{op: Op(c >> 2)}
	switch {
	case c>>2 > uint64(GreaterEqual) || x.op == Symbol:
		d.fail("unknown operator")
		return tagOp
	case x.op == True:
		return tagOp
	case x.op == Not:
		x.a = d.readCode(depth + 1)
	case x.op <= Or:
		x.a = d.readCode(depth + 1)
		x.b = d.readCode(depth + 1)
	default:
		x.a, x.b = d.operandCode(), d.operandCode()
	}
	d.ops = append(d.ops, x)
	d.done = append(d.done, 0)
	return uint64(len(d.ops)-1)<<2 | tagBack
}

func (d *decoder) operandCode() uint64 {
	v := d.readUint()
	if v>>1 >= uint64(len(d.strs)) {
		d.fail("unknown string")
		return 0
	}
	return v
}

// A file made by hand could share an expression's halves until evaluating it
// never ends, or chain symbols until the stack does.
const (
	maxExprSize = 1 << 20
	maxSymbols  = 100_000
)

// build makes a tree's expression of a code. A reference leads backwards only,
// so the recursion ends.
func (d *decoder) build(c uint64) ExprID {
	var memo *ExprID
	switch c & 3 {
	case tagOp:
		return Always
	case tagBack:
		memo = &d.done[c>>2]
	default:
		memo = &d.leaf[(c>>2)<<1|(c&3-tagWord)]
	}
	if *memo != 0 {
		return *memo
	}
	x := Expr{Op: Symbol}
	switch c & 3 {
	case tagWord:
		x.A = int32(c >> 2 << 1)
	case tagText:
		x.A = int32(c>>2<<1 | 1)
	default:
		o := d.ops[c>>2]
		x.Op = o.op
		switch {
		case o.op == Not:
			x.A = int32(d.build(o.a))
		case o.op <= Or:
			x.A = int32(d.build(o.a))
			x.B = int32(d.build(o.b))
		default:
			x.A, x.B = int32(o.a), int32(o.b)
		}
	}
	size := int32(1)
	switch x.Op {
	case Not:
		size += d.sizes[x.A]
	case And, Or:
		size += d.sizes[x.A] + d.sizes[x.B]
	}
	if size > maxExprSize {
		d.fail("expression too large")
		return Always
	}
	*memo = ExprID(len(d.t.Exprs))
	d.t.Exprs = append(d.t.Exprs, x)
	d.sizes = append(d.sizes, size)
	return *memo
}

type kernelHead struct {
	id      Tree
	symbols []int
}

// readHeads reads what names the kernels, with the record numbers of those wanted.
func (d *decoder) readHeads(wanted func(Tree) bool) []kernelHead {
	var heads []kernelHead
	for range d.count() {
		h := kernelHead{id: Tree{Name: d.readText(), Release: d.readText(), Arch: d.readText()}}
		flags := d.readUint()
		h.id.ChoiceByOrder = flags&flagByOrder != 0
		h.id.ZeroDefaults = flags&flagZero != 0
		n := d.count()
		keep := wanted(h.id)
		if keep {
			h.symbols = make([]int, 0, n)
		}
		last := int64(-1)
		for range n {
			last += d.readInt() + 1
			if keep {
				h.symbols = append(h.symbols, int(last))
			}
		}
		heads = append(heads, h)
	}
	return heads
}

func (d *decoder) readEntry(want string) (*Tree, []Value) {
	d.readStrings()
	heads := d.readHeads(func(id Tree) bool { return want == "" || id.Name == want })
	chosen := -1
	for i := range heads {
		if want == "" || heads[i].id.Name == want {
			chosen = i
		}
	}
	if d.err != nil || chosen < 0 || want == "" && len(heads) != 1 {
		return nil, nil
	}
	h := heads[chosen]
	if len(h.symbols) > maxSymbols {
		d.fail("too many symbols")
		return nil, nil
	}
	d.t = &h.id
	d.t.Exprs = append(make([]Expr, 0, 1+2*len(h.symbols)), Expr{Op: True})
	d.sizes = append(make([]int32, 0, 1+2*len(h.symbols)), 1)
	d.leaf = make([]ExprID, 2*len(d.strs))
	d.named = make([]int32, len(d.strs))
	d.files = map[uint64]int32{}

	// Symbols are defined in the kernel's order before their records are read,
	// which come in the order of first appearance in any kernel.
	n := d.count()
	place := make([]int32, n)
	for i := range place {
		place[i] = -1
	}
	for i, r := range h.symbols {
		if r < 0 || r >= n || place[r] >= 0 {
			d.fail("symbol out of place")
			return nil, nil
		}
		place[r] = int32(i)
	}
	syms := make([]Sym, len(h.symbols))
	d.ops = make([]rawExpr, 0, 2*n)
	d.done = make([]ExprID, 0, 2*n)
	for i := range n {
		d.record(place[i], syms)
		if d.err != nil {
			return nil, nil
		}
	}
	d.t.Symbols = syms
	var base []Value
	for i := range heads {
		v := d.readGroups(i == chosen, syms)
		if i == chosen {
			base = v
		}
	}
	if d.err != nil {
		return nil, nil
	}
	d.finish()
	return d.t, base
}

// finish resolves the operands.
func (d *decoder) finish() {
	lits := make([]int32, 2*len(d.strs)) // literal, plus one
	d.t.resolve(func(r Ref) Ref {
		text := d.strs[r>>1]
		word := r&1 == 0
		if word && d.named[r>>1] > 0 {
			return Ref(d.named[r>>1] - 1)
		}
		if lits[r] == 0 {
			d.t.Literals = append(d.t.Literals, Literal{Text: text, Word: word})
			lits[r] = int32(len(d.t.Literals))
		}
		return Ref(^(lits[r] - 1))
	})
}

// record reads one record and returns its name; it is kept as syms[at] unless at
// is negative.
func (d *decoder) record(at int32, syms []Sym) string {
	keep := at >= 0
	name := d.readUint()
	if name >= uint64(len(d.strs)) {
		d.fail("unknown string")
		return ""
	}
	s := Sym{Name: d.strs[name], Type: Type(d.readUint())}
	if s.Type > String {
		d.fail("unknown type")
	}
	if keep {
		if d.named[name] != 0 {
			d.fail("symbol defined twice")
		}
		d.named[name] = at + 1
	}
	n := d.count()
	if keep {
		s.Defs = make([]Def, 0, n)
	}
	expr := func() ExprID {
		c := d.readCode(0)
		if keep && d.err == nil {
			return d.build(c)
		}
		return Always
	}
	operand := func() Ref { return Ref(d.operandCode()) }
	targets := func() []Target {
		n := d.count()
		var ts []Target
		if keep {
			ts = make([]Target, 0, n)
		}
		for range n {
			t := Target{Symbol: operand(), If: expr()}
			if keep {
				ts = append(ts, t)
			}
		}
		return ts
	}
	for range n {
		def := Def{Choice: -1, File: -1}
		flags := d.readUint()
		def.Depends = expr()
		if def.Prompt = flags&hasPrompt != 0; def.Prompt {
			def.Visible = expr()
		}
		if flags&hasSelects != 0 {
			def.Selects = targets()
		}
		if flags&hasImplies != 0 {
			def.Implies = targets()
		}
		if flags&hasDefaults != 0 {
			for range d.count() {
				x := Default{Value: expr(), If: expr()}
				if keep {
					def.Defaults = append(def.Defaults, x)
				}
			}
		}
		if flags&hasRanges != 0 {
			for range d.count() {
				x := Range{Low: operand(), High: operand(), If: expr()}
				if keep {
					def.Ranges = append(def.Ranges, x)
				}
			}
		}
		if flags&hasPosition != 0 {
			file, line := d.readUint(), d.readUint()
			if keep {
				def.File, def.Line = d.readFileID(file), int32(line)
			}
		}
		if d.err != nil {
			return ""
		}
		if keep {
			s.Defs = append(s.Defs, def)
		}
	}
	if keep {
		syms[at] = s
	}
	return s.Name
}

func (d *decoder) readFileID(str uint64) int32 {
	if str >= uint64(len(d.strs)) {
		d.fail("unknown string")
		return -1
	}
	i, ok := d.files[str]
	if !ok {
		i = int32(len(d.t.Files))
		d.files[str] = i
		d.t.Files = append(d.t.Files, d.strs[str])
	}
	return i
}

func (d *decoder) readGroups(keep bool, syms []Sym) []Value {
	for range d.count() {
		flags, typ := d.readUint(), Type(d.readUint())
		if typ > String {
			d.fail("unknown type")
		}
		dep, vis := d.readCode(0), d.readCode(0)
		var ci int32
		if keep && d.err == nil {
			ci = int32(len(d.t.Choices))
			d.t.Choices = append(d.t.Choices, Group{
				Type: typ, Prompt: flags&choicePrompt != 0, Optional: flags&choiceOptional != 0,
				Depends: d.build(dep), Visible: d.build(vis),
			})
		}
		for range d.count() {
			v, cond := d.operandCode(), d.readCode(0)
			if keep && d.err == nil {
				c := &d.t.Choices[ci]
				c.Defaults = append(c.Defaults, Target{Ref(v), d.build(cond)})
			}
		}
		for range d.count() {
			m, di := d.readUint(), d.readUint()
			if !keep || d.err != nil {
				continue
			}
			if m >= uint64(len(syms)) || di >= uint64(len(syms[m].Defs)) {
				d.fail("choice member out of range")
				return nil
			}
			c := &d.t.Choices[ci]
			if k := len(c.Members); k == 0 || c.Members[k-1] != int32(m) {
				c.Members = append(c.Members, int32(m))
			}
			syms[m].Defs[di].Choice = ci
		}
	}
	n := d.count()
	var base []Value
	for range n {
		v := Value{d.readText(), d.readText()}
		if keep {
			base = append(base, v)
		}
	}
	return base
}
