// Package fuse compiles a list of element-wise expressions to one kernel, which reads and
// writes memory once:
//
//	fuse.Parse(fuse.F32, fuse.F16, "(x - p) * q", "silu(x)", "clamp(x, -6, 6)")
//
// In the first expression x is the element of the tensor, in the others the result of the
// previous expression. in is always the element. y is the element of a second tensor at the
// same index, p and q are numbers of the element's channel; a chain uses at most two of y,
// p and q. Expressions have the syntax of Go. They consist of these names, numbers, + - * /,
// parentheses and
//
//	abs sqrt exp log sigmoid tanh relu gelu silu round
//	min(a, b) max(a, b) clamp(a, low, high) leaky(a, slope)
//	f16 bf16 i8 u8                  convert to that type and back: rounded, saturated
//
// All operations are in float32 and round once. NaN stays NaN, except that i8 and u8
// convert it to 0.
package fuse

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Type is the element type of a tensor, numbered as in the ABI.
type Type uint8

const (
	F32 Type = iota
	F16
	BF16
	I8
	U8
)

// Operand is an input of a chain other than its source.
type Operand struct {
	Name    string // "y", "p" or "q"
	Channel bool   // one float32 per channel; otherwise a tensor like the source
}

var operandNames = [...]struct { // read-only
	name    string
	channel bool
}{{"y", false}, {"p", true}, {"q", true}}

// Limits of yt_chain.h.
const (
	maxSteps    = 256
	maxRows     = 16
	maxOperands = 2
	number      = 255 // marks a number in place of a row
)

type op uint8

// Operations, numbered as in yt_chain.h.
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

// binary reports whether the operation has two operands.
func (o op) binary() bool { return o >= opAdd && o <= opLeaky }

type function struct {
	op   op
	args int
}

var functions = map[string]function{ // read-only
	"abs": {opAbs, 1}, "sqrt": {opSqrt, 1}, "exp": {opExp, 1}, "log": {opLog, 1}, "sigmoid": {opSigmoid, 1}, "tanh": {opTanh, 1},
	"gelu": {opGelu, 1}, "silu": {opSilu, 1}, "relu": {opRelu, 1}, "round": {opRound, 1}, "f16": {opF16, 1}, "bf16": {opBF16, 1},
	"i8": {opI8, 1}, "u8": {opU8, 1}, "min": {opMin, 2}, "max": {opMax, 2}, "leaky": {opLeaky, 2}, "clamp": {opMax, 3},
}

// step is one operation on numbers or on the results of earlier steps. For a load, x.step
// is the index of the operand.
type step struct {
	op   op
	x, y value
}

// Chain is a parsed list of expressions. It is immutable.
type Chain struct {
	in, out  Type
	operands []int // indices of operandNames, in the order of their first use
	steps    []step
	written  []step   // those of the text, before unused ones were removed
	demands  []demand // on values of written
	known    map[stepKey]int
	result   int
}

// stepKey identifies a step. Numbers are compared by their bits: 0 differs from -0.
type stepKey struct {
	op               op
	x, y             int
	xNumber, yNumber uint32
}

// Parse parses a list of expressions. The source has type in (F32, F16 or BF16), the result
// is stored as type out. Syntax errors are of type *Error.
func Parse(in, out Type, exprs ...string) (*Chain, error) {
	if in > BF16 || out > U8 {
		return nil, fmt.Errorf("unsupported chain from type %d to type %d; use F32, F16 or BF16, and any output but I32", in, out)
	}
	c := &Chain{in: in, out: out, known: map[stepKey]int{}}
	if len(exprs) == 0 {
		return nil, &Error{Line: 1, Col: 1, Msg: "the chain has no expressions"}
	}
	x, _ := c.addStep(step{op: opLoad, x: value{step: 0}, y: value{step: -1}}) // the source
	for i, text := range exprs {
		var err error
		if x, err = (&expression{c: c, index: i, text: text, x: x}).translate(); err != nil {
			return nil, err
		}
	}
	if x.step < 0 {
		return nil, &Error{Expr: len(exprs) - 1, Line: 1, Col: 1, Msg: fmt.Sprintf("the result is the constant %v; fill the tensor instead", x.number)}
	}
	c.result = x.step
	c.written = slices.Clone(c.steps)
	c.removeUnusedSteps()
	if _, err := c.assignRows(); err != nil {
		return nil, &Error{Expr: len(exprs) - 1, Line: 1, Col: 1, Msg: err.Error()}
	}
	if err := c.checkDemands(nil, ""); err != nil {
		return nil, err
	}
	return c, nil
}

// In returns the element type of the source.
func (c *Chain) In() Type { return c.in }

// Out returns the element type of the destination.
func (c *Chain) Out() Type { return c.out }

// Operands returns the inputs of a launch after destination and source, in order.
func (c *Chain) Operands() []Operand {
	var all []Operand
	for _, i := range c.operands {
		all = append(all, Operand{Name: operandNames[i].name, Channel: operandNames[i].channel})
	}
	return all
}

// addOperand returns the slot of operand i of operandNames, adding it if necessary. ok is false
// if both slots are in use.
func (c *Chain) addOperand(i int) (slot int, ok bool) {
	if slot := slices.Index(c.operands, i); slot >= 0 {
		return slot, true
	}
	if len(c.operands) == maxOperands {
		return 0, false
	}
	c.operands = append(c.operands, i)
	return len(c.operands) - 1, true
}

// addStep adds a step, or returns the identical one that exists. ok is false if the chain
// is full.
func (c *Chain) addStep(s step) (value, bool) {
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

// removeUnusedSteps removes the steps that the result does not need. It keeps all operands,
// so that the arguments of a launch depend on the text only.
func (c *Chain) removeUnusedSteps() {
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

// evaluate computes an operation on numbers if Go's arithmetic equals that of the kernels;
// otherwise ok is false.
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

// assignRows assigns each result a row, which is reused after the last use of the result.
func (c *Chain) assignRows() ([]uint8, error) {
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
	var until [maxRows]int // last use of the value in each row
	for i := range c.steps {
		free := slices.IndexFunc(until[:], func(end int) bool { return end <= i })
		if free < 0 {
			return nil, fmt.Errorf("more than %d intermediate values are needed at one time", maxRows)
		}
		row[i], until[free] = uint8(free), last[i]
	}
	return row, nil
}

// Image returns the chain in the format of yt_chain.h, for the CPU backend.
func (c *Chain) Image() []byte {
	row, err := c.assignRows()
	if err != nil {
		return nil // cannot happen: Parse checks it
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
