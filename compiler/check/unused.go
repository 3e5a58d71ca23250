package check

import (
	"slices"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/plan"
)

func unusedRules() []Rule {
	return []Rule{{
		ID: "unused", Severity: diag.Warning,
		Title: "nothing refers to a name of the configuration",
		Cause: "A profile acts through the targets that list it under use, a board of your own through the targets that name it, and a model through the stages that run it. Without one, everything that is written there reaches no device.",
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
	w.checkUnusedModels()
	for _, b := range w.Config.Boards.Sorted() {
		if !slices.Contains(boards, b.Key()) {
			w.reportKey(b, "name it as board of a target, or remove it", "no target is for the board %s", b.Key())
		}
	}
}

// checkUnusedModels reports the models that no pipeline runs, each once: several targets may
// share a profile, and one of them is enough.
func (w *whole) checkUnusedModels() {
	used := map[plan.Position]bool{}
	var declared []*config.Model
	for _, t := range w.Targets {
		var names []string
		for _, p := range t.Config.Pipelines.Entries {
			for _, u := range resolve.ModelUses(p) {
				names = append(names, u.Model.Text)
			}
		}
		for _, m := range t.Config.Models.Sorted() {
			if _, known := used[m.KeyPos()]; !known {
				declared = append(declared, m)
			}
			used[m.KeyPos()] = used[m.KeyPos()] || slices.Contains(names, m.Key())
		}
	}
	for _, m := range declared {
		if !used[m.KeyPos()] {
			w.reportKey(m, "name it as model of a stage, or remove it", "no pipeline runs the model %s", m.Key())
		}
	}
}
