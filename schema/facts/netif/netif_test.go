package netif

import "testing"

func TestNamesOfInterfaces(t *testing.T) {
	for name, want := range map[string]string{"eht0": "eth0", "wlna*": "wlan*", "cna1": "can1", "rdnis0": "rndis0", "l4tbbr0": "l4tbr0",
		"eth0": "", "lan0": "", "wan0": "", "br-lan": "", "docker0": "", "mgbe0": ""} {
		if got := Nearest(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]bool{"eth0": true, "eth*": true, "*": true, "e*": true, "wl*": true, "wlan1": true, "l4tbr0": true, "eth0.100": true, "br-3f2a": true, "lo": true, "docker0": true,
		"mlan0": true, "mlan": false, "mlan00": false, "mlan?": true, "lan": true, "end0": true, "acme0": false, "et0": false, "acme*": false} {
		if got := IsKnown(name); got != want {
			t.Errorf("%s is known: %t, want %t", name, got, want)
		}
	}
	for name, want := range map[string]bool{"enP8p1s0": true, "enp1s0": true, "wlP1p1s0": true, "en*": true, "enP8*": true, "end0": true, "enx00044bdeadbe": true,
		"eth0": false, "wlan0": false, "enable": false, "wlan*": false, "wwan0": false} {
		if got := IsPredictable(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTreesOfBoards(t *testing.T) {
	tree, ok := FindTree("tegra234-p3768-0000+p3767-0003-nv-super.dtb")
	if !ok || tree.Ethernet != 0 || len(tree.Ports) != 4 || tree.Ports[3] != (Port{8, "Ethernet"}) {
		t.Errorf("%+v", tree)
	}
	if tree, ok := FindTree("tegra234-p3737-0000+p3701-0004-nv.dtb"); !ok || tree.Ethernet != 1 {
		t.Errorf("%+v", tree)
	}
	if _, ok := FindTree("tegra234-p3701-0000-p3737-0000.dtb"); ok {
		t.Error("a tree of another L4T is not the kernel's")
	}
	if len(Domains("tegra234")) != 11 || Domains("tegra210") != nil {
		t.Error("domains")
	}
}
