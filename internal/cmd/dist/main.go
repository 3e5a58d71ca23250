// Command dist makes the release files of the device runtime:
//
//	yoctuned-<version>-linux-{amd64,arm64}        programs, cgo, for glibc 2.34 and newer
//	yoctuned-<version>-source.tar.gz              the runtime's own module with vendor/
//	yoctuned-<version>-licenses.txt               licences of everything linked into it
//	yoctuned-serve-<version>-linux-{amd64,arm64}  its second build, which serves
//	yoctuned-serve-<version>-source.tar.gz        the module of that build
//	yoctuned-serve-<version>-licenses.txt         and its terms
//	yoctune-cuda-<version>-source.tar.gz          sources of libyoctune_cuda.so
//	*.spdx.json                                   what each of them is made of
//	manifest.json                                 name, uri and sha256 of each, and the licences
//
// Two runs on the same commit give the same bytes: archives are sorted and carry
// SOURCE_DATE_EPOCH (the commit's time when unset) or nothing.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5" // required by bitbake's LIC_FILES_CHKSUM; files are secured by SHA-256
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
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
	"github.com/yoctune/yoctune/internal/sbom"
	"github.com/yoctune/yoctune/internal/version"
)

const mainModule = "github.com/yoctune/yoctune"

// Manifest is dist/manifest.json, which a configuration's runtime.manifest names.
type Manifest struct {
	Schema  string         `json:"$schema"`
	Version string         `json:"version"`
	Files   []ManifestFile `json:"files"`
}

// ManifestFile is one release file.
type ManifestFile struct {
	Name   string `json:"name"` // role: yoctuned-arm64, yoctuned-source, …
	File   string `json:"file"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`

	// Of the file with a program's terms: their SPDX identifiers, and the digest that
	// bitbake's LIC_FILES_CHKSUM takes.
	Licences []string `json:"licenses,omitempty"`
	MD5      string   `json:"md5,omitempty"`
}

// build is one of the two programs built from cmd/yoctuned. Each has its own source archive,
// because the modules of the second are ten times the source of the first.
type build struct{ Name, Tags string }

var builds = [...]build{{"yoctuned", ""}, {"yoctuned-serve", "serve"}}

func main() {
	out := flag.String("o", "dist", "output folder")
	base := flag.String("uri", "https://github.com/yoctune/yoctune/releases/download/v"+version.Version, "where the files will be fetched from")
	arches := flag.String("arch", "amd64,arm64", "architectures of the programs")
	flag.Parse()
	if err := run(*out, *base, strings.Split(*arches, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(out, base string, arches []string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	when, err := sourceDate()
	if err != nil {
		return err
	}
	m := Manifest{Schema: "yoctune.dist/1", Version: version.Version}
	add := func(role, file string, parts []licence.Part) error {
		raw, err := os.ReadFile(filepath.Join(out, file))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(raw)
		digest := hex.EncodeToString(sum[:])
		m.Files = append(m.Files, ManifestFile{Name: role, File: file, URI: base + "/" + file, SHA256: digest, Bytes: int64(len(raw))})
		fmt.Printf("%s  %9d  %s\n", digest[:16], len(raw), file)
		return writeSBOM(filepath.Join(out, file+".spdx.json"), file, digest, when, parts)
	}
	for _, p := range builds {
		parts, err := licence.Parts(context.Background(), "./cmd/yoctuned", p.Tags)
		if err != nil {
			return err
		}
		terms := fmt.Sprintf("%s-%s-licenses.txt", p.Name, version.Version)
		text := licence.Text(p.Name, parts)
		if err := os.WriteFile(filepath.Join(out, terms), text, 0o644); err != nil {
			return err
		}
		if err := add(p.Name+"-licenses", terms, parts); err != nil {
			return err
		}
		sum, last := md5.Sum(text), &m.Files[len(m.Files)-1]
		last.Licences, last.MD5 = licence.IDs(parts), hex.EncodeToString(sum[:])
		for _, arch := range arches {
			file := fmt.Sprintf("%s-%s-linux-%s", p.Name, version.Version, arch)
			if err := p.program(filepath.Join(out, file), arch); err != nil {
				return err
			}
			if err := add(p.Name+"-"+arch, file, parts); err != nil {
				return err
			}
		}
		source := fmt.Sprintf("%s-%s-source.tar.gz", p.Name, version.Version)
		if err := p.source(filepath.Join(out, source), when, parts); err != nil {
			return fmt.Errorf("source archive of %s: %w", p.Name, err)
		}
		if err := add(p.Name+"-source", source, parts); err != nil {
			return err
		}
	}
	cuda := fmt.Sprintf("yoctune-cuda-%s-source.tar.gz", version.Version)
	if err := cudaSource(filepath.Join(out, cuda), when); err != nil {
		return fmt.Errorf("CUDA source archive: %w", err)
	}
	if err := add("yoctune-cuda-source", cuda, nil); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "manifest.json"), append(raw, '\n'), 0o644)
}

// sourceDate is SOURCE_DATE_EPOCH, or the time of the commit.
func sourceDate() (time.Time, error) {
	s := os.Getenv("SOURCE_DATE_EPOCH")
	if s == "" {
		raw, err := exec.Command("git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("commit time: %w (set SOURCE_DATE_EPOCH outside a checkout)", err)
		}
		s = strings.TrimSpace(string(raw))
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: %w", s, err)
	}
	return time.Unix(n, 0).UTC(), nil
}

func (p build) program(out, arch string) error {
	cmd := exec.Command("go", "build", "-tags", p.Tags, "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", out, "./cmd/yoctuned")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=1")
	if arch == "arm64" && os.Getenv("CC_ARM64") != "" {
		cmd.Env = append(cmd.Env, "CC="+os.Getenv("CC_ARM64"))
	} else if arch == "arm64" {
		cmd.Env = append(cmd.Env, "CC=aarch64-linux-gnu-gcc")
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s for %s: %w", p.Name, arch, err)
	}
	return nil
}

// source packs the packages of a program as a separate module with vendor/, so that a recipe
// builds it without a network.
func (p build) source(out string, when time.Time, parts []licence.Part) error {
	tmp, err := os.MkdirTemp("", p.Name+"-source-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	raw, err := exec.Command("go", "list", "-tags", p.Tags, "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}", "./cmd/yoctuned").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	for _, dir := range strings.Fields(string(raw)) {
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		if err := copyTree(root, tmp, rel); err != nil {
			return err
		}
	}
	if err := p.trim(tmp); err != nil {
		return err
	}
	gomod := "module " + mainModule + "\n\ngo 1.26\n\nrequire (\n"
	for _, m := range parts {
		if m.Version != "" {
			gomod += "\t" + m.Path + " " + m.Version + "\n"
		}
	}
	if err := os.WriteFile(filepath.Join(tmp, "go.mod"), []byte(gomod+")\n"), 0o644); err != nil {
		return err
	}
	for _, f := range []string{"go.sum", "LICENSE"} {
		raw, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(tmp, f), raw, 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(tmp, "LICENSES.txt"), licence.Text(p.Name, parts), 0o644); err != nil {
		return err
	}
	// tidy adds the requirements of the pinned modules to go.mod.
	for _, verb := range []string{"tidy", "vendor"} {
		cmd := exec.Command("go", "mod", verb)
		cmd.Dir = tmp
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go mod %s: %w\n%s", verb, err, out)
		}
	}
	if err := p.trim(filepath.Join(tmp, "vendor")); err != nil {
		return err
	}
	check := exec.Command("go", "build", "-tags", p.Tags, "-mod=vendor", "-buildvcs=false", "-o", os.DevNull, "./cmd/yoctuned")
	check.Dir = tmp
	check.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=")
	check.Stderr = os.Stderr
	if err := check.Run(); err != nil {
		return fmt.Errorf("the archive does not build without a network: %w", err)
	}
	return pack(out, tmp, strings.TrimSuffix(filepath.Base(out), "-source.tar.gz"), when)
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

func cudaSource(out string, when time.Time) error {
	tmp, err := os.MkdirTemp("", "yoctune-cuda-source-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for _, dir := range []string{"runtime/engine/core/c", "runtime/engine/core/cuda"} {
		if err := copyTree(".", tmp, dir); err != nil {
			return err
		}
	}
	raw, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, "LICENSE"), raw, 0o644); err != nil {
		return err
	}
	return pack(out, tmp, strings.TrimSuffix(filepath.Base(out), "-source.tar.gz"), when)
}

// pack writes a reproducible tar.gz of dir below prefix.
func pack(out, dir, prefix string, when time.Time) error {
	var names []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, p)
		}
		return err
	})
	if err != nil {
		return err
	}
	sort.Strings(names)
	var buf bytes.Buffer
	gz, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(gz)
	for _, p := range names {
		raw, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: path.Join(prefix, filepath.ToSlash(rel)), Mode: 0o644, Size: int64(len(raw)), ModTime: when, Format: tar.FormatPAX}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		if _, err := tw.Write(raw); err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	if err := gz.Close(); err != nil {
		return err
	}
	return os.WriteFile(out, buf.Bytes(), 0o644)
}

func writeSBOM(out, file, digest string, when time.Time, parts []licence.Part) error {
	ids := licence.IDs(parts)
	if len(parts) == 0 {
		ids = []string{"Apache-2.0"}
	}
	doc := sbom.New(sbom.Package{Name: file, Version: version.Version, SHA256: digest, Licence: licence.Expression(ids)},
		nil, digest, "yoctune-dist-"+version.Version, when)
	for _, m := range parts {
		if m.Path != mainModule {
			doc.Depends(sbom.Package{Name: m.Path, Version: m.Version, Licence: licence.Expression(m.IDs)})
		}
	}
	raw, err := doc.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(out, raw, 0o644)
}
