package nvpmodel

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Files of nvpmodel on a device.
const (
	ConfigFile = "/etc/nvpmodel.conf"
	StatusFile = "/var/lib/nvpmodel/status"
)

// Device is what a mode's meaning depends on.
type Device interface {
	// Resolve returns the path of a node without links, false if there is none.
	Resolve(name string) (string, bool)
	// List returns the names in a directory, nil if it is absent.
	List(dir string) []string
	// Text returns the text of a node, "" if it is absent or too long.
	Text(name string) string
}

// Step is one line of a mode as a node of this device and its wanted value.
//
// nvpmodel stops at the first missing node and leaves the mode half applied. Steps are
// independent: missing nodes are reported, and the others are written.
type Step struct {
	Param, Arg string
	Path       string   // the node, "" if the configuration declares none
	Want       string   // value of the node when the mode is in force
	Write      string   // text to write, if it differs from Want
	AtLeast    bool     // accept any value from Want up: no cap, and the maximum is unknown
	Also       []string // further accepted values
	Stage      Stage
	Missing    string // why the node is missing
}

// Stage is the order of a step. Cores come first, since clocks exist for online cores only.
// Automatic power management is restored last.
type Stage int

// Stages in their order.
const (
	Cores Stage = iota // CPU cores online and offline
	Masks              // power-gated parts of the GPU; effective only until the GPU is first used
	Wake               // power the GPU, so that its clocks can be set
	Clocks
	Sleep // return to automatic power management
)

// cpuDir holds the cores.
const cpuDir = "/sys/devices/system/cpu/"

// unlimited is what nvpmodel writes for a clock of -1: the largest signed number that the
// node accepts. Since L4T R36 these have 64 bits.
const unlimited = "2147483647"

// Steps returns the steps of a mode on this device in the order of the file. Of several steps
// for one node the last is kept. The device decides which of two paths exists, the ends of a
// clock's table, and which cores exist.
func Steps(dev Device, file *File, m *Mode) []Step {
	var steps []Step
	for _, p := range m.Settings {
		s := Step{Param: p.Param, Arg: p.Arg, Want: p.Value, Stage: chooseStage(p)}
		d := file.Param(p.Param)
		s.Path, s.Missing = findNode(dev, d, p)
		switch {
		case s.Stage == Cores:
			if !resolveCore(dev, &s) {
				continue
			}
		case s.Path != "" && d.Type == "CLOCK":
			resolveClock(dev, file, d, p, &s)
		}
		// A policy has several lines if the file has one for each core.
		if s.Path != "" && s.Stage != Wake {
			real, exists := dev.Resolve(s.Path) // unresolved names are compared literally
			steps = slices.DeleteFunc(steps, func(e Step) bool {
				other, _ := dev.Resolve(e.Path)
				return e.Stage != Wake && (e.Path == s.Path || exists && other == real)
			})
		}
		steps = append(steps, s)
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return int(a.Stage) - int(b.Stage) })
	return steps
}

func chooseStage(p Setting) Stage {
	switch {
	case p.Param == "CPU_ONLINE":
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

// findNode returns the node of a setting. If the configuration declares one for each of two
// kernel lines, it returns the existing one.
func findNode(dev Device, d *Param, p Setting) (name, missing string) {
	first := d.Arg(p.Arg)
	if first == nil {
		return "", "the configuration does not declare " + p.Param + " " + p.Arg
	}
	for _, candidate := range []*Arg{first, d.Arg(p.Arg + "_KNEXT")} {
		if candidate == nil {
			continue
		}
		name := nodePath(dev, candidate)
		if _, ok := dev.Resolve(name); ok {
			return name, ""
		}
	}
	return nodePath(dev, first), ""
}

// nodePath returns the path of an argument. A hwmon attribute is in the only hwmonN
// directory below the declared one, since the number differs between boots.
func nodePath(dev Device, a *Arg) string {
	if a.Attr == "" {
		return a.Path
	}
	for _, n := range dev.List(a.Path) { // if it is absent, the path below is too
		if strings.HasPrefix(n, "hwmon") && n != "hwmon" {
			return path.Join(a.Path, n, a.Attr)
		}
	}
	return path.Join(a.Path, a.Attr)
}

// resolveCore reports whether the setting of a core is a step. The boot core has no node and
// is always on.
func resolveCore(dev Device, s *Step) bool {
	if _, ok := dev.Resolve(s.Path); ok || s.Path == "" {
		return true
	}
	if _, ok := dev.Resolve(path.Dir(s.Path)); ok {
		return s.Want != "1"
	}
	s.Missing = "this module has no such core"
	return s.Want != "0"
}

// resolveClock resolves nvpmodel's special values. A minimum of 0 is the lowest step of the
// clock, and -1 means no cap, which the kernel reports as the highest step.
func resolveClock(dev Device, file *File, d *Param, p Setting, s *Step) {
	table := readSteps(dev, d, s.Path)
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
		s.Want, s.AtLeast = strconv.FormatInt(highestClock(file, p), 10), true
	case s.Want == "0" && p.Arg == "MIN_FREQ" && len(table) > 0:
		s.Want = strconv.FormatInt(table[0], 10)
	default:
		// NVIDIA's files have clocks between two steps. The kernel uses one of the two.
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

// readSteps returns a clock's steps in ascending order: all of them, or only the lowest and
// the highest if the kernel lists no others, or nil if they are unknown.
func readSteps(dev Device, d *Param, name string) []int64 {
	dir := path.Dir(name)
	var lists []string
	for _, declared := range []string{"FREQ_TABLE", "FREQ_TABLE_KNEXT"} {
		if a := d.Arg(declared); a != nil {
			lists = append(lists, a.Path)
		}
	}
	lists = append(lists, dir+"/scaling_available_frequencies", dir+"/available_frequencies")
	for _, list := range lists {
		if path.Dir(list) != dir {
			continue
		}
		if t := parseNumbers(dev.Text(list)); len(t) > 0 {
			return t
		}
	}
	var ends []int64
	for _, base := range []string{"/cpuinfo_min_freq", "/cpuinfo_max_freq"} {
		end := dev.Text(dir + base)
		if end == "" {
			return nil
		}
		ends = append(ends, parseNumbers(end)...)
	}
	return ends
}

func parseNumbers(text string) []int64 {
	var out []int64
	for word := range strings.FieldsSeq(text) {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil && n > 0 {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// highestClock returns the highest value of a clock in any mode. A clock at or above it is
// not capped by a mode of this file.
func highestClock(file *File, p Setting) int64 {
	most := int64(1)
	for _, m := range file.Modes {
		for _, q := range m.Settings {
			if n, err := strconv.ParseInt(q.Value, 10, 64); err == nil && q.Param == p.Param && q.Arg == p.Arg {
				most = max(most, n)
			}
		}
	}
	return most
}
