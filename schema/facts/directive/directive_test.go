package directive_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/directive"
	"github.com/yoctune/yoctune/schema/facts/release"
)

func TestFacts(t *testing.T) {
	for _, c := range []struct {
		kind, name, version string
		want                directive.Fact
	}{
		{directive.Unit, "Service.RestartSec", "250.14", directive.Fact{State: directive.Present, Type: "sec"}},
		{directive.Unit, "Service.RestartMode", "250.14", directive.Fact{State: directive.Absent}},
		{directive.Unit, "Service.RestartMode", "255.21", directive.Fact{State: directive.Present, Type: "service_restart_mode"}},
		{directive.Unit, "Service.MemoryMax", "259.5", directive.Fact{State: directive.Present, Type: "memory_limit"}},
		{directive.Unit, "Service.Capabilities", "255.21", directive.Fact{State: directive.Legacy, Type: "legacy"}},
		{directive.Unit, "Service.CPUShares", "255.21", directive.Fact{State: directive.Present, Type: "cpu_shares"}},
		{directive.Unit, "Service.CPUShares", "261.2", directive.Fact{State: directive.Legacy, Type: "legacy"}}, // 259 and 262 agree
		{directive.Unit, "Install.WantedBy", "250.14", directive.Fact{State: directive.Present, Type: "NULL"}},
		{directive.Unit, "Service.Restartsec", "255.21", directive.Fact{State: directive.Absent}},
		{directive.Unit, "Service.Nice", "230", directive.Fact{}},
		{directive.Link, "Link.RxBufferSize", "255.21", directive.Fact{State: directive.Present, Type: "ring_buffer_or_channel"}},
		{directive.Network, "Network.DHCP", "255.21", directive.Fact{State: directive.Present, Type: "dhcp"}},
		{directive.NetDev, "NetDev.Kind", "255.21", directive.Fact{State: directive.Present, Type: "netdev_kind"}},
		{directive.Udev, "SUBSYSTEM", "255.21", directive.Fact{State: directive.Present, Type: "key"}},
		{directive.Udev, "SUBSYSTM", "255.21", directive.Fact{State: directive.Absent}},
		{directive.Tmpfiles, "F", "255.21", directive.Fact{State: directive.Legacy, Type: "legacy"}},
		{directive.Tmpfiles, "w", "255.21", directive.Fact{State: directive.Present, Type: "key"}},
		{directive.Modprobe, "weakdep", "31", directive.Fact{State: directive.Absent}},
		{directive.Modprobe, "weakdep", "34.2", directive.Fact{State: directive.Present, Type: "command"}},
	} {
		if got := directive.Lookup(c.kind, c.name, c.version); got != c.want {
			t.Errorf("%s %s in %s: %+v, want %+v", c.kind, c.name, c.version, got, c.want)
		}
	}
}

// The line of systemd of each release was read, or lies between two that were.
func TestEveryReleaseIsCovered(t *testing.T) {
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		if got := directive.Lookup(directive.Unit, "Service.ExecStart", r.Systemd); got.State != directive.Present {
			t.Errorf("%s: systemd %s: Service.ExecStart is %v", name, r.Systemd, got.State)
		}
	}
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{
		"Service.RestrtSec":     "Service.RestartSec",
		"Service.After":         "Unit.After",
		"Service.WantedBy":      "Install.WantedBy",
		"Unit.MemoryMax":        "Service.MemoryMax",
		"Service.X-Acme-Colour": "",
	} {
		if got := directive.Nearest(directive.Unit, name, "255.21"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Directives exist as they are written, and a mistyped one does not.
func TestMistypedDirectivesAreUnknown(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, kind := range []string{directive.Unit, directive.Network, directive.NetDev, directive.Link} {
		names := directive.Names(kind)
		tried, known := 0, 0
		for tried < 1000 {
			name := names[random.IntN(len(names))]
			if directive.Lookup(kind, name, "255.21").State == directive.Absent {
				continue
			}
			tried++
			i := len(name) - 1 - random.IntN(2)
			wrong := name[:i] + name[i+1:]
			if random.IntN(2) == 0 {
				wrong = name[:i] + name[i:i+1] + name[i:]
			}
			if directive.Lookup(kind, wrong, "255.21").State != directive.Absent {
				known++
			}
		}
		t.Logf("%s: %d names of all versions; of %d mistyped ones %d exist", kind, len(names), tried, known)
		if known > tried/20 {
			t.Errorf("%s: of %d mistyped names %d exist", kind, tried, known)
		}
	}
}

// systemdVersion returns the version of this machine's systemd; it skips where that is unknown to the table.
func systemdVersion(t *testing.T, program string) string {
	first, err := exec.Command(program, "--version").Output()
	if err != nil {
		t.Skipf("%s: %v", program, err)
	}
	version := strings.Fields(string(first))[1]
	if directive.Lookup(directive.Unit, "Service.ExecStart", version).State != directive.Present {
		t.Skipf("systemd %s is older or newer than those that were read", version)
	}
	return version
}

// names returns the words of a list in a version, "" for those that any version has.
func names(list, version string) []string {
	var all []string
	versions := []string{version}
	if version == "" {
		versions = directive.Versions("systemd")
	}
	for _, v := range versions {
		for _, w := range directive.WordsOf(list, v) {
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	return all
}

// around returns the versions that were read next to one: what both say of a value is certain.
func around(version string) [2]string {
	var two [2]string
	for _, v := range directive.Versions("systemd") {
		a, _, _ := strings.Cut(v, ".")
		if a <= version { // both have three digits
			two[0] = v
		}
		if a >= version && two[1] == "" {
			two[1] = v
		}
	}
	return two
}

// systemd-analyze lists groups of system calls and capabilities.
func TestListsOfThisMachineAgree(t *testing.T) {
	version := systemdVersion(t, "systemd-analyze")
	two := around(version)
	for _, c := range []struct{ command, list, pattern string }{
		{"syscall-filter", "syscall_groups", `(?m)^(@\S+)`},
		{"capability", "capabilities", `(?m)^(cap_\S+)`},
	} {
		out, err := exec.Command("systemd-analyze", "--no-pager", c.command).Output()
		if err != nil {
			t.Skipf("systemd-analyze %s: %v", c.command, err)
		}
		listed := map[string]bool{}
		for _, m := range regexp.MustCompile(c.pattern).FindAllStringSubmatch(string(out), -1) {
			name := m[1]
			if c.list == "capabilities" {
				name = strings.ToUpper(name)
			}
			listed[name] = true
		}
		either, certain := names(c.list, version), 0
		for name := range listed {
			if !slices.Contains(either, name) {
				t.Errorf("systemd %s has %s, which %v lack", version, name, two)
			}
		}
		for _, name := range names(c.list, two[0]) {
			if slices.Contains(names(c.list, two[1]), name) {
				certain++
				if !listed[name] {
					t.Errorf("systemd %s lacks %s, which %v have", version, name, two)
				}
			}
		}
		t.Logf("systemd %s lists %d of %s; the table is certain about %d", version, len(listed), c.list, certain)
	}
}

// systemd judges values itself: names of every version, mistyped ones, those of other lists, and forms.
func TestSystemdOfThisMachineTakesTheSameValues(t *testing.T) {
	version := systemdVersion(t, "systemd-analyze")
	two := around(version)
	type line struct{ directive, kind, value string }
	var lines []line
	var every []string
	for _, list := range []string{"address_families", "namespaces", "syscall_archs", "syscall_groups", "exec_input", "exec_output", "device_policy"} {
		every = append(every, names(list, "")...)
	}
	every = append(every, "AF_UNSPEC", "AF_MAX", "none", "native", "sparc", "alpha", "riscv32", "yes", "0", "append:log", "file:/a/b", "append:/a/b", "truncate:/a/b", "fd:a", "user net", "arm x86")
	for _, name := range slices.Clone(every) {
		every = append(every, "~"+name, strings.ToLower(name), strings.ToUpper(name), name[1:], name[:len(name)-1], name[:1]+name)
	}
	for _, value := range every {
		for name, kind := range map[string]string{
			"RestrictAddressFamilies": "address_families", "RestrictNamespaces": "restrict_namespaces", "SystemCallArchitectures": "syscall_archs",
			"StandardInput": "exec_input", "StandardOutput": "exec_output", "StandardError": "exec_output", "DevicePolicy": "device_policy",
		} {
			// systemd takes "file" without a path, and fails when the service starts.
			if bare := strings.TrimSuffix(value, ":"); value == "" || kind == "exec_input" && bare == "file" || kind == "exec_output" && slices.Contains([]string{"file", "append", "truncate"}, bare) {
				continue
			}
			lines = append(lines, line{name, kind, value})
		}
		if strings.HasPrefix(value, "@") || strings.HasPrefix(value, "~@") {
			lines = append(lines, line{"SystemCallFilter", "syscall_filter", value})
		}
	}
	unit := "[Service]\nExecStart=/bin/true\n"
	for _, l := range lines {
		unit += l.directive + "=" + l.value + "\n"
	}
	file := filepath.Join(t.TempDir(), "a.service")
	if err := os.WriteFile(file, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := exec.Command("systemd-analyze", "verify", file).CombinedOutput()
	refused := map[int]bool{}
	for _, m := range regexp.MustCompile(`a\.service:(\d+): (.*)`).FindAllStringSubmatch(string(out), -1) {
		if n, _ := strconv.Atoi(m[1]); !strings.Contains(m[2], " is obsolete") {
			refused[n-3] = true
		}
	}
	if len(refused) == 0 {
		t.Skipf("systemd-analyze verify refuses nothing: %s", out)
	}
	certain := 0
	for i, l := range lines {
		older, newer := directive.WantedValue(".service", "", l.kind, l.value, two[0]), directive.WantedValue(".service", "", l.kind, l.value, two[1])
		if (older == "") != (newer == "") {
			continue
		}
		certain++
		if (older == "") == refused[i] {
			t.Errorf("systemd %s refuses %s=%s: %v; the table wants %q", version, l.directive, l.value, refused[i], older)
		}
	}
	t.Logf("systemd %s refuses %d of %d values; the table is certain about %d", version, len(refused), len(lines), certain)
}

// systemd prints the directives that it was built with. This machine's version lies between two that
// were read: each of its directives is in one of them, and each that both have is its own.
func TestSystemdOfThisMachineAgrees(t *testing.T) {
	const program = "/usr/lib/systemd/systemd"
	version := systemdVersion(t, program)
	out, err := exec.Command(program, "--dump-configuration-items").Output()
	if err != nil {
		t.Fatal(err)
	}
	has, section := map[string]bool{}, ""
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		name, _, isItem := strings.Cut(line, "=")
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
		} else if isItem {
			has[section+"."+name] = true
		}
	}
	if len(has) < 1000 {
		t.Fatalf("systemd %s lists %d directives", version, len(has))
	}
	certain := 0
	for name := range has {
		switch directive.Lookup(directive.Unit, name, version).State {
		case directive.Absent:
			t.Errorf("systemd %s has %s, the table lacks it", version, name)
		case directive.Present, directive.Legacy:
			certain++
		}
	}
	for _, name := range directive.Names(directive.Unit) {
		if f := directive.Lookup(directive.Unit, name, version); f.State == directive.Present && !has[name] {
			t.Errorf("systemd %s lacks %s, which the table has", version, name)
		}
	}
	t.Logf("systemd %s lists %d directives; the table is certain about %d", version, len(has), certain)
}
