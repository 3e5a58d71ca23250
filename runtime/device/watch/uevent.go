package watch

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Uevent is the kernel's report of a change of a device (lib/kobject_uevent.c).
type Uevent struct {
	Action    string // add, remove, change, online, offline, bind, unbind, move
	DevPath   string // below /sys
	Subsystem string
}

// ParseUevent parses one datagram: "add@/devices/…" and KEY=value strings, each ended by a
// zero byte. It refuses udevd's own messages, which have another format.
func ParseUevent(b []byte) (Uevent, bool) {
	head, rest, ok := bytes.Cut(b, []byte{0})
	action, devpath, ok2 := strings.Cut(string(head), "@")
	if !ok || !ok2 || action == "" || !strings.HasPrefix(devpath, "/") {
		return Uevent{}, false
	}
	u := Uevent{Action: action, DevPath: devpath}
	for pair := range bytes.SplitSeq(rest, []byte{0}) {
		if v, ok := bytes.CutPrefix(pair, []byte("SUBSYSTEM=")); ok {
			u.Subsystem = string(v)
		}
	}
	return u, true
}

// affectsNodes reports whether the event may reset a node to its default or add a missing
// node. At every "change" of a disk, udev rules write its settings, and a re-probe resets
// max_sectors_kb.
func (u Uevent) affectsNodes() bool {
	switch u.Action {
	case "add", "remove", "online", "offline", "bind", "unbind", "move":
		return true
	case "change":
		return u.Subsystem == "block"
	}
	return false
}

// describe returns a text for the user, "" for events that accompany a device's.
func (u Uevent) describe() string {
	name := path.Base(u.DevPath)
	if u.Subsystem == "queues" || u.Subsystem == "bdi" {
		return ""
	}
	switch u.Action {
	case "online":
		return name + " back online"
	case "offline":
		return name + " offline"
	case "add":
		if u.Subsystem == "module" {
			return "module " + name + " loaded"
		}
		return name + " added"
	case "remove":
		return name + " removed"
	case "bind":
		return name + " bound to a driver"
	case "unbind":
		return name + " without its driver"
	}
	return u.Action + " of " + name
}

func openUevents() (*netlink, error) {
	// Group 1 is the kernel's; udevd sends to group 2.
	n, err := openNetlink(unix.NETLINK_KOBJECT_UEVENT, 1)
	if err != nil {
		return nil, fmt.Errorf("listen for uevents: %w", err)
	}
	return n, nil
}
