// Package cache stores expensive results between runs of a program. A damaged, foreign or
// unwritable cache behaves like an empty one.
//
// A [Store] stores results as files. A [Cache] also builds missing results, and keeps them in
// memory if it cannot write files, for example on a read-only root.
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

// Limits of a directory. The oldest results are removed beyond them.
const (
	Limit      = 64 << 20 // bytes
	maxAnswers = 200      // files
)

const (
	format = "yoctune-cache/1"
	ending = ".answer"
)

// Store stores results as files. A file has a header line with format, key, checksum and
// length, followed by the result. Files are replaced atomically.
type Store struct {
	Dir string // "": store nothing
}

// Key returns a key for the combination of all parts. Different lists of parts have
// different keys, even if their concatenation is equal.
func Key(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// file returns the path of a key's file.
func (s Store) file(key string) string { return filepath.Join(s.Dir, key+ending) }

var errDamaged = errors.New("damaged cache entry")

// Get returns the result for a key. The error is fs.ErrNotExist if there is none, or
// errDamaged.
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

// Put stores a result atomically.
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

// drop removes the result for a key.
func (s Store) drop(key string) { _ = os.Remove(s.file(key)) } // errors only cost another computation

// Seal returns the content of a key's file.
func Seal(key string, body []byte) []byte { return append([]byte(seal(key, body)+"\n"), body...) }

func seal(key string, body []byte) string {
	return fmt.Sprintf("%s %s %x %d", format, key, sha256.Sum256(body), len(body))
}

// prune removes the oldest results beyond the limits, but not the newest one. It ignores
// errors.
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

// Program returns a key part that identifies the running executable, or "" if its file cannot
// be read. Results depend on the facts and the evaluator in the executable.
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
