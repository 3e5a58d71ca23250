package diag

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yoctune/yoctune/schema/plan"
)

// A line of megabytes is quoted around the place, and the mark stays under it.
func TestLongLineIsExcerptedAroundThePosition(t *testing.T) {
	text := strings.Repeat("ä", 100_000) + "HERE" + strings.Repeat("ö", 100_000)
	src := NewSources()
	src.Add("a.jsonnet", []byte(text))
	r := &Report{}
	r.Add(Diagnostic{ID: "YT0001", Severity: Error, Message: "syntax", Pos: plan.Position{File: "a.jsonnet", Line: 1, Column: strings.Index(text, "HERE") + 1}, Length: 4})
	var b strings.Builder
	if err := WriteText(&b, r, src, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if len(b.String()) > 2000 || len(lines) < 5 {
		t.Fatalf("%d bytes:\n%.2000s", b.Len(), b.String())
	}
	quoted, marks := lines[3], lines[4]
	before := utf8.RuneCountInString(quoted[:strings.Index(quoted, "HERE")])
	if !utf8.ValidString(quoted) || strings.Index(marks, "^^^^") != before {
		t.Errorf("the mark is not under the place:\n%s\n%s", quoted, marks)
	}
}
