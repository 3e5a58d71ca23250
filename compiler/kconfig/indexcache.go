package kconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/yoctune/yoctune/internal/cache"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/schema/facts/kernel"
)

// IndexRequest names a kernel source to index, and where indexes are cached.
type IndexRequest struct {
	Options
	Source string      // folder of the kernel source
	Base   string      // file with the base configuration; empty for the source's own
	Cache  cache.Store // a store without a folder keeps nothing
}

// IndexFile is the file of an index with a summary of what was read. It is cached in
// this form.
type IndexFile struct {
	Release   string   `json:"release"`
	Files     int      `json:"files"`
	Symbols   int      `json:"symbols"`
	Choices   int      `json:"choices"`
	Base      string   `json:"base"` // file of the base configuration, or ""
	BaseLines int      `json:"base_lines"`
	Warnings  []string `json:"warnings"`
	Assumed   []string `json:"assumed"` // see [Indexed]

	BaseSum string   `json:"base_sum"`
	Sources *Sources `json:"sources"`
	Data    []byte   `json:"data"` // content of the file
}

// Bounds of files, in bytes.
const (
	maxIndex = 64 << 20
	maxBase  = maxFileBytes
)

// OpenIndex returns the facts in the file of an index. The error wraps that of
// [infile.Read].
func OpenIndex(file string) (*Facts, error) {
	data, err := infile.Read(file, maxIndex)
	if err != nil {
		return nil, err
	}
	tree, base, err := kernel.Decode(data, "")
	if err != nil {
		return nil, fmt.Errorf("%w; write it again with `yoctune kernel index`", err)
	}
	facts := FromTree(tree, BaseConfig("base configuration", base))
	facts.Set.Base = "the base configuration kept with " + file
	if len(base) == 0 {
		facts.Set.Base = "no base configuration"
	}
	return facts, nil
}

// Build indexes the source, or returns the cached index while the files that it came
// from stay the same.
func (q IndexRequest) Build() (x *IndexFile, cached bool, err error) {
	base := q.findBase()
	var text []byte
	if base != "" {
		if text, err = infile.Read(base, maxBase); err != nil {
			return nil, false, fmt.Errorf("reading the base configuration: %w", err)
		}
	}
	sum := sha256.Sum256(text)
	baseSum := hex.EncodeToString(sum[:])

	key, err := q.key()
	if err != nil {
		return nil, false, err
	}
	if raw, err := q.Cache.Get(key); err == nil && q.Shell == nil {
		var kept IndexFile
		if json.Unmarshal(raw, &kept) == nil && kept.Sources != nil && kept.Base == base && kept.BaseSum == baseSum &&
			kept.Sources.Unchanged(q.Source, q.Overlays) {
			return &kept, true, nil
		}
	}

	read, err := Index(q.Source, q.Options)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", q.Source, err)
	}
	x, err = encodeIndex(read, base, text)
	if err != nil {
		return nil, false, err
	}
	x.BaseSum = baseSum
	if read.Sources != nil {
		if raw, err := json.Marshal(x); err == nil {
			_ = q.Cache.Put(key, raw) // otherwise the source is read again
		}
	}
	return x, false, nil
}

// findBase returns the file of the base configuration, or "".
func (q IndexRequest) findBase() string {
	if q.Base != "" {
		return q.Base
	}
	for _, name := range []string{"tegra_defconfig", "defconfig"} {
		file := filepath.Join(q.Source, "arch", q.Arch, "configs", name)
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}

// encodeIndex writes what was read of a source with a base configuration.
func encodeIndex(read *Indexed, base string, text []byte) (*IndexFile, error) {
	entry := kernel.Entry{Tree: read.Tree}
	if base != "" {
		c, _ := ReadFragment(base, text)
		for _, l := range c.Lines {
			entry.Base = append(entry.Base, kernel.Value{Name: l.Symbol, Value: l.Value})
		}
	}
	var data bytes.Buffer
	if err := kernel.Encode(&data, entry); err != nil {
		return nil, err
	}
	x := &IndexFile{
		Release: read.Tree.Release, Files: read.Files, Symbols: len(read.Tree.Symbols), Choices: len(read.Tree.Choices),
		Base: base, BaseLines: len(entry.Base), Assumed: read.Assumed, Sources: read.Sources, Data: data.Bytes(),
	}
	for _, p := range read.Warnings {
		x.Warnings = append(x.Warnings, p.Error())
	}
	return x, nil
}

// key returns the name of the index in the cache: it covers the folders, the options and
// the program. The content of the folders is compared file by file.
func (q IndexRequest) key() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "index\n%s\n%q %q %q\n", cache.Program(), q.Name, q.Arch, q.Toolchain)
	for _, dir := range append([]string{q.Source}, q.Overlays...) {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("%s: %w", dir, err)
		}
		fmt.Fprintf(h, "%q\n", abs)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}
