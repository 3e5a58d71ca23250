package watch

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// message returns a netlink message.
func message(typ uint16, body ...[]byte) []byte {
	data := slices.Concat(body...)
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(data)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	return append(append(b, make([]byte, 10)...), data...)
}

func attr(typ uint16, value ...[]byte) []byte {
	data := slices.Concat(value...)
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(data)))
	b = append(binary.NativeEndian.AppendUint16(b, typ), data...)
	return append(b, make([]byte, (4-len(b)%4)%4)...)
}

func link(typ uint16, index, flags uint32, name string) []byte {
	info := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(info[4:], index)
	binary.NativeEndian.PutUint32(info[8:], flags)
	return message(typ, info, attr(unix.IFLA_IFNAME, []byte(name+"\x00")))
}

func TestLinkEvents(t *testing.T) {
	n := &netlink{links: map[int32]netLink{}}
	for _, c := range []struct {
		in   []byte
		want []string
	}{
		{link(unix.RTM_NEWLINK, 2, 0, "eth0"), []string{"eth0 added"}},
		{link(unix.RTM_NEWLINK, 2, 0, "eth0"), nil},
		{link(unix.RTM_NEWLINK, 2, unix.IFF_RUNNING, "eth0"), []string{"eth0 up"}},
		{link(unix.RTM_NEWLINK, 2, unix.IFF_RUNNING, "lan0"), []string{"lan0 renamed"}},
		{link(unix.RTM_NEWLINK, 2, 0, "lan0"), nil},
		{link(unix.RTM_DELLINK, 2, 0, "lan0"), nil},
		{link(unix.RTM_NEWLINK, 2, 0, "lan0"), []string{"lan0 added"}},
		{link(unix.RTM_NEWLINK, 3, 0, ""), nil},
		{[]byte{1, 2, 3}, nil},
	} {
		if got := n.describeLinks(c.in); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

const family = 21

func notification(name string) []byte {
	return message(family, []byte{16, 1, 0, 0}, attr(ethtoolHeader|unix.NLA_F_NESTED, attr(1, []byte{2, 0, 0, 0}), attr(ethtoolDevName, []byte(name+"\x00"))))
}

func TestEthtoolNotificationHasItsInterface(t *testing.T) {
	if got := parseEthtool(notification("eth0"), family); !slices.Equal(got, []string{"eth0"}) {
		t.Errorf("%q", got)
	}
	for _, b := range [][]byte{notification("../lo"), notification(""), message(family + 1), message(family, []byte{1})} {
		if got := parseEthtool(b, family); got != nil {
			t.Errorf("%q", got)
		}
	}
}

func familyAnswer() []byte {
	group := func(name string, id byte) []byte {
		return attr(1, attr(unix.CTRL_ATTR_MCAST_GRP_NAME, []byte(name+"\x00")), attr(unix.CTRL_ATTR_MCAST_GRP_ID, []byte{id, 0, 0, 0}))
	}
	return message(unix.GENL_ID_CTRL, []byte{1, 2, 0, 0}, attr(unix.CTRL_ATTR_FAMILY_ID, []byte{family, 0}),
		attr(unix.CTRL_ATTR_MCAST_GROUPS, group("other", 3), group(monitorGroup, 4)))
}

// The answers of this machine's kernel are parsed too.
func TestNetlinkGroupIDs(t *testing.T) {
	if f, g := parseFamily(familyAnswer()); f != family || g != 4 {
		t.Errorf("%d %d", f, g)
	}
	links, err := openLinks()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(links.fd) }()
	if !slices.ContainsFunc(slices.Collect(maps.Values(links.links)), func(l netLink) bool { return l.name == "lo" }) {
		t.Errorf("no lo: %+v", links.links)
	}
	drivers, err := openEthtool()
	if err != nil {
		t.Skipf("this kernel has no netlink family for drivers' settings: %v", err)
	}
	_ = unix.Close(drivers.fd)
}

func FuzzNetlink(f *testing.F) {
	f.Add(link(unix.RTM_NEWLINK, 2, 0, "eth0"))
	f.Add(notification("eth0"))
	f.Add(familyAnswer())
	f.Fuzz(func(_ *testing.T, b []byte) {
		n := &netlink{links: map[int32]netLink{}}
		n.describeLinks(b)
		parseEthtool(b, family)
		parseFamily(b)
	})
}

func FuzzInotify(f *testing.F) {
	event := binary.NativeEndian.AppendUint32(nil, 1) // wd, mask, cookie, length of the name
	for _, n := range []uint32{unix.IN_CREATE | unix.IN_ISDIR, 0, 16} {
		event = binary.NativeEndian.AppendUint32(event, n)
	}
	event = append(event, "vision.service\x00\x00"...)
	f.Add(event)
	if got := parseInotify(append(event, event...)); len(got) != 2 || got[1].wd != 1 || got[1].name != "vision.service" || got[1].mask&unix.IN_CREATE == 0 {
		f.Errorf("%+v", got)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := parseInotify(b); len(got) > len(b)/unix.SizeofInotifyEvent {
			t.Errorf("%d events in %d bytes", len(got), len(b))
		}
	})
}

func FuzzFanotify(f *testing.F) {
	event := make([]byte, 24)
	binary.NativeEndian.PutUint32(event, 24)
	event[4] = unix.FANOTIFY_METADATA_VERSION
	f.Add(event)
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := parseFanotify(b); len(got) > len(b)/24 {
			t.Errorf("%d events in %d bytes", len(got), len(b))
		}
	})
}
