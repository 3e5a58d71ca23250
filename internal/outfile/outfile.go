// Package outfile writes output to a path that the user chose: regular files atomically,
// devices and pipes directly. It is not for files of a layer, where links are replaced and
// not followed.
package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/google/renameio/v2"
)

// Write writes data to path. It follows links, and replaces a regular file as [Replace] does, so
// that readers never see part of it. Other files, such as /dev/null or the pipe behind
// /dev/stdout, are written to directly. A folder is an error.
func Write(path string, data []byte) error {
	if err := write(path, data); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// IsFile reports whether a file is, or would be made, at path: no device, pipe or folder.
func IsFile(path string) bool {
	st, err := os.Stat(path)
	return err != nil || st.Mode().IsRegular()
}

// CheckFolder refuses a folder to write to that is a link to nothing. Making it would fail
// with a message about a file that exists.
func CheckFolder(dir string) error {
	target, err := os.Readlink(dir)
	if err != nil {
		return nil // no link
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("writing to %s: it is a link to %s, which does not exist", dir, target)
	}
	return nil
}

func write(path string, data []byte) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // or a link to what is not there yet
	case err != nil:
		return err
	case st.IsDir():
		return errors.New("it is a folder")
	case !st.Mode().IsRegular():
		return writeTo(path, data)
	default:
		c, err := stage(path, data)
		if err != nil {
			return err
		}
		defer c.discard()
		return c.commit()
	}
	return renameio.WriteFile(path, data, 0o644)
}

func writeTo(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
