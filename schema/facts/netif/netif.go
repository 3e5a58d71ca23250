// Package netif holds facts about the names of network interfaces: the domains of PCI Express
// controllers, which are part of the names that systemd gives, the names that the kernel's drivers
// give, and those of the BSP's own interfaces. They were extracted by internal/cmd/facts from the
// commits that the file names.
package netif

import (
	_ "embed"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/spelling"
)

//go:embed data/interfaces.txt
var embedded string

// Port is a PCI Express controller that a device tree switches on.
type Port struct {
	Domain int
	Use    string // what the board has there, by a comment in the tree; "" for unknown
}

// Tree is what the device tree of a board has.
type Tree struct {
	name     string
	Ports    []Port
	Ethernet int // interfaces of the processor itself
}

type table struct {
	domains map[string][]int // by SoC
	trees   []Tree
	names   []string // without their number
}

var load = sync.OnceValue(func() *table {
	t := &table{domains: map[string][]int{}}
	for line := range strings.Lines(embedded) {
		words := strings.Fields(line)
		switch words[0] {
		case "soc":
			for _, p := range ports(words[2:]) {
				t.domains[words[1]] = append(t.domains[words[1]], p.Domain)
			}
		case "tree":
			ethernet, _ := strconv.Atoi(words[2])
			t.trees = append(t.trees, Tree{words[1], ports(words[3:]), ethernet})
		case "bsp", "kernel":
			for _, name := range words[1:] {
				t.names = append(t.names, base(name))
			}
		}
	}
	slices.Sort(t.names)
	t.names = slices.Compact(t.names)
	return t
})

func ports(words []string) []Port {
	var out []Port
	for _, w := range words {
		domain, use, _ := strings.Cut(w, ":")
		n, _ := strconv.Atoi(domain)
		out = append(out, Port{n, strings.ReplaceAll(use, "_", " ")})
	}
	return out
}

// Domains lists the PCI domains of a processor's controllers; none where they are not known.
func Domains(soc string) []int { return load().domains[soc] }

// FindTree finds what is known about a device tree, by the name of its file: NVIDIA's trees of L4T
// R36 and later extend those of the kernel, and have their names with something after them. A tree
// of another SKU of the module on the same carrier board has the same ports.
func FindTree(file string) (Tree, bool) {
	for _, t := range load().trees {
		module := t.name[:strings.LastIndexByte(t.name, '-')+1]
		if strings.Contains(module, "+") && strings.HasPrefix(file, module) {
			return t, true
		}
	}
	return Tree{}, false
}

var predictable = lazyregexp.New(`^(?:en|wl|ww)(?:(?:P[0-9]+)?p[0-9]+s[0-9]+.*|x[0-9a-f*?]+|[osdv][0-9*?]+|(?:P[0-9]*)?\*)$`)

// IsPredictable reports whether systemd makes names of that form from the place of a device
// (systemd.net-naming-scheme(7)), and the kernel none.
func IsPredictable(name string) bool { return predictable.MatchString(name) }

var onPCI = lazyregexp.New(`^(?:en|wl|ww)(?:P([0-9]+))?p[0-9]+s[0-9]+`)

// DomainOf returns the PCI domain in a name that systemd made; domain 0 is not written.
func DomainOf(name string) (domain int, ok bool) {
	m := onPCI.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	domain, _ = strconv.Atoi(m[1])
	return domain, true
}

// base is a name without its number or pattern.
func base(name string) string { return strings.TrimRight(name, "0123456789*?") }

// given are names that programs and people usually give: bridges, tunnels, containers, renamed ports.
var given = []string{"lo", "br", "br-lan", "br-wan", "lan", "wan", "lan-", "wan-", "wifi", "ap", "mesh", "wg", "tun", "tap", "veth", "vcan", "vxcan", "docker", "br-", "virbr", "cni", "cni-podman", "podman", "lxcbr", "lxdbr", "flannel.", "vmnet", "tailscale", "zt", "ovs-br", "bat", "mgbe", "eqos", "uplink", "mgmt", "end"}

// IsKnown reports whether the kernel, the BSP, systemd or a usual program names an interface so. A
// pattern is known if it can match such a name.
func IsKnown(name string) bool {
	if IsPredictable(name) || vlan.MatchString(name) && IsKnown(name[:strings.LastIndexByte(name, '.')]) {
		return true
	}
	stem := base(name)
	matches := func(known string) bool {
		ok, err := path.Match(name, known+"0")
		return err == nil && ok
	}
	isGiven := func(known string) bool {
		return known == stem || strings.HasSuffix(known, "-") && strings.HasPrefix(name, known) || matches(known)
	}
	isOfDriver := func(known string) bool {
		return known == stem && driverNumber.MatchString(name[len(stem):]) || matches(known)
	}
	return slices.ContainsFunc(load().names, isOfDriver) || slices.ContainsFunc(given, isGiven) || matches("enP1p1s")
}

// driverNumber is what a driver writes after its name, or a pattern for it.
var driverNumber = lazyregexp.New(`^(?:0|[1-9][0-9]*|[0-9]*[*?][0-9*?]*)$`)

// vlan is the usual name of a VLAN: the interface and the number.
var vlan = lazyregexp.New(`^[^.]+\.[0-9]{1,4}$`)

// nameLetters is the length of a name from which one wrong letter is a slip: products give names of
// their own, such as lan0.
const nameLetters = 5

// Nearest returns the name that was probably meant by one that differs from it by a slip; "" where
// there is none.
func Nearest(name string) string {
	stem := base(name)
	if slices.Contains(load().names, stem) {
		return ""
	}
	for _, known := range load().names {
		if spelling.IsSlip(stem, known, nameLetters) {
			return known + name[len(stem):]
		}
	}
	return ""
}
