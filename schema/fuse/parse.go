package fuse

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"math"
	"slices"
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
	maxDepth = 64   // nesting of parentheses, signs and calls
)

// expression appends the steps of one expression to its chain.
type expression struct {
	c     *Chain
	index int
	text  string
	depth int
	x     value // value of x
}

// value is a number, or the result of a step.
type value struct {
	number float32
	step   int // index, or -1: number
}

// fail returns an error at a position, which is 1 + the offset in bytes.
func (e *expression) fail(at token.Pos, format string, args ...any) error {
	err := e.position(at)
	err.Msg = fmt.Sprintf(format, args...)
	return &err
}

func (e *expression) position(at token.Pos) Error {
	before := e.text[:min(int(at)-1, len(e.text))]
	return Error{Expr: e.index, Line: 1 + strings.Count(before, "\n"), Col: len(before) - strings.LastIndexByte(before, '\n')}
}

// translate parses the text and returns its value. Its syntax is that of Go, except that a line
// break does not end an expression.
func (e *expression) translate() (value, error) {
	if len(e.text) > maxText {
		return value{}, e.fail(1, "the expression has %d bytes; at most %d are allowed", len(e.text), maxText)
	}
	for _, mark := range []string{"//", "/*"} {
		if i := strings.Index(e.text, mark); i >= 0 {
			return value{}, e.fail(token.Pos(1+i), "an expression has no comments: remove %s", mark)
		}
	}
	tree, err := parser.ParseExpr(strings.ReplaceAll(e.text, "\n", " "))
	if all := (scanner.ErrorList{}); errors.As(err, &all) {
		return value{}, e.fail(token.Pos(1+all[0].Pos.Offset), "%s", all[0].Msg)
	}
	return e.node(tree)
}

func (e *expression) node(n ast.Expr) (value, error) {
	switch n := n.(type) {
	case *ast.BasicLit:
		// Go also has digits in other bases and with separators.
		if n.Kind == token.INT || n.Kind == token.FLOAT {
			octal := len(n.Value) > 1 && n.Value[0] == '0' && n.Kind == token.INT
			if octal || strings.Trim(n.Value, "0123456789.eE+-") != "" || strings.Contains(n.Value, "_") {
				return value{}, e.fail(n.Pos(), "%s is not a decimal number; write digits only, such as 1000, 0.5 or 1e-3", n.Value)
			}
		}
		f, err := strconv.ParseFloat(n.Value, 32)
		if err != nil || math.IsInf(f, 0) {
			return value{}, e.fail(n.Pos(), "%q is not a float32 number", n.Value)
		}
		return value{number: float32(f), step: -1}, nil
	case *ast.Ident:
		return e.name(n)
	case *ast.BinaryExpr:
		return e.binary(n)
	}
	if e.depth++; e.depth > maxDepth {
		return value{}, e.fail(n.Pos(), "parentheses, signs and calls are nested more than %d levels deep", maxDepth)
	}
	defer func() { e.depth-- }()
	switch n := n.(type) {
	case *ast.ParenExpr:
		return e.node(n.X)
	case *ast.UnaryExpr:
		v, err := e.node(n.X)
		if err == nil && n.Op != token.SUB {
			err = e.fail(n.OpPos, "unsupported sign %s; use -", n.Op)
		}
		if err != nil {
			return v, err
		}
		return e.emit(n.OpPos, opNeg, v, value{step: -1})
	case *ast.CallExpr:
		return e.call(n)
	}
	return value{}, e.fail(n.Pos(), "unsupported syntax; use numbers, names, functions, parentheses and + - * /")
}

func (e *expression) binary(n *ast.BinaryExpr) (value, error) {
	o, ok := map[token.Token]op{token.ADD: opAdd, token.SUB: opSub, token.MUL: opMul, token.QUO: opDiv}[n.Op]
	if !ok {
		return value{}, e.fail(n.OpPos, "unsupported operator %s; use one of + - * /", n.Op)
	}
	left, err := e.node(n.X)
	if err != nil {
		return left, err
	}
	right, err := e.node(n.Y)
	if err != nil {
		return right, err
	}
	if o == opDiv {
		if right.step < 0 && right.number == 0 {
			return value{}, e.fail(n.Y.Pos(), "division by 0")
		}
		e.c.demands = append(e.c.demands, demand{at: e.position(n.Y.Pos()), divisor: right})
	}
	return e.emit(n.OpPos, o, left, right)
}

func (e *expression) name(n *ast.Ident) (value, error) {
	switch n.Name {
	case "x":
		return e.x, nil
	case "in":
		return e.load(n, 0)
	}
	for i, o := range operandNames {
		if n.Name == o.name {
			slot, ok := e.c.addOperand(i)
			if !ok {
				return value{}, e.fail(n.Pos(), "a chain can use only two of y, p and q")
			}
			return e.load(n, 1+slot)
		}
	}
	if _, ok := functions[n.Name]; ok {
		return value{}, e.fail(n.End(), "expected the arguments of %s", n.Name)
	}
	return value{}, e.fail(n.Pos(), "unknown name %q; known are x, in, y, p and q", n.Name)
}

func (e *expression) load(n *ast.Ident, operand int) (value, error) {
	return e.add(n.Pos(), step{op: opLoad, x: value{step: operand}, y: value{step: -1}})
}

func (e *expression) call(n *ast.CallExpr) (value, error) {
	name, ok := n.Fun.(*ast.Ident)
	if !ok || n.Ellipsis.IsValid() {
		return value{}, e.fail(n.Pos(), "unsupported call; use a function's name and its arguments")
	}
	f, ok := functions[name.Name]
	if !ok {
		return value{}, e.fail(n.Pos(), "unknown function %q; known are %s", name.Name, strings.Join(slices.Sorted(maps.Keys(functions)), ", "))
	}
	if len(n.Args) != f.args {
		return value{}, e.fail(n.Pos(), "%s needs %d arguments, got %d", name.Name, f.args, len(n.Args))
	}
	args := [3]value{1: {step: -1}}
	for i, a := range n.Args {
		var err error
		if args[i], err = e.node(a); err != nil {
			return value{}, err
		}
	}
	if last := strings.TrimSpace(e.text[:int(n.Rparen)-1]); strings.HasSuffix(last, ",") {
		return value{}, e.fail(token.Pos(len(last)), "expected an argument after the comma")
	}
	if name.Name == "clamp" {
		e.c.demands = append(e.c.demands, demand{at: e.position(n.Args[1].Pos()), clamp: true, low: args[1], high: args[2]})
	}
	v, err := e.emit(n.Pos(), f.op, args[0], args[1])
	if err == nil && name.Name == "clamp" { // max, then min; NaN stays NaN
		v, err = e.emit(n.Pos(), opMin, v, args[2])
	}
	return v, err
}

// emit adds an operation and returns its result. It evaluates operations on numbers.
func (e *expression) emit(at token.Pos, o op, x, y value) (value, error) {
	if x.step < 0 && (y.step < 0 || !o.binary()) {
		if v, ok := evaluate(o, x.number, y.number); ok {
			if f := float64(v); math.IsInf(f, 0) || math.IsNaN(f) {
				return value{}, e.fail(at, "the constant exceeds float32")
			}
			return value{number: v, step: -1}, nil
		}
		if o.binary() {
			return value{}, e.fail(at, "a function of two constants; write its value instead")
		}
	}
	return e.add(at, step{op: o, x: x, y: y})
}

func (e *expression) add(at token.Pos, s step) (value, error) {
	v, ok := e.c.addStep(s)
	if !ok {
		return v, e.fail(at, "the chain has more than %d steps", maxSteps)
	}
	return v, nil
}
