// Package power maps NVIDIA's power modes to nodes of the device and keeps nvpmodel's
// state.
//
// The mode in force is in /var/lib/nvpmodel/status. Once that file exists, it takes
// precedence over the default of nvpmodel.conf at every boot.
package power

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
)

// Files of nvpmodel.
const (
	ConfigFile = nvpmodel.ConfigFile
	StatusFile = nvpmodel.StatusFile
)

// ErrConfig is wrapped by errors about a file that is not an nvpmodel configuration.
var ErrConfig = errors.New("not an nvpmodel configuration")

// Parse parses an nvpmodel.conf. Unknown sections and lines, which newer releases add, are
// errors only if the meaning of a mode depends on them.
func Parse(text []byte) (*nvpmodel.File, error) {
	file, problems, err := nvpmodel.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	for _, p := range problems {
		if p.Fatal {
			return nil, fmt.Errorf("%w: line %d: %s", ErrConfig, p.Line, p.Message)
		}
	}
	if len(file.Modes) == 0 {
		return nil, fmt.Errorf("%w: no POWER_MODEL", ErrConfig)
	}
	return file, nil
}

// Read returns the device's configuration, nil if it has none.
func Read(dev rootfs.FS) (*nvpmodel.File, error) {
	b, err := dev.ReadFile(ConfigFile, nvpmodel.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read power modes: %w", err)
	}
	file, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("read power modes: %s: %w", ConfigFile, err)
	}
	return file, nil
}
