package quote_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/tests/bitbake/bbref"
)

var seeds = []string{
	"", "a", "a b", `a"b`, `it's`, `\`, `\\"`, "%n $X ${Y} $$", ";", "#", "a\tb", "a\nb", "ü 日本", `$(id)`, "`id`",
	"a=b", "-x", "@x", "'", `"`, `'"`, "readme README", "|", "{{x}}", "<b>",
}

func seed(f *testing.F) {
	f.Helper()
	for _, s := range seeds {
		f.Add(s)
	}
}

// What bitbake's own parser reads is what was given.
func TestBitBakeReadsTheGivenValue(t *testing.T) {
	var texts, values []string
	for _, v := range append(seeds, "x :append y", "A = 1", "trailing ", " leading", "$x", "$", "$ {A}", "%s", "~/.x") {
		if q, err := quote.BitBake(v); err == nil {
			texts, values = append(texts, "V = "+q+"\n"), append(values, v)
		}
	}
	for i, r := range bbref.EvalAll(t, texts...) {
		if len(r.Problems) > 0 || len(r.Values) != 1 || r.Values["V"] != values[i] {
			t.Errorf("%s is read as %q with problems %v; want %q", strings.TrimSpace(texts[i]), r.Values, r.Problems, values[i])
		}
	}
}

// A shell gives back the word.
func TestShellReadsTheGivenWord(t *testing.T) {
	var script strings.Builder
	var want []string
	for _, s := range seeds {
		q, err := quote.Shell(s)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&script, "printf '%%s\\0' %s\n", q)
		want = append(want, s)
	}
	out, err := exec.Command("sh", "-c", script.String()).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("word %d: sh gives %q, want %q", i, got[i], want[i])
		}
	}
}

// FuzzBitBake holds the rules of BitBake's assignment line: one line, closed by
// the quote that opened it, nothing left to expand.
func FuzzBitBake(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, v string) {
		q, err := quote.BitBake(v)
		if err != nil {
			return
		}
		if len(q) < 2 || q[0] != q[len(q)-1] || q[1:len(q)-1] != v {
			t.Fatalf("%q is written as %q", v, q)
		}
		if strings.ContainsAny(v, "\n\r\x00") || strings.Contains(v, "${") || strings.HasSuffix(v, `\`) || strings.ContainsRune(v, rune(q[0])) {
			t.Fatalf("%q should be refused", v)
		}
	})
}

// FuzzSystemdExec reads the line back as systemd does (systemd.syntax(7) and
// systemd.service(5)).
func FuzzSystemdExec(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, v string) {
		line, err := quote.SystemdExec([]string{"/usr/bin/x", v, "end"})
		if err != nil {
			return
		}
		words, err := systemdSplit(line)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if len(words) != 3 || words[1] != v || words[2] != "end" {
			t.Fatalf("%q is written as %q and read as %q", v, line, words)
		}
	})
}

// systemdSplit splits a command line, undoes quotes, escapes and specifiers, and
// fails on what systemd would expand or take for a separator.
func systemdSplit(line string) ([]string, error) {
	var words []string
	var w strings.Builder
	in, quoted, isQuoted := false, byte(0), false
	flush := func() error {
		if !in {
			return nil
		}
		if w.String() == ";" && !isQuoted {
			return fmt.Errorf("a bare semicolon")
		}
		words = append(words, w.String())
		w.Reset()
		in, isQuoted = false, false
		return nil
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		next := byte(0)
		if i+1 < len(line) {
			next = line[i+1]
		}
		switch {
		case c == '\n':
			return nil, fmt.Errorf("a second line")
		case c == '\\':
			i++
			in = true
			switch next {
			case 'n':
				w.WriteByte('\n')
			case 't':
				w.WriteByte('\t')
			case '\\', '"', '\'':
				w.WriteByte(next)
			default:
				return nil, fmt.Errorf("escape \\%c", next)
			}
		case c == '%' || c == '$':
			if next != c {
				return nil, fmt.Errorf("%c would be expanded", c)
			}
			i++
			in = true
			w.WriteByte(c)
		case quoted != 0 && c == quoted:
			quoted = 0
		case quoted == 0 && (c == '"' || c == '\'') && !in:
			quoted, in, isQuoted = c, true, true
		case quoted == 0 && (c == ' ' || c == '\t'):
			if err := flush(); err != nil {
				return nil, err
			}
		default:
			in = true
			w.WriteByte(c)
		}
	}
	if quoted != 0 {
		return nil, fmt.Errorf("an open quote")
	}
	return words, flush()
}

// FuzzKconfig reads the text back as the kernel's conf_set_sym_val does: a
// backslash escapes the next character.
func FuzzKconfig(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, v string) {
		line, err := quote.Kconfig("X", v, true)
		if err != nil {
			return
		}
		body, ok := strings.CutPrefix(line, `CONFIG_X="`)
		if !ok {
			t.Fatalf("%q is written as %q", v, line)
		}
		var got strings.Builder
		for i := 0; i < len(body); i++ {
			switch body[i] {
			case '"':
				if i != len(body)-1 {
					t.Fatalf("%q is written as %q, which ends early", v, line)
				}
			case '\\':
				i++
				got.WriteByte(body[i])
			case '\n':
				t.Fatalf("%q is written as %q, on two lines", v, line)
			default:
				got.WriteByte(body[i])
			}
		}
		if got.String() != v {
			t.Fatalf("%q is read as %q", v, got.String())
		}
	})
}

// FuzzUdevValue reads the value back as udev does: only \" is an escape, and %
// and $ begin substitutions unless doubled.
func FuzzUdevValue(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, v string) {
		q, err := quote.UdevValue(v)
		if err != nil {
			return
		}
		body := q[1:]
		var got strings.Builder
		end := -1
		for i := 0; i < len(body) && end < 0; i++ {
			switch c := body[i]; {
			case c == '\\' && i+1 < len(body) && body[i+1] == '"':
				i++
				got.WriteByte('"')
			case c == '"':
				end = i
			case c == '%' || c == '$':
				if i+1 >= len(body) || body[i+1] != c {
					t.Fatalf("%q is written as %q, in which %c is expanded", v, q, c)
				}
				i++
				got.WriteByte(c)
			default:
				got.WriteByte(c)
			}
		}
		if end != len(body)-1 || got.String() != v {
			t.Fatalf("%q is written as %q and read as %q", v, q, got.String())
		}
	})
}

// FuzzMarkdown: nothing in text becomes a cell border, markup, HTML, or the word
// that switches a layer's check off.
func FuzzMarkdown(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, v string) {
		for _, sink := range []func(string) (string, error){quote.Markdown, quote.MarkdownCode} {
			q, err := sink(v)
			if err != nil {
				continue
			}
			if strings.Contains(strings.ToLower(q), "readme") || strings.Contains(q, "\n") {
				t.Fatalf("%q is written as %q", v, q)
			}
			for i := range q {
				if q[i] == '|' && (i == 0 || q[i-1] != '\\') {
					t.Fatalf("%q is written as %q, with a bare |", v, q)
				}
			}
		}
	})
}
