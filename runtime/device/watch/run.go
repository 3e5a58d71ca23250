package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/lease"
	"github.com/yoctune/yoctune/runtime/device/notify"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// linger is how long the settings of the last lease stay after it: programs that
// take one lease after the other must not make the clocks jump each time.
const linger = 200 * time.Millisecond

// unasked is how long after the last event what events took is given back.
const unasked = 10 * time.Second

// Reporter is told what a run does, as it happens.
type Reporter interface {
	Applied(results []enforce.Result)
	Watching(sources []Source, nodes int, sweep time.Duration)
	Event(Event)
	Leased(action string, l Lease)
	Restored(what string, results []enforce.Result) // at the end, or of a lease
	Problem(err error)                              // that does not end the run
}

// Settings of a run.
type Settings struct {
	Root    *rootfs.Root
	File    *planfile.File
	Enforce enforce.Options
	Systemd *notify.Systemd
	Report  Reporter

	// Prove is called once, when the plan has been kept for ProveAfter; nil: never.
	Prove      func() error
	ProveAfter time.Duration
}

// Run applies the plan and keeps it true until ctx is done. The caller holds the
// device's lock. An error means that nothing is kept true, because nothing could
// be journalled or waited for.
func Run(ctx context.Context, s Settings) (err error) {
	d := &daemon{Settings: s, shown: map[uint64]Lease{}}
	if d.session, err = enforce.Open(s.Root, s.File.Plan, s.Enforce); err != nil {
		return err
	}
	if d.poll, err = openPoll(); err != nil {
		return err
	}
	defer d.poll.close()
	defer context.AfterFunc(ctx, d.poll.wake)()
	// A session that was killed cannot have ended its leases.
	if failed, err := d.session.Uncover(); err != nil {
		return err
	} else if len(failed) > 0 {
		s.Report.Restored("lease", failed)
	}

	d.openSources()
	defer d.closeSources()
	config := Config{File: s.File, Wall: time.Now, Name: rootfs.NameProcess, Emit: d.happened, PID: os.Getpid()}
	if d.marks != nil {
		config.Marker = d.marks
	}
	d.keeper = NewKeeper(s.Root, d.session, config)
	for _, lack := range d.session.Lacks() {
		s.Report.Problem(errors.New(lack))
	}
	results, err := d.session.Apply()
	if err != nil {
		return err
	}
	d.keeper.Applied()
	s.Report.Applied(results)
	d.tell(notify.Ready, notify.Status(summary(results)))
	d.begin()
	if s.Prove != nil {
		d.proveAt = boottime() + s.ProveAfter
	}
	if d.server, err = listen(s.Root); err != nil {
		s.Report.Problem(fmt.Errorf("no leases: %w", err))
	} else {
		defer d.server.close()
		if err := d.poll.add(d.server.fd); err != nil {
			return err
		}
	}
	if d.sampling, err = openSampling(s.Root); err != nil {
		s.Report.Problem(err)
	} else {
		defer d.sampling.close()
		if err := d.poll.add(d.sampling.fd); err != nil {
			return err
		}
	}
	d.climb(boottime())
	if err := d.keeper.Flush(boottime()); err != nil {
		s.Report.Problem(err)
	}
	d.rest()
	for ctx.Err() == nil {
		if err := d.step(); err != nil {
			return err
		}
	}
	return d.end()
}

// daemon is a run.
type daemon struct {
	Settings
	session *enforce.Session
	keeper  *Keeper
	ledger  lease.Ledger
	covered []enforce.Result // what the leases in force did
	notes   []string
	shown   map[uint64]Lease // leases in force, named while their holders lived

	poll    *poll
	marks   *marks
	noMarks error
	devices *uevents
	noDevs  error
	resume  *resume
	links   *netlink // interfaces that come and go; nil as the plan has none
	drivers *netlink // and what is set of them
	noNet   error
	server  *server

	sampling *sampling // nil: it could not be opened
	adaptive *adaptive // nil: the power mode stays

	aliveAt   time.Duration // when systemd is told that this process lives
	proveAt   time.Duration // when the plan has lasted; 0: it has, or nobody asks
	uncoverAt time.Duration // when the settings of ended leases go; 0: nothing to go
	restAt    time.Duration // when to give back what the last events took; 0: it was
}

// rest gives back what was needed for a moment: an idle process has no other
// occasion.
func (d *daemon) rest() {
	d.restAt = 0
	if d.sampling != nil {
		d.sampling.last = nil
	}
	debug.FreeOSMemory()
	release()
}

// openSources opens what tells of changes. Each may be missing: in a container,
// without CAP_SYS_ADMIN, on a kernel without it.
func (d *daemon) openSources() {
	if d.marks, d.noMarks = openMarks(d.Root); d.noMarks == nil {
		d.noMarks = d.poll.add(d.marks.fd)
	}
	if !d.Root.Running() {
		d.noDevs = errors.New("a tree has no devices")
	} else if d.devices, d.noDevs = openUevents(); d.noDevs == nil {
		d.noDevs = d.poll.add(d.devices.fd)
	}
	if d.Root.Running() && wantsNetwork(d.File.Plan) {
		d.links, d.noNet = openLinks()
		if d.noNet == nil {
			d.noNet = d.poll.add(d.links.fd)
		}
		var err error
		if d.drivers, err = openEthtool(); err == nil {
			err = d.poll.add(d.drivers.fd)
		}
		d.noNet = errors.Join(d.noNet, err)
	}
	var err error
	if d.resume, err = openResume(); err == nil {
		err = d.poll.add(d.resume.fd)
	}
	if err != nil {
		d.Report.Problem(err) // the sweep finds what a resume changed
	}
}

func (d *daemon) closeSources() {
	if d.marks != nil {
		d.marks.close()
	}
	if d.devices != nil {
		_ = unix.Close(d.devices.fd)
	}
	if d.resume != nil {
		_ = unix.Close(d.resume.fd)
	}
	for _, n := range []*netlink{d.links, d.drivers} {
		if n != nil {
			_ = unix.Close(n.fd)
		}
	}
}

// begin finds out whether the running kernel tells of writes, and deals with
// those that came while the plan was applied.
func (d *daemon) begin() {
	now := boottime()
	var early []Write
	delivered := map[string]bool{}
	read := func() {
		if d.marks == nil {
			return
		}
		writes, own, lost := d.marks.read()
		early = append(early, writes...)
		for name := range own {
			delivered[name] = true
		}
		if lost {
			d.keeper.Rescan(now, "more was written than is told")
		}
	}
	read() // applying wrote something, or had nothing to write
	var sources []Source
	for _, name := range d.keeper.FileSystems() {
		s := Source{Name: name, Delivered: delivered[name]}
		if d.noMarks != nil {
			s.Why = d.noMarks.Error()
		} else if err := d.unshared(name); err != nil {
			s.Delivered, s.Why = false, err.Error()
		} else if !s.Delivered {
			if err := d.keeper.Touch(name); err != nil {
				s.Why = err.Error()
			} else if read(); delivered[name] {
				s.Delivered = true
			} else {
				s.Why = "a write of this process's own raised no event"
			}
		}
		sources = append(sources, s)
	}
	if err := d.keeper.Unmarkable(); err != nil && d.noMarks == nil {
		sources = append(sources, Source{Name: "some nodes", Why: err.Error()})
	}
	devices := Source{Name: "uevents", Delivered: d.noDevs == nil}
	if d.noDevs != nil {
		devices.Why = d.noDevs.Error()
	}
	sources = append(sources, devices)
	if wantsNetwork(d.File.Plan) && d.Root.Running() {
		network := Source{Name: "network", Delivered: d.noNet == nil}
		if d.noNet != nil {
			network.Why = d.noNet.Error()
		}
		sources = append(sources, network)
	}
	d.keeper.Sources(now, sources)
	d.keeper.Written(now, early)
	d.Report.Watching(sources, len(d.keeper.nodes), time.Duration(d.keeper.State().Sweep)*time.Second)
	d.aliveAt = now
}

// unshared returns why the writes of others to a file system are not seen though
// this process's own are.
func (d *daemon) unshared(name string) error {
	if name != "/proc" {
		return nil
	}
	return d.Root.SharesProc()
}

// step waits for one thing to happen and deals with it.
func (d *daemon) step() error {
	now := boottime()
	next := d.keeper.Next()
	if at, ok := d.ledger.Next(); ok {
		next = min(next, at)
	}
	if d.uncoverAt > 0 {
		next = min(next, d.uncoverAt)
	}
	if d.proveAt > 0 {
		next = min(next, d.proveAt)
	}
	if d.adaptive != nil {
		next = min(next, d.adaptive.at)
	}
	if d.restAt > 0 {
		next = min(next, d.restAt)
	}
	if d.Systemd.Watchdog > 0 {
		next = min(next, d.aliveAt)
	}
	d.serveRest(now)
	if d.unserved() {
		next = now
	}
	fds, err := d.poll.wait(next - now)
	if err != nil {
		return err
	}
	now = boottime()
	if len(fds) > 0 {
		d.restAt = now + unasked
	}
	for _, fd := range fds {
		d.ready(now, fd)
	}
	for _, l := range d.ledger.Expire(now) {
		d.ended(now, "expired", l)
	}
	if d.uncoverAt > 0 && now >= d.uncoverAt {
		d.uncover()
	}
	if d.proveAt > 0 && now >= d.proveAt {
		d.proveAt = 0
		if err := d.Prove(); err != nil {
			d.Report.Problem(err)
		}
	}
	if d.adaptive != nil && now >= d.adaptive.at {
		d.sample(now)
	}
	if d.restAt > 0 && now >= d.restAt {
		d.rest()
	}
	if err := d.keeper.Tick(now); err != nil {
		d.Report.Problem(err)
	}
	if d.Systemd.Watchdog > 0 && now >= d.aliveAt {
		d.aliveAt = now + d.Systemd.Watchdog/2
		d.tell(notify.Alive)
	}
	return nil
}

func (d *daemon) ready(now time.Duration, fd int) {
	switch {
	case d.marks != nil && fd == d.marks.fd:
		writes, _, lost := d.marks.read()
		d.keeper.Written(now, writes)
		if lost {
			d.keeper.Overflowed(now)
		}
	case d.devices != nil && fd == d.devices.fd:
		events, lost := d.devices.read()
		for _, e := range events {
			d.keeper.Uevent(now, e)
		}
		if lost {
			d.keeper.Rescan(now, "more devices changed than is told")
		}
	case d.links != nil && fd == d.links.fd:
		if d.links.read(func(b []byte) {
			for _, what := range d.links.changes(b) {
				d.keeper.Rescan(now, what)
			}
		}) {
			d.keeper.Rescan(now, "more interfaces changed than is told")
		}
	case d.drivers != nil && fd == d.drivers.fd:
		changed := map[string]bool{}
		if d.drivers.read(func(b []byte) {
			for _, name := range parseEthtool(b, d.drivers.family) {
				changed[name] = true
			}
		}) {
			d.keeper.Overflowed(now)
		}
		for name := range changed {
			d.keeper.Changed(now, name)
		}
	case d.resume != nil && fd == d.resume.fd:
		if d.resume.happened() {
			d.keeper.Rescan(now, "resume from sleep")
		}
	case d.sampling != nil && fd == d.sampling.fd:
		d.share(now)
	case d.server != nil && fd == d.server.fd:
		for _, c := range d.server.accept() {
			if err := d.poll.add(c.fd); err != nil {
				d.server.drop(c)
			}
		}
	case d.server != nil && d.server.clients[fd] != nil:
		c := d.server.clients[fd]
		if !d.server.receive(c) || !d.serve(now, c) {
			d.hangUp(now, c)
		}
	case d.server != nil && d.server.holders[fd] != nil:
		d.hangUp(now, d.server.holders[fd])
	}
}

// serve answers some of a client's requests, and reports whether it takes the
// answers.
func (d *daemon) serve(now time.Duration, c *client) bool {
	for _, line := range c.lines() {
		a := d.answer(now, c, line)
		if a.Type == "" {
			continue // it comes later
		}
		if err := d.server.send(c, a); err != nil {
			return false
		}
	}
	return true
}

// serveRest gives each client that sent many requests at once its next turn.
func (d *daemon) serveRest(now time.Duration) {
	if d.server == nil {
		return
	}
	for _, c := range d.server.clients {
		if c.more() && !d.serve(now, c) {
			d.hangUp(now, c)
		}
	}
}

// unserved reports whether a request waits that nothing will tell of.
func (d *daemon) unserved() bool {
	if d.server != nil {
		for _, c := range d.server.clients {
			if c.more() {
				return true
			}
		}
	}
	return false
}

// hangUp ends a connection and the lease that hangs on it.
func (d *daemon) hangUp(now time.Duration, c *client) {
	d.server.drop(c)
	if c.lease != 0 {
		d.release(now, "ended with its holder", c.lease)
	}
}

// happened tells the log and those who watch.
func (d *daemon) happened(e Event) {
	d.Report.Event(e)
	if d.server != nil {
		d.server.publish(e)
	}
}

// answer does what a request asks.
func (d *daemon) answer(now time.Duration, c *client, line []byte) api.Answer {
	fail := func(code, format string, args ...any) api.Answer {
		return api.Answer{Type: api.Failed, Code: code, Message: fmt.Sprintf(format, args...)}
	}
	r, err := api.Decode(line)
	if err != nil {
		return fail(api.CodeMalformed, "%v", err)
	}
	switch r.Type {
	case api.Acquire:
		switch {
		case c.right < mayLease:
			return fail(api.CodeDenied, "leases are for root and the members of group %s, not for user %d", groupOfLease, c.uid)
		case r.Profile != lease.Profile:
			return fail(api.CodeMalformed, "unknown profile %.40q; there is %q", r.Profile, lease.Profile)
		case c.lease != 0:
			return fail(api.CodeQuota, "this connection already holds lease %d", c.lease)
		}
		l, err := d.ledger.Acquire(now, c.uid, c.pid, time.Duration(r.TTL)*time.Millisecond)
		if errors.Is(err, lease.ErrQuota) {
			return fail(api.CodeQuota, "%v", err)
		} else if err != nil {
			return fail(api.CodeMalformed, "%v", err)
		}
		if err := d.cover(); err != nil {
			d.ledger.Release(l.ID)
			return fail(api.CodeDevice, "%v", err)
		}
		c.lease = l.ID
		if fd := d.server.hold(c); fd >= 0 {
			// Without it the connection's end and the time to live must do.
			_ = d.poll.add(fd)
		}
		wall := time.Now().UTC()
		d.shown[l.ID] = Lease{ID: l.ID, Profile: lease.Profile, UID: l.UID, Holder: rootfs.NameProcess(l.PID), Since: wall, Expires: wall.Add(l.TTL)}
		d.record()
		d.Report.Leased("granted", d.shown[l.ID])
		return d.granted(l)
	case api.Renew:
		l, err := d.ledger.Renew(now, c.lease)
		if err != nil {
			return fail(api.CodeNone, "%v", err)
		}
		renewed := d.shown[l.ID]
		renewed.Expires = time.Now().UTC().Add(l.TTL)
		d.shown[l.ID] = renewed
		d.record()
		return api.Answer{Type: api.Renewed, Lease: l.ID, TTL: l.TTL.Milliseconds()}
	case api.Release:
		id := c.lease
		if c.lease = 0; !d.release(now, "released", id) {
			return fail(api.CodeNone, "%v", lease.ErrNone)
		}
		return api.Answer{Type: api.Released, Lease: id}
	case api.Sample:
		return d.ask(now, c, time.Duration(r.MaxAge)*time.Millisecond)
	case api.Watch:
		c.watches = true
		return api.Answer{Type: api.Watching}
	case api.Revoke:
		if c.right < mayAdmin {
			return fail(api.CodeDenied, "only root may end somebody else's lease")
		}
		if !d.release(now, "revoked", r.Lease) {
			return fail(api.CodeNone, "%v", lease.ErrNone)
		}
		return api.Answer{Type: api.Released, Lease: r.Lease}
	default: // Leases, the last of those that Decode lets through
		a := api.Answer{Type: api.Listed}
		for _, l := range d.ledger.All() {
			a.Leases = append(a.Leases, api.Holder{Lease: l.ID, UID: l.UID, PID: l.PID, Command: d.shown[l.ID].Holder.Command, Left: (l.Expires - now).Milliseconds()})
		}
		return a
	}
}

// cover makes sure that the settings of leases are in force.
func (d *daemon) cover() error {
	d.uncoverAt = 0
	if d.covered != nil {
		return nil
	}
	var settings []plan.Setting
	settings, d.notes = lease.HighPerformance(d.Root)
	results, err := d.keeper.Cover(settings)
	if err != nil {
		return err
	}
	d.covered = append([]enforce.Result{}, results...)
	return nil
}

func (d *daemon) uncover() {
	d.uncoverAt = 0
	if d.covered == nil {
		return
	}
	d.covered, d.notes = nil, nil
	failed, err := d.keeper.Uncover()
	if err != nil {
		d.Report.Problem(err)
	}
	if len(failed) > 0 {
		d.Report.Restored("lease", failed)
	}
}

func (d *daemon) granted(l lease.Lease) api.Answer {
	a := api.Answer{Type: api.Granted, Lease: l.ID, TTL: l.TTL.Milliseconds(), Notes: d.notes}
	for _, r := range d.covered {
		a.Settings = append(a.Settings, api.Setting{Path: r.Path, Wanted: r.Wanted, Found: r.Found, Outcome: string(r.Outcome), Message: r.Message})
	}
	return a
}

// release ends a lease and reports whether it was in force.
func (d *daemon) release(now time.Duration, action string, id uint64) bool {
	all := d.ledger.All()
	i := slices.IndexFunc(all, func(l lease.Lease) bool { return l.ID == id })
	if !d.ledger.Release(id) || i < 0 {
		return false
	}
	d.ended(now, action, all[i])
	return true
}

func (d *daemon) ended(now time.Duration, action string, l lease.Lease) {
	if d.server != nil {
		for _, c := range d.server.clients {
			if c.lease == l.ID {
				c.lease = 0
			}
		}
	}
	if len(d.ledger.All()) == 0 {
		d.uncoverAt = now + linger
	}
	over := d.shown[l.ID]
	delete(d.shown, l.ID)
	d.record()
	d.Report.Leased(action, over)
}

// record puts the leases into the status.
func (d *daemon) record() {
	leases := []Lease{}
	for _, l := range d.ledger.All() {
		leases = append(leases, d.shown[l.ID])
	}
	d.keeper.Leases(leases)
}

// end undoes what shall not outlive the run.
func (d *daemon) end() error {
	d.tell(notify.Stopping)
	if d.marks != nil {
		d.marks.flush()
	}
	d.uncover()
	// Nobody follows the load any more: what stays is the plan's own mode.
	if p := d.File.Plan.Power; d.adaptive != nil && p.Default != "" && d.session.Mode() != p.Default {
		d.enter(p.Default, "nobody follows the load any more")
	}
	var err error
	if d.File.Plan.Rollback == "on-stop" {
		var results []enforce.Result
		results, err = enforce.Rollback(d.Root, d.Enforce)
		d.Report.Restored("plan", results)
	}
	return errors.Join(err, d.keeper.Close(boottime()))
}

func (d *daemon) tell(states ...string) {
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
