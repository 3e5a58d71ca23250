package watch

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// release gives back what starting took and waiting does not need: the pages of this
// program's own file that are mapped and were never changed. The kernel maps a page
// again when it is next used; most of the program is never used by an enforcer that
// waits. A mapping of which a page was changed, as the linker's relocations do, is
// left alone: its contents are nowhere else. Where anything is in the way, nothing is
// given back.
func release() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range unchanged(string(b), exe) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
	}
}

type mapping struct{ start, end uintptr }

// unchanged lists the mappings of a file that cannot be written and have no page of
// this process's own (proc_pid_smaps(5)).
func unchanged(smaps, file string) []mapping {
	var out []mapping
	var at mapping
	candidate := false
	for line := range strings.Lines(smaps) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		if !strings.HasSuffix(f[0], ":") { // the head of a mapping
			_, err := fmt.Sscanf(f[0], "%x-%x", &at.start, &at.end)
			candidate = err == nil && len(f) == 6 && f[5] == file && (f[1] == "r-xp" || f[1] == "r--p") && at.end > at.start
			continue
		}
		if candidate && f[0] == "Anonymous:" && f[1] == "0" {
			out = append(out, at)
		}
	}
	return out
}
