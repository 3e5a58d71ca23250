package kconfig

import "github.com/yoctune/yoctune/schema/facts/kernel"

// Get returns a symbol's value as .config has it (y, m, n, 12, 0x10, "text"
// with its quotes) and whether it has a line there. "# CONFIG_X is not set" is
// n with a line.
func (r *Result) Get(name string) (value string, present bool) {
	i, ok := r.k.Lookup(name)
	if !ok {
		return "", false
	}
	return r.get(i)
}

func (r *Result) get(i int32) (string, bool) {
	s := &r.sym[i]
	t := r.k.Symbols[i].Type
	if t == kernel.Unknown || !s.written {
		return "", false
	}
	switch {
	case t.Logical():
		return s.tri.String(), true
	case t == kernel.String:
		return quote(s.text), true
	}
	return s.text, true
}

func quote(s string) string {
	b := []byte{'"'}
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return string(append(b, '"'))
}
