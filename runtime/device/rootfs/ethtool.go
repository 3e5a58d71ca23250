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

// ethtoolFeature is a feature of an interface, under the name of the kernel:
//
//	/sys/class/net/eth0/ethtool/features/rx-gro
type ethtoolFeature struct{ iface, name string }

// Commands and limits of include/uapi/linux/ethtool.h.
const (
	ethtoolGStrings    = 0x1b
	ethtoolGSSetInfo   = 0x37
	ethtoolGFeatures   = 0x3a
	ethtoolSFeatures   = 0x3b
	ethtoolSetFeatures = 4  // ETH_SS_FEATURES
	ethtoolNameLength  = 32 // ETH_GSTRING_LEN
	maxFeatures        = 512
)

// features reads the names of the features, and the words "available, requested, active,
// never changed" of each 32 of them.
func (n ethtoolFeature) features() (bit int, blocks []uint32, err error) {
	// cmd, reserved, a mask of 64 bits, and a count for each of its bits
	info := make([]uint32, 5)
	info[0], info[2] = ethtoolGSSetInfo, 1<<ethtoolSetFeatures
	if err := ioctlEthtool(n.iface, info); err != nil {
		return 0, nil, err
	}
	count := int(info[4])
	if info[2] == 0 || count == 0 || count > maxFeatures {
		return 0, nil, unix.EOPNOTSUPP
	}
	names := make([]uint32, 3+count*ethtoolNameLength/4)
	names[0], names[1], names[2] = ethtoolGStrings, ethtoolSetFeatures, uint32(count)
	if err := ioctlEthtool(n.iface, names); err != nil {
		return 0, nil, err
	}
	text := unsafe.Slice((*byte)(unsafe.Pointer(&names[3])), count*ethtoolNameLength)
	bit = -1
	for i := range count {
		name := text[i*ethtoolNameLength : (i+1)*ethtoolNameLength]
		if unix.ByteSliceToString(name) == n.name {
			bit = i
		}
	}
	if bit < 0 {
		return 0, nil, fs.ErrNotExist
	}
	words := make([]uint32, 2+4*((count+31)/32))
	words[0], words[1] = ethtoolGFeatures, uint32((count+31)/32)
	if err := ioctlEthtool(n.iface, words); err != nil {
		return 0, nil, err
	}
	return bit, words[2:], nil
}

func (n ethtoolFeature) read(*Root) (string, error) {
	bit, blocks, err := n.features()
	if errors.Is(err, unix.ENODEV) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return "", err
	}
	return strconv.FormatUint(uint64(blocks[4*(bit/32)+2]>>(bit%32)&1), 10), nil
}

// write asks for a feature to be on or off. The kernel can refuse, and features can depend on
// each other, so the value is read back.
func (n ethtoolFeature) write(_ *Root, value string) error {
	if value != "0" && value != "1" {
		return unix.EINVAL
	}
	bit, blocks, err := n.features()
	if err != nil {
		return err
	}
	block, mask := blocks[4*(bit/32):], uint32(1)<<(bit%32)
	switch on := value == "1"; {
	case (block[2]&mask != 0) == on && (block[1]&mask != 0) == on:
		return nil
	case block[3]&mask != 0 || on && block[0]&mask == 0:
		return unix.EOPNOTSUPP // fixed by the driver
	}
	words := make([]uint32, 2+len(blocks)/2) // "valid, requested" of each 32
	words[0], words[1] = ethtoolSFeatures, uint32(len(blocks)/4)
	words[2+2*(bit/32)] = mask
	if value == "1" {
		words[3+2*(bit/32)] = mask
	}
	return ioctlEthtool(n.iface, words)
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
