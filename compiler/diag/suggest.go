package diag

import (
	"fmt"
	"strings"
)

// Nearest returns the candidate closest to word by edit distance, or "" when
// none is close enough to be a slip: at most a third of the word's length.
func Nearest(word string, candidates []string) string {
	limit := max(1, len(word)/3)
	best, bestDistance := "", limit+1
	for _, c := range candidates {
		if n := len(c) - len(word); n > limit || -n > limit {
			continue
		}
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < bestDistance {
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

// Sure tells whether a candidate is so near to a word, and all others so much
// further off, that a machine may write it: at most two letters, and none as near.
func Sure(word, candidate string, candidates []string) bool {
	const letters = 2
	least := distance(strings.ToLower(word), strings.ToLower(candidate))
	if least > letters {
		return false
	}
	for _, c := range candidates {
		if c != candidate && distance(strings.ToLower(word), strings.ToLower(c)) <= least {
			return false
		}
	}
	return true
}

// Retired gives the present name of something that had another one.
func Retired(word string) string {
	switch word {
	case "noop": // single-queue schedulers went with Linux 5.0
		return "none"
	case "deadline":
		return "mq-deadline"
	case "cfq":
		return "bfq"
	case "interactive": // NVIDIA's 4.9 only
		return "schedutil"
	}
	return ""
}

// DidYouMean is a help line naming the nearest candidate, or listing them when
// none is near and they are few.
func DidYouMean(word string, candidates []string) string {
	if n := Nearest(word, candidates); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	if len(candidates) == 0 || len(candidates) > 12 {
		return ""
	}
	return "known: " + strings.Join(candidates, ", ")
}

// distance counts insertions, deletions, substitutions and swaps of neighbours.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
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
