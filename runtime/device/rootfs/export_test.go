package rootfs

// Parts for tests.
var (
	UnitOf     = parseUnit
	MountedAt  = mountedDevice
	Quota      = parseQuota
	ParseSetup = parseSetup
)

// CPUsAgain gives a list systemd's form and reads that.
func CPUsAgain(text string) (string, bool) {
	v, ok := parseCPUs(text)
	if !ok {
		return "", false
	}
	return formatCPUs(v)
}

// NumberAgain does so with a number.
func NumberAgain(text string) (string, bool) {
	v, ok := parseNumber(text)
	if !ok {
		return "", false
	}
	return formatNumber(v)
}

// LockedBy is what somebody who may not open the lock's file learns.
func LockedBy(host string) *HeldError { return findLockHolder(host) }
