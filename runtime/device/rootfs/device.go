// Package rootfs is the only place that touches a device's files. A [Root] is a
// directory that stands for "/": the running system, or a recorded or synthetic
// tree, so that everything above it runs unchanged in a test.
//
// Three kinds of files are reached through it:
//
//   - kernel files below /proc and /sys ([FS]): read and written with one
//     read(2) or write(2) each, because a sysctl takes its value in a single
//     write and Go's poller would spin for ever on a node that answers EAGAIN;
//   - facts about the system (nvpmodel.conf, the installed plan): read only;
//   - yoctuned's own state below /run/yoctune and /var/lib/yoctune ([State]):
//     written atomically and flushed to the disk.
//
// Names are absolute device paths without "..", symbolic links are followed
// inside the root only, and nothing outside the lists in this package is opened.
package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
)

// Errors of this package; test with errors.Is. What the kernel answers is passed
// on as its unix.Errno.
var (
	ErrPath      = errors.New("path is not one that yoctuned touches")
	ErrForbidden = errors.New("node can run programs or stop the machine")
	ErrEmpty     = errors.New("empty value: the kernel would accept it and change nothing")
	ErrNotFile   = errors.New("not a regular file")
	ErrTooLarge  = errors.New("file is too large")
)

// PageSize is how much of a kernel file is read, in bytes. procfs and sysfs
// attributes are at most one page.
const PageSize = 4096

// Content is what a kernel file said.
type Content struct {
	Text      string
	Truncated bool // PageSize bytes were read: there may be more, so nothing may be concluded
}

// FS is the kernel's files.
type FS interface {
	// Resolve follows the symbolic links of name inside the root.
	Resolve(name string) (string, error)
	// Read returns at most one page of a kernel file.
	Read(name string) (Content, error)
	// ReadFile returns a whole file of at most limit bytes, or ErrTooLarge.
	ReadFile(name string, limit int) ([]byte, error)
	// Write hands value to the kernel in one write(2), without a newline.
	Write(name, value string) error
	// List returns the sorted names in a directory.
	List(name string) ([]string, error)
	// Mode returns permissions and type of a node.
	Mode(name string) (fs.FileMode, error)
}

// State is yoctuned's own files.
type State interface {
	// ReadState returns a file, or an error that is fs.ErrNotExist.
	ReadState(name string) ([]byte, error)
	// WriteState replaces a file: afterwards it holds the old or the new bytes,
	// also after a power loss.
	WriteState(name string, data []byte) error
	// AppendState adds to a file and returns when the bytes are on the disk.
	AppendState(name string, data []byte) error
	// RemoveState removes a file; an absent one is no error.
	RemoveState(name string) error
}

// Device is both.
type Device interface {
	FS
	State
}

// HeldError says that another process holds the lock.
type HeldError struct {
	PID     int    // 0 when the holder did not say
	Command string // what it is doing
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return "another yoctuned is changing this device"
	}
	return fmt.Sprintf("another yoctuned is changing this device: pid %d (%s)", e.PID, e.Command)
}
