package directive_test

import (
	"testing"

	"github.com/yoctune/yoctune/schema/facts/directive"
)

func TestValues(t *testing.T) {
	for kind, values := range map[string]struct{ right, wrong []string }{
		"bool":                  {[]string{"yes", "No", "1", "off", ""}, []string{"maybe", "2", "yes!"}},
		"sec":                   {[]string{"3", "1.5s", "2min 200ms", "5min20s", "infinity", "1h30min", ".5", "3 months"}, []string{"3x", "soon", "-1", "5 5x"}},
		"memory_limit":          {[]string{"512M", "1.5G", "50%", "infinity", "1073741824"}, []string{"512MiB", "lots", "5%%", "99999999999999999999999999"}},
		"unsigned":              {[]string{"0", "5", "0x10"}, []string{"-1", "five", "4294967296"}},
		"mode":                  {[]string{"0755", "755"}, []string{"0855", "rwx"}},
		"signal":                {[]string{"SIGTERM", "KILL", "SIGRTMIN+3", "15"}, []string{"sigterm", "SIG TERM", "SIGTREM", "FOO"}},
		"service_type":          {[]string{"oneshot", "notify-reload"}, []string{"Simple", "one-shot", "bool"}},
		"service_restart":       {[]string{"on-failure"}, []string{"on-fail", "yes"}},
		"protect_system":        {[]string{"strict", "true", "no"}, []string{"read-only", "bool"}},
		"exec_io_class":         {[]string{"best-effort", "2"}, []string{"besteffort"}},
		"exec_nice":             {[]string{"-20", "19"}, []string{"20", "high"}},
		"exec_oom_score_adjust": {[]string{"-1000"}, []string{"1001"}},
		"exec_cpu_sched_prio":   {[]string{"1"}, []string{"0"}},
		"cg_weight":             {[]string{"100"}, []string{"idle", "0"}},
		"cg_cpu_weight":         {[]string{"idle"}, []string{"10001"}},
		"cpu_quota":             {[]string{"150%"}, []string{"150"}},
		"capability_set":        {[]string{"CAP_NET_ADMIN cap_sys_nice", "~CAP_SYS_ADMIN"}, []string{"NET_ADMIN", "CAP_A,CAP_B"}},
		"exec_cpu_affinity":     {[]string{"0-3 6", "1,2", "numa"}, []string{"all", "3-1", "0-7:2/4", "-1"}},
		"exec_io_priority":      {[]string{"7"}, []string{"8"}},
		"unit_deps":             {[]string{"anything"}, nil},
	} {
		for _, v := range values.right {
			if wanted := directive.WantedValue(".service", "Service.X", kind, v, "255.21"); wanted != "" {
				t.Errorf("%s %q: refused, want %s", kind, v, wanted)
			}
		}
		for _, v := range values.wrong {
			if directive.WantedValue(".service", "Service.X", kind, v, "255.21") == "" {
				t.Errorf("%s %q: taken", kind, v)
			}
		}
	}
}

// The forms of limits differ by resource (systemd's rlimit_parse), those of [Install] by directive.
func TestValuesByDirective(t *testing.T) {
	for name, values := range map[string]struct{ right, wrong []string }{
		"Service.LimitNOFILE":     {[]string{"65536", "infinity", "1024:4096", "0x10", "1024:infinity"}, []string{"lots", "-1", "99999999999999999999999999", "4096:1024", "64K", "1024:"}},
		"Service.LimitMEMLOCK":    {[]string{"64M", "1G 512M", "infinity", "1.5G:2G"}, []string{"64MiB", "99E", "2G:1G", "-1"}},
		"Service.LimitCPU":        {[]string{"10s", "1min 30s", "infinity"}, []string{"soon", "-1"}},
		"Service.LimitNICE":       {[]string{"-20", "+19", "40", "0"}, []string{"-21", "+20", "41", "infinity"}},
		"Service.LimitRTPRIO":     {[]string{"99"}, []string{"99M"}},
		"Install.WantedBy":        {[]string{"multi-user.target a@%i.service", "dev-video0.device"}, []string{"multi-user", "../x.target"}},
		"Install.Alias":           {[]string{"camera.service", "a@b.service"}, []string{"../../x.service", "camera", "camera.socket", "/x.service"}},
		"Install.DefaultInstance": {[]string{"tty1"}, nil},
	} {
		for _, v := range values.right {
			if wanted := directive.WantedValue(".service", name, "rlimit", v, "255.13"); wanted != "" {
				t.Errorf("%s=%s: refused, want %s", name, v, wanted)
			}
		}
		for _, v := range values.wrong {
			if directive.WantedValue(".service", name, "rlimit", v, "255.13") == "" {
				t.Errorf("%s=%s: taken", name, v)
			}
		}
	}
}

// The words of an enumeration are those of the release's version.
func TestWordsFollowTheVersion(t *testing.T) {
	const kind, value = "service_type", "notify-reload" // since systemd 253
	if directive.WantedValue(".service", "Service.X", kind, value, "250.14") == "" || directive.WantedValue(".service", "Service.X", kind, value, "261.2") != "" {
		t.Error("notify-reload is of systemd 253")
	}
}

// Each release's systemd takes the names that its own sources have.
func TestNamesFollowTheVersion(t *testing.T) {
	for _, c := range []struct {
		kind, value, version string
		isTaken              bool
	}{
		{"syscall_filter", "@sandbox", "250.14", false},
		{"syscall_filter", "@sandbox", "255.21", true},
		{"syscall_filter", "@sandbox", "252", true}, // of one of the versions around
		{"syscall_filter", "~@mount:EPERM @known:kill bpf", "250.14", true},
		{"syscall_log", "@mounts", "259.5", false},
		{"restrict_namespaces", "~time", "250.14", false},
		{"namespace_flags", "~time user", "257.6", true},
		{"namespace_flags", "Net", "257.6", false},
		{"syscall_archs", "native arm arm64", "250.14", true},
		{"syscall_archs", "loongarch64", "250.14", false},
		{"syscall_archs", "loongarch64", "261.2", true},
		{"syscall_archs", "sparc", "261.2", false}, // of ConditionArchitecture= only
		{"syscall_archs", "~arm", "255.21", false},
		{"address_families", "~af_unix AF_DECnet", "255.21", true},
		{"address_families", "AF_UNSPEC", "255.21", false},
		{"address_families", "AF_MAX", "255.21", false},
		{"address_families", "none", "255.21", true},
		{"capability_set", "~cap_bpf 38 CAP_CHECKPOINT_RESTORE", "250.14", true},
		{"capability_set", "CAP_LAST_CAP", "262", false},
		{"capability_set", "63", "262", false},
		{"exec_output", "append:/var/log/a", "255.21", true},
		{"exec_output", "syslog+console", "262", true},
		{"exec_output", "append", "255.21", false},
		{"exec_output", "file:log", "255.21", false},
		{"exec_output", "tty-force", "255.21", false},
		{"exec_input", "file:/etc/a", "255.21", true},
		{"exec_input", "fd", "255.21", true},
		{"exec_input", "fd:a", "255.21", true},
		{"exec_input", "append:/var/log/a", "255.21", false},
		{"exec_input", "syslog", "255.21", false},
		{"device_policy", "open", "255.21", false},
		{"device_policy", "strict", "255.21", true},
		{"device_policy", "anything", "230", true}, // a version that is unknown
		{"capability_set", "CAP_ANY", "230", true},
		{"private_users", "managed", "261.2", true},
	} {
		if got := directive.WantedValue(".service", "Service.X", c.kind, c.value, c.version); (got == "") != c.isTaken {
			t.Errorf("%s %q in %s: wants %q", c.kind, c.value, c.version, got)
		}
	}
}
