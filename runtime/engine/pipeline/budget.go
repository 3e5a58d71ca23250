package pipeline

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/backoff"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/sink"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/source"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/schema/units"
)

// ErrBudget is wrapped by the error of a pipeline whose budget this device cannot keep.
var ErrBudget = errors.New("the budget cannot be kept")

// EventBudget is the kind of events about reserved memory, reserved disk space and throttled
// I/O.
const EventBudget = "budget"

// BudgetInfo records what a budget was compared with. Unknown figures are nil.
type BudgetInfo struct {
	Memory    *int64 `json:"memory_bytes"`           // of the process, with everything loaded
	Available *int64 `json:"least_available_bytes"`  // least memory available to other programs during the run
	FreeDisk  *int64 `json:"least_free_disk_bytes"`  // least free space of the sink's file system during the run
	Disk      string `json:"disk,omitempty"`         // block device of the sink's file; "" without one
	Link      string `json:"link,omitempty"`         // network interface towards the remote end
	LinkRate  *int64 `json:"link_bytes_per_second"`  // negotiated rate of that interface
	HeldBack  int64  `json:"held_back_ns,omitempty"` // time that reads and writes waited for the rate limiters
}

// budgetGuard keeps a pipeline within its budget. It checks the budget before the first frame,
// and watches the reserved memory and disk space while the pipeline runs.
type budgetGuard struct {
	budget plan.PipelineBudget
	dev    rootfs.FS
	room   func(dir string) (int64, error) // free bytes of a directory's file system
	say    func(Event)
	dir    string // directory of the sink's file, "" without one

	memory, disk atomic.Value // strings: reason for a shortage, "" while there is none
	held         atomic.Int64 // ns

	mu   sync.Mutex
	info BudgetInfo
}

// newBudgetGuard returns nil if the plan has no budget.
func newBudgetGuard(o Options, say func(Event)) (*budgetGuard, error) {
	if o.Plan.Budget == nil {
		return nil, nil
	}
	r := &budgetGuard{budget: *o.Plan.Budget, dev: o.Device, room: freeBytes, say: say}
	if o.room != nil {
		r.room = o.room
	}
	if r.dev == nil {
		dev, err := rootfs.Open("/")
		if err != nil {
			return nil, err
		}
		r.dev = dev
	}
	if s := o.Plan.Sink; registry.WritesFile(&s) {
		r.dir = filepath.Dir(resolvePath(o.Dir, s.Path))
	}
	r.memory.Store("")
	r.disk.Store("")
	return r, nil
}

// freeBytes returns the space available to unprivileged users of a file system.
func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("free room of %s: %w", dir, err)
	}
	return int64(min(st.Bavail, math.MaxInt64/uint64(st.Bsize)) * uint64(st.Bsize)), nil
}

// check compares the budget with the device once everything is loaded. It returns an error for
// limits that cannot be kept, and calls note for those that cannot be checked.
func (r *budgetGuard) check(p plan.Pipeline, note func(error)) error {
	if note == nil {
		note = func(error) {}
	}
	r.info.Memory = procBytes("/proc/self/status", "VmRSS:")
	if m := r.info.Memory; m != nil && r.budget.Memory > 0 && *m > r.budget.Memory {
		return fmt.Errorf("%w: budget.memory is %s, and the process has %s with everything loaded", ErrBudget, units.RoundSize(r.budget.Memory), units.RoundSize(*m))
	}
	r.measure()
	if why := r.memory.Load().(string); why != "" {
		return fmt.Errorf("%w: %s", ErrBudget, why)
	}
	if err := r.checkDisk(p.Sink, note); err != nil {
		return err
	}
	return r.checkLink(p, note)
}

func (r *budgetGuard) checkDisk(s plan.PipelineSink, note func(error)) error {
	if r.dir == "" {
		return nil
	}
	r.info.Disk = blockDevice(r.dir)
	if r.info.Disk == "" && r.budget.DiskWrite > 0 {
		note(fmt.Errorf("budget.diskWrite: %s is on no disk", r.dir))
	}
	if why := r.disk.Load().(string); why != "" {
		return fmt.Errorf("%w: %s", ErrBudget, why)
	}
	if s.Rotate == nil || r.budget.FreeDisk == 0 || r.info.FreeDisk == nil {
		return nil
	}
	// The files grow to their limit and no further.
	grow := s.Rotate.Size * int64(s.Rotate.Keep+1)
	if names, err := filepath.Glob(filepath.Join(r.dir, filepath.Base(s.Path)) + "*"); err == nil {
		for _, name := range names {
			if st, err := os.Stat(name); err == nil {
				grow -= st.Size()
			}
		}
	}
	if free := *r.info.FreeDisk; free-max(grow, 0) < r.budget.FreeDisk {
		return fmt.Errorf("%w: the sink's files may grow by %s, %s has %s, and budget.keepFree.disk is %s", ErrBudget, units.RoundSize(grow), r.dir, units.RoundSize(free), units.RoundSize(r.budget.FreeDisk))
	}
	return nil
}

// blockDevice returns the name of the disk or partition that holds a directory, or "".
func blockDevice(dir string) string {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return ""
	}
	link, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)))
	if err != nil {
		return ""
	}
	return filepath.Base(link)
}

// checkLink compares the network limits with the negotiated rate of the link.
func (r *budgetGuard) checkLink(p plan.Pipeline, note func(error)) error {
	for _, d := range []struct {
		field string
		bound int64
		host  string
	}{{"netOut", r.budget.NetOut, sinkHost(p.Sink)}, {"netIn", r.budget.NetIn, sourceHost(p.Source)}} {
		if d.bound == 0 || d.host == "" {
			continue
		}
		name, err := findInterface(d.host)
		if err != nil {
			note(fmt.Errorf("budget.%s: no way to %s is known yet: %w", d.field, d.host, err))
			continue
		}
		r.info.Link = name
		speed, ok := linkRate(r.dev, name)
		if !ok {
			note(fmt.Errorf("budget.%s: the speed of %s is not known", d.field, name))
			continue
		}
		r.info.LinkRate = &speed
		if d.bound > speed {
			return fmt.Errorf("%w: budget.%s is %s/s, and %s carries %s/s (%d Mbit/s)", ErrBudget, d.field, units.RoundSize(d.bound), name, units.RoundSize(speed), speed/125_000)
		}
	}
	return nil
}

func sinkHost(s plan.PipelineSink) string {
	kind, _ := registry.SinkOf(s.Kind)
	if u, err := url.Parse(s.URL); kind.Network && err == nil {
		return u.Hostname()
	}
	return ""
}

// sourceHost finds the host of a stream among the arguments of its receiver.
func sourceHost(s plan.PipelineSource) string {
	for _, arg := range s.Exec {
		if at := strings.Index(arg, "rtsp"); at >= 0 {
			if u, err := url.Parse(arg[at:]); err == nil && u.Host != "" {
				return u.Hostname()
			}
		}
	}
	return ""
}

// findInterface returns the interface that packets to a host leave by. It sends nothing except a name
// lookup.
func findInterface(host string) (string, error) {
	c, err := (&net.Dialer{Timeout: time.Second}).Dial("udp", net.JoinHostPort(host, "9"))
	if err != nil {
		return "", err
	}
	defer c.Close()
	own, _, err := net.SplitHostPort(c.LocalAddr().String())
	if err != nil {
		return "", err
	}
	all, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(net.ParseIP(own)) {
				return i.Name, nil
			}
		}
	}
	return "", fmt.Errorf("no interface has the address %s", own)
}

// linkRate returns the speed of an interface in bytes per second. Wireless and virtual
// interfaces have none.
func linkRate(dev rootfs.FS, name string) (int64, bool) {
	c, err := dev.Read("/sys/class/net/" + name + "/speed")
	if err != nil {
		return 0, false
	}
	mbit, err := strconv.ParseInt(strings.TrimSpace(c.Text), 10, 32)
	return mbit * 125_000, err == nil && mbit > 0
}

// measure compares the free memory and disk space with the budget, if there is one.
func (r *budgetGuard) measure() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if b, err := r.dev.ReadFile("/proc/meminfo", 64<<10); err == nil {
		if free, ok := rootfs.Meminfo(string(b))["MemAvailable"]; ok {
			r.update(&r.memory, &r.info.Available, free, r.budget.FreeMemory, "budget.keepFree.memory", "there are %s available")
		}
	}
	if r.dir == "" {
		return
	}
	if free, err := r.room(r.dir); err == nil {
		r.update(&r.disk, &r.info.FreeDisk, free, r.budget.FreeDisk, "budget.keepFree.disk", r.dir+" has %s free")
	}
}

// update records how much is free, and reports when it falls below the budget or recovers.
func (r *budgetGuard) update(short *atomic.Value, least **int64, free, want int64, field, has string) {
	if *least == nil || free < **least {
		*least = &free
	}
	why := ""
	if free < want {
		why = fmt.Sprintf("%s is %s, and "+has, field, units.RoundSize(want), units.RoundSize(free))
	}
	if was := short.Swap(why).(string); r.say != nil && (was == "") != (why == "") {
		e := Event{Kind: EventBudget, Why: why}
		if why == "" {
			e.Why = "there is enough again for " + field
		}
		r.say(e)
	}
}

// memoryShortage returns why less memory is free than the budget keeps, or "".
func (r *budgetGuard) memoryShortage() string {
	if r == nil {
		return ""
	}
	return r.memory.Load().(string)
}

// usage returns what the run used, nil without a budget.
func (r *budgetGuard) usage() *BudgetInfo {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	info := r.info
	info.HeldBack = r.held.Load()
	return &info
}

// rateLimiter limits bytes per second. Unused bytes of one second may be used in the next.
type rateLimiter struct {
	rate  float64
	held  *atomic.Int64 // ns of waiting, added here
	ended chan struct{}
	once  sync.Once

	left float64 // bytes
	at   time.Time
}

// newLimiter returns a limiter of rate bytes a second, nil when rate is 0.
func (r *budgetGuard) newLimiter(rate int64) *rateLimiter {
	if r == nil || rate <= 0 {
		return nil
	}
	return &rateLimiter{rate: float64(rate), held: &r.held, ended: make(chan struct{}), left: float64(rate), at: time.Now()}
}

// wait blocks until n more bytes are within the rate, or the limiter is released.
func (b *rateLimiter) wait(n int) {
	if b == nil {
		return
	}
	now := time.Now()
	b.left = min(b.left+b.rate*now.Sub(b.at).Seconds(), b.rate)
	b.at = now
	if b.left -= float64(n); b.left >= 0 {
		return
	}
	backoff.WaitClosed(b.ended, time.Duration(-b.left/b.rate*float64(time.Second)))
	b.held.Add(int64(time.Since(now)))
}

// release ends every wait and disables the limiter.
func (b *rateLimiter) release() {
	if b != nil {
		b.once.Do(func() { close(b.ended) })
	}
}

// boundedInput is a file whose reads are rate-limited.
type boundedInput struct {
	source.Input
	b *rateLimiter
}

func (r *budgetGuard) limitInput(in source.Input) source.Input {
	if r == nil || r.budget.DiskRead == 0 {
		return in
	}
	return boundedInput{in, r.newLimiter(r.budget.DiskRead)}
}

func (i boundedInput) Read(p []byte) (int, error) {
	n, err := i.Input.Read(p)
	i.b.wait(n)
	return n, err
}

// SetReadDeadline also ends a wait for the limiter.
func (i boundedInput) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && time.Until(t) <= 0 {
		i.b.release()
	}
	return i.Input.SetReadDeadline(t)
}

// boundedSink limits the rate of results, and refuses results that would use the reserved disk
// space.
type boundedSink struct {
	sink.Sink
	r    *budgetGuard
	b    *rateLimiter
	line []byte
}

// limitSink wraps s in the limits of the budget.
func (r *budgetGuard) limitSink(s sink.Sink, p plan.PipelineSink) sink.Sink {
	if r == nil {
		return s
	}
	rate := int64(0)
	kind, _ := registry.SinkOf(p.Kind)
	switch {
	case r.dir != "":
		rate = r.budget.DiskWrite
	case kind.Network:
		rate = r.budget.NetOut
	case kind.Program:
		if rate = r.budget.NetOut; rate == 0 || r.budget.DiskWrite > 0 && r.budget.DiskWrite < rate {
			rate = r.budget.DiskWrite
		}
	}
	if rate == 0 && (r.dir == "" || r.budget.FreeDisk == 0) {
		return s
	}
	return &boundedSink{Sink: s, r: r, b: r.newLimiter(rate)}
}

func (s *boundedSink) Write(rec *result.Record) error {
	if why := s.r.disk.Load().(string); why != "" {
		return fmt.Errorf("%w: %s", sink.ErrDegraded, why)
	}
	if s.b != nil {
		s.line = rec.AppendJSON(s.line[:0])
		s.b.wait(len(s.line) + 1)
	}
	return s.Sink.Write(rec)
}
