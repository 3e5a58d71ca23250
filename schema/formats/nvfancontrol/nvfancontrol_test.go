package nvfancontrol

import (
	"reflect"
	"slices"
	"testing"
)

const sample = `POLLING_INTERVAL 2
TMARGIN ENABLED

<FAN 1>
	TMARGIN ENABLED
	FAN_GOVERNOR pid {
		STEP_SIZE 10
	}
	FAN_PROFILE quiet { # the default
		#TEMP 	HYST	PWM	RPM
		0	0	255	5100
		105	2	0	0
	}
	THERMAL_GROUP 0 {
		GROUP_MAX_TEMP 95
		GROUP_MAX_TEMP 105
		CPU-therm 20,0,0 0
	}
	FAN_DEFAULT_PROFILE quiet
	KICKSTART_PWM 64
< FAN 2 >
	FAN_DEFAULT_CONTROL open_loop
`

func TestFanTablesHaveProfilesLimitsAndDefaults(t *testing.T) {
	fans, problems := Parse(sample)
	if len(problems) > 0 {
		t.Error(problems)
	}
	want := []Fan{
		{Margin: true, MaxTemp: 105, Governors: []string{"pid"}, Defaults: map[string]string{"PROFILE": "quiet"},
			Profiles: []Curve{{"quiet", []Point{{0, 0, 255, 5100}, {105, 2, 0, 0}}}}},
		{Defaults: map[string]string{"CONTROL": "open_loop"}},
	}
	if !reflect.DeepEqual(fans, want) {
		t.Errorf("%+v\nwant %+v", fans, want)
	}
}

func TestFaultsNameTheirLine(t *testing.T) {
	for text, line := range map[string]int{
		"FAN_PROFILE a {\n}\n":                                   1, // outside of a fan
		"<FAN 1>\nFAN_PROFILE a {\n0 0 1 1\n":                    2,
		"<FAN 1>\nFAN_PROFILE a {\n0 0 x 1\n}\n":                 3,
		"<FAN 1>\nFAN_PROFILE a {\n0 0 1\n}\n":                   3,
		"<FAN 1>\nGROUP_MAX_TEMP warm\n":                         2,
		"<FAN 1>\nFAN_PROFILE a;b {\n}\n":                        2,
		"<FAN 1>\nFAN_PROFILE a {\n}\n# x\x00\n":                 4,
		"<FAN 1>\nFAN_PROFILE a {\n}\n" + "FAN_PROFILE a {\n}\n": 4,
	} {
		_, problems := Parse(text)
		if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Line == line }) {
			t.Errorf("%q: %v, want a problem in line %d", text, problems, line)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add("}{\x00")
	f.Fuzz(func(t *testing.T, text string) {
		fans, problems := Parse(text)
		for _, fan := range fans {
			for _, c := range fan.Profiles {
				if !IsName(c.Name) || fan.Profile(c.Name) == nil {
					t.Errorf("profile %q", c.Name)
				}
			}
		}
		for _, p := range problems {
			if p.Line < 1 || p.Message == "" {
				t.Errorf("%+v", p)
			}
		}
	})
}
