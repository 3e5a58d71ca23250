package editor

import (
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/hcl"
	"github.com/yoctune/yoctune/compiler/language/jsonnet"
)

// cursor is what a place of a text is part of, as far as the text before it shows. The text
// need not parse: it is usually read in the middle of a word.
type cursor struct {
	// around are the names of the enclosing fields, outermost first, as the text has them; a
	// name that is computed is "". In HCL the type and the label of a block are two names.
	around []string
	token  token // at the place; empty between tokens
	// isKey is set where a name of a field is expected. In CUE a value may turn out to be
	// one: "a: b" may become "a: b: 1".
	isKey bool
	// inList is set for an element of a list.
	inList bool
	// isNamed is set where the token is followed by what ends a name: ":", "=" or "{".
	isNamed bool
}

// token is a part of a text.
type token struct {
	kind       tokenKind
	start, end int
	text       string // without quotes
	quote      string // of a string: what it begins with
	open       bool   // a string without its end
}

type tokenKind int

const (
	space tokenKind = iota
	comment
	newline
	word
	quoted
	mark // one character
	end
)

// scanner splits a text into tokens.
type scanner struct {
	language string
	text     string
	at       int
	comment  token // the last one
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80 || c == '_' || c == '$' || c == '.'
}

// next returns the next token that is neither space nor a comment.
func (s *scanner) next() token {
	for {
		switch t := s.scan(); t.kind {
		case space:
		case comment:
			s.comment = t
		default:
			return t
		}
	}
}

func (s *scanner) scan() token {
	start := s.at
	if start >= len(s.text) {
		return token{kind: end, start: start, end: start}
	}
	rest := s.text[start:]
	switch c := rest[0]; {
	case c == '\n':
		return s.take(newline, 1)
	case c == ' ' || c == '\t' || c == '\r':
		return s.take(space, 1)
	case strings.HasPrefix(rest, "//"), c == '#' && s.language != ".cue":
		return s.take(comment, endOf(rest, "\n", false))
	case strings.HasPrefix(rest, "/*") && s.language != ".cue":
		return s.take(comment, endOf(rest[2:], "*/", true)+2)
	case strings.HasPrefix(rest, `"""`), strings.HasPrefix(rest, "'''") && s.language == ".cue":
		return s.block(rest[:3], rest[:3])
	case strings.HasPrefix(rest, "|||") && s.language == jsonnet.Extension:
		return s.block("|||", "|||")
	case strings.HasPrefix(rest, "<<") && s.language == hcl.Extension:
		return s.heredoc()
	case c == '"' || c == '\'' && s.language != hcl.Extension:
		return s.string(rest[:1])
	case isWordByte(c), c == '#', c == '-' && s.language == hcl.Extension:
		n := 1
		for n < len(rest) && (isWordByte(rest[n]) || rest[n] == '#' && s.language == ".cue" || rest[n] == '-' && s.language == hcl.Extension) {
			n++
		}
		return s.take(word, n)
	}
	return s.take(mark, 1)
}

// endOf is the length of s up to a text, which is included or not; all of s if it lacks the text.
func endOf(s, text string, included bool) int {
	i := strings.Index(s, text)
	switch {
	case i < 0:
		return len(s)
	case included:
		return i + len(text)
	}
	return i
}

func (s *scanner) take(kind tokenKind, n int) token {
	t := token{kind: kind, start: s.at, end: s.at + n, text: s.text[s.at : s.at+n]}
	s.at = t.end
	return t
}

// block reads a text of several lines between two marks.
func (s *scanner) block(from, to string) token {
	n := endOf(s.text[s.at+len(from):], to, true)
	t := s.take(quoted, len(from)+n)
	t.quote, t.open = from, !strings.HasSuffix(t.text[len(from):], to)
	t.text = strings.TrimSuffix(t.text[len(from):], to)
	return t
}

func (s *scanner) heredoc() token {
	rest := s.text[s.at:]
	first := endOf(rest, "\n", true)
	label := strings.TrimSpace(strings.TrimLeft(rest[:first], "<-"))
	n := first
	for n < len(rest) && label != "" {
		length := endOf(rest[n:], "\n", true)
		line := rest[n : n+length]
		if strings.TrimSpace(line) == label {
			n += endOf(line, "\n", false) // the new line ends the attribute, too
			break
		}
		n += length
	}
	t := s.take(quoted, n)
	t.quote = "<<"
	return t
}

// string reads a string of one line. Interpolations may hold further strings.
func (s *scanner) string(quote string) token {
	rest := s.text[s.at:]
	depth := 0
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\n':
			t := s.take(quoted, i)
			t.quote, t.text, t.open = quote, t.text[1:], true
			return t
		case c == '\\' && i+1 < len(rest) && s.language == ".cue" && rest[i+1] == '(':
			depth++
			i++
		case c == '\\':
			i++
		case c == '$' && i+1 < len(rest) && s.language == hcl.Extension && rest[i+1] == '{':
			depth++
			i++
		case depth > 0 && (c == ')' || c == '}'):
			depth--
		case depth > 0 && (c == '(' || c == '{'):
			depth++
		case depth == 0 && rest[i:i+1] == quote:
			t := s.take(quoted, i+1)
			t.quote = quote
			t.text = unquote(t.text)
			return t
		}
	}
	t := s.take(quoted, len(rest))
	t.quote, t.text, t.open = quote, t.text[1:], true
	return t
}

// unquote returns the content of a string. Escapes of other languages than Go are rare in
// names, and stay.
func unquote(s string) string {
	inside := s[1 : len(s)-1]
	if s[0] == '\'' {
		s = `"` + inside + `"`
	}
	if text, err := strconv.Unquote(s); err == nil {
		return text
	}
	return inside
}

// nesting is a bracket that is open, with what was read before it.
type nesting struct {
	bracket byte
	outer   statement
	names   int // of around
}

// statement is the part of a field that was read.
type statement struct {
	names  []string // labels that ":" or "=" ended
	tokens []token  // since then
	value  bool     // a label has ended
}

// reader follows the fields of a text.
type reader struct {
	scanner
	around []string
	open   []nesting
	now    statement
	last   token
}

// findCursor finds out what an offset of a text is part of.
func findCursor(language, text string, offset int) cursor {
	r := &reader{scanner: scanner{language: language, text: text}}
	for {
		t := r.next()
		named := t.kind == word || t.kind == quoted
		switch {
		case t.kind == end || t.start > offset || t.start == offset && !named:
			if c := r.comment; c.kind == comment && c.start < offset && offset <= c.end {
				return cursor{token: c}
			}
			return r.at(token{start: offset, end: offset}, t)
		case named && offset <= t.end:
			return r.at(t, r.peek())
		}
		r.read(t)
	}
}

// peek returns the next token without reading it.
func (r *reader) peek() token {
	saved := r.scanner
	t := r.next()
	r.scanner = saved
	return t
}

func (r *reader) inside() byte {
	if len(r.open) == 0 {
		return 0
	}
	return r.open[len(r.open)-1].bracket
}

// at describes a token, or the space between two.
func (r *reader) at(t, next token) cursor {
	c := cursor{token: t}
	c.around = append(append(c.around, r.around...), r.now.names...)
	c.inList = r.inside() == '['
	c.isNamed = next.kind == mark && (next.text == ":" || next.text == "=" && r.language == hcl.Extension || next.text == "{" && r.language == hcl.Extension && !r.now.value)
	c.isKey = !c.inList && r.inside() != '(' && (!r.now.value || c.isNamed && r.language == ".cue")
	if r.language == hcl.Extension && c.isKey && len(r.now.tokens) > 0 {
		c.isKey = false // the label of a block
	}
	return c
}

// read takes a token into account.
func (r *reader) read(t token) {
	switch {
	case t.kind == newline:
		if r.endsStatement() {
			r.now = statement{}
		}
		return
	case t.kind != mark:
		r.now.tokens = append(r.now.tokens, t)
		if r.language == jsonnet.Extension && t.text == "local" && !r.now.value {
			r.now = statement{names: []string{""}, value: true} // a value of no field
		}
	default:
		r.readMark(t)
	}
	r.last = t
}

func (r *reader) readMark(t token) {
	switch c := t.text[0]; c {
	case ':', '=':
		if c == '=' && (r.language == jsonnet.Extension || r.now.value) {
			return
		}
		if name, ok := r.label(); ok {
			r.now.names = append(r.now.names, name)
		}
		r.now.value, r.now.tokens = true, nil
	case '{', '[', '(':
		r.open = append(r.open, nesting{c, r.now, len(r.around)})
		r.around = append(r.around, r.now.names...)
		if c == '{' && r.language == hcl.Extension && !r.now.value {
			for _, header := range r.now.tokens { // of a block
				r.around = append(r.around, header.text)
			}
		}
		r.now = statement{}
	case '}', ']', ')':
		if len(r.open) == 0 {
			return
		}
		last := r.open[len(r.open)-1]
		r.open = r.open[:len(r.open)-1]
		r.around, r.now = r.around[:last.names], last.outer
		r.now.tokens = append(r.now.tokens, token{kind: mark, start: t.start, end: t.end})
	case ',', ';':
		r.now = statement{}
	}
}

// label is the name that ":" or "=" ends. The second colon of Jsonnet's "::" ends none.
func (r *reader) label() (string, bool) {
	if len(r.now.tokens) == 0 {
		return "", false
	}
	last := r.now.tokens[len(r.now.tokens)-1]
	if last.kind == mark || len(r.now.tokens) > 1 {
		return "", true // computed, or "let x ="
	}
	return last.text, true
}

// endsStatement reports whether a new line ends what was read.
func (r *reader) endsStatement() bool {
	if r.language == jsonnet.Extension || r.inside() == '(' || r.inside() == '[' {
		return false
	}
	return r.last.kind != mark || strings.Contains("})]?!", r.last.text)
}
