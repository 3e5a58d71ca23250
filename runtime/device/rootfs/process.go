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

// HostPath resolves name inside the root and returns its path on this host, for system calls
// that take a path, such as fanotify_mark(2).
func (r *Root) HostPath(name string) (string, error) {
	real, err := r.Resolve(name)
	if err != nil {
		return "", err
	}
	return r.dir + real, nil
}

// StatePath returns the path on this host of a file in yoctuned's directories, and creates
// the directory. It is for sockets, which are bound and not written.
func (r *Root) StatePath(name string) (string, error) { return r.statePath(name, true) }

// errOwnProc reports that this process has another /proc than the system.
var errOwnProc = errors.New("this process has its own mount of /proc, on which writes of other processes raise no events")

// SharesProc returns an error if writes of other processes to /proc/sys raise no events here.
// Since Linux 5.8 each mount of /proc is a separate file system, and a service's sandbox may
// have its own.
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
		return fmt.Errorf("find the mount of /proc: %w", err)
	}
	if at := mountedDevice(string(mounts), "/proc"); at != "" && at != fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)) {
		return errOwnProc
	}
	return nil
}

// mountedDevice returns the device, "major:minor", that is mounted on a directory, "" if
// none is (proc_pid_mountinfo(5)). The last mount hides earlier ones.
func mountedDevice(mountinfo, dir string) (device string) {
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		if len(f) > 4 && f[4] == dir {
			device = f[2]
		}
	}
	return device
}

// GroupID looks up a group in /etc/group. It uses no other source, since a service that
// starts early must not wait for a directory service.
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

// Process describes a process. All fields but PID are "" if it has ended or may not be
// inspected.
type Process struct {
	PID     int    `json:"pid"`
	Command string `json:"comm,omitempty"`
	Args    string `json:"cmdline,omitempty"` // at most maxArgs bytes
	Unit    string `json:"unit,omitempty"`    // systemd unit, from its cgroup
}

// maxArgs bounds a command line, which may have megabytes.
const maxArgs = 160

// RunningProcess is a process with the name of its command.
type RunningProcess struct{ PID, Name string }

func (p RunningProcess) String() string { return p.Name + " (pid " + p.PID + ")" }

// RunningProcesses lists the processes of a device.
func RunningProcesses(dev FS) ([]RunningProcess, error) {
	names, err := dev.List("/proc")
	if err != nil {
		return nil, err
	}
	var out []RunningProcess
	for _, pid := range names {
		if strings.Trim(pid, "0123456789") != "" {
			continue
		}
		if c, err := dev.Read("/proc/" + pid + "/comm"); err == nil { // else it has ended
			out = append(out, RunningProcess{pid, strings.TrimSpace(c.Text)})
		}
	}
	return out, nil
}

// NameProcess describes a process of the running system, even if the root is another folder.
func NameProcess(pid int) Process {
	p := Process{PID: pid}
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	// Read the name first: a process that writes one sysctl may end at any moment.
	p.Command = strings.TrimRight(readStart(dir+"comm", 64), "\n")
	args := readStart(dir+"cmdline", maxArgs)
	p.Args = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(args, "\x00", " "), "?"))
	p.Unit = parseUnit(readStart(dir+"cgroup", PageSize))
	return p
}

// readStart returns up to limit bytes of a file, "" on errors.
func readStart(name string, limit int64) string {
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

// parseUnit returns the innermost service or scope of a cgroup file with lines such as
// "0::/system.slice/tuned.service".
func parseUnit(cgroups string) string {
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

// String describes the process for the user.
func (p Process) String() string {
	pid := "pid " + strconv.Itoa(p.PID)
	if p.Command == "" {
		return pid + ", which has ended"
	}
	if p.Unit != "" {
		pid += ", " + p.Unit
	}
	return p.Command + " (" + pid + ")"
}
