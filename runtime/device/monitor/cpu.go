package monitor

import (
	"path"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

const cpuDir = "/sys/devices/system/cpu"

// cpuNode is a core and its frequency policy.
type cpuNode struct {
	number int
	policy string // directory, "" without cpufreq
}

func findCPUs(dev rootfs.FS) []cpuNode {
	list, err := cpulist.Parse(rootfs.ReadText(dev, cpuDir+"/present"))
	if err != nil {
		return nil
	}
	var out []cpuNode
	for _, n := range list {
		node := cpuNode{number: n}
		if real, err := dev.Resolve(cpuDir + "/cpu" + strconv.Itoa(n) + "/cpufreq"); err == nil {
			node.policy = real
		}
		out = append(out, node)
	}
	return out
}

// findPolicies adds a sensor for each policy, since reading a clock may call firmware.
func findPolicies(dev rootfs.FS, cpus []cpuNode, add adder) {
	seen := map[string]bool{}
	for _, c := range cpus {
		if c.policy == "" || seen[c.policy] {
			continue
		}
		seen[c.policy] = true
		dir := c.policy
		add("cpu clock "+path.Base(dir), func(*Sample) {}, func() (apply, error) {
			freq := readScaled(dev, dir+"/scaling_cur_freq", 1000)
			top := readScaled(dev, dir+"/scaling_max_freq", 1000)
			governor, err := readText(dev, dir+"/scaling_governor")
			if err != nil {
				return nil, err
			}
			// Online cores of the policy share the clock.
			t, err := readText(dev, dir+"/affected_cpus")
			if err != nil {
				t, err = readText(dev, dir+"/related_cpus")
			}
			if err != nil {
				return nil, err
			}
			mine, err := cpulist.Parse(strings.Join(strings.Fields(t), ","))
			if err != nil {
				return nil, err
			}
			return func(s *Sample) {
				for i := range s.CPUs {
					c := &s.CPUs[i]
					for _, n := range mine {
						if n == c.Number && c.Online {
							c.Freq, c.Max, c.Governor = freq, top, &governor
						}
					}
				}
			}, nil
		})
	}
}

// sampleCPUs reads loads from /proc/stat, which has a line for each online core.
func (s *Sampler) sampleCPUs(out *Sample) {
	now := map[int]CPUTime{}
	b, err := s.dev.ReadFile("/proc/stat", 1<<20)
	if err == nil {
		for line := range strings.Lines(string(b)) {
			name, t, ok := ParseCPU(line)
			if n, err := strconv.ParseUint(strings.TrimPrefix(name, "cpu"), 10, 12); ok && err == nil {
				now[int(n)] = t
			} else if len(now) > 0 {
				break // the long line of interrupts follows
			}
		}
	}
	online := map[int]bool{}
	if on, err := cpulist.Parse(rootfs.ReadText(s.dev, cpuDir+"/online")); err == nil {
		for _, n := range on {
			online[n] = true
		}
	} else {
		for n := range now {
			online[n] = true
		}
	}
	for _, node := range s.cpus {
		c := CPU{Number: node.number, Online: online[node.number]}
		was, ok := s.before.cpu[node.number]
		is, ok2 := now[node.number]
		if total := is.Total - was.Total; ok && ok2 && total > 0 && is.Busy >= was.Busy {
			c.Load = new(min((is.Busy-was.Busy)*1000/total, 1000))
		}
		out.CPUs = append(out.CPUs, c)
	}
	s.before.cpu = now
}

// CPUTime is a line of /proc/stat, in ticks since boot.
type CPUTime struct{ Busy, Total int64 }

// ParseCPU parses "cpu3 user nice system idle iowait irq softirq steal …", or "cpu …" for the
// total. User time includes guest time.
func ParseCPU(line string) (name string, t CPUTime, ok bool) {
	f := strings.Fields(line)
	if len(f) < 5 || !strings.HasPrefix(f[0], "cpu") {
		return "", CPUTime{}, false
	}
	for i, field := range f[1:min(len(f), 9)] {
		v, err := strconv.ParseInt(field, 10, 64)
		if err != nil || v < 0 {
			return "", CPUTime{}, false
		}
		t.Total += v
		if i != 3 && i != 4 { // idle, iowait
			t.Busy += v
		}
	}
	return f[0], t, true
}
