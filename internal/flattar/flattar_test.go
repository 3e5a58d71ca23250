package flattar

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnpackReadsWhatPackWrote(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "a"), []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(from, "a"), filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Pack(from, &b); err != nil {
		t.Fatal(err)
	}
	if err := Unpack(&b, to); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "link"} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != "one" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestHostileEntriesAreRefused(t *testing.T) {
	for _, h := range []tar.Header{
		{Name: "../out", Typeflag: tar.TypeReg}, {Name: "a/b", Typeflag: tar.TypeReg}, {Name: "..", Typeflag: tar.TypeReg},
		{Name: "/etc", Typeflag: tar.TypeReg}, {Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
		{Name: "hard", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, {Name: "pipe", Typeflag: tar.TypeFifo}, {Name: "dir", Typeflag: tar.TypeDir},
		{Name: "large", Typeflag: tar.TypeReg, Size: 9},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := unpack(&b, dir, 8); err == nil || !strings.Contains(err.Error(), "entry") {
			t.Errorf("%s: %v", h.Name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s left %v", h.Name, left)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("no archive"))
	f.Fuzz(func(t *testing.T, data []byte) {
		root := t.TempDir()
		dir := filepath.Join(root, "in")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		_ = unpack(bytes.NewReader(data), dir, 1<<16)
		if entries, err := os.ReadDir(root); err != nil || len(entries) != 1 {
			t.Errorf("outside the folder: %v", entries)
		}
	})
}
