package forecast

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"
)

// store keeps answers as files, each its checksum and a line of JSON.
type store struct {
	dir string // "" keeps nothing
}

// Bounds of the store.
const (
	maxAnswer  = 4 << 20 // bytes of one file
	maxAnswers = 200     // files; the oldest go
)

func (s store) path(key string) string { return filepath.Join(s.dir, key+".json") }

// get returns what was kept, if it is whole.
func (s store) get(key string) ([]byte, bool) {
	if s.dir == "" {
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

// put keeps an answer: all of it or nothing.
func (s store) put(key string, body []byte) {
	if s.dir == "" || os.MkdirAll(s.dir, 0o700) != nil {
		return
	}
	if err := renameio.WriteFile(s.path(key), append([]byte(checksum(body)+"\n"), body...), 0o600); err == nil {
		s.prune()
	}
}

func checksum(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// prune removes the oldest answers beyond the bound.
func (s store) prune() {
	names, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
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
