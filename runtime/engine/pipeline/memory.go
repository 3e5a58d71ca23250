package pipeline

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/schema/plan"
)

// Constants of madvise(2) and mlockall(2) that package unix lacks or names by version.
const (
	madvHugePage = 14
	madvCollapse = 25 // Linux 6.1
	lockOnFault  = 4  // MCL_ONFAULT
	hugePage     = 2 << 20
)

// applyMemoryOptions applies the plan's memory options to the warm pipeline, and reports what
// could not be applied.
func applyMemoryOptions(m *plan.PipelineMemory, info *RuntimeInfo) []error {
	if m == nil {
		return nil
	}
	var errs []error
	if m.HugePages {
		if err := largePages(); err != nil {
			errs = append(errs, fmt.Errorf("memory.hugepages: %w", err))
		}
	}
	if m.Lock {
		// Existing pages are read in; later pages are locked on first touch, because Go
		// reserves far more than it uses.
		err := unix.Mlockall(unix.MCL_CURRENT | lockOnFault)
		if err == nil {
			err = unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | lockOnFault)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("memory.lock: %w: raise LimitMEMLOCK of the unit, or ulimit -l", err))
		}
	}
	info.Locked, info.Huge = lockedMemory()
	return errs
}

// largePages requests large pages for every data mapping of at least their size. The kernel may
// have none free, or may be configured not to use them.
func largePages() error {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer f.Close()
	asked := false
	var last error
	for in := bufio.NewScanner(f); in.Scan(); {
		// START-END rw-p OFFSET DEVICE INODE
		w := strings.Fields(in.Text())
		if len(w) < 5 || w[1] != "rw-p" || w[4] != "0" {
			continue
		}
		low, high, _ := strings.Cut(w[0], "-")
		start, err := strconv.ParseUint(low, 16, 64)
		end, err2 := strconv.ParseUint(high, 16, 64)
		if err != nil || err2 != nil || end-start < hugePage {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), madvHugePage); errno != 0 {
			last = errno
			continue
		}
		asked = true
		// Collapse now instead of waiting for khugepaged; older kernels cannot.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), madvCollapse)
	}
	if !asked && last != nil {
		return last
	}
	return nil
}

// lockedMemory returns how many bytes of this process are locked and on large pages; nil where
// the kernel does not report it. VmLck also counts pages that are not resident, such as Go's
// reserved address space.
func lockedMemory() (locked, huge *int64) {
	const file = "/proc/self/smaps_rollup"
	return procBytes(file, "Locked:"), procBytes(file, "AnonHugePages:")
}

// procBytes parses a line "Name: 123 kB".
func procBytes(file, name string) *int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if w := strings.Fields(line); len(w) == 3 && w[0] == name {
			if n, err := strconv.ParseInt(w[1], 10, 53); err == nil {
				n <<= 10
				return &n
			}
		}
	}
	return nil
}
