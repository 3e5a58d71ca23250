package rootfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// Root is a directory that stands for "/".
type Root struct {
	dir     string // "" for the running system
	systemd systemd
}

var _ Device = (*Root)(nil)

// Open returns the device below dir. "/" is the running system.
func Open(dir string) (*Root, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open device tree: %w", err)
	}
	// The directory may be reached through a link; links below it must not lead out.
	abs, err = filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, fmt.Errorf("open device tree: %w", err)
	}
	if st, err := os.Stat(abs); err != nil {
		return nil, fmt.Errorf("open device tree: %w", err)
	} else if !st.IsDir() {
		return nil, fmt.Errorf("open device tree: %s is not a directory", dir)
	}
	return &Root{dir: strings.TrimSuffix(abs, "/")}, nil
}

// Dir returns the directory on this host, "/" for the running system.
func (r *Root) Dir() string { return r.dir + "/" }

// Running reports whether this is the running system.
func (r *Root) Running() bool { return r.dir == "" }

// open opens a file for reading. If the name contains no symbolic links, as most do, one
// openat2(2) suffices. Otherwise, and on kernels before 5.6, it resolves the name first.
func (r *Root) open(name string) (int, error) {
	if err := checkName(name, mayRead); err != nil {
		return -1, err
	}
	how := unix.OpenHow{Flags: unix.O_RDONLY | openFlags, Resolve: unix.RESOLVE_NO_SYMLINKS}
	switch fd, err := unix.Openat2(unix.AT_FDCWD, r.dir+name, &how); {
	case err == nil:
		return requireRegular("read", name, fd)
	case errors.Is(err, unix.ENOENT): // before any link
		return -1, &PathError{Op: "find", Path: name, Err: err}
	}
	real, err := r.Resolve(name)
	if err != nil {
		return -1, err
	}
	return r.openReal("read", real, unix.O_RDONLY)
}

// openFlags has O_NONBLOCK so that a named pipe in a hostile tree does not block. Kernel
// attributes ignore it.
const openFlags = unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK

// openReal opens a resolved name.
func (r *Root) openReal(op, real string, flags int) (int, error) {
	return openHost(op, real, r.dir+real, flags)
}

// openHost opens a file of this host. name is its path below the root.
func openHost(op, name, host string, flags int) (int, error) {
	fd, err := retryInterrupted(func() (int, error) { return unix.Open(host, flags|openFlags, 0o644) })
	if err != nil {
		return -1, &PathError{Op: op, Path: name, Err: err}
	}
	return requireRegular(op, name, fd)
}

// retryInterrupted repeats a system call that a signal has interrupted.
func retryInterrupted(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// newFile returns the os.File of a descriptor from openHost. It clears O_NONBLOCK, for which
// package os would start its poller.
func newFile(fd int, host string) *os.File {
	_ = unix.SetNonblock(fd, false)
	return os.NewFile(uintptr(fd), host)
}

// requireRegular returns fd if it is a regular file, and closes it otherwise.
func requireRegular(op, name string, fd int) (int, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = ErrNotFile
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, &PathError{Op: op, Path: name, Err: err}
	}
	return fd, nil
}

// Read implements [FS].
func (r *Root) Read(name string) (Content, error) {
	if node, ok := r.virtual(name); ok {
		return r.readVirtual(name, node)
	}
	buf := pages.Get().(*[PageSize]byte)
	defer pages.Put(buf)
	n, err := r.read(name, buf[:])
	if err != nil {
		return Content{}, err
	}
	return Content{Text: string(buf[:n]), Truncated: n == len(buf)}, nil
}

// pages are buffers for one node. Most nodes have a few bytes, and a plan has many nodes.
var pages = sync.Pool{New: func() any { return new([PageSize]byte) }}

func (r *Root) read(name string, buf []byte) (int, error) {
	fd, err := r.open(name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	return readAll(fd, name, buf)
}

// readAll reads up to len(buf) bytes. Attributes based on seq_file may need more than one
// read(2).
func readAll(fd int, name string, buf []byte) (int, error) {
	total := 0
	for total < len(buf) {
		n, err := retryInterrupted(func() (int, error) { return unix.Read(fd, buf[total:]) })
		if err != nil {
			return 0, &PathError{Op: "read", Path: name, Err: err}
		}
		if n == 0 {
			break
		}
		total += n
	}
	return total, nil
}

// ReadFile implements [FS].
func (r *Root) ReadFile(name string, limit int) ([]byte, error) {
	buf := make([]byte, min(limit+1, PageSize))
	for {
		n, err := r.read(name, buf)
		if err != nil {
			return nil, err
		}
		if n < len(buf) {
			return buf[:n], nil
		}
		if len(buf) > limit {
			return nil, &PathError{Op: "read", Path: name, Err: ErrTooLarge}
		}
		buf = make([]byte, min(limit+1, len(buf)*8))
	}
}

// Write implements [FS].
func (r *Root) Write(name, value string) error {
	if err := checkName(name, mayWrite); err != nil {
		return err
	}
	if strings.TrimSpace(value) == "" {
		return &PathError{Op: "write", Path: name, Err: ErrEmpty}
	}
	if node, ok := r.virtual(name); ok {
		return r.writeVirtual(name, value, node)
	}
	real, err := r.Resolve(name)
	if err != nil {
		return err
	}
	if !mayWrite(real) {
		return fmt.Errorf("%w: %s leads to %s", ErrPath, name, real)
	}
	if runsPrograms(real, value) {
		return &PathError{Op: "write", Path: real, Err: ErrForbidden}
	}
	// Kernel files ignore O_TRUNC. A file of a tree needs it to drop the rest of a longer
	// old value.
	fd, err := r.openReal("write", real, unix.O_WRONLY|unix.O_TRUNC)
	if err != nil {
		return err
	}
	n, err := retryInterrupted(func() (int, error) { return unix.Write(fd, []byte(value)) })
	if err == nil && n != len(value) {
		err = fmt.Errorf("the kernel accepted %d of %d bytes: %w", n, len(value), unix.EINVAL)
	}
	// close(2) may report a late error.
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	if err != nil {
		return &PathError{Op: "write", Path: real, Err: err}
	}
	return nil
}

// List implements [FS].
func (r *Root) List(name string) ([]string, error) {
	real, err := r.Resolve(name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(r.dir + real)
	if err != nil {
		return nil, &PathError{Op: "list", Path: real, Err: stripPath(err)}
	}
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, &PathError{Op: "list", Path: real, Err: stripPath(err)}
	}
	sort.Strings(names)
	return names, nil
}

// Mode implements [FS].
func (r *Root) Mode(name string) (fs.FileMode, error) {
	if _, ok := r.virtual(name); ok {
		return 0o644, nil
	}
	real, err := r.Resolve(name)
	if err != nil {
		return 0, err
	}
	st, err := os.Lstat(r.dir + real)
	if err != nil {
		return 0, &PathError{Op: "stat", Path: real, Err: stripPath(err)}
	}
	return st.Mode(), nil
}

// stripPath returns the cause of an error without paths of the host.
func stripPath(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	}
	return err
}

// statePath resolves the directory of a state file and creates it if mk is set.
func (r *Root) statePath(name string, mk bool) (string, error) {
	if err := checkName(name, isState); err != nil {
		return "", err
	}
	dir := ""
	for _, part := range strings.Split(strings.TrimPrefix(path.Dir(name), "/"), "/") {
		next, err := r.resolveLinks(dir + "/" + part)
		if IsDangling(err, dir+"/"+part) {
			// State that cannot be read is not absent.
			return "", fmt.Errorf("%s %w: %v", path.Join("/", dir, part), ErrDangling, err)
		}
		if errors.Is(err, fs.ErrNotExist) && mk {
			next, err = r.createDir(path.Join("/", dir, part))
		}
		if err != nil {
			return "", err
		}
		dir = next
	}
	return r.dir + path.Join(dir, path.Base(name)), nil
}

// createDir creates one directory. It resolves the name again afterwards: an existing name
// may be a dangling link, through which a file would be created outside the root.
func (r *Root) createDir(name string) (string, error) {
	err := os.Mkdir(r.dir+name, 0o755)
	if err == nil {
		err = os.Chmod(r.dir+name, 0o755) // regardless of the umask
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", &PathError{Op: "create", Path: name, Err: stripPath(err)}
	}
	real, err := r.resolveLinks(name)
	if err != nil {
		return "", err
	}
	return real, syncDir(r.dir + path.Dir(real))
}

// ReadState implements [State].
func (r *Root) ReadState(name string) ([]byte, error) {
	host, err := r.statePath(name, false)
	if err != nil {
		return nil, err
	}
	// Another file in its place must neither block nor exhaust memory.
	fd, err := openHost("read", name, host, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &PathError{Op: "read", Path: name, Err: err}
	}
	if st.Size > maxState {
		return nil, &PathError{Op: "read", Path: name, Err: ErrTooLarge}
	}
	buf := make([]byte, st.Size)
	n, err := readAll(fd, name, buf)
	return buf[:n], err
}

// maxState bounds a state file, in bytes. A journal of ten thousand nodes has some 3 MB.
const maxState = 64 << 20

// WriteState implements [State].
func (r *Root) WriteState(name string, data []byte) error {
	host, err := r.statePath(name, true)
	if err != nil {
		return err
	}
	dir := filepath.Dir(host)
	if err := renameio.WriteFile(host, data, 0o644, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o644)); err != nil {
		return &PathError{Op: "write", Path: name, Err: stripPath(err)}
	}
	return syncDir(dir)
}

// AppendState implements [State].
func (r *Root) AppendState(name string, data []byte) error {
	host, err := r.statePath(name, true)
	if err != nil {
		return err
	}
	const flags = unix.O_WRONLY | unix.O_APPEND
	// The directory is synced only if the file is new.
	fd, err := openHost("append to", name, host, flags)
	created := errors.Is(err, fs.ErrNotExist)
	if created {
		fd, err = openHost("append to", name, host, flags|unix.O_CREAT)
	}
	if err != nil {
		return err
	}
	f := newFile(fd, host)
	_, err = f.Write(data)
	if err == nil && created {
		err = f.Chmod(0o644) // regardless of the umask
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return &PathError{Op: "append to", Path: name, Err: stripPath(err)}
	}
	if created {
		return syncDir(filepath.Dir(host))
	}
	return nil
}

// RemoveState implements [State].
func (r *Root) RemoveState(name string) error {
	host, err := r.statePath(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := os.Remove(host); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &PathError{Op: "remove", Path: name, Err: stripPath(err)}
	}
	return syncDir(filepath.Dir(host))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	err = d.Sync()
	_ = d.Close()
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// LockFile is locked by the process that changes the device.
const LockFile = "/run/yoctune/lock"

type lockRecord struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

// Lock locks the device until unlock is called or the process ends. If another process holds
// the lock, the error is a [*HeldError].
func (r *Root) Lock(command string) (unlock func(), err error) {
	host, err := r.statePath(LockFile, true)
	if err != nil {
		return nil, err
	}
	fd, err := openHost("open", LockFile, host, unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		return nil, err
	}
	f := newFile(fd, host)
	// Any process that may read the file could lock it.
	if err := f.Chmod(0o600); err != nil {
		_ = f.Close()
		return nil, &PathError{Op: "open", Path: LockFile, Err: stripPath(err)}
	}
	for try := 0; ; try++ {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		held := readHolder(f)
		ended := held.PID == 0 || errors.Is(unix.Kill(held.PID, 0), unix.ESRCH)
		if errors.Is(err, unix.EWOULDBLOCK) && ended && try < 5 {
			// No record, or that of a process which was killed: `status` and `monitor` test the
			// lock for a moment, or a holder has just started.
			time.Sleep(10 * time.Millisecond)
			continue
		}
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, held
		}
		return nil, &PathError{Op: "lock", Path: LockFile, Err: err}
	}
	// The record is informative only, so that errors are ignored.
	if b, err := json.Marshal(lockRecord{os.Getpid(), command}); err == nil {
		_ = f.Truncate(0)
		_, _ = f.WriteAt(b, 0)
	}
	// Keep the file: after a removal two processes could lock two inodes.
	return func() { _ = f.Truncate(0); _ = f.Close() }, nil
}

// Holder returns the holder of the lock, nil if there is none.
func (r *Root) Holder() *HeldError {
	host, err := r.statePath(LockFile, false)
	if err != nil {
		return nil
	}
	fd, err := openHost("open", LockFile, host, unix.O_RDONLY)
	if errors.Is(err, fs.ErrPermission) {
		return findLockHolder(host)
	} else if err != nil {
		return nil
	}
	f := newFile(fd, host)
	defer func() { _ = f.Close() }()
	if unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil {
		return nil
	}
	return readHolder(f)
}

func readHolder(f *os.File) *HeldError {
	var h lockRecord
	buf := make([]byte, PageSize)
	n, _ := f.ReadAt(buf, 0)
	_ = json.Unmarshal(buf[:n], &h)
	return &HeldError{PID: h.PID, Command: h.Command}
}

// findLockHolder finds the holder of a lock in the kernel's list (proc_locks(5)), for
// processes that may not open the file.
func findLockHolder(host string) *HeldError {
	var st unix.Stat_t
	if err := unix.Stat(host, &st); err != nil {
		return nil
	}
	b, err := os.ReadFile("/proc/locks")
	if err != nil {
		return nil
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || f[3] != "WRITE" || f[5] != file {
			continue
		}
		pid, err := strconv.Atoi(f[4])
		if err != nil {
			continue
		}
		return &HeldError{PID: pid, Command: NameProcess(pid).Command}
	}
	return nil
}
