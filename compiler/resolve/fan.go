package resolve

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/schema/plan"
)

// degree is a degree Celsius in the plan's milli-degrees.
const degree = 1000

func (r *resolver) resolveFan() {
	f := &r.c.Fan
	if !f.IsSet() {
		return
	}
	fans := &plan.Fans{Fan: plan.Fan{Profile: f.Profile.Text, Governor: f.Governor.Text, Control: f.Control.Text}}
	device := fans.Fan
	for _, curve := range f.Curves.Sorted() {
		p := plan.FanProfile{Name: curve.Key(), Curve: ReadFanCurve(curve)}
		fans.Profiles = append(fans.Profiles, p)
		r.origins[curve.ID()] = curve.KeyPos()
		if p.Name == device.Profile {
			device.Curve = p.Curve
		}
	}
	for _, field := range []config.String{f.Profile, f.Governor, f.Control} {
		if field.IsSet() {
			r.origins[field.ID()] = field.Pos()
		}
	}
	r.origins["fan"] = f.Pos()
	r.t.Fan, r.plan.Fan = fans, &device
}

// ReadFanCurve returns the points of a fan's curve, by rising temperature.
func ReadFanCurve(curve *config.Map[config.FanPoint]) []plan.FanPoint {
	var out []plan.FanPoint
	for _, point := range curve.Entries {
		out = append(out, plan.FanPoint{
			Temp: ParseCelsius(point.Key()), PWM: point.PWM.Value, RPM: point.RPM.Value, Hysteresis: ParseCelsius(point.Hysteresis.Text),
		})
	}
	slices.SortStableFunc(out, func(a, b plan.FanPoint) int { return int(a.Temp - b.Temp) })
	return out
}

// ParseCelsius reads "60C" as milli-degrees; anything else is 0.
func ParseCelsius(s string) int64 {
	v, err := strconv.ParseInt(strings.TrimSuffix(s, "C"), 10, 64)
	if err != nil {
		return 0
	}
	return v * degree
}
