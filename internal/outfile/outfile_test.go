package outfile_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/outfile"
)

func TestFileIsReplacedAndLinkFollowed(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, link} {
		if err := outfile.Write(name, []byte(name)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != name {
			t.Errorf("%s: the file holds %q, %v", name, got, err)
		}
	}
	if st, err := os.Lstat(link); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", st.Mode(), err)
	}
	if err := outfile.Write(dir, nil); err == nil {
		t.Error("a folder was written")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestNonRegularOutputIsPreserved(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(name, os.O_RDWR, 0) // so that neither side waits
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := outfile.Write(name, []byte("seen")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(reader, got); err != nil || string(got) != "seen" {
		t.Errorf("read %q, %v", got, err)
	}
	if st, err := os.Lstat(name); err != nil || st.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the pipe became %v, %v", st.Mode(), err)
	}
}
