package rootfs

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BootTime returns CLOCK_BOOTTIME: the time since the boot, which includes suspends and
// cannot be set.
func BootTime() time.Duration { return readClock(unix.CLOCK_BOOTTIME) }

// SuspendTime returns how long the machine has been suspended since the boot.
func SuspendTime() time.Duration { return BootTime() - readClock(unix.CLOCK_MONOTONIC) }

// readClock is called at each event of an idle enforcer. Unlike unix.ClockGettime, it does not
// announce to Go's runtime a call that may block, for which the runtime would wake a thread.
func readClock(id int32) time.Duration {
	var ts unix.Timespec
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0 // fails for unknown clocks only, and every kernel that runs Go has these
	}
	return time.Duration(ts.Nano())
}
