package pipeline

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/cpulist"
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

// countCPUs is how many processors a list names, all of the process without one.
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

// Pin restricts every thread of this process, and so those it makes later, to
// the processors of a kernel CPU list.
func Pin(list string) error {
	set, err := parseCPUs(list)
	if err != nil {
		return err
	}
	// A thread that starts while the list is read inherits from one that is
	// pinned already or is seen in the second pass.
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
			if err := unix.SchedSetaffinity(tid, set); err != nil && err != unix.ESRCH {
				return fmt.Errorf("pin to processors %s: %w", list, err)
			}
		}
	}
	return nil
}
