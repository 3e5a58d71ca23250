// Package flattar packs the files of one folder, without folders in it, as a tar archive, and unpacks
// such an archive of a stranger.
package flattar

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// MaxSize bounds what an archive may unpack to, in bytes.
const MaxSize = 16 << 30

// Pack writes the files of a folder as an archive. Of a link, it writes the file that it leads to.
func Pack(dir string, w io.Writer) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		st, err := f.Stat()
		if err == nil {
			err = t.WriteHeader(&tar.Header{Name: e.Name(), Mode: 0o644, Size: st.Size(), Typeflag: tar.TypeReg, Format: tar.FormatPAX})
		}
		if err == nil {
			_, err = io.Copy(t, f)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return t.Close()
}

// Unpack writes the files of an archive to a folder. An entry that is not a plain file of the folder
// itself, that exists, or that is larger than what is left of [MaxSize] is an error.
func Unpack(r io.Reader, dir string) error { return unpack(r, dir, MaxSize) }

func unpack(r io.Reader, dir string, left int64) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case h.Typeflag != tar.TypeReg || filepath.Base(h.Name) != h.Name || slices.Contains([]string{".", "..", "/"}, h.Name):
			return fmt.Errorf("entry %.80q is not a plain file", h.Name)
		case h.Size > left:
			return fmt.Errorf("entry %.80q has %d bytes, and the archive may have %d more", h.Name, h.Size, left)
		}
		left -= h.Size
		f, err := os.OpenFile(filepath.Join(dir, h.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, t)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}
