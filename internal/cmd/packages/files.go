package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// file is a file of a package; its path is below the prefix, such as /usr.
type file struct {
	path string
	data []byte
	mode fs.FileMode
}

// readTree reads the files below dir; their paths begin with to.
func readTree(dir, to string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		files = append(files, file{path.Join(to, filepath.ToSlash(below)), data, 0o644})
		return err
	})
	return files, err
}

// documents are the pages and examples. The examples' tests and what makes their media need
// the module, so that they stay in the repository.
func documents() ([]file, error) {
	const to = "share/doc/yoctune/"
	var out []file
	for dir, below := range map[string]string{"docs": "docs", "examples": "examples"} {
		files, err := readTree(dir, to+below)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			name := strings.TrimPrefix(f.path, to)
			if strings.HasSuffix(name, "_test.go") || name == "examples/examples.go" || strings.HasPrefix(name, "docs/") && path.Ext(name) != ".md" && path.Ext(name) != ".json" {
				continue
			}
			out = append(out, f)
		}
	}
	for _, name := range []string{"README.md", "CHANGELOG.md", "LICENSE"} {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, file{to + name, data, 0o644})
	}
	slices.SortFunc(out, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return out, nil
}

// archive writes a tar.gz to unpack anywhere: the program finds ../lib/yoctune beside it.
func (p *packager) archive(program, system, arch string, files []file) error {
	name := fmt.Sprintf("%s-%s-%s-%s", program, p.version, system, arch)
	files = append(slices.Clone(files), file{"share/doc/" + program + "/LICENSES.txt", p.terms(program), 0o644})
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	var buf bytes.Buffer
	gz, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(gz)
	for _, f := range files {
		h := &tar.Header{Name: name + "/" + f.path, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: p.when, Format: tar.FormatPAX}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		if _, err := tw.Write(f.data); err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	if err := gz.Close(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.dist, name+".tar.gz"), buf.Bytes(), 0o644); err != nil {
		return err
	}
	return p.bills(name+".tar.gz", program)
}

// compress is gzip without a name and a time, as Debian wants it.
func compress(data []byte) ([]byte, error) {
	var buf bytes.Buffer
	gz, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := gz.Write(data); err != nil {
		return nil, err
	}
	if err := gz.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
