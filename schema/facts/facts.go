// Package facts searches and checks the facts about boards, releases and kernel parameters.
package facts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/sysctl"
	"github.com/yoctune/yoctune/schema/spelling"
)

// Check returns the number of boards, releases and kernel parameters, and what is
// inconsistent in them or between them.
func Check() (entries int, problems []error) {
	for _, id := range board.IDs() {
		problems = append(problems, checkBoard(id)...)
	}
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		problems = append(problems, r.Check()...)
	}
	entries = len(board.IDs()) + len(release.Names()) + len(sysctl.Keys())
	return entries, append(problems, sysctl.Check()...)
}

// checkBoard checks a board by itself and against the machines of its releases.
func checkBoard(id string) []error {
	b, ok := board.Lookup(id)
	if !ok {
		return []error{fmt.Errorf("board %s: its file cannot be decoded", id)}
	}
	problems := b.Check()
	for name, r := range b.Releases {
		rel, ok := release.Lookup(name)
		if !ok {
			problems = append(problems, fmt.Errorf("board %s: release %s is unknown", id, name))
			continue
		}
		for _, m := range r.Machines {
			if _, ok := rel.Machine(m); !ok {
				problems = append(problems, fmt.Errorf("board %s: %s has no machine %s", id, name, m))
			}
		}
	}
	return problems
}

// Suggest returns the end of a message about an unknown board, release or kernel
// parameter: the names that begin with id, or the nearest one; "" when there is none.
func Suggest(id string) string {
	names := slices.Concat(board.IDs(), release.Names())
	family := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, id) })
	if id != "" && len(family) > 0 {
		return ": choose one of " + strings.Join(family, ", ")
	}
	near, ok := sysctl.Nearest(id)
	if !ok {
		near = spelling.Nearest(id, names)
	}
	if near == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", near)
}
