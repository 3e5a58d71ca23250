package programs

import (
	"bytes"
	"compress/gzip"
	"crypto/md5" // required by bitbake's LIC_FILES_CHKSUM; files are secured by SHA-256
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Writer fills a runtime folder.
type Writer struct {
	dir string
	m   *Manifest
}

// NewWriter returns a writer of a folder, which it makes. Files of the folder that are
// not written again stay until [Writer.Close].
func NewWriter(dir, version string) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return &Writer{dir, NewManifest(version)}, nil
}

// Program writes a program, compressed: bitbake of every series unpacks .gz without
// further recipes.
func (w *Writer) Program(name, arch string, program []byte) error {
	var b bytes.Buffer
	gz, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := gz.Write(program); err != nil {
		return err
	}
	if err := gz.Close(); err != nil {
		return err
	}
	return w.add(File{Name: name + "-" + arch, URI: fmt.Sprintf("%s-%s-linux-%s.gz", name, w.m.Version, arch)}, b.Bytes())
}

// SPDX writes the bill of materials of a program.
func (w *Writer) SPDX(name string, document []byte) error {
	return w.add(File{Name: name + "-spdx", URI: fmt.Sprintf("%s-%s.spdx.json", name, w.m.Version)}, document)
}

// Licences writes the licence texts of a program, and their SPDX identifiers.
func (w *Writer) Licences(name string, ids []string, text []byte) error {
	sum := md5.Sum(text)
	return w.add(File{Name: name + "-licenses", URI: fmt.Sprintf("%s-%s-licenses.txt", name, w.m.Version),
		Licences: ids, MD5: hex.EncodeToString(sum[:])}, text)
}

// Source writes an archive of sources.
func (w *Writer) Source(name string, archive []byte) error {
	return w.add(File{Name: name + "-source", URI: fmt.Sprintf("%s-%s-source.tar.gz", name, w.m.Version)}, archive)
}

// add writes a file, unless the folder has it.
func (w *Writer) add(f File, data []byte) error {
	sum := sha256.Sum256(data)
	f.SHA256, f.Bytes = hex.EncodeToString(sum[:]), int64(len(data))
	w.m.Files = append(w.m.Files, f)
	return replace(filepath.Join(w.dir, f.URI), data)
}

// Close writes the manifest and removes what it does not list.
func (w *Writer) Close() error {
	raw, err := w.m.Encode()
	if err != nil {
		return err
	}
	if err := replace(filepath.Join(w.dir, ManifestName), raw); err != nil {
		return err
	}
	keep := map[string]bool{ManifestName: true}
	for _, f := range w.m.Files {
		keep[f.URI] = true
	}
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !keep[e.Name()] {
			if err := os.RemoveAll(filepath.Join(w.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace writes a file atomically, and leaves one with the same content alone.
func replace(name string, data []byte) error {
	if was, err := os.ReadFile(name); err == nil && bytes.Equal(was, data) {
		return nil
	}
	return renameio.WriteFile(name, data, 0o644, renameio.WithStaticPermissions(0o644))
}
