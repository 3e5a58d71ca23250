package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/lease"
	"github.com/yoctune/yoctune/runtime/device/notify"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

const (
	// overlayLinger is how long the settings of the last lease stay in force after it,
	// so that a program that takes one lease after another does not make the clocks jump.
	overlayLinger = 200 * time.Millisecond

	// idleBeforeFree is the time after the last event until its memory is freed.
	idleBeforeFree = 10 * time.Second

	// worthCollecting is the garbage, in bytes, that is collected then. Less stays, because a
	// collection wakes threads of Go's runtime.
	worthCollecting = 512 << 10
)

// Reporter receives what a run does, as it happens.
type Reporter interface {
	Applied(results []enforce.Result)
	Watching(sources []Source, nodes int, sweep time.Duration)
	Event(Event)
	Leased(action string, l Lease)
	Restored(what string, results []enforce.Result) // after a lease, or at the end
	Problem(err error)                              // one that does not end the run
}

// Settings of a run.
type Settings struct {
	Root    *rootfs.Root
	File    *planfile.File
	Enforce enforce.Options
	Systemd *notify.Systemd
	Report  Reporter

	// Prove is called once, after the plan has been in force for ProveAfter; nil: never.
	Prove      func() error
	ProveAfter time.Duration

	// Rest, if not nil, is called once the plan is in force and what remains is to wait.
	Rest func()
}

// Run applies the plan and enforces it until ctx is done. The caller holds the device's
// lock. Run returns an error if it cannot record the original values or cannot wait for
// events; nothing is enforced then.
func Run(ctx context.Context, s Settings) (err error) {
	d := &daemon{Settings: s, handlers: map[int]func(now time.Duration){}, shown: map[uint64]Lease{}}
	if d.session, err = enforce.Open(s.Root, s.File.Plan, s.Enforce); err != nil {
		return err
	}
	if d.poll, err = openPoll(); err != nil {
		return err
	}
	defer d.poll.close()
	d.sampling = newSampling(s.Root, d.poll.wake)
	defer d.sampling.reading.Wait() // its goroutine uses the poll
	if err := d.handle(d.poll.wakeFD, d.handleWake); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, d.poll.wake)()
	// An enforcer that was killed has left the settings of its leases.
	if failed, err := d.session.RemoveOverlay(); err != nil {
		return err
	} else if len(failed) > 0 {
		s.Report.Restored("lease", failed)
	}
	d.openSources()
	defer d.closeSources()
	if err := d.apply(); err != nil {
		return err
	}
	// The plan is enforced without the socket.
	if d.server, err = listen(s.Root); err != nil {
		s.Report.Problem(fmt.Errorf("no leases: %w", err))
	} else {
		defer d.server.close()
		if err := d.handle(d.server.fd, d.acceptClients); err != nil {
			return err
		}
	}
	d.startLadder(rootfs.BootTime())
	if err := d.keeper.Flush(rootfs.BootTime()); err != nil {
		s.Report.Problem(err)
	}
	if s.Rest != nil {
		s.Rest()
	}
	d.freeMemory()
	for ctx.Err() == nil {
		if err := d.step(); err != nil {
			return err
		}
	}
	return d.shutDown()
}

// daemon is a run.
type daemon struct {
	Settings
	session *enforce.Session
	keeper  *Keeper
	ledger  lease.Ledger
	overlay []enforce.Result // results of the settings that leases put over the plan's
	notes   []string
	shown   map[uint64]Lease // leases in force, with their holders' names

	poll     *poll
	handlers map[int]func(now time.Duration) // by descriptor; connections are the server's

	marks      *marks
	marksErr   error
	uevents    *netlink
	ueventsErr error
	resume     *resumeTimer
	links      *netlink // changes of network interfaces; nil if the plan has no such nodes
	drivers    *netlink // changes of their drivers' settings
	networkErr error
	units      *units // nil if the plan has none
	unitsErr   error
	server     *server
	sampling   *sampling
	adaptive   *adaptive // nil: the power mode is fixed

	status  string // as systemd shows it
	changes int    // of the keeper's nodes, when it was made
	heap    uint64 // bytes in use after the last collection

	// Deadlines; 0: none.
	aliveAt         time.Duration // of the next watchdog message
	proveAt         time.Duration
	removeOverlayAt time.Duration // of ended leases
	freeMemoryAt    time.Duration
}

// handle waits for a descriptor and calls f when it is readable.
func (d *daemon) handle(fd int, f func(now time.Duration)) error {
	d.handlers[fd] = f
	return d.poll.add(fd)
}

// apply applies the plan and starts to watch its nodes.
func (d *daemon) apply() error {
	config := Config{File: d.File, Wall: time.Now, Name: rootfs.NameProcess, Emit: d.publishEvent, PID: os.Getpid()}
	if d.marks != nil {
		config.Marker = d.marks
	}
	d.keeper = NewKeeper(d.Root, d.session, config)
	for _, lack := range d.session.MissingCapabilities() {
		d.Report.Problem(errors.New(lack))
	}
	results, err := d.session.Apply()
	if err != nil {
		return err
	}
	d.keeper.Reindex()
	d.Report.Applied(results)
	d.status = summary(results)
	d.notifySystemd(notify.Ready, notify.Status(d.status))
	d.probeSources()
	if d.Prove != nil {
		d.proveAt = rootfs.BootTime() + d.ProveAfter
	}
	return nil
}

// freeMemory returns memory that only the last events needed. An idle process has no
// other occasion to do so.
func (d *daemon) freeMemory() {
	d.freeMemoryAt, d.sampling.last = 0, nil
	var heap runtime.MemStats
	if runtime.ReadMemStats(&heap); heap.HeapAlloc > d.heap+worthCollecting {
		debug.FreeOSMemory()
		runtime.ReadMemStats(&heap)
		d.heap = heap.HeapAlloc
	}
	dropCleanPages()
}

// step waits for an event or a deadline and handles it.
func (d *daemon) step() error {
	now := rootfs.BootTime()
	next := d.nextDeadline()
	d.servePending(now)
	if d.hasPendingRequest() {
		next = now
	}
	fds, err := d.poll.wait(next)
	if err != nil {
		return err
	}
	now = rootfs.BootTime()
	if len(fds) > 0 {
		d.freeMemoryAt = now + idleBeforeFree
	}
	for _, fd := range fds {
		if f := d.handlers[fd]; f != nil {
			f(now)
		} else if d.server != nil {
			d.handleClient(now, fd)
		}
	}
	d.runDue(now)
	return nil
}

func (d *daemon) nextDeadline() time.Duration {
	next := d.keeper.Next()
	if at, ok := d.ledger.Next(); ok {
		next = min(next, at)
	}
	if d.adaptive != nil {
		next = min(next, d.adaptive.at)
	}
	if d.Systemd.Watchdog > 0 {
		next = min(next, d.aliveAt)
	}
	deadlines := []time.Duration{d.removeOverlayAt, d.proveAt, d.freeMemoryAt}
	if d.server != nil {
		deadlines = append(deadlines, d.server.nextLine())
	}
	for _, at := range deadlines {
		if at > 0 {
			next = min(next, at)
		}
	}
	return next
}

// runDue does what is due.
func (d *daemon) runDue(now time.Duration) {
	due := func(at time.Duration) bool { return at > 0 && now >= at }
	worked := due(d.removeOverlayAt) || due(d.proveAt) || now >= d.keeper.Next()
	d.dropUnfinished(now)
	for _, l := range d.ledger.Expire(now) {
		d.finishLease(now, "expired", l)
	}
	if due(d.removeOverlayAt) {
		d.removeOverlay()
	}
	if due(d.proveAt) {
		d.proveAt = 0
		if err := d.Prove(); err != nil {
			d.Report.Problem(err)
		}
	}
	if d.adaptive != nil && now >= d.adaptive.at {
		d.followLoad(now)
	}
	if err := d.keeper.Tick(now); err != nil {
		d.Report.Problem(err)
	}
	d.updateStatus()
	if worked { // which maps pages that no event will use
		d.freeMemoryAt = now + idleBeforeFree
		if d.nextDeadline() >= d.freeMemoryAt { // nothing follows
			d.freeMemoryAt = now
		}
	}
	if due(d.freeMemoryAt) {
		d.freeMemory()
	}
	if d.Systemd.Watchdog > 0 && now >= d.aliveAt {
		d.aliveAt = now + d.Systemd.Watchdog/2
		d.notifySystemd(notify.Alive)
	}
}

// updateStatus corrects the status that systemd shows after nodes have appeared or gone: what
// was pending may be in force now.
func (d *daemon) updateStatus() {
	if d.changes == d.keeper.changes || !d.Systemd.Connected() {
		return
	}
	d.changes = d.keeper.changes
	if now := summary(enforce.Verify(d.Root, d.File.Plan, d.Enforce)); now != d.status {
		d.status = now
		d.notifySystemd(notify.Status(now))
	}
}

// publishEvent reports an event, and sends it to the clients that watch.
func (d *daemon) publishEvent(e Event) {
	d.Report.Event(e)
	if d.server != nil {
		d.server.publish(e)
	}
}

// shutDown undoes what must not outlive the run.
func (d *daemon) shutDown() error {
	d.notifySystemd(notify.Stopping)
	if d.marks != nil {
		d.marks.flush()
	}
	d.removeOverlay()
	// Without the enforcer the mode no longer follows the load: return to the plan's.
	if p := d.File.Plan.Power; d.adaptive != nil && p.Default != "" && d.session.Mode() != p.Default {
		d.switchMode(p.Default, "the enforcer stops, so that the mode no longer follows the load")
	}
	var err error
	if d.File.Plan.Rollback == "on-stop" {
		var results []enforce.Result
		results, err = enforce.Rollback(d.Root, d.Enforce)
		d.Report.Restored("plan", results)
	}
	return errors.Join(err, d.keeper.Close(rootfs.BootTime()))
}

func (d *daemon) notifySystemd(states ...string) {
	if err := d.Systemd.Send(states...); err != nil {
		d.Report.Problem(err)
	}
}

// summary counts outcomes for a status line: "66 ok, 1 refused".
func summary(results []enforce.Result) string {
	counts := map[outcome.Outcome]int{}
	for _, r := range results {
		counts[r.Outcome]++
	}
	var parts []string
	for _, o := range outcome.Outcomes() {
		if n := counts[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	if len(parts) == 0 {
		return "nothing to do"
	}
	return strings.Join(parts, ", ")
}
