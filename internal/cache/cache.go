// Package cache keeps answers that are dear to compute between runs of a program. It
// is a convenience: a damaged, foreign or unwritable cache is an empty one.
//
// A [Store] keeps them as files. A [Cache] also computes what is not there, and keeps
// it in memory where nothing can be written, which is usual on a read-only root.
package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// Bounds of a folder; the oldest answers go.
const (
	Limit      = 64 << 20 // bytes
	maxAnswers = 200      // files
)

const (
	format = "yoctune-cache/1"
	ending = ".answer"
)

// Store keeps answers as files, each a line that names the format, the key, a
// checksum and a length, and the answer. A file is written aside and renamed, so
// that others see all of it or nothing.
type Store struct {
	Dir string // "" keeps nothing
}

// Key is the name of an answer to a question of several parts, of which no two run
// together.
func Key(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// file is where the answer of a key is kept.
func (s Store) file(key string) string { return filepath.Join(s.Dir, key+ending) }

var errDamaged = errors.New("damaged answer")

// Get returns what was kept. The error says why there is nothing: it is not there
// (fs.ErrNotExist), or not whole.
func (s Store) Get(key string) ([]byte, error) {
	if s.Dir == "" {
		return nil, fs.ErrNotExist
	}
	info, err := os.Lstat(s.file(key))
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > Limit {
		return nil, errDamaged
	}
	raw, err := os.ReadFile(s.file(key))
	if err != nil {
		return nil, err
	}
	head, body, ok := bytes.Cut(raw, []byte("\n"))
	if !ok || string(head) != seal(key, body) {
		return nil, errDamaged
	}
	return body, nil
}

// Put keeps an answer: all of it or nothing.
func (s Store) Put(key string, body []byte) error {
	if s.Dir == "" {
		return nil
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return err
	}
	if err := renameio.WriteFile(s.file(key), Seal(key, body), 0o644); err != nil {
		return err
	}
	s.prune(key)
	return nil
}

// Drop forgets an answer.
func (s Store) drop(key string) { _ = os.Remove(s.file(key)) } // gone or unwritable: whoever asks decides again

// Seal is an answer as it is kept.
func Seal(key string, body []byte) []byte { return append([]byte(seal(key, body)+"\n"), body...) }

func seal(key string, body []byte) string {
	return fmt.Sprintf("%s %s %x %d", format, key, sha256.Sum256(body), len(body))
}

// prune removes the oldest answers beyond the bounds, and never the newest. What
// cannot be removed stays.
func (s Store) prune(newest string) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return
	}
	var all []fs.FileInfo
	total := int64(0)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ending) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil {
			all = append(all, info)
			total += info.Size()
		}
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	left := len(all)
	for _, info := range all {
		if total <= Limit && left <= maxAnswers {
			return
		}
		if info.Name() != newest+ending && os.Remove(filepath.Join(s.Dir, info.Name())) == nil {
			total -= info.Size()
			left--
		}
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
