package watch

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/api"
	"github.com/yoctune/yoctune/runtime/device"
)

// Bounds of the socket.
const (
	maxClients   = 64
	perUser      = 16
	burst        = 16 // requests of one client before others get their turn
	groupOfLease = "yoctune"
)

// client is one connection. The kernel says who is at the other end.
type client struct {
	fd    int
	uid   uint32
	pid   int
	buf   []byte
	lease uint64 // 0: none
}

// server speaks the api package's protocol. It never waits: a client that does
// not take its answers is dropped.
type server struct {
	fd      int
	path    string
	clients map[int]*client
}

func listen(root *device.Root) (*server, error) {
	fail := func(err error) error { return fmt.Errorf("listen on %s: %w", api.Socket, err) }
	path, err := root.StatePath(api.Socket)
	if err != nil {
		return nil, fail(err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fail(err)
	}
	// The lock is held, so a socket that is there belongs to nobody.
	if err = unix.Unlink(path); errors.Is(err, unix.ENOENT) {
		err = nil
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: path})
	}
	if err == nil {
		err = permit(root, path)
	}
	// Only now can anybody connect.
	if err == nil {
		err = unix.Listen(fd, maxClients)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fail(err)
	}
	return &server{fd: fd, path: path, clients: map[int]*client{}}, nil
}

// permit lets root connect and, where the image has such a group, its members:
// the right to a lease is the right to connect.
func permit(root *device.Root, path string) error {
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	gid, ok := device.GroupID(root, groupOfLease)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	if err := os.Chown(path, 0, gid); err != nil {
		return err
	}
	return os.Chmod(path, 0o660)
}

// accept takes the clients that wait, and returns those it keeps.
func (s *server) accept() []*client {
	var out []*client
	for range burst {
		fd, _, err := unix.Accept4(s.fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if err != nil {
			break
		}
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			_ = unix.Close(fd)
			continue
		}
		c := &client{fd: fd, uid: cred.Uid, pid: int(cred.Pid)}
		if why := s.full(c.uid); why != "" {
			_ = s.send(c, api.Answer{Type: api.Failed, Code: api.CodeQuota, Message: why})
			_ = unix.Close(fd)
			continue
		}
		s.clients[fd] = c
		out = append(out, c)
	}
	return out
}

func (s *server) full(uid uint32) string {
	own := 0
	for _, c := range s.clients {
		if c.uid == uid {
			own++
		}
	}
	switch {
	case len(s.clients) >= maxClients:
		return fmt.Sprintf("too many connections: %d", len(s.clients))
	case own >= perUser:
		return fmt.Sprintf("too many connections of user %d: %d", uid, own)
	}
	return ""
}

// read returns the whole lines that have come, and whether the client is still
// there.
func (s *server) read(c *client) (lines [][]byte, open bool) {
	chunk := make([]byte, api.MaxMessage)
	n, err := unix.Read(c.fd, chunk)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return nil, true
	case err != nil || n == 0:
		return nil, false
	}
	c.buf = append(c.buf, chunk[:n]...)
	for range burst {
		line, rest, ok := bytes.Cut(c.buf, []byte("\n"))
		if !ok {
			break
		}
		lines = append(lines, bytes.Clone(line))
		c.buf = rest
	}
	// What is left must be the start of one message, or it is no message.
	if len(c.buf) > api.MaxMessage {
		_ = s.send(c, api.Answer{Type: api.Failed, Code: api.CodeMalformed, Message: fmt.Sprintf("more than %d bytes without an end of line, or too many requests at once", api.MaxMessage)})
		return lines, false
	}
	c.buf = bytes.Clone(c.buf)
	return lines, true
}

var errSlow = errors.New("the client does not take its answers")

func (s *server) send(c *client, a api.Answer) error {
	b := a.Encode()
	n, err := unix.SendmsgN(c.fd, b, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	if err == nil && n < len(b) {
		err = errSlow
	}
	return err
}

func (s *server) drop(c *client) {
	delete(s.clients, c.fd)
	_ = unix.Close(c.fd)
}

func (s *server) close() {
	for _, c := range s.clients {
		s.drop(c)
	}
	_ = unix.Close(s.fd)
	_ = unix.Unlink(s.path)
}
