package knob

import (
	"cmp"
	"path"
	"strings"

	"github.com/yoctune/yoctune/schema/plan"
)

// IsPattern reports whether a name selects devices by a pattern. The empty name selects all.
func IsPattern(name string) bool { return name == "" || strings.ContainsAny(name, "*?[") }

// ComparePrecedence orders selections so that of two that write the same node, the one that
// counts is written last: a device's exact name takes precedence over a pattern.
func ComparePrecedence(a, b plan.Select) int {
	rank := func(s plan.Select) int {
		if s.Class != anyClass && !IsPattern(s.Name) {
			return 1
		}
		return 0
	}
	return cmp.Compare(rank(a), rank(b))
}

// Overrides reports whether an exact name takes precedence over a pattern that selects the
// same attribute of the same device.
func Overrides(exact, pattern plan.Select) bool {
	if exact.Class != pattern.Class || exact.Attr != pattern.Attr || exact.Class == anyClass || ComparePrecedence(exact, pattern) <= 0 {
		return false
	}
	matched, err := path.Match(pattern.Name, exact.Name)
	return pattern.Name == "" || err == nil && matched
}

// Overlap reports whether two patterns of "*", "?" and plain characters may match one name.
func Overlap(a, b string) bool {
	// may[j] is the answer for the rest of a and b[j:]; the rest of a grows by one character
	// in each round.
	may := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		longer := make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			starA, starB := i < len(a) && a[i] == '*', j < len(b) && b[j] == '*'
			switch {
			case starA || starB:
				longer[j] = i < len(a) && may[j] || j < len(b) && longer[j+1]
			case i == len(a) || j == len(b):
				longer[j] = i == len(a) && j == len(b)
			default:
				longer[j] = may[j+1] && (a[i] == '?' || b[j] == '?' || a[i] == b[j])
			}
		}
		may = longer
	}
	return may[0]
}
