// Package processes lists the processes of a device with their use of CPU and memory, and
// marks those of pipelines.
package processes

import (
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// Process is one process. A nil value is unknown.
type Process struct {
	PID      int    `json:"pid"`
	Parent   int    `json:"ppid"`
	Name     string `json:"comm"`
	CPU      *int64 `json:"cpu_permille"` // of one core, since the previous list
	Resident int64  `json:"rss"`          // bytes
	Threads  int64  `json:"threads"`
	Pipeline string `json:"pipeline,omitempty"` // whose process or helper this is
}

// ticks is USER_HZ, in which the kernel counts CPU time on every architecture of Jetson.
const ticks = 100

// program is how the names of yoctuned's own processes begin.
const program = "yoctuned"

// Sampler lists the processes. It must be used by one goroutine.
type Sampler struct {
	dev    *rootfs.Root
	clock  func() time.Duration
	at     time.Duration
	before map[id]int64   // ticks
	own    string         // PIDs of yoctuned's processes, for which byPID holds
	byPID  map[int]string // pipeline by PID
}

// id identifies a process; PIDs are used again.
type id struct {
	pid   int
	start int64
}

// New returns a sampler of a device.
func New(dev *rootfs.Root) *Sampler { return &Sampler{dev: dev, clock: rootfs.BootTime} }

// Take lists the processes, kernel threads left out. It returns nil if /proc cannot be listed.
func (s *Sampler) Take() []Process {
	names, err := s.dev.List("/proc")
	if err != nil {
		return nil
	}
	now := s.clock()
	elapsed, seen := now-s.at, map[id]int64{}
	out, own := []Process{}, ""
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid <= 0 {
			continue
		}
		p, start, used, ok := parseStat(rootfs.ReadText(s.dev, "/proc/"+name+"/stat"))
		if !ok || p.Resident == 0 {
			continue // it has ended, or it is a kernel thread
		}
		p.PID = pid
		key := id{pid, start}
		seen[key] = used
		if was, known := s.before[key]; known && elapsed > 0 && used >= was {
			p.CPU = new((used - was) * 1000 * int64(time.Second) / ticks / int64(elapsed))
		}
		if strings.HasPrefix(p.Name, program) {
			own += name + " "
		}
		out = append(out, p)
	}
	s.at, s.before = now, seen
	s.mark(out, own)
	return out
}

// mark enters the pipelines. Their sockets are read only when yoctuned's processes have
// changed.
func (s *Sampler) mark(list []Process, own string) {
	if own != s.own {
		s.own, s.byPID = own, map[int]string{}
		// A pipeline that does not answer is not marked.
		running, _ := pipelines.ReadAll(path.Join(s.dev.Dir(), pipelines.Dir), pipelines.DecodeProgress)
		for _, p := range running {
			s.byPID[p.PID] = p.Pipeline
		}
	}
	for i := range list {
		p := &list[i]
		if p.Pipeline = s.byPID[p.PID]; p.Pipeline == "" {
			p.Pipeline = s.byPID[p.Parent] // the GPU process, and programs that a stage started
		}
	}
}

// parseStat parses /proc/PID/stat, see proc_pid_stat(5). The name may contain blanks and
// parentheses.
func parseStat(text string) (p Process, start, used int64, ok bool) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return p, 0, 0, false
	}
	p.Name = text[open+1 : end]
	f := strings.Fields(text[end+1:]) // from the third field on
	const parent, userTime, systemTime, threads, startTime, resident = 1, 11, 12, 17, 19, 21
	if len(f) <= resident {
		return p, 0, 0, false
	}
	var n [6]int64
	for i, at := range []int{parent, userTime, systemTime, threads, startTime, resident} {
		v, err := strconv.ParseInt(f[at], 10, 64)
		if err != nil || v < 0 || v > 1<<50 {
			return p, 0, 0, false
		}
		n[i] = v
	}
	p.Parent, p.Threads, p.Resident = int(n[0]), n[3], n[5]*int64(os.Getpagesize())
	return p, n[4], n[1] + n[2], true
}
