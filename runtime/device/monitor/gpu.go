package monitor

import (
	"path"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// gpuNodes are names of the GPU in device trees of L4T: by chip up to R35, "gpu"
// since R36.
func gpuNode(name string) bool {
	switch name {
	case "gpu", "gv11b", "gp10b", "ga10b", "gm20b", "gk20a":
		return true
	}
	return false
}

func isGPU(dev rootfs.FS, n rootfs.Node) bool {
	_, chip, _ := strings.Cut(n.Name, ".")
	if gpuNode(chip) || strings.HasPrefix(n.Name, "gpu-gpc") || strings.HasPrefix(n.Name, "gpu-nvd") {
		return true
	}
	return gpuNode(rootfs.Describe(dev, n).OFNode)
}

func findGPUs(dev rootfs.FS, add adder) {
	nodes, err := rootfs.Nodes(dev, rootfs.ClassDevFreq)
	if err != nil {
		return
	}
	for _, n := range nodes {
		if !isGPU(dev, n) {
			continue
		}
		blank := GPU{Name: n.Name}
		add("gpu "+n.Name, func(s *Sample) { s.GPUs = append(s.GPUs, blank) }, func() (apply, error) {
			g := blank
			freq, err := number(dev, n.Path+"/cur_freq")
			if err == nil {
				g.Freq = &freq
			}
			g.Min, g.Max = known(dev, n.Path+"/min_freq"), known(dev, n.Path+"/max_freq")
			g.Governor = words(dev, n.Path+"/governor")
			// nvgpu says permille; the NVIDIA driver of Thor has no such file.
			g.Load = within(known(dev, n.Path+"/device/load"), 0, 1000)
			return func(s *Sample) { s.GPUs = append(s.GPUs, g) }, err
		})
	}
}

// within makes a value outside of what it can be unknown.
func within(v *int64, low, high int64) *int64 {
	if v == nil || *v < low || *v > high {
		return nil
	}
	return v
}

// emcClocks are where kernels of L4T say the memory controller's clock, in Hz.
func emcClocks() []string {
	return []string{
		"/sys/kernel/debug/bpmp/debug/clk/emc/rate",
		"/sys/class/devfreq/bwmgr/cur_freq",
		"/sys/kernel/debug/clk/emc/clk_rate",
		"/sys/kernel/debug/tegra_bwmgr/emc_rate",
	}
}

// emcActivity are where they say how many kHz of it were busy.
func emcActivity() []string {
	return []string{"/sys/kernel/debug/cactmon/mc_all", "/sys/kernel/actmon_avg_activity/mc_all"}
}

// first returns the first of the nodes that holds a number.
func first(dev rootfs.FS, names []string) string {
	for _, n := range names {
		if _, err := number(dev, n); err == nil {
			return n
		}
	}
	return ""
}

func findEMC(dev rootfs.FS, add adder) {
	clocks := emcClocks()
	there := false
	for _, c := range clocks {
		if _, err := dev.Mode(c); err == nil {
			there = true
		}
	}
	if !there {
		return
	}
	// Which one it is is found out in the goroutine too: these are calls to
	// firmware.
	clock, activity, looked := "", "", false
	add("memory clock", func(s *Sample) { s.EMC = &Memclock{} }, func() (apply, error) {
		if !looked {
			clock, activity, looked = first(dev, clocks), first(dev, emcActivity()), true
		}
		e := &Memclock{}
		if clock != "" {
			e.Freq = known(dev, clock)
		}
		if activity != "" && e.Freq != nil && *e.Freq >= 1000 {
			if busy := known(dev, activity); busy != nil && *busy >= 0 && *busy < 1<<40 {
				e.Load = within(new(*busy*1000/(*e.Freq/1000)), 0, 1000)
			}
		}
		return func(s *Sample) { s.EMC = e }, nil
	})
}

// findNVMap adds what the GPU's clients hold: the last line of a table in KiB.
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

// Client is a process that holds GPU memory.
type Client struct {
	Process string
	PID     int
	Bytes   int64
}

// NVMap is the table of nvmap's clients.
type NVMap struct {
	Clients []Client
	Total   *int64 // bytes, nil: the table does not say
}

// ParseNVMap reads lines "user  process  pid  123K" and "total  456K".
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

// isFan reports whether a cooling device of that type blows air.
func isFan(typ string) bool { return strings.Contains(strings.ToLower(typ), "fan") }

func findCooling(dev rootfs.FS, add adder) {
	for _, dir := range children(dev, "/sys/class/thermal", "cooling_device") {
		typ, err := text(dev, dir+"/type")
		if err != nil {
			continue
		}
		top := known(dev, dir+"/max_state")
		blank := Cooling{Name: typ, Max: top}
		add("cooling "+path.Base(dir), func(s *Sample) { s.Cooling = append(s.Cooling, blank) }, func() (apply, error) {
			c := blank
			state, err := number(dev, dir+"/cur_state")
			if err == nil {
				c.State = &state
			}
			return func(s *Sample) { s.Cooling = append(s.Cooling, c) }, err
		})
	}
}

// Throttling names the cooling devices that slow something down now; nil where
// there are none that say so.
func Throttling(dev rootfs.FS) []string {
	var s Sample
	findCooling(dev, func(_ string, unknown apply, read func() (apply, error)) {
		enter, err := read()
		if err != nil {
			enter = unknown
		}
		enter(&s)
	})
	if s.throttled() == nil {
		return nil
	}
	out := []string{}
	for _, c := range s.Throttled() {
		out = append(out, c.Name)
	}
	return out
}
