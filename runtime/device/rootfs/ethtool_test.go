package rootfs_test

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// TestNetworkChannelsAreANode runs in its own network namespace with a pair of virtual interfaces,
// and compares with ethtool(8).
func TestNetworkChannelsAreANode(t *testing.T) {
	ethtool, err := exec.LookPath("ethtool")
	if err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_ETHTOOL") != "" {
			t.Fatal("ethtool is required and is not installed")
		}
		t.Skip("ethtool is not installed")
	}
	if os.Geteuid() != 0 {
		t.Skip("not root: it makes a network namespace with a pair of interfaces")
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with its namespace
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
		t.Skipf("no network namespace: %v", err)
	}
	// sysfs shows the interfaces of the namespace that mounted it.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		t.Skipf("no sysfs of the namespace: %v", err)
	}
	add := exec.Command("ip", "link", "add", "left", "numrxqueues", "4", "numtxqueues", "4", "type", "veth", "peer", "name", "right", "numrxqueues", "4", "numtxqueues", "4")
	if out, err := add.CombinedOutput(); err != nil {
		t.Skipf("no virtual interfaces: %s", out)
	}
	dev, err := rootfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	const node = "/sys/class/net/left/ethtool/channels/rx"
	real, err := dev.Resolve(node)
	if err != nil || real != "/sys/devices/virtual/net/left/ethtool/channels/rx" {
		t.Errorf("%s %v", real, err)
	}
	if !rootfs.IsVirtual(real) {
		t.Error("its resolved name is not virtual")
	}
	if err := dev.Write(real, "3"); err != nil {
		t.Fatal(err)
	}
	if c, err := dev.Read(node); err != nil || c.Text != "3\n" {
		t.Errorf("%q %v", c.Text, err)
	}
	out, err := exec.Command(ethtool, "-l", "left").CombinedOutput()
	if _, now, _ := strings.Cut(string(out), "Current hardware settings:"); err != nil || !strings.Contains(now, "RX:\t\t3\n") {
		t.Errorf("ethtool prints %s, %v", out, err)
	}
	const gro = "/sys/class/net/left/ethtool/features/rx-gro"
	for _, value := range []string{"0", "1"} {
		if err := dev.Write(gro, value); err != nil {
			t.Fatal(err)
		}
		c, err := dev.Read(gro)
		if err != nil || c.Text != value+"\n" {
			t.Errorf("rx-gro: %q %v, want %s", c.Text, err, value)
		}
		out, err := exec.Command(ethtool, "-k", "left").CombinedOutput()
		if want := map[string]string{"0": "generic-receive-offload: off", "1": "generic-receive-offload: on"}[value]; err != nil || !strings.Contains(string(out), want) {
			t.Errorf("ethtool prints %s, %v, want %s", out, err, want)
		}
	}
	for name, c := range map[string]struct {
		value string
		want  error
	}{
		node: {"5", unix.ERANGE}, // more than there are
		"/sys/class/net/left/ethtool/channels/tx":        {"many", unix.EINVAL},
		"/sys/class/net/left/ethtool/coalesce/tx-frames": {"8", unix.EOPNOTSUPP},
		"/sys/class/net/absent/ethtool/channels/rx":      {"1", os.ErrNotExist},
		"/sys/class/net/left/ethtool/features/gro":       {"1", os.ErrNotExist}, // not the kernel's name
		"/sys/class/net/left/ethtool/features/rx-gro":    {"yes", unix.EINVAL},
		// fixed by the driver
		"/sys/class/net/left/ethtool/features/rx-ntuple-filter": {"1", unix.EOPNOTSUPP},
	} {
		if err := dev.Write(name, c.value); !errors.Is(err, c.want) {
			t.Errorf("%s=%s: %v, want %v", name, c.value, err, c.want)
		}
	}
	if _, err := dev.Resolve("/sys/class/net/left/ethtool/eeprom"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an unknown knob: %v", err)
	}
}
