package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/version"
)

func TestAMissingCrossCompilerIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CC_ARM64", "")
	_, err := compilerEnv("arm64")
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{"aarch64-linux-gnu-gcc", "make setup", "gcc-aarch64-linux-gnu", "CC_ARM64"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
	if _, err := compilerEnv("amd64"); err != nil {
		t.Errorf("amd64 needs no cross compiler: %v", err)
	}
}

func TestProgramsForANewerGlibcAreRefused(t *testing.T) {
	const shell = "/bin/bash" // of the host, for its own glibc
	program, err := os.ReadFile(shell)
	if err != nil {
		t.Skipf("%v: no program for glibc to look at", err)
	}
	was := newestGlibc
	defer func() { newestGlibc = was }()
	newestGlibc = [2]int{2, 1}
	if err := checkProgram(program); err == nil || !strings.Contains(err.Error(), "GLIBC_2.") {
		t.Errorf("got %v", err)
	}
	newestGlibc = [2]int{2, 999}
	if err := checkProgram(program); err != nil {
		t.Error(err)
	}
	if err := checkProgram([]byte("#!/bin/sh\n")); err == nil {
		t.Error("a script is taken for a program")
	}
}

// A recipe compiles the sources without the linker flag that sets the version.
func TestTheArchiveOfTheSourcesHasTheVersion(t *testing.T) {
	dir := t.TempDir()
	raw, err := os.ReadFile("../../version/version.go")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "internal", "version", "version.go")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := setVersion(dir, "9.8.7"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(got), `var Version = "9.8.7"`) || strings.Contains(string(got), version.Version) {
		t.Errorf("%v\n%s", err, got)
	}
	if err := setVersion(dir, "9.8.8"); err == nil {
		t.Error("a file without the version is accepted")
	}
}

func TestTagsOfReleases(t *testing.T) {
	for tag, want := range map[string]string{
		"v0.2.0": "0.2.0", "v1.10.3-rc.1": "1.10.3-rc.1",
		"v0.2": "", "0.2.0": "", "v0.2.0_1": "", "vnext": "",
	} {
		m := tagPattern.FindStringSubmatch(tag)
		if got := strings.Join(m[min(len(m), 1):min(len(m), 2)], ""); got != want {
			t.Errorf("%s: %q, want %q", tag, got, want)
		}
	}
}
