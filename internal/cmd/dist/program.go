package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// newestGlibc is the newest glibc whose symbols a program may need. kirkstone has 2.35.
var newestGlibc = [2]int{2, 34}

// program links a program for an architecture, or takes it from the cache.
func (r *release) program(p build, arch string) ([]byte, error) {
	env, err := compilerEnv(arch)
	if err != nil {
		return nil, err
	}
	flags := []string{"-tags", p.Tags, "-trimpath", "-buildvcs=false"}
	link := "-s -w -buildid= -X " + mainModule + "/internal/version.Version=" + r.version
	var kept, key string
	if r.cache != "" {
		if key, err = p.inputs(env, flags, link); err != nil {
			return nil, err
		}
		kept = filepath.Join(r.cache, p.Name+"-"+arch)
		if was, err := os.ReadFile(kept + ".key"); err == nil && string(was) == key {
			if program, err := os.ReadFile(kept); err == nil && checkProgram(program) == nil {
				return program, nil
			}
		}
		if err := os.MkdirAll(r.cache, 0o755); err != nil {
			return nil, err
		}
		if err := os.Remove(kept + ".key"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	} else {
		tmp, err := os.MkdirTemp("", "yoctune-dist-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(tmp)
		kept = filepath.Join(tmp, p.Name)
	}
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-ldflags", link, "-o", kept, "./cmd/yoctuned")...)
	cmd.Env, cmd.Stderr = env, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("build %s for %s: %w", p.Name, arch, err)
	}
	program, err := os.ReadFile(kept)
	if err != nil {
		return nil, err
	}
	if err := checkProgram(program); err != nil {
		return nil, fmt.Errorf("%s for %s: %w", p.Name, arch, err)
	}
	if r.cache != "" {
		err = os.WriteFile(kept+".key", []byte(key), 0o644)
	}
	return program, err
}

// compilerEnv returns the environment of the go command for an architecture. It fails when
// there is no C compiler.
func compilerEnv(arch string) ([]string, error) {
	env := append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=1")
	if arch != "arm64" {
		return env, nil
	}
	cc := os.Getenv("CC_ARM64")
	if cc == "" {
		cc = "aarch64-linux-gnu-gcc"
	}
	if fields := strings.Fields(cc); len(fields) > 0 {
		if _, err := exec.LookPath(fields[0]); err != nil {
			return nil, fmt.Errorf("no cross compiler for the programs that layers contain: %w; `make setup` installs it (Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross), and CC_ARM64 names another one", err)
		}
	}
	return append(env, "CC="+cc), nil
}

// inputs identifies what a program is linked from: each package's build ID, which covers
// its sources, flags and compilers.
func (p build) inputs(env, flags []string, link string) (string, error) {
	cmd := exec.Command("go", append(append([]string{"list", "-deps", "-export", "-f", "{{.ImportPath}} {{.BuildID}}"}, flags...), "./cmd/yoctuned")...)
	cmd.Env, cmd.Stderr = env, os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	return digest(append(raw, link...)), nil
}

// checkProgram checks that a program starts on the glibc of every supported series.
func checkProgram(program []byte) error {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return err
	}
	needs, err := f.DynamicVersionNeeds()
	if err != nil {
		return err
	}
	found := false
	for _, library := range needs {
		for _, n := range library.Needs {
			text, ok := strings.CutPrefix(n.Dep, "GLIBC_")
			major, minor, cut := strings.Cut(text, ".")
			if !ok || !cut {
				continue
			}
			found = true
			minor, _, _ = strings.Cut(minor, ".")
			a, errA := strconv.Atoi(major)
			b, errB := strconv.Atoi(minor)
			if errA != nil || errB != nil || a > newestGlibc[0] || a == newestGlibc[0] && b > newestGlibc[1] {
				return fmt.Errorf("it needs %s of %s; the oldest supported series has at least glibc %d.%d: use an older cross compiler", n.Dep, library.Name, newestGlibc[0], newestGlibc[1])
			}
		}
	}
	if !found {
		return errors.New("it needs no symbol of glibc: a static program, or not one for glibc")
	}
	return nil
}
