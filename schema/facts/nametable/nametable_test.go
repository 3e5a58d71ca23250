package nametable_test

import (
	"slices"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/nametable"
)

// isTable reports whether data is a table whose blocks can all be read.
func isTable(data []byte) bool {
	t, err := nametable.Decode(data)
	return err == nil && t.Check() == nil
}

func TestTablesRoundTripAndDamageIsFound(t *testing.T) {
	lines := []string{"a\t1;x", "b\t2;y"}
	data, err := nametable.Encode(lines)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := nametable.Encode(lines); err != nil || !slices.Equal(again, data) {
		t.Error("the same lines give other bytes")
	}
	if _, err := nametable.Encode([]string{"b\t", "a\t"}); err == nil {
		t.Error("unsorted lines are accepted")
	}
	for name, bad := range map[string][]byte{"empty": nil, "head": data[:16], "cut": data[:len(data)-1], "longer": append(slices.Clone(data), 0), "other": []byte("PK")} {
		if isTable(bad) {
			t.Errorf("%s is accepted", name)
		}
	}
	if !isTable(data) {
		t.Error("the table is not accepted")
	}
}

func FuzzDecode(f *testing.F) {
	data, err := nametable.Encode([]string{"a\t1;x", "b\t2;y"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) { isTable(data) })
}
