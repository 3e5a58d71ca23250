package kernel_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/kernel"
)

func TestEverySetOpensWithItsBase(t *testing.T) {
	for _, s := range kernel.Sets() {
		tree, base, err := kernel.Open(s.Name)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		if len(tree.Symbols) < 12000 || len(base) < 1000 || tree.Arch != "arm64" {
			t.Errorf("%s: %d symbols, %d base lines, arch %q", s.Name, len(tree.Symbols), len(base), tree.Arch)
		}
		if s.Exactness != kernel.Exact && s.Caveat == "" {
			t.Errorf("%s is not exact and gives no reason", s.Name)
		}
		if _, ok := tree.Lookup("TCP_CONG_BBR"); !ok {
			t.Errorf("%s: no TCP_CONG_BBR", s.Name)
		}
	}
}

func TestUnknownKernelListsKnownOnes(t *testing.T) {
	_, _, err := kernel.Open("3.10")
	if !errors.Is(err, kernel.ErrUnknown) || !bytes.Contains([]byte(err.Error()), []byte("5.15")) {
		t.Fatalf("got %v", err)
	}
}

func TestTreeRoundTrips(t *testing.T) {
	tree, base, err := kernel.Open("6.12")
	if err != nil {
		t.Fatal(err)
	}
	// The embedded file lists first what several kernels share, so its order differs from
	// that of a tree encoded alone. Compare the second encoding with the third.
	encode := func(t2 *kernel.Tree) []byte {
		var b bytes.Buffer
		if err := kernel.Encode(&b, kernel.Entry{Tree: t2, Base: base}); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	one, base1, err := kernel.Decode(encode(tree), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(one.Symbols) != len(tree.Symbols) || len(one.Choices) != len(tree.Choices) || !reflect.DeepEqual(base, base1) {
		t.Errorf("%d symbols and %d choices, want %d and %d", len(one.Symbols), len(one.Choices), len(tree.Symbols), len(tree.Choices))
	}
	second := encode(one)
	two, _, err := kernel.Decode(second, "")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(second, encode(two)) {
		t.Error("encoding the decoded tree gives other bytes")
	}
}

func TestDamagedFactsAreRefused(t *testing.T) {
	tree, _, err := kernel.Open("4.9")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := kernel.Encode(&b, kernel.Entry{Tree: tree}); err != nil {
		t.Fatal(err)
	}
	good := b.Bytes()
	for name, bad := range map[string][]byte{
		"empty":       nil,
		"other file":  []byte("PK\x03\x04"),
		"head only":   good[:18],
		"truncated":   good[:len(good)/2],
		"flipped bit": append(append(bytes.Clone(good[:4000]), good[4000]^0x40), good[4001:]...),
	} {
		if _, _, err := kernel.Decode(bad, ""); !errors.Is(err, kernel.ErrFormat) {
			t.Errorf("%s: got %v, want ErrFormat", name, err)
		}
	}
}

func TestPresenceOfSymbols(t *testing.T) {
	got, err := kernel.FindPresence("MQ_IOSCHED_KYBER", "SCHED_DEBUG", "NO_SUCH")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"MQ_IOSCHED_KYBER": {"5.10", "5.15", "6.1", "6.8", "6.12", "6.18"},
		"SCHED_DEBUG":      {"4.9", "5.10", "5.15", "6.1", "6.8", "6.12"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		if _, _, err := kernel.Open("6.12"); err != nil {
			b.Fatal(err)
		}
	}
}
