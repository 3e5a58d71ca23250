package diag

import (
	"fmt"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"

	"github.com/yoctune/yoctune/schema/spelling"
)

// Nearest returns the candidate most similar to a mistyped word, or "".
func Nearest(word string, candidates []string) string { return spelling.Nearest(word, candidates) }

// IsSafeFix reports whether a program may replace word by candidate without asking: they
// differ by at most two letters, and no other candidate is as near.
func IsSafeFix(word, candidate string, candidates []string) bool {
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

// SuggestName completes a diagnostic about an unknown name with the known one nearest to
// it, if there is one. Where that is certain, the diagnostic gets the edit.
func (d *Diagnostic) SuggestName(name string, known []string) bool {
	near := Nearest(name, known)
	if near == "" {
		return false
	}
	d.Help = fmt.Sprintf("did you mean %q?", near)
	if IsSafeFix(name, near, known) {
		d.Edits = []Edit{{Kind: RenameField, Pos: d.Pos, Text: Label(near)}}
	}
	return true
}

// Label writes a name as a label of CUE.
func Label(name string) string {
	if ast.IsValidIdent(name) {
		return name
	}
	return strconv.Quote(name)
}

// SuggestValue completes a diagnostic about an unknown value as [Diagnostic.SuggestName] does one
// about a name. Where nothing is near, the help lists the known values if they are few.
func (d *Diagnostic) SuggestValue(value string, known []string) {
	d.Help = DidYouMean(value, known)
	if near := Nearest(value, known); near != "" && IsSafeFix(value, near, known) {
		d.Edits = []Edit{{Kind: ReplaceText, Pos: d.Pos, Text: strconv.Quote(near)}}
	}
}

// CurrentName returns the current name of a value that was renamed, or "".
func CurrentName(word string) string {
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
