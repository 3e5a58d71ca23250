// Package cursor finds out what a place of a text in CUE, HCL or Jsonnet is part of, from the text before it
// alone: the text need not parse.
package cursor

import (
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/hcl"
	"github.com/yoctune/yoctune/compiler/language/jsonnet"
)

// Cursor is what a place of a text is part of.
type Cursor struct {
	// Around are the names of the enclosing fields, outermost first, as the text has them; a
	// name that is computed is "". In HCL the type and the label of a block are two names.
	Around []string
	Token  Token // at the place; empty between tokens
	// IsKey is set where a name of a field is expected. In CUE a value may turn out to be
	// one: "a: b" may become "a: b: 1".
	IsKey bool
	// InList is set for an element of a list.
	InList bool
	// IsNamed is set where the token is followed by what ends a name: ":", "=" or "{".
	IsNamed bool
	// IsWhole is set for a token that is all of a value.
	IsWhole bool
	// Fields are the fields around the place, outermost first, and the one that it is in.
	Fields []Field
}

// Field is where a field begins, and the length of its path.
type Field struct{ Start, Depth int }

// Token is a part of a text.
type Token struct {
	Kind       Kind
	Start, End int
	Text       string // without quotes
	Quote      string // of a string: what it begins with
	Open       bool   // a string without its end
}

// Kind is a kind of tokens.
type Kind int

// The kinds of tokens.
const (
	Space Kind = iota
	Comment
	newline
	Word
	Quoted
	mark // one character
	end
)

// scanner splits a text into tokens.
type scanner struct {
	language string
	text     string
	at       int
	comment  Token // the last one
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80 || c == '_' || c == '$' || c == '.'
}

// next returns the next token that is neither space nor a comment.
func (s *scanner) next() Token {
	for {
		switch t := s.scan(); t.Kind {
		case Space:
		case Comment:
			s.comment = t
		default:
			return t
		}
	}
}

func (s *scanner) scan() Token {
	start := s.at
	if start >= len(s.text) {
		return Token{Kind: end, Start: start, End: start}
	}
	rest := s.text[start:]
	switch c := rest[0]; {
	case c == '\n':
		return s.take(newline, 1)
	case c == ' ' || c == '\t' || c == '\r':
		return s.take(Space, 1)
	case strings.HasPrefix(rest, "//"), c == '#' && s.language != ".cue":
		return s.take(Comment, endOf(rest, "\n", false))
	case strings.HasPrefix(rest, "/*") && s.language != ".cue":
		return s.take(Comment, endOf(rest[2:], "*/", true)+2)
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
		return s.take(Word, n)
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

func (s *scanner) take(kind Kind, n int) Token {
	t := Token{Kind: kind, Start: s.at, End: s.at + n, Text: s.text[s.at : s.at+n]}
	s.at = t.End
	return t
}

// block reads a text of several lines between two marks.
func (s *scanner) block(from, to string) Token {
	n := endOf(s.text[s.at+len(from):], to, true)
	t := s.take(Quoted, len(from)+n)
	t.Quote, t.Open = from, !strings.HasSuffix(t.Text[len(from):], to)
	t.Text = strings.TrimSuffix(t.Text[len(from):], to)
	return t
}

func (s *scanner) heredoc() Token {
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
	t := s.take(Quoted, n)
	t.Quote = "<<"
	return t
}

// string reads a string of one line. Interpolations may hold further strings.
func (s *scanner) string(quote string) Token {
	rest := s.text[s.at:]
	depth := 0
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\n':
			t := s.take(Quoted, i)
			t.Quote, t.Text, t.Open = quote, t.Text[1:], true
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
			t := s.take(Quoted, i+1)
			t.Quote = quote
			t.Text = unquote(t.Text)
			return t
		}
	}
	t := s.take(Quoted, len(rest))
	t.Quote, t.Text, t.Open = quote, t.Text[1:], true
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
	names   int // of around, before and after it
	depth   int
}

// statement is the part of a field that was read.
type statement struct {
	start  int      // of its first token
	names  []string // labels that ":" or "=" ended
	tokens []Token  // since then
	value  bool     // a label has ended
}

// reader follows the fields of a text.
type reader struct {
	scanner
	around []string
	open   []nesting
	now    statement
	last   Token
}

// Find finds out what an offset of a text is part of.
func Find(language, text string, offset int) Cursor {
	r := &reader{scanner: scanner{language: language, text: text}}
	for {
		t := r.next()
		named := t.Kind == Word || t.Kind == Quoted
		switch {
		case t.Kind == end || t.Start > offset || t.Start == offset && !named:
			if c := r.comment; c.Kind == Comment && c.Start < offset && offset <= c.End {
				return Cursor{Token: c}
			}
			return r.at(Token{Start: offset, End: offset}, t)
		case named && offset <= t.End:
			return r.at(t, r.peek())
		}
		r.read(t)
	}
}

// peek returns the next token without reading it.
func (r *reader) peek() Token {
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
func (r *reader) at(t, next Token) Cursor {
	c := Cursor{Token: t}
	c.Around = append(append(c.Around, r.around...), r.now.names...)
	c.InList = r.inside() == '['
	c.IsNamed = next.Kind == mark && (next.Text == ":" || next.Text == "=" && r.language == hcl.Extension || next.Text == "{" && r.language == hcl.Extension && !r.now.value)
	c.IsKey = !c.InList && r.inside() != '(' && (!r.now.value || c.IsNamed && r.language == ".cue")
	for _, n := range r.open {
		if n.depth > n.names {
			c.Fields = append(c.Fields, Field{n.outer.start, n.depth})
		}
	}
	c.IsWhole = len(r.now.tokens) == 0 && (r.now.value || c.InList) && (next.Kind == end || next.Kind == newline || next.Kind == mark && strings.Contains(",;}])", next.Text))
	if r.language == hcl.Extension && c.IsKey && len(r.now.tokens) > 0 {
		c.IsKey = false // the label of a block
	}
	r.begin(t.Start)
	depth := len(c.Around)
	if c.IsKey {
		depth++
	}
	c.Fields = append(c.Fields, Field{r.now.start, depth})
	return c
}

// read takes a token into account.
func (r *reader) read(t Token) {
	switch {
	case t.Kind == newline:
		if r.endsStatement() {
			r.now = statement{}
		}
		return
	case t.Kind != mark:
		r.begin(t.Start)
		r.now.tokens = append(r.now.tokens, t)
		if r.language == jsonnet.Extension && t.Text == "local" && !r.now.value {
			r.now = statement{names: []string{""}, value: true} // a value of no field
		}
	default:
		r.readMark(t)
	}
	r.last = t
}

// begin notes where a statement begins.
func (r *reader) begin(start int) {
	if len(r.now.tokens) == 0 && !r.now.value {
		r.now.start = start
	}
}

func (r *reader) readMark(t Token) {
	switch c := t.Text[0]; c {
	case ':', '=':
		if c == '=' && (r.language == jsonnet.Extension || r.now.value) {
			return
		}
		if name, ok := r.label(); ok {
			r.now.names = append(r.now.names, name)
		}
		r.now.value, r.now.tokens = true, nil
	case '{', '[', '(':
		r.begin(t.Start)
		r.open = append(r.open, nesting{bracket: c, outer: r.now, names: len(r.around)})
		r.around = append(r.around, r.now.names...)
		if c == '{' && r.language == hcl.Extension && !r.now.value {
			for _, header := range r.now.tokens { // of a block
				r.around = append(r.around, header.Text)
			}
		}
		r.open[len(r.open)-1].depth = len(r.around)
		r.now = statement{}
	case '}', ']', ')':
		if len(r.open) == 0 {
			return
		}
		last := r.open[len(r.open)-1]
		r.open = r.open[:len(r.open)-1]
		r.around, r.now = r.around[:last.names], last.outer
		r.now.tokens = append(r.now.tokens, Token{Kind: mark, Start: t.Start, End: t.End})
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
	if last.Kind == mark || len(r.now.tokens) > 1 {
		return "", true // computed, or "let x ="
	}
	return last.Text, true
}

// endsStatement reports whether a new line ends what was read.
func (r *reader) endsStatement() bool {
	if r.language == jsonnet.Extension || r.inside() == '(' || r.inside() == '[' {
		return false
	}
	return r.last.Kind != mark || strings.Contains("})]?!", r.last.Text)
}
