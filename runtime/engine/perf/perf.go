// Package perf reads counters of this process: page faults, context switches and, if the
// processor has them and the kernel permits it, cycles, instructions and cache misses.
// An unavailable counter is nil, never 0, and Counts.Why has the reason.
//
// Reference: perf_event_open(2), getrusage(2), proc_interrupts(5).
package perf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Counts are totals since the start of the process, or since Open for counters of
// perf_event_open. The difference of two Counts is the count between them.
type Counts struct {
	CPU         *int64 `json:"cpu_ns"` // user and system
	MinorFaults *int64 `json:"minor_faults"`
	MajorFaults *int64 `json:"major_faults"` // page faults that needed I/O
	Switches    *int64 `json:"voluntary_switches"`
	Preemptions *int64 `json:"involuntary_switches"`
	Migrations  *int64 `json:"migrations"` // to another core

	Cycles       *int64 `json:"cycles"` // in user space, like the following
	Instructions *int64 `json:"instructions"`
	CacheMisses  *int64 `json:"cache_misses"` // of the last level
	BranchMisses *int64 `json:"branch_misses"`

	// Interrupts of the whole machine since boot, by processor.
	Interrupts []int64 `json:"interrupts"`

	Why []string `json:"unknown"` // unavailable counters, with the reason
}

// event is a counter of perf_event_open.
type event struct {
	name   string
	typ    uint32
	config uint64
	field  func(*Counts) **int64
}

func events() []event {
	return []event{
		{"migrations", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_MIGRATIONS, func(c *Counts) **int64 { return &c.Migrations }},
		{"cycles", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES, func(c *Counts) **int64 { return &c.Cycles }},
		{"instructions", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS, func(c *Counts) **int64 { return &c.Instructions }},
		{"cache misses", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CACHE_MISSES, func(c *Counts) **int64 { return &c.CacheMisses }},
		{"branch misses", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_BRANCH_MISSES, func(c *Counts) **int64 { return &c.BranchMisses }},
	}
}

// Counters are open counters of this process. Several goroutines may read them, but not
// during Close.
type Counters struct {
	fds map[string][]int // by event, one per thread at the time of Open
	why []string
	irq string // path of the interrupts file
}

// Open starts counting. A thread that is started later counts towards the thread that
// started it. Open never fails; unavailable counters are reported by Read.
func Open() *Counters {
	c := &Counters{fds: map[string][]int{}, irq: "/proc/interrupts"}
	for _, e := range events() {
		fds, err := openEvent(e)
		if err != nil {
			c.why = append(c.why, e.name+": "+explain(err))
			continue
		}
		c.fds[e.name] = fds
	}
	return c
}

// openEvent opens a counter for all threads, or returns an error.
func openEvent(e event) (fds []int, err error) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, err
	}
	attr := unix.PerfEventAttr{Type: e.typ, Config: e.config, Bits: unix.PerfBitInherit, Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING}
	if e.typ == unix.PERF_TYPE_HARDWARE {
		// With perf_event_paranoid at its default of 2, kernel events need privileges.
		attr.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	}
	attr.Size = uint32(unsafe.Sizeof(attr))
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.ESRCH) { // the thread has exited
			continue
		}
		if err != nil {
			closeAll(fds)
			return nil, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// explain describes an error of perf_event_open.
func explain(err error) string {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EOPNOTSUPP):
		return "this processor or virtual machine has no such counter"
	case errors.Is(err, unix.EACCES):
		return "not permitted by kernel.perf_event_paranoid"
	case errors.Is(err, unix.EPERM):
		return "not permitted; set counters: true in the pipeline"
	case errors.Is(err, unix.ENOSYS):
		return "the kernel is built without CONFIG_PERF_EVENTS"
	}
	return err.Error()
}

// Read returns the current counts.
func (c *Counters) Read() Counts {
	out := Counts{Why: slices.Clone(c.why)}
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err == nil {
		out.CPU = new(u.Utime.Nano() + u.Stime.Nano())
		out.MinorFaults, out.MajorFaults = new(int64(u.Minflt)), new(int64(u.Majflt))
		out.Switches, out.Preemptions = new(int64(u.Nvcsw)), new(int64(u.Nivcsw))
	}
	for _, e := range events() {
		fds, ok := c.fds[e.name]
		if !ok {
			continue
		}
		n, err := readTotal(fds)
		if err != nil {
			out.Why = append(out.Why, e.name+": "+err.Error())
			continue
		}
		*e.field(&out) = &n
	}
	if b, err := os.ReadFile(c.irq); err == nil {
		out.Interrupts = parseInterrupts(string(b))
	}
	if out.Interrupts == nil {
		out.Why = append(out.Why, "interrupts: cannot read "+c.irq)
	}
	return out
}

// readTotal adds the counts of all threads. If the kernel multiplexed the counter with others,
// the count is scaled up.
func readTotal(fds []int) (int64, error) {
	var sum int64
	for _, fd := range fds {
		var b [24]byte
		if n, err := unix.Read(fd, b[:]); err != nil {
			return 0, err
		} else if n != len(b) {
			return 0, fmt.Errorf("short read of %d bytes", n)
		}
		value := binary.NativeEndian.Uint64(b[:])
		enabled, running := binary.NativeEndian.Uint64(b[8:]), binary.NativeEndian.Uint64(b[16:])
		switch {
		case running == 0 && enabled > 0:
			return 0, errors.New("all counters of the processor are in use")
		case running < enabled:
			value = uint64(float64(value) * float64(enabled) / float64(running))
		}
		sum += int64(value)
	}
	return sum, nil
}

// parseInterrupts adds up the columns of /proc/interrupts, which include devices and
// architecture-specific interrupts such as timers.
func parseInterrupts(text string) []int64 {
	head, rest, _ := strings.Cut(text, "\n")
	sums := make([]int64, 0, 8)
	for _, f := range strings.Fields(head) {
		if !strings.HasPrefix(f, "CPU") {
			return nil
		}
		sums = append(sums, 0)
	}
	if len(sums) == 0 {
		return nil
	}
	for line := range strings.Lines(rest) {
		f := strings.Fields(line)
		// ERR and MIS have one number for all processors.
		if len(f) <= len(sums) || !strings.HasSuffix(f[0], ":") {
			continue
		}
		for i := range sums {
			n, err := strconv.ParseInt(f[i+1], 10, 63)
			if err != nil {
				break
			}
			sums[i] += n
		}
	}
	return sums
}

// Since returns the difference of two Counts. A value that is unknown in either is unknown.
func (c Counts) Since(before Counts) Counts {
	subtract := func(a, b *int64) *int64 {
		if a == nil || b == nil || *a < *b {
			return nil
		}
		return new(*a - *b)
	}
	out := Counts{
		CPU: subtract(c.CPU, before.CPU), MinorFaults: subtract(c.MinorFaults, before.MinorFaults), MajorFaults: subtract(c.MajorFaults, before.MajorFaults),
		Switches: subtract(c.Switches, before.Switches), Preemptions: subtract(c.Preemptions, before.Preemptions), Migrations: subtract(c.Migrations, before.Migrations),
		Cycles: subtract(c.Cycles, before.Cycles), Instructions: subtract(c.Instructions, before.Instructions),
		CacheMisses: subtract(c.CacheMisses, before.CacheMisses), BranchMisses: subtract(c.BranchMisses, before.BranchMisses), Why: c.Why,
	}
	// CPU hotplug changes the columns.
	if len(c.Interrupts) == len(before.Interrupts) {
		for i, n := range c.Interrupts {
			out.Interrupts = append(out.Interrupts, max(n-before.Interrupts[i], 0))
		}
	}
	return out
}

// Close stops counting.
func (c *Counters) Close() error {
	fds := slices.Concat(slices.Collect(maps.Values(c.fds))...)
	c.fds = nil
	return closeAll(fds)
}

func closeAll(fds []int) error {
	var errs []error
	for _, fd := range fds {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}
