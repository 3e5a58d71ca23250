package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// limit bounds the process. Soft and hard limit are the same: the kernel then
// ends a process that uses too much processor time, where Go would ignore the
// warning.
func limit() error {
	for _, l := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"address space", unix.RLIMIT_AS, maxMemory},
		{"processor time", unix.RLIMIT_CPU, maxCPU},
		{"size of files", unix.RLIMIT_FSIZE, 0},
		{"core dumps", unix.RLIMIT_CORE, 0},
	} {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.value, Max: l.value}); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}
