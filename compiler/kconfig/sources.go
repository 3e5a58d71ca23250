package kconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Sources identifies what an index was made from: a digest for each file, and the matches
// of each pattern. Trees with equal Sources give the same index.
type Sources struct {
	// Roots are the tree and its overlays, in order.
	Roots []Answers `json:"roots"`
}

// Answers are those of one root.
type Answers struct {
	Files map[string]string   `json:"files"` // SHA-256; "" when it is not there
	Globs map[string][]string `json:"globs"`
}

// Unchanged reports whether the tree in dir and its overlays are unchanged. It parses nothing.
func (s *Sources) Unchanged(dir string, overlays []string) bool {
	if len(s.Roots) != 1+len(overlays) {
		return false
	}
	for i, d := range append([]string{dir}, overlays...) {
		root, err := dirFS(d)
		if err != nil {
			return false
		}
		for pattern, want := range s.Roots[i].Globs {
			if got, err := fs.Glob(root, pattern); err != nil || !slices.Equal(got, want) {
				return false
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.Roots[i].Files)) {
			if digestOf(readLimited(root, name)) != s.Roots[i].Files[name] {
				return false
			}
		}
	}
	return true
}

// digestOf returns the SHA-256 of what was read of a file, "" when it does not exist, and "unreadable"
// when it cannot be read.
func digestOf(data []byte, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return "unreadable"
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// recorder records the reads of a root.
type recorder struct {
	fs.FS
	answers Answers
}

func newRecorder(root fs.FS) *recorder {
	return &recorder{root, Answers{Files: map[string]string{}, Globs: map[string][]string{}}}
}

// Stat implements [fs.StatFS].
func (r *recorder) Stat(name string) (fs.FileInfo, error) {
	info, err := fs.Stat(r.FS, name)
	if errors.Is(err, fs.ErrNotExist) {
		r.answers.Files[name] = ""
	}
	return info, err
}

// ReadFile implements [fs.ReadFileFS].
func (r *recorder) ReadFile(name string) ([]byte, error) {
	data, err := fs.ReadFile(r.FS, name)
	r.answers.Files[name] = digestOf(data, err)
	return data, err
}

// Glob implements [fs.GlobFS].
func (r *recorder) Glob(pattern string) ([]string, error) {
	hits, err := fs.Glob(r.FS, pattern)
	if err == nil && strings.ContainsAny(pattern, `*?[\`) {
		r.answers.Globs[pattern] = hits
	}
	return hits, err
}
