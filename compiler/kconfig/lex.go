package kconfig

import (
	"strings"
)

type tokenKind uint8

const (
	word   tokenKind = iota
	quoted           // a string in single or double quotes
	punct            // an operator or parenthesis
)

type token struct {
	kind    tokenKind
	text    string
	literal bool // written literally; an expanded word is not a keyword
	line    int
	col     int
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// statement is one logical line, including lines continued by a backslash.
type statement struct {
	lines []string
	first int // number of lines[0]
}

// lex cuts a statement into tokens. Unknown characters are reported and skipped,
// as the real reader does.
func (p *parser) lex(s statement) ([]token, error) {
	var out []token
	for n, text := range s.lines {
		if n < len(s.lines)-1 {
			text = text[:len(text)-1] // the backslash
		}
		var err error
		if out, err = p.lexLine(out, text, s.first+n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p *parser) lexLine(out []token, text string, line int) ([]token, error) {
	for i := 0; i < len(text); {
		c := text[i]
		start := i
		add := func(k tokenKind, s string, literal bool) {
			out = append(out, token{k, s, literal, line, start + 1})
		}
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\f':
			i++
		case c == '#':
			return out, nil
		case c == '"' || c == '\'':
			s, next, err := p.lexString(text, i, line)
			if err != nil {
				return nil, err
			}
			add(quoted, s, true)
			i = next
		case isWordByte(c) || c == '$' || p.oldSyntax && (c == '.' || c == '/'):
			end, expand := i, false
			for end < len(text) {
				switch {
				case isWordByte(text[end]) || p.oldSyntax && (text[end] == '.' || text[end] == '/'):
					end++
					continue
				case text[end] == '$':
					expand = true
					end++
					if end < len(text) && text[end] == '(' {
						n := closingParen(text[end:])
						if n < 0 {
							return nil, p.errorAt(line, end, "unterminated reference $%s: missing )", shorten(text[end:]))
						}
						end += n + 1
					}
					continue
				}
				break
			}
			w := text[i:end]
			if expand {
				var err error
				if w, err = p.macros.expand(w, nil, 0); err != nil {
					return nil, p.errorAt(line, start+1, "%v", err)
				}
			}
			if w != "" {
				add(word, w, !expand)
			}
			i = end
		default:
			op := ""
			for _, o := range [...]string{"||", "&&", "!=", "<=", ">=", ":=", "+=", "=", "<", ">", "!", "(", ")"} {
				if strings.HasPrefix(text[i:], o) {
					op = o
					break
				}
			}
			if op == "" {
				p.warnAt(line, i+1, "unsupported character %q ignored", rune(c))
				i++
				continue
			}
			add(punct, op, true)
			i += len(op)
		}
	}
	return out, nil
}

// lexString reads the string that starts at text[i] and returns the index after
// it. A string that does not end on its line ends with the line.
func (p *parser) lexString(text string, i, line int) (string, int, error) {
	quote := text[i]
	var b strings.Builder
	for j := i + 1; j < len(text); {
		switch c := text[j]; {
		case c == quote:
			return b.String(), j + 1, nil
		case c == '\\':
			if j+1 < len(text) {
				b.WriteByte(text[j+1])
			}
			j += 2
		case c == '$' && j+1 < len(text) && text[j+1] == '(':
			n := closingParen(text[j+1:])
			if n < 0 {
				return "", 0, p.errorAt(line, j+1, "unterminated reference %s: missing )", shorten(text[j:]))
			}
			s, err := p.macros.expand(text[j:j+n+2], nil, 0)
			if err != nil {
				return "", 0, p.errorAt(line, j+1, "%v", err)
			}
			b.WriteString(s)
			j += n + 2
		case c == '$' && p.oldSyntax:
			n := j + 1
			for n < len(text) && isWordByte(text[n]) && text[n] != '-' {
				n++
			}
			s, err := p.macros.expand(text[j:n], nil, 0)
			if err != nil {
				return "", 0, p.errorAt(line, j+1, "%v", err)
			}
			b.WriteString(s)
			j = n
		default:
			b.WriteByte(c)
			j++
		}
	}
	p.warnAt(line, i+1, "string without a closing quote: it ends with the line")
	return b.String(), len(text), nil
}
