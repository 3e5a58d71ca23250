package rootfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// HostPath resolves name inside the root and returns where it lies on this host:
// for interfaces of the kernel that take a path, such as fanotify_mark(2).
func (r *Root) HostPath(name string) (string, error) {
	real, err := r.Resolve(name)
	if err != nil {
		return "", err
	}
	return r.dir + real, nil
}

// StatePath returns where a file of yoctuned's own folders lies on this host,
// creating the folder: for a socket, which is bound and not written.
func (r *Root) StatePath(name string) (string, error) { return r.statePath(name, true) }

// errOwnProc says that this process sees another /proc than the system does.
var errOwnProc = errors.New("this process has a /proc of its own (a sandbox's), on which the writes of others raise no events")

// SharesProc returns ErrOwnProc when the writes of other processes to /proc/sys
// cannot be seen: since Linux 5.8 each mount of /proc is a file system of its own,
// and a service's sandbox may have one. A tree's folder is everybody's.
func (r *Root) SharesProc() error {
	if !r.Running() {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc", &st); err != nil {
		return fmt.Errorf("stat /proc: %w", err)
	}
	mounts, err := os.ReadFile("/proc/1/mountinfo")
	if err != nil {
		return fmt.Errorf("find out which /proc the system has: %w", err)
	}
	if at := mountedAt(string(mounts), "/proc"); at != "" && at != fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)) {
		return errOwnProc
	}
	return nil
}

// mountedAt returns the device, "major:minor", of what is mounted on a folder; ""
// for nothing (proc_pid_mountinfo(5)). The last mount covers those before.
func mountedAt(mountinfo, dir string) (device string) {
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		if len(f) > 4 && f[4] == dir {
			device = f[2]
		}
	}
	return device
}

// GroupID looks a group up in /etc/group. No other source is asked: a service
// that starts early must not wait for a directory on the network.
func GroupID(dev FS, name string) (int, bool) {
	b, err := dev.ReadFile("/etc/group", 1<<20)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 3 || f[0] != name {
			continue
		}
		if id, err := strconv.ParseUint(f[2], 10, 31); err == nil {
			return int(id), true
		}
	}
	return 0, false
}

// Process is what a process says of itself. All but the PID is "" when it is
// gone, or is not for us to see.
type Process struct {
	PID     int    `json:"pid"`
	Command string `json:"comm,omitempty"`
	Args    string `json:"cmdline,omitempty"` // at most maxArgs bytes
	Unit    string `json:"unit,omitempty"`    // systemd unit, by its cgroup
}

// maxArgs keeps a history of writers small; a command line may have megabytes.
const maxArgs = 160

// NameProcess looks a process of this host up. Processes belong to the running
// system whatever the root is: those that write to a tree are as real as others.
func NameProcess(pid int) Process {
	p := Process{PID: pid}
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	// The name first: who writes a sysctl from a script is gone in a moment.
	p.Command = strings.TrimRight(peek(dir+"comm", 64), "\n")
	args := peek(dir+"cmdline", maxArgs)
	p.Args = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(args, "\x00", " "), "?"))
	p.Unit = unitOf(peek(dir+"cgroup", PageSize))
	return p
}

// peek reads the start of a file of the process folder.
func peek(name string, limit int64) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	return string(bytes.ToValidUTF8(b, []byte("?")))
}

// unitOf finds the innermost service or scope in a cgroup file, whose lines are
// "0::/system.slice/tuned.service".
func unitOf(cgroups string) string {
	for line := range strings.Lines(cgroups) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 || f[0] != "0" && f[1] != "name=systemd" {
			continue
		}
		for p := f[2]; p != "/" && p != "."; p = path.Dir(p) {
			if base := path.Base(p); strings.HasSuffix(base, ".service") || strings.HasSuffix(base, ".scope") {
				return base
			}
		}
	}
	return ""
}

// String names the process as a person would.
func (p Process) String() string {
	pid := "pid " + strconv.Itoa(p.PID)
	if p.Command == "" {
		return pid + ", gone before it could be named"
	}
	if p.Unit != "" {
		return p.Command + " (" + pid + ", " + p.Unit + ")"
	}
	return p.Command + " (" + pid + ")"
}
