package directive_test

import (
	"math/rand/v2"
	"os/exec"
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

// systemd prints the directives that it was built with. This machine's version lies between two that
// were read: each of its directives is in one of them, and each that both have is its own.
func TestSystemdOfThisMachineAgrees(t *testing.T) {
	const program = "/usr/lib/systemd/systemd"
	first, err := exec.Command(program, "--version").Output()
	if err != nil {
		t.Skipf("%s: %v", program, err)
	}
	version := strings.Fields(string(first))[1]
	if directive.Lookup(directive.Unit, "Service.ExecStart", version).State != directive.Present {
		t.Skipf("systemd %s is older or newer than those that were read", version)
	}
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
