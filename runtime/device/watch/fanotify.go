package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// Inode marks of fanotify(7) are the only interface that reports which process wrote a
// file of /proc or /sys. They cover one instance of these file systems: the sweep finds
// writes through another mount of /proc, without the process. FAN_CLOSE_WRITE is not used,
// since another process may have written between the write and the close.
const mask = unix.FAN_MODIFY

// Write is a process's writes to a node.
type Write struct {
	Path  string // resolved name, as marked
	PID   int
	Count int
}

// inode identifies a marked file, since an event carries an open file and no name. A mark
// pins its inode, so that the number stays valid.
type inode struct{ dev, ino uint64 }

// marked is a node and an open descriptor of it. When memory is short the kernel drops
// unused dentries, and the next lookup of a sysctl creates another inode without the mark
// (fs/proc/proc_sysctl.c). The descriptor keeps the dentry.
type marked struct {
	path string
	fd   int
}

// marks is the set of marked nodes.
type marks struct {
	fd    int
	root  *rootfs.Root
	self  int32
	nodes map[inode]marked
	at    map[string]inode // by resolved name
	buf   []byte
}

func openMarks(root *rootfs.Root) (*marks, error) {
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY|unix.O_LARGEFILE|unix.O_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watch writes: %w", err)
	}
	return &marks{fd: fd, root: root, self: int32(os.Getpid()), nodes: map[inode]marked{}, at: map[string]inode{}, buf: make([]byte, 4096)}, nil
}

// Mark subscribes to the writes of a node. A node may be marked again, also after it was
// removed and created under the same name.
func (m *marks) Mark(real string) error {
	fail := func(err error) error { return fmt.Errorf("watch %s: %w", real, err) }
	host, err := m.root.HostPath(real)
	if err != nil {
		return fail(err)
	}
	fd, err := unix.Open(host, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		err = unix.FanotifyMark(m.fd, unix.FAN_MARK_ADD, mask, unix.AT_FDCWD, host)
	}
	if err != nil {
		_ = unix.Close(fd)
		return fail(err)
	}
	at := inode{st.Dev, st.Ino}
	if _, again := m.nodes[at]; again {
		_ = unix.Close(fd)
		return nil
	}
	m.forget(real) // created again under the same name
	m.nodes[at], m.at[real] = marked{real, fd}, at
	return nil
}

// Unmark removes the mark of a node, if the node still exists.
func (m *marks) Unmark(real string) {
	m.forget(real)
	if host, err := m.root.HostPath(real); err == nil {
		_ = unix.FanotifyMark(m.fd, unix.FAN_MARK_REMOVE, mask, unix.AT_FDCWD, host)
	}
}

func (m *marks) forget(real string) {
	if at, ok := m.at[real]; ok {
		_ = unix.Close(m.nodes[at].fd)
		delete(m.nodes, at)
		delete(m.at, real)
	}
}

// read returns the queued writes of other processes, merged by node and process, and the
// file systems on which this process wrote. lost reports that the queue has overflowed.
// The number of events per call is bounded, so that a burst does not delay repairs.
func (m *marks) read() (writes []Write, own map[string]bool, lost bool) {
	own = map[string]bool{}
	at := map[Write]int{}
	for range 16 {
		n, err := unix.Read(m.fd, m.buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		for _, e := range parseFanotify(m.buf[:n]) {
			if e.mask&unix.FAN_Q_OVERFLOW != 0 {
				lost = true
			}
			path, ok := m.path(e.fd)
			switch {
			case !ok:
			case e.pid == m.self:
				own[fileSystem(path)] = true
			default:
				key := Write{Path: path, PID: int(e.pid)}
				i, seen := at[key]
				if !seen {
					i = len(writes)
					at[key] = i
					writes = append(writes, key)
				}
				writes[i].Count++
			}
		}
	}
	return writes, own, lost
}

// Writes implements [Marker].
func (m *marks) Writes() (writes []Write, lost bool) {
	writes, _, lost = m.read()
	return writes, lost
}

// path closes an event's file and returns its name.
func (m *marks) path(fd int32) (string, bool) {
	if fd < 0 {
		return "", false
	}
	var st unix.Stat_t
	err := unix.Fstat(int(fd), &st)
	_ = unix.Close(int(fd))
	if err != nil {
		return "", false
	}
	n, ok := m.nodes[inode{st.Dev, st.Ino}]
	return n.path, ok
}

type fanotifyEvent struct {
	mask uint64
	fd   int32
	pid  int32
}

// parseFanotify reads struct fanotify_event_metadata (include/uapi/linux/fanotify.h):
// event_len u32, vers u8, reserved u8, metadata_len u16, mask u64, fd s32, pid s32.
func parseFanotify(b []byte) []fanotifyEvent {
	const size = 24
	var out []fanotifyEvent
	for len(b) >= size {
		n := binary.NativeEndian.Uint32(b)
		if b[4] != unix.FANOTIFY_METADATA_VERSION || n < size || uint64(n) > uint64(len(b)) {
			break
		}
		out = append(out, fanotifyEvent{
			mask: binary.NativeEndian.Uint64(b[8:]),
			fd:   int32(binary.NativeEndian.Uint32(b[16:])),
			pid:  int32(binary.NativeEndian.Uint32(b[20:])),
		})
		b = b[n:]
	}
	return out
}

// flush removes all marks. The kernel frees them after a grace period of some 20 ms, for
// which close waits; an early flush lets it pass during other work.
func (m *marks) flush() { _ = unix.FanotifyMark(m.fd, unix.FAN_MARK_FLUSH, 0, unix.AT_FDCWD, "") }

func (m *marks) close() {
	_ = unix.Close(m.fd)
	for _, n := range m.nodes {
		_ = unix.Close(n.fd)
	}
}
