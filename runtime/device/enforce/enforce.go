// Package enforce makes a plan true on a device, says what is not, and takes it
// back.
//
// Every setting ends in an outcome, reached by reading the node back: that
// write(2) succeeded means little, for kernels round, clamp, and rewrite
// neighbours. One setting's failure never stops the others.
//
//	read all → journal the originals → write → write again what was refused only
//	because of the order, or undone by a neighbour → read back → outcome
//
// Settings of the kernel itself (arguments, modules) are compared and never
// written: they need a reboot or a new image. A power mode is its lines, written
// like settings and before them.
package enforce

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
	"golang.org/x/sys/unix"
)

// Result is what became of one setting on one node.
type Result struct {
	ID      string
	Path    string // as selected
	Wanted  string
	Found   string // canonical; "" when Known is false
	Known   bool   // the node could be read
	Outcome outcome.Outcome
	Message string // "" when there is nothing to add

	// Excused: the difference was not this run's to remove. An optional node
	// that is absent and a node capped for heat, always; for Apply also what it
	// must not write.
	Excused bool
}

// Satisfied reports whether the result does not make the answer "no".
func (r Result) Satisfied() bool { return r.Outcome == outcome.OK || r.Excused }

// Satisfied reports whether all results are.
func Satisfied(results []Result) bool {
	for _, r := range results {
		if !r.Satisfied() {
			return false
		}
	}
	return true
}

// Options bound what talking to the kernel may cost.
type Options struct {
	ReadTimeout time.Duration   // of one node; 0 means 2 s
	Backoff     []time.Duration // pauses before a busy node is tried again; nil means 0.05, 0.2, 0.8 s
	Root        bool            // this process is root: decides what EACCES means
	Lacks       []string        // capabilities that this process does not have: what EPERM means
}

// DefaultOptions are those of the command.
func DefaultOptions() Options { return Options{Root: os.Geteuid() == 0, Lacks: lacks()} }

// lacks asks the kernel which of the capabilities that nodes ask for this process
// has not; none where it does not say.
func lacks() []string {
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

func (o Options) filled() Options {
	if o.ReadTimeout == 0 {
		o.ReadTimeout = 2 * time.Second
	}
	if o.Backoff == nil {
		o.Backoff = []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, 800 * time.Millisecond}
	}
	return o
}

// reader talks to nodes with a deadline: a hung bus or firmware blocks read(2)
// and write(2), and must cost one setting, not all. Sysctls are answered from
// memory and need none.
type reader struct {
	dev     rootfs.FS
	timeout time.Duration

	// hung holds the calls that have not come back, by path: a node that hangs
	// is left alone until it answers, or every look would cost a thread more.
	hung map[string]chan answer

	// fixed holds what an interrupt answered that the kernel keeps where it is
	// (EIO): it will not move before devices come or go.
	fixed map[string]error

	lock sync.Mutex // of both: devices are written side by side
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
	// A sensor bus that is busy answers so, and other nodes never do.
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
	if rootfs.WrittenFor(path) != "" {
		limit *= slowest // systemd answers when it has nothing more urgent
	}
	return r.within(limit, "read", path, func() answer {
		content, err := r.dev.Read(path)
		return answer{content, err}
	})
}

// slowest is how much longer than a read a write may take: compacting memory
// for huge pages is legitimate work of seconds.
const slowest = 5

func (r *reader) write(path, value string) error {
	if strings.HasPrefix(path, "/proc/sys/") {
		return r.dev.Write(path, value)
	}
	if err := r.unmovable(path); err != nil {
		return err
	}
	_, err := r.within(slowest*r.timeout, "write", path, func() answer {
		return answer{err: r.dev.Write(path, value)}
	})
	if errors.Is(err, unix.EIO) && strings.HasPrefix(path, "/proc/irq/") {
		r.lock.Lock()
		r.fixed[path] = err
		r.lock.Unlock()
	}
	return err
}

func (r *reader) unmovable(path string) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.fixed[path]
}

// forget is told that devices came or went: an interrupt's number may be another's.
func (r *reader) forget() {
	r.lock.Lock()
	defer r.lock.Unlock()
	clear(r.fixed)
}

func (r *reader) within(limit time.Duration, op, path string, call func() answer) (rootfs.Content, error) {
	late := &rootfs.PathError{Op: op, Path: path, Err: context.DeadlineExceeded}
	if r.hangs(path) {
		return rootfs.Content{}, late
	}
	c := make(chan answer, 1) // buffered: a late answer may have nobody waiting
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

// hangs reports whether an earlier call to the node has still not come back.
func (r *reader) hangs(path string) bool {
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

// verifyOnly reports whether a setting is never written, because a running
// kernel cannot change it.
func verifyOnly(s plan.Setting) bool {
	return s.Select.Class == rootfs.ClassCmdline || s.Domain == plan.DomainKernel ||
		s.Domain == plan.DomainModule || s.Type == plan.TypePresent ||
		s.Policy == plan.Report && s.Needs != plan.NeedsNothing
}
