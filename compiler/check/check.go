// Package check applies rules to a resolved configuration: what the hardware, the kernel or the build
// cannot do, and what is likely to disappoint.
//
// A rule is data with one small function. Adding a rule means adding it to the
// list of its file; its page in `yoctune explain` and its place in reports
// follow.
package check

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/kconfig/forecast"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/sysctl"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/schema/spelling"
)

// Rule is one thing that can be wrong with a target.
type Rule struct {
	ID       string // a slug
	Severity diag.Severity
	Title    string // what is wrong, in general
	Cause    string
	Fix      string
	Wrong    string // an example that raises it
	Right    string
	See      string // document, kernel file or thread it rests on
	// Firm: suppress switches off only findings that rest on unverified facts. Ignoring
	// the others endangers a device or a build host.
	Firm bool

	run   func(s *subject)
	build func(b *builder) // instead of run, for a rule about the build's settings
	whole func(w *whole)   // instead of run, for a rule about what targets share
	last  bool             // runs after the others, which explain options first
	// tables: the rule looks names or values up in the tables of the kernel. Where it has none,
	// those of its neighbours decide, and the findings are warnings.
	tables bool
}

// Page is the rule's explanation.
func (r Rule) Page() diag.Explanation {
	return diag.Explanation{ID: r.ID, Title: r.Title, Severity: r.Severity.String(), Cause: r.Cause, Fix: r.Fix, Wrong: r.Wrong, Right: r.Right, See: r.See}
}

// Rules lists every rule by id.
func Rules() []Rule {
	var all []Rule
	for _, group := range [][]Rule{
		ownBoardRules(),
		boardRules(), powerRules(), fanRules(), cpuRules(), isolationRules(), kernelRules(), kconfigRules(), needRules(), argRules(), nameRules(), packageRules(), threadRules(), busRules(), transientRules(),
		sysctlRules(), serviceRules(), verifyRules(), limitRules(), timerRules(), blacklistRules(), programRules(), unitRules(), directiveRules(), unusedRules(), budgetRules(), deviceRules(), interfaceRules(), firmwareRules(), storageRules(), containerRules(), pipelineRules(), clusterRules(), launchRules(), modelRules(), namedModelRules(), headRules(), promiseRules(), stageRules(), inferenceRules(), buildRules(), conflictRules(), variableRules(), clockRules(), featureRules(), sandboxRules(),
	} {
		all = append(all, group...)
	}
	slices.SortFunc(all, func(a, b Rule) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Find finds a rule.
func Find(id string) (Rule, bool) {
	for _, r := range Rules() {
		if r.ID == id {
			return r, true
		}
	}
	return Rule{}, false
}

// subject is a target under a rule.
type subject struct {
	*resolve.Target
	*shared
	*reporter
}

// shared is what the rules of one target share.
type shared struct {
	kernel *forecast.Kernel // nil when there are no facts of the release's kernel
	// explained holds the options that a rule has explained already: one fault, one message.
	explained map[string]bool
	// sysctls are the target's, with the facts about each.
	sysctls []sysctlEntry
	args    []argument    // kernel arguments, from their first use on
	mods    []moduleEntry // kernel modules, likewise
	models  Models        // nil: none can be opened
	build   *config.Build
	lines   []string // the kernels whose tables are read: the target's own, or its neighbours
}

// markExplained marks an option as explained; it is false when it was before.
func (s *shared) markExplained(symbol string) bool {
	if s.explained[symbol] {
		return false
	}
	s.explained[symbol] = true
	return true
}

// reporter collects the findings of a rule.
type reporter struct {
	rule  *Rule
	found []*finding
}

// finding is a diagnostic, which the rule may complete until it returns.
type finding struct{ diag.Diagnostic }

// apply runs a rule and adds its findings to a report, without those that off switches off.
func (r *Rule) apply(report *diag.Report, off *suppressed, run func(*reporter)) {
	if off.isSuppressed(r.ID) && !r.Firm {
		return
	}
	rep := &reporter{rule: r}
	run(rep)
	for _, f := range rep.found {
		if off.isSuppressed(r.ID) && f.Unverified != "" {
			off.used[r.ID] = true
			continue
		}
		report.Add(f.Diagnostic)
	}
}

// raise reports the rule at a part of the configuration.
func (r *reporter) raise(part config.Part, format string, args ...any) *finding {
	at := part.Where()
	f := &finding{diag.Diagnostic{
		ID: r.rule.ID, Severity: r.rule.Severity, Pos: at.Pos(), Path: at.FullPath(),
		Message: fmt.Sprintf(format, args...), Help: r.rule.Fix, See: nameFact(r.rule.See, at.Key()),
	}}
	r.found = append(r.found, f)
	return f
}

// nearLetters is the length of a word from which one wrong letter is a slip, in names of packages,
// recipes and modules: layers add their own, and short ones are near each other.
const nearLetters = 10

// unlessSlip makes a finding about an unknown name a warning, unless the name can hardly be
// anything but the known one with a slip.
func (f *finding) unlessSlip(name, near string, letters int) *finding {
	if !spelling.IsSlip(name, near, letters) {
		f.Severity = min(f.Severity, diag.Warning)
	}
	return f
}

// proposedLetters is the length of a word from which one wrong letter makes a proposal an edit.
const proposedLetters = 5

// propose adds the edit that writes near in place of a name, which is the key of a part or its
// value, where the name can hardly be anything but near with a slip.
func (f *finding) propose(at config.Part, name, near string) *finding {
	if !spelling.IsSlip(name, near, proposedLetters) {
		return f
	}
	part := at.Where()
	switch {
	case part.Key() == name:
		f.Edits = []diag.Edit{{Kind: diag.RenameField, Pos: part.KeyPos(), Text: diag.Label(near)}}
	case part.Node() != nil && part.Node().Text == name:
		f.Edits = []diag.Edit{{Kind: diag.ReplaceText, Pos: part.Pos(), Text: strconv.Quote(near)}}
	}
	return f
}

// nameFact writes the name of the fact that a finding is about where the document of a rule has
// its place.
func nameFact(see, name string) string {
	const command = "yoctune facts show "
	return strings.NewReplacer(command+"KEY", command+name, command+"NAME", command+name).Replace(see)
}

// reportAt raises the rule with the current value, and with help in place of the
// rule's unless it is "".
func (r *reporter) reportAt(part config.Part, got, help, format string, args ...any) *finding {
	f := r.raise(part, format, args...)
	f.Got, f.Help = got, cmp.Or(help, f.Help)
	return f
}

// reportKey raises the rule at the name of a part.
func (r *reporter) reportKey(part config.Part, help, format string, args ...any) *finding {
	f := r.raise(part, format, args...)
	f.Pos, f.Help = part.Where().KeyPos(), cmp.Or(help, f.Help)
	return f
}

// withValue sets the current value in the finding.
func (f *finding) withValue(text string) *finding {
	f.Got = text
	return f
}

// addRelated names a second part of the configuration that the finding is about.
func (f *finding) addRelated(part config.Part, message string) {
	f.Related = []diag.Related{{Pos: part.Where().Pos(), Message: message}}
}

// suggest proposes a field to add, beside the one that is up levels above the finding.
func (f *finding) suggest(field string, up int) {
	f.Help = "add " + field
	f.Edits = []diag.Edit{{Kind: diag.AddField, Pos: f.Pos, Up: up, Text: field}}
}

// cacheModels returns models, reading each file once.
func cacheModels(models Models) Models {
	if models == nil {
		return nil
	}
	type answer struct {
		model *onnx.Model
		err   error
	}
	known := map[string]answer{}
	return func(path string) (*onnx.Model, error) {
		a, ok := known[path]
		if !ok {
			a.model, a.err = models(path)
			known[path] = a
		}
		return a.model, a.err
	}
}

// Run applies every rule to every target of a project, except the rules that
// the project switches off. The book answers for the targets' kernels,
// models reads its models.
func Run(p *resolve.Project, report *diag.Report, book *forecast.Book, models Models) {
	rules := Rules()
	models = cacheModels(models)
	off := findSuppressed(p, rules, report)
	known := map[string]*sysctl.Fact{}
	for _, t := range p.Targets {
		f := &shared{explained: map[string]bool{}, kernel: kernelOf(t, book), sysctls: sysctlsOf(t, known), models: models, build: &p.Config.Build, lines: kernel.Around(t.Release.Kernel)}
		for _, last := range []bool{false, true} {
			for i := range rules {
				if r := &rules[i]; r.run != nil && r.last == last {
					r.apply(report, off, func(rep *reporter) {
						s := &subject{t, f, rep}
						r.run(s)
						s.doubtTables()
					})
				}
			}
		}
	}
	checkBuild(p, rules, off, report)
	checkWhole(p, rules, off, report)
	off.reportFirm(rules, report)
	reportSharedMachines(p, report)
}

// suppressed is the rules that a configuration switches off, by id.
type suppressed struct {
	by   map[string]resolve.Suppression
	used map[string]bool // firm rules that had a finding to switch off
}

func (s *suppressed) isSuppressed(id string) bool {
	_, off := s.by[id]
	return off
}

// findSuppressed reads the suppressions and reports those that name no rule.
func findSuppressed(p *resolve.Project, rules []Rule, report *diag.Report) *suppressed {
	off := &suppressed{map[string]resolve.Suppression{}, map[string]bool{}}
	ids := make([]string, 0, len(rules))
	for _, r := range rules {
		ids = append(ids, r.ID)
	}
	for _, s := range p.Suppress {
		if slices.Contains(ids, s.Rule) {
			off.by[s.Rule] = s
			continue
		}
		message := fmt.Sprintf("no rule is called %q", s.Rule)
		if strings.HasPrefix(s.Rule, "YT") {
			message = s.Rule + " is an error of the language and cannot be switched off"
		}
		d := describeSuppression(s, message)
		if !d.SuggestName(s.Rule, ids) {
			d.Help = diag.DidYouMean(s.Rule, ids)
		}
		report.Add(d)
	}
	return off
}

// reportFirm reports the suppressions of firm rules that switched nothing off.
func (s *suppressed) reportFirm(rules []Rule, report *diag.Report) {
	for _, r := range rules {
		if r.Firm && s.isSuppressed(r.ID) && !s.used[r.ID] {
			d := describeSuppression(s.by[r.ID], fmt.Sprintf("rule %q cannot be switched off", r.ID))
			d.Help = "it protects the device or the build host; see `yoctune explain " + r.ID + "`"
			report.Add(d)
		}
	}
}

func describeSuppression(s resolve.Suppression, message string) diag.Diagnostic {
	return diag.Diagnostic{ID: "YT0103", Severity: diag.Error, Pos: s.Pos, Path: load.PathOf("suppress", s.Rule), Message: message}
}

// reportSharedMachines reports targets that one layer cannot hold together. It is not a
// rule of one target, and each can still be built by itself.
func reportSharedMachines(p *resolve.Project, report *diag.Report) {
	first := map[[2]string]*resolve.Target{}
	for _, t := range p.Targets {
		k := [2]string{t.Release.Name, t.Machine}
		if other, taken := first[k]; taken && t.Machine != "" {
			report.Add(diag.Diagnostic{
				ID: SharedMachine, Severity: diag.Warning, Pos: t.Config.Machine.Pos(), Path: t.Config.Machine.FullPath(),
				Message: fmt.Sprintf("targets %s and %s of release %s have the same MACHINE %s", other.Name, t.Name, t.Release.Name, t.Machine),
				Related: []diag.Related{{Pos: other.Config.Machine.Pos(), Message: "the other target"}},
				Help:    "a layer holds one target a MACHINE: build them one at a time with --target",
			})
		}
		if _, taken := first[k]; !taken {
			first[k] = t
		}
	}
}

// SharedMachine is the id of the finding that two targets of a release have the
// same MACHINE: a warning to vet, an error when both are built into one layer.
const SharedMachine = "machine-shared"

// findConfig finds an option of the target's kernel configuration.
func (s *subject) findConfig(symbol string) (plan.ConfigOption, bool) {
	for _, o := range s.Kernel.Config {
		if o.Symbol == symbol {
			return o, true
		}
	}
	return plan.ConfigOption{}, false
}

func (s *subject) isEnabled(symbol string) bool {
	o, ok := s.findConfig(symbol)
	return ok && (o.Value == "y" || o.Value == "m")
}

func (s *subject) isDisabled(symbol string) bool {
	o, ok := s.findConfig(symbol)
	return ok && o.Value == "n"
}
