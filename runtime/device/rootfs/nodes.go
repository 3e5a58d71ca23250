package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/formats/boardfile"
	"github.com/yoctune/yoctune/schema/plan"
)

// Classes of devices that a plan can select.
const (
	ClassBlock   = "block"
	ClassCPU     = "cpu" // each core, online or not
	ClassCPUFreq = "cpufreq"
	ClassCPUIdle = "cpuidle" // idle states of each core, by name
	ClassDevFreq = "devfreq"
	ClassThermal = "thermal" // zones, by their type
	ClassNet     = "net"
	ClassIRQ     = "irq"
	ClassKThread = "kthread" // kernel threads
	ClassUSB     = "usb"     // USB devices, named VENDOR:PRODUCT
	ClassMount   = "mount"   // file systems in memory, by folder, read only; not a directory
	ClassCmdline = "cmdline" // kernel arguments, read only; not a directory
	ClassConfig  = "config"  // kernel configuration, read only; not a directory
)

// Classes returns the classes that are directories of devices.
func Classes() []string {
	return []string{ClassBlock, ClassCPU, ClassCPUFreq, ClassCPUIdle, ClassDevFreq, ClassThermal, ClassNet, ClassIRQ, ClassUSB}
}

// ErrClass is wrapped by errors about a class that this program does not support.
var ErrClass = errors.New("unknown device class")

// Node is one device of a class.
type Node struct {
	Class   string   `json:"class"`
	Name    string   `json:"name"`              // the kernel's name, or an interrupt's number
	Path    string   `json:"path"`              // directory of its attributes
	Actions []string `json:"actions,omitempty"` // an interrupt's action names
	OFNode  string   `json:"of_node,omitempty"`
	Driver  string   `json:"driver,omitempty"`
}

// classDir returns the directory of a class and the prefix of its devices.
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
	case ClassThermal:
		return "/sys/class/thermal", "thermal_zone", true
	case ClassNet:
		return "/sys/class/net", "", true
	}
	return "", "", false
}

// Nodes returns the devices of a class in the order of their names, none if the kernel lacks
// the class.
func Nodes(dev FS, class string) ([]Node, error) {
	switch class {
	case ClassIRQ:
		return listIRQs(dev)
	case ClassKThread:
		return listKThreads(dev)
	case ClassUSB:
		return listUSB(dev)
	case ClassCPUIdle:
		return listIdleStates(dev)
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
		// The directory of cpu0 also holds cpufreq and cpuidle.
		if _, err := strconv.ParseUint(number, 10, 16); !ok || class == ClassCPU && err != nil {
			continue
		}
		n := Node{Class: class, Name: name, Path: dir + "/" + name}
		if class == ClassThermal {
			// The numbers depend on the order in which drivers start.
			if n.Name = ReadText(dev, n.Path+"/type"); n.Name == "" {
				continue
			}
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// Describe fills in OFNode and Driver. Each costs a few system calls and is needed only by
// selections that use it, and by `probe`.
func Describe(dev FS, n Node) Node {
	// A class device, such as a disk, is below the physical device.
	for _, at := range []string{n.Path, n.Path + "/device"} {
		if n.OFNode == "" {
			n.OFNode = ReadText(dev, at+"/of_node/name")
		}
		if n.Driver == "" {
			if real, err := dev.Resolve(at + "/driver"); err == nil {
				n.Driver = path.Base(real)
			}
		}
	}
	return n
}

// listIdleStates lists the idle states of each core. Cores of one device may have different ones.
func listIdleStates(dev FS) ([]Node, error) {
	cores, err := Nodes(dev, ClassCPU)
	if err != nil {
		return nil, err
	}
	var nodes []Node
	for _, core := range cores {
		dir := core.Path + "/cpuidle"
		states, err := dev.List(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // without a cpuidle driver, or offline since the boot
		} else if err != nil {
			return nil, err
		}
		for _, state := range states {
			if name := ReadText(dev, dir+"/"+state+"/name"); name != "" {
				nodes = append(nodes, Node{Class: ClassCPUIdle, Name: name, Path: dir + "/" + state})
			}
		}
	}
	return nodes, nil
}

// listUSB lists the devices of the USB. Interfaces, which are in the same folder, have no vendor.
func listUSB(dev FS) ([]Node, error) {
	const dir = "/sys/bus/usb/devices"
	names, err := dev.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var nodes []Node
	for _, name := range names {
		vendor, product := ReadText(dev, dir+"/"+name+"/idVendor"), ReadText(dev, dir+"/"+name+"/idProduct")
		if vendor != "" && product != "" {
			nodes = append(nodes, Node{Class: ClassUSB, Name: vendor + ":" + product, Path: dir + "/" + name})
		}
	}
	return nodes, nil
}

// listIRQs reads /sys/kernel/irq, or /proc/interrupts on kernels before 4.10.
func listIRQs(dev FS) ([]Node, error) {
	const dir = "/sys/kernel/irq"
	numbers, err := dev.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return parseInterrupts(dev)
	} else if err != nil {
		return nil, err
	}
	var nodes []Node
	for _, number := range numbers {
		if _, err := strconv.ParseUint(number, 10, 31); err != nil {
			continue
		}
		actions := strings.Split(ReadText(dev, dir+"/"+number+"/actions"), ",")
		if actions[0] == "" {
			continue // not requested by a driver, or freed meanwhile
		}
		nodes = append(nodes, Node{Class: ClassIRQ, Name: number, Path: "/proc/irq/" + number, Actions: actions})
	}
	sortIRQs(nodes)
	return nodes, nil
}

// parseInterrupts parses lines such as
//
//	36:  0  64877  PCI-MSIX-0000:00:02.0  1-edge  virtio1-req.0
//
// The first line has a column for each CPU, which gives the columns to skip. The action
// names are last, separated by ", ".
func parseInterrupts(dev FS) ([]Node, error) {
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

// Matches reports whether s selects n. If s selects by OFNode or Driver, n must be described
// already. Empty conditions match everything.
func Matches(s plan.Select, n Node) bool {
	names := []string{n.Name}
	if n.Class == ClassKThread && s.Name != "" {
		return matchesThread(s.Name, n.Name)
	}
	if n.Class == ClassIRQ {
		names = n.Actions // IRQ numbers change between boots
	}
	return (s.Name == "" || slices.ContainsFunc(names, func(name string) bool { return Glob(s.Name, name) })) &&
		(s.OFNode == "" || s.OFNode == n.OFNode) &&
		(s.Driver == "" || s.Driver == n.Driver)
}

// Glob matches name against a shell pattern. A malformed pattern matches only itself.
func Glob(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok || err != nil && pattern == name
}

// ReadArgs returns the running kernel's arguments in order. As in the kernel's own parser,
// quotes group blanks. Flags have an empty value.
func ReadArgs(dev FS) ([]plan.Arg, error) {
	b, err := dev.ReadFile("/proc/cmdline", 64<<10)
	if err != nil {
		return nil, err
	}
	return ParseArgs(string(b)), nil
}

// ParseArgs splits a kernel command line up to "--", which precedes init's arguments.
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

// Identity identifies a machine and its system.
type Identity struct {
	Compatible []string `json:"compatible,omitempty"` // device tree, most specific first
	Model      string   `json:"model,omitempty"`
	Product    string   `json:"product,omitempty"` // that the firmware names, as [boardfile.Product] writes it
	L4T        string   `json:"l4t,omitempty"`     // "36.4.0", from /etc/nv_tegra_release
	Kernel     string   `json:"kernel,omitempty"`  // uname -r
	BootID     string   `json:"boot_id,omitempty"`
}

// Hostname returns the machine's name on the network, "" if it cannot be read.
func Hostname(dev FS) string { return ReadText(dev, "/proc/sys/kernel/hostname") }

// BootID returns the id of the boot, which is in the identity too; "" if it is not known.
func BootID(dev FS) string { return ReadText(dev, "/proc/sys/kernel/random/boot_id") }

// Identify reads the identity. Fields that cannot be read stay empty.
func Identify(dev FS) Identity {
	id := Identity{
		Model:  ReadText(dev, "/proc/device-tree/model"),
		L4T:    parseTegraRelease(ReadText(dev, "/etc/nv_tegra_release")),
		Kernel: ReadText(dev, "/proc/sys/kernel/osrelease"),
		BootID: BootID(dev),
	}
	if c := ReadText(dev, "/proc/device-tree/compatible"); c != "" {
		id.Compatible = strings.Split(c, "\x00")
	}
	if product := ReadText(dev, "/sys/class/dmi/id/product_name"); product != "" {
		id.Product = boardfile.Product(ReadText(dev, "/sys/class/dmi/id/sys_vendor"), product)
	}
	return id
}

// parseTegraRelease parses "# R36 (release), REVISION: 4.0, GCID: …".
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
