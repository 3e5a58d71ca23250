package power

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
)

// originalFile keeps nvpmodel's status from before its first change. The status persists over
// boots, unlike the kernel's values in the journal.
const originalFile = "/var/lib/yoctune/nvpmodel.json"

type original struct {
	Status string `json:"status"` // its content
	Absent bool   `json:"absent"` // the file did not exist
}

// Current returns the id of the mode in force, or the default mode if nvpmodel has not run
// yet.
func Current(dev rootfs.FS, file *nvpmodel.File) (int, error) {
	content, err := dev.Read(StatusFile)
	if isAbsent(err) {
		if file.Default == nil {
			return -1, nil
		}
		return *file.Default, nil
	} else if err != nil {
		return 0, fmt.Errorf("read power mode: %w", err)
	}
	for field := range strings.FieldsSeq(content.Text) {
		if v, ok := strings.CutPrefix(field, "pmode:"); ok {
			id, err := strconv.ParseUint(v, 10, 16)
			if err != nil {
				break
			}
			return int(id), nil
		}
	}
	return 0, fmt.Errorf("read power mode: %s has no pmode:000N", StatusFile)
}

// SetBootMode sets the mode of the next boot, at which nvpmodel applies it before the GPU is
// used. It records the original status first.
func SetBootMode(dev rootfs.Device, id int) error {
	before, err := dev.Read(StatusFile)
	if err != nil && !isAbsent(err) {
		return fmt.Errorf("set power mode of the next boot: %w", err)
	}
	if _, kept := dev.ReadState(originalFile); isAbsent(kept) {
		if err := rootfs.WriteJSON(dev, originalFile, original{before.Text, isAbsent(err)}); err != nil {
			return fmt.Errorf("set power mode of the next boot: record the original: %w", err)
		}
	} else if kept != nil {
		return fmt.Errorf("set power mode of the next boot: %w", kept)
	}
	if err := dev.WriteState(StatusFile, fmt.Appendf(nil, "pmode:%04d\n", id)); err != nil {
		return fmt.Errorf("set power mode of the next boot: %w", err)
	}
	return nil
}

// Forget restores nvpmodel's status from before the first [Remember] and returns it. changed
// is false if there is nothing to restore.
func Forget(dev rootfs.Device) (was string, changed bool, err error) {
	o, err := rootfs.ReadJSON[original](dev, originalFile)
	if err != nil {
		return "", false, fmt.Errorf("restore power mode: %w", err)
	} else if o == nil {
		return "", false, nil
	}
	if o.Absent {
		err = dev.RemoveState(StatusFile)
	} else {
		err = dev.WriteState(StatusFile, []byte(o.Status))
	}
	if err == nil {
		err = dev.RemoveState(originalFile)
	}
	if err != nil {
		return "", false, fmt.Errorf("restore power mode: %w", err)
	}
	return strings.TrimSpace(o.Status), true, nil
}
