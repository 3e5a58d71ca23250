// Package nvfancontrol parses nvfancontrol.conf, the file in which NVIDIA describes the
// fans of a Jetson board.
//
// The format has no published grammar; this one was gathered from the files that BSPs
// install:
//
//	file     = { line } { fan }
//	fan      = "<FAN" number ">" { margin | governor | profile | group | default | line }
//	margin   = "TMARGIN" ("ENABLED"|"DISABLED")
//	governor = "FAN_GOVERNOR" name "{" { line } "}"
//	profile  = "FAN_PROFILE" name "{" { temp hysteresis pwm rpm } "}"
//	group    = "THERMAL_GROUP" number "{" { "GROUP_MAX_TEMP" temp | line } "}"
//	default  = ("FAN_DEFAULT_PROFILE"|"FAN_DEFAULT_GOVERNOR"|"FAN_DEFAULT_CONTROL") word
//
// Temperatures are in degrees Celsius: those of the chip, or with TMARGIN ENABLED what is
// left to GROUP_MAX_TEMP. A "#" starts a comment.
package nvfancontrol

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind classifies a line.
type Kind int

// Kinds of lines.
const (
	Other    Kind = iota
	Blank         // empty, or a comment
	FanStart      // <FAN number>
	Margin        // TMARGIN; the value is ENABLED or another word
	MaxTemp       // GROUP_MAX_TEMP; Value is a number
	Governor      // FAN_GOVERNOR; Value is its name
	Profile       // FAN_PROFILE; Value is its name
	Default       // FAN_DEFAULT_Name; Value is its value
	Row           // a point of a profile
	End           // the end of a block
)

// Line is a parsed line.
type Line struct {
	Kind        Kind
	Name, Value string
	Point       Point
}

// Point is a point of a fan's curve.
type Point struct {
	Temp       int64 // degrees Celsius
	Hysteresis int64 // degrees Celsius
	PWM        int64 // 0 to 255
	RPM        int64
}

// maxNumber bounds the numbers of a point.
const maxNumber = 100_000

// ParseLine parses one line. A row has the same form in every block.
func ParseLine(text string) Line {
	text, _, _ = strings.Cut(text, "#")
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "<"); ok {
		inner, _, closed := strings.Cut(rest, ">")
		w := strings.Fields(inner)
		if closed && len(w) == 2 && w[0] == "FAN" && strings.Trim(w[1], "0123456789") == "" {
			return Line{Kind: FanStart, Value: w[1]}
		}
		return Line{}
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return Line{Kind: Blank}
	}
	if words[0] == "}" {
		return Line{Kind: End}
	}
	if len(words) > 1 {
		key, isDefault := strings.CutPrefix(words[0], "FAN_DEFAULT_")
		switch {
		case words[0] == "TMARGIN":
			return Line{Kind: Margin, Value: words[1]}
		case words[0] == "GROUP_MAX_TEMP":
			return Line{Kind: MaxTemp, Value: words[1]}
		case words[0] == "FAN_GOVERNOR":
			return Line{Kind: Governor, Value: words[1]}
		case words[0] == "FAN_PROFILE":
			return Line{Kind: Profile, Value: words[1]}
		case isDefault:
			return Line{Kind: Default, Name: key, Value: words[1]}
		}
	}
	if len(words) == 4 {
		var n [4]int64
		for i, w := range words {
			v, err := strconv.ParseInt(w, 10, 64)
			if err != nil || v < 0 || v > maxNumber {
				return Line{}
			}
			n[i] = v
		}
		return Line{Kind: Row, Point: Point{n[0], n[1], n[2], n[3]}}
	}
	return Line{}
}

// Fan is a FAN section.
type Fan struct {
	Margin    bool  // temperatures count down from MaxTemp
	MaxTemp   int64 // the highest GROUP_MAX_TEMP, degrees Celsius; 0 without one
	Governors []string
	Profiles  []Curve
	Defaults  map[string]string // by the key behind FAN_DEFAULT_: PROFILE, GOVERNOR, CONTROL
}

// Profile returns the curve of a name, or nil.
func (f *Fan) Profile(name string) *Curve {
	for i := range f.Profiles {
		if f.Profiles[i].Name == name {
			return &f.Profiles[i]
		}
	}
	return nil
}

// Curve is a FAN_PROFILE, its points in the order of the file.
type Curve struct {
	Name   string
	Points []Point
}

// Problem is a fault in a line.
type Problem struct {
	Line    int // from 1
	Message string
}

// Parse parses a file. Faulty lines are reported and skipped. A file without a FAN
// section is reported and parsed as if all of it belonged to one fan.
func Parse(text string) ([]Fan, []Problem) {
	p := &parser{}
	for raw := range strings.Lines(text) {
		p.line++
		raw = strings.TrimSuffix(strings.TrimSuffix(raw, "\n"), "\r")
		if !utf8.ValidString(raw) || strings.ContainsFunc(raw, isControl) {
			p.addFault("control characters")
			continue
		}
		p.add(ParseLine(raw))
	}
	p.close()
	if !p.started {
		p.line = 1
		p.addFault("no <FAN n> section")
	}
	return p.fans, p.problems
}

// isControl reports characters that do not belong in the file. Some programs end a line
// at them.
func isControl(r rune) bool {
	return r < ' ' && r != '\t' || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029'
}

type parser struct {
	fans     []Fan
	problems []Problem
	line     int
	started  bool // a FAN section has begun
	open     string
	openLine int
}

func (p *parser) addFault(format string, args ...any) {
	p.problems = append(p.problems, Problem{p.line, fmt.Sprintf(format, args...)})
}

// close ends the profile that is open at the end of a section.
func (p *parser) close() {
	if p.open != "" {
		p.problems = append(p.problems, Problem{p.openLine, fmt.Sprintf("profile %s has no end", p.open)})
	}
	p.open = ""
}

func (p *parser) add(l Line) {
	if l.Kind == Blank {
		return
	}
	if l.Kind == FanStart {
		p.close()
		if !p.started {
			p.fans, p.started = nil, true // the lines before it belong to no fan
		}
		p.fans = append(p.fans, Fan{})
		return
	}
	if len(p.fans) == 0 {
		p.fans = append(p.fans, Fan{})
	}
	fan := &p.fans[len(p.fans)-1]
	if p.open != "" && l.Kind != Row && l.Kind != End {
		p.addFault("a point of profile %s is TEMP HYST PWM RPM", p.open)
	}
	switch l.Kind {
	case Margin:
		fan.Margin = l.Value == "ENABLED"
	case MaxTemp:
		n, err := strconv.ParseInt(l.Value, 10, 64)
		if err != nil || n < 1 || n > maxNumber {
			p.addFault("GROUP_MAX_TEMP %s is not a temperature", l.Value)
			return
		}
		fan.MaxTemp = max(fan.MaxTemp, n)
	case Governor:
		if !slices.Contains(fan.Governors, l.Value) {
			fan.Governors = append(fan.Governors, l.Value)
		}
	case Profile:
		p.close()
		switch {
		case !IsName(l.Value):
			p.addFault("%q is not the name of a profile", l.Value)
		case fan.Profile(l.Value) != nil:
			p.addFault("profile %s is defined a second time", l.Value)
		default:
			p.open, p.openLine = l.Value, p.line
			fan.Profiles = append(fan.Profiles, Curve{Name: l.Value})
		}
	case Default:
		if fan.Defaults == nil {
			fan.Defaults = map[string]string{}
		}
		fan.Defaults[l.Name] = l.Value
	case Row:
		if p.open != "" {
			curve := &fan.Profiles[len(fan.Profiles)-1]
			curve.Points = append(curve.Points, l.Point)
		}
	case End:
		p.open = ""
	}
}

// IsName reports whether a profile can have the name: letters, digits and "_", at most 32.
func IsName(s string) bool {
	return s != "" && len(s) <= 32 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
