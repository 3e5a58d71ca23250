package kconfig

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/release"
)

// Outcome is the outcome of a request.
type Outcome string

// The outcomes.
const (
	Kept    Outcome = "kept"    // the kernel will have what was asked for
	Changed Outcome = "changed" // the kernel will have the symbol with another value
	Lost    Outcome = "lost"    // the kernel will not have it, and the build gives no warning
	Unknown Outcome = "unknown" // the facts are of a related tree, which does not have the symbol
)

// Prediction is the answer for one requested symbol.
type Prediction struct {
	Symbol  string  `json:"symbol"` // without CONFIG_
	Wanted  string  `json:"wanted"` // as written; n for "is not set"
	Got     *string `json:"got"`    // as in .config; nil when it has no line there
	Outcome Outcome `json:"outcome"`
	// Cause is the reason why the request fails; empty when it holds.
	Cause string `json:"cause"`
	// Note is a remark about a request that holds, for example that only a select
	// fulfils it.
	Note string `json:"note,omitempty"`
	// Fix lists the fewest lines that make the request hold when they are added,
	// verified by evaluating again. Empty if no such set was found.
	Fix []string `json:"fix,omitempty"`
	// Nearest lists existing symbols with a similar name.
	Nearest []string `json:"nearest,omitempty"`
	File    string   `json:"file"`
	Line    int      `json:"line"`

	fix []Line
}

// Effect is a change to a symbol that was not requested.
type Effect struct {
	Symbol string `json:"symbol"`
	Before string `json:"before"`
	After  string `json:"after"` // empty: no line in .config
	Cause  string `json:"cause"`
}

// Report is the answer for a set of fragments.
type Report struct {
	Predictions []Prediction
	Effects     []Effect
	// Fix joins the fixes of all predictions; FixKept is how many of the
	// predictions hold with it, by evaluation.
	Fix     []Line
	FixKept int
	// Result is the whole evaluated configuration.
	Result *Result
}

// AllKept reports whether every request holds.
func (r *Report) AllKept() bool {
	return !slices.ContainsFunc(r.Predictions, func(p Prediction) bool { return p.Outcome != Kept })
}

// Facts are a kernel to predict for: its symbols, the configuration it starts
// from, and how far they may be trusted. They are immutable.
type Facts struct {
	*Kernel
	Base *Config
	Set  kernel.Set
}

// Open returns the facts of an embedded kernel, by its name such as "5.15". It
// takes tens of milliseconds; keep the result. The error is [kernel.ErrUnknown].
func Open(name string) (*Facts, error) {
	t, base, err := kernel.Open(name)
	if err != nil {
		return nil, err
	}
	set, _ := kernel.Find(name)
	return &Facts{Kernel: Prepare(t), Base: BaseConfig(set.Base, base), Set: set}, nil
}

// ForRelease returns the facts of the kernel that a meta-tegra branch builds.
// The error is [kernel.ErrUnknown] for a branch without.
func ForRelease(branch string) (*Facts, error) {
	r, _ := release.Lookup(branch)
	return Open(r.Kernel)
}

// FromTree returns facts for a tree of the user's own.
func FromTree(t *kernel.Tree, base *Config) *Facts {
	return &Facts{Kernel: Prepare(t), Base: base, Set: kernel.Set{Name: t.Name, Release: t.Release, Source: "the kernel source that was indexed"}}
}

// PredictFragments merges fragments over the base in order, evaluates, and
// explains.
func (f *Facts) PredictFragments(fragments ...*Config) *Report {
	merged := Merge(f.Base, fragments...)
	a := &analysis{f: f, cfg: merged, r: f.Evaluate(merged), base: f.prepareEvaluation(f.Base), last: map[string]int{}, requested: map[string]string{}}
	for i, l := range merged.Lines {
		a.last[l.Symbol] = i
	}
	order := requestedOrder(fragments)
	for _, l := range order {
		a.requested[l.Symbol] = l.Value
	}
	a.findMissing(order)
	rep := &Report{Result: a.r}
	for _, l := range order {
		rep.Predictions = append(rep.Predictions, a.predict(l))
	}
	rep.Effects = a.effects()
	a.joinFixes(rep)
	return rep
}

// joinFixes merges the fixes, each symbol once, and counts the requests that the kernel grants with all of them.
func (a *analysis) joinFixes(rep *Report) {
	seen := map[string]bool{}
	for _, p := range rep.Predictions {
		for _, l := range p.fix {
			if !seen[l.Symbol] {
				seen[l.Symbol] = true
				rep.Fix = append(rep.Fix, l)
			}
		}
	}
	r := a.r
	wanted := a.requested
	if len(rep.Fix) > 0 {
		r = a.f.Evaluate(Merge(a.cfg, &Config{Lines: rep.Fix}))
		wanted = maps.Clone(a.requested)
		for _, l := range rep.Fix { // a corrected spelling replaces the request
			if _, requested := wanted[l.Symbol]; requested {
				wanted[l.Symbol] = l.Value
			}
		}
	}
	for name, v := range wanted {
		if i, ok := a.f.Lookup(name); ok && a.holds(r, i, v) || !ok && v == "n" {
			rep.FixKept++
		}
	}
}

// requestedOrder lists the last line for each symbol, in the order in which the
// symbols are first mentioned.
func requestedOrder(fragments []*Config) []Line {
	var order []Line
	at := map[string]int{}
	for _, f := range fragments {
		for _, l := range f.Lines {
			if i, ok := at[l.Symbol]; ok {
				order[i] = l
				continue
			}
			at[l.Symbol] = len(order)
			order = append(order, l)
		}
	}
	return order
}

// analysis is one evaluated merge that is being explained.
type analysis struct {
	f         *Facts
	cfg       *Config
	r         *Result
	base      *Result           // of the base configuration alone, as far as it was asked for
	last      map[string]int    // a symbol's last line in cfg
	requested map[string]string // by the fragments
	elsewhere map[string][]string
	searches  int // for similar names
	work      int // symbols evaluated in search of fixes
}

// A fragment of a hundred thousand lines gets an answer for each, but not help
// with each.
const (
	maxNearest = 100
	maxFixWork = 2_000_000
)

// findMissing looks up, once for all, in which other kernels the symbols exist
// that this one does not have.
func (a *analysis) findMissing(order []Line) {
	var missing []string
	for _, l := range order {
		if _, ok := a.f.Lookup(l.Symbol); !ok {
			missing = append(missing, l.Symbol)
		}
	}
	if len(missing) > 0 {
		// An error here could only be a damaged program; the answer is then
		// less rich, not wrong.
		a.elsewhere, _ = kernel.FindPresence(missing...)
	}
}

func (a *analysis) predict(l Line) Prediction {
	p := Prediction{Symbol: l.Symbol, Wanted: l.Value, File: l.File, Line: l.Line}
	i, ok := a.f.Lookup(l.Symbol)
	if !ok {
		a.predictMissing(&p)
		return p
	}
	if v, present := a.r.get(i); present {
		p.Got = &v
	}
	if a.holds(a.r, i, l.Value) {
		p.Outcome = Kept
		p.Note = a.explainKept(i)
		return p
	}
	typ := a.f.Symbols[i].Type
	p.Outcome = Changed
	if p.Got == nil || typ.Logical() && *p.Got == "n" {
		p.Outcome = Lost
	}
	p.Cause = a.explainFailure(i, l)
	a.addRealtime(&p)
	p.fix = a.fix(i, l)
	for _, f := range p.fix {
		p.Fix = append(p.Fix, f.String())
	}
	return p
}

// String formats the line as in a fragment.
func (l Line) String() string {
	if l.Value == "n" {
		return "# CONFIG_" + l.Symbol + " is not set"
	}
	return "CONFIG_" + l.Symbol + "=" + l.Value
}

// holds reports whether .config has the requested value. A missing line equals n; numbers
// and strings are compared by value.
func (a *analysis) holds(r *Result, i int32, wanted string) bool {
	got, present := r.get(i)
	typ := a.f.Symbols[i].Type
	if wanted == "n" && typ.Logical() {
		return !present || got == "n"
	}
	if !present {
		return false
	}
	if got == wanted {
		return true
	}
	v, problem := parseValue(typ, wanted)
	if problem != "" {
		return false
	}
	switch typ {
	case kernel.String:
		_, rest, _ := unquote(wanted)
		return got == quote(v) && strings.TrimSpace(rest) == ""
	case kernel.Hex:
		return strings.EqualFold(trimHex(got), trimHex(v))
	case kernel.Bool, kernel.Tristate:
		return got == v && wanted != "" && validTri(wanted)
	}
	return got == v
}

// validTri is stricter than the kernel, which looks only at the first letter and accepts
// "yes".
func validTri(s string) bool { return s == "y" || s == "m" || s == "n" }

func (a *analysis) predictMissing(p *Prediction) {
	p.Outcome = Lost
	if p.Wanted == "n" {
		p.Outcome = Kept
		p.Note = "no such symbol in " + a.f.Set.Name + ": the line has no effect"
		return
	}
	in := a.elsewhere[p.Symbol]
	release := a.f.Set.Release
	if a.searches++; a.searches <= maxNearest {
		p.Nearest = nearestSymbols(a.f.Kernel, p.Symbol)
	}
	p.Cause = "no such symbol in " + a.f.Set.Name
	switch {
	case len(in) == 0:
		if a.f.Set.Exactness != kernel.Exact {
			p.Outcome = Unknown
			p.Cause += "; " + a.f.Set.Caveat
		}
	case isOlderKernel(in[len(in)-1], release):
		p.Cause += ": it was removed after " + in[len(in)-1]
	case isOlderKernel(release, in[0]):
		p.Cause += ": it exists from " + in[0] + " on"
	default:
		p.Cause += "; it exists in " + strings.Join(in, ", ")
	}
	a.addRealtime(p)
	if len(p.Nearest) > 0 {
		p.Cause += "; similar names: " + strings.Join(p.Nearest, ", ")
	}
}

// addRealtime appends the kernel's own explanation for a lost PREEMPT_RT.
func (a *analysis) addRealtime(p *Prediction) {
	if p.Symbol == "PREEMPT_RT" && a.f.Set.Realtime != "" {
		p.Cause += "; " + a.f.Set.Realtime
	}
}

// isOlderKernel compares kernels by the version that their names start with.
func isOlderKernel(a, b string) bool {
	x, y := versionOf(a), versionOf(b)
	return x.isBefore(y.major, y.minor)
}

func versionOf(name string) version {
	parts := strings.SplitN(name+".", ".", 3)
	var v version
	v.major, _ = strconv.Atoi(parts[0])
	v.minor, _ = strconv.Atoi(parts[1])
	return v
}
