package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Cache returns what is kept, or builds it and keeps it. It may be used from several
// goroutines.
type Cache struct {
	store Store
	what  string

	mu     sync.Mutex
	note   string
	memory map[string][]byte // what could not be written
	stats  Stats
}

// Stats counts what happened since Open.
type Stats struct {
	Hits    int `json:"hits"`
	Builds  int `json:"builds"`
	Damaged int `json:"damaged"` // answers that were there and not right
}

// Open opens, and where needed makes, a cache in dir of what the text says, such as
// "compiled kernels". It always gives one: where dir cannot be used, Note says why,
// and answers stay in memory.
func Open(dir, what string) *Cache {
	c := &Cache{store: Store{Dir: dir}, what: what, memory: map[string][]byte{}}
	if err := usable(dir); err != nil {
		c.note = fmt.Sprintf("%s are not kept between starts: %v", what, err)
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
	f, err := os.CreateTemp(dir, ".try-*")
	if err != nil {
		return fmt.Errorf("write to cache directory: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Note says why answers are not kept on disk; "" when they are.
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

// Get returns the answer of a key: the one that is kept, or what build makes, which
// is then kept. Builds wait for each other. Failing to keep one is no failure.
func (c *Cache) Get(key string, build func() ([]byte, error)) (answer []byte, hit bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer, ok := c.memory[key]; ok {
		c.stats.Hits++
		return answer, true, nil
	}
	if answer, err = c.store.Get(key); err == nil {
		c.stats.Hits++
		return answer, true, nil
	}
	if errors.Is(err, errDamaged) {
		c.stats.Damaged++
	}
	if answer, err = build(); err != nil {
		return nil, false, err
	}
	c.stats.Builds++
	if c.note == "" {
		if err := c.keep(key, answer); err != nil {
			c.note = fmt.Sprintf("%s could not be kept: %v", c.what, err)
		}
	}
	if c.note != "" {
		c.memory[key] = answer
	}
	return answer, false, nil
}

// keep writes an answer. A folder that is gone is not made anew: whoever took it
// away had a reason.
func (c *Cache) keep(key string, answer []byte) error {
	if _, err := os.Lstat(c.store.Dir); errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return c.store.Put(key, answer)
}

// Drop forgets the answer of a key.
func (c *Cache) Drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.memory, key)
	c.store.drop(key)
}
