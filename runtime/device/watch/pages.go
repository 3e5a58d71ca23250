package watch

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dropCleanPages unmaps the unmodified pages of the program's own file, most of which an
// idle enforcer never uses again. The kernel maps a page again on its next use. Mappings
// with modified pages, such as relocated data, are skipped because their contents are not
// in the file. On any error nothing is unmapped.
func dropCleanPages() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range cleanMappings(string(b), exe) {
		// A kernel with huge pages in its page cache would map two megabytes at the next use.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_NOHUGEPAGE)
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
	}
}

type mapping struct{ start, end uintptr }

// cleanMappings returns the read-only mappings of a file that have no private pages
// (proc_pid_smaps(5)).
func cleanMappings(smaps, file string) []mapping {
	var out []mapping
	var at mapping
	candidate := false
	for line := range strings.Lines(smaps) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		if !strings.HasSuffix(f[0], ":") { // a mapping's first line
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
