// Package infile opens files that a user names, without waiting on what never ends: a pipe
// that nobody writes, a device, or a file of /proc that gives one line after another.
package infile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// Reasons to refuse a file.
var (
	ErrNotFile = errors.New("neither a regular file nor a pipe")
	ErrSize    = errors.New("too large")
	ErrWaits   = errors.New("reading it waits for more to come")
	ErrNobody  = errors.New("nobody writes to the pipe")
)

// patience bounds the time that the content of a regular file may take to come. A file on a
// disk is never waited for; files of /proc such as kmsg are.
const patience = time.Second

// Open opens a regular file, or a pipe such as that of a shell's <(command).
func Open(name string) (*os.File, error) {
	return admit(os.OpenFile(name, flags, 0))
}

// flags open a file for reading. With O_NONBLOCK, opening a pipe does not wait for its writer.
const flags = os.O_RDONLY | syscall.O_NONBLOCK

// admit returns an open file unless it may never end.
func admit(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.Mode().IsRegular():
		if err := f.SetReadDeadline(time.Now().Add(patience)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	case info.Mode()&os.ModeNamedPipe != 0, isNull(info):
		return f, nil
	case info.IsDir():
		err = &os.PathError{Op: "read", Path: f.Name(), Err: syscall.EISDIR}
	default:
		err = &os.PathError{Op: "open", Path: f.Name(), Err: ErrNotFile}
	}
	return nil, errors.Join(err, f.Close())
}

// Read reads a file of at most limit bytes.
func Read(name string, limit int64) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, limit)
}

// ReadIn reads a file of at most limit bytes below a folder.
func ReadIn(dir *os.Root, name string, limit int64) ([]byte, error) {
	f, err := admit(dir.OpenFile(name, flags, 0))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, limit)
}

// ReadAll reads an open file of at most limit bytes to its end.
func ReadAll(f *os.File, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case int64(len(data)) > limit:
		err = fmt.Errorf("%w: more than %s", ErrSize, size(limit))
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = ErrWaits
	case err != nil:
		return nil, err
	case len(data) == 0 && isPipe(f):
		err = ErrNobody
	default:
		return data, nil
	}
	return nil, &os.PathError{Op: "read", Path: f.Name(), Err: err}
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

// isNull reports whether a file is the null device, which people give for an empty file.
func isNull(info os.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}

// size shows a limit in the largest unit that it is a multiple of.
func size(n int64) string {
	switch {
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
