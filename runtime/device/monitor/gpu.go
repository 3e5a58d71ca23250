package monitor

import (
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// isGPUName reports whether name is the GPU in a device tree of L4T: the chip's name up to R35,
// "gpu" since R36.
func isGPUName(name string) bool {
	return slices.Contains([]string{"gpu", "gv11b", "gp10b", "ga10b", "gm20b", "gk20a"}, name)
}

func isGPU(dev rootfs.FS, n rootfs.Node) bool {
	_, chip, _ := strings.Cut(n.Name, ".")
	if isGPUName(chip) || strings.HasPrefix(n.Name, "gpu-gpc") || strings.HasPrefix(n.Name, "gpu-nvd") {
		return true
	}
	return isGPUName(rootfs.Describe(dev, n).OFNode)
}

func findGPUs(dev rootfs.FS, add adder) {
	nodes, _ := rootfs.Nodes(dev, rootfs.ClassDevFreq) // on an error there are none
	for _, n := range nodes {
		if !isGPU(dev, n) {
			continue
		}
		blank := GPU{Name: n.Name}
		add("gpu "+n.Name, func(s *Sample) { s.GPUs = append(s.GPUs, blank) }, func() (apply, error) {
			g := blank
			freq, err := readNumber(dev, n.Path+"/cur_freq")
			if err == nil {
				g.Freq = &freq
			}
			g.Min, g.Max = readOptionalNumber(dev, n.Path+"/min_freq"), readOptionalNumber(dev, n.Path+"/max_freq")
			g.Governor = readOptional(dev, n.Path+"/governor")
			// In permille with nvgpu. The NVIDIA driver of Thor has no such file.
			g.Load = inRange(readOptionalNumber(dev, n.Path+"/device/load"), 0, 1000)
			return func(s *Sample) { s.GPUs = append(s.GPUs, g) }, err
		})
	}
}

// inRange returns v if it is between low and high, else nil.
func inRange(v *int64, low, high int64) *int64 {
	if v == nil || *v < low || *v > high {
		return nil
	}
	return v
}

// emcClocks returns the files in which kernels of L4T report the memory controller's clock
// in Hz.
func emcClocks() []string {
	return []string{
		"/sys/kernel/debug/bpmp/debug/clk/emc/rate",
		"/sys/class/devfreq/bwmgr/cur_freq",
		"/sys/kernel/debug/clk/emc/clk_rate",
		"/sys/kernel/debug/tegra_bwmgr/emc_rate",
	}
}

// emcActivity returns the files that report how many kHz of that clock were busy.
func emcActivity() []string {
	return []string{"/sys/kernel/debug/cactmon/mc_all", "/sys/kernel/actmon_avg_activity/mc_all"}
}

// firstReadable returns the first node that holds a number.
func firstReadable(dev rootfs.FS, names []string) string {
	for _, n := range names {
		if _, err := readNumber(dev, n); err == nil {
			return n
		}
	}
	return ""
}

func findEMC(dev rootfs.FS, add adder) {
	clocks := emcClocks()
	if !slices.ContainsFunc(clocks, func(c string) bool { _, err := dev.Mode(c); return err == nil }) {
		return
	}
	// Probe the files in the goroutine as well, since reads call firmware.
	clock, activity, looked := "", "", false
	add("memory clock", func(s *Sample) { s.EMC = &Memclock{} }, func() (apply, error) {
		if !looked {
			clock, activity, looked = firstReadable(dev, clocks), firstReadable(dev, emcActivity()), true
		}
		e := &Memclock{}
		if clock != "" {
			e.Freq = readOptionalNumber(dev, clock)
		}
		if activity != "" && e.Freq != nil && *e.Freq >= 1000 {
			if busy := readOptionalNumber(dev, activity); busy != nil && *busy >= 0 && *busy < 1<<40 {
				e.Load = inRange(new(*busy*1000/(*e.Freq/1000)), 0, 1000)
			}
		}
		return func(s *Sample) { s.EMC = e }, nil
	})
}

// findNVMap adds the memory of the GPU's clients, the last line of a table in KiB.
func findNVMap(dev rootfs.FS, add adder) {
	const clients = "/sys/kernel/debug/nvmap/iovmm/clients"
	if _, err := dev.Mode(clients); err != nil {
		return
	}
	add("nvmap", func(*Sample) {}, func() (apply, error) {
		b, err := dev.ReadFile(clients, 1<<20)
		if err != nil {
			return nil, err
		}
		total := ParseNVMap(string(b)).Total
		return func(s *Sample) { s.Memory.NVMap = total }, nil
	})
}

// Client is a process with GPU memory.
type Client struct {
	Process string
	PID     int
	Bytes   int64
}

// NVMap is the table of nvmap's clients.
type NVMap struct {
	Clients []Client
	Total   *int64 // bytes, nil: unknown
}

// ParseNVMap parses lines "user  process  pid  123K" and "total  456K".
func ParseNVMap(table string) NVMap {
	var out NVMap
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, ok := strings.CutSuffix(f[len(f)-1], "K")
		n, err := parseSize(kib)
		if !ok || err != nil {
			continue
		}
		switch {
		case f[0] == "total":
			out.Total = new(n << 10)
		case len(f) >= 4:
			if pid, err := parseSize(f[len(f)-2]); err == nil && pid < 1<<31 {
				out.Clients = append(out.Clients, Client{Process: strings.Join(f[1:len(f)-2], " "), PID: int(pid), Bytes: n << 10})
			}
		}
	}
	return out
}

// isFanType reports whether a cooling device of that type is a fan.
func isFanType(typ string) bool { return strings.Contains(strings.ToLower(typ), "fan") }

func findCooling(dev rootfs.FS, add adder) {
	for _, dir := range listNumbered(dev, "/sys/class/thermal", "cooling_device") {
		typ, err := readText(dev, dir+"/type")
		if err != nil {
			continue
		}
		top := readOptionalNumber(dev, dir+"/max_state")
		blank := Cooling{Name: typ, Max: top}
		add("cooling "+path.Base(dir), func(s *Sample) { s.Cooling = append(s.Cooling, blank) }, func() (apply, error) {
			c := blank
			state, err := readNumber(dev, dir+"/cur_state")
			if err == nil {
				c.State = &state
			}
			return func(s *Sample) { s.Cooling = append(s.Cooling, c) }, err
		})
	}
}

// Throttling returns the names of the cooling devices that lower a clock now, nil if no
// cooling device reports its state.
func Throttling(dev rootfs.FS) []string {
	var s Sample
	findCooling(dev, func(_ string, unknown apply, read func() (apply, error)) {
		enter, err := read()
		if err != nil {
			enter = unknown
		}
		enter(&s)
	})
	if s.countThrottled() == nil {
		return nil
	}
	out := []string{}
	for _, c := range s.Throttled() {
		out = append(out, c.Name)
	}
	return out
}
