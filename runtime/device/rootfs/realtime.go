package rootfs

import (
	"errors"
	"slices"
	"strings"
)

// A real-time kernel is recognised by one of two files.
const (
	// RealtimeFile has "1" where the patches of a real-time kernel add it. Linux 6.12 is
	// real-time without them and has no such file.
	RealtimeFile = "/sys/kernel/realtime"
	// VersionFile has the output of `uname -v`. It names PREEMPT_RT on kernels that were
	// built with it (init/Makefile), and "PREEMPT RT" before Linux 5.
	VersionFile = "/proc/sys/kernel/version"
)

var errEmptyVersion = errors.New(VersionFile + " is empty")

// IsRealtimeVersion reports whether the version of the kernel names a real-time kernel.
func IsRealtimeVersion(dev FS) (bool, error) {
	text, err := dev.ReadFile(VersionFile, 4096)
	if err != nil {
		return false, err
	}
	words := strings.Fields(string(text))
	if len(words) == 0 {
		return false, errEmptyVersion
	}
	return slices.Contains(words, "PREEMPT_RT") || slices.Contains(words, "RT"), nil
}
