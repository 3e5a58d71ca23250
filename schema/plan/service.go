package plan

// ServiceField is a field of a service and the directives that it sets, with their sections,
// after those older names of theirs that systemd still reads.
type ServiceField struct {
	Field      string
	Directives []string
}

// ServiceFields lists the fields of a service that set directives.
func ServiceFields() []ServiceField {
	return []ServiceField{
		{"description", []string{"Unit.Description"}},
		{"after", []string{"Unit.After"}},
		{"wants", []string{"Unit.Wants"}},
		{"requires", []string{"Unit.Requires"}},
		{"startLimitIntervalSec", []string{"Unit.StartLimitIntervalSec", "Unit.StartLimitInterval", "Service.StartLimitInterval"}},
		{"startLimitBurst", []string{"Unit.StartLimitBurst", "Service.StartLimitBurst"}},
		{"exec", []string{"Service.ExecStart"}},
		{"execStartPre", []string{"Service.ExecStartPre"}},
		{"execStartPost", []string{"Service.ExecStartPost"}},
		{"execStop", []string{"Service.ExecStop"}},
		{"execStopPost", []string{"Service.ExecStopPost"}},
		{"type", []string{"Service.Type"}},
		{"user", []string{"Service.User"}},
		{"group", []string{"Service.Group"}},
		{"supplementaryGroups", []string{"Service.SupplementaryGroups"}},
		{"workingDirectory", []string{"Service.WorkingDirectory"}},
		{"slice", []string{"Service.Slice"}},
		{"environment", []string{"Service.Environment"}},
		{"environmentFiles", []string{"Service.EnvironmentFile"}},
		{"cpus", []string{"Service.CPUAffinity", "Service.AllowedCPUs"}},
		{"nice", []string{"Service.Nice"}},
		{"scheduling", []string{"Service.CPUSchedulingPolicy"}},
		{"priority", []string{"Service.CPUSchedulingPriority"}},
		{"memoryMax", []string{"Service.MemoryMax", "Service.MemoryLimit"}},
		{"memoryHigh", []string{"Service.MemoryHigh"}},
		{"cpuWeight", []string{"Service.CPUWeight", "Service.CPUShares"}},
		{"ioWeight", []string{"Service.IOWeight", "Service.BlockIOWeight"}},
		{"cpuQuota", []string{"Service.CPUQuota"}},
		{"memoryLock", []string{"Service.LimitMEMLOCK"}},
		{"oomScoreAdjust", []string{"Service.OOMScoreAdjust"}},
		{"ambientCapabilities", []string{"Service.AmbientCapabilities"}},
		{"capabilityBoundingSet", []string{"Service.CapabilityBoundingSet"}},
		{"restart", []string{"Service.Restart"}},
		{"restartSec", []string{"Service.RestartSec"}},
		{"watchdogSec", []string{"Service.WatchdogSec"}},
		{"timeoutStartSec", []string{"Service.TimeoutStartSec", "Service.TimeoutSec"}},
		{"timeoutStopSec", []string{"Service.TimeoutStopSec", "Service.TimeoutSec"}},
	}
}
