// Package rootfs gives access to a device's files. A [Root] is a directory that stands for
// "/": the running system, or a recorded or synthetic tree, so that all code above it runs
// unchanged in tests.
//
// It serves three kinds of files:
//
//   - kernel files below /proc and /sys ([FS]), read and written with one read(2) or
//     write(2) each: a sysctl takes its value in a single write, and Go's poller would
//     spin on a node that returns EAGAIN;
//   - files of the system such as nvpmodel.conf and the installed plan, read only;
//   - yoctuned's own state below /run/yoctune and /var/lib/yoctune ([State]), written
//     atomically and flushed to the disk.
//
// Names are absolute device paths without "..". Symbolic links are followed inside the root
// only, and no file outside the lists of this package is opened.
package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Errors of this package. Errors of the kernel are returned as unix.Errno.
var (
	ErrPath      = errors.New("yoctuned may not access this path")
	ErrForbidden = errors.New("writing this node may run programs or stop the machine")
	ErrEmpty     = errors.New("empty value, which the kernel would accept and ignore")
	ErrNotFile   = errors.New("not a regular file")
	ErrTooLarge  = errors.New("file is too large")
	ErrDangling  = errors.New("is a link that leads nowhere")
)

// PageSize is how many bytes of a kernel file are read. Attributes of procfs and sysfs have
// at most one page.
const PageSize = 4096

// Content is the content of a kernel file.
type Content struct {
	Text      string
	Truncated bool // PageSize bytes were read, and the file may have more
}

// FS accesses kernel files.
type FS interface {
	// Resolve follows the symbolic links of name inside the root.
	Resolve(name string) (string, error)
	// Read returns at most one page of a kernel file.
	Read(name string) (Content, error)
	// ReadFile returns a whole file of at most limit bytes, or ErrTooLarge.
	ReadFile(name string, limit int) ([]byte, error)
	// Write writes value in one write(2), without a newline.
	Write(name, value string) error
	// List returns the sorted names in a directory.
	List(name string) ([]string, error)
	// Mode returns permissions and type of a node.
	Mode(name string) (fs.FileMode, error)
}

// ReadText returns the text of a node without blanks and zero bytes around it, "" if it cannot
// be read.
func ReadText(dev FS, name string) string {
	c, err := dev.Read(name)
	if err != nil {
		return ""
	}
	return strings.Trim(c.Text, " \t\n\x00")
}

// State accesses yoctuned's own files.
type State interface {
	// ReadState returns a file, or an error that is fs.ErrNotExist.
	ReadState(name string) ([]byte, error)
	// WriteState replaces a file atomically, also if power fails.
	WriteState(name string, data []byte) error
	// AppendState appends to a file and returns once the bytes are on the disk.
	AppendState(name string, data []byte) error
	// RemoveState removes a file if it exists.
	RemoveState(name string) error
}

// Device accesses kernel files and state.
type Device interface {
	FS
	State
}

// HeldError reports that another process holds the lock.
type HeldError struct {
	PID     int    // 0 if unknown
	Command string // its command
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return "another yoctuned is changing this device"
	}
	return fmt.Sprintf("another yoctuned is changing this device: pid %d (%s)", e.PID, e.Command)
}
