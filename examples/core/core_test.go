// Package core tests that its two programs build with the commands of the README
// and work as documented.
package core

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const want = "sum of 1000000 times 1: 1000000\nsum of 1000000 times 2: 2000000\n"

func TestBothExamplesBuildAndRun(t *testing.T) {
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	sources, err := filepath.Glob("../../runtime/engine/core/c/yt_*.c")
	if err != nil || len(sources) < 6 {
		t.Fatalf("sources %v, %v", sources, err)
	}
	dir := t.TempDir()
	for name, build := range map[string][]string{
		"c": append(append(strings.Fields(cc), "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-I../../runtime/engine/core/c", "c/main.c"),
			append(sources, "-lpthread", "-ldl", "-lm", "-o", filepath.Join(dir, "c"))...),
		"go": {"go", "build", "-o", filepath.Join(dir, "go"), "./go"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := exec.Command(build[0], build[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", strings.Join(build, " "), err, out)
			}
			var args []string
			if name == "go" {
				args = []string{"-backend", "cpu"}
			}
			out, err := exec.Command(filepath.Join(dir, name), args...).Output()
			if err != nil || !strings.HasPrefix(string(out), "cpu: ") || !strings.HasSuffix(string(out), want) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
