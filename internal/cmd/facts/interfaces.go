package main

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/facts/release"
)

var (
	comments    = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	nodeHeader  = regexp.MustCompile(`^(?:([A-Za-z0-9_]+)\s*:\s*)?(?:&\{?([A-Za-z0-9_/@,+.-]+)\}?|([A-Za-z0-9,._+/@-]+))$`)
	domainOf    = regexp.MustCompile(`^linux,pci-domain\s*=\s*<\s*(\w+)\s*>$`)
	includeLine = regexp.MustCompile(`(?m)^#include "([^"]+)"$`)
	macroLines  = regexp.MustCompile(`(?m)^#(?:include|define|if|ifdef|ifndef|else|endif|undef)\b.*$`)
	portComment = regexp.MustCompile(`/\*\s*C\d+\s*-\s*([^*]+?)\s*\*/\s*(pcie@[0-9a-f]+)\s*\{`)
	// Names that drivers give to the interfaces they register.
	driverNames = regexp.MustCompile(`(?:alloc_netdev\w*|alloc_candev\w*|->name\b|dev_alloc_name|ieee80211_if_add|alloc_hdlcdev)[^;"]*"([a-z][a-z0-9]*?)%[du]"`)
	// A name that is written before the interface is allocated, in a file that allocates one.
	writtenNames = regexp.MustCompile(`(?:\bsn?printf\((?:p\.)?(?:if)?name(?:buf)?,(?: sizeof\(\w+\),)?\s*|\b(?:if)?name(?:\[\])? = |#define \w*(?:DEV_NAME|IFACE_NAME_TEMPLATE)\s+|(?:add_virtual_intf|dev_change_net_namespace)\([^"]*)"([a-z][a-z0-9]*?)%[du]"`)
	allocates    = regexp.MustCompile(`\balloc_netdev|\bregister_netdev|\balloc_etherdev|hdlcdrv_register|add_virtual_intf|change_net_namespace`)
	// rtnl_create_link names an interface after its kind.
	linkKinds  = regexp.MustCompile(`struct rtnl_link_ops \w+[^;]*?\.kind\s*=\s*"([a-z][a-z0-9]*)"`)
	matchNames = regexp.MustCompile(`(?m)^Name=(.+)$`)
)

// node is what a device tree has about one node.
type node struct {
	status, domain, port string
}

// deviceTree is a device tree with its includes.
type deviceTree struct {
	nodes map[string]*node // by name and unit address
}

// read adds a file of a device tree, and those that it includes, to the nodes.
func (t *deviceTree) read(files map[string]string, name string) {
	text := files[name]
	for _, m := range portComment.FindAllStringSubmatch(text, -1) {
		t.at(m[2]).port = m[1]
	}
	text = comments.ReplaceAllString(text, "")
	for _, m := range includeLine.FindAllStringSubmatch(text, -1) {
		t.read(files, path.Join(path.Dir(name), m[1]))
	}
	t.parse(macroLines.ReplaceAllString(text, ""))
}

func (t *deviceTree) at(name string) *node {
	if t.nodes[name] == nil {
		t.nodes[name] = &node{}
	}
	return t.nodes[name]
}

// parse reads nodes and the properties that matter. Strings of a device tree have no braces.
func (t *deviceTree) parse(text string) {
	var open []string
	start := 0
	for i, c := range text {
		statement := strings.TrimSpace(text[start:i])
		switch c {
		case '{':
			name := ""
			if m := nodeHeader.FindStringSubmatch(statement); m != nil {
				name = path.Base(m[2] + m[3])
			}
			open = append(open, name)
		case '}':
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		case ';':
			if len(open) > 0 {
				t.property(open[len(open)-1], statement)
			}
		default:
			continue
		}
		start = i + 1
	}
}

func (t *deviceTree) property(name, statement string) {
	if m := domainOf.FindStringSubmatch(statement); m != nil {
		t.at(name).domain = m[1]
	}
	if value, ok := strings.CutPrefix(statement, "status = "); ok {
		t.at(name).status = strings.Trim(value, `"`)
	}
}

// ports lists the domains of the PCI Express controllers that are on, each with what the board has
// there, and the interfaces of the processor itself that are on.
func (t *deviceTree) ports() (ports []string, ethernet int) {
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		n := t.nodes[name]
		switch {
		case n.status != "okay":
		case strings.HasPrefix(name, "pcie@") && n.domain != "":
			ports = append(ports, strings.TrimSuffix(n.domain+":"+strings.ReplaceAll(n.port, " ", "_"), ":"))
		case strings.HasPrefix(name, "ethernet@"):
			ethernet++
		}
	}
	slices.SortFunc(ports, func(a, b string) int { return number(a) - number(b) })
	return ports, ethernet
}

func number(port string) int {
	n, _ := strconv.Atoi(strings.SplitN(port, ":", 2)[0])
	return n
}

// writeInterfaces writes what decides the names of network interfaces: the domains of PCI Express
// controllers, the names that drivers of the kernel give, and those of the BSP's own interfaces.
func writeInterfaces(sources string, metaTegra repository, out string) error {
	newest := linux.Source{}
	for _, s := range linux.Sources() {
		if !s.OutOfTree {
			newest = s
		}
	}
	kernel := repository(folder(sources, newest.Repository))
	var text strings.Builder
	fmt.Fprintf(&text, "source %s %s\n", newest.Repository, newest.Commit)
	bsp, err := bspInterfaces(metaTegra, &text)
	if err != nil {
		return err
	}
	const trees = "arch/arm64/boot/dts/nvidia/"
	files, err := kernel.readFiles(newest.Commit, func(name string) bool {
		driver := strings.HasSuffix(name, ".c") && (strings.HasPrefix(name, "drivers/net/") || strings.HasPrefix(name, "net/"))
		return driver || strings.HasPrefix(name, trees)
	})
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		base, isTree := strings.CutPrefix(file, trees)
		tree := deviceTree{map[string]*node{}}
		switch {
		case !isTree:
			for _, re := range []*regexp.Regexp{driverNames, linkKinds} {
				for _, m := range re.FindAllStringSubmatch(files[file], -1) {
					names[m[1]] = true
				}
			}
			if allocates.MatchString(files[file]) {
				for _, m := range writtenNames.FindAllStringSubmatch(files[file], -1) {
					names[m[1]] = true
				}
			}
		case strings.HasSuffix(base, ".dtsi") && !strings.Contains(base, "-"):
			tree.read(files, file)
			if domains := tree.domains(); domains != nil {
				fmt.Fprintf(&text, "soc %s %s\n", strings.TrimSuffix(base, ".dtsi"), strings.Join(domains, " "))
			}
		case strings.HasSuffix(base, ".dts"):
			tree.read(files, file)
			if ports, ethernet := tree.ports(); ports != nil {
				fmt.Fprintf(&text, "tree %s %d %s\n", strings.TrimSuffix(base, ".dts"), ethernet, strings.Join(ports, " "))
			}
		}
	}
	fmt.Fprintf(&text, "bsp %s\nkernel %s\n", strings.Join(bsp, " "), strings.Join(slices.Sorted(maps.Keys(names)), " "))
	return writeFile(out, []byte(text.String()))
}

// domains lists the domains of all PCI Express controllers.
func (t *deviceTree) domains() []string {
	var all []string
	for _, n := range t.nodes {
		if n.domain != "" {
			all = append(all, n.domain)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return number(a) - number(b) })
	return slices.Compact(all)
}

// bspInterfaces lists the names in the networkd files of meta-tegra, of every release.
func bspInterfaces(metaTegra repository, text *strings.Builder) ([]string, error) {
	names := map[string]bool{}
	for _, name := range release.Names() {
		rel, _ := release.Lookup(name)
		commit := ""
		for _, c := range rel.Checkouts() {
			if c.Name == "meta-tegra" {
				commit = c.Commit
			}
		}
		files, err := metaTegra.readFiles(commit, func(name string) bool {
			return slices.Contains([]string{".netdev", ".network", ".link"}, path.Ext(name))
		})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(text, "source OE4T/meta-tegra %s\n", commit)
		for _, file := range files {
			for _, m := range matchNames.FindAllStringSubmatch(file, -1) {
				for name := range strings.FieldsSeq(m[1]) {
					names[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}
