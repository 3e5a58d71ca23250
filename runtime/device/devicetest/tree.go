// Package devicetest makes devices out of facts: a folder that looks like a
// Jetson's /proc and /sys to everything that reads it through device.Root.
//
// A synthetic tree is made of plain files. It shows that a plan finds its nodes,
// that values are compared, journalled, written and put back. It can not show
// what a kernel does with a value: a plain file takes whatever is written and
// says it again. No value is refused, rounded or clamped; a choice loses its
// brackets with the first write, and with them the list of what is on offer; a
// write changes no neighbour. [Kernel] imitates the most common of these for
// tests, and only a real kernel shows the rest.
package devicetest

import (
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed sysctl.txt
var sysctls string

// BootID is the boot that every synthetic tree says it is in.
const BootID = "0d9d4fb2-3c40-4c0b-8a5e-6f1d2b7a9c11"

// model is what differs between boards. Sources: schema/facts/board.
type model struct {
	name       string
	compatible string // NUL separated
	policies   []string
	cpus       int
	cpuMax     int    // kHz
	gpu        []int  // Hz
	gpuDir     string // of the GPU's device
	gpuNode    string // its device tree node's name
	table      string // of the board's facts: the power modes
	line       string // L4T line: R35, R36
	l4t        string
	kernel     string
	irqs       []string // action names beside those that all have
}

// Boards lists what Build can make.
func Boards() []string { return []string{"agx-orin-64gb", "agx-xavier", "orin-nano-8gb"} }

func models(board string) (model, bool) {
	switch board {
	case "orin-nano-8gb":
		return model{
			name:       "NVIDIA Jetson Orin Nano Developer Kit",
			compatible: "nvidia,p3768-0000+p3767-0003\x00nvidia,p3767-0003\x00nvidia,tegra234\x00",
			policies:   []string{"0-3", "4-5"},
			cpus:       6,
			cpuMax:     1728000,
			gpu:        []int{306000000, 408000000, 510000000, 612000000, 714000000, 816000000, 918000000, 1020000000},
			gpuDir:     "/sys/devices/platform/bus@0/17000000.gpu",
			gpuNode:    "gpu",
			table:      "R36.4 Super",
			line:       "R36",
			l4t:        "# R36 (release), REVISION: 4.0\n",
			kernel:     "5.15.148-l4t\n",
		}, true
	case "agx-orin-64gb":
		return model{
			name:       "NVIDIA Jetson AGX Orin Developer Kit",
			compatible: "nvidia,p3737-0000+p3701-0005\x00nvidia,p3701-0005\x00nvidia,tegra234\x00",
			policies:   []string{"0-3", "4-7", "8-11"},
			cpus:       12,
			cpuMax:     2201600,
			gpu:        []int{306000000, 408000000, 510000000, 612000000, 714000000, 816000000, 918000000, 1020000000, 1122000000, 1224000000, 1300500000},
			gpuDir:     "/sys/devices/platform/bus@0/17000000.gpu",
			gpuNode:    "gpu",
			table:      "R35.3.1",
			line:       "R36",
			l4t:        "# R36 (release), REVISION: 4.0\n",
			kernel:     "5.15.148-l4t\n",
			irqs:       []string{"can0", "can1"},
		}, true
	case "agx-xavier":
		return model{
			name:       "NVIDIA Jetson AGX Xavier Developer Kit",
			compatible: "nvidia,p2972-0000\x00nvidia,tegra194\x00",
			policies:   []string{"0-1", "2-3", "4-5", "6-7"},
			cpus:       8,
			cpuMax:     2265600,
			gpu:        []int{114750000, 216750000, 318750000, 420750000, 522750000, 624750000, 675750000, 828750000, 905250000, 1032750000, 1198500000, 1236750000, 1338750000, 1377000000},
			gpuDir:     "/sys/devices/17000000.gv11b",
			gpuNode:    "gv11b",
			table:      "R35.3.1",
			line:       "R35",
			l4t:        "# R35 (release), REVISION: 3.1\n",
			kernel:     "5.10.104-tegra\n",
		}, true
	}
	return model{}, false
}

// tree collects files, so that building stops at the first error.
type tree struct {
	dir  string
	made map[string]bool // folders
	err  error
}

func (t *tree) file(name, text string) { t.mode(name, text, 0o644) }

func (t *tree) mode(name, text string, perm fs.FileMode) {
	if t.err != nil {
		return
	}
	host := filepath.Join(t.dir, name)
	if t.parent(host); t.err == nil {
		t.err = os.WriteFile(host, []byte(text), perm)
	}
}

func (t *tree) parent(host string) {
	if dir := filepath.Dir(host); !t.made[dir] {
		t.err = os.MkdirAll(dir, 0o755)
		t.made[dir] = true
	}
}

func (t *tree) link(name, target string) {
	if t.err != nil {
		return
	}
	host := filepath.Join(t.dir, name)
	if t.parent(host); t.err == nil {
		t.err = os.Symlink(target, host)
	}
}

// Build writes the tree of a freshly started board into dir, which must be empty
// or absent.
func Build(dir, board string) error {
	m, ok := models(board)
	if !ok {
		return fmt.Errorf("build device tree: no board %q; there are %s", board, strings.Join(Boards(), ", "))
	}
	if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
		return fmt.Errorf("build device tree: %s is not empty", dir)
	}
	t := &tree{dir: dir, made: map[string]bool{}}
	t.identity(m)
	t.sysctl()
	t.file("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids\n")
	t.memory()
	t.cpus(m)
	t.gpu(m)
	t.disks()
	t.network()
	t.interrupts(m)
	t.sensors(m)
	t.power(m, board)
	if t.err != nil {
		return fmt.Errorf("build device tree: %w", t.err)
	}
	return nil
}

func (t *tree) identity(m model) {
	const dt = "/sys/firmware/devicetree/base"
	t.file(dt+"/compatible", m.compatible)
	t.file(dt+"/model", m.name+"\x00")
	t.link("/proc/device-tree", dt)
	t.file("/etc/nv_tegra_release", m.l4t)
	t.file("/proc/cmdline", "root=/dev/mmcblk0p1 rw rootwait console=ttyTCU0,115200\n")
	t.file("/proc/sys/kernel/osrelease", m.kernel)
	t.file("/proc/sys/kernel/random/boot_id", BootID+"\n")
}

func (t *tree) sysctl() {
	for line := range strings.Lines(sysctls) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || name == "#" {
			continue
		}
		t.file("/proc/sys/"+name, value+"\n")
	}
	t.mode("/proc/sys/vm/drop_caches", "", 0o200)
	t.mode("/proc/sys/vm/compact_memory", "", 0o200)
}

func (t *tree) memory() {
	const thp = "/sys/kernel/mm/transparent_hugepage/"
	t.file(thp+"enabled", "[always] madvise never\n")
	t.file(thp+"defrag", "always defer defer+madvise [madvise] never\n")
	t.file(thp+"khugepaged/defrag", "1\n")
	for name, value := range map[string]int{"run": 0, "pages_to_scan": 100, "sleep_millisecs": 20} {
		t.file("/sys/kernel/mm/ksm/"+name, strconv.Itoa(value)+"\n")
	}
	for _, kb := range []int{64, 2048, 32768, 1048576} {
		t.file(fmt.Sprintf("/sys/kernel/mm/hugepages/hugepages-%dkB/nr_hugepages", kb), "0\n")
	}
}

func (t *tree) cpus(m model) {
	all := fmt.Sprintf("0-%d\n", m.cpus-1)
	const cpu = "/sys/devices/system/cpu/"
	for _, name := range []string{"online", "present", "possible"} {
		t.file(cpu+name, all)
	}
	t.file(cpu+"isolated", "\n")
	for _, span := range m.policies {
		first, _, _ := strings.Cut(span, "-")
		dir := cpu + "cpufreq/policy" + first + "/"
		t.file(dir+"related_cpus", strings.ReplaceAll(expand(span), ",", " ")+"\n")
		t.file(dir+"scaling_governor", "schedutil\n")
		t.file(dir+"scaling_available_governors", "conservative ondemand userspace powersave performance schedutil\n")
		t.file(dir+"scaling_driver", "tegra194\n")
		t.file(dir+"cpuinfo_min_freq", "115200\n")
		t.file(dir+"cpuinfo_max_freq", strconv.Itoa(m.cpuMax)+"\n")
		t.file(dir+"scaling_min_freq", "729600\n")
		t.file(dir+"scaling_max_freq", strconv.Itoa(m.cpuMax)+"\n")
		t.file(dir+"scaling_cur_freq", "729600\n")
	}
	for n := range m.cpus {
		owner := 0
		for _, span := range m.policies {
			if first, _, _ := strings.Cut(span, "-"); atoi(first) <= n {
				owner = atoi(first)
			}
		}
		t.file(fmt.Sprintf("%scpu%d/online", cpu, n), "1\n")
		t.file(fmt.Sprintf("%scpu%d/power/pm_qos_resume_latency_us", cpu, n), "0\n")
		t.link(fmt.Sprintf("%scpu%d/cpufreq", cpu, n), fmt.Sprintf("../cpufreq/policy%d", owner))
	}
}

// expand turns "4-5" into "4,5".
func expand(span string) string {
	a, b, _ := strings.Cut(span, "-")
	var out []string
	for n := atoi(a); n <= atoi(b); n++ {
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out, ",")
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s) // the tables above hold only numbers
	return n
}

func (t *tree) gpu(m model) {
	name := path.Base(m.gpuDir)
	dir := m.gpuDir + "/devfreq/" + name
	steps := make([]string, len(m.gpu))
	for i, hz := range m.gpu {
		steps[i] = strconv.Itoa(hz)
	}
	t.file(dir+"/available_frequencies", strings.Join(steps, " ")+"\n")
	t.file(dir+"/available_governors", "nvhost_podgov userspace performance powersave simple_ondemand\n")
	t.file(dir+"/governor", "nvhost_podgov\n")
	t.file(dir+"/min_freq", steps[0]+"\n")
	t.file(dir+"/max_freq", steps[len(steps)-1]+"\n")
	t.file(dir+"/cur_freq", steps[0]+"\n")
	t.link(dir+"/device", "../../../"+name)
	t.link(m.gpuDir+"/devfreq_dev", "devfreq/"+name)
	t.file(m.gpuDir+"/railgate_enable", "1\n")
	t.file(m.gpuDir+"/golden_img_status", "0\n")
	t.file(m.gpuDir+"/power/control", "auto\n")
	node := "/sys/firmware/devicetree/base/bus@0/" + m.gpuNode + "@17000000"
	t.file(node+"/name", m.gpuNode+"\x00")
	t.link(m.gpuDir+"/of_node", up(m.gpuDir)+strings.TrimPrefix(node, "/sys/"))
	t.file("/sys/bus/platform/drivers/gk20a/module_version", "\n")
	t.link(m.gpuDir+"/driver", up(m.gpuDir)+"bus/platform/drivers/gk20a")
	t.link("/sys/class/devfreq/"+name, "../../"+strings.TrimPrefix(dir, "/sys/"))
}

func (t *tree) disks() {
	for _, d := range []struct {
		name, device, driver, bus, scheduler string
		requests                             int
	}{
		{"nvme0n1", "/sys/devices/platform/bus@0/14160000.pcie/pci0004:00/0004:01:00.0/nvme/nvme0", "nvme", "pci", "[none] mq-deadline kyber", 1023},
		{"mmcblk0", "/sys/devices/platform/bus@0/3400000.mmc/mmc_host/mmc0/mmc0:aaaa", "mmcblk", "mmc", "none [mq-deadline] kyber", 64},
	} {
		disk := d.device + "/" + d.name
		if d.driver == "mmcblk" {
			disk = d.device + "/block/" + d.name
		}
		t.file(disk+"/queue/scheduler", d.scheduler+"\n")
		t.file(disk+"/queue/read_ahead_kb", "128\n")
		t.file(disk+"/queue/nr_requests", strconv.Itoa(d.requests)+"\n")
		t.file(disk+"/queue/rq_affinity", "1\n")
		t.file(disk+"/queue/max_sectors_kb", "1280\n")
		t.file(disk+"/queue/nomerges", "0\n")
		t.file(disk+"/queue/wbt_lat_usec", "75000\n")
		t.file(disk+"/queue/rotational", "0\n")
		t.link(disk+"/device", up(disk)+strings.TrimPrefix(d.device, "/sys/"))
		driver := "/sys/bus/" + d.bus + "/drivers/" + d.driver
		t.file(driver+"/module_version", "\n")
		t.link(d.device+"/driver", up(d.device)+strings.TrimPrefix(driver, "/sys/"))
		t.link("/sys/block/"+d.name, "../"+strings.TrimPrefix(disk, "/sys/"))
	}
}

// up is the relative way from a folder to /sys/.
func up(dir string) string { return strings.Repeat("../", strings.Count(dir, "/")-1) }

func (t *tree) network() {
	const dev = "/sys/devices/platform/bus@0/140a0000.pcie/pci0008:00/0008:01:00.0"
	const nic = dev + "/net/eth0"
	t.file(nic+"/tx_queue_len", "1000\n")
	t.file(nic+"/mtu", "1500\n")
	t.file(nic+"/gro_flush_timeout", "0\n")
	t.file(nic+"/napi_defer_hard_irqs", "0\n")
	t.file(nic+"/queues/rx-0/rps_cpus", "00\n")
	t.file(nic+"/queues/tx-0/xps_cpus", "00\n")
	t.link(nic+"/device", up(nic)+strings.TrimPrefix(dev, "/sys/"))
	t.file("/sys/bus/pci/drivers/r8168/module_version", "\n")
	t.link(dev+"/driver", up(dev)+"bus/pci/drivers/r8168")
	t.link("/sys/class/net/eth0", "../../"+strings.TrimPrefix(nic, "/sys/"))
	t.file("/sys/devices/virtual/net/lo/mtu", "65536\n")
	t.link("/sys/class/net/lo", "../../devices/virtual/net/lo")
}

func (t *tree) interrupts(m model) {
	names := []string{"mmc0", "gk20a_stall", "gk20a_nonstall", "xhci-hcd:usb1", "eth0"}
	for q := range m.cpus + 1 {
		names = append(names, fmt.Sprintf("nvme0q%d", q))
	}
	names = append(names, m.irqs...)
	var table strings.Builder
	table.WriteString("      ")
	for n := range m.cpus {
		fmt.Fprintf(&table, "%11s", "CPU"+strconv.Itoa(n))
	}
	table.WriteByte('\n')
	for i, name := range names {
		number := 40 + i
		fmt.Fprintf(&table, "%4d: %s  GICv3 %d Level     %s\n", number, strings.Repeat("          0", m.cpus), number+32, name)
		t.file(fmt.Sprintf("/sys/kernel/irq/%d/actions", number), name+"\n")
		dir := fmt.Sprintf("/proc/irq/%d/", number)
		t.file(dir+"smp_affinity_list", fmt.Sprintf("0-%d\n", m.cpus-1))
		t.file(dir+"smp_affinity", fmt.Sprintf("%x\n", 1<<m.cpus-1))
		t.file(dir+"effective_affinity_list", "0\n")
	}
	t.file("/proc/irq/default_smp_affinity", fmt.Sprintf("%x\n", 1<<m.cpus-1))
	t.file("/sys/devices/virtual/workqueue/cpumask", fmt.Sprintf("%x\n", 1<<m.cpus-1))
	t.mode("/proc/interrupts", table.String(), 0o444)
}

// InstallPlan changes a tree into what the board would be after starting an image that
// was built from the plan's layer: the kernel was given the plan's arguments, its
// modules and compressed swap are there, and nvpmodel knows its modes and is in
// the default one.
func InstallPlan(dir string, p *plan.Plan) error {
	t := &tree{dir: dir, made: map[string]bool{}}
	var args []string
	var options strings.Builder
	for _, s := range p.Settings {
		at := s.Select
		switch {
		case at.Class == "config" && s.Want == "n":
			fmt.Fprintf(&options, "# CONFIG_%s is not set\n", at.Name)
		case at.Class == "config":
			fmt.Fprintf(&options, "CONFIG_%s=%s\n", at.Name, s.Want)
		case at.Class == "cmdline" && s.Type != plan.TypePresent:
			args = append(args, at.Name+"="+s.Want)
		case at.Class == "cmdline" && s.Want == "1":
			args = append(args, at.Name)
		case at.Class == "block" && at.Name == "zram0" && at.Attr == "disksize":
			t.zram(s.Want)
		case at.Path == "" || s.Domain != plan.DomainKernel && s.Domain != plan.DomainModule:
			// enforced at run time, not by the image
		case path.Clean(at.Path) != at.Path || !strings.HasPrefix(at.Path, "/sys/"):
			return fmt.Errorf("flash device tree: %s: %q is not below /sys", s.ID, at.Path)
		case s.Type != plan.TypePresent:
			t.file(at.Path, s.Want+"\n")
		case s.Want == "1":
			t.file(at.Path+"/uevent", "")
		}
	}
	if len(args) > 0 {
		t.append("/proc/cmdline", func(old string) string {
			return strings.TrimSpace(old) + " " + strings.Join(args, " ") + "\n"
		})
	}
	if options.Len() > 0 {
		t.file("/proc/config.gz", zipped("# Automatically generated file; DO NOT EDIT.\n"+options.String()))
	}
	if p.Power != nil {
		t.flashPower(p.Power)
	}
	if t.err != nil {
		return fmt.Errorf("flash device tree: %w", t.err)
	}
	return nil
}

func (t *tree) zram(bytes string) {
	const disk = "/sys/devices/virtual/block/zram0"
	t.file(disk+"/disksize", bytes+"\n")
	t.file(disk+"/queue/scheduler", "none\n")
	for name, value := range map[string]int{"read_ahead_kb": 128, "nr_requests": 128, "rq_affinity": 1} {
		t.file(disk+"/queue/"+name, strconv.Itoa(value)+"\n")
	}
	t.link("/sys/block/zram0", "../devices/virtual/block/zram0")
}

func (t *tree) append(name string, change func(string) string) {
	if t.err != nil {
		return
	}
	var old []byte
	if old, t.err = os.ReadFile(filepath.Join(t.dir, name)); t.err == nil {
		t.file(name, change(string(old)))
	}
}

// zipped is text as /proc/config.gz holds it.
func zipped(text string) string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	// Nothing fails: it is written to memory.
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}
