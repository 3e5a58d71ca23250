// Package spelling finds the name that a mistyped word was meant to be.
package spelling

import "strings"

// Nearest returns the candidate closest to word by edit distance, or "" when none is
// close enough to be a slip: at most a third of the word's length.
func Nearest(word string, candidates []string) string {
	limit := max(1, len(word)/3)
	best, bestDistance := "", limit+1
	for _, c := range candidates {
		if n := len(c) - len(word); n > limit || -n > limit {
			continue
		}
		if d := Distance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best != "" || len(word) < 4 {
		return best
	}
	// "deadline" for "mq-deadline": a name that was shortened or lengthened.
	for _, c := range candidates {
		if strings.Contains(c, word) || len(c) >= 4 && strings.Contains(word, c) {
			return c
		}
	}
	return ""
}

// Distance counts the insertions, deletions, substitutions and swaps of neighbours that
// turn one word into the other. Case does not matter.
func Distance(a, b string) int {
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	older, old, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range old {
		old[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old, row = old, row, older
	}
	return old[len(y)]
}
