package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/plan"
)

// Classes of devices that a plan can select.
const (
	ClassBlock   = "block"
	ClassCPU     = "cpu" // each core, online or not
	ClassCPUFreq = "cpufreq"
	ClassDevFreq = "devfreq"
	ClassNet     = "net"
	ClassIRQ     = "irq"
	ClassCmdline = "cmdline" // kernel arguments: read only, not a folder
	ClassConfig  = "config"  // kernel options: read only, not a folder
)

// Classes lists the classes that are folders of devices.
func Classes() []string {
	return []string{ClassBlock, ClassCPU, ClassCPUFreq, ClassDevFreq, ClassNet, ClassIRQ}
}

// ErrClass says that a plan selects by a class this program does not know.
var ErrClass = errors.New("unknown device class")

// Node is one device of a class.
type Node struct {
	Class   string   `json:"class"`
	Name    string   `json:"name"`              // the kernel's name; for an IRQ its number
	Path    string   `json:"path"`              // the folder of its attributes
	Actions []string `json:"actions,omitempty"` // an IRQ's action names
	OFNode  string   `json:"of_node,omitempty"`
	Driver  string   `json:"driver,omitempty"`
}

// classDirs is where the kernel lists the devices of a class.
func classDir(class string) (dir, prefix string, ok bool) {
	switch class {
	case ClassBlock:
		return "/sys/block", "", true
	case ClassCPU:
		return "/sys/devices/system/cpu", "cpu", true
	case ClassCPUFreq:
		return "/sys/devices/system/cpu/cpufreq", "policy", true
	case ClassDevFreq:
		return "/sys/class/devfreq", "", true
	case ClassNet:
		return "/sys/class/net", "", true
	}
	return "", "", false
}

// Nodes returns the devices of a class, in the order of their names; none when
// the kernel has no such class.
func Nodes(dev FS, class string) ([]Node, error) {
	if class == ClassIRQ {
		return irqs(dev)
	}
	dir, prefix, ok := classDir(class)
	if !ok {
		return nil, fmt.Errorf("%w %q", ErrClass, class)
	}
	names, err := dev.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var nodes []Node
	for _, name := range names {
		number, ok := strings.CutPrefix(name, prefix)
		// Beside cpu0 lie cpufreq and cpuidle.
		if _, err := strconv.ParseUint(number, 10, 16); !ok || class == ClassCPU && err != nil {
			continue
		}
		nodes = append(nodes, Node{Class: class, Name: name, Path: dir + "/" + name})
	}
	return nodes, nil
}

// Describe fills in OFNode and Driver, which cost a few system calls each and
// are wanted only by a plan that selects by them, and by `probe`.
func Describe(dev FS, n Node) Node {
	// A class device such as block or devfreq hangs below the real device.
	for _, at := range []string{n.Path, n.Path + "/device"} {
		if n.OFNode == "" {
			if c, err := dev.Read(at + "/of_node/name"); err == nil {
				n.OFNode = strings.TrimRight(c.Text, "\x00\n")
			}
		}
		if n.Driver == "" {
			if real, err := dev.Resolve(at + "/driver"); err == nil {
				n.Driver = path.Base(real)
			}
		}
	}
	return n
}

// irqs reads /sys/kernel/irq, and /proc/interrupts on kernels before 4.10.
func irqs(dev FS) ([]Node, error) {
	const dir = "/sys/kernel/irq"
	numbers, err := dev.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return interrupts(dev)
	} else if err != nil {
		return nil, err
	}
	var nodes []Node
	for _, number := range numbers {
		if _, err := strconv.ParseUint(number, 10, 31); err != nil {
			continue
		}
		c, err := dev.Read(dir + "/" + number + "/actions")
		if err != nil {
			continue // freed since it was listed
		}
		actions := strings.Split(strings.TrimSpace(c.Text), ",")
		if actions[0] == "" {
			continue // nobody has requested it
		}
		nodes = append(nodes, Node{Class: ClassIRQ, Name: number, Path: "/proc/irq/" + number, Actions: actions})
	}
	sortIRQs(nodes)
	return nodes, nil
}

// interrupts parses lines such as
//
//	36:  0  64877  PCI-MSIX-0000:00:02.0  1-edge  virtio1-req.0
//
// The first line counts the CPUs, hence the columns to skip. The action names
// are last, separated by ", ".
func interrupts(dev FS) ([]Node, error) {
	b, err := dev.ReadFile("/proc/interrupts", 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	head, rest, _ := strings.Cut(string(b), "\n")
	cpus := len(strings.Fields(head))
	var nodes []Node
	for line := range strings.Lines(rest) {
		number, text, ok := strings.Cut(strings.TrimSpace(line), ":")
		if _, err := strconv.ParseUint(number, 10, 31); !ok || err != nil {
			continue
		}
		f := strings.Fields(text)
		if len(f) < cpus+3 { // counts, chip, hwirq and trigger, action
			continue
		}
		actions := []string{strings.TrimSuffix(f[len(f)-1], ",")}
		for i := len(f) - 2; i >= cpus+2 && strings.HasSuffix(f[i], ","); i-- {
			actions = append(actions, strings.TrimSuffix(f[i], ","))
		}
		slices.Reverse(actions)
		nodes = append(nodes, Node{Class: ClassIRQ, Name: number, Path: "/proc/irq/" + number, Actions: actions})
	}
	sortIRQs(nodes)
	return nodes, nil
}

func sortIRQs(nodes []Node) {
	slices.SortFunc(nodes, func(a, b Node) int {
		x, _ := strconv.Atoi(a.Name)
		y, _ := strconv.Atoi(b.Name)
		return x - y
	})
}

// Matches reports whether n, already described when the selection needs it, is
// one that s selects. Empty matchers match everything.
func Matches(s plan.Select, n Node) bool {
	names := []string{n.Name}
	if n.Class == ClassIRQ {
		names = n.Actions // IRQ numbers change between boots
	}
	return (s.Name == "" || slices.ContainsFunc(names, func(name string) bool { return Glob(s.Name, name) })) &&
		(s.OFNode == "" || s.OFNode == n.OFNode) &&
		(s.Driver == "" || s.Driver == n.Driver)
}

// Glob matches name against a shell pattern; a malformed pattern matches only
// itself.
func Glob(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok || err != nil && pattern == name
}

// Args returns the running kernel's arguments in order. Quotes group blanks as
// the kernel's own parser does; a flag has an empty value.
func Args(dev FS) ([]plan.Arg, error) {
	b, err := dev.ReadFile("/proc/cmdline", 64<<10)
	if err != nil {
		return nil, err
	}
	return ParseArgs(string(b)), nil
}

// ParseArgs splits a kernel command line, up to the "--" after which everything
// is for init.
func ParseArgs(line string) []plan.Arg {
	var args []plan.Arg
	var word strings.Builder
	quoted := false
	ended := false
	flush := func() {
		if ended = ended || word.String() == "--"; ended || word.Len() == 0 {
			return
		}
		name, value, ok := strings.Cut(word.String(), "=")
		args = append(args, plan.Arg{Name: name, Value: value, Flag: !ok})
		word.Reset()
	}
	for _, c := range strings.TrimRight(line, "\x00\n") {
		switch {
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t' || c == '\n'):
			flush()
		default:
			word.WriteRune(c)
		}
	}
	flush()
	return args
}

// Identity says what machine this is.
type Identity struct {
	Compatible []string `json:"compatible,omitempty"` // device tree, most specific first
	Model      string   `json:"model,omitempty"`
	L4T        string   `json:"l4t,omitempty"`    // "36.4.0", from /etc/nv_tegra_release
	Kernel     string   `json:"kernel,omitempty"` // uname -r
	BootID     string   `json:"boot_id,omitempty"`
}

// Identify reads it; what a machine does not say stays empty.
func Identify(dev FS) Identity {
	read := func(name string) string {
		c, err := dev.Read(name)
		if err != nil {
			return ""
		}
		return strings.TrimRight(c.Text, "\x00\n ")
	}
	id := Identity{
		Model:  read("/proc/device-tree/model"),
		L4T:    parseTegraRelease(read("/etc/nv_tegra_release")),
		Kernel: read("/proc/sys/kernel/osrelease"),
		BootID: read("/proc/sys/kernel/random/boot_id"),
	}
	if c := read("/proc/device-tree/compatible"); c != "" {
		id.Compatible = strings.Split(c, "\x00")
	}
	return id
}

// parseTegraRelease reads "# R36 (release), REVISION: 4.0, GCID: …".
func parseTegraRelease(text string) string {
	head, rest, ok := strings.Cut(text, "(release), REVISION:")
	_, major, ok2 := strings.Cut(head, "R")
	if !ok || !ok2 {
		return ""
	}
	minor, _, _ := strings.Cut(rest, ",")
	v := strings.TrimSpace(major) + "." + strings.TrimSpace(minor)
	if strings.Trim(v, "0123456789.") != "" {
		return ""
	}
	return v
}
