package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A source that is as it was is not read again, and anything that its index came
// from makes it another one: a file, a file that was not there, what a pattern
// matches, the base configuration, the options.
func TestKernelIndexIsCachedUntilItsSourceChanges(t *testing.T) {
	cacheDir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cacheDir)
	src := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(src, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(src, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("Makefile", "VERSION = 6\nPATCHLEVEL = 12\n")
	put("Kconfig", "osource \"vendor/Kconfig\"\nosource \"drivers/*/Kconfig\"\nconfig A\n\tbool \"a\"\n")
	put("arch/arm64/configs/defconfig", "CONFIG_A=y\n")
	out := filepath.Join(t.TempDir(), "k.kidx")
	index := func(more ...string) (cached bool, data []byte) {
		t.Helper()
		output, stderr, code := runKernel(t, append([]string{"index", src, "-o", out, "--format", "json"}, more...)...)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(output, `"cached":true`), data
	}
	check := func(what string, want bool, more ...string) []byte {
		t.Helper()
		cached, data := index(more...)
		if cached != want {
			t.Errorf("%s: from the cache: %t", what, cached)
		}
		return data
	}
	first := check("the first time", false)
	if again := check("the second time", true); !bytes.Equal(first, again) {
		t.Error("the index that was kept is another one")
	}
	check("with another name", false, "--name", "mine")
	check("--no-cache", false, "--no-cache")

	for _, change := range []struct{ what, name, text string }{
		{"a changed file", "Kconfig", "osource \"vendor/Kconfig\"\nosource \"drivers/*/Kconfig\"\nconfig A\n\tbool \"a\"\n\tdefault y\n"},
		{"a file that was not there", "vendor/Kconfig", "config V\n\tbool \"v\"\n"},
		{"a file that a pattern finds", "drivers/x/Kconfig", "config X\n\tbool \"x\"\n"},
		{"another base configuration", "arch/arm64/configs/defconfig", "CONFIG_A=y\nCONFIG_X=y\n"},
		{"another version", "Makefile", "VERSION = 6\nPATCHLEVEL = 13\n"},
	} {
		put(change.name, change.text)
		data := check(change.what, false)
		if bytes.Equal(data, first) {
			t.Errorf("%s: the index is the old one", change.what)
		}
		if kept := check(change.what+", again", true); !bytes.Equal(kept, data) {
			t.Errorf("%s: the index that was kept is another one", change.what)
		}
	}

	files, err := filepath.Glob(filepath.Join(cacheDir, "yoctune", "index", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing is kept (%v)", err)
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check("a damaged cache", false)
}
