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

	"github.com/yoctune/yoctune/internal/cache"
)

// key returns the cache key of a compiled kernel, as package core computes it.
func key() string { return cache.Key(".version 7.4", "8.7", "12.6", "opt_level=3") }

func open(dir string) *cache.Cache { return cache.Open(dir, "compiled kernels") }

// get returns the image and whether it was built.
func get(t *testing.T, c *cache.Cache, k, image string) (got string, built bool) {
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

func TestSecondStartCompilesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kernels")
	if got, built := get(t, open(dir), key(), "image"); got != "image" || !built {
		t.Errorf("%q, built %v", got, built)
	}
	c := open(dir)
	if got, built := get(t, c, key(), "other"); got != "image" || built || c.Note() != "" {
		t.Errorf("%q, built %v, note %q", got, built, c.Note())
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

func TestDifferentPartsHaveDifferentKeys(t *testing.T) {
	keys := map[string]bool{}
	for _, parts := range [][]string{{"ab", "c"}, {"a", "bc"}, {"abc"}, {"abc", ""}, {"", "abc"}, {"2:ab1:c"}} {
		if k := cache.Key(parts...); keys[k] {
			t.Errorf("%q has a key that is taken", parts)
		} else {
			keys[k] = true
		}
	}
}

func TestDamagedEntryIsRebuilt(t *testing.T) {
	dir := t.TempDir()
	get(t, open(dir), key(), "image")
	path := filepath.Join(dir, key()+".answer")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := cache.Key("another")
	get(t, open(dir), other, "image of another driver")
	foreign, err := os.ReadFile(filepath.Join(dir, other+".answer"))
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
		c := open(dir)
		if got, built := get(t, c, key(), "image"); got != "image" || !built || c.Stats().Damaged != 1 {
			t.Errorf("%s: %q, built %v, %+v", name, got, built, c.Stats())
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, whole) {
			t.Errorf("%s: the entry was not replaced: %v", name, err)
		}
	}
}

func TestReadOnlyRootIsNotAFailure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	opened := t.TempDir()
	if err := os.Chmod(opened, 0o777); err != nil {
		t.Fatal(err)
	}
	dirs := map[string]string{"/proc/yoctune": "create cache directory", file + "/x": "not a directory", "relative": "absolute path", opened: "chmod go-w"}
	if os.Getuid() != 0 {
		closed := t.TempDir()
		if err := os.Chmod(closed, 0o555); err != nil {
			t.Fatal(err)
		}
		dirs[closed] = "permission denied"
	}
	for dir, reason := range dirs {
		c := open(dir)
		if !strings.Contains(c.Note(), reason) {
			t.Errorf("%s: note %q lacks %q", dir, c.Note(), reason)
		}
		get(t, c, key(), "image")
		if got, built := get(t, c, key(), "other"); got != "image" || built {
			t.Errorf("%s: built twice in one process", dir)
		}
	}
}

func TestFullDiskIsNotAFailure(t *testing.T) {
	dir := t.TempDir()
	c := open(dir)
	if err := os.RemoveAll(dir); err != nil { // nothing can be written there any more
		t.Fatal(err)
	}
	if got, _ := get(t, c, key(), "image"); got != "image" || c.Note() == "" {
		t.Errorf("%q, note %q", got, c.Note())
	}
	if _, built := get(t, c, key(), "image"); built {
		t.Error("built twice in one process")
	}
}

func TestFailedBuildIsNotCached(t *testing.T) {
	c := open(t.TempDir())
	broken := errors.New("broken")
	if _, _, err := c.Get(key(), func() ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if got, built := get(t, c, key(), "image"); got != "image" || !built {
		t.Errorf("%q, built %v", got, built)
	}
	c.Drop(key())
	if _, built := get(t, c, key(), "image"); !built {
		t.Error("a dropped entry was found")
	}
}

func TestManyProgramsShareADirectory(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				c := open(dir)
				image, _, err := c.Get(key(), func() ([]byte, error) { return bytes.Repeat([]byte("image"), 1000), nil })
				if err != nil || len(image) != 5000 || c.Stats().Damaged != 0 {
					t.Errorf("%d bytes, %+v, %v", len(image), c.Stats(), err)
				}
			}
		})
	}
	group.Wait()
}

func TestOldestEntriesAreEvictedFirst(t *testing.T) {
	dir := t.TempDir()
	c := open(dir)
	big := strings.Repeat("x", cache.Limit/3)
	var keys []string
	for i := range 5 {
		k := cache.Key(strings.Repeat("o", i))
		keys = append(keys, k)
		get(t, c, k, big)
		stamp := unix.NsecToTimeval(int64(1e18) + int64(i)*1e9)
		if err := unix.Utimes(filepath.Join(dir, k+".answer"), []unix.Timeval{stamp, stamp}); err != nil {
			t.Fatal(err)
		}
	}
	if _, built := get(t, open(dir), keys[4], big); built {
		t.Error("the newest is gone")
	}
	if _, err := os.Stat(filepath.Join(dir, keys[0]+".answer")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the oldest is there: %v", err)
	}
}

func FuzzEntry(f *testing.F) {
	f.Add([]byte("yoctune-cache/1 x y 1\nz"))
	f.Add(cache.Seal(key(), []byte("image")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, key()+".answer"), raw, 0o644); err != nil {
			t.Fatal(err)
		}
		// Whatever lies there, the image is the right one.
		if got, _ := get(t, open(dir), key(), "image"); got != "image" {
			t.Errorf("%q from %q", got, raw)
		}
	})
}
