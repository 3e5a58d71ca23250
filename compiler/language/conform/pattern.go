package conform

import (
	"regexp"
	"strings"
)

// matcher reports whether a text matches a pattern of the schema.
type matcher interface{ MatchString(s string) bool }

// matching makes the matcher of a pattern that Read has compiled before. Most
// patterns of the schema are one character class, or one for the first character
// and one for the rest; for those, compiling an expression costs more than all
// the checking of a configuration.
func matching(text string) matcher {
	if m, ok := classes(text); ok {
		return m
	}
	return regexp.MustCompile(text)
}

// set is a class of ASCII characters; rest reports whether it holds all others.
type set struct {
	ascii [128]bool
	rest  bool
}

func (s *set) has(r rune) bool {
	if r < 128 {
		return s.ascii[r]
	}
	return s.rest
}

// run is first, then any number of rest. A nil first means no character.
type run struct {
	first, rest *set
	empty       bool // the empty text fits
}

func (p run) MatchString(s string) bool {
	if s == "" {
		return p.empty
	}
	want := p.first
	if want == nil {
		want = p.rest
	}
	for _, r := range s {
		if !want.has(r) {
			return false
		}
		want = p.rest
	}
	return true
}

// classes reads ^[a]+$, ^[a]*$ and ^[a][b]*$.
func classes(text string) (run, bool) {
	body, ok := strings.CutPrefix(text, "^")
	if !ok {
		return run{}, false
	}
	if body, ok = strings.CutSuffix(body, "$"); !ok {
		return run{}, false
	}
	a, body, ok := class(body)
	if !ok {
		return run{}, false
	}
	switch body {
	case "+":
		return run{rest: a}, true
	case "*":
		return run{rest: a, empty: true}, true
	}
	b, body, ok := class(body)
	if !ok || body != "*" {
		return run{}, false
	}
	return run{first: a, rest: b}, true
}

// class reads one bracket of ranges and plain characters; of escapes it knows
// \\xHH.
func class(text string) (*set, string, bool) {
	body, ok := strings.CutPrefix(text, "[")
	if !ok {
		return nil, "", false
	}
	s := &set{}
	body, negated := strings.CutPrefix(body, "^")
	for first := true; ; first = false {
		if body == "" {
			return nil, "", false
		}
		if body[0] == ']' && !first {
			break
		}
		lo, rest, ok := char(body)
		if !ok {
			return nil, "", false
		}
		hi := lo
		if len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			if hi, rest, ok = char(rest[1:]); !ok || hi < lo {
				return nil, "", false
			}
		}
		for c := lo; c <= hi; c++ {
			s.ascii[c] = true
		}
		body = rest
	}
	if negated {
		for c := range s.ascii {
			s.ascii[c] = !s.ascii[c]
		}
		s.rest = true
	}
	return s, body[1:], true
}

func char(text string) (c byte, rest string, ok bool) {
	c = text[0]
	switch {
	case c == '\\':
		if len(text) < 4 || text[1] != 'x' {
			return 0, "", false
		}
		hex := func(d byte) (byte, bool) {
			at := strings.IndexByte("0123456789abcdef", d)
			return byte(at), at >= 0
		}
		high, ok1 := hex(text[2])
		low, ok2 := hex(text[3])
		c = high<<4 | low
		return c, text[4:], ok1 && ok2 && c < 128
	case c == '[' || c >= 128:
		return 0, "", false // [:alpha:] and the like
	}
	return c, text[1:], true
}
