// Package socket listens on Unix sockets whose path a terminated process may have left
// behind.
package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"
)

// ErrTaken means that another process is listening on the path.
var ErrTaken = errors.New("another process is listening on the socket")

// Listen listens on path. It replaces the socket of a terminated process. mode defines who
// may connect: those with write permission.
func Listen(ctx context.Context, path string, mode fs.FileMode) (*net.UnixListener, error) {
	fail := func(err error) (*net.UnixListener, error) { return nil, fmt.Errorf("listen on unix:%s: %w", path, err) }
	if err := removeStale(path); err != nil {
		return fail(err)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return fail(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		return fail(errors.Join(err, l.Close()))
	}
	return l.(*net.UnixListener), nil
}

// removeStale removes the socket at path if no process listens on it.
func removeStale(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if st.Mode()&fs.ModeSocket == 0 {
		return errors.New("path exists and is not a socket")
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
		return ErrTaken
	}
	return os.Remove(path)
}
