// Package memory reports the use of a device's memory: the kernel's totals, the share of each
// process, GPU allocations, contiguous memory, free blocks by size, and kernel caches.
package memory

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// Report is the use of memory, in bytes. Problems lists what could not be read.
type Report struct {
	Info      map[string]int64 // /proc/meminfo
	Processes []Process        // largest share first
	Hidden    int              // number of processes that may not be inspected
	GPU       monitor.NVMap
	Blocks    []monitor.Blocks
	Slabs     []Slab // largest first
	Problems  []string
}

// Process is the memory of a process. PSS divides shared pages among their processes, so that
// the sum over all processes is the total.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"comm"`
	PSS  int64  `json:"pss"`
	RSS  int64  `json:"rss"`
	Swap int64  `json:"swap"`
	GPU  *int64 `json:"gpu"` // nil: unknown
}

// Slab is a cache of the kernel.
type Slab struct {
	Name    string `json:"name"`
	Objects int64  `json:"objects"`
	Bytes   int64  `json:"bytes"`
}

// ReadReport reads the report.
func ReadReport(dev rootfs.FS) *Report {
	r := &Report{Info: map[string]int64{}}
	read := func(name string, limit int) (string, bool) {
		b, err := dev.ReadFile(name, limit)
		if err != nil {
			r.Problems = append(r.Problems, fmt.Sprintf("%s: %v", name, err))
			return "", false
		}
		return string(b), true
	}
	if t, ok := read("/proc/meminfo", 64<<10); ok {
		r.Info = rootfs.Meminfo(t)
	}
	if t, ok := read("/proc/buddyinfo", 64<<10); ok {
		r.Blocks = monitor.Buddyinfo(t)
	}
	if t, ok := read("/proc/slabinfo", 1<<20); ok {
		r.Slabs = Slabs(t)
	}
	// Exists on Jetson only.
	if b, err := dev.ReadFile("/sys/kernel/debug/nvmap/iovmm/clients", 1<<20); err == nil {
		r.GPU = monitor.ParseNVMap(string(b))
	} else if !errors.Is(err, fs.ErrNotExist) {
		r.Problems = append(r.Problems, err.Error())
	}
	r.addProcesses(dev)
	return r
}

func (r *Report) addProcesses(dev rootfs.FS) {
	names, err := dev.List("/proc")
	if err != nil {
		r.Problems = append(r.Problems, err.Error())
		return
	}
	gpu := map[int]int64{}
	for _, c := range r.GPU.Clients {
		gpu[c.PID] += c.Bytes
	}
	for _, name := range names {
		pid, err := strconv.ParseUint(name, 10, 31)
		if err != nil {
			continue
		}
		dir := "/proc/" + name
		// Kernel threads and ended processes have no such file.
		c, err := dev.Read(dir + "/smaps_rollup")
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				r.Hidden++
			}
			continue
		}
		p := Process{PID: int(pid)}
		sizes := rootfs.Meminfo(c.Text)
		if _, ok := sizes["Pss"]; !ok {
			continue
		}
		p.PSS, p.RSS, p.Swap = sizes["Pss"], sizes["Rss"], sizes["SwapPss"]
		p.Name = rootfs.ReadText(dev, dir+"/comm")
		if r.GPU.Total != nil {
			p.GPU = new(gpu[p.PID])
		}
		r.Processes = append(r.Processes, p)
	}
	slices.SortFunc(r.Processes, func(a, b Process) int {
		return cmp.Or(cmp.Compare(b.PSS, a.PSS), cmp.Compare(a.PID, b.PID))
	})
}

// Slabs parses /proc/slabinfo, "name active total size …", largest first.
func Slabs(text string) []Slab {
	var out []Slab
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 4 || strings.HasPrefix(f[0], "#") || f[0] == "slabinfo" {
			continue
		}
		n, err1 := strconv.ParseUint(f[2], 10, 40)
		size, err2 := strconv.ParseUint(f[3], 10, 22)
		if errors.Join(err1, err2) != nil || n == 0 {
			continue
		}
		out = append(out, Slab{f[0], int64(n), int64(n * size)})
	}
	slices.SortStableFunc(out, func(a, b Slab) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return out
}
