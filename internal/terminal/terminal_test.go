package terminal_test

import (
	"slices"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/yoctune/yoctune/internal/terminal"
)

func TestVariablesDecideColourWithoutATerminal(t *testing.T) {
	for _, c := range []struct {
		no, force string
		want      bool
	}{{"", "", false}, {"", "1", true}, {"", "0", false}, {"1", "1", false}} {
		t.Setenv("NO_COLOR", c.no)
		t.Setenv("CLICOLOR_FORCE", c.force)
		if got := terminal.Colour(nil); got != c.want {
			t.Errorf("NO_COLOR=%q CLICOLOR_FORCE=%q: %v", c.no, c.force, got)
		}
	}
}

// The first variable that is set decides, as in locale(7).
func TestLocaleDecidesTheCharacters(t *testing.T) {
	for _, c := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "", false}, {"", "", "C", false}, {"", "", "en_US.UTF-8", true}, {"C", "", "en_US.UTF-8", false},
		{"", "C.utf8", "C", true}, {"", "POSIX", "de_DE.UTF-8", false}, {"", "", "de_DE.ISO-8859-1", false},
	} {
		t.Setenv("LC_ALL", c.all)
		t.Setenv("LC_CTYPE", c.ctype)
		t.Setenv("LANG", c.lang)
		if got := terminal.IsUTF8(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestASCIIKeepsForeignText(t *testing.T) {
	if got := terminal.ASCII("█░ 48.1 °C – größer → 5 …"); got != "#. 48.1 C - größer -> 5 ..." {
		t.Errorf("%q", got)
	}
}

func TestWrapBreaksBetweenWords(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"one two three", 0, []string{"one two three"}}, {"one two three", 7, []string{"one two", "three"}},
		{"one", 2, []string{"one"}}, {"abcdef g", 3, []string{"abcdef", "g"}}, {"", 5, []string{""}},
	} {
		if got := terminal.Wrap(c.text, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%q, %d: %q", c.text, c.width, got)
		}
	}
}

func TestTruncateNeverExceedsTheWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, width := rapid.String().Draw(t, "text"), rapid.IntRange(1, 50).Draw(t, "width")
		if n := utf8.RuneCountInString(terminal.Truncate(text, width, "…")); n > width {
			t.Errorf("%d", n)
		}
	})
}
