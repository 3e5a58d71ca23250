package devicetest

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"golang.org/x/sys/unix"
)

// errKilled is what everything answers after the process "died".
var errKilled = errors.New("killed")

// Kernel makes a synthetic tree answer like a kernel, as far as tests need it,
// and lets them break it: fail a node, or die at any step that changes something.
type Kernel struct {
	rootfs.Device

	lock sync.Mutex // devices are written side by side

	// ReadFault and WriteFault are answers by path.
	ReadFault, WriteFault map[string]error

	// Hung are nodes that do not answer before their channel is closed.
	Hung map[string]chan struct{}

	// Quirk, when set, may replace the value that a write leaves behind.
	Quirk func(name, value string) string

	// Clock counts changes: writes to the kernel and to yoctuned's state. At
	// change number KillAt the process dies: before it, or, with Torn, in its
	// middle (a kernel write is done, an append only half).
	Clock  int
	KillAt int // 0: never
	Torn   bool

	// Writes lists the writes that reached the kernel, "path=value".
	Writes []string
}

// NewKernel wraps a tree.
func NewKernel(dev rootfs.Device) *Kernel {
	return &Kernel{Device: dev, ReadFault: map[string]error{}, WriteFault: map[string]error{}}
}

func (k *Kernel) dead() bool { return k.KillAt > 0 && k.Clock >= k.KillAt }

// step counts a change and reports whether it still happens, wholly or in half.
func (k *Kernel) step() (whole, half bool) {
	if k.dead() {
		return false, false
	}
	k.Clock++
	return !k.dead(), k.dead() && k.Torn
}

// Read implements [rootfs.FS].
func (k *Kernel) Read(name string) (rootfs.Content, error) {
	if c := k.Hung[name]; c != nil {
		<-c // without the lock: the others answer
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	if k.dead() {
		return rootfs.Content{}, errKilled
	}
	if err := k.ReadFault[name]; err != nil {
		return rootfs.Content{}, &rootfs.PathError{Op: "read", Path: name, Err: err}
	}
	return k.Device.Read(name)
}

// Write implements [rootfs.FS].
func (k *Kernel) Write(name, value string) error {
	k.lock.Lock()
	defer k.lock.Unlock()
	whole, half := k.step()
	if !whole && !half {
		return errKilled
	}
	if err := k.WriteFault[name]; err != nil {
		return &rootfs.PathError{Op: "write", Path: name, Err: err}
	}
	k.Writes = append(k.Writes, name+"="+value)
	err := k.behave(name, value)
	if half {
		return errKilled
	}
	return err
}

func (k *Kernel) behave(name, value string) error {
	refuse := func(e error) error { return &rootfs.PathError{Op: "write", Path: name, Err: e} }
	old, err := k.Device.Read(name)
	if err != nil {
		return err
	}
	if strings.Contains(old.Text, "[") {
		words := strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(old.Text))
		i := slices.Index(words, value)
		if i < 0 {
			return refuse(unix.EINVAL)
		}
		words[i] = "[" + value + "]"
		value = strings.Join(words, " ")
	}
	sibling := func(base string) string { return path.Dir(name) + "/" + base }
	switch base := path.Base(name); base {
	case "drop_caches", "compact_memory": // actions, which leave no value
		if k.Quirk != nil {
			k.Quirk(name, value)
		}
		return nil
	case "swappiness":
		if n, err := strconv.ParseInt(value, 0, 64); err != nil || n < 0 || n > 200 {
			return refuse(unix.EINVAL)
		} else {
			value = strconv.FormatInt(n, 10) // 0x2a reads back as 42
		}
	case "dirty_bytes", "dirty_background_bytes":
		if value == "0" {
			return refuse(unix.EINVAL)
		}
		if err := k.Device.Write(sibling(strings.Replace(base, "bytes", "ratio", 1)), "0\n"); err != nil {
			return err
		}
	case "dirty_ratio", "dirty_background_ratio":
		if err := k.Device.Write(sibling(strings.Replace(base, "ratio", "bytes", 1)), "0\n"); err != nil {
			return err
		}
	case "scheduler":
		if err := k.Device.Write(sibling("nr_requests"), "64\n"); err != nil {
			return err
		}
	case "read_ahead_kb":
		n, err := strconv.Atoi(value)
		if err != nil {
			return refuse(unix.EINVAL)
		}
		value = strconv.Itoa(n / 4 * 4) // whole pages
	case "scaling_min_freq", "scaling_max_freq":
		other := strings.NewReplacer("min", "max", "max", "min").Replace(base)
		c, err := k.Device.Read(sibling(other))
		if err != nil {
			return err
		}
		a, _ := strconv.Atoi(value)
		b, _ := strconv.Atoi(strings.TrimSpace(c.Text))
		if base == "scaling_min_freq" && a > b || base == "scaling_max_freq" && a < b {
			return refuse(unix.EINVAL)
		}
	}
	if k.Quirk != nil {
		value = k.Quirk(name, value)
	}
	return k.Device.Write(name, value+"\n")
}

// ReadState implements [rootfs.State].
func (k *Kernel) ReadState(name string) ([]byte, error) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if k.dead() {
		return nil, errKilled
	}
	return k.Device.ReadState(name)
}

// WriteState implements [rootfs.State].
func (k *Kernel) WriteState(name string, data []byte) error {
	k.lock.Lock()
	defer k.lock.Unlock()
	if whole, _ := k.step(); !whole { // a rename has no middle
		return errKilled
	}
	return k.Device.WriteState(name, data)
}

// AppendState implements [rootfs.State].
func (k *Kernel) AppendState(name string, data []byte) error {
	k.lock.Lock()
	defer k.lock.Unlock()
	whole, half := k.step()
	if half {
		_ = k.Device.AppendState(name, data[:len(data)/2])
	}
	if !whole {
		return errKilled
	}
	return k.Device.AppendState(name, data)
}

// RemoveState implements [rootfs.State].
func (k *Kernel) RemoveState(name string) error {
	k.lock.Lock()
	defer k.lock.Unlock()
	if whole, _ := k.step(); !whole {
		return errKilled
	}
	return k.Device.RemoveState(name)
}
