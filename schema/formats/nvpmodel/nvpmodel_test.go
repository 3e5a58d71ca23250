package nvpmodel

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/yoctune/yoctune/schema/facts/board"
)

// sameFile compares the contents of files without positions.
var sameFile = cmp.Options{
	cmpopts.IgnoreFields(Param{}, "Line"), cmpopts.IgnoreFields(Arg{}, "Line"),
	cmpopts.IgnoreFields(Mode{}, "Line"), cmpopts.IgnoreFields(Setting{}, "Line", "column"),
	cmpopts.EquateEmpty(),
}

// writeStock returns a file in the stock form.
func writeStock(f *File) []byte {
	var b bytes.Buffer
	for _, p := range f.Params {
		fmt.Fprintf(&b, "< PARAM TYPE=%s NAME=%s >\n", p.Type, p.Name)
		for _, a := range p.Args {
			b.WriteString(a.Name + " " + a.Path)
			if a.Attr != "" {
				b.WriteString(" " + a.Attr)
			}
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	for _, m := range f.Modes {
		fmt.Fprintf(&b, "< POWER_MODEL ID=%d NAME=%s >\n", m.ID, m.Name)
		for _, s := range m.Settings {
			fmt.Fprintf(&b, "%s %s %s\n", s.Param, s.Arg, s.Value)
		}
		b.WriteByte('\n')
	}
	if f.Default != nil {
		fmt.Fprintf(&b, "< PM_CONFIG DEFAULT=%d >\n", *f.Default)
	}
	if f.Fan != "" {
		fmt.Fprintf(&b, "< FAN_CONFIG DEFAULT=%s >\n", f.Fan)
	}
	return b.Bytes()
}

// fromFacts builds a file from the facts about a stock one.
func fromFacts(t board.Table) *File {
	f := &File{}
	for _, p := range t.Params {
		q := Param{Type: p.Type, Name: p.Name}
		for _, a := range p.Args {
			arg := Arg{Name: a, Path: "/sys/" + p.Name + "/" + a}
			if p.Paths[a] != "" {
				arg.Path = p.Paths[a]
			}
			if p.Type == "HWMON" {
				arg.Attr = "curr1_max"
			}
			arg.Path, _, _ = strings.Cut(arg.Path, " ")
			q.Args = append(q.Args, arg)
		}
		f.Params = append(f.Params, q)
	}
	for _, m := range t.Modes {
		n := Mode{ID: m.ID, Name: m.Name}
		for _, s := range m.Settings {
			n.Settings = append(n.Settings, Setting{Param: s[0], Arg: s[1], Value: s[2]})
		}
		f.Modes = append(f.Modes, n)
		if m.Default {
			f.Default = &m.ID
		}
	}
	return f
}

// Every stock table in the facts survives writing and reading.
func TestStockTablesRoundTrip(t *testing.T) {
	tables := 0
	for _, id := range board.IDs() {
		b, ok := board.Lookup(id)
		if !ok {
			t.Fatalf("board %s", id)
		}
		for key, table := range b.Tables {
			want := fromFacts(table)
			got, problems, err := Parse(writeStock(want))
			if err != nil {
				t.Fatalf("%s %s: %v", id, key, err)
			}
			for _, p := range problems {
				if p.Trap != Undeclared && p.Trap != NoConfig { // facts of some files are partial
					t.Errorf("%s %s: line %d: %s", id, key, p.Line, p.Message)
				}
			}
			if d := cmp.Diff(want, got, sameFile); d != "" {
				t.Errorf("%s %s:\n%s", id, key, d)
			}
			tables++
		}
	}
	if tables < 15 {
		t.Errorf("only %d tables", tables)
	}
}

func TestParseAcceptsTheSpellingsOfRealFiles(t *testing.T) {
	const plain = "< PARAM TYPE=CLOCK NAME=GPU >\nMAX_FREQ /sys/gpu/max\n< POWER_MODEL ID=0 NAME=A >\nGPU MAX_FREQ 918000000\n< PM_CONFIG DEFAULT=0 >\n"
	want, problems, err := Parse([]byte(plain))
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	for name, text := range map[string]string{
		"no blank after <":  strings.ReplaceAll(plain, "< ", "<"),
		"windows line ends": strings.ReplaceAll(plain, "\n", "\r\n"),
		"tabs":              strings.ReplaceAll(plain, " 918", "\t918"),
		"double blanks":     strings.ReplaceAll(plain, "MAX_FREQ ", "MAX_FREQ   "),
		"indented":          strings.ReplaceAll(plain, "GPU MAX", "   GPU MAX"),
		"comments, blanks":  "# licence\n\n" + strings.ReplaceAll(plain, "\n", "\n\n# note\n"),
		"byte order mark":   "\ufeff" + plain,
		"no last line feed": strings.TrimSuffix(plain, "\n"),
	} {
		got, problems, err := Parse([]byte(text))
		if err != nil || len(problems) > 0 {
			t.Errorf("%s: %v %v", name, err, problems)
		}
		if d := cmp.Diff(want, got, sameFile); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
}

func TestParseNamesTheLineAndTheTrap(t *testing.T) {
	const head = "< PARAM TYPE=CLOCK NAME=GPU >\nMAX_FREQ /sys/gpu/max\n"
	for _, tt := range []struct {
		name, text string
		want       Problem
	}{
		{"end tag", head + "< POWER_MODEL ID=0 NAME=A >\nGPU MAX_FREQ 1\n< /POWER_MODEL >\n< PM_CONFIG DEFAULT=0 >\n",
			Problem{Line: 5, Column: 1, Trap: EndTag, Ignored: true}},
		{"comment behind a value", head + "< POWER_MODEL ID=0 NAME=A >\n  GPU MAX_FREQ 1 # slow\n< PM_CONFIG DEFAULT=0 >\n",
			Problem{Line: 4, Column: 3, Trap: TrailingComment}},
		{"undeclared", head + "< POWER_MODEL ID=0 NAME=A >\nDLA MAX_FREQ 1\n< PM_CONFIG DEFAULT=0 >\n",
			Problem{Line: 4, Column: 1, Trap: Undeclared}},
		{"dangling default", head + "< POWER_MODEL ID=0 NAME=A >\n< PM_CONFIG DEFAULT=7 >\n",
			Problem{Line: 4, Column: 1, Trap: Dangling, Ignored: true}},
		{"a word as default", head + "< POWER_MODEL ID=0 NAME=A >\n< PM_CONFIG DEFAULT=turbo >\n",
			Problem{Line: 4, Column: 1, Ignored: true, Fatal: true}},
		{"id twice", head + "< POWER_MODEL ID=0 NAME=A >\n< POWER_MODEL ID=0 NAME=B >\n< PM_CONFIG DEFAULT=0 >\n",
			Problem{Line: 4, Column: 1, Trap: Repeated, Ignored: true}},
		{"hostile name", head + "< POWER_MODEL ID=0 NAME=A;rm >\n< PM_CONFIG DEFAULT=0 >\n",
			Problem{Line: 3, Column: 1, Ignored: true, Fatal: true}},
		{"a mode without an id", head + "< POWER_MODEL NAME=A >\n< PM_CONFIG DEFAULT=0 >\n",
			Problem{Line: 3, Column: 1, Ignored: true, Fatal: true}},
		{"a setting of two words", head + "< POWER_MODEL ID=0 NAME=A >\nGPU MAX_FREQ\n< PM_CONFIG DEFAULT=0 >\n",
			Problem{Line: 4, Column: 1, Ignored: true, Fatal: true}},
		{"a setting twice", head + "< POWER_MODEL ID=0 NAME=A >\n GPU MAX_FREQ 1\nGPU MAX_FREQ 2\n< PM_CONFIG DEFAULT=0 >\n",
			Problem{Line: 4, Column: 2, Trap: Repeated, Ignored: true}},
		{"a section of a newer release", head + "< TURBO LEVEL=1 >\nX Y\n< POWER_MODEL ID=0 NAME=A >\n< PM_CONFIG DEFAULT=0 >\n",
			Problem{Line: 3, Column: 1, Ignored: true}},
	} {
		_, problems, err := Parse([]byte(tt.text))
		if err != nil || len(problems) == 0 {
			t.Errorf("%s: %v %v", tt.name, err, problems)
			continue
		}
		if d := cmp.Diff(tt.want, problems[0], cmpopts.IgnoreFields(Problem{}, "Message")); d != "" {
			t.Errorf("%s:\n%s", tt.name, d)
		}
	}
}

func TestParseIsBounded(t *testing.T) {
	if _, _, err := Parse(bytes.Repeat([]byte("\n"), MaxBytes+1)); !errors.Is(err, errTooLarge) {
		t.Errorf("a large file: %v", err)
	}
}

// Whatever was read is written so that it reads the same.
func FuzzRoundTrip(f *testing.F) {
	for _, s := range []string{
		"", "<", "< PARAM TYPE=HWMON NAME=A >\nx /a b\n", "< POWER_MODEL ID=0 NAME=A >\nA B C\n< PM_CONFIG DEFAULT=0 >\n< FAN_CONFIG DEFAULT=quiet >",
		"<PARAM TYPE=FILE NAME=CPU_ONLINE>\r\nCORE_0\t/sys/x\r\n", "< /POWER_MODEL >\n\x00\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, _, err := Parse(text)
		if err != nil {
			return
		}
		again, problems, err := Parse(writeStock(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if p.Trap != Undeclared && p.Trap != NoConfig && p.Trap != Dangling {
				t.Errorf("line %d: %s", p.Line, p.Message)
			}
		}
		if d := cmp.Diff(file, again, sameFile); d != "" {
			t.Error(d)
		}
	})
}
