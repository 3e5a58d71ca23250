// Package hardware reads the hardware of a device for a board file: what any Linux kernel
// reports, also without a GPU. It only reads, and two runs on one device give the same file.
package hardware

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/formats/boardfile"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

// reader fills a board file.
type reader struct {
	dev      rootfs.FS
	file     *boardfile.File
	problems []error
}

// Read reads a device. Problems name what exists and is absent from the file: nodes that cannot be
// read, and values that a board file cannot hold.
func Read(dev rootfs.FS, arch Arch) (file *boardfile.File, problems []error) {
	r := &reader{dev: dev, file: &boardfile.File{Schema: boardfile.Schema, Read: map[string]string{}}}
	r.identity(arch)
	r.cpus()
	r.idle()
	r.devfreq()
	r.thermal()
	r.memory()
	r.block()
	r.network()
	r.irqs()
	r.gpus()
	r.kernel()
	r.system()
	r.jetson()
	return r.file, append(r.problems, r.file.Prune()...)
}

// Arch is an architecture as uname -m prints it, and how it was found.
type Arch struct{ Name, Source string }

func (r *reader) problem(err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
		r.problems = append(r.problems, err)
	}
}

// leave names a node that is left out, and why.
func (r *reader) leave(name, why string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s is left out: %s", name, fmt.Sprintf(why, args...)))
}

// raw returns the text of a node without blanks and zero bytes around it, "" if it has none.
func (r *reader) raw(name string) string {
	c, err := r.dev.Read(name)
	r.problem(err)
	if c.Truncated {
		r.leave(name, "it has more than a page")
		return ""
	}
	return strings.Trim(c.Text, " \t\n\x00")
}

// note records the source of a fact that was found.
func (r *reader) note(field, source string, found bool) {
	if found {
		r.file.Read[field] = source
	}
}

const notText = "%.60q is not a short text of printable ASCII characters"

// text returns a text that a board file can hold, "" otherwise.
func (r *reader) text(name string) string {
	s := r.raw(name)
	if !boardfile.IsText(s) {
		r.leave(name, notText, s)
		return ""
	}
	return s
}

// required is [reader.text] of a node without which an entry is left out.
func (r *reader) required(name string) string {
	before := len(r.problems)
	s := r.text(name)
	if s == "" && len(r.problems) == before {
		r.leave(path.Dir(name), "it has no %s", path.Base(name))
	}
	return s
}

// canHold reports whether a board file can hold the name of a node.
func (r *reader) canHold(source, name string) bool {
	ok := boardfile.IsText(name)
	if !ok {
		r.leave(source, notText, name)
	}
	return ok
}

// words returns the words of a node, sorted.
func (r *reader) words(name string) []string {
	words := strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(r.raw(name)))
	slices.Sort(words)
	return slices.Compact(words)
}

// number returns a number times a unit, 0 if there is none.
func (r *reader) number(name string, unit int64) int64 {
	s := r.raw(name)
	n, err := strconv.ParseInt(s, 10, 64)
	if s != "" && (err != nil || n < 0 || n > math.MaxInt64/unit) {
		r.leave(name, "%.60q is not a number that a device reports", s)
		return 0
	}
	return n * unit
}

// steps returns the numbers of a file times a unit, ascending.
func (r *reader) steps(name string, unit int64) []int64 {
	var out []int64
	for word := range strings.FieldsSeq(r.raw(name)) {
		n, err := strconv.ParseInt(word, 10, 53)
		if err != nil || n <= 0 {
			r.leave(name, "%.60q is not a frequency", word)
			return nil
		}
		out = append(out, n*unit)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// names lists a directory in the order of the numbers in its names.
func (r *reader) names(dir, prefix string) []string {
	all, err := r.dev.List(dir)
	r.problem(err)
	all = slices.DeleteFunc(all, func(n string) bool { return !strings.HasPrefix(n, prefix) })
	slices.SortStableFunc(all, func(a, b string) int { return numberOf(a) - numberOf(b) })
	return all
}

func numberOf(name string) int {
	n, _ := strconv.Atoi(strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz_"))
	return n
}

const dmi = "/sys/class/dmi/id/"

func (r *reader) identity(arch Arch) {
	const tree = "/proc/device-tree/"
	f := r.file
	f.Model = r.text(tree + "model")
	r.note("model", tree+"model", f.Model != "")
	for name := range strings.SplitSeq(rootfs.ReadText(r.dev, tree+"compatible"), "\x00") {
		if name != "" && r.canHold(tree+"compatible", name) {
			f.Compatible = append(f.Compatible, name)
		}
	}
	r.note("compatible", tree+"compatible", f.Compatible != nil)
	// Only names of products: the other files of DMI have serial numbers.
	if d := (boardfile.Firmware{Vendor: r.text(dmi + "sys_vendor"), Product: r.text(dmi + "product_name"), Board: r.text(dmi + "board_name")}); d != (boardfile.Firmware{}) {
		f.Firmware = &d
		r.note("firmware", dmi+"{sys_vendor,product_name,board_name}", true)
	}
	f.Arch = r.text("/proc/sys/kernel/arch")
	r.note("arch", "/proc/sys/kernel/arch", f.Arch != "")
	if f.Arch == "" && arch.Name != "" {
		f.Arch = arch.Name
		r.note("arch", arch.Source, true)
	}
}

func (r *reader) cpus() {
	const dir = "/sys/devices/system/cpu"
	text := r.required(dir + "/present")
	present, err := cpulist.Parse(text)
	if err != nil || len(present) == 0 {
		if text != "" {
			r.leave(dir+"/present", "%.60q is not a list of cores", text)
		}
		return
	}
	c := &boardfile.CPUs{Present: cpulist.Format(present)}
	for _, core := range present {
		siblings, err := cpulist.Parse(r.text(dir + "/cpu" + strconv.Itoa(core) + "/topology/thread_siblings_list"))
		c.Threads = c.Threads || err == nil && len(siblings) > 1
	}
	c.Boost = r.text(dir+"/cpufreq/boost") != ""
	for _, name := range r.names(dir+"/cpufreq", "policy") {
		at := dir + "/cpufreq/" + name + "/"
		p := boardfile.Policy{
			Driver: r.text(at + "scaling_driver"), MinHz: r.number(at+"cpuinfo_min_freq", 1000), MaxHz: r.number(at+"cpuinfo_max_freq", 1000),
			Hz: r.steps(at+"scaling_available_frequencies", 1000), Governors: r.words(at + "scaling_available_governors"),
			EPP: r.words(at + "energy_performance_available_preferences"),
		}
		list := strings.Join(strings.Fields(r.raw(at+"related_cpus")), ",")
		cores, err := cpulist.Parse(list)
		if err != nil || len(cores) == 0 {
			r.leave(dir+"/cpufreq/"+name, "its related_cpus, %.60q, are not cores", list)
			continue
		}
		p.CPUs = cpulist.Format(cores)
		c.Policies = append(c.Policies, p)
	}
	r.file.CPUs = c
	r.note("cpus", dir+"/{present,cpu*/topology,cpufreq/policy*}", true)
}

func (r *reader) idle() {
	const dir = "/sys/devices/system/cpu"
	i := &boardfile.Idle{Driver: r.text(dir + "/cpuidle/current_driver")}
	for _, name := range r.names(dir+"/cpu0/cpuidle", "state") {
		at := dir + "/cpu0/cpuidle/" + name + "/"
		if state := r.required(at + "name"); state != "" {
			i.States = append(i.States, boardfile.IdleState{Name: state, Latency: r.number(at+"latency", 1), Residency: r.number(at+"residency", 1)})
		}
	}
	if i.Driver != "" && i.Driver != "none" || len(i.States) > 0 {
		r.file.Idle = i
		r.note("idle", dir+"/cpu0/cpuidle/state*", true)
	}
}

func (r *reader) devfreq() {
	nodes, err := rootfs.Nodes(r.dev, rootfs.ClassDevFreq)
	r.problem(err)
	for _, n := range nodes {
		n = rootfs.Describe(r.dev, n)
		hz := r.steps(n.Path+"/available_frequencies", 1)
		d := boardfile.Devfreq{Name: n.Name, OFNode: n.OFNode, Driver: n.Driver, Hz: hz, Governors: r.words(n.Path + "/available_governors")}
		// min_freq and max_freq are limits in force, and the steps end the device's range.
		if len(hz) > 0 {
			d.MinHz, d.MaxHz = hz[0], hz[len(hz)-1]
		}
		r.file.Devfreq = append(r.file.Devfreq, d)
	}
	r.note("devfreq", "/sys/class/devfreq/*/{available_frequencies,available_governors}", r.file.Devfreq != nil)
}

func (r *reader) thermal() {
	const dir = "/sys/class/thermal"
	for _, name := range r.names(dir, "thermal_zone") {
		at := dir + "/" + name + "/"
		z := boardfile.Zone{Type: r.required(at + "type"), Policy: r.text(at + "policy"), Policies: r.words(at + "available_policies")}
		for i := 0; ; i++ {
			point := at + "trip_point_" + strconv.Itoa(i)
			kind := r.text(point + "_type")
			if kind == "" {
				break
			}
			text := r.raw(point + "_temp")
			temp, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				r.leave(point+" and what follows it", "%.60q is not a temperature", text)
				break
			}
			mode, err := r.dev.Mode(point + "_temp")
			z.Trips = append(z.Trips, boardfile.Trip{Type: kind, Temp: temp, Writable: err == nil && mode.Perm()&0o200 != 0})
		}
		if z.Type != "" {
			r.file.Zones = append(r.file.Zones, z)
		}
	}
	r.note("thermal_zones", dir+"/thermal_zone*/{type,policy,trip_point_*}", r.file.Zones != nil)
	for _, name := range r.names(dir, "cooling_device") {
		if kind := r.required(dir + "/" + name + "/type"); kind != "" {
			r.file.Cooling = append(r.file.Cooling, boardfile.Cooling{Type: kind, Max: r.number(dir+"/"+name+"/max_state", 1)})
		}
	}
	r.note("cooling_devices", dir+"/cooling_device*/{type,max_state}", r.file.Cooling != nil)
}

func (r *reader) memory() {
	info, err := r.dev.ReadFile("/proc/meminfo", 64<<10)
	r.problem(err)
	total := rootfs.Meminfo(string(info))["MemTotal"]
	if total <= 0 {
		r.leave("/proc/meminfo", "it has no MemTotal, or one that no device has")
		return
	}
	m := &boardfile.Memory{Bytes: total}
	names, err := r.dev.List("/sys/kernel/mm/hugepages")
	r.problem(err)
	for _, name := range names {
		size, isKB := strings.CutSuffix(strings.TrimPrefix(name, "hugepages-"), "kB")
		if n, err := strconv.ParseInt(size, 10, 40); err == nil && isKB && n > 0 {
			m.HugePages = append(m.HugePages, n<<10)
		} else {
			r.leave("/sys/kernel/mm/hugepages", "%.60q does not name a size", name)
		}
	}
	slices.Sort(m.HugePages)
	m.HugePages = slices.Compact(m.HugePages)
	r.file.Memory = m
	r.note("memory", "/proc/meminfo, /sys/kernel/mm/hugepages", true)
}

// virtualDisk matches devices that depend on what runs, not on the hardware.
var virtualDisk = lazyregexp.New(`^(loop|ram|zram|dm-|md|nbd|sr|fd)[0-9]`)

func (r *reader) block() {
	nodes, err := rootfs.Nodes(r.dev, rootfs.ClassBlock)
	r.problem(err)
	for _, n := range nodes {
		if virtualDisk.MatchString(n.Name) || !r.canHold("/sys/block", n.Name) {
			continue
		}
		n = rootfs.Describe(r.dev, n)
		q := n.Path + "/queue/"
		queues, _ := r.dev.List(n.Path + "/mq")
		r.file.Block = append(r.file.Block, boardfile.Block{
			Name: n.Name, Driver: n.Driver, Rotational: r.text(q+"rotational") == "1", Schedulers: r.words(q + "scheduler"),
			Requests: r.number(q+"nr_requests", 1), Queues: int64(len(queues)), MaxSectors: r.number(q+"max_hw_sectors_kb", 1<<10),
			ReadAhead: r.number(q+"read_ahead_kb", 1<<10), Bytes: r.number(n.Path+"/size", 1<<9), Removable: r.text(n.Path+"/removable") == "1",
		})
	}
	r.note("block", "/sys/block/*/{queue,mq,size,removable}", r.file.Block != nil)
}

// address matches a hardware address at the end of a name, which udev makes for devices without
// a place of their own.
var address = lazyregexp.New(`x[0-9a-f]{12}`)

// anonymous replaces a hardware address in a name by "*".
func anonymous(name string) string { return address.ReplaceAllString(name, "x*") }

func (r *reader) network() {
	nodes, err := rootfs.Nodes(r.dev, rootfs.ClassNet)
	r.problem(err)
	for _, n := range nodes {
		kind := r.number(n.Path+"/type", 1)
		real, err := r.dev.Resolve(n.Path)
		const loopback = 772
		// A bridge or tunnel is made by the system, and is not hardware.
		if kind == loopback || err == nil && strings.HasPrefix(real, "/sys/devices/virtual/") || !r.canHold("/sys/class/net", n.Name) {
			continue
		}
		n = rootfs.Describe(r.dev, n)
		i := boardfile.Interface{Name: anonymous(n.Name), Driver: n.Driver, OFNode: n.OFNode, Type: kind,
			MTU: r.number(n.Path+"/mtu", 1), TxQueue: r.number(n.Path+"/tx_queue_len", 1)}
		queues, _ := r.dev.List(n.Path + "/queues")
		for _, q := range queues {
			switch {
			case strings.HasPrefix(q, "rx-"):
				i.RxQueues++
			case strings.HasPrefix(q, "tx-"):
				i.TxQueues++
			}
		}
		r.file.Network = append(r.file.Network, i)
	}
	r.note("network", "/sys/class/net/*/{type,mtu,tx_queue_len,queues,device/driver}", r.file.Network != nil)
}

func (r *reader) irqs() {
	nodes, err := rootfs.Nodes(r.dev, rootfs.ClassIRQ)
	r.problem(err)
	for _, n := range nodes {
		for _, action := range n.Actions {
			if action = strings.TrimSpace(action); action != "" && action != "(null)" && r.canHold(n.Path+"/actions", action) {
				r.file.IRQs = append(r.file.IRQs, anonymous(action))
			}
		}
	}
	slices.Sort(r.file.IRQs)
	r.file.IRQs = slices.Compact(r.file.IRQs)
	r.note("irqs", "/sys/kernel/irq/*/actions", r.file.IRQs != nil)
}

func (r *reader) gpus() {
	const dir = "/sys/class/drm"
	for _, name := range r.names(dir, "card") {
		if strings.Contains(name, "-") {
			continue // a connector
		}
		n := rootfs.Describe(r.dev, rootfs.Node{Path: dir + "/" + name})
		r.file.GPUs = append(r.file.GPUs, boardfile.GPU{Driver: n.Driver, OFNode: n.OFNode})
	}
	r.note("gpus", dir+"/card*/device/driver", r.file.GPUs != nil)
}

// versionOf is the version line at the start of a kernel release.
var versionOf = lazyregexp.New(`^[0-9]+\.[0-9]+`)

func (r *reader) kernel() {
	const name = "/proc/sys/kernel/osrelease"
	k := &boardfile.Kernel{Release: r.text(name)}
	if k.Version = versionOf.FindString(k.Release); k.Version == "" {
		if k.Release != "" {
			r.leave(name, "%.60q does not start with a version", k.Release)
		}
		return
	}
	source := name
	options, err := rootfs.ReadKernelOptions(r.dev)
	switch {
	case err == nil:
		k.Options = options.Values()
		source += ", " + options.Path
	case !errors.Is(err, rootfs.ErrNoConfig):
		r.problem(err)
	}
	r.file.Kernel = k
	r.note("kernel", source, true)
}

func (r *reader) system() {
	const dir = "/sys/fs/cgroup"
	names, err := r.dev.List(dir)
	r.problem(err)
	switch {
	case slices.Contains(names, "cgroup.controllers"):
		r.file.Cgroup = "unified"
	case slices.Contains(names, "unified"):
		r.file.Cgroup = "hybrid"
	case len(names) > 0:
		r.file.Cgroup = "legacy"
	}
	r.note("cgroup", dir, r.file.Cgroup != "")
	r.systemd()
}

// systemd reads the version of the library that all of systemd's programs load.
func (r *reader) systemd() {
	for _, dir := range rootfs.SystemdDirs() {
		names, err := r.dev.List(dir)
		r.problem(err)
		for _, name := range names {
			version, ok := strings.CutPrefix(name, "libsystemd-shared-")
			if version, isLibrary := strings.CutSuffix(version, ".so"); ok && isLibrary {
				r.file.Systemd = version
				r.note("systemd", dir+"/libsystemd-shared-*.so", true)
				return
			}
		}
	}
}

func (r *reader) jetson() {
	const name = "/etc/nv_tegra_release"
	r.file.L4T = rootfs.Identify(r.dev).L4T
	r.note("l4t", name, r.file.L4T != "")
	config, err := power.Read(r.dev)
	r.problem(err)
	if config != nil {
		for _, m := range config.Modes {
			r.file.Modes = append(r.file.Modes, m.Name)
		}
		r.note("power_modes", power.ConfigFile, r.file.Modes != nil)
	}
}
