package kconfig

import (
	"sort"

	"github.com/yoctune/yoctune/schema/spelling"
)

// nearest lists up to three symbols whose names are close to one that does not
// exist, nearest first.
func nearest(k *Kernel, name string) []string {
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
	sort.Slice(hits, func(i, j int) bool {
		if hits[i].d != hits[j].d {
			return hits[i].d < hits[j].d
		}
		return hits[i].name < hits[j].name
	})
	var out []string
	for i := 0; i < len(hits) && i < 3; i++ {
		out = append(out, hits[i].name)
	}
	return out
}
