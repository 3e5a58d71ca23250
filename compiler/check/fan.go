package check

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
)

func fanRules() []Rule {
	return []Rule{
		{
			ID: "fan-profile", Severity: diag.Error,
			Title: "the fan has no such profile",
			Cause: "nvfancontrol does not start with a profile that its file lacks, and the fan stays as the boot loader left it. L4T R32 has no nvfancontrol: its nvpmodel supports the profiles quiet and cool, and no other fan settings.",
			Fix:   "choose a profile of the BSP, or add it under fan.curves",
			Wrong: `fan: profile: "silent"`, Right: `fan: {profile: "silent", curves: silent: {"50C": pwm: 0, "95C": pwm: 255}}`,
			See: "nvfancontrol.conf of the BSP",
			run: checkFanProfile,
		},
		{
			ID: "fan-curve", Severity: diag.Error,
			Title: "invalid fan curve",
			Cause: "A hotter chip needs at least as much air. Some files of the BSP count temperature as the margin below a limit, so a curve copied from one slows the fan down as the chip heats up. Here temperatures are the chip's own. A point above the limit is never reached.",
			Fix:   "let the pulse width rise with the temperature, from at least two points up to the limit",
			Wrong: `fan: {profile: "lab", curves: lab: {"10C": pwm: 255, "70C": pwm: 0}}`, Right: `fan: {profile: "lab", curves: lab: {"35C": pwm: 0, "95C": pwm: 255}}`,
			See: "nvfancontrol.conf: TMARGIN, GROUP_MAX_TEMP",
			run: checkFanCurve,
		},
		{
			ID: "fan-full", Severity: diag.Warning,
			Title: "the fan never reaches full speed",
			Cause: "The end of the curve applies up to the temperature at which the chip throttles and then switches off. Below full speed, cooling is left unused.",
			Fix:   "end the curve with pwm: 255",
			Wrong: `fan: {profile: "lab", curves: lab: {"35C": pwm: 0, "95C": pwm: 180}}`, Right: `fan: {profile: "lab", curves: lab: {"35C": pwm: 0, "95C": pwm: 255}}`,
			See: "nvfancontrol.conf of the BSP: each stock table begins at 255",
			run: checkFanFull,
		},
		{
			ID: "fan-owner", Severity: diag.Error,
			Title: "the fan has two owners",
			Cause: "nvfancontrol writes the pulse width every other second. jtop, jetson_clocks --fan and custom scripts write the same file. The fan then alternates between them.",
			Fix:   "keep nvfancontrol, with a curve under fan.curves, and remove the other",
			Wrong: `{fan: profile: "cool", services: "fan.service": exec: ["/usr/bin/jetson_clocks", "--fan"]}`, Right: `fan: profile: "cool"`,
			See: "/sys/class/hwmon/*/pwm1",
			run: checkFanOwner,
		},
		{
			ID: "fan-policy", Severity: diag.Warning,
			Title: "an unlimited power mode without a fan profile",
			Cause: "The BSP's default profile suits its own default mode. Many BSPs ship the quiet profile, with which an unlimited mode heats up until it throttles.",
			Fix:   `set the fan profile: fan: profile: "cool"`,
			Wrong: `power: default: "MAXN_SUPER"`, Right: `{power: default: "MAXN_SUPER", fan: profile: "cool"}`,
			See: "nvfancontrol.conf: FAN_DEFAULT_PROFILE",
			run: checkFanPolicy,
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

func checkFanProfile(s *subject) {
	fan := &s.Config.Fan
	own := fan.Curves.Keys()
	if s.Release.Line() == "R32" {
		for _, part := range []config.Place{fan.Curves.Place, fan.Governor.Place, fan.Control.Place} {
			if part.IsSet() {
				s.reportAt(part, "", "L4T R32 has fan.profile only: \"quiet\" or \"cool\"", "release %s has no nvfancontrol to configure", s.Release.Name)
			}
		}
		own = nil
	}
	p := fan.Profile
	known := append(slices.Clone(s.stockFans()), own...)
	if !p.IsSet() || slices.Contains(known, p.Text) {
		return
	}
	slices.Sort(known)
	help := "it has " + strings.Join(known, ", ")
	if near := diag.Nearest(p.Text, known); near != "" {
		help = fmt.Sprintf("did you mean %q? ", near) + help
	}
	s.refuse(s.boardFact("fan", "fan profiles"), p, p.Show(), help, "the fan of %s has no profile %s", s.Board.ID, p.Text)
}

// fanLimit is the temperature at which the stock tables end, in degrees; for a board
// without facts of its own file, the limit that every file read so far has.
func (s *subject) fanLimit() int64 {
	if s.Board.Fan != nil && s.Board.Fan.MaxTemp > 0 {
		return int64(s.Board.Fan.MaxTemp)
	}
	return 105
}

func checkFanCurve(s *subject) {
	for _, curve := range s.Config.Fan.Curves.Entries {
		points := resolve.ReadFanCurve(curve)
		if len(points) < 2 {
			s.reportAt(curve, "", "", "curve %s has %d points, and needs at least two", curve.Key(), len(points))
			continue
		}
		for i, p := range points {
			at := curve.Entries[slices.IndexFunc(curve.Entries, func(e *config.FanPoint) bool { return resolve.ParseCelsius(e.Key()) == p.Temp })]
			switch {
			case p.Temp > s.fanLimit()*1000:
				s.refuse(s.boardFact("fan", "fan table"), at, at.Key(), "", "the point is above %d C, where the chip's table ends", s.fanLimit())
			case i > 0 && p.Temp == points[i-1].Temp:
				s.reportAt(at, at.Key(), "", "two points of curve %s have one temperature", curve.Key())
			case i > 0 && p.PWM < points[i-1].PWM:
				s.reportAt(at, fmt.Sprintf("%d after %d", p.PWM, points[i-1].PWM), "", "the fan of curve %s slows down as the chip gets hotter", curve.Key())
			}
		}
	}
}

func checkFanFull(s *subject) {
	for _, curve := range s.Config.Fan.Curves.Entries {
		points := resolve.ReadFanCurve(curve)
		if len(points) < 2 {
			continue
		}
		first, last := points[0], points[len(points)-1]
		if last.PWM < 255 && last.PWM >= first.PWM {
			s.reportAt(curve, strconv.Itoa(last.PWM), "", "curve %s ends at %d of 255", curve.Key(), last.PWM)
		}
	}
}

// findFanTool finds the word of a command that controls the fan.
func findFanTool(exec config.List[config.String]) (config.String, bool) {
	clocks := false
	for i, w := range exec.Items {
		for field := range strings.FieldsFuncSeq(w.Text, func(r rune) bool { return strings.ContainsRune(" \t;&|\"'>", r) }) {
			base := path.Base(field)
			switch {
			case i == 0 && (base == "jtop" || base == "fancontrol"), strings.HasPrefix(base, "jetson_fan"), strings.HasPrefix(base, "jetson-fan"),
				base == "target_pwm", base == "pwm1" && strings.Contains(field, "hwmon"), field == "--fan" && clocks:
				return w, true
			case strings.HasPrefix(base, "jetson_clocks"):
				clocks = true
			}
		}
	}
	return config.String{}, false
}

func checkFanOwner(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		for _, c := range commandsOf(svc) {
			if w, ok := findFanTool(c.List); ok {
				s.reportFanOwner(w, "service %s is a second owner of the fan", svc.Key())
			}
		}
	}
	if !s.Config.Fan.IsSet() {
		return
	}
	packages := &s.Config.Packages
	for _, name := range []string{"python3-jetson-stats", "jetson-stats"} {
		if p := packages.Get(name); p.Text == "install" {
			s.reportFanOwner(p.String, "jtop can set the fan speed, and then stops nvfancontrol")
		}
	}
	for _, name := range fanPackages() {
		if p := packages.Get(name); p.Text == "exclude" {
			s.reportFanOwner(p.String, "fan is set, and the image leaves out what controls the fan")
		}
	}
}

// fanPackages are the names of nvfancontrol's package.
func fanPackages() []string { return []string{"tegra-nvfancontrol", "nvfancontrol"} }

// reportFanOwner reports what competes with the fan's owner.
func (s *subject) reportFanOwner(other config.String, format string, args ...any) {
	d := s.raise(other, format, args...).withValue(other.Show())
	if fan := &s.Config.Fan; fan.IsSet() {
		d.addRelated(fan, "the owner of the fan")
	}
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

func checkFanPolicy(s *subject) {
	mode := s.Config.Power.Default
	if !mode.IsSet() || s.Config.Fan.IsSet() || s.Board.Fan == nil || s.stockDefault() == mode.Text {
		return
	}
	if s.Config.Power.Modes.Has(mode.Text) {
		return // its limits are its author's
	}
	if _, ok := s.Stock.Mode(mode.Text); !ok || !strings.HasPrefix(mode.Text, "MAXN") {
		return // power-default reports a mode that does not exist
	}
	what := ""
	if s.Board.Fan.Default != "" {
		what = ", whose BSP starts with profile " + s.Board.Fan.Default
	}
	s.reportAt(mode, mode.Show(), "", "mode %s has no limit, and no fan profile is set for %s%s", mode.Text, s.Board.ID, what)
}
