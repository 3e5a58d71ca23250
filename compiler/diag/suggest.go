package diag

import (
	"fmt"
	"strings"

	"github.com/yoctune/yoctune/schema/spelling"
)

// Nearest returns the candidate most similar to a mistyped word, or "".
func Nearest(word string, candidates []string) string { return spelling.Nearest(word, candidates) }

// Sure reports whether a candidate is so near to a word, and all others so much
// further off, that a machine may write it: at most two letters, and none as near.
func Sure(word, candidate string, candidates []string) bool {
	const letters = 2
	least := spelling.Distance(word, candidate)
	if least > letters {
		return false
	}
	for _, c := range candidates {
		if c != candidate && spelling.Distance(word, c) <= least {
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
