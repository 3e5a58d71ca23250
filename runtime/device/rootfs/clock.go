package rootfs

import (
	"time"

	"golang.org/x/sys/unix"
)

// BootTime returns CLOCK_BOOTTIME: the time since the boot, which includes suspends and
// cannot be set.
func BootTime() time.Duration { return readClock(unix.CLOCK_BOOTTIME) }

// SuspendTime returns how long the machine has been suspended since the boot.
func SuspendTime() time.Duration { return BootTime() - readClock(unix.CLOCK_MONOTONIC) }

func readClock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0 // fails for unknown clocks only, and every kernel that runs Go has these
	}
	return time.Duration(ts.Nano())
}
