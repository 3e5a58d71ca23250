package kconfig

import "sort"

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
		if d := len(n) - len(name); d > limit || -d > limit || !hasPrompt(&k.Symbols[i]) {
			continue
		}
		if d := distance(name, n, limit); d <= limit {
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

// distance counts the single-letter edits between two names, giving up above
// limit.
func distance(a, b string, limit int) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		best := i
		for j := 1; j <= len(b); j++ {
			up := row[j]
			cost := diag
			if a[i-1] != b[j-1] {
				cost = 1 + min(diag, up, row[j-1])
			}
			diag, row[j] = up, cost
			best = min(best, cost)
		}
		if best > limit {
			return limit + 1
		}
	}
	return row[len(b)]
}
