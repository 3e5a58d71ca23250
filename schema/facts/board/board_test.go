package board

import (
	"sort"
	"strconv"
	"testing"
)

func TestEveryBoardFileIsConsistent(t *testing.T) {
	ids := IDs()
	if len(ids) == 0 {
		t.Fatal("no boards embedded")
	}
	for _, id := range ids {
		b, ok := Lookup(id)
		if !ok || b.ID != id {
			t.Fatalf("%s: does not decode to itself", id)
		}
		for _, s := range [][]int64{b.CPUkHz, b.GPUHz, b.EMCHz} {
			if !sort.SliceIsSorted(s, func(i, j int) bool { return s[i] < s[j] }) {
				t.Errorf("%s: frequency table is not ascending: %v", id, s)
			}
		}
		for rel := range b.Releases {
			table, verified, err := b.Stock(rel)
			if err != nil {
				t.Errorf("%s %s: %v", id, rel, err)
				continue
			}
			defaults := 0
			for i, m := range table.Modes {
				if m.ID != i {
					t.Errorf("%s %s: mode %s has id %d at place %d", id, rel, m.Name, m.ID, i)
				}
				if m.Default {
					defaults++
				}
				for _, s := range m.Settings {
					if verified && !table.Has(s[0], s[1]) {
						t.Errorf("%s %s: mode %s uses undeclared %s %s", id, rel, m.Name, s[0], s[1])
					}
					if v := s[2]; v != "on" && v != "auto" {
						if _, err := strconv.ParseInt(v, 10, 64); err != nil {
							t.Errorf("%s %s: mode %s: %s %s = %q is no number", id, rel, m.Name, s[0], s[1], v)
						}
					}
				}
			}
			if defaults != 1 {
				t.Errorf("%s %s: %d default modes", id, rel, defaults)
			}
		}
	}
}

func TestLookupRefusesPathsAndUnknownBoards(t *testing.T) {
	for _, id := range []string{"", "nope", "../board", "data/orin-nano-8gb", "orin-nano-8gb.json"} {
		if _, ok := Lookup(id); ok {
			t.Errorf("Lookup(%q) found a board", id)
		}
	}
}
