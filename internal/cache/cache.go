// Package cache keeps answers that are dear to compute between runs, in the user's
// cache folder. It is a convenience: a damaged, foreign or unwritable cache is an
// empty one.
package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"
)

// Store keeps answers as files, each its checksum and the answer.
type Store struct {
	Dir string // "" keeps nothing
}

// Bounds of the store.
const (
	maxAnswer  = 8 << 20 // bytes of one file
	maxAnswers = 200     // files; the oldest go
)

func (s Store) path(key string) string { return filepath.Join(s.Dir, key+".json") }

// Get returns what was kept, if it is whole.
func (s Store) Get(key string) ([]byte, bool) {
	if s.Dir == "" {
		return nil, false
	}
	info, err := os.Lstat(s.path(key))
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxAnswer {
		return nil, false
	}
	raw, err := os.ReadFile(s.path(key))
	if err != nil {
		return nil, false
	}
	sum, body, ok := bytes.Cut(raw, []byte("\n"))
	if !ok || string(sum) != checksum(body) {
		return nil, false
	}
	return body, true
}

// Put keeps an answer: all of it or nothing.
func (s Store) Put(key string, body []byte) {
	if s.Dir == "" || os.MkdirAll(s.Dir, 0o700) != nil {
		return
	}
	if err := renameio.WriteFile(s.path(key), Seal(body), 0o600); err == nil {
		s.prune()
	}
}

// Seal is an answer as it is kept.
func Seal(body []byte) []byte { return append([]byte(checksum(body)+"\n"), body...) }

func checksum(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// prune removes the oldest answers beyond the bound.
func (s Store) prune() {
	names, err := filepath.Glob(filepath.Join(s.Dir, "*.json"))
	if err != nil || len(names) <= maxAnswers {
		return
	}
	age := map[string]time.Time{}
	for _, n := range names {
		if info, err := os.Lstat(n); err == nil {
			age[n] = info.ModTime()
		}
	}
	slices.SortFunc(names, func(a, b string) int { return age[a].Compare(age[b]) })
	for _, n := range names[:len(names)-maxAnswers] {
		_ = os.Remove(n) // gone already, or kept for another day
	}
}

// Program identifies the running program: its facts and its evaluator are part
// of its file. A program that cannot look at its own file answers for itself
// only.
func Program() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}
