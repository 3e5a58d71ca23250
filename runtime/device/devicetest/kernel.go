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

// errKilled is returned by all calls after the process was killed.
var errKilled = errors.New("killed")

// Kernel imitates a kernel's behaviour on a synthetic tree, as far as tests need it. Tests can
// inject errors into it, and kill the process at any change.
type Kernel struct {
	rootfs.Device

	lock sync.Mutex // devices are written in parallel

	// ReadFault and WriteFault are errors by path.
	ReadFault, WriteFault map[string]error

	// Hung has the nodes whose read blocks until the channel is closed.
	Hung map[string]chan struct{}

	// Quirk, if set, returns the value that a node has after a write.
	Quirk func(name, value string) string

	// Clock counts changes: writes to the kernel and to yoctuned's state. The process is
	// killed at change number KillAt: before the change or, with Torn, during it. A torn
	// kernel write is complete, a torn append is half done.
	Clock  int
	KillAt int // 0: never
	Torn   bool

	// Writes lists the writes that reached the kernel, "path=value".
	Writes []string
}

// NewKernel returns a kernel on a tree.
func NewKernel(dev rootfs.Device) *Kernel {
	return &Kernel{Device: dev, ReadFault: map[string]error{}, WriteFault: map[string]error{}}
}

func (k *Kernel) isKilled() bool { return k.KillAt > 0 && k.Clock >= k.KillAt }

// step counts a change and reports whether it is made, completely or by half.
func (k *Kernel) step() (whole, half bool) {
	if k.isKilled() {
		return false, false
	}
	k.Clock++
	return !k.isKilled(), k.isKilled() && k.Torn
}

// Read implements [rootfs.FS].
func (k *Kernel) Read(name string) (rootfs.Content, error) {
	if c := k.Hung[name]; c != nil {
		<-c // without the lock, so that other nodes can be read
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	if k.isKilled() {
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
	err := k.writeNode(name, value)
	if half {
		return errKilled
	}
	return err
}

// writeNode writes a value as the kernel does: it refuses, rounds or completes some values, and
// some writes change a neighbouring node.
func (k *Kernel) writeNode(name, value string) error {
	old, err := k.Device.Read(name)
	if err != nil {
		return err
	}
	if strings.Contains(old.Text, "[") {
		words := strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(old.Text))
		i := slices.Index(words, value)
		if i < 0 {
			return refuse(name)
		}
		words[i] = "[" + value + "]"
		value = strings.Join(words, " ")
	}
	base := path.Base(name)
	switch base {
	case "drop_caches", "compact_memory": // actions, which leave no value
		if k.Quirk != nil {
			k.Quirk(name, value)
		}
		return nil
	case "swappiness":
		n, err := strconv.ParseInt(value, 0, 64)
		if err != nil || n < 0 || n > 200 {
			return refuse(name)
		}
		value = strconv.FormatInt(n, 10) // 0x2a reads back as 42
	case "read_ahead_kb":
		n, err := strconv.Atoi(value)
		if err != nil {
			return refuse(name)
		}
		value = strconv.Itoa(n / 4 * 4) // whole pages
	case "scaling_min_freq", "scaling_max_freq":
		err = k.checkWindow(name, value)
	default:
		err = k.changeNeighbour(name, value)
	}
	if err != nil {
		return err
	}
	if k.Quirk != nil {
		value = k.Quirk(name, value)
	}
	return k.Device.Write(name, value+"\n")
}

// refuse returns the error of a write that the kernel refuses.
func refuse(name string) error {
	return &rootfs.PathError{Op: "write", Path: name, Err: unix.EINVAL}
}

// checkWindow refuses a limit of a clock beyond the opposite limit.
func (k *Kernel) checkWindow(name, value string) error {
	other := strings.NewReplacer("min_freq", "max_freq", "max_freq", "min_freq").Replace(name)
	c, err := k.Device.Read(other)
	if err != nil {
		return err
	}
	low, _ := strconv.Atoi(value)
	high, _ := strconv.Atoi(strings.TrimSpace(c.Text))
	if path.Base(name) == "scaling_max_freq" {
		low, high = high, low
	}
	if low > high {
		return refuse(name)
	}
	return nil
}

// changeNeighbour makes the change of another node that a write causes.
func (k *Kernel) changeNeighbour(name, value string) error {
	dir, base := path.Split(name)
	switch base {
	case "dirty_bytes", "dirty_background_bytes":
		if value == "0" {
			return refuse(name)
		}
		return k.Device.Write(dir+strings.Replace(base, "bytes", "ratio", 1), "0\n")
	case "dirty_ratio", "dirty_background_ratio":
		return k.Device.Write(dir+strings.Replace(base, "ratio", "bytes", 1), "0\n")
	case "scheduler":
		return k.Device.Write(dir+"nr_requests", "64\n")
	}
	return nil
}

// ReadState implements [rootfs.State].
func (k *Kernel) ReadState(name string) ([]byte, error) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if k.isKilled() {
		return nil, errKilled
	}
	return k.Device.ReadState(name)
}

// WriteState implements [rootfs.State].
func (k *Kernel) WriteState(name string, data []byte) error {
	k.lock.Lock()
	defer k.lock.Unlock()
	if whole, _ := k.step(); !whole { // a rename is atomic
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
