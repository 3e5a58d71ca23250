package power

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
)

// originalFile keeps what nvpmodel's status was before it was first changed. It
// is not among the kernel's originals, which a boot forgets: the status is a file,
// and outlives boots and losses of power.
const originalFile = "/var/lib/yoctune/nvpmodel.json"

type original struct {
	Status string `json:"status"` // its content
	Absent bool   `json:"absent"` // there was none
}

// Current returns the id of the mode in force, or that the next boot will set
// where nvpmodel has not run yet.
func Current(dev rootfs.FS, file *nvpmodel.File) (int, error) {
	content, err := dev.Read(StatusFile)
	if absent(err) {
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
	return 0, fmt.Errorf("read power mode: %s does not say pmode:000N", StatusFile)
}

// Remember makes a mode that of the next boot, where nvpmodel reads it before
// anything uses the GPU. What the file was is kept first.
func Remember(dev rootfs.Device, id int) error {
	before, err := dev.Read(StatusFile)
	if err != nil && !absent(err) {
		return fmt.Errorf("remember power mode: %w", err)
	}
	if _, kept := dev.ReadState(originalFile); absent(kept) {
		b, err := json.Marshal(original{before.Text, absent(err)})
		if err == nil {
			err = dev.WriteState(originalFile, append(b, '\n'))
		}
		if err != nil {
			return fmt.Errorf("remember power mode: keep what it was: %w", err)
		}
	} else if kept != nil {
		return fmt.Errorf("remember power mode: %w", kept)
	}
	if err := dev.WriteState(StatusFile, fmt.Appendf(nil, "pmode:%04d\n", id)); err != nil {
		return fmt.Errorf("remember power mode: %w", err)
	}
	return nil
}

// Forget puts nvpmodel's status back to what it was before the first [Remember],
// and returns what that was; false when nothing was changed.
func Forget(dev rootfs.Device) (was string, changed bool, err error) {
	b, err := dev.ReadState(originalFile)
	if absent(err) {
		return "", false, nil
	} else if err != nil {
		return "", false, fmt.Errorf("restore power mode: %w", err)
	}
	var o original
	if err := json.Unmarshal(b, &o); err != nil {
		return "", false, fmt.Errorf("restore power mode: %s: %w", originalFile, err)
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
