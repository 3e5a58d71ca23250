package watch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

// Intervals of the keeper.
const (
	SweepEvery = 5 * time.Minute // between looks at every node, if writes raise events
	SweepBlind = 5 * time.Second // and if they do not
	// SweepThreads is that with kernel threads in the plan: nothing reports one that starts, or
	// the change of its scheduling.
	SweepThreads = 15 * time.Second
	Patience     = time.Minute // in which the node that a setting waits for should appear
	settleFirst  = 20 * time.Millisecond
	settleGap    = time.Second     // between selections, however many devices are added
	settleLast   = 2 * time.Second // udev and drivers are done by then
	flushEvery   = time.Second     // between writes of the state file
	maxCauses    = 6               // named in one message
)

// Marker subscribes to the writes of a node.
type Marker interface {
	Mark(real string) error
	Unmark(real string)
	// Writes returns the writes that are queued. lost reports that others were lost.
	Writes() (writes []Write, lost bool)
}

// Keeper enforces an applied plan. Its methods are called by one goroutine, with times
// that count from an arbitrary start and never go back.
type Keeper struct {
	Config
	dev     rootfs.Device
	session *enforce.Session
	guard   *Guard

	nodes  map[string]enforce.Node // by resolved name
	moved  map[string][]string     // from a written node to the nodes that its write may change
	marked map[string]bool
	last   map[string]Event // of each node that is not as wanted, to report it once

	state       State
	dirty       bool
	flushAt     time.Duration
	sweepAt     time.Duration
	scanAt      []time.Duration // when to select nodes again, soonest first
	why         string          // reason of the next selection
	causes      []string        // of the same, as shown to the user, without duplicates
	lookAt      []time.Duration // when to look for the nodes of waiting settings, soonest first
	overdueAt   time.Duration   // deadline of waiting settings; 0: reported
	overdueTime time.Time       // the same on the wall clock
	scanned     time.Duration   // time of the last selection
	changes     int             // selections with other nodes than the one before
	fresh       map[string]bool // during a selection: nodes that are new
	began       time.Time       // when the events in hand arrived
	blind       map[string]bool // file systems whose writes raise no events

	reapplied int // settings applied to nodes of a device that was added
	markError error
}

// Config configures a keeper.
type Config struct {
	File   *planfile.File
	Marker Marker
	Wall   func() time.Time             // for records only; decisions use the times given
	Name   func(pid int) rootfs.Process // names a writer
	Emit   func(Event)                  // receives each event once
	PID    int
}

// NewKeeper returns a keeper for an open session. It marks nodes and writes nothing.
func NewKeeper(dev rootfs.Device, session *enforce.Session, c Config) *Keeper {
	k := &Keeper{
		Config: c, dev: dev, session: session, guard: NewGuard(),
		marked: map[string]bool{}, last: map[string]Event{}, blind: map[string]bool{}, fresh: map[string]bool{},
		scanned: -settleGap, overdueAt: Patience, overdueTime: c.Wall().Add(Patience).UTC(),
	}
	boot := rootfs.BootID(dev)
	// Keep what was recorded before a crash.
	if old, err := loadState(dev, boot); err == nil && old != nil {
		k.state.History = old.History
	}
	k.state.Boot, k.state.PID = boot, c.PID
	k.state.Plan, k.state.Digest = c.File.Path, c.File.Plan.Digest
	if path, err := filepath.Abs(c.File.Path); err == nil {
		k.state.Plan = path // `yoctuned status` may run in another directory
	}
	k.state.Contested, k.state.Leases, k.state.Waiting = []Contested{}, []Lease{}, []Waiting{}
	k.Reindex()
	return k
}

// Reindex takes over the session's nodes and marks the new ones. It follows every change
// of the session: applying a power mode adds and removes nodes.
func (k *Keeper) Reindex() {
	k.nodes, k.moved = map[string]enforce.Node{}, map[string][]string{}
	wanted := map[string]bool{}
	for _, n := range k.session.Nodes() {
		k.nodes[n.Real] = n
		k.moved[n.Real] = append(k.moved[n.Real], n.Real)
		wanted[n.Real] = !k.guard.Contested(n.Real)
		for _, other := range n.Moved {
			k.moved[other] = append(k.moved[other], n.Real)
			wanted[other] = true
		}
	}
	k.listWaiting()
	maps.DeleteFunc(k.last, func(real string, _ Event) bool { _, ok := k.nodes[real]; return !ok })
	for real := range k.marked {
		if !wanted[real] {
			k.unmark(real)
		}
	}
	for real, ok := range wanted {
		if ok {
			k.mark(real)
		}
	}
}

// listWaiting lists the settings whose node does not exist. Without a module that provides it,
// a node that has not appeared in time probably never does, and verify reports that.
func (k *Keeper) listWaiting() {
	k.state.Waiting = k.state.Waiting[:0]
	for _, w := range k.session.Waiting() {
		if module := knob.ProvidingModule(w.Path); module != "" || k.overdueAt > 0 {
			k.state.Waiting = append(k.state.Waiting, Waiting{ID: w.ID, Path: w.Path, Module: module, Until: k.overdueTime, optional: w.Optional})
		}
	}
}

// mark is repeated at every selection, because a recreated node has no mark.
func (k *Keeper) mark(real string) {
	if k.Marker == nil {
		return
	}
	switch err := k.Marker.Mark(real); {
	case err == nil:
		k.marked[real] = true
	case !errors.Is(err, fs.ErrNotExist): // gone since it was selected
		k.markError = err
	}
}

// MarkError returns why the writes of some node raise no events, nil if all do.
func (k *Keeper) MarkError() error { return k.markError }

func (k *Keeper) unmark(real string) {
	if k.marked[real] {
		k.Marker.Unmark(real)
		delete(k.marked, real)
	}
}

// SetSources records which sources deliver events. If a file system delivers none, nodes
// are polled every [SweepBlind].
func (k *Keeper) SetSources(now time.Duration, sources []Source) {
	k.state.Events = sources
	for _, s := range sources {
		k.blind[s.Name] = !s.Delivered
	}
	k.sweepAt = now + k.sweepInterval()
	k.overdueAt = now + Patience
	// The kernel does not report every node that appears, such as an interrupt. Most come soon.
	k.lookAt = k.lookAt[:0]
	for after := time.Second; after < Patience; after *= 2 {
		k.lookAt = append(k.lookAt, now+after)
	}
	k.dirty = true
}

// sweepInterval returns the time to the next sweep, randomised by a quarter so that the
// devices of a fleet do not sweep at the same moment.
func (k *Keeper) sweepInterval() time.Duration {
	every := SweepEvery
	if slices.ContainsFunc(k.File.Plan.Settings, func(s plan.Setting) bool { return s.Select.Class == rootfs.ClassKThread }) {
		every = SweepThreads
	}
	if k.Marker != nil && k.markError != nil {
		every = SweepBlind
	}
	for real := range k.nodes {
		if k.blind[fileSystem(real)] {
			every = SweepBlind
			break
		}
	}
	k.state.Sweep = int64(every / time.Second)
	return every - every/4 + rand.N(every/2)
}

// fileSystems returns the file systems that hold the plan's nodes.
func (k *Keeper) fileSystems() []string {
	names := map[string]bool{}
	for real := range k.nodes {
		names[fileSystem(real)] = true
	}
	return slices.Sorted(maps.Keys(names))
}

var errNoTestNode = errors.New("no node of the plan is writable for a test")

// writeTest writes a node of a file system its own value, to test whether that raises an
// event. Only nodes that the plan enforces are candidates.
func (k *Keeper) writeTest(name string) error {
	var reals []string
	for real, n := range k.nodes {
		if fileSystem(real) == name && n.Policy != plan.Report && !rootfs.IsVirtual(real) {
			reals = append(reals, real)
		}
	}
	slices.Sort(reals)
	looked := k.session.Inspect(reals)
	for _, real := range reals {
		if looked[real].Outcome == outcome.OK && k.session.Touch(real) == nil {
			return nil
		}
	}
	return errNoTestNode
}

// fileSystem returns the mount point of a node's file system.
func fileSystem(real string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(real, "/"), "/")
	return "/" + first
}

// HandleWrites looks at the nodes that some writes may have changed.
func (k *Keeper) HandleWrites(now time.Duration, writes []Write) {
	k.began = k.Wall()
	look, by := k.nameWriters(writes)
	k.examine(now, look, by, Drift, "")
}

// nameWriters returns the nodes that writes may have changed, and the writer of each.
func (k *Keeper) nameWriters(writes []Write) (look []string, by map[string]*rootfs.Process) {
	by = map[string]*rootfs.Process{}
	processes := map[int]*rootfs.Process{}
	for _, w := range writes {
		p := processes[w.PID]
		if p == nil {
			named := k.Name(w.PID)
			p = &named
			processes[w.PID] = p
		}
		for _, real := range k.moved[w.Path] {
			if by[real] == nil {
				look = append(look, real)
			}
			by[real] = p
		}
	}
	return look, by
}

// handleOverflow looks at every node after events were lost.
func (k *Keeper) handleOverflow(now time.Duration) {
	k.sweep(now, Drift, "write events were lost")
}

// HandleUevent selects nodes again after a device was added, removed or changed.
func (k *Keeper) HandleUevent(now time.Duration, u Uevent) {
	if !u.affectsNodes() {
		return
	}
	k.scheduleRescan(now, fmt.Sprintf("%s of %s", u.Action, strings.TrimPrefix(u.DevPath, "/devices/")), u.describe())
}

// handleDriverChange looks at the nodes of a network interface after its driver's settings
// changed. The kernel does not report which process changed them.
func (k *Keeper) handleDriverChange(now time.Duration, iface string) {
	k.began = k.Wall()
	look := slices.DeleteFunc(slices.Sorted(maps.Keys(k.nodes)), func(real string) bool {
		return !strings.Contains(real, "/net/"+iface+"/") || !rootfs.IsVirtual(real)
	})
	k.examine(now, look, nil, Drift, "")
}

// HandleUnit selects nodes again after a unit of the plan has started or stopped. systemd
// itself applies the unit's files within that time.
func (k *Keeper) HandleUnit(now time.Duration, what string) {
	k.addCause(what)
	k.why = what
	if len(k.scanAt) == 0 {
		k.scanAt = []time.Duration{0}
	}
	k.scanAt[len(k.scanAt)-1] = now + settleLast
	slices.Sort(k.scanAt)
}

// addCause adds a cause that explains the devices that reappear, and therefore comes first.
func (k *Keeper) addCause(cause string) {
	if !slices.Contains(k.causes, cause) {
		k.causes = slices.Insert(k.causes, 0, cause)
		k.causes = k.causes[:min(len(k.causes), maxCauses)]
	}
}

// Rescan schedules two selections of the plan's nodes: one soon, and one after the rest of
// a device's initialisation. Kernels before 4.17 announce a module before its sysctls
// exist.
func (k *Keeper) Rescan(now time.Duration, why string) {
	k.addCause(why)
	k.scheduleRescan(now, why, "")
}

func (k *Keeper) scheduleRescan(now time.Duration, why, cause string) {
	k.why = why
	if cause != "" && !slices.Contains(k.causes, cause) && len(k.causes) < maxCauses {
		k.causes = append(k.causes, cause)
	}
	if len(k.scanAt) < 2 {
		k.scanAt = []time.Duration{max(now+settleFirst, k.scanned+settleGap), now + settleLast}
		return
	}
	// Further events only postpone the last selection.
	k.scanAt[1] = now + settleLast
}

// Next returns when Tick has work to do.
func (k *Keeper) Next() time.Duration {
	next := k.sweepAt
	if len(k.scanAt) > 0 {
		next = min(next, k.scanAt[0])
	}
	if k.dirty {
		next = min(next, k.flushAt)
	}
	if k.overdueAt > 0 && len(k.state.Waiting) > 0 {
		next = min(next, k.overdueAt)
		if len(k.lookAt) > 0 {
			next = min(next, k.lookAt[0])
		}
	}
	if due, ok := k.guard.Next(); ok {
		next = min(next, due)
	}
	return next
}

// Tick does what is due. The error is one of writing the state file.
func (k *Keeper) Tick(now time.Duration) error {
	if len(k.scanAt) > 0 && now >= k.scanAt[0] {
		k.scanAt = k.scanAt[1:]
		before := k.reapplied
		k.rescanAndSweep(now, Reapplied, k.why)
		k.reportReturn(k.reapplied - before)
		if len(k.scanAt) == 0 {
			k.causes = nil
		}
	}
	if len(k.lookAt) > 0 && now >= k.lookAt[0] {
		k.lookAt = k.lookAt[1:]
		// A selection that an event has scheduled knows the cause.
		if len(k.state.Waiting) > 0 && len(k.scanAt) == 0 {
			k.rescanAndSweep(now, Drift, "")
		}
	}
	if k.overdueAt > 0 && now >= k.overdueAt {
		k.reportOverdue()
		k.overdueAt = 0
		k.listWaiting()
		k.dirty = true
	}
	if now >= k.sweepAt {
		// A node may be added or removed without a uevent.
		k.rescanAndSweep(now, Drift, "")
	}
	if due := k.guard.Due(now); len(due) > 0 {
		k.began = k.Wall()
		for _, real := range due {
			k.mark(real)
			k.endContest(real, "no foreign write for "+Truce.String()+": trying again")
		}
		k.repairNodes(due, nil, Drift, "")
	}
	if k.dirty && now >= k.flushAt {
		return k.Flush(now)
	}
	return nil
}

// reportReturn reports in one event how many settings were applied again, and why.
func (k *Keeper) reportReturn(settings int) {
	if settings == 0 {
		return
	}
	cause := strings.Join(k.causes, ", ")
	if cause == "" {
		cause = k.why
	}
	noun := "knobs"
	if settings == 1 {
		noun = "knob"
	}
	k.record(Event{
		Type: Returned, Time: k.Wall().UTC(), Outcome: outcome.OK, Count: settings,
		Message: fmt.Sprintf("%s: re-applied %d %s", cause, settings, noun),
	})
}

// reportOverdue reports settings whose node did not appear in time. They are applied if it
// appears later.
func (k *Keeper) reportOverdue() {
	for _, w := range k.state.Waiting {
		if w.optional && w.Module == "" {
			continue
		}
		k.record(Event{Type: Overdue, Time: k.Wall().UTC(), ID: w.ID, Path: w.Path, Outcome: outcome.Pending, Message: w.Text(k.Wall())})
	}
}

// rescanAndSweep selects the plan's nodes again and looks at all of them.
func (k *Keeper) rescanAndSweep(now time.Duration, kind, why string) {
	k.scanned = now
	before := len(k.nodes)
	for _, real := range k.session.Rescan() {
		k.fresh[real] = true
	}
	k.Reindex()
	if len(k.fresh) > 0 || len(k.nodes) != before {
		k.changes++
	}
	k.sweep(now, kind, why)
	clear(k.fresh)
}

// Flush writes the state file.
func (k *Keeper) Flush(now time.Duration) error {
	k.dirty = false
	k.flushAt = now + flushEvery
	k.state.Written = k.Wall().UTC()
	return k.state.write(k.dev)
}

// Close records that the enforcer has stopped.
func (k *Keeper) Close(now time.Duration) error {
	k.state.PID = 0
	return k.Flush(now)
}

func (k *Keeper) sweep(now time.Duration, kind, why string) {
	k.began = k.Wall()
	k.sweepAt = now + k.sweepInterval()
	all := slices.Sorted(maps.Keys(k.nodes))
	looked := k.session.Inspect(all)
	if kind != Drift || k.Marker == nil || !slices.ContainsFunc(all, func(real string) bool { r, ok := looked[real]; return ok && !isSettled(r) }) {
		k.judge(now, all, looked, nil, kind, why)
		return
	}
	// A write just before or during the sweep has an event that has not been read yet. It names
	// the writer, and may be of a node that was looked at before.
	writes, lost := k.Marker.Writes()
	late, by := k.nameWriters(writes)
	k.judge(now, all, looked, by, kind, why)
	k.examine(now, late, by, Drift, "")
	if lost {
		k.sweepAt = now
	}
}

// examine looks at nodes and repairs those that are not as wanted.
func (k *Keeper) examine(now time.Duration, reals []string, by map[string]*rootfs.Process, kind, why string) {
	if len(reals) > 0 {
		k.judge(now, reals, k.session.Inspect(reals), by, kind, why)
	}
}

// judge reports the nodes that are not as wanted, and repairs them.
func (k *Keeper) judge(now time.Duration, reals []string, looked map[string]enforce.Result, by map[string]*rootfs.Process, kind, why string) {
	var fix []string
	for _, real := range reals {
		r, ok := looked[real]
		if !ok {
			continue
		}
		if isSettled(r) {
			delete(k.last, real)
			if k.guard.EndContest(real) {
				k.mark(real)
				k.endContest(real, "the node has the wanted value")
			}
			continue
		}
		kind, why := k.explain(real, by[real], kind, why)
		event := k.newEvent(kind, k.nodes[real], r, by[real], why)
		if k.mustRepair(now, real, r, &event) {
			fix = append(fix, real)
		}
		k.last[real] = event
	}
	k.repairNodes(fix, by, kind, why)
}

// explain returns the kind of an event and its cause. A node that appears has its default
// value, which nobody has written.
func (k *Keeper) explain(real string, by *rootfs.Process, kind, why string) (string, string) {
	if kind == Drift && by == nil && k.fresh[real] {
		return Reapplied, "its node appeared"
	}
	return kind, why
}

// mustRepair decides what to do with a node that is not as wanted. It reports whether to
// repair the node, and records the event otherwise unless that was done before.
func (k *Keeper) mustRepair(now time.Duration, real string, r enforce.Result, event *Event) bool {
	// Without a writer and with the value of the last event there is nothing new.
	last, known := k.last[real]
	stuck := event.By == nil && known && last.Found == r.Found
	policy := k.nodes[real].Policy
	switch {
	case policy == plan.Report, policy == plan.Once && !k.fresh[real]:
		if !stuck {
			event.Message = "not repaired, policy is " + policy + ": " + r.Message
			k.record(*event)
		}
		return false
	case !canRepair(r):
		if !stuck {
			k.record(*event)
		}
		return false
	case stuck && last.Outcome != outcome.OK:
		return false // a repair was tried and did not help
	case event.Type == Reapplied && event.By == nil && !k.guard.Contested(real):
		return true
	}
	switch k.guard.HandleDrift(now, real) {
	case Repair:
		return true
	case Yield:
		k.yieldNode(real, *event)
	}
	return false
}

// isSettled reports whether a node needs no repair: it is as wanted, or as close to it as
// the kernel allows.
func isSettled(r enforce.Result) bool {
	return r.Outcome == outcome.OK || r.Outcome == outcome.Adjusted || r.Outcome == outcome.Capped
}

// canRepair reports whether a write may help.
func canRepair(r enforce.Result) bool {
	return r.Outcome == outcome.Differs || r.Outcome == outcome.Partial
}

func (k *Keeper) repairNodes(reals []string, by map[string]*rootfs.Process, kind, why string) {
	if len(reals) == 0 {
		return
	}
	results, err := k.session.Repair(reals)
	took := k.Wall().Sub(k.began)
	for _, real := range reals {
		r, ok := results[real]
		if err != nil {
			r, ok = enforce.Result{Outcome: outcome.Stale, Message: err.Error()}, true
		}
		if !ok {
			continue // its device was removed meanwhile
		}
		kind, why := k.explain(real, by[real], kind, why)
		e, seen := k.last[real]
		if !seen {
			e = k.newEvent(kind, k.nodes[real], r, by[real], why)
		}
		e.Outcome, e.Message, e.Repair = r.Outcome, r.Message, max(took.Microseconds(), 1)
		k.last[real] = e
		if isSettled(r) {
			k.state.Repairs++
			if kind == Reapplied && by[real] == nil {
				k.reapplied++
			}
			delete(k.last, real)
		}
		if e.Message == "" && why != "" {
			e.Message = why
		}
		k.record(e)
	}
}

// Overlay puts the settings of a lease in force over the plan's.
func (k *Keeper) Overlay(settings []plan.Setting) ([]enforce.Result, error) {
	results, err := k.session.Overlay(settings)
	k.Reindex()
	return results, err
}

// RemoveOverlay restores the plan's settings and returns the failures.
func (k *Keeper) RemoveOverlay() ([]enforce.Result, error) {
	failed, err := k.session.RemoveOverlay()
	k.Reindex()
	return failed, err
}

// setLeases records the leases in force.
func (k *Keeper) setLeases(leases []Lease) {
	k.state.Leases = leases
	k.dirty = true
}

// State returns the current state, which the caller must not change.
func (k *Keeper) State() *State { return &k.state }

func (k *Keeper) newEvent(kind string, n enforce.Node, r enforce.Result, by *rootfs.Process, why string) Event {
	e := Event{
		Type: kind, Time: k.Wall().UTC(), ID: n.ID, Path: n.Path, Wanted: cmp.Or(r.Wanted, n.Want),
		Found: r.Found, By: by, Outcome: r.Outcome, Message: r.Message,
	}
	if e.Message == "" {
		e.Message = why
	}
	return e
}

// yieldNode stops the repair of a contested node. It removes the mark, so that the other
// program's writes cost nothing.
func (k *Keeper) yieldNode(real string, e Event) {
	k.unmark(real)
	e.Type, e.Outcome = Contest, outcome.Contested
	who := "an unknown process"
	if e.By != nil {
		who = e.By.String()
	}
	e.Message = fmt.Sprintf("%s: contested by %s; no longer repaired after %d repairs in a minute: stop that program or remove the setting", outcome.Name(e.Path), who, Repairs)
	k.state.Contested = append(k.state.Contested, Contested{ID: e.ID, Path: e.Path, Wanted: e.Wanted, Found: e.Found, By: e.By, Since: e.Time})
	k.record(e)
}

func (k *Keeper) endContest(real, why string) {
	n := k.nodes[real]
	i := slices.IndexFunc(k.state.Contested, func(c Contested) bool { return c.Path == n.Path })
	if i < 0 {
		return
	}
	c := k.state.Contested[i]
	k.state.Contested = slices.Delete(k.state.Contested, i, i+1)
	k.record(Event{Type: Regained, Time: k.Wall().UTC(), ID: c.ID, Path: c.Path, Wanted: c.Wanted, Found: c.Found, By: c.By, Outcome: outcome.Contested, Message: why})
}

func (k *Keeper) record(e Event) {
	if e.Type == Drift {
		k.state.Drifts++
	}
	k.state.add(e)
	k.dirty = true
	if e.Type == Contest {
		k.flushAt = 0 // write alarms at once
	}
	k.Emit(e)
}
