package cache_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/core/cache"
)

var key = cache.Key{Source: []byte(".version 7.4"), Capability: "8.7", Driver: "12.6", Options: "opt_level=3"}

// get returns the image and whether it was built.
func get(t *testing.T, c *cache.Cache, k cache.Key, image string) (got string, built bool) {
	t.Helper()
	out, hit, err := c.Get(k, func() ([]byte, error) { built = true; return []byte(image), nil })
	if err != nil {
		t.Fatal(err)
	}
	if hit == built {
		t.Errorf("hit %v and built %v", hit, built)
	}
	return string(out), built
}

func TestASecondStartCompilesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kernels")
	if got, built := get(t, cache.Open(dir), key, "image"); got != "image" || !built {
		t.Errorf("%q, built %v", got, built)
	}
	c := cache.Open(dir)
	if got, built := get(t, c, key, "other"); got != "image" || built || c.Note() != "" {
		t.Errorf("%q, built %v, note %q", got, built, c.Note())
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

func TestAnythingThatMattersMakesAnotherKey(t *testing.T) {
	ids := map[string]bool{key.ID(): true}
	for _, change := range []func(*cache.Key){
		func(k *cache.Key) { k.Source = []byte(".version 7.5") },
		func(k *cache.Key) { k.Capability = "9.0" },
		func(k *cache.Key) { k.Driver = "12.8" },
		func(k *cache.Key) { k.Options = "" },
		func(k *cache.Key) { k.Capability, k.Driver = "8.71", "2.6" }, // the same letters, cut elsewhere
	} {
		k := key
		change(&k)
		if ids[k.ID()] {
			t.Errorf("%+v has a key that is taken", k)
		}
		ids[k.ID()] = true
	}
}

func TestADamagedEntryIsBuiltAgain(t *testing.T) {
	dir := t.TempDir()
	get(t, cache.Open(dir), key, "image")
	path := filepath.Join(dir, key.ID()+".kernel")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := key
	other.Driver = "99"
	get(t, cache.Open(dir), other, "image of another driver")
	foreign, err := os.ReadFile(filepath.Join(dir, other.ID()+".kernel"))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-1] ^= 1
	for name, content := range map[string][]byte{"empty": nil, "cut": whole[:len(whole)-1], "longer": append(bytes.Clone(whole), 'x'),
		"one bit": flipped, "another key's": foreign, "no header": []byte("image")} {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		c := cache.Open(dir)
		if got, built := get(t, c, key, "image"); got != "image" || !built || c.Stats().Damaged != 1 {
			t.Errorf("%s: %q, built %v, %+v", name, got, built, c.Stats())
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, whole) {
			t.Errorf("%s: the entry was not replaced: %v", name, err)
		}
	}
}

func TestAReadOnlyRootIsNoFailure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	dirs := map[string]string{"/proc/yoctune": "make cache directory", file + "/x": "not a directory", "relative": "absolute path", open: "chmod go-w"}
	if os.Getuid() != 0 {
		closed := t.TempDir()
		if err := os.Chmod(closed, 0o555); err != nil {
			t.Fatal(err)
		}
		dirs[closed] = "permission denied"
	}
	for dir, says := range dirs {
		c := cache.Open(dir)
		if !strings.Contains(c.Note(), says) {
			t.Errorf("%s: note %q does not say %q", dir, c.Note(), says)
		}
		get(t, c, key, "image")
		if got, built := get(t, c, key, "other"); got != "image" || built {
			t.Errorf("%s: built twice in one process", dir)
		}
	}
}

func TestADiskThatFillsUpIsNoFailure(t *testing.T) {
	dir := t.TempDir()
	c := cache.Open(dir)
	if err := os.RemoveAll(dir); err != nil { // nothing can be written there any more
		t.Fatal(err)
	}
	if got, _ := get(t, c, key, "image"); got != "image" || c.Note() == "" {
		t.Errorf("%q, note %q", got, c.Note())
	}
	if _, built := get(t, c, key, "image"); built {
		t.Error("built twice in one process")
	}
}

func TestAFailedBuildIsNotKept(t *testing.T) {
	c := cache.Open(t.TempDir())
	broken := errors.New("broken")
	if _, _, err := c.Get(key, func() ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if got, built := get(t, c, key, "image"); got != "image" || !built {
		t.Errorf("%q, built %v", got, built)
	}
	c.Drop(key)
	if _, built := get(t, c, key, "image"); !built {
		t.Error("a dropped entry was found")
	}
}

func TestManyProgramsShareADirectory(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				c := cache.Open(dir)
				image, _, err := c.Get(key, func() ([]byte, error) { return bytes.Repeat([]byte("image"), 1000), nil })
				if err != nil || len(image) != 5000 || c.Stats().Damaged != 0 {
					t.Errorf("%d bytes, %+v, %v", len(image), c.Stats(), err)
				}
			}
		})
	}
	group.Wait()
}

func TestTheOldestGoFirst(t *testing.T) {
	dir := t.TempDir()
	c := cache.Open(dir)
	big := strings.Repeat("x", cache.Limit/3)
	var keys []cache.Key
	for i := range 5 {
		k := key
		k.Options = strings.Repeat("o", i)
		keys = append(keys, k)
		get(t, c, k, big)
		stamp := unix.NsecToTimeval(int64(1e18) + int64(i)*1e9)
		if err := unix.Utimes(filepath.Join(dir, k.ID()+".kernel"), []unix.Timeval{stamp, stamp}); err != nil {
			t.Fatal(err)
		}
	}
	if _, built := get(t, cache.Open(dir), keys[4], big); built {
		t.Error("the newest is gone")
	}
	if _, err := os.Stat(filepath.Join(dir, keys[0].ID()+".kernel")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the oldest is there: %v", err)
	}
}

func FuzzEntry(f *testing.F) {
	f.Add([]byte("yoctune-kernel/1 x y 1\nz"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, key.ID()+".kernel"), raw, 0o644); err != nil {
			t.Fatal(err)
		}
		// Whatever lies there, the image is the right one.
		if got, _ := get(t, cache.Open(dir), key, "image"); got != "image" {
			t.Errorf("%q from %q", got, raw)
		}
	})
}
