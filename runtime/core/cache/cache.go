// Package cache keeps compiled kernels between runs of a program, so that a GPU's
// driver compiles a module once and not at every start.
//
// An entry is a file of its own: a line that names the format, the key, a checksum,
// then the image. It is written to a temporary file, synced and renamed, so that
// others see all of it or nothing. An entry that is damaged, or of another key, is
// built again. Where the directory cannot be written, which is usual on a read-only
// root, images are kept for the life of the process and Note says why.
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
	"sync"
)

// DefaultDir is where the device's services may write.
const DefaultDir = "/var/lib/yoctune/kernels"

// Limit is how many bytes of entries a directory keeps; the oldest go first.
const Limit = 64 << 20

const (
	format  = "yoctune-kernel/1"
	ending  = ".kernel"
	partial = ".new-"
)

// Key is all that a compiled image depends on.
type Key struct {
	Source     []byte // PTX, or whatever is compiled
	Capability string // compute capability of the device, as "8.7"
	Driver     string // version of the driver, which holds the compiler
	Options    string // of the compiler
}

// ID is the name of the key's entry.
func (k Key) ID() string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(format), k.Source, []byte(k.Capability), []byte(k.Driver), []byte(k.Options)} {
		fmt.Fprintf(h, "%d:", len(part)) // so that no two keys run together
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Cache holds compiled images. It may be used from several goroutines.
type Cache struct {
	dir  string
	note string

	mu     sync.Mutex
	memory map[string][]byte // what could not be written
	stats  Stats
}

// Stats counts what happened since Open.
type Stats struct {
	Hits    int `json:"hits"`
	Builds  int `json:"builds"`
	Damaged int `json:"damaged"` // entries that were there and not right
}

// Open opens, and where needed makes, a cache in dir. It always gives one: where dir
// cannot be used, Note says why and images stay in memory.
func Open(dir string) *Cache {
	c := &Cache{dir: dir, memory: map[string][]byte{}}
	if err := usable(dir); err != nil {
		c.note = fmt.Sprintf("kernels are compiled anew at each start: %v", err)
	}
	return c
}

// usable makes dir and tries it. A directory in which anybody may put files is no
// place for code that is run.
func usable(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("cache directory %q must be an absolute path", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make cache directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("cache directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("cache directory %s is not a directory", dir)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("cache directory %s may be written by others (mode %v): chmod go-w it", dir, info.Mode().Perm())
	}
	f, err := os.CreateTemp(dir, partial+"*")
	if err != nil {
		return fmt.Errorf("write to cache directory: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Note says why images are not kept on disk; "" when they are.
func (c *Cache) Note() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.note
}

// Stats returns what happened so far.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Get returns the image of a key: the one that is kept, or what build makes, which is
// then kept. Builds wait for each other. Failing to keep an image is no failure.
func (c *Cache) Get(k Key, build func() ([]byte, error)) (image []byte, hit bool, err error) {
	id := k.ID()
	c.mu.Lock()
	defer c.mu.Unlock()
	if image, ok := c.memory[id]; ok {
		c.stats.Hits++
		return image, true, nil
	}
	raw, err := os.ReadFile(filepath.Join(c.dir, id+ending))
	if err == nil {
		if image, err = decode(raw, id); err == nil {
			c.stats.Hits++
			return image, true, nil
		}
		c.stats.Damaged++
	}
	if image, err = build(); err != nil {
		return nil, false, err
	}
	c.stats.Builds++
	if c.note == "" {
		if err := c.write(id, image); err != nil {
			c.note = fmt.Sprintf("a compiled kernel could not be kept: %v", err)
		}
	}
	if c.note != "" {
		c.memory[id] = image
	}
	return image, false, nil
}

// Drop forgets the entry of a key: the driver did not take it.
func (c *Cache) Drop(k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.memory, k.ID())
	_ = os.Remove(filepath.Join(c.dir, k.ID()+ending)) // gone or unwritable: Get decides again
}

func encode(id string, image []byte) []byte {
	sum := sha256.Sum256(image)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %x %d\n", format, id, sum, len(image))
	b.Write(image)
	return b.Bytes()
}

var errDamaged = errors.New("damaged entry")

func decode(raw []byte, id string) ([]byte, error) {
	head, image, ok := bytes.Cut(raw, []byte("\n"))
	if !ok {
		return nil, errDamaged
	}
	sum := sha256.Sum256(image)
	if string(head) != fmt.Sprintf("%s %s %x %d", format, id, sum, len(image)) {
		return nil, errDamaged
	}
	return image, nil
}

func (c *Cache) write(id string, image []byte) (err error) {
	f, err := os.CreateTemp(c.dir, partial+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(encode(id, image))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), filepath.Join(c.dir, id+ending)); err != nil {
		return err
	}
	c.prune(id)
	return nil
}

// prune removes the oldest entries above the limit. What cannot be removed stays.
func (c *Cache) prune(keep string) {
	entries, err := os.ReadDir(c.dir)
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
	for _, info := range all {
		if total <= Limit {
			return
		}
		if info.Name() != keep+ending && os.Remove(filepath.Join(c.dir, info.Name())) == nil {
			total -= info.Size()
		}
	}
}
