package sink

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/schema/plan"
)

// NDJSON writes one JSON object per line.
type NDJSON struct {
	w   io.Writer
	buf []byte

	file   *os.File // nil: the caller owns w
	path   string
	size   int64 // of the file
	rotate plan.Rotate
	rest   Retry
}

// NewNDJSON writes to w, with one call of Write per line.
func NewNDJSON(w io.Writer) *NDJSON { return &NDJSON{w: w} }

// OpenNDJSON appends to a file, so that a restarted pipeline keeps its earlier results. If r
// has a size, a file that reaches it is rotated to path.1, path.1 to path.2, and so on.
func OpenNDJSON(path string, r plan.Rotate) (*NDJSON, error) {
	s := &NDJSON{path: path, rotate: r}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return s, nil
}

func (s *NDJSON) open() error {
	if st, err := os.Stat(s.path); err == nil && st.Mode()&os.ModeNamedPipe != 0 {
		return fmt.Errorf("%s is a pipe, whose reader could block the pipeline: use a sink of kind command", s.path)
	}
	f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err == nil && st.Mode().IsRegular() && endsInsideLine(s.path, st.Size()) {
		if _, err = f.WriteString("\n"); err == nil || isTemporary(err) { // the first result reports the error
			st, err = f.Stat()
		}
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.file, s.w, s.size = f, f, st.Size()
	return nil
}

// endsInsideLine reports whether a file of results ends inside a line, as after a power failure. Anything
// appended would become part of that line.
func endsInsideLine(path string, size int64) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	last := make([]byte, 1)
	_, err = f.ReadAt(last, size-1)
	return err == nil && last[0] != '\n'
}

// Write writes the record as a line. A full disk loses the record, but does not end the
// pipeline: the error wraps [ErrSinkDegraded], no partial line remains, and later records try
// again at growing intervals.
func (s *NDJSON) Write(r *result.Record) error {
	if !s.rest.Due() {
		return s.rest.Err()
	}
	s.buf = append(r.AppendJSON(s.buf[:0]), '\n')
	if s.path != "" && s.rotate.Size > 0 && s.size > 0 && s.size+int64(len(s.buf)) > s.rotate.Size || s.path != "" && s.file == nil {
		if err := s.next(); err != nil {
			return s.rest.Fail(err)
		}
	}
	n, err := s.w.Write(s.buf)
	if err == nil {
		s.size += int64(n)
		s.rest.Reset()
		return nil
	}
	if s.file == nil || !isTemporary(err) {
		return err
	}
	if n > 0 {
		if terr := s.file.Truncate(s.size); terr != nil {
			return errors.Join(err, terr)
		}
	}
	return s.rest.Fail(err)
}

// next rotates the files and begins a new one.
func (s *NDJSON) next() error {
	if s.file != nil {
		err := s.file.Close()
		s.file = nil
		if err != nil {
			return err
		}
		name := func(n int) string { return s.path + "." + strconv.Itoa(n) }
		for n := max(s.rotate.Keep, 1); n > 0; n-- {
			from := s.path
			if n > 1 {
				from = name(n - 1)
			}
			if err := os.Rename(from, name(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return s.open()
}

// Close closes the file, if there is one.
func (s *NDJSON) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// isTemporary reports whether a write error may be temporary.
func isTemporary(err error) bool {
	temporary := []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EIO, syscall.EAGAIN, syscall.ENOMEM}
	return slices.ContainsFunc(temporary, func(e error) bool { return errors.Is(err, e) })
}
