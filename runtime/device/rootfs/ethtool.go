package rootfs

import (
	"errors"
	"io/fs"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A network driver's rings, interrupt coalescing and channels:
//
//	/sys/class/net/eth0/ethtool/ring/rx
//	/sys/class/net/eth0/ethtool/coalesce/rx-usecs
//	/sys/class/net/eth0/ethtool/channels/combined
//
// They are read and written by ioctl (include/uapi/linux/ethtool.h), which L4T R32's kernel
// 4.9 has too. The netlink family of 5.6 is served by the same code.

// ethtoolKnob is a field of one of ethtool's structures, which consist of 32-bit words with
// the command first.
type ethtoolKnob struct {
	get, set uint32
	words    int // of the structure
	field    int // index of the word
	maximum  int // index of the word with the highest value, 0: none
}

// lookupEthtool returns a field of ethtool_ringparam, ethtool_coalesce or
// ethtool_channels.
func lookupEthtool(name string) (ethtoolKnob, bool) {
	ring := func(field, most int) ethtoolKnob { return ethtoolKnob{0x10, 0x11, 9, field, most} }
	coalesce := func(field int) ethtoolKnob { return ethtoolKnob{0x0e, 0x0f, 23, field, 0} }
	channels := func(field, most int) ethtoolKnob { return ethtoolKnob{0x3c, 0x3d, 9, field, most} }
	k, ok := map[string]ethtoolKnob{
		"ring/rx":              ring(5, 1),
		"ring/tx":              ring(8, 4),
		"coalesce/rx-usecs":    coalesce(1),
		"coalesce/rx-frames":   coalesce(2),
		"coalesce/tx-usecs":    coalesce(5),
		"coalesce/tx-frames":   coalesce(6),
		"coalesce/adaptive-rx": coalesce(10),
		"coalesce/adaptive-tx": coalesce(11),
		"channels/rx":          channels(5, 1),
		"channels/tx":          channels(6, 2),
		"channels/combined":    channels(8, 4),
	}[name]
	return k, ok
}

// ethtoolNode is a knob of an interface.
type ethtoolNode struct {
	iface string
	knob  ethtoolKnob
}

func (n ethtoolNode) read(*Root) (string, error) {
	words, err := n.knob.query(n.iface)
	if err != nil {
		return "", err
	}
	return strconv.FormatUint(uint64(words[n.knob.field]), 10), nil
}

// write changes one field of the structure and keeps the others.
func (n ethtoolNode) write(_ *Root, value string) error {
	k := n.knob
	v, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return unix.EINVAL
	}
	words, err := k.query(n.iface)
	if err != nil {
		return err
	}
	if k.maximum > 0 && v > uint64(words[k.maximum]) {
		return unix.ERANGE
	}
	words[0], words[k.field] = k.set, uint32(v)
	return ioctlEthtool(n.iface, words)
}

func (k ethtoolKnob) query(iface string) ([]uint32, error) {
	words := make([]uint32, k.words)
	words[0] = k.get
	err := ioctlEthtool(iface, words)
	// A removed interface is an absent node.
	if errors.Is(err, unix.ENODEV) {
		err = fs.ErrNotExist
	}
	return words, err
}

// ioctlEthtool passes a structure to the driver of an interface.
func ioctlEthtool(iface string, words []uint32) error {
	if len(iface) >= unix.IFNAMSIZ {
		return unix.ENODEV
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	// struct ifreq: the name, and a union of 24 bytes that starts with a pointer.
	var request struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(request.name[:], iface)
	request.data = unsafe.Pointer(&words[0])
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(words)
	if errno != 0 {
		return errno
	}
	return nil
}
