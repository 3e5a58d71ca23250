package rootfs_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// No content of a device's files crashes their parsers.
func FuzzSurvey(f *testing.F) {
	for _, s := range []string{
		"  CPU0 CPU1\n 36:  0  64877  PCI-MSIX-0000:00:02.0  1-edge  virtio1-req.0, virtio1-req.1\n", "0-3,5\n", "# R36 (release), REVISION: 4.0, GCID: 1\n",
		"nvidia,p3767-0005\x00nvidia,tegra234\x00", "MemTotal: 5 kB\n", "729600 115200\n", "65535-65535,0-65535", "yoctune:x:900:\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		dev := devicetest.UniformDevice(text)
		h := rootfs.ReadHardware(dev)
		if h.Cores < 0 || h.MemTotal < 0 {
			t.Errorf("%+v", h)
		}
		rootfs.Identify(dev)
		_, _ = rootfs.GroupID(dev, "yoctune")
		for _, class := range rootfs.Classes() {
			nodes, err := rootfs.Nodes(dev, class)
			for _, n := range nodes {
				if err == nil && strings.Contains(n.Name, "/") {
					t.Errorf("%+v", n)
				}
			}
		}
		rootfs.MountedAt(text, "/proc")
		rootfs.UnitOf(text)
	})
}

// The text of a property survives a conversion to systemd's form and back.
func FuzzProperties(f *testing.F) {
	f.Add("0-3,5")
	f.Add(rootfs.Unset)
	f.Add("SLEEP 10 IRQ 24 LOAD 0 DIFF 0 CLASS 0 BANNED 00000000")
	f.Add("150000 100000")
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (string, bool){rootfs.ReformatCPUs, rootfs.ReformatNumber} {
			once, ok := parse(text)
			if !ok {
				continue
			}
			if twice, ok := parse(once); !ok || twice != once {
				t.Errorf("%q is read as %q, and that as %q", text, once, twice)
			}
		}
		rootfs.Quota(text)
		if banned, ok := rootfs.ParseSetup(text); ok {
			for _, n := range banned {
				if n < 0 {
					t.Errorf("irq %d", n)
				}
			}
		}
		rootfs.AddBannedIRQs(text, "7")
	})
}

func TestPropertyNames(t *testing.T) {
	for in, want := range map[string]string{"0-3,5": "0-3,5", "3,2,1,0": "0-3", "8": "8", rootfs.Unset: rootfs.Unset, "0,2,4": "0,2,4"} {
		if got, ok := rootfs.ReformatCPUs(in); !ok || got != want {
			t.Errorf("%q is %q", in, got)
		}
	}
	for in, want := range map[string]string{"200": "200", rootfs.Unset: rootfs.Unset, "0": "0"} {
		if got, ok := rootfs.ReformatNumber(in); !ok || got != want {
			t.Errorf("%q is %q", in, got)
		}
	}
	for in, want := range map[string]string{"150000 100000": "1500000", "50000 10000": "5000000", "max 100000": "max", "": ""} {
		if got := rootfs.Quota(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	if got, ok := rootfs.ParseSetup("SLEEP 10 IRQ 31 LOAD 0 DIFF 0 CLASS 2 IRQ 24 LOAD 0 DIFF 0 CLASS 0 BANNED 00000000\x00"); !ok || rootfs.AddBannedIRQs("none", "9") != "9" || len(got) != 2 || got[0] != 24 {
		t.Errorf("%v", got)
	}
	if got := rootfs.AddBannedIRQs("31 24", "9", "24"); got != "9 24 31" {
		t.Error(got)
	}
}
