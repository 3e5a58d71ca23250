package watch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// The kernel reports devices and two changes of network interfaces by netlink. One is an
// interface that is added, renamed or brought up (rtnetlink(7)), after which many drivers have
// their defaults again. The other is a change of rings, coalescing or channels (the monitor
// group of the generic family "ethtool", Documentation/networking/ethtool-netlink.rst).

// netlink is a socket for uevents or for one of these changes.
type netlink struct {
	fd  int
	buf []byte

	family uint16            // of ethtool's messages
	links  map[int32]netLink // interfaces by index
}

// netLink is an interface.
type netLink struct {
	name string
	up   bool
}

// needsNetwork reports whether a plan has nodes of network interfaces.
func needsNetwork(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Settings, func(s plan.Setting) bool {
		return s.Select.Class == rootfs.ClassNet || strings.Contains(s.Select.Path, "/net/")
	})
}

// needsInterrupts reports whether a plan has nodes of interrupts. Many drivers request those
// of a network interface when it is brought up, and the kernel does not report that.
func needsInterrupts(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Settings, func(s plan.Setting) bool { return s.Select.Class == rootfs.ClassIRQ })
}

func openNetlink(protocol int, groups uint32) (*netlink, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &netlink{fd: fd, buf: make([]byte, 2*os.Getpagesize()), links: map[int32]netLink{}}, nil
}

// openLinks subscribes to changes of interfaces and lists the existing ones.
func openLinks() (*netlink, error) {
	n, err := openNetlink(unix.NETLINK_ROUTE, 1<<(unix.RTNLGRP_LINK-1))
	if err != nil {
		return nil, fmt.Errorf("listen for network interfaces: %w", err)
	}
	b, err := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC)
	if err != nil {
		_ = unix.Close(n.fd)
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	n.describeLinks(b)
	return n, nil
}

// openEthtool subscribes to changes of drivers' settings, which kernels report from 5.6 on.
func openEthtool() (*netlink, error) {
	n, err := openNetlink(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return nil, fmt.Errorf("listen for network drivers: %w", err)
	}
	group, err := n.ethtoolGroup()
	if err == nil {
		err = unix.SetsockoptInt(n.fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group)
	}
	if err != nil {
		_ = unix.Close(n.fd)
		return nil, fmt.Errorf("listen for network drivers: %w", err)
	}
	return n, nil
}

// Of include/uapi/linux/genetlink.h and ethtool_netlink.h.
const (
	genlHeader     = 4
	monitorGroup   = "monitor"
	ethtoolHeader  = 1 // ETHTOOL_A_*_HEADER of every message
	ethtoolDevName = 2 // ETHTOOL_A_HEADER_DEV_NAME
)

// ethtoolGroup queries the numbers of the family "ethtool" and of its monitor group.
func (n *netlink) ethtoolGroup() (group int, err error) {
	name := append([]byte(unix.ETHTOOL_GENL_NAME), 0)
	attr := append(binary.NativeEndian.AppendUint16(binary.NativeEndian.AppendUint16(nil, uint16(4+len(name))), unix.CTRL_ATTR_FAMILY_NAME), name...)
	request := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+genlHeader+len(attr)))
	request = binary.NativeEndian.AppendUint16(request, unix.GENL_ID_CTRL)
	request = binary.NativeEndian.AppendUint16(request, unix.NLM_F_REQUEST)
	request = append(request, make([]byte, 8)...) // sequence, port
	request = append(request, unix.CTRL_CMD_GETFAMILY, 1, 0, 0)
	request = append(request, attr...)
	if err := unix.Sendto(n.fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	// The kernel answers a request before its sendto returns.
	size, _, err := unix.Recvfrom(n.fd, n.buf, 0)
	if err != nil {
		return 0, err
	}
	n.family, group = parseFamily(n.buf[:size])
	if n.family == 0 || group == 0 {
		return 0, errors.New("the kernel does not report changes of drivers' settings")
	}
	return group, nil
}

// parseFamily parses the answer to CTRL_CMD_GETFAMILY. Missing numbers are 0.
func parseFamily(b []byte) (family uint16, group int) {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return 0, 0
	}
	for _, m := range messages {
		if m.Header.Type != unix.GENL_ID_CTRL || len(m.Data) < genlHeader {
			continue
		}
		eachAttribute(m.Data[genlHeader:], func(typ uint16, value []byte) {
			switch {
			case typ == unix.CTRL_ATTR_FAMILY_ID && len(value) >= 2:
				family = binary.NativeEndian.Uint16(value)
			case typ == unix.CTRL_ATTR_MCAST_GROUPS:
				eachAttribute(value, func(_ uint16, one []byte) {
					name, id := "", 0
					eachAttribute(one, func(typ uint16, value []byte) {
						switch {
						case typ == unix.CTRL_ATTR_MCAST_GRP_NAME:
							name = cString(value)
						case typ == unix.CTRL_ATTR_MCAST_GRP_ID && len(value) >= 4:
							id = int(binary.NativeEndian.Uint32(value))
						}
					})
					if name == monitorGroup {
						group = id
					}
				})
			}
		})
	}
	return family, group
}

// eachAttribute calls do with each attribute of a message (struct nlattr: length and type
// of 16 bits, and the value, padded to four bytes).
func eachAttribute(b []byte, do func(typ uint16, value []byte)) {
	for len(b) >= 4 {
		n := int(binary.NativeEndian.Uint16(b))
		if n < 4 || n > len(b) {
			return
		}
		do(binary.NativeEndian.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), b[4:n])
		b = b[min((n+3)&^3, len(b)):]
	}
}

// cString returns a value up to its zero byte.
func cString(value []byte) string {
	value, _, _ = bytes.Cut(value, []byte{0})
	return string(value)
}

// parseEthtool returns the interfaces whose change of settings a datagram reports.
func parseEthtool(b []byte, family uint16) []string {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return nil
	}
	var out []string
	for _, m := range messages {
		if m.Header.Type != family || len(m.Data) < genlHeader {
			continue
		}
		eachAttribute(m.Data[genlHeader:], func(typ uint16, value []byte) {
			if typ != ethtoolHeader {
				return
			}
			eachAttribute(value, func(typ uint16, value []byte) {
				if name := cString(value); typ == ethtoolDevName && name != "" && !strings.Contains(name, "/") {
					out = append(out, name)
				}
			})
		})
	}
	return out
}

// describeLinks parses a datagram of links and returns a text for each interface that was
// added, renamed or brought up.
func (n *netlink) describeLinks(b []byte) []string {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return nil
	}
	var out []string
	for _, m := range messages {
		if len(m.Data) < unix.SizeofIfInfomsg {
			continue
		}
		index := int32(binary.NativeEndian.Uint32(m.Data[4:]))
		if m.Header.Type == unix.RTM_DELLINK {
			delete(n.links, index)
			continue
		}
		if m.Header.Type != unix.RTM_NEWLINK {
			continue
		}
		now := netLink{up: binary.NativeEndian.Uint32(m.Data[8:])&unix.IFF_RUNNING != 0}
		eachAttribute(m.Data[unix.SizeofIfInfomsg:], func(typ uint16, value []byte) {
			if typ == unix.IFLA_IFNAME {
				now.name = cString(value)
			}
		})
		switch was, known := n.links[index]; {
		case now.name == "":
			continue
		case !known:
			out = append(out, now.name+" added")
		case was.name != now.name:
			out = append(out, now.name+" renamed")
		case now.up && !was.up:
			out = append(out, now.name+" up")
		}
		n.links[index] = now
	}
	return out
}

// read calls do with each queued datagram of the kernel, up to a bounded number. It reports
// whether the queue has overflowed.
func (n *netlink) read(do func([]byte)) (lost bool) {
	for range 256 {
		size, from, err := unix.Recvfrom(n.fd, n.buf, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOBUFS):
			lost = true
			continue
		case err != nil:
			return lost
		}
		// Any process may send to a netlink address; port 0 is the kernel.
		if nl, ok := from.(*unix.SockaddrNetlink); ok && nl.Pid == 0 {
			do(n.buf[:size])
		}
	}
	return lost
}
