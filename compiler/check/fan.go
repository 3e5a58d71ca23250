package check

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/resolve"
)

func fanRules() []Rule {
	return []Rule{
		{
			ID: "fan-profile", Severity: diag.Error,
			Title: "the fan has no such profile",
			Cause: "nvfancontrol does not start with a profile that its file lacks, and the fan stays as the boot loader left it. L4T R32 has no nvfancontrol: nvpmodel knows quiet and cool there, and nothing else of the fan.",
			Fix:   "choose a profile of the BSP, or add it under fan.curves",
			Wrong: `fan: profile: "silent"`, Right: `fan: {profile: "silent", curves: silent: {"50C": pwm: 0, "95C": pwm: 255}}`,
			See: "nvfancontrol.conf of the BSP",
			run: fanProfile,
		},
		{
			ID: "fan-curve", Severity: diag.Error,
			Title: "the fan's curve leads astray",
			Cause: "A hotter chip needs at least as much air. Files of the BSP that count temperature as the margin below a limit read the other way round, so that a curve copied from one slows the fan down as the chip heats up; here temperatures are the chip's own. A point above the limit is never reached.",
			Fix:   "let the pulse width rise with the temperature, from at least two points up to the limit",
			Wrong: `fan: {profile: "lab", curves: lab: {"10C": pwm: 255, "70C": pwm: 0}}`, Right: `fan: {profile: "lab", curves: lab: {"35C": pwm: 0, "95C": pwm: 255}}`,
			See: "nvfancontrol.conf: TMARGIN, GROUP_MAX_TEMP",
			run: fanCurve,
		},
		{
			ID: "fan-full", Severity: diag.Warning,
			Title: "the fan never reaches full speed",
			Cause: "The end of the curve holds up to the temperature at which the chip throttles and then switches off; below full speed there is cooling left that is not used.",
			Fix:   "end the curve with pwm: 255",
			Wrong: `fan: {profile: "lab", curves: lab: {"35C": pwm: 0, "95C": pwm: 180}}`, Right: `fan: {profile: "lab", curves: lab: {"35C": pwm: 0, "95C": pwm: 255}}`,
			See: "nvfancontrol.conf of the BSP: each stock table begins at 255",
			run: fanFull,
		},
		{
			ID: "fan-owner", Severity: diag.Error,
			Title: "two owners of the fan",
			Cause: "nvfancontrol writes the pulse width every other second. jtop, jetson_clocks --fan and scripts of one's own write the same file: the fan hunts between them, and which one wins depends on timing.",
			Fix:   "keep nvfancontrol, with a curve under fan.curves, and remove the other",
			Wrong: `{fan: profile: "cool", services: "fan.service": exec: ["/usr/bin/jetson_clocks", "--fan"]}`, Right: `fan: profile: "cool"`,
			See: "/sys/class/hwmon/*/pwm1",
			run: fanOwner,
		},
		{
			ID: "fan-policy", Severity: diag.Warning,
			Title: "an unlimited power mode with the fan left to chance",
			Cause: "The BSP's default profile is chosen for its own default mode; many ship the quiet one, with which an unlimited mode heats up until it throttles.",
			Fix:   `say what the fan does: fan: profile: "cool"`,
			Wrong: `power: default: "MAXN_SUPER"`, Right: `{power: default: "MAXN_SUPER", fan: profile: "cool"}`,
			See: "nvfancontrol.conf: FAN_DEFAULT_PROFILE",
			run: fanPolicy,
		},
	}
}

// stockFans lists the profiles of the file that the BSP installs; nvpmodel of
// R32 and every file that was read have these two.
func (s *subject) stockFans() []string {
	if s.Board.Fan != nil && len(s.Board.Fan.Profiles) > 0 {
		return s.Board.Fan.Profiles
	}
	return []string{"cool", "quiet"}
}

func fanProfile(s *subject) {
	n := s.Node.Get("fan")
	curves := n.Get("curves")
	if s.Release.Line() == "R32" {
		for _, field := range []string{"curves", "governor", "control"} {
			if v := n.Get(field); v != nil {
				s.finding(v, at("fan", field), "", "L4T R32 knows fan.profile only: \"quiet\" or \"cool\"", "release %s has no nvfancontrol that could be told", s.Release.Name)
			}
		}
		curves = nil
	}
	p := n.Get("profile")
	if p == nil || curves.Get(p.Text) != nil {
		return
	}
	known := slices.Clone(s.stockFans())
	for _, f := range curves.Members() {
		known = append(known, f.Name)
	}
	slices.Sort(known)
	if slices.Contains(known, p.Text) {
		return
	}
	help := "it has " + strings.Join(known, ", ")
	if near := diag.Nearest(p.Text, known); near != "" {
		help = fmt.Sprintf("did you mean %q? ", near) + help
	}
	s.finding(p, at("fan", "profile"), p.Show(), help, "the fan of %s has no profile %s", s.Board.ID, p.Text)
}

// fanLimit is the temperature at which the stock tables end, in degrees; what
// every file that was read has where the board's own was not.
func (s *subject) fanLimit() int64 {
	if s.Board.Fan != nil && s.Board.Fan.MaxTemp > 0 {
		return int64(s.Board.Fan.MaxTemp)
	}
	return 105
}

func fanCurve(s *subject) {
	for _, f := range s.Node.At("fan", "curves").Members() {
		where := at("fan", "curves", f.Name)
		curve := resolve.Curve(f.Value)
		if len(curve) < 2 {
			s.finding(f.Value, where, "", "", "curve %s has %d points and goes nowhere", f.Name, len(curve))
			continue
		}
		point := func(milli int64) (*load.Node, string) {
			for _, p := range f.Value.Members() {
				if resolve.Celsius(p.Name) == milli {
					return p.Value, p.Name
				}
			}
			return f.Value, ""
		}
		for i, p := range curve {
			n, name := point(p.Temp)
			switch {
			case p.Temp > s.fanLimit()*1000:
				s.finding(n, append(where, name), name, "", "the point is above %d C, where the chip's table ends", s.fanLimit())
			case i > 0 && p.Temp == curve[i-1].Temp:
				s.finding(n, append(where, name), name, "", "two points of curve %s have one temperature", f.Name)
			case i > 0 && p.PWM < curve[i-1].PWM:
				s.finding(n, append(where, name), fmt.Sprintf("%d after %d", p.PWM, curve[i-1].PWM), "", "the fan of curve %s slows down as the chip gets hotter", f.Name)
			}
		}
	}
}

func fanFull(s *subject) {
	for _, f := range s.Node.At("fan", "curves").Members() {
		curve := resolve.Curve(f.Value)
		if len(curve) < 2 {
			continue
		}
		first, last := curve[0], curve[len(curve)-1]
		if last.PWM < 255 && last.PWM >= first.PWM {
			s.finding(f.Value, at("fan", "curves", f.Name), fmt.Sprint(last.PWM), "", "curve %s ends at %d of 255", f.Name, last.PWM)
		}
	}
}

// turnsFan finds the word of a command that takes the fan over.
func turnsFan(exec *load.Node) *load.Node {
	if exec == nil {
		return nil
	}
	clocks := false
	for i, w := range exec.Items {
		for field := range strings.FieldsFuncSeq(w.Text, func(r rune) bool { return strings.ContainsRune(" \t;&|\"'>", r) }) {
			base := path.Base(field)
			switch {
			case i == 0 && (base == "jtop" || base == "fancontrol"), strings.HasPrefix(base, "jetson_fan"), strings.HasPrefix(base, "jetson-fan"):
				return w
			case base == "target_pwm", base == "pwm1" && strings.Contains(field, "hwmon"):
				return w
			case strings.HasPrefix(base, "jetson_clocks"):
				clocks = true
			case field == "--fan" && clocks:
				return w
			}
		}
	}
	return nil
}

func fanOwner(s *subject) {
	mine := s.Node.Get("fan")
	for _, f := range s.Node.Get("services").Members() {
		if w := turnsFan(f.Value.Get("exec")); w != nil {
			s.second(mine, w, at("services", f.Name, "exec"), fmt.Sprintf("service %s is a second owner of the fan", f.Name))
		}
	}
	if mine == nil {
		return
	}
	for _, name := range []string{"python3-jetson-stats", "jetson-stats"} {
		if n := s.Node.At("packages", name); n != nil && n.Text == "install" {
			s.second(mine, n, at("packages", name), "jtop sets the fan as soon as somebody moves its slider, and stops nvfancontrol")
		}
	}
	for _, name := range []string{"tegra-nvfancontrol", "nvfancontrol"} {
		if n := s.Node.At("packages", name); n != nil && n.Text == "exclude" {
			s.second(mine, n, at("packages", name), "fan is set, and what turns the fan is kept out of the image")
		}
	}
}

// second reports what stands against the fan's owner.
func (s *subject) second(mine, other *load.Node, where []string, message string) {
	d := s.diagnostic(other, where, "%s", message)
	d.Got = other.Show()
	if mine != nil {
		d.Related = []diag.Related{{Pos: mine.Pos, Message: "the owner of the fan"}}
	}
	s.report.Add(d)
}

// stockDefault names the mode that the BSP starts in.
func (s *subject) stockDefault() string {
	for _, m := range s.Stock.Modes {
		if m.Default {
			return m.Name
		}
	}
	return ""
}

func fanPolicy(s *subject) {
	n := s.Node.At("power", "default")
	if n == nil || s.Node.Get("fan") != nil || s.Board.Fan == nil || s.stockDefault() == n.Text {
		return
	}
	from := n.Text
	if own := s.Node.At("power", "modes", n.Text, "from"); own != nil {
		return // its limits are its author's
	}
	if _, ok := s.Stock.Mode(from); !ok || !strings.HasPrefix(from, "MAXN") {
		return // power-default speaks of a mode that does not exist
	}
	what := ""
	if s.Board.Fan.Default != "" {
		what = ", whose BSP starts with profile " + s.Board.Fan.Default
	}
	s.finding(n, at("power", "default"), n.Show(), "", "mode %s has no limit, and nothing is said of the fan of %s%s", n.Text, s.Board.ID, what)
}
