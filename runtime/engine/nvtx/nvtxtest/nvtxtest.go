// Package nvtxtest builds an NVTX library that records its calls.
package nvtxtest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed testdata/fake.c
var source []byte

// Library builds the library and returns its path, and what reads its calls so far,
// one a line: "start ID NAME", "end ID".
func Library(t *testing.T) (path string, calls func() []string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "fake.c")
	path = filepath.Join(dir, "libnvToolsExt.so.1")
	if err := os.WriteFile(file, source, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", path, file).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	log := filepath.Join(dir, "calls")
	t.Setenv("YOCTUNE_FAKE_NVTX", log) // Go with cgo sets C's environment too
	return path, func() []string {
		b, err := os.ReadFile(log)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
}
