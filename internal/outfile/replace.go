package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
)

// Replace gives existing files new contents. Links are followed; mode, owner and hard links
// stay. No file is changed where one of them cannot be written.
func Replace(files map[string][]byte) error {
	var staged []*change
	defer func() {
		for _, c := range staged {
			c.discard()
		}
	}()
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		c, err := stage(name, files[name])
		if err == nil && slices.ContainsFunc(staged, c.contradicts) {
			err = errors.New("another of the files is a link to the same file, and would get another content")
		}
		if err != nil {
			return fmt.Errorf("writing %s: %w%s", name, err, stateChanged(len(files), nil))
		}
		staged = append(staged, c)
	}
	for i, c := range staged {
		if err := c.commit(); err != nil {
			return fmt.Errorf("writing %s: %w%s", names[i], err, stateChanged(len(files), names[:i]))
		}
	}
	return nil
}

// stateChanged completes an error about one of several files.
func stateChanged(files int, changed []string) string {
	switch {
	case files < 2:
		return ""
	case len(changed) == 0:
		return "; no file was changed"
	}
	return "; already changed: " + strings.Join(changed, ", ")
}

// change is a content that is ready to replace that of a file.
type change struct {
	path    string // without links
	data    []byte
	beside  *renameio.PendingFile // nil where the file is written in place
	inPlace *os.File
}

// stage checks that a file can be written, and prepares its new content beside it. A file that
// has further hard links, or an owner that a new file cannot be given, is written in place.
func stage(path string, data []byte) (*change, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	const writable = 0o222
	if st.Mode()&writable == 0 { // the superuser could open it
		return nil, fmt.Errorf("the file is read-only (mode %#o): %w", st.Mode().Perm(), fs.ErrPermission)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	c := &change{path: path, data: data, inPlace: f}
	if err := c.prepare(st); err != nil {
		c.discard()
		return nil, err
	}
	return c, nil
}

// prepare writes the new content beside the file.
func (c *change) prepare(st fs.FileInfo) error {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if ok && sys.Nlink > 1 {
		return nil
	}
	beside, err := renameio.NewPendingFile(c.path, renameio.WithTempDir(filepath.Dir(c.path)), renameio.WithExistingPermissions())
	if err != nil {
		return err
	}
	c.beside = beside
	if ok && beside.Chown(int(sys.Uid), int(sys.Gid)) != nil {
		c.beside = nil
		return beside.Cleanup()
	}
	_, err = beside.Write(c.data)
	return err
}

func (c *change) commit() error {
	if c.beside != nil {
		return c.beside.CloseAtomicallyReplace()
	}
	if err := c.inPlace.Truncate(0); err != nil {
		return err
	}
	_, err := c.inPlace.Write(c.data)
	return errors.Join(err, c.inPlace.Sync())
}

// discard removes what was prepared and not committed.
func (c *change) discard() {
	if c.beside != nil {
		_ = c.beside.Cleanup() // the error that matters is the one before
	}
	_ = c.inPlace.Close() // written and synchronised by commit
}

// contradicts reports whether two changes give one file different contents.
func (c *change) contradicts(o *change) bool {
	return c.path == o.path && string(c.data) != string(o.data)
}
