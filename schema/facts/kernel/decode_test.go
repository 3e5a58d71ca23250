package kernel

import (
	"errors"
	"testing"
)

// The checksum would hide the decoder from a fuzzer, so it is fed what the
// checksum covers.
func FuzzDecode(f *testing.F) {
	b := NewBuilder(Tree{Name: "t"})
	a := b.Define("A")
	dep := b.Expr(Or, int32(b.Operand(b.Word("B"))), int32(b.Expr(Equal, int32(b.Word("C")), int32(b.ConstantOperand("y")))))
	b.Symbol(a).Type = Bool
	b.Symbol(a).Defs = []Def{{Prompt: true, Choice: b.AddChoice(), File: b.File("Kconfig"), Line: 3, Depends: dep}}
	b.Choice(0).Members = []int32{a}
	e := newEncoder()
	e.add(Entry{Tree: b.Tree(), Base: []Value{{"A", "y"}}})
	f.Add(e.bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, _, err := decode(raw, ""); err != nil && !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnknown) {
			t.Fatal(err)
		}
	})
}

func TestAllKernelsFitIntoAMegabyte(t *testing.T) {
	if n := len(embedded); n > 1<<20 {
		t.Errorf("%d bytes", n)
	}
}
