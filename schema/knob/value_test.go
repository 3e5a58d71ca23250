package knob

import (
	"errors"
	"slices"
	"testing"

	"github.com/yoctune/yoctune/schema/plan"
)

func TestEqualValuesInTwoSpellings(t *testing.T) {
	for _, c := range []struct{ typ, a, b string }{
		{plan.TypeInt, "42", "0x2a"},
		{plan.TypeInt, "7", "0x0007\n"},
		{plan.TypeInt, "-1", " -1 "},
		{plan.TypeInt, "0", "-0"},
		{plan.TypeInt, "0", "00000000"},
		{plan.TypeInt, "18446744073692774399", "0xfffffffffeffffff"},
		{plan.TypeVector, "4096 131072 6291456", "4096\t131072\t6291456\n"},
		{plan.TypeBool, "1", "Y\n"},
		{plan.TypeBool, "on", "1"},
		{plan.TypeBool, "N", "0"},
		{plan.TypeCPUList, "0-3,5", "0,1,2,3,5"},
		{plan.TypeCPUList, "0-7:2/4", "0,1,4,5"},
		{plan.TypeCPUList, "", "\n"},
		{plan.TypeCPUMask, "3f", "00000000,0000003f"},
		{plan.TypeCPUMask, "0x0f", "f"},
		{plan.TypeCPUMask, "1,00000000", "0000000100000000"},
		{plan.TypeString, "cubic", "cubic\n"},
	} {
		a, err := Canonical(c.typ, c.a)
		if err != nil {
			t.Errorf("%s %q: %v", c.typ, c.a, err)
		}
		b, err := Canonical(c.typ, c.b)
		if err != nil {
			t.Errorf("%s %q: %v", c.typ, c.b, err)
		}
		if a != b {
			t.Errorf("%s: %q is %q, %q is %q", c.typ, c.a, a, c.b, b)
		}
	}
}

func TestInvalidValuesAreRefused(t *testing.T) {
	for _, c := range []struct{ typ, text string }{
		{plan.TypeInt, ""}, {plan.TypeInt, "ten"}, {plan.TypeInt, "010"}, {plan.TypeInt, "1_000"}, {plan.TypeInt, "0x"},
		{plan.TypeInt, "+1"}, {plan.TypeInt, "--1"}, {plan.TypeInt, "99999999999999999999"}, {plan.TypeInt, "1 2"},
		{plan.TypeVector, ""}, {plan.TypeVector, "1 x"},
		{plan.TypeChoice, ""}, {plan.TypeChoice, "[none]"}, {plan.TypeChoice, "a b"},
		{plan.TypeCPUList, "3-1"}, {plan.TypeCPUList, "1,,2"}, {plan.TypeCPUList, "0-9999999"}, {plan.TypeCPUList, "a"},
		{plan.TypeCPUList, "0-7:0/4"}, {plan.TypeCPUList, "0-7:5/4"}, {plan.TypeCPUList, "3:1/2"}, {plan.TypeCPUList, "-1"},
		{plan.TypeCPUMask, ""}, {plan.TypeCPUMask, "xyz"}, {plan.TypeCPUMask, "1,,2"}, {plan.TypeCPUMask, "1ffffffff,0"},
		{plan.TypeBool, "2"}, {plan.TypeBool, ""},
	} {
		if v, err := Canonical(c.typ, c.text); !errors.Is(err, ErrValue) {
			t.Errorf("%s %q: %q, %v; want ErrValue", c.typ, c.text, v, err)
		}
	}
	if _, err := Canonical("colour", "red"); !errors.Is(err, ErrType) {
		t.Errorf("unknown type: %v", err)
	}
}

func TestBracketedChoiceIsTheValue(t *testing.T) {
	for _, c := range []struct {
		text    string
		value   string
		offered []string
		bad     bool
	}{
		{"always [madvise] never\n", "madvise", []string{"always", "madvise", "never"}, false},
		{"[none] mq-deadline", "none", []string{"none", "mq-deadline"}, false},
		{"none\n", "none", nil, false}, // a device without a choice
		{"none kyber", "", nil, true},
		{"[none] [kyber]", "", nil, true},
		{"", "", nil, true},
		{"[]", "", nil, true},
	} {
		f, err := Parse(plan.TypeChoice, c.text)
		if (err != nil) != c.bad {
			t.Errorf("%q: %v", c.text, err)
		}
		if f.Value != c.value || !slices.Equal(f.Offered, c.offered) {
			t.Errorf("%q: %+v", c.text, f)
		}
	}
}

func TestComparisons(t *testing.T) {
	for _, c := range []struct {
		typ, compare, want, found string
		ok                        bool
	}{
		{plan.TypeInt, plan.Exact, "0x2a", "42", true},
		{plan.TypeInt, plan.AtLeast, "10", "10", true},
		{plan.TypeInt, plan.AtLeast, "10", "9", false},
		{plan.TypeInt, plan.AtLeast, "-5", "-4", true},
		{plan.TypeInt, plan.AtLeast, "-4", "-5", false},
		{plan.TypeInt, plan.AtMost, "10", "11", false},
		{plan.TypeInt, plan.AtMost, "0", "-1", true},
		{plan.TypeInt, plan.AtMost, "18446744073709551615", "18446744073709551614", true},
		{plan.TypeVector, plan.AtLeast, "1 2 3", "1 2 3", true},
		{plan.TypeVector, plan.AtLeast, "1 2 3", "9 1 9", false},
		{plan.TypeVector, plan.AtLeast, "1 2 3", "1 2", false},
		{plan.TypeChoice, plan.FirstAvailable, "bfq | kyber|none", "[kyber] none", true},
		{plan.TypeChoice, plan.FirstAvailable, "bfq|kyber|none", "kyber [none]", false}, // kyber is better and offered
		{plan.TypeChoice, plan.FirstAvailable, "bfq|none", "kyber [none]", true},
		{plan.TypeString, plan.FirstAvailable, "bbr|cubic", "cubic", true},
		{plan.TypeString, plan.FirstAvailable, "bbr|cubic", "reno", false},
		{plan.TypeCPUList, plan.Exact, "0,1,2", "0-2", true},
	} {
		f, err := Parse(c.typ, c.found)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := Satisfies(c.typ, c.compare, c.want, f); ok != c.ok || err != nil {
			t.Errorf("%s: %s %q for %q: %t, %v", c.typ, c.compare, c.want, c.found, ok, err)
		}
	}
	for _, c := range []struct{ typ, compare string }{
		{plan.TypeString, plan.AtLeast}, {plan.TypeInt, "about"}, {plan.TypeChoice, plan.AtMost},
	} {
		if _, err := Satisfies(c.typ, c.compare, "1", Found{Value: "1"}); !errors.Is(err, errCompare) {
			t.Errorf("%s %s: %v, want ErrCompare", c.typ, c.compare, err)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	types := []string{plan.TypeInt, plan.TypeVector, plan.TypeChoice, plan.TypeCPUList, plan.TypeCPUMask, plan.TypeBool, plan.TypeString}
	for _, s := range []string{"42", "0x2a", "-1", "4096\t131072", "always [madvise] never", "0-3,5", "0-7:2/4", "00000000,0000003f", "Y", "010", "8191", "0-8191:1/2"} {
		for i := range types {
			f.Add(i, s)
		}
	}
	f.Fuzz(func(t *testing.T, i int, s string) {
		typ := types[(i%len(types)+len(types))%len(types)]
		found, err := Parse(typ, s)
		if err != nil {
			if !errors.Is(err, ErrValue) {
				t.Fatalf("%s %q: error %v is not about an invalid value", typ, s, err)
			}
			return
		}
		if typ == plan.TypeCPUMask {
			return // canonical masks are lists
		}
		again, err := Parse(typ, found.Value)
		if err != nil && found.Value != "" {
			t.Fatalf("%s %q: canonical form %q is refused: %v", typ, s, found.Value, err)
		}
		if again.Value != found.Value {
			t.Fatalf("%s %q: canonical form %q becomes %q", typ, s, found.Value, again.Value)
		}
	})
}
