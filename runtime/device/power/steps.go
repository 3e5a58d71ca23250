package power

import (
	"errors"
	"io/fs"
	"path"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
)

// nodes shows a device to package nvpmodel.
type nodes struct{ dev rootfs.FS }

// Resolve implements [nvpmodel.Device]. A forbidden path exists: it is reported when it is used.
func (n nodes) Resolve(name string) (string, bool) {
	real, err := n.dev.Resolve(name)
	if errors.Is(err, rootfs.ErrPath) {
		return name, true
	}
	return real, err == nil
}

// List implements [nvpmodel.Device].
func (n nodes) List(dir string) []string {
	names, _ := n.dev.List(dir)
	return names
}

// Text implements [nvpmodel.Device].
func (n nodes) Text(name string) string {
	c, err := n.dev.Read(name)
	if err != nil || c.Truncated {
		return ""
	}
	return c.Text
}

// Steps returns the steps of a mode on a device; see [nvpmodel.Steps].
func Steps(dev rootfs.FS, file *nvpmodel.File, m *nvpmodel.Mode) []nvpmodel.Step {
	return nvpmodel.Steps(nodes{dev}, file, m)
}

// IsGPUUsed reports whether the GPU of a mask has been used since boot. Its masks cannot change
// afterwards, because the driver has saved its golden context.
func IsGPUUsed(dev rootfs.FS, mask string) bool {
	return rootfs.ReadText(dev, path.Join(path.Dir(mask), "golden_img_status")) == "1"
}

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
