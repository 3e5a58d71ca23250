package devicetest

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// model holds what differs between boards. Sources: schema/facts/board.
type model struct {
	name       string
	compatible string   // NUL separated
	table      string   // the power modes among the board's facts
	line       string   // L4T line: R35, R36
	irqs       []string // action names besides those that all boards have

	Policies []policy
	CPUs     int
	CPUMax   int    // kHz
	GPUSteps string // Hz
	GPUDir   string // of the GPU's device
	GPUNode  string // name of its device tree node
	L4T      string
	Kernel   string
	Rails    [3]string // labels
}

// policy is a cpufreq policy: its first core, and all of its cores.
type policy struct {
	First int
	List  []int
}

// newPolicies returns policies of consecutive cores with the given sizes.
func newPolicies(sizes ...int) []policy {
	var out []policy
	core := 0
	for _, size := range sizes {
		p := policy{First: core}
		for range size {
			p.List = append(p.List, core)
			core++
		}
		out = append(out, p)
	}
	return out
}

// Cores returns the cores as related_cpus lists them: "4 5".
func (p policy) Cores() string { return strings.Trim(fmt.Sprint(p.List), "[]") }

// Boards lists the boards that Build supports.
func Boards() []string { return []string{"agx-orin-64gb", "agx-xavier", "orin-nano-8gb"} }

func lookupModel(board string) (model, bool) {
	const r35, r36 = "# R35 (release), REVISION: 3.1", "# R36 (release), REVISION: 4.0"
	m, ok := map[string]model{
		"orin-nano-8gb": {
			name:       "NVIDIA Jetson Orin Nano Developer Kit",
			compatible: "nvidia,p3768-0000+p3767-0003\x00nvidia,p3767-0003\x00nvidia,tegra234\x00",
			table:      "R36.4 Super", line: "R36", L4T: r36, Kernel: "5.15.148-l4t",
			Policies: newPolicies(4, 2), CPUs: 6, CPUMax: 1728000,
			GPUSteps: "306000000 408000000 510000000 612000000 714000000 816000000 918000000 1020000000",
			GPUDir:   "/sys/devices/platform/bus@0/17000000.gpu", GPUNode: "gpu",
			Rails: [3]string{"VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"},
		},
		"agx-orin-64gb": {
			name:       "NVIDIA Jetson AGX Orin Developer Kit",
			compatible: "nvidia,p3737-0000+p3701-0005\x00nvidia,p3701-0005\x00nvidia,tegra234\x00",
			table:      "R35.3.1", line: "R36", L4T: r36, Kernel: "5.15.148-l4t",
			irqs:     []string{"can0", "can1"},
			Policies: newPolicies(4, 4, 4), CPUs: 12, CPUMax: 2201600,
			GPUSteps: "306000000 408000000 510000000 612000000 714000000 816000000 918000000 1020000000 1122000000 1224000000 1300500000",
			GPUDir:   "/sys/devices/platform/bus@0/17000000.gpu", GPUNode: "gpu",
			Rails: [3]string{"VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"},
		},
		"agx-xavier": {
			name:       "NVIDIA Jetson AGX Xavier Developer Kit",
			compatible: "nvidia,p2972-0000\x00nvidia,tegra194\x00",
			table:      "R35.3.1", line: "R35", L4T: r35, Kernel: "5.10.104-tegra",
			Policies: newPolicies(2, 2, 2, 2), CPUs: 8, CPUMax: 2265600,
			GPUSteps: "114750000 216750000 318750000 420750000 522750000 624750000 675750000 828750000 905250000 1032750000 1198500000 1236750000 1338750000 1377000000",
			GPUDir:   "/sys/devices/17000000.gv11b", GPUNode: "gv11b",
			Rails: [3]string{"VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"},
		},
	}[board]
	return m, ok
}

// The methods below are used by tree.txt.tmpl.

func (m model) BootID() string  { return BootID }
func (m model) AllCPUs() string { return fmt.Sprintf("0-%d", m.CPUs-1) }
func (m model) CPUMask() string { return fmt.Sprintf("%x", 1<<m.CPUs-1) }

func (m model) CPUSteps() string {
	var steps []string
	for khz := 115200; khz < m.CPUMax; khz += 76800 {
		steps = append(steps, strconv.Itoa(khz))
	}
	return strings.Join(append(steps, strconv.Itoa(m.CPUMax)), " ")
}

func (m model) GPUName() string { return path.Base(m.GPUDir) }
func (m model) GPUMin() string  { return m.GPUSteps[:strings.IndexByte(m.GPUSteps, ' ')] }
func (m model) GPUMax() string  { return m.GPUSteps[strings.LastIndexByte(m.GPUSteps, ' ')+1:] }

// Interrupts returns action names by number.
func (m model) Interrupts() map[int]string {
	names := []string{"mmc0", "gk20a_stall", "gk20a_nonstall", "xhci-hcd:usb1", "eth0"}
	for q := range m.CPUs + 1 {
		names = append(names, fmt.Sprintf("nvme0q%d", q))
	}
	out := map[int]string{}
	for i, name := range append(names, m.irqs...) {
		out[40+i] = name
	}
	return out
}

// HardwareIRQ returns the interrupt's number at its controller.
func (m model) HardwareIRQ(number int) int { return number + 32 }

// zone is a thermal zone; Temp is in m°C.
type zone struct {
	Name string
	Temp int
}

func (m model) Zones() []zone {
	zones := []zone{{"cpu", 48125}, {"gpu", 46875}, {"cv0", 0}, {"cv1", 0}, {"cv2", 0}, {"soc0", 47250}, {"soc1", 46500}, {"soc2", 46750}, {"tj", 48125}}
	for i := range zones {
		switch z := &zones[i]; {
		case m.line != "R35":
			z.Name += "-thermal"
		case z.Name == "tj":
			z.Name = "tj-therm"
		default:
			z.Name = strings.ToUpper(z.Name) + "-therm"
		}
	}
	return zones
}

// CoolingDevices returns their types.
func (m model) CoolingDevices() []string {
	out := []string{"pwm-fan"}
	for _, p := range m.Policies {
		out = append(out, fmt.Sprintf("cpufreq-cpu%d", p.First))
	}
	return append(out, "devfreq-"+m.GPUName())
}
