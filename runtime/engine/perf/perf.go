// Package perf counts what the kernel and the processor did for this process:
// faults, context switches, and, where there are such counters and the kernel lets
// an unprivileged process read them, cycles, instructions and misses. What cannot
// be counted is nil and Why says why; it is never 0.
//
// Reference: perf_event_open(2), getrusage(2), proc_interrupts(5).
package perf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Counts are totals since the process began, or since Open for what perf counts.
// Subtract two to learn of the time between.
type Counts struct {
	CPU         *int64 `json:"cpu_ns"` // user and system
	MinorFaults *int64 `json:"minor_faults"`
	MajorFaults *int64 `json:"major_faults"` // with a wait for the disk
	Switches    *int64 `json:"voluntary_switches"`
	Preemptions *int64 `json:"involuntary_switches"`
	Migrations  *int64 `json:"migrations"` // to another core

	Cycles       *int64 `json:"cycles"` // of user space, as are those below
	Instructions *int64 `json:"instructions"`
	CacheMisses  *int64 `json:"cache_misses"` // of the last level
	BranchMisses *int64 `json:"branch_misses"`

	// Interrupts the whole machine took since boot, by processor.
	Interrupts []int64 `json:"interrupts"`

	Why []string `json:"unknown"` // what is not counted, and why
}

// event is one that perf counts for us.
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

// Counters are open counters of this process. Several goroutines may read them, none
// while they are closed.
type Counters struct {
	fds map[string][]int // by event, one for each thread there was
	why []string
	irq string // file
}

// Open begins to count. Threads that are started later are counted with the one
// that starts them. It never fails: what cannot be counted is unknown.
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

// openEvent opens one event for every thread, or for none: half a count is none.
func openEvent(e event) (fds []int, err error) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, err
	}
	attr := unix.PerfEventAttr{Type: e.typ, Config: e.config, Bits: unix.PerfBitInherit, Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING}
	if e.typ == unix.PERF_TYPE_HARDWARE {
		// With perf_event_paranoid at its default of 2 nobody else may count the kernel.
		attr.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	}
	attr.Size = uint32(unsafe.Sizeof(attr))
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.ESRCH) { // it ended meanwhile
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

// explain says what a refusal of perf_event_open means.
func explain(err error) string {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EOPNOTSUPP):
		return "this processor, or virtual machine, has no such counter"
	case errors.Is(err, unix.EACCES):
		return "not permitted by kernel.perf_event_paranoid"
	case errors.Is(err, unix.EPERM):
		return "not permitted: a pipeline's unit lets it where the pipeline says counters: true"
	case errors.Is(err, unix.ENOSYS):
		return "the kernel is built without CONFIG_PERF_EVENTS"
	}
	return err.Error()
}

// Read returns what was counted up to now.
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
		n, err := total(fds)
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
		out.Why = append(out.Why, "interrupts: "+c.irq+" cannot be read")
	}
	return out
}

// total adds what one event counted in all threads. Where more events were wanted
// than the processor has counters, they took turns, and the count is scaled up.
func total(fds []int) (int64, error) {
	var sum int64
	for _, fd := range fds {
		var b [24]byte
		if n, err := unix.Read(fd, b[:]); err != nil {
			return 0, err
		} else if n != len(b) {
			return 0, fmt.Errorf("%d bytes were read", n)
		}
		value := binary.NativeEndian.Uint64(b[:])
		enabled, running := binary.NativeEndian.Uint64(b[8:]), binary.NativeEndian.Uint64(b[16:])
		switch {
		case running == 0 && enabled > 0:
			return 0, errors.New("the processor's counters are all taken")
		case running < enabled:
			value = uint64(float64(value) * float64(enabled) / float64(running))
		}
		sum += int64(value)
	}
	return sum, nil
}

// parseInterrupts adds up the columns of /proc/interrupts: the lines with a
// number are devices', the others the machine's own, such as timers.
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
		// ERR and MIS have one number for all.
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

// Since is what happened between two readings; unknown where either is.
func (c Counts) Since(before Counts) Counts {
	less := func(a, b *int64) *int64 {
		if a == nil || b == nil || *a < *b {
			return nil
		}
		return new(*a - *b)
	}
	out := Counts{
		CPU: less(c.CPU, before.CPU), MinorFaults: less(c.MinorFaults, before.MinorFaults), MajorFaults: less(c.MajorFaults, before.MajorFaults),
		Switches: less(c.Switches, before.Switches), Preemptions: less(c.Preemptions, before.Preemptions), Migrations: less(c.Migrations, before.Migrations),
		Cycles: less(c.Cycles, before.Cycles), Instructions: less(c.Instructions, before.Instructions),
		CacheMisses: less(c.CacheMisses, before.CacheMisses), BranchMisses: less(c.BranchMisses, before.BranchMisses), Why: c.Why,
	}
	// A processor that came or went shifts the columns.
	if len(c.Interrupts) == len(before.Interrupts) {
		for i, n := range c.Interrupts {
			out.Interrupts = append(out.Interrupts, max(n-before.Interrupts[i], 0))
		}
	}
	return out
}

// Close ends the counting.
func (c *Counters) Close() error {
	var errs []error
	for _, fds := range c.fds {
		errs = append(errs, closeAll(fds))
	}
	c.fds = nil
	return errors.Join(errs...)
}

func closeAll(fds []int) error {
	var errs []error
	for _, fd := range fds {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}
