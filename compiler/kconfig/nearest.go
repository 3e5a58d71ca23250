package kconfig

import (
	"cmp"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/spelling"
)

// nearestSymbols lists up to three symbols whose names are close to one that does not
// exist, nearest first.
func nearestSymbols(k *Kernel, name string) []string {
	type hit struct {
		name string
		d    int
	}
	var hits []hit
	limit := max(2, len(name)/5)
	for i := range k.Symbols {
		n := k.Symbols[i].Name
		if d := spelling.DistanceWithin(name, n, limit); d <= limit && hasPrompt(&k.Symbols[i]) {
			hits = append(hits, hit{n, d})
		}
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(a.d, b.d), strings.Compare(a.name, b.name)) })
	var out []string
	for _, h := range hits[:min(len(hits), 3)] {
		out = append(out, h.name)
	}
	return out
}
