package monitor

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// parseSize parses a count that can be multiplied by a page size without overflow.
func parseSize(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 52)
	return int64(n), err
}

// Blocks are the free blocks of a zone by order. A block of order n has 2^n pages.
type Blocks struct {
	Node, Zone string
	Free       []int64
}

// Buddyinfo parses "Node 0, zone   Normal  1 2 3 …".
func Buddyinfo(text string) []Blocks {
	var out []Blocks
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 5 || f[0] != "Node" || f[2] != "zone" {
			continue
		}
		b := Blocks{Node: strings.TrimSuffix(f[1], ","), Zone: f[3]}
		for _, field := range f[4:] {
			n, err := strconv.ParseUint(field, 10, 40)
			if err != nil {
				break
			}
			b.Free = append(b.Free, int64(n))
		}
		out = append(out, b)
	}
	return out
}

// Largest returns the size in bytes of the largest free blocks and their number, which
// tegrastats calls lfb. They are nil if there are none.
func Largest(zones []Blocks, page int64) (size, count *int64) {
	best, n := -1, int64(0)
	for _, z := range zones {
		for order, free := range z.Free {
			switch {
			case free == 0 || order > 20 || order < best:
			case order == best:
				n += free
			default:
				best, n = order, free
			}
		}
	}
	if best < 0 {
		return nil, nil
	}
	return new(page << best), &n
}

func (s *Sampler) sampleMemory(out *Sample) {
	m := &out.Memory
	if b, err := s.dev.ReadFile("/proc/meminfo", 64<<10); err == nil {
		info := rootfs.Meminfo(string(b))
		get := func(name string) *int64 {
			if v, ok := info[name]; ok {
				return &v
			}
			return nil
		}
		m.Total, m.Available, m.Free = get("MemTotal"), get("MemAvailable"), get("MemFree")
		m.Buffers, m.Cached, m.Slab = get("Buffers"), get("Cached"), get("Slab")
		m.CMATotal, m.CMAFree = get("CmaTotal"), get("CmaFree")
		m.SwapTotal = get("SwapTotal")
		if free := get("SwapFree"); free != nil && m.SwapTotal != nil {
			m.SwapUsed = new(*m.SwapTotal - *free)
		}
		if m.Total != nil && m.Available != nil {
			m.Used = new(*m.Total - *m.Available)
		}
	}
	if b, err := s.dev.ReadFile("/proc/buddyinfo", 64<<10); err == nil {
		m.Largest, m.LargestN = Largest(Buddyinfo(string(b)), int64(os.Getpagesize()))
	}
	m.ZRAMData, m.ZRAMUsed = readZRAM(s.dev)
	if faults, ok := s.majorFaults(); ok {
		elapsed := time.Duration(out.Monotonic) - s.before.at
		if s.before.known && elapsed > 0 && faults >= s.before.faults {
			out.Faults = new((faults - s.before.faults) * int64(time.Second) / int64(elapsed))
		}
		s.before.faults, s.before.known = faults, true
	}
}

// readZRAM returns the bytes that compressed swap devices hold, and the memory they take for
// them (Documentation/admin-guide/blockdev/zram.rst, "mm_stat"). They are nil if there are no
// such devices.
func readZRAM(dev rootfs.FS) (data, used *int64) {
	for _, dir := range listNumbered(dev, "/sys/block", "zram") {
		f := strings.Fields(rootfs.ReadText(dev, dir+"/mm_stat"))
		if len(f) < 3 {
			continue
		}
		holds, err1 := parseSize(f[0])
		takes, err2 := parseSize(f[2])
		if err1 != nil || err2 != nil {
			continue
		}
		if data == nil {
			data, used = new(int64), new(int64)
		}
		*data, *used = *data+holds, *used+takes
	}
	return data, used
}

func (s *Sampler) majorFaults() (int64, bool) {
	b, err := s.dev.ReadFile("/proc/vmstat", 64<<10)
	if err != nil {
		return 0, false
	}
	_, rest, ok := strings.Cut(string(b), "pgmajfault ")
	if !ok {
		return 0, false
	}
	line, _, _ := strings.Cut(rest, "\n")
	n, err := parseSize(line)
	return n, err == nil && n < 1<<33
}

func (s *Sampler) samplePressure(out *Sample) {
	read := func(name string) *float64 { return SomePressure(rootfs.ReadText(s.dev, "/proc/pressure/"+name)) }
	out.Pressure = Pressure{CPU: read("cpu"), Memory: read("memory"), IO: read("io")}
}

// SomePressure parses "some avg10=1.53 avg60=… avg300=… total=…", the first line of a pressure
// file. It returns nil for other text.
func SomePressure(text string) *float64 {
	rest, ok := strings.CutPrefix(text, "some avg10=")
	if !ok {
		return nil
	}
	value, _, _ := strings.Cut(rest, " ")
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || v < 0 || v > 100 {
		return nil
	}
	return &v
}
