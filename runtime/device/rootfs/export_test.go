package rootfs

// Unexported functions for tests.
var (
	UnitOf     = parseUnit
	MountedAt  = mountedDevice
	Quota      = parseQuota
	ParseSetup = parseSetup
)

// ReformatCPUs converts a CPU list to systemd's form and back.
func ReformatCPUs(text string) (string, bool) {
	v, ok := parseCPUs(text)
	if !ok {
		return "", false
	}
	return formatCPUs(v)
}

// ReformatNumber converts a number to systemd's form and back.
func ReformatNumber(text string) (string, bool) {
	v, ok := parseNumber(text)
	if !ok {
		return "", false
	}
	return formatNumber(v)
}

// LockedBy returns the holder of the lock for a process that may not open its file.
func LockedBy(host string) *HeldError { return findLockHolder(host) }
