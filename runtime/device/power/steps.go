package power

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// Step is one line of a mode, as a node of this device and what it shall hold.
//
// nvpmodel ends a mode at the first node that is missing and leaves the device
// half switched. Steps do not depend on each other: what is missing is said, and
// the rest is done.
type Step struct {
	Param, Arg string
	Path       string // the node, "" when the configuration names none that is here
	Want       string // what the node reads when the mode is in force
	Write      string // what is written for it, where that is another text
	AtLeast    bool   // any value from Want up will do: "no cap", and the highest is not known
	Also       []string
	Stage      Stage
	Missing    string // why there is no node to hold it
}

// Stage is when a step is done. Cores come first, as their clocks appear with
// them, and power comes back to automatic last.
type Stage int

// Stages in their order.
const (
	Cores Stage = iota // CPU cores on and off
	Masks              // parts of the GPU gated: live only while it has not been used since boot
	Wake               // the GPU powered, so that its clocks can be set
	Clocks
	Sleep // and back to automatic
)

// cpuDir is where the kernel lists the cores.
const cpuDir = "/sys/devices/system/cpu/"

// unlimited is what nvpmodel writes for -1 on a clock: the largest signed number
// that the kernel's parser of this node takes. Since L4T R36 those are 64 bits.
const unlimited = "2147483647"

// Steps returns what a mode asks of this device, in nvpmodel's order: that of the
// file, except that what is on one node twice is kept where it is last. The
// snapshot decides which of two paths a kernel has, what the ends of a clock's
// table are, and which cores exist.
func (c *Config) Steps(dev rootfs.FS, m *Mode) []Step {
	var steps []Step
	for _, p := range m.Params {
		s := Step{Param: p.Name, Arg: p.Arg, Want: p.Value, Stage: stage(p)}
		d := c.Params[p.Name]
		s.Path, s.Missing = d.node(dev, p)
		switch {
		case s.Stage == Cores:
			if !c.core(dev, &s) {
				continue
			}
		case d.Type == "CLOCK" && s.Path != "":
			c.clock(dev, d, p, &s)
		}
		// One policy is several lines, where a file names its clock once a core.
		if s.Path != "" && s.Stage != Wake {
			real, _ := dev.Resolve(s.Path) // unresolved names are compared as they are
			steps = slices.DeleteFunc(steps, func(e Step) bool {
				other, _ := dev.Resolve(e.Path)
				return e.Stage != Wake && (e.Path == s.Path || real != "" && other == real)
			})
		}
		steps = append(steps, s)
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return int(a.Stage) - int(b.Stage) })
	return steps
}

func stage(p Param) Stage {
	switch {
	case p.Name == "CPU_ONLINE":
		return Cores
	case strings.HasSuffix(p.Arg, "_PG_MASK"):
		return Masks
	case p.Value == "on":
		return Wake
	case p.Value == "auto":
		return Sleep
	}
	return Clocks
}

// node finds the file of a line: that of the running kernel line where the section
// has two.
func (d Declared) node(dev rootfs.FS, p Param) (name, missing string) {
	first := d.Args[p.Arg]
	if first == "" {
		return "", "the configuration does not declare " + p.Name + " " + p.Arg
	}
	for _, candidate := range []string{first, d.Args[p.Arg+"_KNEXT"]} {
		if candidate == "" {
			continue
		}
		if d.Type == "HWMON" {
			candidate = hwmon(dev, candidate)
		}
		if _, err := dev.Resolve(candidate); err == nil {
			return candidate, ""
		} else if errors.Is(err, rootfs.ErrPath) {
			return candidate, "" // said as what it is when it is used
		}
	}
	return first, ""
}

// hwmon turns "DIR attr" into the attribute below the one hwmonN that DIR has:
// the number is another at every boot.
func hwmon(dev rootfs.FS, text string) string {
	dir, attr, ok := strings.Cut(text, " ")
	if !ok {
		return dir
	}
	names, _ := dev.List(dir) // absent: the name below does not resolve either
	for _, n := range names {
		if strings.HasPrefix(n, "hwmon") && n != "hwmon" {
			return path.Join(dir, n, attr)
		}
	}
	return path.Join(dir, attr)
}

// core reports whether a line about a core has something to do. Kernels give the
// boot core no switch: it is on.
func (c *Config) core(dev rootfs.FS, s *Step) bool {
	if _, err := dev.Resolve(s.Path); err == nil || s.Path == "" {
		return true
	}
	if _, err := dev.Resolve(path.Dir(s.Path)); err == nil {
		return s.Want != "1"
	}
	s.Missing = "this module has no such core"
	return s.Want != "0"
}

// clock resolves nvpmodel's special values. MIN 0 is the lowest of the table, and
// the kernel says so; -1 is no cap, which reads as the highest.
func (c *Config) clock(dev rootfs.FS, d Declared, p Param, s *Step) {
	table := table(dev, d, s.Path)
	switch {
	case s.Want == "-1":
		s.Write = unlimited
		if !strings.HasPrefix(s.Path, cpuDir) {
			s.Write = strconv.FormatInt(1<<63-1, 10)
			if strings.Contains(s.Path, "emc_iso_cap") {
				s.Write = unlimited
			}
		}
		if len(table) > 0 {
			s.Want = strconv.FormatInt(table[len(table)-1], 10)
			s.Write = s.Want
			return
		}
		s.Want, s.AtLeast = strconv.FormatInt(c.highest(p), 10), true
	case s.Want == "0" && p.Arg == "MIN_FREQ" && len(table) > 0:
		s.Want = strconv.FormatInt(table[0], 10)
	default:
		// NVIDIA's own files hold clocks that no table has; the kernel takes a
		// neighbour of them.
		hz, err := strconv.ParseInt(s.Want, 10, 64)
		if err != nil || len(table) < 2 {
			return
		}
		if i, exact := slices.BinarySearch(table, hz); !exact {
			for _, n := range table[max(i-1, 0):min(i+1, len(table))] {
				s.Also = append(s.Also, strconv.FormatInt(n, 10))
			}
		}
	}
}

// table is a clock's steps, ascending; its two ends where the kernel lists no
// more, nil where it says nothing.
func table(dev rootfs.FS, d Declared, name string) []int64 {
	dir := path.Dir(name)
	lists := []string{d.Args["FREQ_TABLE"], d.Args["FREQ_TABLE_KNEXT"], dir + "/scaling_available_frequencies", dir + "/available_frequencies"}
	for _, list := range lists {
		if list == "" || path.Dir(list) != dir {
			continue
		}
		c, err := dev.Read(list)
		if err != nil || c.Truncated {
			continue
		}
		if t := numbers(c.Text); len(t) > 0 {
			return t
		}
	}
	var ends []int64
	for _, base := range []string{"/cpuinfo_min_freq", "/cpuinfo_max_freq"} {
		c, err := dev.Read(dir + base)
		if err != nil {
			return nil
		}
		ends = append(ends, numbers(c.Text)...)
	}
	return ends
}

func numbers(text string) []int64 {
	var out []int64
	for word := range strings.FieldsSeq(text) {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil && n > 0 {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// highest is the most that any mode asks of a clock: whoever reads no less has no
// cap that a mode of this file could have set.
func (c *Config) highest(p Param) int64 {
	most := int64(1)
	for _, m := range c.Modes {
		for _, q := range m.Params {
			if n, err := strconv.ParseInt(q.Value, 10, 64); err == nil && q.Name == p.Name && q.Arg == p.Arg {
				most = max(most, n)
			}
		}
	}
	return most
}

// Used reports whether the GPU has been used since boot, after which its masks
// cannot change: the driver has saved its golden context.
func Used(dev rootfs.FS, mask string) bool {
	c, err := dev.Read(path.Join(path.Dir(mask), "golden_img_status"))
	return err == nil && strings.TrimSpace(c.Text) == "1"
}

// absent reports whether err says that there is no such file.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
