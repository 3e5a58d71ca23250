package tasks

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/scanner"
	"unicode"
	"unicode/utf8"
)

// Limits of a graph. A world build of openembedded-core has about 60,000 tasks and 400,000
// edges. The limits are almost a hundred times that; they bound the memory that an endless
// file can use.
const (
	maxTasks = 4 << 20
	maxEdges = 32 << 20
	maxToken = 64 << 10 // bytes of one name or label
)

// Reasons why a graph cannot be read; test with errors.Is.
var (
	errSyntax = errors.New("not a task graph of bitbake -g")
	errLimit  = errors.New("the graph is too large")
	errCycle  = errors.New("the task graph has a cycle")
)

// SyntaxError is a place in a file where reading stopped. It wraps [errSyntax]
// or [errLimit].
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
// statement a line. Files that graph tools rewrote (several statements a line, chains of
// edges, comments, attributes) are accepted, too. Subgraphs, HTML labels and undirected
// edges are refused, because bitbake writes none.
//
// The file is read once, front to back. Memory grows with the number of tasks
// and edges, not with the size of labels.
func Read(r io.Reader) (*Graph, error) {
	p := &parser{g: &Graph{}, ids: map[string]int32{}, recipes: map[string]int32{}}
	in := &reader{Reader: r}
	p.s.Init(bufio.NewReaderSize(in, 64<<10))
	p.s.Mode = scanner.ScanIdents | scanner.ScanComments | scanner.SkipComments
	p.s.IsIdentRune = func(c rune, i int) bool {
		return i <= maxToken && (c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80)
	}
	p.s.Error = func(s *scanner.Scanner, problem string) {
		if strings.Contains(problem, "comment") {
			p.failAt(s.Position, errSyntax, "a comment that does not end")
		}
	}
	p.graph()
	if in.err != nil {
		return nil, fmt.Errorf("line %d: %w", p.s.Line, in.err)
	}
	if p.err != nil {
		return nil, p.err
	}
	if err := p.g.link(p.from, p.to); err != nil {
		return nil, err
	}
	return p.g, nil
}

// reader keeps an error that text/scanner would turn into text.
type reader struct {
	io.Reader
	err error
}

func (r *reader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// parser reads statements. After the first error every token is end.
type parser struct {
	s    scanner.Scanner
	kind kind // of the current token
	text string
	at   scanner.Position
	buf  []byte
	err  error

	g        *Graph
	ids      map[string]int32
	from, to []int32
	recipes  map[string]int32
}

type kind int

const (
	end kind = iota
	word
	quoted
	mark // { } [ ] = ; , ->
)

func (p *parser) failAt(at scanner.Position, why error, format string, args ...any) {
	if p.err == nil {
		p.err = &SyntaxError{at.Line, at.Column, fmt.Sprintf(format, args...), why}
	}
	p.kind = end
}

func (p *parser) fail(format string, args ...any) { p.failAt(p.at, errSyntax, format, args...) }

// got describes the current token, for a message.
func (p *parser) got() string {
	if p.kind == end {
		return "the end of the file"
	}
	return fmt.Sprintf("%.60q", p.text)
}

func (p *parser) advance() {
	if p.err != nil {
		return
	}
	c := p.s.Scan()
	for c == '#' { // to the end of the line
		for c != '\n' && c != scanner.EOF {
			c = p.s.Next()
		}
		c = p.s.Scan()
	}
	p.at = p.s.Position
	switch {
	case p.err != nil:
	case c == scanner.EOF:
		p.kind, p.at = end, p.s.Pos()
	case c == scanner.Ident:
		p.kind, p.text = word, p.s.TokenText()
		if len(p.text) > maxToken {
			p.failAt(p.at, errLimit, "a name of more than %d bytes", maxToken)
		}
	case c == '"':
		p.kind = quoted
		p.quote()
	case c == '-' && p.s.Peek() == '>':
		p.s.Next()
		p.kind, p.text = mark, "->"
	case c == '-' && p.s.Peek() == '-':
		p.fail("an edge without direction; bitbake -g writes \"->\"")
	case c == '-', c == '/':
		p.fail("unexpected %q; quote names that contain it", string(c))
	case c == '<':
		p.fail("an HTML label; bitbake -g writes none")
	case strings.ContainsRune("{}[]=;,", c):
		p.kind, p.text = mark, string(c)
	default:
		p.fail("unexpected %q", string(c))
	}
}

// quote reads what follows an opening quote. DOT has one escape, \"; bitbake's \n
// in labels is text.
func (p *parser) quote() {
	p.buf = p.buf[:0]
	for {
		c := p.s.Next()
		switch {
		case c == scanner.EOF:
			p.fail("a quoted name that does not end")
			return
		case c == '\n': // a missing quote would swallow the file
			p.fail("a quoted name that does not end on its line")
			return
		case c == '"':
			p.text = string(p.buf)
			return
		case c == '\\' && p.s.Peek() == '"':
			c = p.s.Next()
		}
		if p.buf = utf8.AppendRune(p.buf, c); len(p.buf) > maxToken {
			p.failAt(p.at, errLimit, "a name of more than %d bytes", maxToken)
			return
		}
	}
}

func (p *parser) is(text string) bool { return p.kind == mark && p.text == text }

// accept takes a mark if it comes next.
func (p *parser) accept(text string) bool {
	if !p.is(text) {
		return false
	}
	p.advance()
	return true
}

// name takes a word or a quoted name.
func (p *parser) name(what string, args ...any) string {
	if p.kind != word && p.kind != quoted {
		p.fail("got %s, want "+what, append([]any{p.got()}, args...)...)
		return ""
	}
	text := p.text
	p.advance()
	return text
}

func (p *parser) graph() {
	p.advance()
	if p.kind == word && strings.EqualFold(p.text, "strict") {
		p.advance()
	}
	if p.kind != word || !strings.EqualFold(p.text, "digraph") {
		p.fail("got %s, want \"digraph\" at the start; give the task-depends.dot that bitbake -g writes", p.got())
	}
	p.advance()
	if p.kind == word || p.kind == quoted {
		p.advance()
	}
	if !p.accept("{") {
		p.fail("got %s, want \"{\" to begin the graph", p.got())
	}
	for p.err == nil && !p.is("}") {
		if p.kind == end {
			p.fail("the file ends inside the graph; run bitbake -g again")
		}
		p.statement()
	}
	p.advance()
	switch {
	case p.err != nil:
	case p.kind != end:
		p.fail("unexpected %s after the end of the graph", p.got())
	case len(p.ids) == 0:
		p.fail("the graph has no tasks; give the task-depends.dot that bitbake -g writes")
	}
}

// statement reads `a [attributes]`, `a -> b -> c [attributes]`, `name = value`
// or the defaults `node [attributes]`.
func (p *parser) statement() {
	if p.accept(";") {
		return
	}
	plain, at := p.kind == word, p.at
	first := p.name("a task")
	switch keyword := strings.ToLower(first); {
	case plain && (keyword == "node" || keyword == "edge" || keyword == "graph"):
		p.attributes()
		return
	case plain && keyword == "subgraph":
		p.failAt(at, errSyntax, "unsupported subgraph; bitbake -g writes none")
		return
	case p.accept("="):
		p.name("a value")
		return
	}
	from, edges := p.task(first, at), false
	for p.accept("->") {
		edges, at = true, p.at
		to := p.task(p.name("a task after \"->\""), at)
		if len(p.from) >= maxEdges {
			p.failAt(at, errLimit, "more than %d edges", maxEdges)
		}
		p.from, p.to = append(p.from, from), append(p.to, to)
		from = to
	}
	if label := p.attributes(); p.err == nil && !edges && label != "" {
		p.g.describe(from, label)
	}
}

// attributes reads any number of [name=value, …] and returns the label.
func (p *parser) attributes() (label string) {
	for p.accept("[") {
		for p.err == nil && !p.is("]") {
			name := p.name("an attribute")
			if p.accept("=") {
				if value := p.name("the value of %q", name); name == "label" {
					label = value
				}
			}
			if !p.accept(",") {
				p.accept(";")
			}
		}
		p.advance()
	}
	return label
}

// task finds or makes the task of a name.
func (p *parser) task(name string, at scanner.Position) int32 {
	id, ok := p.ids[name]
	// Names are printed to terminals and pages. bitbake has no names with such characters.
	hidden := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	switch {
	case ok || p.err != nil:
		return id
	case name == "":
		p.failAt(at, errSyntax, "a task without a name")
		return 0
	case strings.ContainsFunc(name, hidden):
		p.failAt(at, errSyntax, "task name %q has unprintable characters", name)
		return 0
	case len(p.ids) >= maxTasks:
		p.failAt(at, errLimit, "more than %d tasks", maxTasks)
		return 0
	}
	id = int32(len(p.g.Tasks))
	p.ids[name] = id
	recipe, task := split(name)
	r, ok := p.recipes[recipe]
	if !ok {
		r = int32(len(p.g.Recipes))
		p.recipes[recipe] = r
		p.g.Recipes = append(p.g.Recipes, Recipe{Name: recipe})
	}
	p.g.Tasks = append(p.g.Tasks, Task{Name: name, Kind: task, Recipe: r})
	return id
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
