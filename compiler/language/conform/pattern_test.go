package conform

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

// The short cut and the expression must never differ: on the schema's own
// patterns, and on odd ones.
func TestPatternsMatchLikeRegexps(t *testing.T) {
	texts := []string{"^[a-c]+$", "^[^a]*$", "^[]a-]+$", "^[-a][b]*$", "^[a-]*$", `^[^\x00-\x1f\x7f]*$`}
	seen := map[*shape]bool{}
	var walk func(sh *shape)
	var members func(o *structure)
	walk = func(sh *shape) {
		if sh == nil || seen[sh] {
			return
		}
		seen[sh] = true
		if sh.op == matches {
			texts = append(texts, sh.text)
		}
		for _, p := range sh.parts {
			walk(p)
		}
		walk(sh.elem)
		members(sh.obj)
	}
	members = func(o *structure) {
		if o == nil {
			return
		}
		for _, m := range o.fields {
			walk(m.value)
		}
		for _, p := range o.patterns {
			walk(p.key)
			walk(p.value)
		}
		for _, b := range o.branches {
			members(b.then)
		}
	}
	for _, d := range Language().defs {
		walk(d.value)
	}
	short := 0
	for _, text := range texts {
		m, ok := classes(text)
		if !ok {
			continue
		}
		short++
		re := regexp.MustCompile(text)
		rapid.Check(t, func(rt *rapid.T) {
			s := rapid.OneOf(rapid.String(), rapid.StringMatching(text), rapid.StringMatching(`[ -~\x00-\x1f]{0,6}`)).Draw(rt, "s")
			if got, want := m.MatchString(s), re.MatchString(s); got != want {
				rt.Fatalf("%s on %q: %t, the expression says %t", text, s, got, want)
			}
		})
	}
	if short < 12 {
		t.Errorf("only %d patterns take the short cut", short)
	}
}
