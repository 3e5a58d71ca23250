package check

import (
	"slices"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
)

func unusedRules() []Rule {
	return []Rule{{
		ID: "unused", Severity: diag.Warning,
		Title: "nothing refers to a name of the configuration",
		Cause: "A profile acts through the targets that list it under use, and a board of your own through the targets that name it. Without one, everything that is written there reaches no device.",
		Fix:   "refer to it, or remove it",
		Wrong: `profiles: fast: sysctl: "vm.dirty_ratio": 20`,
		Right: `targets: cam: use: ["fast"], profiles: fast: sysctl: "vm.dirty_ratio": 20`,
		See:   "yoctune schema Config",
		whole: checkUnused,
	}}
}

// whole is a project under a rule.
type whole struct {
	*resolve.Project
	*reporter
}

func checkWhole(p *resolve.Project, rules []Rule, off *suppressed, report *diag.Report) {
	for _, r := range rules {
		if r.whole != nil {
			r.apply(report, off, func(rep *reporter) { r.whole(&whole{p, rep}) })
		}
	}
}

func checkUnused(w *whole) {
	var used, boards []string
	for _, t := range w.Config.Targets.Entries {
		used = append(used, config.Texts(t.Use)...)
		boards = append(boards, t.Board.Text)
	}
	for _, p := range w.Config.Profiles.Sorted() {
		if !slices.Contains(used, p.Key()) {
			w.reportKey(p, "add it to use of a target, or remove it", "no target uses the profile %s", p.Key())
		}
	}
	for _, b := range w.Config.Boards.Sorted() {
		if !slices.Contains(boards, b.Key()) {
			w.reportKey(b, "name it as board of a target, or remove it", "no target is for the board %s", b.Key())
		}
	}
}
