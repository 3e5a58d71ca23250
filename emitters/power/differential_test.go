package power_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
)

// contents is what both parsers must agree on about a stock file: the declared names,
// and the modes with their settings.
type contents struct {
	Declared []string
	Modes    []string
}

// reading is the answer of the parser that runs inside bitbake.
type reading struct {
	Error    string
	Sections []struct {
		Kind   string
		Line   int
		Fields map[string]string
		Rows   []struct {
			Line  int
			Words []string
		}
	}
}

// bitbakeReads runs the parser of the build's program over texts.
func bitbakeReads(t *testing.T, texts []string) []reading {
	t.Helper()
	program := buildFunctions(t) + `
import json, sys
out = []
for text in json.load(sys.stdin):
    try:
        out.append({'Sections': [{'Kind': s['kind'], 'Line': s['line'], 'Fields': s['fields'], 'Rows': [{'Line': n, 'Words': w} for n, w in s['rows']]}
                                 for s in sections(text, 'stock')]})
    except ValueError as e:
        out.append({'Error': str(e)})
print(json.dumps(out))
`
	var readings []reading
	runPython(t, program, texts, &readings)
	if len(readings) != len(texts) {
		t.Fatalf("%d readings of %d files", len(readings), len(texts))
	}
	return readings
}

// corpus is the files of the tests and of the facts' shape, each also with lines
// dropped, doubled, swapped and damaged.
func corpus() []string {
	big := &strings.Builder{}
	big.WriteString("# a synthetic table in the form of the stock files\n\n< PARAM TYPE=FILE NAME=CPU_ONLINE >\n")
	for i := range 12 {
		fmt.Fprintf(big, "CORE_%d /sys/devices/system/cpu/cpu%d/online\n", i, i)
	}
	big.WriteString("\n<PARAM TYPE=HWMON NAME=VDD_IN>\nLIMIT /sys/bus/i2c/devices/1-0040/hwmon curr1_max\n")
	for id, name := range []string{"MAXN", "MODE_15W", "MODE_30W"} {
		fmt.Fprintf(big, "\n< POWER_MODEL ID=%d NAME=%s >\n", id, name)
		for i := range 12 {
			fmt.Fprintf(big, "CPU_ONLINE CORE_%d %d\n", i, min(1, i%(id+1)))
		}
	}
	big.WriteString("\n# mandatory section to configure the default mode\n< PM_CONFIG DEFAULT=2 >\n< FAN_CONFIG DEFAULT=quiet >\n")
	seeds := []string{stockTable, big.String(), strings.ReplaceAll(stockTable, "\n", "\r\n"), strings.ReplaceAll(stockTable, "< ", "<"), "", "#\n", "<>\n", "junk\n"}
	damage := []string{"<", ">", "#", " ", "=", "\t", "/", "NAME", "-1", "0x1", "# x", "< /POWER_MODEL >", "< NEW A=1 >", "< POWER_MODEL ID=0 NAME=15W >", "GPU MAX_FREQ 1"}
	return append(seeds, emittest.Mutate(2000, seeds[:3], damage)...)
}

var atLine = regexp.MustCompile(`^stock:(\d+): `)

// A build must not accept a table that the compiler or the device reads otherwise:
// the two parsers get the same files.
func TestBuildAndCompilerParsePowerModeFilesAlike(t *testing.T) {
	texts := corpus()
	clean, refused := 0, 0
	for i, got := range bitbakeReads(t, texts) {
		text := texts[i]
		file, problems, err := nvpmodel.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got.Error != "" {
			refused++
			m := atLine.FindStringSubmatch(got.Error)
			if m == nil {
				t.Fatalf("%s: no line in it", got.Error)
			}
			line, _ := strconv.Atoi(m[1])
			if !slices.ContainsFunc(problems, func(p nvpmodel.Problem) bool { return p.Line == line || p.Message == "control characters" }) {
				t.Errorf("the build stops with %q, and nvpmodel.Parse has no problem in that line of\n%s", got.Error, text)
			}
			continue
		}
		if len(problems) == 0 {
			clean++
		}
		if slices.ContainsFunc(problems, func(p nvpmodel.Problem) bool { return p.Message == "control characters" }) {
			continue // Python ends a line at some of them
		}
		skipped := map[int]bool{} // lines that the Go parser reports and skips
		for _, p := range problems {
			skipped[p.Line] = skipped[p.Line] || p.Ignored
		}
		if diff := cmp.Diff(contentsOfFile(file), contentsOfBuild(got, skipped)); diff != "" {
			t.Errorf("-parser +build:\n%s\nproblems %+v of\n%s", diff, problems, text)
		}
	}
	if clean < 50 || refused < 100 {
		t.Errorf("of %d files %d are without fault and %d are refused: the corpus does not test much", len(texts), clean, refused)
	}
}

func contentsOfFile(f *nvpmodel.File) contents {
	var c contents
	for _, p := range f.Params {
		for _, a := range p.Args {
			c.Declared = append(c.Declared, p.Name+" "+a.Name)
		}
	}
	for _, m := range f.Modes {
		c.Modes = append(c.Modes, fmt.Sprintf("%d %s", m.ID, m.Name))
		for _, s := range m.Settings {
			c.Modes = append(c.Modes, s.Param+" "+s.Arg+" "+s.Value)
		}
	}
	return c
}

func contentsOfBuild(r reading, skipped map[int]bool) contents {
	var c contents
	for _, s := range r.Sections {
		if skipped[s.Line] {
			continue
		}
		switch s.Kind {
		case "PARAM":
			for _, row := range s.Rows {
				if !skipped[row.Line] {
					c.Declared = append(c.Declared, s.Fields["NAME"]+" "+row.Words[0])
				}
			}
		case "POWER_MODEL":
			id, _ := strconv.Atoi(s.Fields["ID"])
			c.Modes = append(c.Modes, fmt.Sprintf("%d %s", id, s.Fields["NAME"]))
			for _, row := range s.Rows {
				if !skipped[row.Line] {
					c.Modes = append(c.Modes, strings.Join(row.Words[:min(3, len(row.Words))], " "))
				}
			}
		}
	}
	return c
}
