package devicetest

import (
	"io/fs"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// UniformDevice is a device in which every file has the same text, and every directory names
// taken from that text. It is hostile input for readers of a device.
type UniformDevice string

var _ rootfs.Device = UniformDevice("")

// Resolve implements [rootfs.FS].
func (UniformDevice) Resolve(name string) (string, error) { return name, nil }

// Read implements [rootfs.FS].
func (s UniformDevice) Read(string) (rootfs.Content, error) {
	return rootfs.Content{Text: string(s[:min(len(s), rootfs.PageSize)]), Truncated: len(s) >= rootfs.PageSize}, nil
}

// ReadFile implements [rootfs.FS].
func (s UniformDevice) ReadFile(string, int) ([]byte, error) { return []byte(s), nil }

// Write implements [rootfs.FS].
func (UniformDevice) Write(string, string) error { return nil }

// List implements [rootfs.FS].
func (s UniformDevice) List(string) ([]string, error) {
	names := strings.FieldsFunc(string(s), func(c rune) bool { return c == '/' || c <= ' ' })
	return append([]string{"1", "cpu0", "policy0", "thermal_zone0", "cooling_device0"}, names[:min(len(names), 3)]...), nil
}

// Mode implements [rootfs.FS].
func (UniformDevice) Mode(string) (fs.FileMode, error) { return 0o644, nil }

// ReadState implements [rootfs.State].
func (s UniformDevice) ReadState(string) ([]byte, error) { return []byte(s), nil }

// WriteState implements [rootfs.State].
func (UniformDevice) WriteState(string, []byte) error { return nil }

// AppendState implements [rootfs.State].
func (UniformDevice) AppendState(string, []byte) error { return nil }

// RemoveState implements [rootfs.State].
func (UniformDevice) RemoveState(string) error { return nil }
