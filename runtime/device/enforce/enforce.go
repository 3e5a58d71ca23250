// Package enforce applies a plan to a device, verifies it, and restores the original values.
//
// Every setting ends in an outcome that is based on reading the node back, because kernels
// round and clamp values and rewrite other nodes although write(2) succeeds. The failure of
// one setting does not stop the others.
//
//	read all → record the originals → write → write again what was refused because
//	of the order or overwritten by another write → read back → outcome
//
// Kernel arguments and modules are compared and never written: they need a reboot or a new
// image. The lines of a power mode are written like settings and before them.
package enforce

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
	"golang.org/x/sys/unix"
)

// Result is the outcome of one setting on one node.
type Result struct {
	ID      string
	Path    string // as selected
	Wanted  string
	Found   string // canonical; "" when Known is false
	Known   bool   // the node could be read
	Outcome outcome.Outcome
	Message string // may be ""

	// Excused: the setting does not hold, but this run was not expected to change that.
	// True for absent optional nodes and nodes with a thermal cap; for Apply also for what
	// it must not write.
	Excused bool
}

// Satisfied reports whether the setting holds or is excused.
func (r Result) Satisfied() bool { return r.Outcome == outcome.OK || r.Excused }

// Label is the name of the node in short, or the setting's id where the node does not name
// it: many settings share /proc/cmdline.
func (r Result) Label() string {
	for _, dir := range []string{"/proc/sys/", "/sys/", "/proc/irq/"} {
		if strings.HasPrefix(r.Path, dir) {
			return outcome.Name(r.Path)
		}
	}
	return r.ID
}

// Satisfied reports whether all results are satisfied.
func Satisfied(results []Result) bool {
	return !slices.ContainsFunc(results, func(r Result) bool { return !r.Satisfied() })
}

// Options configure access to the kernel.
type Options struct {
	ReadTimeout time.Duration   // of one node; 0 means 2 s
	Backoff     []time.Duration // pauses before a busy node is tried again; nil means 0.05, 0.2, 0.8 s
	Root        bool            // this process is root; explains EACCES
	MissingCaps []string        // capabilities that this process lacks; explain EPERM

	// Wait is how long Apply waits for modules and devices that are not there yet.
	// Waiting, if not nil, is called once before it does.
	Wait    time.Duration
	Waiting func(missing []Node, wait time.Duration)
}

// DefaultOptions returns the options of the command line.
func DefaultOptions() Options {
	return Options{Root: os.Geteuid() == 0, MissingCaps: missingCapabilities()}
}

// missingCapabilities returns the capabilities that nodes may require and this process
// lacks.
func missingCapabilities() []string {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // of 32 capabilities each
	if unix.Capget(&header, &data[0]) != nil {
		return nil
	}
	var out []string
	for name, bit := range map[string]uint{"CAP_NET_ADMIN": unix.CAP_NET_ADMIN, "CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN, "CAP_SYS_NICE": unix.CAP_SYS_NICE} {
		if data[bit/32].Effective>>(bit%32)&1 == 0 {
			out = append(out, name)
		}
	}
	return out
}

func (o Options) withDefaults() Options {
	if o.ReadTimeout == 0 {
		o.ReadTimeout = 2 * time.Second
	}
	if o.Backoff == nil {
		o.Backoff = []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, 800 * time.Millisecond}
	}
	return o
}

// reader reads and writes nodes with a timeout, because a bus or firmware that hangs blocks
// read(2) and write(2). Sysctls are in memory and need none.
type reader struct {
	dev     rootfs.FS
	timeout time.Duration

	// hung holds the calls that have not returned, by path. A node is not used again
	// until its call returns, since each call would block another thread.
	hung map[string]chan answer

	// fixed holds the errors (EIO) of interrupts whose affinity the kernel manages. They
	// are not tried again before a device is added or removed.
	fixed map[string]error

	lock sync.Mutex // of both, as devices are written in parallel
}

type answer struct {
	content rootfs.Content
	err     error
}

func newReader(dev rootfs.FS, timeout time.Duration) *reader {
	return &reader{dev: dev, timeout: timeout, hung: map[string]chan answer{}, fixed: map[string]error{}}
}

func (r *reader) read(path string) (rootfs.Content, error) {
	content, err := r.readOnce(path)
	// Only sensors return EAGAIN, while their bus is busy.
	for _, pause := range []time.Duration{5, 15, 30, 50} {
		if !errors.Is(err, unix.EAGAIN) {
			break
		}
		time.Sleep(pause * time.Millisecond)
		content, err = r.readOnce(path)
	}
	return content, err
}

func (r *reader) readOnce(path string) (rootfs.Content, error) {
	if strings.HasPrefix(path, "/proc/sys/") {
		return r.dev.Read(path)
	}
	limit := r.timeout
	if rootfs.BackingFile(path) != "" {
		limit *= writeTimeoutFactor // systemd may be slow to answer
	}
	return r.callWithTimeout(limit, "read", path, func() answer {
		content, err := r.dev.Read(path)
		return answer{content, err}
	})
}

// writeTimeoutFactor is the timeout of writes in units of that of reads. Compacting memory
// for huge pages takes seconds.
const writeTimeoutFactor = 5

func (r *reader) write(path, value string) error {
	if strings.HasPrefix(path, "/proc/sys/") {
		return r.dev.Write(path, value)
	}
	if err := r.cachedError(path); err != nil {
		return err
	}
	_, err := r.callWithTimeout(writeTimeoutFactor*r.timeout, "write", path, func() answer {
		return answer{err: r.dev.Write(path, value)}
	})
	if errors.Is(err, unix.EIO) && strings.HasPrefix(path, "/proc/irq/") {
		r.lock.Lock()
		r.fixed[path] = err
		r.lock.Unlock()
	}
	return err
}

func (r *reader) cachedError(path string) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.fixed[path]
}

// forgetFixed follows a change of devices, after which interrupt numbers may be reused.
func (r *reader) forgetFixed() {
	r.lock.Lock()
	defer r.lock.Unlock()
	clear(r.fixed)
}

func (r *reader) callWithTimeout(limit time.Duration, op, path string, call func() answer) (rootfs.Content, error) {
	late := &rootfs.PathError{Op: op, Path: path, Err: context.DeadlineExceeded}
	if r.isHung(path) {
		return rootfs.Content{}, late
	}
	c := make(chan answer, 1) // buffered, so that a late answer does not block
	go func() { c <- call() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case a := <-c:
		return a.content, a.err
	case <-timer.C:
		r.lock.Lock()
		r.hung[path] = c
		r.lock.Unlock()
		return rootfs.Content{}, late
	}
}

// isHung reports whether an earlier call to the node has not returned.
func (r *reader) isHung(path string) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	c, ok := r.hung[path]
	if !ok {
		return false
	}
	select {
	case <-c:
		delete(r.hung, path)
		return false
	default:
		return true
	}
}

// isReadOnly reports whether a setting is never written because a running kernel cannot
// change it.
func isReadOnly(s plan.Setting) bool {
	return s.Select.Class == rootfs.ClassCmdline || s.Domain == plan.DomainKernel ||
		s.Domain == plan.DomainModule || s.Type == plan.TypePresent ||
		s.Policy == plan.Report && s.Needs != plan.NeedsNothing
}
