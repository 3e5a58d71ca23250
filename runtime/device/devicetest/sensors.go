package devicetest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// sensors writes what a monitor reads: an idle board at room temperature. Names
// of zones, rails and nodes: schema/facts/board.
func (t *tree) sensors(m model) {
	t.load(m)
	t.memoryState()
	t.thermal(m)
	t.rails(m)
	const clk = "/sys/kernel/debug/bpmp/debug/clk/emc/"
	t.file(clk+"rate", "2133000000\n")
	t.file("/sys/kernel/debug/cactmon/mc_all", "42660\n") // kHz: 2 percent
	t.file("/sys/kernel/debug/nvmap/iovmm/clients",
		"CLIENT                        PROCESS      PID        SIZE\nuser                          vision       812     262144K\ntotal                                              262144K\n")
	t.file(m.gpuDir+"/load", "125\n")
}

func (t *tree) load(m model) {
	var b strings.Builder
	b.WriteString("cpu  1000 0 500 98000 200 0 50 0 0 0\n")
	for n := range m.cpus {
		fmt.Fprintf(&b, "cpu%d 100 0 50 9800 20 0 5 0 0 0\n", n)
	}
	b.WriteString("intr 0\nctxt 1\n")
	t.file("/proc/stat", b.String())
	for _, span := range m.policies {
		first, _, _ := strings.Cut(span, "-")
		var steps []string
		for khz := 115200; khz < m.cpuMax; khz += 76800 {
			steps = append(steps, strconv.Itoa(khz))
		}
		t.file("/sys/devices/system/cpu/cpufreq/policy"+first+"/scaling_available_frequencies", strings.Join(append(steps, strconv.Itoa(m.cpuMax)), " ")+"\n")
	}
	t.file("/proc/vmstat", "nr_free_pages 1000000\npgfault 100000\npgmajfault 1200\n")
	for name, some := range map[string]string{"cpu": "0.50", "memory": "0.00", "io": "0.12"} {
		t.file("/proc/pressure/"+name, "some avg10="+some+" avg60=0.00 avg300=0.00 total=12345\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
	}
	t.file("/proc/diskstats", " 259       0 nvme0n1 5000 10 400000 2000 3000 20 240000 1500 0 3000 3500 0 0 0 0 0 0\n 179       0 mmcblk0 100 0 8000 50 10 0 80 5 0 60 55 0 0 0 0 0 0\n")
	t.file("/proc/modules", "")
	t.file("/proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
}

func (t *tree) memoryState() {
	t.file("/proc/meminfo", `MemTotal:        7802352 kB
MemFree:         4202352 kB
MemAvailable:    6202352 kB
Buffers:          102352 kB
Cached:          1502352 kB
SwapCached:            0 kB
Slab:             250000 kB
SReclaimable:     150000 kB
SUnreclaim:       100000 kB
SwapTotal:             0 kB
SwapFree:              0 kB
HugePages_Total:       0
HugePages_Free:        0
CmaTotal:         262144 kB
CmaFree:          131072 kB
`)
	t.file("/proc/buddyinfo", "Node 0, zone   DMA32    100   50   20   10    5    2    1    1    1    1   20\nNode 0, zone   Normal   200  100   50   20   10    5    2    1    1    1   80\n")
	t.file("/proc/slabinfo", `slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>
dentry             50000  52000    192   21    1 : tunables    0    0    0 : slabdata   2477   2477      0
ext4_inode_cache    9000   9300   1096   29    8 : tunables    0    0    0 : slabdata    321    321      0
`)
}

func (t *tree) thermal(m model) {
	const class = "/sys/class/thermal/"
	for i, z := range []struct {
		name string
		temp string
	}{
		{"cpu-thermal", "48125"}, {"gpu-thermal", "46875"}, {"cv0-thermal", "0"}, {"cv1-thermal", "0"}, {"cv2-thermal", "0"},
		{"soc0-thermal", "47250"}, {"soc1-thermal", "46500"}, {"soc2-thermal", "46750"}, {"tj-thermal", "48125"},
	} {
		if m.line == "R35" {
			z.name = strings.ToUpper(strings.TrimSuffix(z.name, "al"))
			z.name = strings.Replace(strings.Replace(z.name, "-THERM", "-therm", 1), "TJ", "tj", 1)
		}
		dir := fmt.Sprintf("%sthermal_zone%d/", class, i)
		t.file(dir+"type", z.name+"\n")
		t.file(dir+"temp", z.temp+"\n")
		t.file(dir+"trip_point_0_type", "passive\n")
		t.file(dir+"trip_point_0_temp", "99000\n")
		t.file(dir+"trip_point_1_type", "critical\n")
		t.file(dir+"trip_point_1_temp", "104500\n")
	}
	coolers := []string{"pwm-fan"}
	for _, span := range m.policies {
		first, _, _ := strings.Cut(span, "-")
		coolers = append(coolers, "cpufreq-cpu"+first)
	}
	for i, name := range append(coolers, "devfreq-"+path.Base(m.gpuDir)) {
		dir := fmt.Sprintf("%scooling_device%d/", class, i)
		t.file(dir+"type", name+"\n")
		t.file(dir+"cur_state", "0\n")
		t.file(dir+"max_state", "10\n")
	}
}

func (t *tree) rails(m model) {
	const class = "/sys/class/hwmon/"
	labels := []string{"VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"}
	if m.cpus > 8 {
		labels = []string{"VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"}
	}
	t.file(class+"hwmon0/name", "ina3221\n")
	for i, label := range append(labels, "", "", "", "sum of shunt voltages") {
		if label == "" {
			continue
		}
		at := fmt.Sprintf("%shwmon0/in%d_", class, i+1)
		t.file(at+"label", label+"\n")
		t.file(at+"input", "5040\n")
		if i < 3 {
			t.file(fmt.Sprintf("%shwmon0/curr%d_input", class, i+1), fmt.Sprintf("%d\n", 920-300*i))
		}
	}
	t.file(class+"hwmon1/name", "pwmfan\n")
	t.file(class+"hwmon1/pwm1", "88\n")
	t.file(class+"hwmon2/name", "tachometer\n")
	t.file(class+"hwmon2/rpm", "1210\n")
	t.file(class+"hwmon3/name", "soctherm_oc\n")
	for n := 1; n <= 3; n++ {
		t.file(fmt.Sprintf("%shwmon3/oc%d_event_cnt", class, n), "0\n")
	}
}

// SimulateLoad makes the tree one on which so many cores have worked, ever more from look to
// look: a load that changes.
func SimulateLoad(dir string, cores, look int64) error {
	stat := "cpu 0 0 0 0\n"
	for c := range cores {
		stat += fmt.Sprintf("cpu%d %d 0 0 %d\n", c, look*look*(c+1), 100*look)
	}
	return os.WriteFile(filepath.Join(dir, "proc/stat"), []byte(stat), 0o644)
}
