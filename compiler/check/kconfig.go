package check

import (
	"fmt"
	"iter"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/kconfig"
	"github.com/yoctune/yoctune/compiler/kconfig/forecast"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/plan"
)

// The rules of this file compare the requested kernel options with the result of
// evaluating the kernel's Kconfig. They run last, so that more specific rules report an
// option first.
func kconfigRules() []Rule {
	return []Rule{
		{
			ID: "kconfig-lost", Severity: diag.Error, last: true,
			Title: "the kernel drops a requested option",
			Cause: "kconfig drops a line whose option does not exist, is unavailable because a dependency is off, or has a value of the wrong type. The build continues without a message, and the device lacks the option.",
			Fix:   "add what the option needs, or remove the line",
			Wrong: `kernel: config: TCP_CONG_VEGAS: "y"`, Right: `kernel: config: {TCP_CONG_ADVANCED: "y", TCP_CONG_VEGAS: "y"}`,
			See: "yoctune kernel predict --help; scripts/kconfig/merge_config.sh",
			run: checkKconfigLost,
		},
		{
			ID: "kconfig-changed", Severity: diag.Error, last: true,
			Title: "the kernel changes the value of a requested option",
			Cause: "kconfig limits a value to what is allowed: y becomes m when a dependency is a module, and a number is cut to its range. It also raises an option that another one selects.",
			Fix:   "request the value that the kernel will have, or change what decides it",
			Wrong: `kernel: config: LOG_BUF_SHIFT: 99`, Right: `kernel: config: LOG_BUF_SHIFT: 18`,
			See: "yoctune kernel predict --help; Documentation/kbuild/kconfig-language.rst",
			run: checkKconfigChanged,
		},
		{
			ID: "kconfig-unknown", Severity: diag.Warning, last: true,
			Title: "no facts about an option of this kernel",
			Cause: "The facts of this kernel are those of the tree that it derives from, which lacks the option. The tree that is built may have it.",
			Fix:   "check the name, or index the kernel's own source: yoctune kernel index",
			Wrong: `{board: "agx-orin-64gb", release: "wrynose", kernel: config: TEGRA_NO_SUCH_DRIVER: "y"}`,
			Right: `{board: "agx-orin-64gb", release: "wrynose", kernel: config: PSI: "y"}`,
			See:   "yoctune kernel index --help",
			run:   checkKconfigUnknown,
		},
		{
			ID: "kconfig-selected", Severity: diag.Warning, last: true,
			Title: "an option without a prompt is set",
			Cause: "Only other options select it, and the line itself is ignored. The value holds only until what selects the option changes.",
			Fix:   "remove the line, and set what selects the option",
			Wrong: `kernel: config: NO_HZ_COMMON: "y"`, Right: `cpu: isolate: [4, 5]`,
			See: "Documentation/kbuild/kconfig-language.rst",
			run: checkKconfigSelected,
		},
		{
			ID: "kconfig-effect", Severity: diag.Warning, last: true,
			Title: "a request changes other options",
			Cause: "A line can switch off another member of its choice, or change what other options depend on or take as their default.",
			Fix:   "set the options that matter explicitly",
			Wrong: `kernel: config: PREEMPT_VOLUNTARY: "y"`, Right: `kernel: preempt: "voluntary"`,
			See: "yoctune kernel predict --help",
			run: checkKconfigEffect,
		},
	}
}

// kernelOf opens the kernel of a target; nil for a release without facts.
func kernelOf(t *resolve.Target, book *forecast.Book) *forecast.Kernel {
	requested := make([]kconfig.Line, 0, len(t.Kernel.Config))
	for _, o := range t.Kernel.Config {
		requested = append(requested, kconfig.Line{Symbol: o.Symbol, Value: lineValue(o)})
	}
	if own := t.Config.Kernel.Recipe; own.IsSet() {
		k, err := book.OpenUpstream(t.Release.Kernel, own.Text, requested)
		if err != nil {
			return nil
		}
		return k
	}
	k, err := book.Open(t.Release.Kernel, requested)
	if err != nil {
		return nil
	}
	return k
}

// Predictions returns the outcome of each kernel option that the target requests; nil for
// a release without kernel facts.
func Predictions(t *resolve.Target, book *forecast.Book) []kconfig.Prediction {
	k := kernelOf(t, book)
	if k == nil {
		return nil
	}
	return k.Predictions()
}

// ValueOf returns the value that an option will have in the target's kernel; known is false
// where the kernel has no such option.
func ValueOf(t *resolve.Target, book *forecast.Book, symbol string) (value string, known bool) {
	k := kernelOf(t, book)
	if k == nil {
		return "", false
	}
	return k.Value(symbol)
}

// lineValue is the right side of the option's line in the fragment.
func lineValue(o plan.ConfigOption) string {
	if !o.Quoted {
		return o.Value
	}
	line, err := quote.Kconfig(o.Symbol, o.Value, true)
	if err != nil {
		return o.Value // the emitter refuses it
	}
	_, v, _ := strings.Cut(line, "=")
	return v
}

// predictions yields the requested options with the outcome want, each with the scalar
// that requested it, except those already explained. The scalar is unset where another
// field implies the option.
func (s *subject) predictions(want kconfig.Outcome) iter.Seq2[kconfig.Prediction, *config.Scalar] {
	return func(yield func(kconfig.Prediction, *config.Scalar) bool) {
		if s.kernel == nil || len(s.Kernel.Config) == 0 {
			return
		}
		for _, p := range s.kernel.Predictions() {
			if p.Outcome != want || s.explained[p.Symbol] {
				continue
			}
			p.Cause, _, _ = strings.Cut(p.Cause, "; similar names: ") // the help has them
			if !yield(p, s.Config.Kernel.Config.Get(p.Symbol)) {
				return
			}
		}
	}
}

// kernelSeverity is the rule's where the facts are those of the tree that is
// built, and a warning where they are not.
func (s *subject) kernelSeverity() diag.Severity {
	if s.kernel != nil && !s.kernel.IsExact() {
		return diag.Warning
	}
	return s.rule.Severity
}

// reportMissed reports an option that will differ from the request.
func (s *subject) reportMissed(p kconfig.Prediction, requested *config.Scalar, format string, args ...any) {
	if !s.markExplained(p.Symbol) {
		return
	}
	d := s.raise(requested, format, args...)
	d.Severity = s.kernelSeverity()
	d.Expected = kconfig.Line{Symbol: p.Symbol, Value: p.Wanted}.String()
	d.Got = "not in .config"
	if p.Got != nil {
		d.Got = kconfig.Line{Symbol: p.Symbol, Value: *p.Got}.String()
	}
	if pos, ok := s.Origins["kernel.config."+p.Symbol]; ok && !requested.IsSet() {
		d.Pos = pos // of the field that implies the option
	}
	rival := s.findRival(p)
	switch {
	case s.hasRealtimeField(p):
		d.Help = "use kernel: preempt: \"rt\", which sets them, or add " + formatFields(p.Fix)
		if requested.IsSet() {
			d.Edits = makeEdits(requested, p)
		}
	case len(p.Fix) > 0:
		d.Help = "add " + formatFields(p.Fix)
		if l, _ := kconfig.ParseLine(p.Fix[0]); len(p.Fix) == 1 && l.Symbol == p.Symbol {
			d.Help = "write " + formatFields(p.Fix)
		}
		if requested.IsSet() {
			d.Edits = makeEdits(requested, p)
		}
	case rival != nil:
		d.Help = "keep one of " + p.Symbol + " and " + rival.Key()
		d.addRelated(rival, "the other member of the choice")
	case p.Got == nil && strings.HasPrefix(p.Cause, "no such symbol") && len(p.Nearest) == 0:
		d.Help = "check the name, or remove the line"
	case p.Got != nil && p.Outcome == kconfig.Changed:
		d.Help = "request " + formatField(d.Got) + ", or change what decides it"
	case len(p.Nearest) > 0:
		d.Help = "similar names: " + strings.Join(p.Nearest, ", ")
	}
	if s.kernel != nil && !s.kernel.IsExact() {
		d.See = s.kernel.Set.Caveat
	}
}

// findRival finds the option of the configuration that takes the place of another of
// its choice; nil when that is not why the other is lost.
func (s *subject) findRival(p kconfig.Prediction) *config.Scalar {
	rest, ok := strings.CutPrefix(p.Cause, "choice: the later line ")
	name, _, _ := strings.Cut(rest, " ")
	if !ok || !s.Config.Kernel.Config.Has(name) {
		return nil
	}
	return s.Config.Kernel.Config.Get(name)
}

// formatFields writes lines of a fragment as fields of the configuration.
func formatFields(lines []string) string {
	fields := make([]string, 0, len(lines))
	for _, l := range lines {
		fields = append(fields, formatField(l))
	}
	return strings.Join(fields, ", ")
}

// formatField writes a line of a fragment as a field under kernel.config.
func formatField(line string) string {
	l, _ := kconfig.ParseLine(line)
	value := l.Value
	if text, ok := strings.CutPrefix(value, `"`); ok {
		value = strings.TrimSuffix(text, `"`)
	}
	return fmt.Sprintf("%s: %q", l.Symbol, value)
}

// makeEdits makes edits of the lines that make a request hold: the request's own
// line is respelt, others are added beside it.
func makeEdits(requested *config.Scalar, p kconfig.Prediction) []diag.Edit {
	var edits []diag.Edit
	var more []string // one edit: each would put braces of its own around the field
	for _, text := range p.Fix {
		l, _ := kconfig.ParseLine(text)
		field := formatField(text)
		if l.Symbol == p.Symbol {
			_, value, _ := strings.Cut(field, ": ")
			edits = append(edits, diag.Edit{Kind: diag.ReplaceText, Pos: requested.Pos(), Text: value})
			continue
		}
		more = append(more, field)
	}
	if len(more) > 0 {
		edits = append(edits, diag.Edit{Kind: diag.AddField, Pos: requested.Pos(), Text: strings.Join(more, ", ")})
	}
	return edits
}

func checkKconfigLost(s *subject) {
	for p, requested := range s.predictions(kconfig.Lost) {
		if requested.IsSet() {
			s.reportMissed(p, requested, "%s=%s is dropped: %s%s", p.Symbol, p.Wanted, s.describeCause(p), s.describeFallback(p))
		} else {
			s.reportMissed(p, requested, "%s=%s, which this field needs, is dropped: %s", p.Symbol, p.Wanted, p.Cause)
		}
	}
}

// hasRealtimeField reports whether kernel.preempt sets what an option of the real-time kernel needs.
func (s *subject) hasRealtimeField(p kconfig.Prediction) bool {
	return p.Symbol == "PREEMPT_RT" && s.Release.RTByConfig && len(p.Fix) > 0 && !s.Config.Kernel.Recipe.IsSet()
}

// describeCause is why an option is lost, in short where a field sets all that it needs.
func (s *subject) describeCause(p kconfig.Prediction) string {
	if !s.hasRealtimeField(p) {
		return p.Cause
	}
	var needs []string
	for _, line := range p.Fix {
		if l, ok := kconfig.ParseLine(line); ok && l.Symbol != p.Symbol {
			needs = append(needs, l.Symbol+"="+l.Value)
		}
	}
	return "the kernel offers it only with " + strings.Join(needs, " and ")
}

// describeFallback describes what a lost member of a choice takes along: up to Linux
// 6.10 the whole choice falls back to its default.
func (s *subject) describeFallback(p kconfig.Prediction) string {
	if !strings.HasPrefix(p.Symbol, "PREEMPT") {
		return ""
	}
	for _, e := range s.kernel.Effects() {
		if rest, ok := strings.CutPrefix(e.Cause, "choice: the group "); ok && strings.HasPrefix(e.Symbol, "PREEMPT") {
			return "; with it goes " + e.Symbol + ": the choice " + rest
		}
	}
	return ""
}

func checkKconfigChanged(s *subject) {
	for p, requested := range s.predictions(kconfig.Changed) {
		s.reportMissed(p, requested, "%s will not be %s: %s", p.Symbol, p.Wanted, p.Cause)
	}
}

func checkKconfigUnknown(s *subject) {
	for p, requested := range s.predictions(kconfig.Unknown) {
		s.reportMissed(p, requested, "%s is not among the facts of kernel %s", p.Symbol, s.Release.Kernel)
	}
}

func checkKconfigSelected(s *subject) {
	for p, requested := range s.predictions(kconfig.Kept) {
		if p.Note == "" || !requested.IsSet() {
			continue
		}
		d := s.raise(requested, "the line for %s has no effect: %s", p.Symbol, p.Note)
		if strings.HasPrefix(p.Note, "no such symbol") {
			d.Severity, d.Help = diag.Info, "remove the line" // the kernel has the value without it
		}
	}
}

// maxNamed bounds how many side effects a message names.
const maxNamed = 8

func checkKconfigEffect(s *subject) {
	if s.kernel == nil || len(s.Kernel.Config) == 0 {
		return
	}
	var names []string
	first := ""
	for _, e := range s.kernel.Effects() {
		if s.isExpected(e) {
			continue
		}
		if first == "" {
			first = e.Symbol + " was " + e.Before + ": " + e.Cause
		}
		names = append(names, e.Symbol)
	}
	if len(names) == 0 {
		return
	}
	kernel := &s.Config.Kernel
	part, severity := kernel.Config.Place, s.rule.Severity
	if s.isRealtime() {
		// The effects come with the real-time kernel that kernel.preempt chooses.
		part, severity = kernel.Preempt.Place, diag.Info
	}
	if !part.IsSet() {
		return // all requests are implied by other fields
	}
	list := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	d := s.raise(part, "options change as a side effect: %s", list)
	d.Severity, d.Got = severity, first
	if len(names) == 1 {
		d.Message = "an option changes as a side effect: " + first
		d.Got = ""
		// Point at the option that replaces it, where the user can act.
		for _, o := range kernel.Config.Entries {
			if strings.Contains(first, "choice: "+o.Key()+" takes its place") {
				d.Pos, d.Path = o.Pos(), o.FullPath()
			}
		}
	}
}

// isRealtime reports whether kernel.preempt chooses a real-time kernel.
func (s *subject) isRealtime() bool { return s.Config.Kernel.Preempt.Text == "rt" }

// isExpected reports whether a side effect follows directly from a request, so that it needs no
// diagnostic.
func (s *subject) isExpected(e kconfig.Effect) bool {
	switch e.Symbol {
	case "NO_HZ_IDLE", "TICK_CPU_ACCOUNTING":
		return s.isEnabled("NO_HZ_FULL") // full dynticks replace both
	case "PREEMPT", "PREEMPT_VOLUNTARY", "PREEMPT_NONE":
		// kernel.preempt selects the model. Set as an option, a model can replace a more
		// preemptive one by mistake.
		return s.Config.Kernel.Preempt.IsSet() || strings.HasPrefix(e.Cause, "choice: the group falls back")
	}
	if e.Before == "m" && e.After == "y" || e.Before == "y" && e.After == "m" && strings.HasSuffix(e.Cause, " no longer selects it") {
		return true // the feature remains, built in or as a module
	}
	if strings.Contains(e.Cause, "which a requested line turns off") {
		return true // depends on an option that the user disabled
	}
	return strings.HasPrefix(e.Cause, "choice: ") && strings.HasSuffix(e.Cause, "takes its place")
}
