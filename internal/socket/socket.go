// Package socket opens unix sockets by name where another process may have left one.
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

// ErrTaken says that another process listens there.
var ErrTaken = errors.New("another process serves there")

// Listen listens on path, which it takes over from a process that is gone, and
// from nobody else. Who may connect is who may write to it, by mode.
func Listen(ctx context.Context, path string, mode fs.FileMode) (*net.UnixListener, error) {
	fail := func(err error) (*net.UnixListener, error) { return nil, fmt.Errorf("listen on unix:%s: %w", path, err) }
	if err := remove(path); err != nil {
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

// remove removes a socket that nobody listens on any more, and nothing else.
func remove(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if st.Mode()&fs.ModeSocket == 0 {
		return errors.New("there is a file of that name, and it is no socket")
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
		return ErrTaken
	}
	return os.Remove(path)
}
