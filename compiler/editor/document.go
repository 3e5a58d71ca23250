package editor

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// document is a file that the editor shows.
type document struct {
	uri     string // as the editor writes it
	path    string
	version int
	text    string
}

var errScheme = errors.New("only files on disk are checked")

// pathOf returns the path of a file: URI.
func pathOf(uri string) (string, error) {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return "", fmt.Errorf("%q is not a URI: %w", uri, err)
	case u.Scheme != "file":
		return "", fmt.Errorf("%s: %w", uri, errScheme)
	case u.Host != "" && u.Host != "localhost":
		return "", fmt.Errorf("%s: the file is on another machine", uri)
	case !strings.HasPrefix(u.Path, "/") || strings.ContainsRune(u.Path, 0):
		return "", fmt.Errorf("%s: the path is not absolute", uri)
	}
	return filepath.Clean(filepath.FromSlash(u.Path)), nil
}

// uriOf returns the file: URI of a path.
func uriOf(path string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// encoding is the unit in which an editor counts within a line.
type encoding string

const (
	utf8Units  encoding = "utf-8"
	utf16Units encoding = "utf-16"
)

// units is the length of a text.
func (e encoding) units(s string) int {
	if e == utf8Units {
		return len(s)
	}
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

// bytes is the offset in a line of a number of units; the line's length if it has fewer.
func (e encoding) bytes(line string, units int) int {
	if e == utf8Units {
		at := max(0, min(units, len(line)))
		for at < len(line) && !utf8.RuneStart(line[at]) {
			at--
		}
		return at
	}
	n := 0
	for i, r := range line {
		if n >= units {
			return i
		}
		n += max(1, utf16.RuneLen(r))
	}
	return len(line)
}

// lines is a text with the offsets of its lines.
type lines struct {
	text   string
	starts []int
}

func newLines(text string) *lines {
	l := &lines{text: text, starts: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	return l
}

// line returns a line, counted from 0, without its end; "" beyond the text.
func (l *lines) line(n int) string {
	if n < 0 || n >= len(l.starts) {
		return ""
	}
	end := len(l.text)
	if n+1 < len(l.starts) {
		end = l.starts[n+1] - 1
	}
	return strings.TrimSuffix(l.text[l.starts[n]:end], "\r")
}

// offset returns the offset of a place, and the nearest one for a place outside of the text.
func (l *lines) offset(p place, e encoding) int {
	switch {
	case p.Line < 0:
		return 0
	case p.Line >= len(l.starts):
		return len(l.text)
	}
	return l.starts[p.Line] + e.bytes(l.line(p.Line), p.Character)
}

// place returns the place of an offset.
func (l *lines) place(offset int, e encoding) place {
	offset = max(0, min(offset, len(l.text)))
	n := sort.SearchInts(l.starts, offset+1) - 1
	return place{n, e.units(l.text[l.starts[n]:offset])}
}

// offsetOf returns the offset of a line and a column in bytes, both counted from 1. ok is false
// for a place outside of the text.
func (l *lines) offsetOf(line, column int) (offset int, ok bool) {
	if line < 1 || line > len(l.starts) || column < 1 || column > len(l.line(line-1))+1 {
		return 0, false
	}
	return l.starts[line-1] + column - 1, true
}

// span returns the range of some bytes.
func (l *lines) span(start, end int, e encoding) span {
	return span{l.place(start, e), l.place(end, e)}
}
