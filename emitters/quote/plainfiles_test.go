package quote_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/quote"
)

// What would end the value, or start another key or line, is refused or escaped.
func TestUdevAndTmpfilesValues(t *testing.T) {
	for _, c := range []struct {
		name     string
		sink     func(string) (string, error)
		in, want string // "" is a refusal
	}{
		{"attribute", quote.UdevAttribute, "queue/read_ahead_kb", "ATTR{queue/read_ahead_kb}"},
		{"attribute", quote.UdevAttribute, `x}="1", RUN{program`, ""},
		{"attribute", quote.UdevAttribute, "", ""},
		{"word", quote.UdevWord, "adaptive-rx", "adaptive-rx"},
		{"word", quote.UdevWord, "1 -K", ""},
		{"word", quote.UdevWord, `1"`, ""},
		{"word", quote.UdevWord, "$name", ""},
		{"tmpfiles", quote.TmpfilesText, "defer+madvise", "defer+madvise"},
		{"tmpfiles", quote.TmpfilesText, `50% \n`, `50%% \\n`},
		{"tmpfiles", quote.TmpfilesText, "-", ""},
		{"tmpfiles", quote.TmpfilesText, " 1", ""},
		{"tmpfiles", quote.TmpfilesText, "1\nd /x", ""},
	} {
		got, err := c.sink(c.in)
		if (err != nil) != (c.want == "") || err == nil && got != c.want {
			t.Errorf("%s %q: %q, %v; want %q", c.name, c.in, got, err, c.want)
		}
	}
}
