// Package licence finds the licences of a program: its own, those of each linked module,
// and that of the Go library.
package licence

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// std is the path of Go's library.
const std = "std"

// Part is a module of a program, or Go's library.
type Part struct {
	Path    string // of the module, or std
	Version string // "" for Go's library and for the module that the program belongs to
	IDs     []string
	Files   []File
}

// File is a text that must be distributed with a part.
type File struct {
	Path string // inside the part, slash separated
	Text []byte
}

// errUnknown is wrapped for a text without a recognised licence, which needs review.
var errUnknown = errors.New("unknown terms")

var (
	// noticeFile matches the files that are distributed with a program, as in
	// `go mod vendor`; licenceFile matches those among them with licences.
	noticeFile  = regexp.MustCompile(`^(AUTHORS|CONTRIBUTORS|NOTICE|PATENTS|.*LICEN[CS]E|COPYING|COPYRIGHT)`)
	licenceFile = regexp.MustCompile(`^(.*LICEN[CS]E|COPYING|COPYRIGHT)`)
)

// reviewed has the licences of texts that licensecheck does not recognise completely, by
// the SHA-256 of the text. A text that changes must be reviewed again.
func reviewed() map[string][]string {
	return map[string][]string{
		// modernc.org/sqlite, SQLITE-LICENSE: SPDX calls SQLite's dedication so.
		"8438c9c89b849131ead81d5435cb97fcf052df5b0b286dda8a2d4c29e6cb3fd0": {"blessing"},
		// modernc.org/libc, LICENSE-3RD-PARTY.md: Go, musl (with TRE and Bionic under
		// the BSD licence of two clauses), go-netdb, nixpkgs.
		"f597097efe3d97021f89170746bd3a0fb9a8b6fb26b82043ed68a4e0283bee6c": {"BSD-2-Clause", "BSD-3-Clause", "MIT"},
		// modernc.org/memory, LICENSE-LOGO: where a picture was found, which is not linked.
		"5ae5bee3072a841376451b48d8cfcec7188e10543926d5870828d36c8a750dc5": {},
		// github.com/spdx/tools-golang, LICENSE.code: a choice of two licences, and this is
		// the one taken. LICENSE.docs holds for its documentation, which is not linked.
		"e914fb1f3927226e04b0438e0b541b3c6e3c65de4d64aa8f5cdaa803f05448fd": {"Apache-2.0"},
		"c207c95c7c34ea909fd949c737c3d942045a09f145ddee15d165a360a1000c72": {},
		// github.com/opencontainers/go-digest, LICENSE.docs: the same.
		"a1d1adec3ba691ef6e377a78bbe9e9e2501f2f4a1723d08857da1ac6564e4fed": {},
	}
}

// coverage is how much of a text must be that of known licences, in percent; the
// rest is names and years.
const coverage = 75

// identify returns the SPDX identifiers of a text.
func identify(text []byte) ([]string, error) {
	sum := sha256.Sum256(text)
	if ids, ok := reviewed()[hex.EncodeToString(sum[:])]; ok {
		return ids, nil
	}
	c := licensecheck.Scan(text)
	if c.Percent < coverage {
		return nil, fmt.Errorf("%.0f%% of it is the text of known licences: %w", c.Percent, errUnknown)
	}
	var ids []string
	for _, m := range c.Match {
		ids = append(ids, m.ID)
	}
	return ids, nil
}

// Parts lists the parts of the program that is built from pkg with build tags for Linux
// on amd64 and arm64, sorted by path.
func Parts(ctx context.Context, pkg, tags string) ([]Part, error) {
	parts := map[string]*Part{}
	for _, arch := range []string{"amd64", "arm64"} {
		if err := addLinked(ctx, parts, pkg, tags, arch); err != nil {
			return nil, err
		}
	}
	var out []Part
	for _, p := range parts {
		slices.Sort(p.IDs)
		p.IDs = slices.Compact(p.IDs)
		if len(p.IDs) == 0 {
			return nil, fmt.Errorf("%s %s: no file states its licence: %w", p.Path, p.Version, errUnknown)
		}
		slices.SortFunc(p.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b Part) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// addLinked adds the parts that are linked for one architecture.
func addLinked(ctx context.Context, parts map[string]*Part, pkg, tags, arch string) error {
	const format = `{{.Dir}}{{"\t"}}{{with .Module}}{{.Path}}{{"\t"}}{{.Version}}{{"\t"}}{{.Dir}}{{else}}` + std + `{{"\t"}}{{"\t"}}{{end}}{{range .EmbedFiles}}{{"\t"}}{{.}}{{end}}`
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-tags", tags, "-f", format, pkg)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list for %s: %w\n%s", arch, err, &stderr)
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f := strings.Split(lines.Text(), "\t")
		dir, path, version, root := f[0], f[1], f[2], f[3]
		if path == std {
			// The folder of crypto/internal/boring has the terms of a library that
			// only GOEXPERIMENT=boringcrypto links.
			root = strings.TrimSpace(string(goroot))
			dir = root
		}
		p := parts[path]
		if p == nil {
			p = &Part{Path: path, Version: version}
			parts[path] = p
		}
		folders := []string{dir}
		for _, e := range f[4:] { // embedded files may have licences of their own
			folders = append(folders, filepath.Join(dir, filepath.Dir(e)))
		}
		for _, d := range folders {
			if err := p.addFolders(root, d); err != nil {
				return fmt.Errorf("%s %s: %w", path, version, err)
			}
		}
	}
	return lines.Err()
}

// addFolders adds the files of a folder and of its parents, up to the root.
func (p *Part) addFolders(root, dir string) error {
	for ; strings.HasPrefix(dir+string(filepath.Separator), root+string(filepath.Separator)); dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := strings.ToUpper(e.Name())
			if !e.Type().IsRegular() || filepath.Ext(name) == ".GO" || name[0] == '.' || !noticeFile.MatchString(name) {
				continue
			}
			if err := p.addFile(root, filepath.Join(dir, e.Name()), licenceFile.MatchString(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Part) addFile(root, file string, isLicence bool) error {
	rel, err := filepath.Rel(root, file)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	if slices.ContainsFunc(p.Files, func(f File) bool { return f.Path == rel }) {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	p.Files = append(p.Files, File{Path: rel, Text: text})
	if !isLicence {
		return nil
	}
	ids, err := identify(text)
	if err != nil {
		return fmt.Errorf("%s: %w", rel, err)
	}
	p.IDs = append(p.IDs, ids...)
	return nil
}

// IDs are the SPDX identifiers of all parts, sorted.
func IDs(parts []Part) []string {
	var ids []string
	for _, p := range parts {
		ids = append(ids, p.IDs...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Expression joins identifiers that all hold, as SPDX writes it.
func Expression(ids []string) string { return strings.Join(ids, " AND ") }

// Text returns the licence file of a program: the texts of all parts, each with a heading.
func Text(program string, parts []Part) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s is made of the parts below, each under its own terms:\n\n", program)
	for _, p := range parts {
		fmt.Fprintf(&b, "  %s: %s\n", strings.TrimSpace(p.Path+" "+p.Version), Expression(p.IDs))
	}
	for _, p := range parts {
		for _, f := range p.Files {
			fmt.Fprintf(&b, "\n%s\n%s, %s\n\n", strings.Repeat("=", 80), strings.TrimSpace(p.Path+" "+p.Version), f.Path)
			b.Write(bytes.TrimRight(f.Text, "\n"))
			b.WriteString("\n")
		}
	}
	return b.Bytes()
}
