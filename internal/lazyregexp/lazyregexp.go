// Package lazyregexp implements regular expressions that are compiled on first use. This
// keeps the start of a program with many expressions fast.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a lazily compiled regular expression. It is safe for concurrent use.
type Regexp struct{ compile func() *regexp.Regexp }

// New returns an expression. An invalid one panics on first use, so every expression needs a
// test that uses it.
func New(text string) *Regexp {
	return &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
}

// MatchString is [regexp.Regexp.MatchString].
func (r *Regexp) MatchString(s string) bool { return r.compile().MatchString(s) }

// FindString is [regexp.Regexp.FindString].
func (r *Regexp) FindString(s string) string { return r.compile().FindString(s) }

// ReplaceAllString is [regexp.Regexp.ReplaceAllString].
func (r *Regexp) ReplaceAllString(s, with string) string {
	return r.compile().ReplaceAllString(s, with)
}

// FindStringSubmatch is [regexp.Regexp.FindStringSubmatch].
func (r *Regexp) FindStringSubmatch(s string) []string { return r.compile().FindStringSubmatch(s) }

// FindAllString is [regexp.Regexp.FindAllString].
func (r *Regexp) FindAllString(s string, n int) []string { return r.compile().FindAllString(s, n) }

// FindAllStringSubmatch is [regexp.Regexp.FindAllStringSubmatch].
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compile().FindAllStringSubmatch(s, n)
}

// FindSubmatch is [regexp.Regexp.FindSubmatch].
func (r *Regexp) FindSubmatch(b []byte) [][]byte { return r.compile().FindSubmatch(b) }

// FindAllSubmatch is [regexp.Regexp.FindAllSubmatch].
func (r *Regexp) FindAllSubmatch(b []byte, n int) [][][]byte {
	return r.compile().FindAllSubmatch(b, n)
}

// String returns the text of the expression.
func (r *Regexp) String() string { return r.compile().String() }

// Split is [regexp.Regexp.Split].
func (r *Regexp) Split(s string, n int) []string { return r.compile().Split(s, n) }
