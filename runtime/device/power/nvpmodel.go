// Package power reads NVIDIA's power mode configuration and state.
//
// nvpmodel.conf is a list of sections, each started by a "<" line: PARAM declares
// names for kernel nodes, POWER_MODEL gives one mode's values, PM_CONFIG the
// default mode. The mode in force is in /var/lib/nvpmodel/status and, once that
// file exists, wins over the default at every boot.
package power

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// Files of nvpmodel.
const (
	ConfigFile = "/etc/nvpmodel.conf"
	StatusFile = "/var/lib/nvpmodel/status"
)

// maxConfig bounds the file: real ones have about 10 KiB.
const maxConfig = 1 << 20

// ErrConfig says that the file is not an nvpmodel configuration.
var ErrConfig = errors.New("not an nvpmodel configuration")

// Mode is a POWER_MODEL.
type Mode struct {
	ID     int
	Name   string
	Params []Param
}

// Param is one line of a mode.
type Param struct{ Name, Arg, Value string }

// Declared is a PARAM section: what the names of a mode's lines stand for.
type Declared struct {
	Type string            // FILE, CLOCK or HWMON
	Args map[string]string // argument to file; of a HWMON, the folder above hwmonN and the attribute, with a blank between
}

// Config is what an nvpmodel.conf defines.
type Config struct {
	Params  map[string]Declared
	Modes   []Mode
	Default int // of PM_CONFIG, -1 without one
}

// Mode returns a mode by name, nil when there is none.
func (c *Config) Mode(name string) *Mode {
	for i := range c.Modes {
		if c.Modes[i].Name == name {
			return &c.Modes[i]
		}
	}
	return nil
}

// Name returns the name of a mode id, "" when there is none.
func (c *Config) Name(id int) string {
	for _, m := range c.Modes {
		if m.ID == id {
			return m.Name
		}
	}
	return ""
}

// Parse reads an nvpmodel.conf. Sections it does not know are skipped: newer
// releases add some.
func Parse(text string) (*Config, error) {
	c := &Config{Default: -1, Params: map[string]Declared{}}
	var mode *Mode
	var declared map[string]string // the arguments of the PARAM that the line is in
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '<' {
			mode, declared = nil, nil
			// "<PARAM" without a blank is in files of NVIDIA's own.
			f := strings.Fields(strings.Trim(line, "<>"))
			if len(f) == 0 {
				return nil, fmt.Errorf("%w: line %d: empty section", ErrConfig, n)
			}
			attr := attributes(f[1:])
			switch f[0] {
			case "PARAM":
				declared = map[string]string{}
				c.Params[attr["NAME"]] = Declared{Type: attr["TYPE"], Args: declared}
			case "POWER_MODEL":
				id, err := strconv.ParseUint(attr["ID"], 10, 16)
				if err != nil || attr["NAME"] == "" {
					return nil, fmt.Errorf("%w: line %d: a POWER_MODEL needs ID and NAME", ErrConfig, n)
				}
				c.Modes = append(c.Modes, Mode{ID: int(id), Name: attr["NAME"]})
				mode = &c.Modes[len(c.Modes)-1]
			case "PM_CONFIG":
				id, err := strconv.ParseUint(attr["DEFAULT"], 10, 16)
				if err != nil {
					return nil, fmt.Errorf("%w: line %d: PM_CONFIG needs DEFAULT", ErrConfig, n)
				}
				c.Default = int(id)
			}
			continue
		}
		f := strings.Fields(line)
		if declared != nil && len(f) >= 2 {
			declared[f[0]] = strings.Join(f[1:], " ")
		}
		if mode == nil {
			continue
		}
		if len(f) != 3 {
			return nil, fmt.Errorf("%w: line %d: a setting is PARAM, ARG and value", ErrConfig, n)
		}
		mode.Params = append(mode.Params, Param{f[0], f[1], f[2]})
	}
	if len(c.Modes) == 0 {
		return nil, fmt.Errorf("%w: no POWER_MODEL", ErrConfig)
	}
	return c, nil
}

func attributes(fields []string) map[string]string {
	m := map[string]string{}
	for _, f := range fields {
		if k, v, ok := strings.Cut(f, "="); ok {
			m[k] = v
		}
	}
	return m
}

// Read returns the device's configuration; nil without an error when it has none.
func Read(dev rootfs.FS) (*Config, error) {
	b, err := dev.ReadFile(ConfigFile, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read power modes: %w", err)
	}
	c, err := Parse(string(b))
	if err != nil {
		return nil, fmt.Errorf("read power modes: %s: %w", ConfigFile, err)
	}
	return c, nil
}
