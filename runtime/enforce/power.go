package enforce

import (
	"fmt"
	"strings"

	"github.com/yoctune/yoctune/runtime/device"
	"github.com/yoctune/yoctune/runtime/knob"
	"github.com/yoctune/yoctune/runtime/power"
	"github.com/yoctune/yoctune/schema/plan"
)

// powerResults compares the power modes with the plan. Switching is nvpmodel's:
// it knows the order, and which modes need a reboot.
func powerResults(dev device.FS, p *plan.Power) []Result {
	if p == nil {
		return nil
	}
	config, err := power.Read(dev)
	if err == nil && config == nil {
		err = fmt.Errorf("no %s: this system has no power modes", power.ConfigFile)
	}
	var out []Result
	for _, m := range p.Modes {
		r := Result{ID: "power.modes." + m.Name, Path: power.ConfigFile, Wanted: m.Name}
		if err != nil {
			r.Outcome, r.Message = knob.Unsupported, err.Error()
		} else {
			r.Outcome, r.Found, r.Message = compareMode(m, config.Mode(m.Name))
			r.Known = r.Found != ""
		}
		out = append(out, r)
	}
	if p.Default == "" {
		return out
	}
	r := Result{ID: "power.default", Path: power.StatusFile, Wanted: p.Default}
	id := 0
	if err == nil {
		id, err = power.Current(dev, config)
	}
	if err != nil {
		r.Outcome, r.Message = knob.Unsupported, err.Error()
		return append(out, r)
	}
	r.Found, r.Known = config.Name(id), true
	if r.Found == "" {
		r.Found = fmt.Sprintf("mode %d", id)
	}
	wanted := config.Mode(p.Default)
	switch {
	case r.Found == p.Default:
		r.Outcome = knob.OK
	case wanted == nil:
		r.Outcome = knob.Pending
		r.Message = fmt.Sprintf("%s does not define %s: needs an image built from this plan's layer", power.ConfigFile, p.Default)
	default:
		r.Outcome = knob.Pending
		r.Message = fmt.Sprintf("power mode is %s; this program does not switch modes: run `nvpmodel -m %d`", r.Found, wanted.ID)
	}
	return append(out, r)
}

// compareMode compares one authored mode with the installed one.
func compareMode(want plan.PowerMode, have *power.Mode) (knob.Outcome, string, string) {
	const image = ": needs an image built from this plan's layer"
	if have == nil {
		return knob.Pending, "", power.ConfigFile + " does not define " + want.Name + image
	}
	if have.ID != want.ID {
		return knob.Pending, have.Name, fmt.Sprintf("%s has id %d in %s, the plan has %d%s", want.Name, have.ID, power.ConfigFile, want.ID, image)
	}
	installed := map[string]string{}
	for _, p := range have.Params {
		installed[p.Name+" "+p.Arg] = p.Value
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
	for _, p := range have.Params {
		if _, extra := installed[p.Name+" "+p.Arg]; extra {
			diff = append(diff, p.Name+" "+p.Arg+" is not in the plan")
		}
	}
	if len(diff) > 0 {
		return knob.Pending, have.Name, strings.Join(diff, "; ") + image
	}
	return knob.OK, have.Name, ""
}
