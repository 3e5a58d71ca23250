package resolve

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/plan"
)

// degree is a degree Celsius in the plan's milli-degrees.
const degree = 1000

func (r *resolver) fan() {
	n := r.n.Get("fan")
	if n == nil {
		return
	}
	fans := &plan.Fans{Fan: plan.Fan{Profile: text(n.Get("profile")), Governor: text(n.Get("governor")), Control: text(n.Get("control"))}}
	device := fans.Fan
	for _, f := range sortedFields(n.Get("curves")) {
		p := plan.FanProfile{Name: f.Name, Curve: Curve(f.Value)}
		fans.Profiles = append(fans.Profiles, p)
		r.origins["fan.curves."+f.Name] = f.Pos
		if f.Name == device.Profile {
			device.Curve = p.Curve
		}
	}
	for _, field := range []string{"profile", "governor", "control"} {
		if v := n.Get(field); v != nil {
			r.origins["fan."+field] = v.Pos
		}
	}
	r.origins["fan"] = n.Pos
	r.t.Fan, r.plan.Fan = fans, &device
}

// Curve reads the points of a fan's curve, by rising temperature.
func Curve(n *load.Node) []plan.FanPoint {
	var out []plan.FanPoint
	for _, f := range n.Members() {
		p := plan.FanPoint{Temp: Celsius(f.Name), PWM: int(integer(f.Value.Get("pwm"), 0)), RPM: int(integer(f.Value.Get("rpm"), 0))}
		if h := f.Value.Get("hysteresis"); h != nil {
			p.Hysteresis = Celsius(h.Text)
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b plan.FanPoint) int { return int(a.Temp - b.Temp) })
	return out
}

// Celsius reads "60C" as milli-degrees; the schema has checked its form.
func Celsius(s string) int64 {
	v, err := strconv.ParseInt(strings.TrimSuffix(s, "C"), 10, 64)
	if err != nil {
		return 0
	}
	return v * degree
}
