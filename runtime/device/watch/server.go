package watch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// Bounds of the socket.
const (
	maxClients   = 64
	forRoot      = 4 // connections above that, to see and end what others do
	perUser      = 16
	burst        = 16 // requests of one client before others get their turn
	groupOfLease = "yoctune"
)

// right is what the kernel's word for who connected allows.
type right int

// Rights; each includes those before it.
const (
	mayRead right = iota
	mayLease
	mayAdmin
)

// client is one connection. The kernel says who is at the other end.
type client struct {
	fd     int
	holder int // pidfd of the process that connected; -1 on kernels before 5.3
	uid    uint32
	pid    int
	right  right
	buf    []byte
	lease  uint64 // 0: none

	asks    bool // for a sample that is being taken
	watches bool
	lost    int // events that it was too slow for, since the last that it took
}

// server speaks the api package's protocol. It never waits: a client that does
// not take its answers is dropped.
type server struct {
	fd      int
	path    string
	root    *rootfs.Root
	clients map[int]*client
	holders map[int]*client // by pidfd
}

func listen(root *rootfs.Root) (*server, error) {
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
		// Everybody may ask; what each may do is decided when he connects.
		err = os.Chmod(path, 0o666)
	}
	// Only now can anybody connect.
	if err == nil {
		err = unix.Listen(fd, maxClients)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fail(err)
	}
	return &server{fd: fd, path: path, root: root, clients: map[int]*client{}, holders: map[int]*client{}}, nil
}

// rightOf decides by the credentials that the kernel noted when the other side
// connected. The group is looked up each time: it may be made later.
func rightOf(fd int, cred *unix.Ucred, root *rootfs.Root) right {
	if cred.Uid == 0 || int(cred.Uid) == os.Geteuid() {
		return mayAdmin
	}
	gid, ok := rootfs.GroupID(root, groupOfLease)
	if !ok {
		return mayRead
	}
	if int(cred.Gid) == gid || slices.Contains(groupsOf(fd), uint32(gid)) {
		return mayLease
	}
	return mayRead
}

// groupsOf returns the supplementary groups of who connected, none on kernels
// before 4.13. unix has no wrapper: the answer's length is not fixed.
func groupsOf(fd int) []uint32 {
	var gids [256]uint32
	size := uint32(unsafe.Sizeof(gids))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
		uintptr(unsafe.Pointer(&gids[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return nil
	}
	return gids[:min(int(size)/4, len(gids))]
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
		c := &client{fd: fd, holder: -1, uid: cred.Uid, pid: int(cred.Pid), right: rightOf(fd, cred, s.root)}
		if why := s.full(c); why != "" {
			_ = s.send(c, api.Answer{Type: api.Failed, Code: api.CodeQuota, Message: why})
			_ = unix.Close(fd)
			continue
		}
		s.clients[fd] = c
		out = append(out, c)
	}
	return out
}

func (s *server) full(c *client) string {
	own := 0
	for _, other := range s.clients {
		if other.uid == c.uid {
			own++
		}
	}
	most := maxClients
	if c.right == mayAdmin {
		most += forRoot
	}
	switch {
	case len(s.clients) >= most:
		return fmt.Sprintf("too many connections: %d", len(s.clients))
	case own >= perUser && c.right != mayAdmin:
		return fmt.Sprintf("too many connections of user %d: %d", c.uid, own)
	}
	return ""
}

// hold opens what tells that the process which connected has ended. Its
// connection alone does not: a child may have inherited it.
func (s *server) hold(c *client) (pidfd int) {
	if c.holder < 0 && c.pid > 0 {
		fd, err := unix.PidfdOpen(c.pid, unix.PIDFD_NONBLOCK)
		if errors.Is(err, unix.EINVAL) { // before 5.10, which has no such flag
			fd, err = unix.PidfdOpen(c.pid, 0)
		}
		if err == nil {
			c.holder = fd
			s.holders[fd] = c
		}
	}
	return c.holder
}

// receive takes what has come, and reports whether the client is still there.
func (s *server) receive(c *client) (open bool) {
	var chunk [api.MaxMessage]byte
	n, err := unix.Read(c.fd, chunk[:])
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return true
	case err != nil || n == 0:
		return false
	}
	c.buf = append(c.buf, chunk[:n]...)
	// One message and the start of the next is all that a client who waits for
	// answers sends.
	if len(c.buf) > 2*api.MaxMessage || len(c.buf) > api.MaxMessage && bytes.IndexByte(c.buf, '\n') < 0 {
		_ = s.send(c, api.Answer{Type: api.Failed, Code: api.CodeMalformed, Message: fmt.Sprintf("more than %d bytes without an end of line, or too many requests at once", api.MaxMessage)})
		return false
	}
	return true
}

// lines takes the next whole lines out of what has come.
func (c *client) lines() (lines [][]byte) {
	for range burst {
		line, rest, ok := bytes.Cut(c.buf, []byte("\n"))
		if !ok {
			break
		}
		lines = append(lines, bytes.Clone(line))
		c.buf = rest
	}
	c.buf = bytes.Clone(c.buf) // of a large one, a small rest
	return lines
}

// more reports whether a whole line waits: nothing else would wake for it.
func (c *client) more() bool { return bytes.IndexByte(c.buf, '\n') >= 0 }

var errSlow = errors.New("the client does not take its answers")

func (s *server) send(c *client, a api.Answer) error {
	b := a.Encode()
	n, err := unix.SendmsgN(c.fd, b, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	if err == nil && n < len(b) {
		err = errSlow
	}
	return err
}

// publish sends an event to those who watch. Nothing is kept for one whose socket
// is full: a burst of drift costs a slow watcher events, and this process nothing.
func (s *server) publish(e Event) {
	for _, c := range s.clients {
		if !c.watches {
			continue
		}
		a := api.Answer{Type: api.Happened, Event: e.api(c.lost)}
		switch err := s.send(c, a); {
		case err == nil:
			c.lost = 0
		case errors.Is(err, unix.EAGAIN):
			c.lost++
		default: // gone, or in the middle of a line: the loop hears of the end, and drops it
			_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
			c.watches = false
		}
	}
}

// maxText bounds each text of an event on the socket: a node's content may have
// a page, and a client's line is 64 KiB.
const maxText = 1024

// api is the event as programs are told it.
func (e Event) api(lost int) *api.Event {
	out := &api.Event{
		Kind: e.Type, Time: e.Time, ID: e.ID, Path: e.Path, Wanted: clip(e.Wanted), Found: clip(e.Found),
		Outcome: string(e.Outcome), Repair: e.Repair, Lost: lost, Message: clip(e.Message),
	}
	if e.By != nil {
		out.By = &api.Process{PID: e.By.PID, Command: e.By.Command, Args: e.By.Args, Unit: e.By.Unit}
	}
	return out
}

// FromAPI is the event of a watcher.
func FromAPI(e api.Event) Event {
	out := Event{
		Type: e.Kind, Time: e.Time, ID: e.ID, Path: e.Path, Wanted: e.Wanted, Found: e.Found,
		Outcome: outcome.Outcome(e.Outcome), Repair: e.Repair, Message: e.Message,
	}
	if e.By != nil {
		out.By = &rootfs.Process{PID: e.By.PID, Command: e.By.Command, Args: e.By.Args, Unit: e.By.Unit}
	}
	return out
}

func clip(text string) string { return text[:min(len(text), maxText)] }

func (s *server) drop(c *client) {
	delete(s.clients, c.fd)
	_ = unix.Close(c.fd)
	if c.holder >= 0 {
		delete(s.holders, c.holder)
		_ = unix.Close(c.holder)
	}
}

func (s *server) close() {
	for _, c := range s.clients {
		s.drop(c)
	}
	_ = unix.Close(s.fd)
	_ = unix.Unlink(s.path)
}
