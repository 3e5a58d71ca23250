package pipeline

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxCPU is one more than the highest processor number a kernel of a module has.
const maxCPU = 1024

// parseCPUs reads a kernel CPU list, "0-3,5".
func parseCPUs(list string) (*unix.CPUSet, error) {
	var set unix.CPUSet
	for _, part := range strings.Split(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		a, err := strconv.ParseUint(first, 10, 16)
		b := a
		if err == nil && isRange {
			b, err = strconv.ParseUint(last, 10, 16)
		}
		if err != nil || b < a || b >= maxCPU {
			return nil, fmt.Errorf("%q in %q is not a processor or a range below %d", part, list, maxCPU)
		}
		for n := a; n <= b; n++ {
			set.Set(int(n))
		}
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
