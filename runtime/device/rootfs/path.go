package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/knob"
	"golang.org/x/sys/unix"
)

// readable lists the files that may be read, and directories with everything below.
var readable = [...]string{
	"/proc/sys", "/proc/irq", "/proc/cmdline", "/proc/config.gz", "/proc/interrupts",
	"/proc/device-tree", "/sys", "/boot", "/lib/modules", "/usr/lib/modules",
	"/etc/nvpmodel.conf", "/etc/nvpmodel", "/etc/nv_tegra_release", "/var/lib/nvpmodel",
	"/proc/stat", "/proc/meminfo", "/proc/vmstat", "/proc/swaps", "/proc/pressure", "/proc/buddyinfo", "/proc/slabinfo",
	"/proc/diskstats", "/proc/modules", MountsFile,
	"/etc/sysctl.conf", "/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d",
	"/etc/nvfancontrol.conf", "/etc/systemd/journald.conf", "/etc/systemd/journald.conf.d", "/usr/lib/systemd/journald.conf.d",
	"/etc/systemd/system/multi-user.target.wants", "/usr/lib/systemd/system/multi-user.target.wants",
	"/etc/default/irqbalance", "/etc/sysconfig/irqbalance", "/etc/irqbalance.env",
	"/var/log/journal", "/etc/group", "/etc/machine-id", "/etc/yoctune", "/usr/lib/yoctune", "/usr/share/yoctune", "/run/yoctune", "/var/lib/yoctune",
}

// processFiles are the files of a process that may be read.
var processFiles = [...]string{"cmdline", "comm", "mountinfo", "smaps_rollup", "stat", "status"}

// isProcessFile reports whether name is such a file.
func isProcessFile(name string) bool {
	rest, ok := strings.CutPrefix(name, "/proc/")
	if !ok {
		return false
	}
	pid, file, ok := strings.Cut(rest, "/")
	return ok && pid != "" && strings.Trim(pid, "0123456789") == "" && slices.Contains(processFiles[:], file)
}

// writable lists the kernel files that may be written.
var writable = [...]string{"/proc/sys", "/proc/irq", "/sys"}

// state lists the directories of files that yoctuned replaces: its own, and that of
// nvpmodel's status, which selects the mode of the next boot.
var state = [...]string{"/run/yoctune", "/var/lib/yoctune", "/var/lib/nvpmodel"}

// maxLinks is the kernel's limit of symbolic links in one path.
const maxLinks = 40

func mayWrite(name string) bool { return isBelow(name, writable[:]) || isKThreadNode(name) }

func isState(name string) bool { return isBelow(name, state[:]) }

func isBelow(name string, dirs []string) bool {
	for _, d := range dirs {
		if name == d || strings.HasPrefix(name, d) && name[len(d)] == '/' {
			return true
		}
	}
	return false
}

// mayRead reports whether a file may be read.
func mayRead(name string) bool {
	return isBelow(name, readable[:]) || isProcessFile(name) || isKThreadNode(name)
}

// SystemdDirs are the directories that may have systemd's own library, whose name has its version.
func SystemdDirs() []string {
	return []string{"/usr/lib/systemd", "/lib/systemd", "/usr/lib/aarch64-linux-gnu/systemd", "/usr/lib/arm-linux-gnueabihf/systemd", "/usr/lib/x86_64-linux-gnu/systemd"}
}

// mayList also allows /proc, to find processes, and the directories of systemd's library.
func mayList(name string) bool {
	return name == "/proc" || mayRead(name) || slices.Contains(SystemdDirs(), name)
}

// checkName refuses names that are not clean absolute paths or not allowed.
func checkName(name string, allowed func(string) bool) error {
	switch {
	case !strings.HasPrefix(name, "/"), strings.ContainsRune(name, 0), path.Clean(name) != name:
		return fmt.Errorf("%w: %q is not a clean absolute path", ErrPath, name)
	case !allowed(name):
		return fmt.Errorf("%w: %s", ErrPath, name)
	}
	return nil
}

// runsPrograms reports whether writing value to the resolved node makes the kernel start a
// program, suspend or stop. No plan may do that, signed or not.
func runsPrograms(name, value string) bool {
	if key, ok := knob.SysctlKey(name); ok {
		return knob.ForbiddenValue(key, value)
	}
	if isBelow(name, []string{"/sys/kernel/uevent_helper", "/sys/power", "/sys/firmware"}) {
		return true
	}
	switch path.Base(name) {
	case "release_agent", "uevent", "bind", "unbind", "new_id", "remove_id", "driver_override":
		return strings.HasPrefix(name, "/sys/")
	}
	return false
}

// Resolve follows symbolic links inside the root: an absolute target starts at the root, and
// ".." does not lead out of it. The result is the node's canonical name. openat2 with
// RESOLVE_IN_ROOT does not return that name, and L4T R32's kernel 4.9 lacks it.
func (r *Root) Resolve(name string) (string, error) {
	if err := checkName(name, mayList); err != nil {
		return "", err
	}
	if real, ok, err := r.resolveVirtual(name); ok {
		return real, err
	}
	real, err := r.resolveLinks(name)
	if err != nil {
		return "", err
	}
	// Links of /proc and /sys may lead to readable files only.
	if strings.HasPrefix(name, "/proc/") || strings.HasPrefix(name, "/sys/") {
		if !mayRead(real) {
			return "", fmt.Errorf("%w: %s leads to %s", ErrPath, name, real)
		}
	}
	return real, nil
}

func (r *Root) resolveLinks(name string) (string, error) {
	switch err := r.findWithoutLinks(name); {
	case err == nil:
		return name, nil
	case errors.Is(err, unix.ENOENT): // before any link
		return "", &PathError{Op: "find", Path: name, Err: err}
	}
	todo := strings.Split(strings.TrimPrefix(name, "/"), "/")
	done := ""
	links := 0
	var buf [unix.PathMax]byte
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done = done[:max(strings.LastIndexByte(done, '/'), 0)]
			continue
		}
		next := done + "/" + part
		n, err := retryInterrupted(func() (int, error) { return unix.Readlink(r.dir+next, buf[:]) })
		switch {
		case errors.Is(err, unix.EINVAL): // not a link
			done = next
			continue
		case err != nil:
			return "", &PathError{Op: "find", Path: next, Err: err}
		}
		if links++; links > maxLinks {
			return "", &PathError{Op: "find", Path: name, Err: unix.ELOOP}
		}
		target := string(buf[:n])
		if strings.HasPrefix(target, "/") {
			done = ""
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	if done == "" {
		done = "/"
	}
	return done, nil
}

// findWithoutLinks finds a clean name that contains no symbolic link. The error is ENOENT if a part
// of the name does not exist and those before it are no links, ELOOP if there is a link, and another
// one on kernels without openat2(2).
func (r *Root) findWithoutLinks(name string) error {
	if path.Clean(name) != name {
		return unix.ELOOP
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, r.dir+name, &how)
	if err != nil {
		return err
	}
	_ = unix.Close(fd)
	return nil
}

// IsDangling reports whether err states that a link in name leads to a file that does not exist,
// as on a device whose data partition is not mounted. The name itself exists then.
func IsDangling(err error, name string) bool {
	var missing *PathError
	return errors.Is(err, fs.ErrNotExist) && errors.As(err, &missing) && !isBelow(name, []string{missing.Path})
}

// PathError is a failed operation on a path, which is relative to the root.
type PathError struct {
	Op   string
	Path string
	Err  error // a unix.Errno, or a sentinel of this package
}

func (e *PathError) Error() string { return e.Op + " " + e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *PathError) Unwrap() error { return e.Err }
