package fuse

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Error is a syntax error in an expression.
type Error struct {
	Expr      int // index of the expression, from 0
	Line, Col int // from 1; columns count bytes
	Msg       string
}

func (e *Error) Error() string {
	return fmt.Sprintf("expression %d, line %d, column %d: %s", e.Expr+1, e.Line, e.Col, e.Msg)
}

const (
	maxText  = 4096 // bytes of one expression
	maxDepth = 64   // nesting of parentheses and signs
)

// parser reads one expression and appends its steps.
type parser struct {
	c     *Chain
	expr  int
	text  string
	at    int
	depth int
	x     value // value of x
}

// value is a number, or the result of a step.
type value struct {
	number float32
	step   int // index, or -1: number
}

func (p *parser) fail(at int, format string, args ...any) error {
	line := 1 + strings.Count(p.text[:at], "\n")
	return &Error{Expr: p.expr, Line: line, Col: at - strings.LastIndexByte(p.text[:at], '\n'), Msg: fmt.Sprintf(format, args...)}
}

func (p *parser) skipBlanks() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// next consumes b if it comes next and reports whether it did.
func (p *parser) next(b byte) bool {
	p.skipBlanks()
	if p.at < len(p.text) && p.text[p.at] == b {
		p.at++
		return true
	}
	return false
}

// parse parses the whole expression.
func (p *parser) parse() (value, error) {
	v, err := p.sum()
	if err != nil {
		return v, err
	}
	if p.skipBlanks(); p.at < len(p.text) {
		return v, p.fail(p.at, "unexpected %s; expected an operator or the end", p.found())
	}
	return v, nil
}

// found describes the character at the current position.
func (p *parser) found() string {
	if p.at >= len(p.text) {
		return "end"
	}
	for _, r := range p.text[p.at:] {
		return strconv.Quote(string(r))
	}
	return "end"
}

func (p *parser) sum() (value, error) {
	left, err := p.product()
	for err == nil {
		at := p.at
		switch {
		case p.next('+'):
			left, err = p.binary(at, opAdd, left, p.product)
		case p.next('-'):
			left, err = p.binary(at, opSub, left, p.product)
		default:
			return left, nil
		}
	}
	return left, err
}

func (p *parser) product() (value, error) {
	left, err := p.sign()
	for err == nil {
		at := p.at
		switch {
		case p.next('*'):
			left, err = p.binary(at, opMul, left, p.sign)
		case p.next('/'):
			left, err = p.binary(at, opDiv, left, p.sign)
		default:
			return left, nil
		}
	}
	return left, err
}

// binary parses the right operand with read and emits the operation.
func (p *parser) binary(at int, o op, left value, read func() (value, error)) (value, error) {
	right, err := read()
	if err != nil {
		return left, err
	}
	return p.emit(at, o, left, right)
}

// enterLevel counts a level of nesting.
func (p *parser) enterLevel(at int) error {
	if p.depth++; p.depth > maxDepth {
		return p.fail(at, "parentheses and signs are nested more than %d levels deep", maxDepth)
	}
	return nil
}

func (p *parser) sign() (value, error) {
	p.skipBlanks()
	at := p.at
	if !p.next('-') {
		return p.atom()
	}
	if err := p.enterLevel(at); err != nil {
		return value{}, err
	}
	defer func() { p.depth-- }()
	v, err := p.sign()
	if err != nil {
		return v, err
	}
	return p.emit(at, opNeg, v, value{step: -1})
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' || b == '_' }
func isDigit(b byte) bool  { return b >= '0' && b <= '9' }

func (p *parser) atom() (value, error) {
	p.skipBlanks()
	at := p.at
	switch {
	case p.next('('):
		if err := p.enterLevel(at); err != nil {
			return value{}, err
		}
		defer func() { p.depth-- }()
		v, err := p.sum()
		if err == nil && !p.next(')') {
			err = p.fail(p.at, "unexpected %s; expected the parenthesis that closes column %d", p.found(), at+1)
		}
		return v, err
	case at < len(p.text) && (isDigit(p.text[at]) || p.text[at] == '.'):
		return p.number()
	case at < len(p.text) && isLetter(p.text[at]):
		for p.at < len(p.text) && (isLetter(p.text[p.at]) || isDigit(p.text[p.at])) {
			p.at++
		}
		return p.name(at, p.text[at:p.at])
	}
	return value{}, p.fail(at, "unexpected %s; expected a number, a name or a parenthesis", p.found())
}

func (p *parser) number() (value, error) {
	at := p.at
	for p.at < len(p.text) && (isDigit(p.text[p.at]) || p.text[p.at] == '.') {
		p.at++
	}
	if p.at < len(p.text) && p.text[p.at]|0x20 == 'e' {
		p.at++
		if p.at < len(p.text) && (p.text[p.at] == '+' || p.text[p.at] == '-') {
			p.at++
		}
		for p.at < len(p.text) && isDigit(p.text[p.at]) {
			p.at++
		}
	}
	f, err := strconv.ParseFloat(p.text[at:p.at], 32)
	if err != nil || math.IsInf(f, 0) {
		return value{}, p.fail(at, "%q is not a float32 number", p.text[at:p.at])
	}
	return value{number: float32(f), step: -1}, nil
}

func (p *parser) name(at int, name string) (value, error) {
	if f, ok := functions[name]; ok {
		return p.call(at, name, f)
	}
	if p.skipBlanks(); p.at < len(p.text) && p.text[p.at] == '(' {
		return value{}, p.fail(at, "unknown function %q; known are %s", name, functionNames())
	}
	switch name {
	case "x":
		return p.x, nil
	case "in":
		return p.c.addLoad(p, at, 0)
	}
	for i, o := range operandNames {
		if name == o.name {
			slot, err := p.c.addOperand(p, at, i)
			if err != nil {
				return value{}, err
			}
			return p.c.addLoad(p, at, 1+slot)
		}
	}
	return value{}, p.fail(at, "unknown name %q; known are x, in, y, p and q", name)
}

func (p *parser) call(at int, name string, f function) (value, error) {
	if !p.next('(') {
		return value{}, p.fail(p.at, "unexpected %s; expected the arguments of %s", p.found(), name)
	}
	if err := p.enterLevel(at); err != nil {
		return value{}, err
	}
	defer func() { p.depth-- }()
	var args []value
	for {
		v, err := p.sum()
		if err != nil {
			return v, err
		}
		args = append(args, v)
		if p.next(')') {
			break
		}
		if !p.next(',') {
			return v, p.fail(p.at, "unexpected %s; expected a comma or the end of the arguments of %s", p.found(), name)
		}
	}
	if len(args) != f.args {
		return value{}, p.fail(at, "%s needs %d arguments, got %d", name, f.args, len(args))
	}
	if name == "clamp" { // max, then min; NaN stays NaN
		low, err := p.emit(at, opMax, args[0], args[1])
		if err != nil {
			return low, err
		}
		return p.emit(at, opMin, low, args[2])
	}
	for len(args) < 2 {
		args = append(args, value{step: -1})
	}
	return p.emit(at, f.op, args[0], args[1])
}

// emit adds a step and returns its result. It evaluates operations on numbers.
func (p *parser) emit(at int, o op, x, y value) (value, error) {
	if x.step < 0 && (y.step < 0 || !o.binary()) {
		if v, ok := evaluate(o, x.number, y.number); ok {
			return value{number: v, step: -1}, nil
		}
		if o.binary() {
			return value{}, p.fail(at, "a function of two constants; write its value instead")
		}
	}
	v, ok := p.c.addStep(step{op: o, x: x, y: y})
	if !ok {
		return v, p.fail(at, "the chain has more than %d steps", maxSteps)
	}
	return v, nil
}
