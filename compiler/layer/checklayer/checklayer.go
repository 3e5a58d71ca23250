// Package checklayer runs the user's own bitbake over a generated layer and reports
// which checks passed and what was not checked.
//
// A build of an image takes hours and needs NVIDIA's packages, but most faults of a layer
// show earlier. The quick mode masks all recipes except the layer's own and those that it
// appends to. Empty stand-in recipes replace their dependencies. bitbake's parser, its
// dependency resolution, its signatures, real tasks and oe-core's yocto-check-layer then run
// offline in about a minute. The full mode also parses and checks all recipes unmasked.
//
// Everything is written below one work folder. The layer is copied there first, so its own
// path may contain any character and an edit during the run has no effect. Checkouts are
// used in place and never written to.
package checklayer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrSetup reports that no check could be run: a missing checkout, host
// tool or permission. Test with errors.Is.
var ErrSetup = errors.New("the check could not be run")

// Options selects what to check, and with what. All paths may be relative.
type Options struct {
	Layer     string // the layer's folder
	Release   string // meta-tegra branch, e.g. "scarthgap-l4t-r35.x"
	Machine   string
	BitBake   string   // checkout of bitbake
	OECore    string   // checkout of openembedded-core (or poky)
	MetaTegra string   // "": for a layer that depends on openembedded-core only
	Extra     []string // further layers that the layer depends on
	WorkDir   string   // "": a temporary folder, removed again when all passed
	User      string   // account that runs bitbake if the caller is root, which bitbake refuses; "": nobody
	Full      bool
	Timeout   time.Duration // per step; 0: 15 minutes, 6 hours for the steps of Full
	Threads   int           // parser and task threads; 0: one per CPU
}

// Statuses of a step.
const (
	Pass    = "pass"
	Fail    = "fail"
	Skipped = "skipped"
)

// Step is the result of one check.
type Step struct {
	Name    string   `json:"name"`
	Subject string   `json:"subject,omitempty"` // recipe the step is about
	Status  string   `json:"status"`
	Seconds float64  `json:"seconds"`
	Reason  string   `json:"reason,omitempty"` // why skipped
	Log     string   `json:"log,omitempty"`    // bitbake's whole output
	Errors  []string `json:"errors,omitempty"` // the lines that matter
	Notes   []string `json:"notes,omitempty"`  // observations, and what was not checked
}

// Summary ends a run.
type Summary struct {
	Layer   string  `json:"layer"`
	Release string  `json:"release"`
	Machine string  `json:"machine"`
	Mode    string  `json:"mode"` // quick, full
	BitBake string  `json:"bitbake"`
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"`
	Skipped int     `json:"skipped"`
	Seconds float64 `json:"seconds"`
	WorkDir string  `json:"work_dir,omitempty"` // kept because it was given or a step failed
}

// Observer is called for each step. Either function may be nil.
type Observer struct {
	Started  func(name, subject string)
	Finished func(Step)
}

// Run checks the layer. The error wraps ErrSetup when nothing could be checked;
// failed checks are counted in the summary.
func Run(ctx context.Context, o Options, watch Observer) (Summary, error) {
	began := time.Now()
	rig, err := openRig(ctx, o)
	if err != nil {
		return Summary{}, err
	}
	defer rig.close()

	s := Summary{Layer: rig.layer.Collection, Release: o.Release, Machine: o.Machine, Mode: "quick", BitBake: rig.src.BitBakeVersion}
	if o.Full {
		s.Mode = "full"
	}
	r := &run{rig: rig, watch: watch, passed: map[string]bool{}, summary: &s}
	r.runSteps(ctx)
	err = rig.finish(ctx, &s, began)
	return s, err
}

// roundSeconds rounds to tenths of a second; further digits are noise.
func roundSeconds(d time.Duration) float64 {
	return float64(d.Round(100*time.Millisecond).Milliseconds()) / 1000
}

// run is one pass over the steps.
type run struct {
	rig     *rig
	watch   Observer
	passed  map[string]bool // by name
	summary *Summary
}

// outcome is the result of a step's function.
type outcome struct {
	errors []string
	notes  []string
	skip   string
}

func (r *run) runSteps(ctx context.Context) {
	quick := r.rig.stepTimeout(15 * time.Minute)
	r.runStep(ctx, "parse", "", quick, nil, r.rig.checkParse)
	r.runStep(ctx, "appends", "", quick, []string{"parse"}, r.rig.checkAppends)
	r.runStep(ctx, "dependencies", "", quick, []string{"parse"}, r.rig.checkDependencies)
	r.runStep(ctx, "variables", "", quick, []string{"dependencies"}, r.rig.checkVariables)
	for _, pn := range r.rig.layer.Recipes {
		r.runStep(ctx, "task package_qa", pn.Name, quick, []string{"dependencies"}, func(ctx context.Context, log string) outcome {
			return r.rig.checkPackaging(ctx, log, pn)
		})
		if r.passed["task package_qa "+pn.Name] {
			r.runStep(ctx, "installed files", pn.Name, quick, nil, func(ctx context.Context, log string) outcome {
				return r.rig.checkInstalledFiles(ctx, log, pn)
			})
		}
	}
	r.runStep(ctx, "yocto-check-layer", "", quick, []string{"parse"}, r.rig.runYoctoCheckLayer)
	r.runStep(ctx, "other machines", "", quick, []string{"parse"}, r.rig.checkOtherMachines)
	if !r.rig.opt.Full {
		return
	}
	long := r.rig.stepTimeout(6 * time.Hour)
	r.runStep(ctx, "full parse", "", long, []string{"parse"}, r.rig.checkFullParse)
	r.runStep(ctx, "full dependencies", "", long, []string{"full parse"}, r.rig.checkFullDependencies)
	r.runStep(ctx, "full yocto-check-layer", "", long, []string{"full parse"}, r.rig.runFullYoctoCheckLayer)
}

func (g *rig) stepTimeout(standard time.Duration) time.Duration {
	if g.opt.Timeout > 0 {
		return g.opt.Timeout
	}
	return standard
}

// runStep runs check as a step, unless one of the steps that it needs did not pass, and
// counts the result.
func (r *run) runStep(ctx context.Context, name, subject string, limit time.Duration, needs []string, check func(context.Context, string) outcome) {
	if ctx.Err() != nil {
		return
	}
	full := strings.TrimSpace(name + " " + subject)
	s := Step{Name: name, Subject: subject, Log: filepath.Join(r.rig.logs, strings.ReplaceAll(full, " ", "-")+".log")}
	began := time.Now()
	if i := slices.IndexFunc(needs, func(n string) bool { return !r.passed[n] }); i >= 0 {
		s.Status, s.Reason = Skipped, fmt.Sprintf("step %q did not pass", needs[i])
	} else {
		r.runCheck(ctx, &s, limit, check)
	}
	if ctx.Err() != nil {
		return // cancelled: an incomplete result is not reported
	}
	s.Seconds = roundSeconds(time.Since(began))
	if _, err := os.Stat(s.Log); errors.Is(err, fs.ErrNotExist) {
		s.Log = ""
	}
	switch s.Status {
	case Pass:
		r.passed[full] = true
		r.summary.Passed++
	case Fail:
		r.summary.Failed++
	case Skipped:
		r.summary.Skipped++
	}
	if r.watch.Finished != nil {
		r.watch.Finished(s)
	}
}

// runCheck runs check with a time limit and puts its outcome into s.
func (r *run) runCheck(ctx context.Context, s *Step, limit time.Duration, check func(context.Context, string) outcome) {
	if r.watch.Started != nil {
		r.watch.Started(s.Name, s.Subject)
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("took longer than %s", limit))
	defer cancel()
	o := check(limited, s.Log)
	if limited.Err() != nil && ctx.Err() == nil {
		o.errors = append([]string{context.Cause(limited).Error()}, o.errors...)
	}
	s.Errors, s.Notes = r.rig.restoreUserPaths(o.errors), r.rig.restoreUserPaths(o.notes)
	switch {
	case len(o.errors) > 0:
		s.Status = Fail
	case o.skip != "":
		s.Status, s.Reason = Skipped, o.skip
	default:
		s.Status = Pass
	}
}
