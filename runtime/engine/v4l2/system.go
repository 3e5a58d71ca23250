package v4l2

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System is the part of the kernel that a camera needs. [Kernel] is the real one; package
// v4l2test simulates a camera and its faults. Errors are of type unix.Errno.
type System interface {
	Open(path string) (fd int, err error)
	Close(fd int) error
	// Ioctl is ioctl(2); arg points to the request's struct.
	Ioctl(fd int, request uint, arg unsafe.Pointer) error
	Map(fd int, offset int64, length int) ([]byte, error)
	Unmap(mem []byte) error
	// Poll waits for at most d until fd has a frame, an event or an error, or wake is
	// readable. It returns the events of both.
	Poll(fd, wake int, d time.Duration) (events, woken int16, err error)
	// Stable returns a path of the device that remains valid when it is plugged in again,
	// or path if there is none.
	Stable(path string) string
}

// Kernel is the System of this machine.
type Kernel struct{}

// Open opens a device in non-blocking mode.
func (Kernel) Open(path string) (int, error) {
	return unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}

// Close closes a file descriptor.
func (Kernel) Close(fd int) error { return unix.Close(fd) }

// Ioctl calls ioctl(2) and repeats calls that a signal interrupted.
func (Kernel) Ioctl(fd int, request uint, arg unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(arg))
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return errno
		}
	}
}

// Map maps a buffer of the driver.
func (Kernel) Map(fd int, offset int64, length int) ([]byte, error) {
	return unix.Mmap(fd, offset, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// Unmap removes a mapping.
func (Kernel) Unmap(mem []byte) error { return unix.Munmap(mem) }

// Poll calls poll(2).
func (Kernel) Poll(fd, wake int, d time.Duration) (events, woken int16, err error) {
	end := time.Now().Add(d)
	for {
		fds := [2]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLPRI}, {Fd: int32(wake), Events: unix.POLLIN}}
		_, err := unix.Poll(fds[:], max(int(time.Until(end).Milliseconds()), 0))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return fds[0].Revents, fds[1].Revents, err
	}
}

// byPath is the directory in which udev names cameras by the port they are plugged in.
const byPath = "/dev/v4l/by-path"

// Stable returns the name by port of a /dev/videoN. The number changes when the camera is
// plugged in again while a process still holds it open.
func (Kernel) Stable(path string) string {
	node, err := filepath.EvalSymlinks(path)
	if err != nil || node != path {
		return path
	}
	names, err := os.ReadDir(byPath)
	if err != nil {
		return path
	}
	for _, n := range names {
		name := filepath.Join(byPath, n.Name())
		if to, err := filepath.EvalSymlinks(name); err == nil && to == node {
			return name
		}
	}
	return path
}

// stringOf converts a NUL-terminated string of the kernel.
func stringOf(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return strings.ToValidUTF8(strings.TrimSpace(s), "?")
}
