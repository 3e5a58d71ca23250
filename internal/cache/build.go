package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Cache stores results and builds missing ones. Several goroutines may use it.
type Cache struct {
	store Store
	what  string

	mu     sync.Mutex
	note   string
	memory map[string][]byte // results that could not be written
	stats  Stats
}

// Stats are counters since Open.
type Stats struct {
	Hits    int `json:"hits"`
	Builds  int `json:"builds"`
	Damaged int `json:"damaged"` // invalid entries
}

// Open opens a cache in dir, creating the directory if necessary. what describes its content
// in notes, for example "compiled kernels". If dir is unusable, the cache keeps results in
// memory and Note returns the reason.
func Open(dir, what string) *Cache {
	c := &Cache{store: Store{Dir: dir}, what: what, memory: map[string][]byte{}}
	if err := usable(dir); err != nil {
		c.note = fmt.Sprintf("%s are not cached between starts: %v", what, err)
	}
	return c
}

// usable creates dir and checks it. The directory must not be writable by others, because
// its content is executed.
func usable(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("cache directory %q must be an absolute path", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create cache directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("cache directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("cache directory %s is not a directory", dir)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("cache directory %s is writable by others (mode %v); run chmod go-w", dir, info.Mode().Perm())
	}
	f, err := os.CreateTemp(dir, ".try-*")
	if err != nil {
		return fmt.Errorf("write to cache directory: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Note returns why results are not stored on disk, or "".
func (c *Cache) Note() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.note
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Get returns the result for a key. If the cache does not have it, Get calls build and stores
// the result. Only one build runs at a time. Failing to store a result is not an error.
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
		if err := c.keepResult(key, answer); err != nil {
			c.note = fmt.Sprintf("%s could not be cached: %v", c.what, err)
		}
	}
	if c.note != "" {
		c.memory[key] = answer
	}
	return answer, false, nil
}

// keepResult stores a result. It does not create the directory again if it was removed.
func (c *Cache) keepResult(key string, answer []byte) error {
	if _, err := os.Lstat(c.store.Dir); errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return c.store.Put(key, answer)
}

// Drop removes the result for a key.
func (c *Cache) Drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.memory, key)
	c.store.drop(key)
}
