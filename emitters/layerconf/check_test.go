package layerconf_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/kernel"
	"github.com/yoctune/yoctune/emitters/layerconf"
	"github.com/yoctune/yoctune/schema/plan"
)

func emitted(t *testing.T, l *plan.Layer, suffix string) string {
	t.Helper()
	files, err := kernel.Emit(l)
	if err != nil {
		t.Fatal(err)
	}
	own, err := layerconf.Emit(l)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, own...) {
		if strings.HasSuffix(f.Path, suffix) {
			return string(f.Data)
		}
	}
	t.Fatalf("no file is called %s", suffix)
	return ""
}

type comparison struct{ Fragment, Config, Origins string }

// compare runs the function that the build runs, outside bitbake, on all pairs
// with one start of Python.
func compare(t *testing.T, pairs ...comparison) [][]string {
	t.Helper()
	class := emitted(t, emittest.Vision(t), ".bbclass")
	start, end := strings.Index(class, "\ndef "), strings.Index(class, "\npython do_")
	if start < 0 || end < start {
		t.Fatalf("the class lacks the functions:\n%s", class)
	}
	program := class[start:end] + `
import json, sys
print(json.dumps([yoctune_kernel_differences(i['Fragment'], 'x.cfg', i['Config'], i['Origins']) for i in json.load(sys.stdin)]))
`
	in, err := json.Marshal(pairs)
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
	var answers [][]string
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatal(err)
	}
	if len(answers) != len(pairs) {
		t.Fatalf("%d answers to %d pairs", len(answers), len(pairs))
	}
	return answers
}

func TestMissingKernelOptionsAreNamedWithTheirLine(t *testing.T) {
	vision := emittest.Vision(t)
	got := compare(t, comparison{
		emitted(t, vision, ".cfg"),
		"# Automatically generated file; DO NOT EDIT.\nCONFIG_DEFAULT_TCP_CONG=\"cubic\"\nCONFIG_HZ=250\nCONFIG_NO_HZ_FULL=y\n# CONFIG_TCP_CONG_BBR is not set\n",
		emitted(t, vision, ".origins.json"),
	})[0]
	want := []string{
		`config.cue:21:3: CONFIG_DEFAULT_TCP_CONG: wanted "bbr", actual "cubic"`,
		"config.cue:22:3: CONFIG_HZ: wanted 1000, actual 250",
		"config.cue:23:3: CONFIG_TCP_CONG_BBR: wanted m, actual n (is not set)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the build reports\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestValuesAreComparedByMeaning(t *testing.T) {
	cases := []struct{ fragment, config, want string }{
		{"CONFIG_A=y", "CONFIG_A=y", ""},
		{"CONFIG_A=y", "CONFIG_A=m", "x.cfg:1: CONFIG_A: wanted y, actual m"},
		{"CONFIG_A=y", "", "x.cfg:1: CONFIG_A: wanted y, actual not in .config"},
		{"CONFIG_A=y", "CONFIG_AB=y\n#CONFIG_A=y\n CONFIG_A=y", "x.cfg:1: CONFIG_A: wanted y, actual not in .config"},
		{"# CONFIG_A is not set", "", ""},
		{"# CONFIG_A is not set", "# CONFIG_A is not set", ""},
		{"# CONFIG_A is not set", "CONFIG_A=m", "x.cfg:1: CONFIG_A: wanted n, actual m"},
		{"CONFIG_A=10", "CONFIG_A=10", ""},
		{"CONFIG_A=010", "CONFIG_A=10", ""},
		{"CONFIG_A=-1", "CONFIG_A=1", "x.cfg:1: CONFIG_A: wanted -1, actual 1"},
		{"CONFIG_A=0xFF", "CONFIG_A=0xff", ""},
		{"CONFIG_A=ff", "CONFIG_A=0xff", ""},
		{"CONFIG_A=16", "CONFIG_A=0x10", "x.cfg:1: CONFIG_A: wanted 16, actual 0x10"},
		{`CONFIG_A="10"`, "CONFIG_A=10", `x.cfg:1: CONFIG_A: wanted "10", actual 10`},
		{`CONFIG_A=""`, `CONFIG_A=""`, ""},
		{`CONFIG_A=""`, "", `x.cfg:1: CONFIG_A: wanted "", actual not in .config`},
		{`CONFIG_A="say \"hi\" \\ #x"`, `CONFIG_A="say \"hi\" \\ #x"`, ""},
		{`CONFIG_A="x"`, `CONFIG_A="x "`, `x.cfg:1: CONFIG_A: wanted "x", actual "x "`},
		// do_kernel_configme appends to .config; the last line counts there too.
		{`CONFIG_A="x"`, "CONFIG_A=\"x\"\nCONFIG_A=\"-l4t\"", `x.cfg:1: CONFIG_A: wanted "x", actual "-l4t"`},
		{"CONFIG_A=m\nCONFIG_A=y", "CONFIG_A=y", ""},
	}
	pairs := make([]comparison, len(cases))
	for i, tc := range cases {
		pairs[i] = comparison{Fragment: tc.fragment, Config: tc.config}
	}
	for i, lines := range compare(t, pairs...) {
		if got := strings.Join(lines, "\n"); got != cases[i].want {
			t.Errorf("%q in %q: the build reports %q, want %q", cases[i].fragment, cases[i].config, got, cases[i].want)
		}
	}
}

// The recorded results of the kernels' own tools: the build stops for exactly the
// lines that these changed.
func TestCheckFindsOptionsThatKconfigDropped(t *testing.T) {
	const truth = "../../compiler/kconfig/testdata/truth/"
	files, err := filepath.Glob(truth + "*.tsv")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d recorded results: %v", len(files), err)
	}
	var pairs []comparison
	var lost [][]string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var fragment, config strings.Builder
		var dropped []string
		line := func(b *strings.Builder, symbol, value string) {
			switch value {
			case "n":
				b.WriteString("# CONFIG_" + symbol + " is not set\n")
			case "(absent)":
			default:
				b.WriteString("CONFIG_" + symbol + "=" + value + "\n")
			}
		}
		for row := range strings.Lines(string(raw)) {
			col := strings.Split(strings.TrimSuffix(row, "\n"), "\t")
			line(&fragment, col[0], col[1])
			line(&config, col[0], col[2])
			if col[1] != col[2] && !(col[1] == "n" && col[2] == "(absent)") {
				dropped = append(dropped, col[0])
			}
		}
		slices.Sort(dropped)
		lost = append(lost, dropped)
		pairs = append(pairs, comparison{Fragment: fragment.String(), Config: config.String()})
	}
	total := 0
	for i, got := range compare(t, pairs...) {
		var named []string
		for _, g := range got {
			_, rest, _ := strings.Cut(g, "CONFIG_")
			symbol, _, _ := strings.Cut(rest, ":")
			named = append(named, symbol)
		}
		total += len(named)
		if !slices.Equal(named, lost[i]) {
			t.Errorf("%s: the build stops for %q, the real tool dropped %q", filepath.Base(files[i]), named, lost[i])
		}
	}
	if total < 100 {
		t.Errorf("only %d lines were dropped in all records", total)
	}
}

func TestSuppressingTheRuleMakesTheBuildWarnInstead(t *testing.T) {
	l := emittest.Vision(t)
	if inc := emitted(t, l, ".inc"); !strings.Contains(inc, `YOCTUNE_KERNEL_CHECK ?= "error"`) {
		t.Errorf("a lost option does not stop the build:\n%s", inc)
	}
	l.Suppressed = []plan.Suppression{{Rule: "kconfig-lost", Reason: "our tree has it"}}
	if inc := emitted(t, l, ".inc"); !strings.Contains(inc, `YOCTUNE_KERNEL_CHECK ?= "warn"`) {
		t.Errorf("a suppressed rule still stops the build:\n%s", inc)
	}
}
