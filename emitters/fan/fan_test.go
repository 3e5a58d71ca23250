package fan_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/fan"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, fan.Emit) }

const (
	// Written for this test, after the grammar of the files that BSPs install.
	margins = `POLLING_INTERVAL 2

<FAN 1>
	TMARGIN ENABLED
	FAN_GOVERNOR cont {
		STEP_SIZE 10
	}
	FAN_PROFILE quiet {
		#TEMP 	HYST	PWM	RPM
		0	0	255	5100
		40	2	100	2000
		105	0	0	0
	}
	FAN_PROFILE cool {
		0	0	255	5100
		105	0	100	2000
	}
	THERMAL_GROUP 0 {
		GROUP_MAX_TEMP 105
		CPU-therm 20,0,0 0
	}
	FAN_DEFAULT_CONTROL close_loop
	FAN_DEFAULT_PROFILE quiet
	FAN_DEFAULT_GOVERNOR cont
	KICKSTART_PWM 64
`
	ours = `# ours
FAN_PROFILE lab
30 0 0 0
60 3 102 -
90 0 255 -
`
)

type input struct {
	Stock, Ours string
	Wanted      map[string]string
}

type answer struct{ Text, Error string }

// merge runs the function that the build runs, outside bitbake.
func merge(t *testing.T, inputs ...input) []answer {
	t.Helper()
	files, err := fan.Emit(emittest.Vision(t))
	if err != nil {
		t.Fatal(err)
	}
	functions := ""
	for _, f := range files {
		if text, _, ok := strings.Cut(string(f.Data), "\nif __name__"); ok {
			functions = text
		}
	}
	if functions == "" {
		t.Fatal("the layer lacks the program")
	}
	program := functions + `
import json, sys
out = []
for i in json.load(sys.stdin):
    try:
        out.append({'Text': merge(i['Stock'], i['Ours'], i['Wanted'] or {}, 'nvfancontrol_x.conf', 'fan.conf')})
    except ValueError as e:
        out.append({'Error': str(e)})
print(json.dumps(out))
`
	in, err := json.Marshal(inputs)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-I", "-W", "error", "-c", program)
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("python3: %v\n%s", err, stderr.String())
	}
	var answers []answer
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatal(err)
	}
	return answers
}

func TestProfileIsAddedInTheFilesNotation(t *testing.T) {
	degrees := strings.Replace(strings.Replace(margins, "TMARGIN ENABLED", "TMARGIN DISABLED", 1), "GROUP_MAX_TEMP 105", "GROUP_MAX_TEMP 108", 1)
	got := merge(t, input{margins, ours, map[string]string{"PROFILE": "lab"}}, input{degrees, ours, map[string]string{"PROFILE": "lab"}})
	for i, want := range []string{
		"0\t0\t255\t5100\n15\t0\t255\t5100\n45\t3\t102\t2040\n75\t0\t0\t0\n105\t0\t0\t0",
		"0\t0\t0\t0\n30\t0\t0\t0\n60\t3\t102\t2040\n90\t0\t255\t5100\n108\t0\t255\t5100",
	} {
		block := "\tFAN_PROFILE lab {\n\t\t#TEMP\tHYST\tPWM\tRPM\n\t\t" + strings.ReplaceAll(want, "\n", "\n\t\t") + "\n\t}\n\tTHERMAL_GROUP"
		if got[i].Error != "" || !strings.Contains(got[i].Text, block) || !strings.Contains(got[i].Text, "FAN_DEFAULT_PROFILE lab\n") {
			t.Errorf("%s\n%s\nwant in it\n%s", got[i].Error, got[i].Text, block)
		}
	}
}

func TestUnrequestedSettingsStay(t *testing.T) {
	got := merge(t, input{margins, "", map[string]string{"PROFILE": "cool"}}, input{strings.ReplaceAll(margins, "\n", "\r\n"), "", map[string]string{"CONTROL": "open_loop"}})
	if want := strings.Replace(margins, "FAN_DEFAULT_PROFILE quiet", "FAN_DEFAULT_PROFILE cool", 1); got[0].Text != want {
		t.Errorf("%s\n%s", got[0].Error, got[0].Text)
	}
	if want := strings.ReplaceAll(strings.Replace(margins, "close_loop", "open_loop", 1), "\n", "\r\n"); got[1].Text != want {
		t.Errorf("%s\n%q", got[1].Error, got[1].Text)
	}
}

func TestProfileOfSameNameReplacesTheBSPs(t *testing.T) {
	got := merge(t, input{margins, strings.Replace(ours, "lab", "quiet", 1), nil})[0]
	if strings.Count(got.Text, "FAN_PROFILE quiet {") != 1 || strings.Contains(got.Text, "40\t2\t100") || !strings.Contains(got.Text, "45\t3\t102\t2040") {
		t.Errorf("%s\n%s", got.Error, got.Text)
	}
}

func TestMissingDefaultIsAdded(t *testing.T) {
	stock := strings.Replace(margins, "\tFAN_DEFAULT_PROFILE quiet\n", "", 1) + "</FAN 1>\n"
	got := merge(t, input{stock, "", map[string]string{"PROFILE": "cool"}})[0]
	if !strings.Contains(got.Text, "KICKSTART_PWM 64\n\tFAN_DEFAULT_PROFILE cool\n</FAN 1>\n") {
		t.Errorf("%s\n%s", got.Error, got.Text)
	}
}

func TestBuildStopsForAWrongFanTable(t *testing.T) {
	cases := []struct {
		name string
		in   input
		want string
	}{
		{"a profile that is not there", input{margins, "", map[string]string{"PROFILE": "warm"}}, "no profile warm; it has cool, quiet"},
		{"a governor that is not there", input{margins, "", map[string]string{"GOVERNOR": "pid"}}, "no governor pid; it has cont"},
		{"a point above the limit", input{margins, "FAN_PROFILE lab\n120 0 255 -\n", nil}, "120 C exceeds the limit of 105 C"},
		{"a file without a limit", input{strings.Replace(margins, "GROUP_MAX_TEMP 105", "", 1), ours, nil}, "lacks GROUP_MAX_TEMP"},
		{"a file without a fan", input{"POLLING_INTERVAL 2\n", ours, nil}, "no <FAN n> section"},
		{"a profile without an end", input{"<FAN 1>\nGROUP_MAX_TEMP 105\nFAN_PROFILE quiet {\n0 0 255 5100\n", ours, nil}, "is not closed"},
		{"a broken file of ours", input{margins, "30 0 0 0\n", nil}, "fan.conf:1"},
	}
	inputs := make([]input, len(cases))
	for i, c := range cases {
		inputs[i] = c.in
	}
	for i, got := range merge(t, inputs...) {
		if !strings.Contains(got.Error, cases[i].want) {
			t.Errorf("%s: the build reports %q and gives\n%s\nwant a stop with %q", cases[i].name, got.Error, got.Text, cases[i].want)
		}
	}
}
