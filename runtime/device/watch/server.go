package watch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// Bounds of the socket.
const (
	maxClients   = 64
	extraForRoot = 4 // further connections, for diagnosis
	perUser      = 16
	burst        = 16 // requests of one client before the others have their turn
	leaseGroup   = "yoctune"

	// lineTimeout is how long a client may take to finish a line.
	lineTimeout = 10 * time.Second
)

// right is what a client may do, as decided by its peer credentials.
type right int

// Rights; each includes those before it.
const (
	mayRead right = iota
	mayLease
	mayAdmin
)

// client is one connection.
type client struct {
	fd     int
	holder int // pidfd of the process that connected; -1 on kernels before 5.3
	uid    uint32
	pid    int
	right  right
	buf    []byte
	lineBy time.Duration // when the line in buf must be complete; 0: there is none
	lease  uint64        // 0: none

	wantsSample bool // waits for a sample that is being taken
	watches     bool
	lost        int // events not sent since the last one, because its socket was full
}

// server implements the protocol of package api. It never blocks: a client that does not
// read its answers is disconnected.
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
	// The device's lock is held, so that an existing socket is stale.
	if err = unix.Unlink(path); errors.Is(err, unix.ENOENT) {
		err = nil
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: path})
	}
	if err == nil {
		// Every user may connect; peer credentials decide what a client may do.
		err = os.Chmod(path, 0o666)
	}
	// Connections are accepted from here on.
	if err == nil {
		err = unix.Listen(fd, maxClients)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fail(err)
	}
	return &server{fd: fd, path: path, root: root, clients: map[int]*client{}, holders: map[int]*client{}}, nil
}

// clientRight returns what a client may do, by the credentials that the kernel recorded
// at connect(2). The group is looked up each time because it may be created later.
func clientRight(fd int, cred *unix.Ucred, root *rootfs.Root) right {
	if cred.Uid == 0 || int(cred.Uid) == os.Geteuid() {
		return mayAdmin
	}
	gid, ok := rootfs.GroupID(root, leaseGroup)
	if !ok {
		return mayRead
	}
	if int(cred.Gid) == gid || slices.Contains(peerGroups(fd), uint32(gid)) {
		return mayLease
	}
	return mayRead
}

// peerGroups returns the supplementary groups of the peer, none on kernels before 4.13.
// Package unix has no wrapper because the answer's length varies.
func peerGroups(fd int) []uint32 {
	var gids [256]uint32
	size := uint32(unsafe.Sizeof(gids))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
		uintptr(unsafe.Pointer(&gids[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return nil
	}
	return gids[:min(int(size)/4, len(gids))]
}

// accept accepts waiting connections and returns the new clients.
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
		c := &client{fd: fd, holder: -1, uid: cred.Uid, pid: int(cred.Pid), right: clientRight(fd, cred, s.root)}
		if why := s.rejectReason(c); why != "" {
			_ = s.send(c, api.Answer{Type: api.Failed, Code: api.CodeQuota, Message: why})
			_ = unix.Close(fd)
			continue
		}
		s.clients[fd] = c
		out = append(out, c)
	}
	return out
}

func (s *server) rejectReason(c *client) string {
	own := 0
	for _, other := range s.clients {
		if other.uid == c.uid {
			own++
		}
	}
	most := maxClients
	if c.right == mayAdmin {
		most += extraForRoot
	}
	switch {
	case len(s.clients) >= most:
		return fmt.Sprintf("too many connections: %d", len(s.clients))
	case own >= perUser && c.right != mayAdmin:
		return fmt.Sprintf("too many connections of user %d: %d", c.uid, own)
	}
	return ""
}

// watchHolder opens a pidfd that is readable when the process that connected has ended.
// The connection may outlive it in a child. It returns -1 on kernels before 5.3.
func (s *server) watchHolder(c *client) (pidfd int) {
	if c.holder < 0 && c.pid > 0 {
		fd, err := unix.PidfdOpen(c.pid, unix.PIDFD_NONBLOCK)
		if errors.Is(err, unix.EINVAL) { // kernels before 5.10 have no such flag
			fd, err = unix.PidfdOpen(c.pid, 0)
		}
		if err == nil {
			c.holder = fd
			s.holders[fd] = c
		}
	}
	return c.holder
}

// receive reads from a client. It reports false at the end of the connection.
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
	// A client that waits for its answers sends one request at a time.
	if len(c.buf) > 2*api.MaxMessage || len(c.buf) > api.MaxMessage && bytes.IndexByte(c.buf, '\n') < 0 {
		_ = s.send(c, api.Answer{Type: api.Failed, Code: api.CodeMalformed, Message: fmt.Sprintf("a line exceeds %d bytes, or too many requests were sent without reading answers", api.MaxMessage)})
		return false
	}
	return true
}

// takeLines removes the next complete lines from the buffer and returns them.
func (c *client) takeLines() (lines [][]byte) {
	for range burst {
		line, rest, ok := bytes.Cut(c.buf, []byte("\n"))
		if !ok {
			break
		}
		lines = append(lines, bytes.Clone(line))
		c.buf = rest
	}
	c.buf = bytes.Clone(c.buf) // release the larger array
	return lines
}

// setLineDeadline starts the time of a line that has begun, and ends that of a complete one.
func (c *client) setLineDeadline(now time.Duration, complete bool) {
	switch {
	case len(c.buf) == 0 || c.hasLine():
		c.lineBy = 0
	case c.lineBy == 0 || complete:
		c.lineBy = now + lineTimeout
	}
}

// nextLine returns when the first unfinished line of a client must be complete, 0 for none.
func (s *server) nextLine() time.Duration {
	var next time.Duration
	for _, c := range s.clients {
		if c.lineBy > 0 && (next == 0 || c.lineBy < next) {
			next = c.lineBy
		}
	}
	return next
}

// hasLine reports whether the buffer holds a complete line.
func (c *client) hasLine() bool { return bytes.IndexByte(c.buf, '\n') >= 0 }

var errSlow = errors.New("the client does not read its answers")

func (s *server) send(c *client, a api.Answer) error {
	b := a.Encode()
	n, err := unix.SendmsgN(c.fd, b, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	if err == nil && n < len(b) {
		err = errSlow
	}
	return err
}

// publish sends an event to the clients that watch. Nothing is queued: if a client's
// socket is full, that client loses the event.
func (s *server) publish(e Event) {
	for _, c := range s.clients {
		if !c.watches {
			continue
		}
		a := api.Answer{Type: api.Happened, Event: e.toAPI(c.lost)}
		switch err := s.send(c, a); {
		case err == nil:
			c.lost = 0
		case errors.Is(err, unix.EAGAIN):
			c.lost++
		default: // closed, or stuck within a line: the loop reads the end of the connection and drops it
			_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
			c.watches = false
		}
	}
}

// maxText bounds each text of an event, in bytes. A node's content may fill a page, and
// clients read lines of up to 64 KiB.
const maxText = 1024

// toAPI converts an event to the protocol's type.
func (e Event) toAPI(lost int) *api.Event {
	return &api.Event{
		Kind: e.Type, Time: e.Time, ID: e.ID, Path: e.Path, Wanted: truncate(e.Wanted), Found: truncate(e.Found),
		By: (*api.Process)(e.By), Outcome: string(e.Outcome), Repair: e.Repair, Lost: lost, Message: truncate(e.Message),
	}
}

// FromAPI converts an event that was received from the socket.
func FromAPI(e api.Event) Event {
	return Event{
		Type: e.Kind, Time: e.Time, ID: e.ID, Path: e.Path, Wanted: e.Wanted, Found: e.Found,
		By: (*rootfs.Process)(e.By), Outcome: outcome.Outcome(e.Outcome), Repair: e.Repair, Message: e.Message,
	}
}

func truncate(text string) string { return text[:min(len(text), maxText)] }

func (s *server) closeClient(c *client) {
	delete(s.clients, c.fd)
	_ = unix.Close(c.fd)
	if c.holder >= 0 {
		delete(s.holders, c.holder)
		_ = unix.Close(c.holder)
	}
}

func (s *server) close() {
	for _, c := range s.clients {
		s.closeClient(c)
	}
	_ = unix.Close(s.fd)
	_ = unix.Unlink(s.path)
}
