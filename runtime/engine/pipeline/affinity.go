package pipeline

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

// parseCPUs reads a kernel CPU list, "0-3,5".
func parseCPUs(text string) (*unix.CPUSet, error) {
	list, err := cpulist.Parse(text)
	if err != nil {
		return nil, err
	}
	var set unix.CPUSet
	for _, n := range list {
		if n >= 8*int(unsafe.Sizeof(set)) {
			return nil, fmt.Errorf("processor %d in %q is more than a kernel of a module has", n, text)
		}
		set.Set(n)
	}
	return &set, nil
}

// countCPUs returns the number of processors in a list, or all those of the process if the list
// is empty.
func countCPUs(list string) (int, error) {
	if list == "" {
		return runtime.NumCPU(), nil
	}
	set, err := parseCPUs(list)
	if err != nil {
		return 0, err
	}
	return set.Count(), nil
}

// Pin restricts every thread of this process, and every thread it creates later, to the
// processors of a kernel CPU list.
func Pin(list string) error {
	set, err := parseCPUs(list)
	if err != nil {
		return err
	}
	return eachThread(func(tid int) error {
		if err := unix.SchedSetaffinity(tid, set); err != nil {
			return fmt.Errorf("pin to processors %s: %w", list, err)
		}
		return nil
	})
}

// eachThread calls do for every thread of this process.
func eachThread(do func(tid int) error) error {
	// A thread that starts while the list is read inherits from a thread already seen, or is
	// seen in the second pass.
	for range 2 {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err != nil {
				continue
			}
			if err := do(tid); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}

// Schedule gives every thread of this process, and every thread it creates later, a scheduling
// policy or a nice level. A thread that already has the value is left alone, because a systemd
// unit that sets it may lack the right to set it again. An empty policy is SCHED_OTHER; a nil
// nice level leaves the level unchanged.
func Schedule(policy string, priority int, nice *int) error {
	if policy == "" && nice == nil {
		return nil
	}
	policies := map[string]uint32{"": unix.SCHED_NORMAL, "other": unix.SCHED_NORMAL, "batch": unix.SCHED_BATCH, "idle": unix.SCHED_IDLE, "fifo": unix.SCHED_FIFO, "rr": unix.SCHED_RR}
	want, ok := policies[policy]
	if !ok {
		return fmt.Errorf("%w: scheduling %q; use one of other, batch, idle, fifo, rr", ErrPlan, policy)
	}
	return eachThread(func(tid int) error {
		attr, err := unix.SchedGetAttr(tid, 0)
		if err != nil {
			return fmt.Errorf("scheduling: %w", err)
		}
		if attr.Policy == want && attr.Priority == uint32(priority) && (nice == nil || attr.Nice == int32(*nice)) {
			return nil
		}
		attr.Policy, attr.Priority = want, uint32(priority)
		if nice != nil {
			attr.Nice = int32(*nice)
		}
		if err := unix.SchedSetAttr(tid, attr, 0); err != nil {
			return fmt.Errorf("scheduling %s, priority %d, nice %d: %w", policy, priority, attr.Nice, err)
		}
		return nil
	})
}
