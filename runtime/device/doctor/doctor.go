// Package doctor checks a device. Each check has a measured value, a limit, a verdict and
// advice.
//
// The limits come from common checklists and troubleshooting tables for such devices. Checks
// that lack load, a plan or a sensor are skipped or unknown, and count neither as good nor
// as bad.
package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
	"github.com/yoctune/yoctune/schema/plan"
)

// Verdict is the result of a check.
type Verdict string

// Verdicts.
const (
	OK      Verdict = "ok"
	Warn    Verdict = "warn"    // it costs performance, or will
	Fail    Verdict = "fail"    // it is wrong
	Unknown Verdict = "unknown" // it could not be measured
	Skipped Verdict = "skipped" // not applicable to this device or load
)

// Finding is the result of a check, as reported.
type Finding struct {
	Type     string  `json:"type"` // "check"
	Check    string  `json:"check"`
	Title    string  `json:"title"`
	Verdict  Verdict `json:"verdict"`
	Measured string  `json:"measured"` // "" if unknown
	Limit    string  `json:"limit"`
	Advice   string  `json:"advice"` // may be ""
}

// check is one check.
type check struct {
	ID    string
	title string
	limit string
	judge func(*Input) answer
}

type answer struct {
	verdict  Verdict
	measured string
	advice   string
}

// Input is what checks examine.
type Input struct {
	Dev     rootfs.FS
	Plan    *plan.Plan // nil: none
	Refused string     // why the installed plan is refused
	Results []enforce.Result
	Watch   *watch.State // nil: no enforcer has run
	Modes   *nvpmodel.File
	Mode    string // in force, "" unknown
	Samples []*monitor.Sample
	Before  Counters
	After   Counters
	Units   map[string]rootfs.UnitState // of Services; nil: unknown

	Pipelines []pipelines.State // of the plan
}

// Examine runs all checks in order. A check that panics has verdict unknown.
func Examine(in *Input) []Finding {
	var out []Finding
	for _, c := range checks() {
		a := runCheck(c, in)
		if a.verdict == OK || a.verdict == Skipped {
			a.advice = ""
		}
		out = append(out, Finding{Type: "check", Check: c.ID, Title: c.title, Verdict: a.verdict, Measured: a.measured, Limit: c.limit, Advice: a.advice})
	}
	return out
}

func runCheck(c check, in *Input) (a answer) {
	defer func() {
		if cause := recover(); cause != nil {
			a = answer{Unknown, "", fmt.Sprintf("internal error: %v", cause)}
		}
	}()
	return c.judge(in)
}

// seconds returns the length of the observation.
func (in *Input) seconds() float64 { return (in.After.At - in.Before.At).Seconds() }

// rate returns the growth of a counter of vmstat per second, false if it is unknown.
func (in *Input) rate(name string) (float64, bool) {
	a, ok := in.Before.VM[name]
	b, ok2 := in.After.VM[name]
	if !ok || !ok2 || in.seconds() <= 0 || b < a {
		return 0, false
	}
	return float64(b-a) / in.seconds(), true
}

// readText returns the trimmed text of a node, "" if it cannot be read.
func (in *Input) readText(name string) string { return rootfs.ReadText(in.Dev, name) }

func (in *Input) lastSample() *monitor.Sample {
	if len(in.Samples) == 0 {
		return &monitor.Sample{}
	}
	return in.Samples[len(in.Samples)-1]
}

// averageOf returns the average of the known values in the samples, false if there are none.
func (in *Input) averageOf(of func(*monitor.Sample) *int64) (float64, bool) {
	sum, n := 0.0, 0
	for _, s := range in.Samples {
		if v := of(s); v != nil {
			sum += float64(*v)
			n++
		}
	}
	return sum / float64(max(n, 1)), n > 0
}

// hasSettings reports whether the plan has settings of a domain.
func (in *Input) hasSettings(domain string) bool {
	if in.Plan == nil {
		return false
	}
	return slices.ContainsFunc(in.Plan.Settings, func(s plan.Setting) bool { return s.Domain == domain })
}

// isolatedCores returns the cores that the running kernel isolates.
func (in *Input) isolatedCores() []int {
	list, err := cpulist.Parse(in.readText("/sys/devices/system/cpu/isolated"))
	if err != nil {
		return nil
	}
	return list
}

// selectedChoice returns the bracketed word of a list such as "always [madvise] never".
func selectedChoice(list string) string {
	_, rest, ok := strings.Cut(list, "[")
	word, _, ok2 := strings.Cut(rest, "]")
	if !ok || !ok2 {
		return strings.TrimSpace(list)
	}
	return word
}
