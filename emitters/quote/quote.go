// Package quote writes values in other file formats, with one function for each
// place that a value can appear in. Each returns the text to write, or an error: a
// format without an escape character (BitBake, sysctl.d, nvpmodel) gets no
// approximation, because a build would execute a value that is only nearly right.
//
// Every refusal is an [*Error], so that the caller can add the line of the
// configuration.
package quote

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

// maxLen is the longest value, in bytes, that any sink takes. It is far above
// what a tuning value needs and far below what makes a build log unreadable.
const maxLen = 16 << 10

// Error is the reason why a value cannot be written to a sink.
type Error struct {
	Sink   string // what the value was for, e.g. "bitbake value"
	Value  string // as given
	Reason string
	Hint   string // what to write instead, or ""
}

func (e *Error) Error() string {
	v := e.Value
	if len(v) > 80 {
		// Cut at a rune, so that the message stays valid text.
		cut := 80
		for cut > 0 && !utf8.RuneStart(v[cut]) {
			cut--
		}
		v = v[:cut] + "…"
	}
	msg := fmt.Sprintf("%s %q: %s", e.Sink, v, e.Reason)
	if e.Hint != "" {
		msg += "; " + e.Hint
	}
	return msg
}

func refuse(sink, value, reason, hint string) error {
	return &Error{Sink: sink, Value: value, Reason: reason, Hint: hint}
}

// checkText refuses text that is not allowed in a line of any of our formats: broken
// UTF-8, control characters, line and paragraph separators, and invisible
// formatting such as the right-to-left override, which makes a line look
// different from its effect. Characters in allow pass.
func checkText(sink, v, allow string) error {
	if len(v) > maxLen {
		return refuse(sink, v, fmt.Sprintf("%d bytes is longer than %d", len(v), maxLen), "put long text in a separate file")
	}
	if isVisibleASCII(v) {
		return nil
	}
	if !utf8.ValidString(v) {
		return refuse(sink, v, "it is not valid UTF-8", "")
	}
	for _, r := range v {
		if strings.ContainsRune(allow, r) {
			continue
		}
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) || r == utf8.RuneError {
			return refuse(sink, v, fmt.Sprintf("it holds the control character U+%04X", r), "write one line of visible text")
		}
	}
	return nil
}

// isVisibleASCII reports whether v needs no closer look, as is true of most values.
func isVisibleASCII(v string) bool {
	for i := range len(v) {
		if v[i] < ' ' || v[i] > '~' {
			return false
		}
	}
	return true
}

// checkCharset refuses an empty value and every character outside the set that ok
// accepts.
func checkCharset(sink, v, hint string, ok func(i int, r rune) bool) error {
	if v == "" {
		return refuse(sink, v, "it is empty", hint)
	}
	if err := checkText(sink, v, ""); err != nil {
		return err
	}
	for i, r := range v {
		if !ok(i, r) {
			return refuse(sink, v, fmt.Sprintf("%q is not allowed here", r), hint)
		}
	}
	return nil
}

// checkWord is checkCharset for sinks that write the value unchanged.
func checkWord(sink, v, hint string, ok func(i int, r rune) bool) (string, error) {
	if err := checkCharset(sink, v, hint, ok); err != nil {
		return "", err
	}
	return v, nil
}

func isLower(r rune) bool { return 'a' <= r && r <= 'z' }
func isUpper(r rune) bool { return 'A' <= r && r <= 'Z' }
func isDigit(r rune) bool { return '0' <= r && r <= '9' }
func isAlnum(r rune) bool { return isLower(r) || isUpper(r) || isDigit(r) }

func isAmong(set string, r rune) bool { return strings.ContainsRune(set, r) }

// pathMarks are the characters of a path besides letters and digits: those of the
// schema's #Path and #AbsPath. None of them is special inside a word of a shell or of
// systemd, or inside bitbake's quotes.
const pathMarks = "._+,@:=/-"

// Comment writes v after a comment sign: any one line, but no backslash at its
// end, which would make the next line part of the comment.
func Comment(v string) (string, error) {
	if err := checkText("comment", v, ""); err != nil {
		return "", err
	}
	if strings.HasSuffix(v, `\`) {
		return "", refuse("comment", v, "a backslash at the end joins the next line", "")
	}
	return v, nil
}

// CPUList writes a list of CPUs such as 0-3,5 (cpuset(7), "List format").
func CPUList(v string) (string, error) {
	const sink = "cpu list"
	if err := checkCharset(sink, v, "write numbers and ranges, such as 0-3,5", func(_ int, r rune) bool {
		return isDigit(r) || r == ',' || r == '-'
	}); err != nil {
		return "", err
	}
	if cpus, err := cpulist.Parse(v); err != nil || len(cpus) == 0 {
		return "", refuse(sink, v, "it is not a list of CPUs and ascending ranges", "write numbers and ranges, such as 0-3,5")
	}
	return v, nil
}
