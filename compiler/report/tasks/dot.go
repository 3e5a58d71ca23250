package tasks

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on what is read. A world build of openembedded-core has about 60,000
// tasks and 400,000 edges; these leave room for a hundred times that and keep a
// file that never ends from taking the machine with it.
const (
	MaxTasks = 4 << 20
	MaxEdges = 32 << 20
	maxToken = 64 << 10 // bytes of one name or label
)

// Reasons why a graph cannot be read; test with errors.Is.
var (
	ErrSyntax = errors.New("not a task graph of bitbake -g")
	ErrLimit  = errors.New("the graph is too large")
	ErrCycle  = errors.New("the task graph has a cycle")
)

// SyntaxError is a place in a file where reading stopped. It wraps [ErrSyntax]
// or [ErrLimit].
type SyntaxError struct {
	Line, Column int // from 1; columns count bytes
	Message      string
	Err          error
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
}

// Unwrap returns the sentinel.
func (e *SyntaxError) Unwrap() error { return e.Err }

// Read reads a directed graph in the DOT language. bitbake -g writes one
// statement a line; files that graph tools have written again (several
// statements a line, chains of edges, comments, attributes) are understood as
// well. Subgraphs, HTML labels and undirected edges are refused: bitbake has
// none.
//
// The file is read once, front to back; memory grows with the number of tasks
// and edges, not with the size of labels.
func Read(r io.Reader) (*Graph, error) {
	p := &parser{
		lex: lexer{r: bufio.NewReaderSize(r, 64<<10), line: 1, column: 1},
		g:   &Graph{},
		ids: map[string]int32{},
	}
	if err := p.graph(); err != nil {
		return nil, err
	}
	if err := p.g.link(p.from, p.to); err != nil {
		return nil, err
	}
	return p.g, nil
}

type parser struct {
	lex      lexer
	tok      token
	g        *Graph
	ids      map[string]int32
	from, to []int32
	recipes  map[string]int32
}

func (p *parser) next() (err error) {
	p.tok, err = p.lex.token()
	return err
}

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{p.tok.line, p.tok.column, fmt.Sprintf(format, args...), ErrSyntax}
}

// expect takes a punctuation mark.
func (p *parser) expect(mark, where string) error {
	if p.tok.kind != punctuation || p.tok.text != mark {
		return p.fail("got %s, want %q %s", p.tok, mark, where)
	}
	return p.next()
}

func (p *parser) is(mark string) bool { return p.tok.kind == punctuation && p.tok.text == mark }

func (p *parser) graph() error {
	if err := p.next(); err != nil {
		return err
	}
	if p.tok.kind == word && strings.EqualFold(p.tok.text, "strict") {
		if err := p.next(); err != nil {
			return err
		}
	}
	if p.tok.kind != word || !strings.EqualFold(p.tok.text, "digraph") {
		return p.fail("got %s, want \"digraph\" at the start; give the task-depends.dot that bitbake -g writes", p.tok)
	}
	if err := p.next(); err != nil {
		return err
	}
	if p.tok.kind == word || p.tok.kind == quoted {
		if err := p.next(); err != nil {
			return err
		}
	}
	if err := p.expect("{", "to begin the graph"); err != nil {
		return err
	}
	for !p.is("}") {
		if p.tok.kind == end {
			return p.fail("the file ends inside the graph; run bitbake -g again")
		}
		if err := p.statement(); err != nil {
			return err
		}
	}
	if err := p.next(); err != nil {
		return err
	}
	if p.tok.kind != end {
		return p.fail("unexpected %s after the end of the graph", p.tok)
	}
	if len(p.ids) == 0 {
		return p.fail("the graph has no tasks; give the task-depends.dot that bitbake -g writes")
	}
	return nil
}

// statement reads `a [attributes]`, `a -> b -> c [attributes]`, `name = value`
// or the defaults `node [attributes]`.
func (p *parser) statement() error {
	if p.is(";") {
		return p.next()
	}
	if p.tok.kind != word && p.tok.kind != quoted {
		return p.fail("got %s, want a task", p.tok)
	}
	first := p.tok
	if err := p.next(); err != nil {
		return err
	}
	if first.kind == word {
		switch strings.ToLower(first.text) {
		case "node", "edge", "graph":
			_, err := p.attributes()
			return err
		case "subgraph":
			p.tok = first
			return p.fail("unsupported subgraph; bitbake -g writes none")
		}
	}
	if p.is("=") {
		if err := p.next(); err != nil {
			return err
		}
		if p.tok.kind != word && p.tok.kind != quoted {
			return p.fail("got %s, want a value", p.tok)
		}
		return p.next()
	}
	from, err := p.task(first)
	if err != nil {
		return err
	}
	edges := false
	for p.is("->") {
		edges = true
		if err := p.next(); err != nil {
			return err
		}
		if p.tok.kind != word && p.tok.kind != quoted {
			return p.fail("got %s, want a task after \"->\"", p.tok)
		}
		to, err := p.task(p.tok)
		if err != nil {
			return err
		}
		if len(p.from) >= MaxEdges {
			return &SyntaxError{p.tok.line, p.tok.column, fmt.Sprintf("more than %d edges", MaxEdges), ErrLimit}
		}
		p.from, p.to = append(p.from, from), append(p.to, to)
		from = to
		if err := p.next(); err != nil {
			return err
		}
	}
	label, err := p.attributes()
	if err == nil && !edges && label != "" {
		p.g.describe(from, label)
	}
	return err
}

// attributes reads any number of [name=value, …] and returns the label.
func (p *parser) attributes() (label string, err error) {
	for p.is("[") {
		if err := p.next(); err != nil {
			return "", err
		}
		for !p.is("]") {
			name := p.tok
			if name.kind != word && name.kind != quoted {
				return "", p.fail("got %s, want an attribute", p.tok)
			}
			if err := p.next(); err != nil {
				return "", err
			}
			if p.is("=") {
				if err := p.next(); err != nil {
					return "", err
				}
				if p.tok.kind != word && p.tok.kind != quoted {
					return "", p.fail("got %s, want the value of %q", p.tok, name.text)
				}
				if name.text == "label" {
					label = p.tok.text
				}
				if err := p.next(); err != nil {
					return "", err
				}
			}
			if p.is(",") || p.is(";") {
				if err := p.next(); err != nil {
					return "", err
				}
			}
		}
		if err := p.next(); err != nil {
			return "", err
		}
	}
	return label, nil
}

// task finds or makes the task of a name.
func (p *parser) task(t token) (int32, error) {
	if id, ok := p.ids[t.text]; ok {
		return id, nil
	}
	if t.text == "" {
		return 0, &SyntaxError{t.line, t.column, "a task without a name", ErrSyntax}
	}
	// It goes to terminals and pages, and bitbake has no such names.
	if !utf8.ValidString(t.text) || strings.ContainsFunc(t.text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return 0, &SyntaxError{t.line, t.column, fmt.Sprintf("task name %q has unprintable characters", t.text), ErrSyntax}
	}
	if len(p.ids) >= MaxTasks {
		return 0, &SyntaxError{t.line, t.column, fmt.Sprintf("more than %d tasks", MaxTasks), ErrLimit}
	}
	id := int32(len(p.g.Tasks))
	p.ids[t.text] = id
	recipe, task := split(t.text)
	if p.recipes == nil {
		p.recipes = map[string]int32{}
	}
	r, ok := p.recipes[recipe]
	if !ok {
		r = int32(len(p.g.Recipes))
		p.recipes[recipe] = r
		p.g.Recipes = append(p.g.Recipes, Recipe{Name: recipe})
	}
	p.g.Tasks = append(p.g.Tasks, Task{Name: t.text, Kind: task, Recipe: r})
	return id, nil
}

// split separates "glibc.do_compile" into recipe and task. Recipe names have
// dots of their own (gtk+3.0), so the last one before "do_" counts.
func split(name string) (recipe, task string) {
	i := strings.LastIndex(name, ".do_")
	if i < 0 {
		i = strings.LastIndexByte(name, '.')
	}
	if i < 0 {
		return name, ""
	}
	return name[:i], name[i+1:]
}

type kind int

const (
	end kind = iota
	word
	quoted
	punctuation
)

type token struct {
	kind         kind
	text         string
	line, column int
}

// String names a token in a message.
func (t token) String() string {
	if t.kind == end {
		return "the end of the file"
	}
	return fmt.Sprintf("%.60q", t.text)
}

type lexer struct {
	r            *bufio.Reader
	line, column int
	buf          []byte
}

// peek returns the next byte, or false at the end.
func (l *lexer) peek() (byte, bool, error) {
	b, err := l.r.Peek(1)
	if errors.Is(err, io.EOF) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("line %d: %w", l.line, err)
	}
	return b[0], true, nil
}

// take consumes the byte that peek returned.
func (l *lexer) take(b byte) {
	_, _ = l.r.Discard(1) // it is buffered: peek has seen it
	if b == '\n' {
		l.line++
		l.column = 1
	} else {
		l.column++
	}
}

func (l *lexer) errorf(line, column int, format string, args ...any) error {
	return &SyntaxError{line, column, fmt.Sprintf(format, args...), ErrSyntax}
}

func (l *lexer) token() (token, error) {
	b, ok, err := l.space()
	t := token{line: l.line, column: l.column}
	if err != nil || !ok {
		return t, err
	}
	switch {
	case b == '"':
		t.kind = quoted
		t.text, err = l.quoted()
		return t, err
	case wordByte(b):
		t.kind = word
		t.text, err = l.word()
		return t, err
	case strings.IndexByte("{}[]=;,", b) >= 0:
		l.take(b)
		t.kind, t.text = punctuation, string(rune(b))
		return t, nil
	case b == '-':
		l.take(b)
		n, ok, err := l.peek()
		switch {
		case err != nil:
			return t, err
		case ok && n == '>':
			l.take(n)
			t.kind, t.text = punctuation, "->"
			return t, nil
		case ok && n == '-':
			return t, l.errorf(t.line, t.column, "an edge without direction; bitbake -g writes \"->\"")
		}
		return t, l.errorf(t.line, t.column, "\"-\" outside of a name; names with it are written in quotes")
	case b == '<':
		return t, l.errorf(t.line, t.column, "an HTML label; bitbake -g writes none")
	}
	return t, l.errorf(t.line, t.column, "%q does not belong here", string(rune(b)))
}

// space skips blanks and comments.
func (l *lexer) space() (byte, bool, error) {
	for {
		b, ok, err := l.peek()
		if err != nil || !ok {
			return 0, false, err
		}
		switch b {
		case ' ', '\t', '\r', '\n':
			l.take(b)
		case '#':
			if err := l.restOfLine(); err != nil {
				return 0, false, err
			}
		case '/':
			if err := l.comment(); err != nil {
				return 0, false, err
			}
		default:
			return b, true, nil
		}
	}
}

func (l *lexer) restOfLine() error {
	for {
		b, ok, err := l.peek()
		if err != nil || !ok || b == '\n' {
			return err
		}
		l.take(b)
	}
}

func (l *lexer) comment() error {
	line, column := l.line, l.column
	l.take('/')
	b, ok, err := l.peek()
	if err != nil {
		return err
	}
	if ok && b == '/' {
		return l.restOfLine()
	}
	if !ok || b != '*' {
		return l.errorf(line, column, "\"/\" outside of a name; names with it are written in quotes")
	}
	l.take(b)
	star := false
	for {
		b, ok, err := l.peek()
		if err != nil {
			return err
		}
		if !ok {
			return l.errorf(line, column, "a comment that does not end")
		}
		l.take(b)
		if star && b == '/' {
			return nil
		}
		star = b == '*'
	}
}

func wordByte(b byte) bool {
	return b == '_' || b == '.' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

func (l *lexer) word() (string, error) {
	l.buf = l.buf[:0]
	for {
		b, ok, err := l.peek()
		if err != nil {
			return "", err
		}
		if !ok || !wordByte(b) {
			return string(l.buf), nil
		}
		if err := l.keep(b, l.line, l.column); err != nil {
			return "", err
		}
		l.take(b)
	}
}

// quoted reads "…". DOT has one escape, \"; bitbake's \n in labels is text.
func (l *lexer) quoted() (string, error) {
	line, column := l.line, l.column
	l.take('"')
	l.buf = l.buf[:0]
	for {
		b, ok, err := l.peek()
		if err != nil {
			return "", err
		}
		if !ok {
			return "", l.errorf(line, column, "a quote that does not end")
		}
		l.take(b)
		switch b {
		case '"':
			return string(l.buf), nil
		case '\n':
			// bitbake never breaks a name; a missing quote would swallow the file.
			return "", l.errorf(line, column, "a quote that does not end on its line")
		case '\\':
			n, ok, err := l.peek()
			if err != nil {
				return "", err
			}
			if ok && n == '"' {
				l.take(n)
				b = n
			}
		}
		if err := l.keep(b, line, column); err != nil {
			return "", err
		}
	}
}

func (l *lexer) keep(b byte, line, column int) error {
	if len(l.buf) >= maxToken {
		return &SyntaxError{line, column, fmt.Sprintf("a name of more than %d bytes", maxToken), ErrLimit}
	}
	l.buf = append(l.buf, b)
	return nil
}
