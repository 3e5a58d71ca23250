// Package spelling suggests the intended name for a mistyped word.
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
	return bounded([]rune(strings.ToLower(a)), []rune(strings.ToLower(b)), len(a)+len(b))
}

// DistanceWithin is [Distance] between names in ASCII whose case matters. It gives up at
// limit+1, which makes it quick for long lists.
func DistanceWithin(a, b string, limit int) int { return bounded([]byte(a), []byte(b), limit) }

// IsSlip reports whether name can hardly be anything but a known name with one slip: two
// neighbours swapped, a letter doubled, or one letter wrong in a word of at least letters letters.
// Between names of which layers add their own, shorter words are too near each other (iperf and
// gperf, scipy and scapy), and numbers name another version (vpi3 and vpi4).
func IsSlip(name, known string, letters int) bool {
	if DistanceWithin(name, known, 1) != 1 || withoutDigits(name) == withoutDigits(known) {
		return false
	}
	start := 0
	for start < min(len(name), len(known)) && name[start] == known[start] {
		start++
	}
	if len(name) == len(known) && start+1 < len(name) && name[start] == known[start+1] && name[start+1] == known[start] {
		return true
	}
	longer := name
	if len(known) > len(name) {
		longer = known
	}
	// A letter too many, or too few, beside the same letter, but not at the start (mc and mmc).
	if len(name) != len(known) && start > 1 && longer[start] == longer[start-1] {
		return true
	}
	from := strings.LastIndexAny(known[:start], separators) + 1
	to := strings.IndexAny(known[start:], separators)
	if to < 0 {
		to = len(known) - start
	}
	return start+to-from >= letters
}

// separators part the words of a name.
const separators = "-_./"

func withoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, s)
}

func bounded[T comparable](a, b []T, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	var buffers [3][64]int // most names are shorter: nothing is allocated for them
	older, old, row := buffers[0][:], buffers[1][:], buffers[2][:]
	if len(b) >= len(row) {
		older, old, row = make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	}
	for j := range len(b) + 1 {
		old[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
			least = min(least, row[j])
		}
		older, old, row = old, row, older
		if least > limit+1 { // a swap may still save one
			return limit + 1
		}
	}
	return min(old[len(b)], limit+1)
}
