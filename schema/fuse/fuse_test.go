package fuse_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/fuse"
)

func TestSyntaxErrorsHavePositions(t *testing.T) {
	for _, tc := range []struct {
		exprs     []string
		expr      int
		line, col int
		wantText  string
	}{
		{[]string{""}, 0, 1, 1, "expected operand"},
		{nil, 0, 1, 1, "no expressions"},
		{[]string{"x +"}, 0, 1, 4, "expected operand"},
		{[]string{"x x"}, 0, 1, 3, "expected 'EOF', found x"},
		{[]string{"x", "(x * 2"}, 1, 1, 7, "expected ')'"},
		{[]string{"x +\n  relo(x)"}, 0, 2, 3, `unknown function "relo"; known are abs, bf16, clamp, exp`},
		{[]string{"x + z"}, 0, 1, 5, `unknown name "z"; known are x, in, y, p and q`},
		{[]string{"relu x"}, 0, 1, 6, "expected 'EOF', found x"},
		{[]string{"2 * relu"}, 0, 1, 9, "expected the arguments of relu"},
		{[]string{"x % 2"}, 0, 1, 3, "unsupported operator %"},
		{[]string{"x * !x"}, 0, 1, 5, "unsupported sign !"},
		{[]string{"x[1]"}, 0, 1, 1, "unsupported syntax"},
		{[]string{"min(x, x...)"}, 0, 1, 1, "unsupported call"},
		{[]string{"x + 1i"}, 0, 1, 5, `"1i" is not a float32 number`},
		{[]string{"clamp(x, 1)"}, 0, 1, 1, "clamp needs 3 arguments, got 2"},
		{[]string{"min(x 1)"}, 0, 1, 7, "missing ',' in argument list"},
		{[]string{"min(1, 2) + x"}, 0, 1, 1, "write its value instead"},
		{[]string{"x * 1e50"}, 0, 1, 5, `"1e50" is not a float32 number`},
		{[]string{"x * 1.2.3"}, 0, 1, 8, "found .3"},
		{[]string{"x", "2 * 3"}, 1, 1, 1, "the result is the constant 6"},
		{[]string{"x + y + p + q"}, 0, 1, 13, "only two of y, p and q"},
		{[]string{"x + é"}, 0, 1, 5, `unknown name "é"`},
		{[]string{"x / 0"}, 0, 1, 5, "division by 0"},
		{[]string{"x", "1 + x / -(2 - 2.0)"}, 1, 1, 9, "division by 0"},
		{[]string{"x /\n 1e-60"}, 0, 2, 2, "division by 0"},
		{[]string{"x / abs(0)"}, 0, 1, 5, "division by 0"},
		{[]string{"x / relu(0 - 3)", "in * 2"}, 0, 1, 5, "division by 0"},
		{[]string{"0", "in / x"}, 1, 1, 6, "division by 0"},
		{[]string{"x * (1e38 * 10)"}, 0, 1, 11, "the constant exceeds float32"},
		{[]string{"clamp(x, 3, -3)"}, 0, 1, 10, "the limits of clamp descend from 3 to -3"},
		{[]string{"clamp(x, exp(2), 7)"}, 0, 1, 10, "to 7"},
		{[]string{"x * 0x1p3"}, 0, 1, 5, "0x1p3 is not a decimal number"},
		{[]string{"x * 1_000"}, 0, 1, 5, "1_000 is not a decimal number"},
		{[]string{"x * 0b11"}, 0, 1, 5, "0b11 is not a decimal number"},
		{[]string{"x * 017"}, 0, 1, 5, "017 is not a decimal number"},
		{[]string{"x // twice"}, 0, 1, 3, "no comments"},
		{[]string{"x *\n/* twice */ 2"}, 0, 2, 1, "no comments"},
		{[]string{"min(x, 1 , )"}, 0, 1, 10, "expected an argument after the comma"},
		{[]string{strings.Repeat("(", 100) + "x" + strings.Repeat(")", 100)}, 0, 1, 65, "more than 64 levels"},
		{[]string{strings.Repeat("x + ", 2000) + "x"}, 0, 1, 1, "at most 4096"},
	} {
		_, err := fuse.Parse(fuse.F32, fuse.F32, tc.exprs...)
		var at *fuse.Error
		if !errors.As(err, &at) {
			t.Errorf("%q: %v is not an *Error", tc.exprs, err)
			continue
		}
		if at.Expr != tc.expr || at.Line != tc.line || at.Col != tc.col || !strings.Contains(at.Msg, tc.wantText) {
			t.Errorf("%q: %v; want expression %d, line %d, column %d, %q", tc.exprs, err, tc.expr+1, tc.line, tc.col, tc.wantText)
		}
	}
}

func TestUnsupportedTypesAreRefused(t *testing.T) {
	for _, tc := range [][2]fuse.Type{{fuse.I8, fuse.F32}, {fuse.F32, 5}, {9, 9}} {
		if _, err := fuse.Parse(tc[0], tc[1], "x"); err == nil {
			t.Errorf("from %d to %d was accepted", tc[0], tc[1])
		}
	}
}

// What is written twice is computed once, and what nothing needs not at all.
func TestRepeatedAndUnusedStepsAreRemoved(t *testing.T) {
	parse := func(exprs ...string) int {
		t.Helper()
		c, err := fuse.Parse(fuse.F32, fuse.F32, exprs...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(c.Source(), "\tfloat v")
	}
	if n := parse("exp(x) / (1 + exp(x))"); n != 4 {
		t.Errorf("%d steps, want a load, exp, add and div", n)
	}
	if n := parse("exp(x)", "in * 2"); n != 2 {
		t.Errorf("%d steps, want a load and mul", n)
	}
	if n := parse("min(x, 0) + min(x, -0)"); n != 4 {
		t.Errorf("%d steps: 0 and -0 are two numbers", n)
	}
}

func TestValuesOfChannelsAreChecked(t *testing.T) {
	for _, tc := range []struct {
		exprs    []string
		values   [][]float32
		col      int
		wantText string // "": the values can be used
	}{
		{[]string{"(x - p) / q"}, [][]float32{{0, 0}, {1, 2}}, 0, ""},
		{[]string{"(x - p) / q"}, [][]float32{{0, 0}, {1, 0}}, 11, "division by 0 in channel 1, counted from 0"},
		{[]string{"x / (p - 0.5)"}, [][]float32{{0.5, 1}}, 5, "division by 0 in channel 0"},
		{[]string{"x / q + p", "in"}, [][]float32{{0}, {1}}, 5, "division by 0"}, // q is read first
		{[]string{"x / max(p, 0.1)"}, [][]float32{{0}}, 0, ""},
		{[]string{"x / (x + p)"}, [][]float32{{0}}, 0, ""},
		{[]string{"clamp(x, p, q)"}, [][]float32{{0, 1}, {1, 1}}, 0, ""},
		{[]string{"clamp(x, p, q)"}, [][]float32{{0, 2}, {1, 1}}, 10, "the limits of clamp descend from 2 to 1 in channel 1"},
		{[]string{"clamp(x, -p, 6)"}, [][]float32{{1, -7}}, 10, "descend from 7 to 6 in channel 1"},
	} {
		c, err := fuse.Parse(fuse.F32, fuse.F32, tc.exprs...)
		if err != nil {
			t.Fatal(err)
		}
		err = c.CheckChannels(tc.values)
		var at *fuse.Error
		if tc.wantText == "" && err != nil || tc.wantText != "" && (!errors.As(err, &at) || at.Col != tc.col || !strings.Contains(at.Msg, tc.wantText)) {
			t.Errorf("%q with %v: %v; want column %d, %q", tc.exprs, tc.values, err, tc.col, tc.wantText)
		}
	}
}

func TestTooManyIntermediateValuesAreRefused(t *testing.T) {
	// A balanced tree of d levels needs about d values.
	tree := func(depth int) string {
		n := 0
		var build func(int) string
		build = func(d int) string {
			if d == 0 {
				n++
				return "exp(x * " + strings.Repeat("1", 1+n%5) + "." + strings.Repeat("3", n%7) + "1)"
			}
			return "(" + build(d-1) + " - " + build(d-1) + " * " + build(d-1) + ")"
		}
		return build(depth)
	}
	if _, err := fuse.Parse(fuse.F32, fuse.F32, tree(3)); err != nil {
		t.Error(err)
	}
	var wide []string
	for i := range 20 {
		wide = append(wide, "exp(x + "+strings.Repeat("1", 1+i/2)+strings.Repeat("0", i%2)+")")
	}
	sum := strings.Join(wide, " - ")
	product := strings.Join(wide, " * ")
	if _, err := fuse.Parse(fuse.F32, fuse.F32, "("+sum+") / ("+product+")"); err == nil || !strings.Contains(err.Error(), "at one time") {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"x", "(x - p) * q", "clamp(silu(x), -6, 6) + y", "-.5e-3*leaky(x,1)/in", "x\n+ 2", "u8(x*255)"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		c, err := fuse.Parse(fuse.F16, fuse.U8, a, b)
		if err != nil {
			var at *fuse.Error
			if !errors.As(err, &at) || at.Line < 1 || at.Col < 1 || at.Msg == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		image := c.Image()
		if len(image) < 20 || (len(image)-12)%8 != 0 {
			t.Fatalf("an image of %d bytes", len(image))
		}
		if c.Source() == "" {
			t.Fatal("no source")
		}
	})
}
