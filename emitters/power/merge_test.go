package power_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/power"
)

const (
	stockTable = `# synthetic table
<PARAM TYPE=FILE NAME=CPU_ONLINE >
CORE_0 /sys/devices/system/cpu/cpu0/online
CORE_1 /sys/devices/system/cpu/cpu1/online

< PARAM TYPE=CLOCK NAME=GPU >
MAX_FREQ /sys/devices/gpu/max_freq
MAX_FREQ_KNEXT /sys/devices/gpu/devfreq/max_freq

< POWER_MODEL ID=0 NAME=15W >
CPU_ONLINE CORE_0 1
GPU MAX_FREQ  624750000
< POWER_MODEL ID=1 NAME=25W >
CPU_ONLINE CORE_1 1

# the default mode
< PM_CONFIG DEFAULT=0 >
`
	block = `# ours
< POWER_MODEL ID=2 NAME=EDGE >
CPU_ONLINE CORE_0 1
GPU MAX_FREQ 306000000
`
)

type input struct{ Stock, Blocks, Mode, Fan, Chosen string }

type answer struct{ Text, Error string }

func merge(t *testing.T, stock, blocks, mode string) (string, string) {
	t.Helper()
	a := mergeAll(t, []input{{Stock: stock, Blocks: blocks, Mode: mode}})[0]
	return a.Text, a.Error
}

// mergeAll runs the merge function of the build outside bitbake. One Python process handles all
// inputs.
func mergeAll(t *testing.T, inputs []input) []answer {
	t.Helper()
	program := buildFunctions(t) + `
import json, sys
out = []
for i in json.load(sys.stdin):
    try:
        out.append({'Text': merge(i['Stock'], i['Blocks'], i['Mode'], 'nvpmodel_x.conf', 'modes.conf', i['Fan'], i['Chosen'])})
    except ValueError as e:
        out.append({'Error': str(e)})
print(json.dumps(out))
`
	var answers []answer
	runPython(t, program, inputs, &answers)
	if len(answers) != len(inputs) {
		t.Fatalf("%d answers to %d inputs", len(answers), len(inputs))
	}
	return answers
}

// buildFunctions returns the Python functions of the program that the build runs.
func buildFunctions(t *testing.T) string {
	t.Helper()
	files, err := power.Emit(emittest.Vision(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if functions, _, ok := strings.Cut(string(f.Data), "\nif __name__"); ok {
			return functions
		}
	}
	t.Fatal("the layer lacks the program")
	return ""
}

// runPython gives a program JSON and decodes the JSON that it prints.
func runPython(t *testing.T, program string, in, out any) {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-I", "-W", "error", "-c", program)
	cmd.Stdin = bytes.NewReader(text)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	printed, err := cmd.Output()
	if err != nil {
		t.Fatalf("python3: %v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(printed, out); err != nil {
		t.Fatal(err)
	}
}

func TestModesPrecedeTheDefaultAndStockModesStay(t *testing.T) {
	got, msg := merge(t, stockTable, block, "EDGE")
	if msg != "" {
		t.Fatal(msg)
	}
	want := strings.Replace(stockTable, "# the default mode\n< PM_CONFIG DEFAULT=0 >", block+"\n# the default mode\n< PM_CONFIG DEFAULT=2 >", 1)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestStockModeIsSelectedByName(t *testing.T) {
	got, msg := merge(t, stockTable, "", "25W")
	if want := strings.Replace(stockTable, "DEFAULT=0", "DEFAULT=1", 1); msg != "" || got != want {
		t.Errorf("%s\n%s", msg, got)
	}
}

// A stock file is read as nvpmodel reads it: only a line feed ends a line, and any byte may be in
// a comment. Names that cannot be read stop the build at once.
func TestHostileStockTables(t *testing.T) {
	comment := "# \u00e9 old:\u0085GPU MAX_FREQ 1\u2028\n"
	answers := mergeAll(t, []input{
		{Stock: comment + stockTable, Mode: "25W"},
		{Stock: strings.Replace(stockTable, "ID=1", "ID=01", 1), Mode: "25W"},
		{Stock: strings.Replace(stockTable, "DEFAULT=0", "DEFAULT=0 FAN_DEFAULT=quiet", 1), Mode: "25W"},
		{Stock: "< PARAM TYPE=FILE a=" + strings.Repeat("xxxx=", 1000) + "!\n" + stockTable, Mode: "25W"},
		{Stock: strings.Replace(stockTable, "CORE_1 1\n", "CORE_1 1\r\n", 1), Mode: "25W"},
		{Stock: "# \f< PM_CONFIG DEFAULT=0 >\n" + stockTable, Mode: "25W"},
	})
	for i, want := range []string{0: comment, 1: "DEFAULT=1 >", 2: "DEFAULT=1 FAN_DEFAULT=quiet", 4: "CORE_1 1\r\n"} {
		if !strings.Contains(answers[i].Text, want) {
			t.Errorf("%d: %s\n%q lacks %q", i, answers[i].Error, answers[i].Text, want)
		}
	}
	if got := answers[4].Text; strings.Count(got, "\r") != 1 {
		t.Errorf("one line ends in CRLF, and the result has %d", strings.Count(got, "\r"))
	}
	for i, want := range map[int]string{3: "nvpmodel_x.conf:1: cannot parse the section line", 5: "nvpmodel_x.conf:1: the line has control characters"} {
		if !strings.Contains(answers[i].Error, want) {
			t.Errorf("%d: %q, want %q", i, answers[i].Error, want)
		}
	}
}

// A build that sets NVPMODEL_CONFIG_DEFAULT for itself keeps it unless the layer chooses
// another mode.
func TestContradictionWithTheBuildsDefault(t *testing.T) {
	answers := mergeAll(t, []input{
		{Stock: stockTable, Mode: "25W", Chosen: "1"},
		{Stock: stockTable, Mode: "25W", Chosen: "0"},
		{Stock: stockTable, Mode: "25W", Chosen: "7"},
	})
	if answers[0].Error != "" {
		t.Error(answers[0].Error)
	}
	for i, want := range map[int]string{1: `NVPMODEL_CONFIG_DEFAULT = "0" chooses the mode 15W, and power.default of the yoctune layer chooses 25W (id 1)`, 2: `"7" chooses the mode of that id`} {
		if !strings.Contains(answers[i].Error, want) {
			t.Errorf("got %q, want %q", answers[i].Error, want)
		}
	}
}

func TestStockDefaultStays(t *testing.T) {
	got, msg := merge(t, stockTable, block, "")
	if msg != "" || !strings.Contains(got, "NAME=EDGE") || !strings.Contains(got, "PM_CONFIG DEFAULT=0 >") {
		t.Errorf("%s\n%s", msg, got)
	}
}

func TestR32FanProfileFollowsTheDefaultMode(t *testing.T) {
	before := stockTable + "< FAN_CONFIG DEFAULT=quiet >\n"
	want := strings.Replace(stockTable, "< PM_CONFIG DEFAULT=0 >", "< PM_CONFIG DEFAULT=1 >", 1) + "< FAN_CONFIG DEFAULT=cool >\n"
	for i, got := range mergeAll(t, []input{{before, "", "25W", "cool", ""}, {stockTable, "", "25W", "cool", ""}}) {
		if got.Error != "" || got.Text != want {
			t.Errorf("%d: %s\n%s", i, got.Error, got.Text)
		}
	}
}

func TestLineEndingsOfTheStockFileAreKept(t *testing.T) {
	got, msg := merge(t, strings.ReplaceAll(stockTable, "\n", "\r\n"), block, "EDGE")
	if msg != "" {
		t.Fatal(msg)
	}
	if strings.Count(got, "\n") != strings.Count(got, "\r\n") || !strings.Contains(got, "< PM_CONFIG DEFAULT=2 >\r\n") {
		t.Errorf("%q", got)
	}
}

func TestBuildStopsForAWrongPowerTable(t *testing.T) {
	sub := func(from, to string) string {
		if !strings.Contains(stockTable, from) {
			t.Fatalf("the table has no %q", from)
		}
		return strings.Replace(stockTable, from, to, 1)
	}
	edit := func(from, to string) string { return strings.Replace(block, from, to, 1) }
	cases := []struct {
		name, stock, block, mode, want string
	}{
		{"a parameter that is not declared", stockTable, edit("GPU", "DLA0_CORE"), "EDGE", "modes.conf:4: DLA0_CORE is not declared in nvpmodel_x.conf"},
		{"an argument that is not declared", stockTable, edit("CORE_0", "CORE_9"), "EDGE", "CPU_ONLINE has no argument CORE_9"},
		{"an id that is taken", stockTable, edit("ID=2", "ID=1"), "EDGE", "mode id 1 of EDGE is already used by 25W"},
		{"a name that is taken", stockTable, edit("EDGE", "15W"), "15W", "a mode named 15W already exists"},
		{"two of our modes with one id", stockTable, block + strings.Replace(block, "EDGE", "EDGE2", 1), "EDGE", "used by EDGE"},
		{"a default that does not exist", stockTable, block, "MAXN", "no mode named MAXN; the file has 15W, 25W, EDGE"},
		{"no PM_CONFIG", sub("< PM_CONFIG DEFAULT=0 >\n", ""), block, "EDGE", "0 PM_CONFIG lines"},
		{"two PM_CONFIG", stockTable + "< PM_CONFIG DEFAULT=1 >\n", block, "EDGE", "2 PM_CONFIG lines"},
		{"a PM_CONFIG without a default", sub("DEFAULT=0 ", ""), block, "EDGE", "found 0 DEFAULT in PM_CONFIG"},
		{"a section line that cannot be read", sub("NAME=25W >", "NAME=25W"), block, "EDGE", "cannot parse the section line"},
		{"a setting of two words", stockTable, edit("GPU MAX_FREQ 306000000", "GPU MAX_FREQ"), "EDGE", "PARAM ARG value"},
		{"a block that is not a mode", stockTable, edit("POWER_MODEL", "PARAM"), "EDGE", "only POWER_MODEL blocks"},
		{"text precedes the first section", "junk\n" + stockTable, block, "EDGE", "precedes the first section"},
	}
	inputs := make([]input, len(cases))
	for i, tc := range cases {
		inputs[i] = input{Stock: tc.stock, Blocks: tc.block, Mode: tc.mode}
	}
	for i, got := range mergeAll(t, inputs) {
		if !strings.Contains(got.Error, cases[i].want) {
			t.Errorf("%s: the build reports %q and gives\n%s\nwant a stop with %q", cases[i].name, got.Error, got.Text, cases[i].want)
		}
	}
}
