package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	gobuild "go/build"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/internal/licence"
	"github.com/yoctune/yoctune/internal/version"
)

// source packs the packages of a program as a separate module with vendor/, so that a recipe
// builds it without a network.
func (r *release) source(p build, parts []licence.Part) ([]byte, error) {
	tmp, err := os.MkdirTemp("", p.Name+"-source-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	raw, err := exec.Command("go", "list", "-tags", p.Tags, "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}", "./cmd/yoctuned").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for _, dir := range strings.Fields(string(raw)) {
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			return nil, err
		}
		if err := copyTree(root, tmp, rel); err != nil {
			return nil, err
		}
	}
	if err := p.trim(tmp); err != nil {
		return nil, err
	}
	if err := setVersion(tmp, r.version); err != nil {
		return nil, err
	}
	gomod := "module " + mainModule + "\n\ngo 1.26\n\nrequire (\n"
	for _, m := range parts {
		if m.Version != "" {
			gomod += "\t" + m.Path + " " + m.Version + "\n"
		}
	}
	if err := os.WriteFile(filepath.Join(tmp, "go.mod"), []byte(gomod+")\n"), 0o644); err != nil {
		return nil, err
	}
	for _, f := range []string{"go.sum", "LICENSE"} {
		raw, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(tmp, f), raw, 0o644); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(tmp, "LICENSES.txt"), licence.Text(p.Name, parts), 0o644); err != nil {
		return nil, err
	}
	// tidy adds the requirements of the pinned modules to go.mod.
	for _, verb := range []string{"tidy", "vendor"} {
		cmd := exec.Command("go", "mod", verb)
		cmd.Dir = tmp
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go mod %s: %w\n%s", verb, err, out)
		}
	}
	if err := p.trim(filepath.Join(tmp, "vendor")); err != nil {
		return nil, err
	}
	check := exec.Command("go", "build", "-tags", p.Tags, "-mod=vendor", "-buildvcs=false", "-o", os.DevNull, "./cmd/yoctuned")
	check.Dir = tmp
	check.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=")
	check.Stderr = os.Stderr
	if err := check.Run(); err != nil {
		return nil, fmt.Errorf("the archive does not build without a network: %w", err)
	}
	return pack(tmp, p.Name+"-"+r.version, r.when)
}

// trim removes the Go files that this build does not compile: those of the other program, which
// would need its modules, and those of vendored modules for other systems and processors (SQLite
// has eight megabytes for each).
func (p build) trim(dir string) error {
	return filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".go" {
			return err
		}
		for _, arch := range []string{"amd64", "arm64"} {
			ctx := gobuild.Default
			ctx.GOOS, ctx.GOARCH, ctx.CgoEnabled, ctx.BuildTags = "linux", arch, true, strings.Fields(p.Tags)
			if match, err := ctx.MatchFile(filepath.Split(file)); match || err != nil {
				return err
			}
		}
		return os.Remove(file)
	})
}

// copyTree copies the files of one package without tests, and the folders with C code below it,
// which hold no Go files.
func copyTree(root, tmp, rel string) error {
	return filepath.WalkDir(filepath.Join(root, rel), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != rel && (d.Name() == "testdata" || hasGo(p)) {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, "_test.go") || !d.Type().IsRegular() {
			return nil
		}
		raw, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		to := filepath.Join(tmp, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, raw, 0o644)
	})
}

func hasGo(dir string) bool {
	found, err := filepath.Glob(filepath.Join(dir, "*.go"))
	return err == nil && len(found) > 0
}

// setVersion writes the version into the sources: a recipe passes none to the linker.
func setVersion(dir, v string) error {
	name := filepath.Join(dir, "internal", "version", "version.go")
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	was, now := strconv.Quote(version.Version), strconv.Quote(v)
	if !bytes.Contains(raw, []byte(was)) {
		return fmt.Errorf("%s does not contain %s", name, was)
	}
	return os.WriteFile(name, bytes.Replace(raw, []byte(was), []byte(now), 1), 0o644)
}

func (r *release) cudaSource() ([]byte, error) {
	tmp, err := os.MkdirTemp("", "yoctune-cuda-source-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	for _, dir := range []string{"runtime/engine/core/c", "runtime/engine/core/cuda"} {
		if err := copyTree(".", tmp, dir); err != nil {
			return nil, err
		}
	}
	raw, err := os.ReadFile("LICENSE")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(tmp, "LICENSE"), raw, 0o644); err != nil {
		return nil, err
	}
	return pack(tmp, "yoctune-cuda-"+r.version, r.when)
}

// pack returns a reproducible tar.gz of dir below prefix.
func pack(dir, prefix string, when time.Time) ([]byte, error) {
	var names []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, p)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	var buf bytes.Buffer
	gz, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	tw := tar.NewWriter(gz)
	for _, p := range names {
		raw, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return nil, err
		}
		h := &tar.Header{Name: path.Join(prefix, filepath.ToSlash(rel)), Mode: 0o644, Size: int64(len(raw)), ModTime: when, Format: tar.FormatPAX}
		if err := tw.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := tw.Write(raw); err != nil {
			return nil, err
		}
	}
	if err := tw.Close(); err != nil {
		return nil, err
	}
	if err := gz.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
