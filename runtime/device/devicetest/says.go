package devicetest

import (
	"io/fs"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// Says is a device whose every file holds the same text, and whose folders hold what
// that text could be read as names: hostile input for all who read a device.
type Says string

var _ rootfs.Device = Says("")

// Resolve implements [rootfs.FS].
func (Says) Resolve(name string) (string, error) { return name, nil }

// Read implements [rootfs.FS].
func (s Says) Read(string) (rootfs.Content, error) {
	return rootfs.Content{Text: string(s[:min(len(s), rootfs.PageSize)]), Truncated: len(s) >= rootfs.PageSize}, nil
}

// ReadFile implements [rootfs.FS].
func (s Says) ReadFile(string, int) ([]byte, error) { return []byte(s), nil }

// Write implements [rootfs.FS].
func (Says) Write(string, string) error { return nil }

// List implements [rootfs.FS].
func (s Says) List(string) ([]string, error) {
	names := strings.FieldsFunc(string(s), func(c rune) bool { return c == '/' || c <= ' ' })
	return append([]string{"1", "cpu0", "policy0", "thermal_zone0", "cooling_device0"}, names[:min(len(names), 3)]...), nil
}

// Mode implements [rootfs.FS].
func (Says) Mode(string) (fs.FileMode, error) { return 0o644, nil }

// ReadState implements [rootfs.State].
func (s Says) ReadState(string) ([]byte, error) { return []byte(s), nil }

// WriteState implements [rootfs.State].
func (Says) WriteState(string, []byte) error { return nil }

// AppendState implements [rootfs.State].
func (Says) AppendState(string, []byte) error { return nil }

// RemoveState implements [rootfs.State].
func (Says) RemoveState(string) error { return nil }
