package device

// Parts for tests.
var (
	UnitOf    = unitOf
	MountedAt = mountedAt
)
