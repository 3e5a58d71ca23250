package enforce

import (
	"errors"
	"fmt"
	"strings"

	"github.com/yoctune/yoctune/schema/formats/nvpmodel"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// powerResults compares the power modes that the plan's layer defines with the installed
// ones, which only a new image changes.
func powerResults(dev rootfs.FS, p *plan.Power) []Result {
	if p == nil || isHeld(p) {
		return nil // the modes of the plan are the modes
	}
	config, err := power.Read(dev)
	if err == nil && config == nil {
		err = fmt.Errorf("no %s: this system has no power modes", power.ConfigFile)
	}
	var out []Result
	for _, m := range p.Modes {
		r := Result{ID: "power.modes." + m.Name, Path: power.ConfigFile, Wanted: m.Name}
		if err != nil {
			r.Outcome, r.Message = outcome.Unsupported, err.Error()
		} else {
			r.Outcome, r.Found, r.Message = compareMode(m, config.Mode(m.Name))
			r.Known = r.Found != ""
		}
		out = append(out, r)
	}
	return out
}

// defaultResults returns the results of the wanted mode: those of m, whose lines were
// judged, or of err, the reason why there is none.
func defaultResults(dev rootfs.FS, p *plan.Power, m *mode, err error) []Result {
	switch {
	case p == nil || p.Default == "" && m == nil:
		return nil
	case m != nil:
		return append([]Result{modeResult(dev, p, m)}, m.failedLines()...)
	}
	r := Result{ID: modeID, Path: power.StatusFile, Wanted: p.Default, Outcome: outcome.Unsupported, Message: err.Error()}
	if config, cerr := power.Read(dev); cerr == nil && config != nil {
		if id, cerr := power.Current(dev, config); cerr == nil {
			r.Found, r.Known = config.ModeName(id), true
		}
	}
	if errors.Is(err, errNoMode) {
		r.Outcome, r.Excused = outcome.Pending, false
	}
	return []Result{r}
}

// compareMode compares a mode of the plan with the installed one.
func compareMode(want plan.PowerMode, have *nvpmodel.Mode) (outcome.Outcome, string, string) {
	const image = ": needs an image built from this plan's layer"
	if have == nil {
		return outcome.Pending, "", power.ConfigFile + " does not define " + want.Name + image
	}
	if have.ID != want.ID {
		return outcome.Pending, have.Name, fmt.Sprintf("%s has id %d in %s, the plan has %d%s", want.Name, have.ID, power.ConfigFile, want.ID, image)
	}
	installed := map[string]string{}
	for _, p := range have.Settings {
		installed[p.Param+" "+p.Arg] = p.Value
	}
	var diff []string
	for _, p := range want.Params {
		key := p.Param + " " + p.Arg
		v, ok := installed[key]
		delete(installed, key)
		if !ok {
			diff = append(diff, key+" is missing")
		} else if v != p.Value {
			diff = append(diff, fmt.Sprintf("%s is %s, wanted %s", key, v, p.Value))
		}
	}
	for _, p := range have.Settings {
		if _, extra := installed[p.Param+" "+p.Arg]; extra {
			diff = append(diff, p.Param+" "+p.Arg+" is not in the plan")
		}
	}
	if len(diff) > 0 {
		return outcome.Pending, have.Name, strings.Join(diff, "; ") + image
	}
	return outcome.OK, have.Name, ""
}
