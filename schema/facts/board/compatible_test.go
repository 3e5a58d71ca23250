package board

import (
	"slices"
	"testing"
)

func TestBoardIdentifiedByModuleOnAnyCarrier(t *testing.T) {
	for _, c := range []struct {
		name       string
		compatible []string
		board      string
		want       bool
	}{
		{"developer kit", []string{"nvidia,p3768-0000+p3767-0005", "nvidia,p3767-0005", "nvidia,tegra234"}, "orin-nano-8gb", true},
		{"super device tree", []string{"nvidia,p3768-0000+p3767-0003-super", "nvidia,p3767-0003", "nvidia,tegra234"}, "orin-nano-8gb", true},
		{"another maker's carrier", []string{"acme,box1+p3767-0003", "nvidia,tegra234"}, "orin-nano-8gb", true},
		{"sibling module", []string{"nvidia,p3768-0000+p3767-0001", "nvidia,p3767-0001", "nvidia,tegra234"}, "orin-nano-8gb", false},
		{"carrier number is not a module number", []string{"nvidia,p3768-0000", "nvidia,tegra234"}, "orin-nano-8gb", false},
		{"same SoC, other family", []string{"nvidia,p3737-0000+p3701-0005", "nvidia,p3701-0005", "nvidia,tegra234"}, "orin-nano-8gb", false},
		{"agx", []string{"nvidia,p3737-0000+p3701-0005", "nvidia,p3701-0005", "nvidia,tegra234"}, "agx-orin-64gb", true},
		{"unknown board", []string{"nvidia,p3701-0005"}, "no-such-board", false},
		{"no device tree", nil, "orin-nano-8gb", false},
		{"entry without a vendor", []string{"p3767-0003"}, "orin-nano-8gb", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := IsCompatible(c.board, c.compatible); got != c.want {
				t.Errorf("IsCompatible(%q, %q) = %t, want %t", c.board, c.compatible, got, c.want)
			}
		})
	}
}

// A family whose device trees do not name the module is recognised by its kit, as
// the facts have it.
func TestBoardWithoutModuleNumberIdentifiedByKit(t *testing.T) {
	for _, id := range IDs() {
		b, _ := Lookup(id)
		if kits := Kits(id); kits != nil && !slices.Equal(kits, b.KitCompatible) {
			t.Errorf("%s: %v, the facts have %v", id, kits, b.KitCompatible)
		}
		if Kits(id) != nil && IsIdentifiable(id) {
			t.Errorf("%s has both", id)
		}
	}
	xavier := []string{"nvidia,p2972-0000", "nvidia,tegra194"}
	if !IsKit("agx-xavier", xavier) || IsKit("tx2", xavier) || IsKit("agx-orin-64gb", xavier) || IsKit("agx-xavier", []string{"nvidia,tegra194"}) {
		t.Error("a kit is taken for another")
	}
}
