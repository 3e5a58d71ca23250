// Package fuse makes one kernel of a list of expressions on the elements of a tensor,
// so that memory is read and written once however many there are:
//
//	fuse.Parse(fuse.F32, fuse.F16, "(x - p) * q", "silu(x)", "clamp(x, -6, 6)")
//
// In each expression x is the result of the one before, in the first the element; in
// is always the element. y is the same element of a second tensor, p and q are numbers
// of the element's channel; a chain has at most two of y, p and q. There are numbers,
// + - * /, brackets, and the functions
//
//	abs sqrt exp log sigmoid tanh relu gelu silu round
//	min(a, b) max(a, b) clamp(a, low, high) leaky(a, slope)
//	f16 bf16 i8 u8                  through that type and back: rounded, saturated
//
// All is float32, each operation rounded once. NaN stays NaN, but in i8 and u8, which
// make 0 of it.
package fuse

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Type is the type of a tensor's elements, numbered as in the ABI.
type Type uint8

const (
	F32 Type = iota
	F16
	BF16
	I8
	U8
)

// Operand is what a chain takes beside its tensor.
type Operand struct {
	Name    string // "y", "p" or "q"
	Channel bool   // a float32 a channel; else an element of the source's type for each of it
}

var operandNames = [...]struct { // not written to
	name    string
	channel bool
}{{"y", false}, {"p", true}, {"q", true}}

// Limits of yt_chain.h.
const (
	maxSteps    = 256
	maxRows     = 16
	maxOperands = 2
	number      = 255 // instead of a row
)

type op uint8

// As yt_chain.h numbers them.
const (
	opLoad op = iota
	opAdd
	opSub
	opMul
	opDiv
	opMin
	opMax
	opLeaky
	opNeg
	opAbs
	opSqrt
	opExp
	opLog
	opSigmoid
	opTanh
	opGelu
	opSilu
	opRelu
	opRound
	opF16
	opBF16
	opI8
	opU8
)

func (o op) two() bool { return o >= opAdd && o <= opLeaky }

type function struct {
	op   op
	args int
}

var functions = map[string]function{ // not written to
	"abs": {opAbs, 1}, "sqrt": {opSqrt, 1}, "exp": {opExp, 1}, "log": {opLog, 1}, "sigmoid": {opSigmoid, 1}, "tanh": {opTanh, 1},
	"gelu": {opGelu, 1}, "silu": {opSilu, 1}, "relu": {opRelu, 1}, "round": {opRound, 1}, "f16": {opF16, 1}, "bf16": {opBF16, 1},
	"i8": {opI8, 1}, "u8": {opU8, 1}, "min": {opMin, 2}, "max": {opMax, 2}, "leaky": {opLeaky, 2}, "clamp": {opMax, 3},
}

func functionNames() string {
	var names []string
	for name := range functions {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// step is one operation on the results of earlier steps, or on numbers. Of a load, x.step
// is the operand.
type step struct {
	op   op
	x, y value
}

// Chain is what a list of expressions computes. It does not change.
type Chain struct {
	in, out  Type
	operands []int // indices of operandNames, in the order of their first use
	steps    []step
	known    map[stepKey]int
	result   int
}

// stepKey tells steps apart to the bit: 0 is not -0.
type stepKey struct {
	op               op
	x, y             int
	xNumber, yNumber uint32
}

// Parse reads a list of expressions on tensors of type in (F32, F16 or BF16), whose
// result is stored as out. A mistake is an *Error.
func Parse(in, out Type, exprs ...string) (*Chain, error) {
	if in > BF16 || out > U8 {
		return nil, fmt.Errorf("chain from type %d to %d: from F32, F16 or BF16 to any but I32", in, out)
	}
	c := &Chain{in: in, out: out, known: map[stepKey]int{}}
	if len(exprs) == 0 {
		return nil, &Error{Line: 1, Col: 1, Msg: "a chain needs an expression"}
	}
	first := &parser{c: c}
	x, err := c.load(first, 0, 0)
	if err != nil {
		return nil, err
	}
	for i, text := range exprs {
		p := &parser{c: c, expr: i, text: text, x: x}
		if len(text) > maxText {
			return nil, p.fail(0, "the expression has %d bytes; at most %d", len(text), maxText)
		}
		if x, err = p.whole(); err != nil {
			return nil, err
		}
	}
	if x.step < 0 {
		return nil, &Error{Expr: len(exprs) - 1, Line: 1, Col: 1, Msg: fmt.Sprintf("the result is %v for every element: fill the tensor instead", x.number)}
	}
	c.result = x.step
	c.drop()
	if _, err := c.rows(); err != nil {
		return nil, &Error{Expr: len(exprs) - 1, Line: 1, Col: 1, Msg: err.Error()}
	}
	return c, nil
}

// In and Out are the types of the tensors, Operands what else a launch takes.
func (c *Chain) In() Type  { return c.in }
func (c *Chain) Out() Type { return c.out }

// Operands returns what a launch takes beside source and destination, in its order.
func (c *Chain) Operands() []Operand {
	var all []Operand
	for _, i := range c.operands {
		all = append(all, Operand{Name: operandNames[i].name, Channel: operandNames[i].channel})
	}
	return all
}

// operand returns the place of operand i of operandNames, which is used now.
func (c *Chain) operand(p *parser, at, i int) (int, error) {
	if slot := slices.Index(c.operands, i); slot >= 0 {
		return slot, nil
	}
	if len(c.operands) == maxOperands {
		return 0, p.fail(at, "a third of y, p and q: a chain has at most two")
	}
	c.operands = append(c.operands, i)
	return len(c.operands) - 1, nil
}

func (c *Chain) load(p *parser, at, operand int) (value, error) {
	v, ok := c.add(step{op: opLoad, x: value{step: operand}, y: value{step: -1}})
	if !ok {
		return v, p.fail(at, "the chain has more than %d steps", maxSteps)
	}
	return v, nil
}

func (c *Chain) add(s step) (value, bool) {
	key := stepKey{s.op, s.x.step, s.y.step, math.Float32bits(s.x.number), math.Float32bits(s.y.number)}
	if i, ok := c.known[key]; ok {
		return value{step: i}, true
	}
	if len(c.steps) == maxSteps {
		return value{step: -1}, false
	}
	c.steps = append(c.steps, s)
	c.known[key] = len(c.steps) - 1
	return value{step: len(c.steps) - 1}, true
}

// drop removes steps that the result does not need. Operands stay, also those that
// nothing needs: the launch is what the text says.
func (c *Chain) drop() {
	need := make([]bool, len(c.steps))
	need[c.result] = true
	for i := len(c.steps) - 1; i >= 0; i-- {
		if s := c.steps[i]; need[i] && s.op != opLoad {
			for _, v := range []value{s.x, s.y} {
				if v.step >= 0 {
					need[v.step] = true
				}
			}
		}
	}
	to := make([]int, len(c.steps))
	var kept []step
	for i, s := range c.steps {
		if !need[i] {
			continue
		}
		if s.op != opLoad {
			for _, v := range []*value{&s.x, &s.y} {
				if v.step >= 0 {
					v.step = to[v.step]
				}
			}
		}
		to[i] = len(kept)
		kept = append(kept, s)
	}
	c.steps, c.result, c.known = kept, to[c.result], nil
}

// evaluate is an operation on numbers, where Go's arithmetic is that of the kernels; ok
// is false for the others.
func evaluate(o op, x, y float32) (v float32, ok bool) {
	switch o {
	case opAdd:
		return x + y, true
	case opSub:
		return x - y, true
	case opMul:
		return x * y, true
	case opDiv:
		return x / y, true
	case opNeg:
		return -x, true
	}
	return 0, false
}

// rows gives each step's result a row, which is free again after its last use.
func (c *Chain) rows() ([]uint8, error) {
	last := make([]int, len(c.steps))
	for i, s := range c.steps {
		last[i] = max(last[i], i)
		if s.op == opLoad {
			continue
		}
		for _, v := range []value{s.x, s.y} {
			if v.step >= 0 {
				last[v.step] = i
			}
		}
	}
	last[c.result] = len(c.steps)
	row := make([]uint8, len(c.steps))
	var until [maxRows]int // the last use of what is in a row
	for i := range c.steps {
		free := slices.IndexFunc(until[:], func(end int) bool { return end <= i })
		if free < 0 {
			return nil, fmt.Errorf("more than %d values are needed at one time", maxRows)
		}
		row[i], until[free] = uint8(free), last[i]
	}
	return row, nil
}

// Image is the chain as yt_chain.h has it, for the CPU backend.
func (c *Chain) Image() []byte {
	row, err := c.rows()
	if err != nil {
		return nil // Parse has found otherwise
	}
	const magic = 0x31435459
	b := binary.NativeEndian.AppendUint32(nil, magic)
	b = binary.NativeEndian.AppendUint16(b, uint16(len(c.steps)))
	kind := [maxOperands]byte{}
	for slot, i := range c.operands {
		kind[slot] = 1
		if operandNames[i].channel {
			kind[slot] = 2
		}
	}
	b = append(b, byte(c.in), byte(c.out), byte(len(c.operands)), kind[0], kind[1], row[c.result])
	for i, s := range c.steps {
		place := func(v value) byte {
			if v.step < 0 {
				return number
			}
			return row[v.step]
		}
		n := s.x.number
		if s.x.step >= 0 {
			n = s.y.number
		}
		x, y := byte(s.x.step), byte(number)
		if s.op != opLoad {
			x, y = place(s.x), place(s.y)
		}
		b = append(b, byte(s.op), row[i], x, y)
		b = binary.NativeEndian.AppendUint32(b, math.Float32bits(n))
	}
	return b
}
