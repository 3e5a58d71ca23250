package check

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/facts/netif"
)

func interfaceRules() []Rule {
	return []Rule{{
		ID: "interface-name", Severity: diag.Warning,
		Title: "the machine names no interface so",
		Cause: "systemd names an interface on PCI Express after the place of its controller: enP8p1s0 is domain 8, bus 1, slot 0. The processor has controllers with certain domains, the device tree of the machine switches some of them on, and with the kernel argument net.ifnames=0 the kernel's names stay: eth0. A setting for another name waits for an interface that never appears. A .link file of yours may give any name.",
		Fix:   "write the name that ip link shows on the device",
		Wrong: `network: "wlna0": mtu: 1400`, Right: `network: "wlan0": mtu: 1400`,
		See: "systemd.net-naming-scheme(7); the device tree of the machine",
		run: checkInterfaceName,
	}, {
		ID: "interface-unknown", Severity: diag.Warning,
		Title: "unknown name of a network interface",
		Cause: "No driver of the kernel and no file of the BSP gives an interface such a name, and it is none that bridges, tunnels and renamed ports usually have. A .link or .netdev file of yours may give it.",
		Fix:   "write the name that ip link shows on the device; suppress the rule if a layer of yours gives the name",
		Wrong: `network: "acme0": mtu: 1400`, Right: `network: "lan0": mtu: 1400`,
		See: "systemd.link(5): Name=; alloc_netdev in the kernel's drivers",
		run: checkInterfaceUnknown,
	}}
}

// interfaces calls do for each name of a network interface, with the part that has it.
func (s *subject) interfaces(do func(part config.Part, name string)) {
	for _, n := range s.Config.Network.Entries {
		do(n, n.Key())
	}
	for _, v := range s.Config.Sysctl.Entries {
		if m := interfaceSysctl.FindStringSubmatch(v.Key()); m != nil && m[1] != "all" && m[1] != "default" {
			do(v, m[1])
		}
	}
	for _, irq := range s.Config.IRQ.Affinity.Entries {
		if netif.IsPredictable(irq.Key()) || kernelName.MatchString(irq.Key()) {
			do(*irq, irq.Key())
		}
	}
}

var kernelName = lazyregexp.New(`^eth[0-9*?]+$`)

func checkInterfaceName(s *subject) {
	if s.IsOwn() {
		return // board-device compares with the board file
	}
	s.interfaces(func(part config.Part, name string) {
		if message, help := s.judgeInterface(name); message != "" {
			f := s.reportKey(part, help, "%s", message)
			if near := netif.Nearest(name); near != "" && part.Where().Key() == name {
				f.Edits = []diag.Edit{{Kind: diag.RenameField, Pos: f.Pos, Text: diag.Label(near)}}
			}
		}
	})
}

func checkInterfaceUnknown(s *subject) {
	if s.IsOwn() {
		return // board-device compares with the board file
	}
	s.interfaces(func(part config.Part, name string) {
		if message, _ := s.judgeInterface(name); message == "" && !netif.IsKnown(name) {
			s.reportKey(part, "check ip link on the device", "unknown: no driver of the kernel and no file of the BSP names an interface %s", name)
		}
	})
}

// judgeInterface describes why the target has no interface of a name; "" where it may have one.
func (s *subject) judgeInterface(name string) (message, help string) {
	if near := netif.Nearest(name); near != "" {
		return fmt.Sprintf("no driver of the kernel names an interface %s", name), fmt.Sprintf("did you mean %q?", near)
	}
	if s.keepsKernelNames() {
		if netif.IsPredictable(name) {
			return fmt.Sprintf("%s gives the kernel net.ifnames=0, and systemd then makes no name such as %s", s.Machine, name), `write the kernel's name, such as "eth0" or "wlan0"`
		}
		return "", ""
	}
	tree, known := s.findTree()
	domain, onPCI := netif.DomainOf(name)
	all := netif.Domains(s.Board.SoC)
	switch {
	case onPCI && all != nil && !slices.Contains(all, domain):
		return fmt.Sprintf("%s is on PCI domain %d, and no controller of %s has it", name, domain, s.Board.SoC), "the domains are " + joinNumbers(all)
	case onPCI && known && !slices.ContainsFunc(tree.Ports, func(p netif.Port) bool { return p.Domain == domain }):
		return fmt.Sprintf("%s is on PCI domain %d, whose controller the device tree of %s leaves off", name, domain, s.Machine), describePorts(name[:2], tree)
	case known && tree.Ethernet == 0 && kernelName.MatchString(name):
		return fmt.Sprintf("systemd renames %s: the interfaces of %s are on PCI Express", name, s.Machine), describePorts("en", tree)
	}
	return "", ""
}

// keepsKernelNames reports whether systemd leaves the names of interfaces as the kernel gives them.
func (s *subject) keepsKernelNames() bool {
	const name = "net.ifnames"
	if own := s.Config.Kernel.Args.Get(name); own.IsSet() {
		return own.Text == "0"
	}
	machines := s.StockMachines()
	for _, m := range machines {
		if !slices.Contains(strings.Fields(m.KernelArgs), name+"=0") {
			return false
		}
	}
	return len(machines) > 0
}

// findTree finds what is known about the device tree of the target's machine. That of a machine of
// one's own may be any.
func (s *subject) findTree() (netif.Tree, bool) {
	m, ok := s.Release.Machine(s.Machine)
	if !ok || len(m.DeviceTrees) == 0 {
		return netif.Tree{}, false
	}
	return netif.FindTree(path.Base(m.DeviceTrees[0]))
}

// describePorts lists the names that interfaces on the PCI Express ports of a board begin with.
func describePorts(prefix string, tree netif.Tree) string {
	var names []string
	for _, p := range tree.Ports {
		name := fmt.Sprintf("%sP%dp1s0", prefix, p.Domain)
		if p.Domain == 0 {
			name = prefix + "p1s0"
		}
		if p.Use != "" {
			name += " (" + p.Use + ")"
		}
		names = append(names, name)
	}
	return fmt.Sprintf("write the name that ip link shows, or %q; the ports are %s", prefix+"*", strings.Join(names, ", "))
}

func joinNumbers(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = fmt.Sprint(n)
	}
	return strings.Join(words, ", ")
}
