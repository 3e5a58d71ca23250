package fan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/schema/formats/nvfancontrol"
)

// corpus is files in the form of those that BSPs install, each also with lines dropped,
// doubled, swapped and damaged.
func corpus() []string {
	degrees := strings.Replace(strings.Replace(margins, "TMARGIN ENABLED", "TMARGIN DISABLED", 1), "105", "99", 1)
	seeds := []string{margins, degrees + "</FAN 1>\n" + strings.Replace(margins[strings.Index(margins, "<FAN"):], "FAN 1", "FAN 2", 1), strings.ReplaceAll(margins, "\n", "\r\n"), "", "}{", "<FAN 1>"}
	damage := []string{"{", "}", "#", " ", "\t", "<", ">", "x", "-1", "255", "FAN_PROFILE x {", "GROUP_MAX_TEMP 90", "<FAN 3>", "TMARGIN DISABLED", "FAN_GOVERNOR x {", "FAN_DEFAULT_PROFILE quiet\n", "THERMAL_GROUP 0 {\n"}
	return append(seeds, emittest.Mutate(1000, seeds[:3], damage)...)
}

// strayLine returns the first line inside an open profile of a fan that is not a point, or 0.
// Python ends a line at some control characters, so files with one are left out.
func strayLine(text string, problems []nvfancontrol.Problem) int {
	if slices.ContainsFunc(problems, func(p nvfancontrol.Problem) bool { return p.Message == "control characters" }) {
		return 0
	}
	inFan := 0
	for line := range strings.Lines(text) {
		inFan++
		if nvfancontrol.ParseLine(line).Kind == nvfancontrol.FanStart {
			break
		}
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Message, "a point of profile ") && p.Line > inFan {
			return p.Line
		}
	}
	return 0
}

// A build must parse a fan file in the same way as the compiler and the device. The build's
// parser prints nothing, so three probes reveal its result: adding a profile shows limit,
// margin and full speed; an absent profile and an absent governor produce error messages
// that list those that exist.
func TestBuildAndCompilerParseFanFilesAlike(t *testing.T) {
	const probe = "zz_probe"
	texts := corpus()
	var inputs []input
	for _, text := range texts {
		inputs = append(inputs,
			input{text, "FAN_PROFILE " + probe + "\n0 0 0 -\n1 0 255 -\n", nil},
			input{text, "", map[string]string{"PROFILE": probe}},
			input{text, "", map[string]string{"GOVERNOR": probe}})
	}
	answers := merge(t, inputs...)
	clean, refused := 0, 0
	for i, text := range texts {
		fans, problems := nvfancontrol.Parse(text)
		merged, profiles, governors := answers[3*i], answers[3*i+1].Error, answers[3*i+2].Error
		if merged.Error != "" {
			refused++
			if len(problems) == 0 && !slices.ContainsFunc(fans, func(f nvfancontrol.Fan) bool { return f.MaxTemp == 0 }) {
				t.Errorf("the build stops with %q, and nvfancontrol.Parse has no problem with\n%s", merged.Error, text)
			}
			continue
		}
		if line := strayLine(text, problems); line > 0 {
			t.Errorf("the build accepts line %d inside a profile of\n%s", line, text)
		}
		if len(problems) > 0 {
			continue
		}
		clean++
		var names []string
		for _, c := range fans[0].Profiles {
			names = append(names, c.Name)
		}
		slices.Sort(names)
		slices.Sort(fans[0].Governors)
		for _, q := range []struct{ got, want string }{
			{profiles, "the fan has no profile " + probe + "; it has " + strings.Join(names, ", ")},
			{governors, "the fan has no governor " + probe + "; it has " + strings.Join(fans[0].Governors, ", ")},
		} {
			if !strings.HasSuffix(q.got, ": "+q.want) {
				t.Errorf("the build found %q, want %q in\n%s", q.got, q.want, text)
			}
		}
		after, _ := nvfancontrol.Parse(merged.Text)
		for j := range fans {
			slices.Sort(after[j].Governors)
			slices.Sort(fans[j].Governors)
			k := slices.IndexFunc(after[j].Profiles, func(c nvfancontrol.Curve) bool { return c.Name == probe })
			if k < 0 {
				t.Fatalf("fan %d has not got the profile:\n%s", j, merged.Text)
			}
			added := after[j].Profiles[k].Points
			after[j].Profiles = slices.Delete(after[j].Profiles, k, k+1)
			if diff := cmp.Diff(fans[j], after[j], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("adding a profile changed fan %d otherwise:\n%s\n%s", j, diff, text)
			}
			if want := probePoints(fans[j]); !slices.Equal(added, want) {
				t.Errorf("fan %d: the build adds %v, want %v to\n%s", j, added, want, text)
			}
		}
	}
	if clean < 50 || refused < 50 {
		t.Errorf("of %d files %d are without fault and %d are refused: the corpus does not test much", len(texts), clean, refused)
	}
}

// probePoints are the rows of the added profile that follow from a fan's file.
func probePoints(f nvfancontrol.Fan) []nvfancontrol.Point {
	full := int64(0)
	for _, c := range f.Profiles {
		for _, p := range c.Points {
			full = max(full, p.RPM)
		}
	}
	points := []nvfancontrol.Point{{Temp: 0}, {Temp: 1, PWM: 255, RPM: full}}
	if f.MaxTemp > 1 {
		points = append(points, nvfancontrol.Point{Temp: f.MaxTemp, PWM: 255, RPM: full})
	}
	if f.Margin {
		for i := range points {
			points[i].Temp = f.MaxTemp - points[i].Temp
		}
		slices.Reverse(points)
	}
	return points
}
