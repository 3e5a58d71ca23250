package watch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// units reports units of the plan that start or stop. systemd makes the cgroup of a unit when
// it starts the unit and removes it afterwards, and inotify(7) reports both: cgroups are made
// by mkdir(2), unlike devices.
type units struct {
	fd    int
	root  *rootfs.Root
	dirs  []string         // cgroups of the plan's units
	there map[string]bool  // those that exist
	above map[int32]string // watched directories, by watch descriptor
}

func openUnits(root *rootfs.Root, dirs []string) (*units, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch units: %w", err)
	}
	u := &units{fd: fd, root: root, dirs: dirs, there: map[string]bool{}, above: map[int32]string{}}
	u.look()
	return u, nil
}

// look watches the directories above each unit, as far as they exist, and returns the units
// that have started or stopped since the last call.
func (u *units) look() (started, stopped []string) {
	for _, dir := range u.dirs {
		below, _ := strings.CutPrefix(path.Dir(dir), rootfs.CgroupDir)
		at := rootfs.CgroupDir
		u.watch(at)
		for part := range strings.SplitSeq(strings.TrimPrefix(below, "/"), "/") {
			at = path.Join(at, part)
			u.watch(at)
		}
	}
	// The directories are watched first, so that no unit starts unseen in between.
	for _, dir := range u.dirs {
		_, err := u.root.Resolve(dir)
		switch there := err == nil; {
		case there && !u.there[dir]:
			started = append(started, path.Base(dir))
		case !there && u.there[dir]:
			stopped = append(stopped, path.Base(dir))
		}
		u.there[dir] = err == nil
	}
	return started, stopped
}

// watch watches a directory, if it exists. A directory that is watched already keeps its
// descriptor.
func (u *units) watch(dir string) {
	host, err := u.root.HostPath(dir)
	if err != nil {
		return
	}
	const mask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_TO | unix.IN_ONLYDIR
	if wd, err := unix.InotifyAddWatch(u.fd, host, mask); err == nil {
		u.above[int32(wd)] = dir
	}
}

// read returns the units that have started or stopped.
func (u *units) read() (started, stopped []string) {
	buf := make([]byte, 4096)
	concerned := false
	for {
		n, err := unix.Read(u.fd, buf)
		if err != nil || n <= 0 {
			break
		}
		for _, e := range parseInotify(buf[:n]) {
			if e.mask&unix.IN_IGNORED != 0 {
				delete(u.above, e.wd) // the directory was removed
				continue
			}
			name := u.above[e.wd] + "/" + e.name
			concerned = concerned || e.mask&unix.IN_Q_OVERFLOW != 0 || slices.ContainsFunc(u.dirs, func(dir string) bool {
				return dir == name || strings.HasPrefix(dir, name+"/")
			})
		}
	}
	if !concerned {
		return nil, nil // other units come and go all the time
	}
	return u.look()
}

type inotifyEvent struct {
	wd   int32
	mask uint32
	name string
}

// parseInotify reads struct inotify_event (include/uapi/linux/inotify.h): wd s32, mask u32,
// cookie u32, len u32, and a name of that length, padded with zero bytes.
func parseInotify(b []byte) []inotifyEvent {
	var out []inotifyEvent
	for len(b) >= unix.SizeofInotifyEvent {
		n := uint64(binary.NativeEndian.Uint32(b[12:]))
		if unix.SizeofInotifyEvent+n > uint64(len(b)) {
			break
		}
		name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+n], []byte{0})
		out = append(out, inotifyEvent{
			wd: int32(binary.NativeEndian.Uint32(b)), mask: binary.NativeEndian.Uint32(b[4:]), name: string(name),
		})
		b = b[unix.SizeofInotifyEvent+n:]
	}
	return out
}
