package enforce_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/schema/plan"
)

// fanFile has the format of nvfancontrol.conf.
func fanFile(margin, curve string) string {
	return "<FAN 1>\n\tTMARGIN " + margin + "\n\tFAN_GOVERNOR cont {\n\t\tSTEP_SIZE 10\n\t}\n\tFAN_PROFILE lab {\n\t\t#TEMP\tHYST\tPWM\tRPM\n" + curve +
		"\t}\n\tTHERMAL_GROUP 0 {\n\t\tGROUP_MAX_TEMP 105\n\t}\n\tFAN_DEFAULT_CONTROL close_loop\n\tFAN_DEFAULT_PROFILE lab\n\tFAN_DEFAULT_GOVERNOR cont\n"
}

const (
	rising  = "\t\t0 0 60 1000\n\t\t60 0 180 3000\n\t\t95 0 255 5000\n"
	falling = "\t\t0 0 255 5000\n\t\t40 0 180 3000\n\t\t95 0 60 1000\n"
)

func TestFanOwnerIsDetected(t *testing.T) {
	for _, c := range []struct {
		name, file string
		running    []string
		want       plan.Fan
		outcome    outcome.Outcome
		message    string
	}{
		{"as wanted, with margins", fanFile("ENABLED", falling), []string{"nvfancontrol"}, plan.Fan{Profile: "lab", Governor: "cont"}, outcome.OK, ""},
		{"as wanted, with degrees", fanFile("DISABLED", rising), []string{"nvfancontrol"}, plan.Fan{Profile: "lab"}, outcome.OK, ""},
		{"backwards, with margins", fanFile("ENABLED", rising), []string{"nvfancontrol"}, plan.Fan{Profile: "lab"}, outcome.Pending, "slows down as the temperature rises"},
		{"backwards, with degrees", fanFile("DISABLED", falling), []string{"nvfancontrol"}, plan.Fan{Profile: "lab"}, outcome.Pending, "slows down as the temperature rises"},
		{"a second fan that differs", fanFile("DISABLED", rising) + strings.ReplaceAll(fanFile("DISABLED", falling), "cont", "pid"), []string{"nvfancontrol"}, plan.Fan{Profile: "lab", Governor: "cont"},
			outcome.Pending, `governor is "pid", wanted "cont"; profile "lab": PWM goes from`},
		{"another profile", fanFile("ENABLED", falling), []string{"nvfancontrol"}, plan.Fan{Profile: "cool"}, outcome.Pending, `profile is "lab", wanted "cool"; no profile "cool" is defined`},
		{"two owners", fanFile("ENABLED", falling), []string{"nvfancontrol", "jtop"}, plan.Fan{Profile: "lab"}, outcome.Contested, "jtop (pid 901) also controls the fan"},
		{"not running", fanFile("ENABLED", falling), nil, plan.Fan{Profile: "lab"}, outcome.Differs, "nvfancontrol is not running"},
		{"no such file", "", nil, plan.Fan{Profile: "lab"}, outcome.Unsupported, "add nvfancontrol to the image"},
		{"garbage", "}{\x00", []string{"nvfancontrol"}, plan.Fan{Profile: "lab"}, outcome.Pending, "no profile"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dev, dir := newBoard(t)
			if c.file != "" {
				place(t, dir, "/etc/nvfancontrol.conf", c.file)
			}
			for i, name := range c.running {
				place(t, dir, "/proc/90"+string(rune('0'+i))+"/comm", name+"\n")
			}
			p := planOf()
			p.Fan = &c.want
			before := readState(t, dir)
			r := findResult(t, apply(t, dev, p), "fan")
			if r.Outcome != c.outcome || !strings.Contains(r.Message, c.message) {
				t.Errorf("%+v", r)
			}
			if r := findResult(t, enforce.Verify(dev, p, options()), "fan"); r.Outcome != c.outcome || r.Satisfied() != (c.outcome == outcome.OK) {
				t.Errorf("verify: %+v", r)
			}
			compareStates(t, before, readState(t, dir)) // its speed is not ours to write
		})
	}
}
