package watch

import (
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

// Times of the keeper.
const (
	SweepEvery  = 5 * time.Minute // every node is looked at, when writes are told
	SweepBlind  = 5 * time.Second // and when they are not
	Patience    = time.Minute     // in which what a setting waits for should come
	settleFirst = 20 * time.Millisecond
	settleGap   = time.Second     // between selections, however many devices come
	settleLast  = 2 * time.Second // udev and drivers are done by then
	flushEvery  = time.Second     // history is written at most so often
	maxCauses   = 6               // of one return that are named
)

// Marker is who tells of writes.
type Marker interface {
	Mark(real string) error
	Unmark(real string)
}

// Clock is the wall clock, for records only. Decisions use the times given.
type Clock func() time.Time

// Keeper holds an applied plan against everybody. Its methods are called by one
// goroutine, with times since an arbitrary start that never go back.
type Keeper struct {
	dev     rootfs.Device
	session *enforce.Session
	guard   *Guard
	marker  Marker
	wall    Clock
	name    func(pid int) rootfs.Process
	emit    func(Event)

	nodes  map[string]enforce.Node // by resolved name
	moved  map[string][]string     // a written node, and the nodes to look at then
	marked map[string]bool
	last   map[string]Event // of each node that is not as wanted, to say it once

	state   State
	dirty   bool
	flushAt time.Duration
	sweepAt time.Duration
	scanAt  []time.Duration // when to select nodes again, soonest first
	why     string          // what the next selection is for
	causes  []string        // the same for people, each once
	late    time.Duration   // when what is waited for is overdue; 0: it was said
	until   time.Time       // the same on the wall clock
	scanned time.Duration   // when the last one was
	fresh   map[string]bool // during one: nodes that were not there before
	began   time.Time       // when what is being dealt with became known
	blind   map[string]bool // file systems whose writes are not told

	reapplied  int // nodes that were given their settings because something came
	unmarkable error
}

// Config is what a keeper needs besides its device.
type Config struct {
	File   *planfile.File
	Marker Marker
	Wall   Clock
	Name   func(pid int) rootfs.Process // names a writer
	Emit   func(Event)                  // is told of every event, once
	PID    int
}

// NewKeeper takes an open session. Nothing is marked or written yet.
func NewKeeper(dev rootfs.Device, session *enforce.Session, c Config) *Keeper {
	k := &Keeper{
		dev: dev, session: session, guard: NewGuard(), marker: c.Marker, wall: c.Wall, name: c.Name, emit: c.Emit,
		marked: map[string]bool{}, last: map[string]Event{}, blind: map[string]bool{}, fresh: map[string]bool{},
		scanned: -settleGap, late: Patience, until: c.Wall().Add(Patience).UTC(),
	}
	boot := rootfs.Identify(dev).BootID
	// What happened before a crash is part of the story.
	if old, err := ReadState(dev, boot); err == nil && old != nil {
		k.state.History = old.History
	}
	k.state.Boot, k.state.PID = boot, c.PID
	k.state.Plan, k.state.Digest = c.File.Path, c.File.Plan.Digest
	if path, err := filepath.Abs(c.File.Path); err == nil {
		k.state.Plan = path // for those who ask from another folder
	}
	k.state.Contested, k.state.Leases, k.state.Waiting = []Contested{}, []Lease{}, []Waiting{}
	k.index()
	return k
}

// Applied is told that the session has applied its plan: a power mode has brought
// nodes, and may have taken some away.
func (k *Keeper) Applied() { k.index() }

// index takes the session's nodes and marks those that are new.
func (k *Keeper) index() {
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
	k.state.Waiting = k.state.Waiting[:0]
	for _, w := range k.session.Waiting() {
		k.state.Waiting = append(k.state.Waiting, Waiting{ID: w.ID, Path: w.Path, Module: knob.ProvidingModule(w.Path), Until: k.until})
	}
	for real := range k.last {
		if _, ok := k.nodes[real]; !ok {
			delete(k.last, real)
		}
	}
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

// mark is repeated at every selection: a node created anew has lost its mark.
func (k *Keeper) mark(real string) {
	if k.marker == nil {
		return
	}
	switch err := k.marker.Mark(real); {
	case err == nil:
		k.marked[real] = true
	case !errors.Is(err, fs.ErrNotExist): // gone since it was selected
		k.unmarkable = err
	}
}

// Unmarkable is why some node's writes are not told, nil when all are.
func (k *Keeper) Unmarkable() error { return k.unmarkable }

func (k *Keeper) unmark(real string) {
	if k.marked[real] {
		k.marker.Unmark(real)
		delete(k.marked, real)
	}
}

// Sources records where events come from; without those of a file system the
// sweep is all there is, and is quick.
func (k *Keeper) Sources(now time.Duration, sources []Source) {
	k.state.Events = sources
	for _, s := range sources {
		k.blind[s.Name] = !s.Delivered
	}
	k.sweepAt = now + k.interval()
	k.late = now + Patience
	k.dirty = true
}

// interval is the time to the next sweep: spread by a quarter, so that a fleet
// does not look at the same time.
func (k *Keeper) interval() time.Duration {
	every := SweepEvery
	if k.marker != nil && k.unmarkable != nil {
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

// FileSystems lists those that the plan's nodes are on.
func (k *Keeper) FileSystems() []string {
	names := map[string]bool{}
	for real := range k.nodes {
		names[fileSystem(real)] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// errNoTouch says that no node could be written to find out whether writes are
// told.
var errNoTouch = errors.New("no node of the plan could be written to find out")

// Touch writes a node of a file system its own value, to see whether that is
// told. Only nodes that the plan holds and writes are candidates.
func (k *Keeper) Touch(name string) error {
	var reals []string
	for real, n := range k.nodes {
		if fileSystem(real) == name && n.Policy != plan.Report && !rootfs.IsVirtual(real) {
			reals = append(reals, real)
		}
	}
	slices.Sort(reals)
	looked := k.session.Look(reals)
	for _, real := range reals {
		if looked[real].Outcome == outcome.OK && k.session.Touch(real) == nil {
			return nil
		}
	}
	return errNoTouch
}

// fileSystem names the one a node is on.
func fileSystem(real string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(real, "/"), "/")
	return "/" + first
}

// Written is told of writes to marked nodes.
func (k *Keeper) Written(now time.Duration, writes []Write) {
	k.began = k.wall()
	by := map[string]*rootfs.Process{}
	processes := map[int]*rootfs.Process{}
	var look []string
	for _, w := range writes {
		p := processes[w.PID]
		if p == nil {
			named := k.name(w.PID)
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
	k.examine(now, look, by, Drift, "")
}

// Overflowed is told that events were lost.
func (k *Keeper) Overflowed(now time.Duration) { k.sweep(now, Drift, "more was written than is told") }

// Uevent is told that a device came, went or changed.
func (k *Keeper) Uevent(now time.Duration, u Uevent) {
	if !u.moves() {
		return
	}
	k.rescan(now, fmt.Sprintf("%s of %s", u.Action, strings.TrimPrefix(u.DevPath, "/devices/")), u.phrase())
}

// Changed is told that somebody, the kernel does not say who, changed a driver's
// settings of a network interface.
func (k *Keeper) Changed(now time.Duration, iface string) {
	k.began = k.wall()
	var look []string
	for real := range k.nodes {
		if strings.Contains(real, "/net/"+iface+"/") && rootfs.IsVirtual(real) {
			look = append(look, real)
		}
	}
	slices.Sort(look)
	k.examine(now, look, nil, Drift, "")
}

// Rescan selects the plan's nodes again, soon, and once more when what follows
// a device's appearance is over. Kernels before 4.17 tell of a module before
// its sysctls exist.
func (k *Keeper) Rescan(now time.Duration, why string) {
	// The machine's sleep says more than the devices that come back with it.
	if !slices.Contains(k.causes, why) {
		k.causes = slices.Insert(k.causes, 0, why)
		k.causes = k.causes[:min(len(k.causes), maxCauses)]
	}
	k.rescan(now, why, "")
}

func (k *Keeper) rescan(now time.Duration, why, cause string) {
	k.why = why
	if cause != "" && !slices.Contains(k.causes, cause) && len(k.causes) < maxCauses {
		k.causes = append(k.causes, cause)
	}
	if len(k.scanAt) < 2 {
		k.scanAt = []time.Duration{max(now+settleFirst, k.scanned+settleGap), now + settleLast}
		return
	}
	// A storm of events is one event that lasts; it only moves the end.
	k.scanAt[1] = now + settleLast
}

// Next is when Tick has something to do.
func (k *Keeper) Next() time.Duration {
	next := k.sweepAt
	if len(k.scanAt) > 0 {
		next = min(next, k.scanAt[0])
	}
	if k.dirty {
		next = min(next, k.flushAt)
	}
	if k.late > 0 && len(k.state.Waiting) > 0 {
		next = min(next, k.late)
	}
	if due, ok := k.guard.Next(); ok {
		next = min(next, due)
	}
	return next
}

// Tick does what is due. The error is that of writing the history.
func (k *Keeper) Tick(now time.Duration) error {
	if len(k.scanAt) > 0 && now >= k.scanAt[0] {
		k.scanAt = k.scanAt[1:]
		before := k.reapplied
		k.sweepAgain(now, Reapplied, k.why)
		k.returned(k.reapplied - before)
		if len(k.scanAt) == 0 {
			k.causes = nil
		}
	}
	if k.late > 0 && now >= k.late {
		k.late = 0
		k.overdue()
	}
	if now >= k.sweepAt {
		// A node may have come or gone without a uevent.
		k.sweepAgain(now, Drift, "")
	}
	if due := k.guard.Due(now); len(due) > 0 {
		k.began = k.wall()
		for _, real := range due {
			k.mark(real)
			k.regain(real, "quiet for "+Truce.String()+": tried again")
		}
		k.repair(due, nil, Drift, "")
	}
	if k.dirty && now >= k.flushAt {
		return k.Flush(now)
	}
	return nil
}

// returned says in one line what came back and what it was given.
func (k *Keeper) returned(settings int) {
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
	k.tell(Event{
		Type: Returned, Time: k.wall().UTC(), Outcome: outcome.OK, Count: settings,
		Message: fmt.Sprintf("%s: re-applied %d %s", cause, settings, noun),
	})
}

// overdue says what has not come in time. It is still set when it comes.
func (k *Keeper) overdue() {
	for _, w := range k.state.Waiting {
		k.tell(Event{Type: Overdue, Time: k.wall().UTC(), ID: w.ID, Path: w.Path, Outcome: outcome.Pending, Message: w.Text(k.wall())})
	}
}

// sweepAgain selects the plan's nodes again and looks at all.
func (k *Keeper) sweepAgain(now time.Duration, kind, why string) {
	k.scanned = now
	for _, real := range k.session.Rescan() {
		k.fresh[real] = true
	}
	k.index()
	k.sweep(now, kind, why)
	clear(k.fresh)
}

// Flush writes the history.
func (k *Keeper) Flush(now time.Duration) error {
	k.dirty = false
	k.flushAt = now + flushEvery
	return k.state.write(k.dev)
}

// Close records that nobody watches any more.
func (k *Keeper) Close(now time.Duration) error {
	k.state.PID = 0
	return k.Flush(now)
}

func (k *Keeper) sweep(now time.Duration, kind, why string) {
	k.began = k.wall()
	k.sweepAt = now + k.interval()
	all := make([]string, 0, len(k.nodes))
	for real := range k.nodes {
		all = append(all, real)
	}
	slices.Sort(all)
	k.examine(now, all, nil, kind, why)
}

// examine looks at nodes and deals with those that are not as wanted.
func (k *Keeper) examine(now time.Duration, reals []string, by map[string]*rootfs.Process, kind, why string) {
	if len(reals) == 0 {
		return
	}
	var fix []string
	looked := k.session.Look(reals)
	for _, real := range reals {
		r, ok := looked[real]
		if !ok {
			continue
		}
		if settled(r) {
			delete(k.last, real)
			if k.guard.Kept(real) {
				k.mark(real)
				k.regain(real, "found as wanted")
			}
			continue
		}
		n := k.nodes[real]
		event := k.event(kind, n, r, by[real], why)
		// Without a writer and with nothing new to see, it has been said.
		old, known := k.last[real]
		stuck := by[real] == nil && known && old.Found == r.Found
		switch {
		case n.Policy == plan.Report, n.Policy == plan.Once && !k.fresh[real]:
			if !stuck {
				event.Message = "left alone, as its policy is " + n.Policy + ": " + r.Message
				k.tell(event)
			}
		case !repairable(r):
			if !stuck {
				k.tell(event)
			}
		case stuck && old.Outcome != outcome.OK:
			// Tried, and it did not help.
		case kind == Reapplied && by[real] == nil && !k.guard.Contested(real):
			fix = append(fix, real)
		default:
			switch k.guard.Drifted(now, real) {
			case Repair:
				fix = append(fix, real)
			case Yield:
				k.yield(real, event)
			}
		}
		k.last[real] = event
	}
	k.repair(fix, by, kind, why)
}

// settled reports whether a node needs nothing: it is as wanted, or as near as
// the kernel lets it be.
func settled(r enforce.Result) bool {
	return r.Outcome == outcome.OK || r.Outcome == outcome.Adjusted || r.Outcome == outcome.Capped
}

// repairable reports whether writing may help.
func repairable(r enforce.Result) bool {
	return r.Outcome == outcome.Differs || r.Outcome == outcome.Partial
}

func (k *Keeper) repair(reals []string, by map[string]*rootfs.Process, kind, why string) {
	if len(reals) == 0 {
		return
	}
	before := map[string]Event{}
	for _, real := range reals {
		if e, ok := k.last[real]; ok {
			before[real] = e
		}
	}
	results, err := k.session.Repair(reals)
	took := k.wall().Sub(k.began)
	for _, real := range reals {
		r, ok := results[real]
		if err != nil {
			r, ok = enforce.Result{Outcome: outcome.Stale, Message: err.Error()}, true
		}
		if !ok {
			continue // its device went away in between
		}
		e, seen := before[real]
		if !seen {
			e = k.event(kind, k.nodes[real], r, by[real], why)
		}
		e.Outcome, e.Message, e.Repair = r.Outcome, r.Message, max(took.Microseconds(), 1)
		k.last[real] = e
		if settled(r) {
			k.state.Repairs++
			if kind == Reapplied && by[real] == nil {
				k.reapplied++
			}
			delete(k.last, real)
		}
		if e.Message == "" && why != "" {
			e.Message = why
		}
		k.tell(e)
	}
}

// Cover lays settings of a lease over the plan's.
func (k *Keeper) Cover(settings []plan.Setting) ([]enforce.Result, error) {
	results, err := k.session.Overlay(settings)
	k.index()
	return results, err
}

// Uncover takes them away and returns what could not be put back.
func (k *Keeper) Uncover() ([]enforce.Result, error) {
	failed, err := k.session.Uncover()
	k.index()
	return failed, err
}

// Leases records the leases in force.
func (k *Keeper) Leases(leases []Lease) {
	k.state.Leases = leases
	k.dirty = true
}

// State is what is known now; the caller must not change it.
func (k *Keeper) State() *State { return &k.state }

func (k *Keeper) event(kind string, n enforce.Node, r enforce.Result, by *rootfs.Process, why string) Event {
	e := Event{
		Type: kind, Time: k.wall().UTC(), ID: n.ID, Path: n.Path, Wanted: n.Want,
		Found: r.Found, By: by, Outcome: r.Outcome, Message: r.Message,
	}
	if e.Message == "" {
		e.Message = why
	}
	return e
}

// yield gives a node up: it is no longer marked, or the other's writes would
// keep this program busy.
func (k *Keeper) yield(real string, e Event) {
	k.unmark(real)
	e.Type, e.Outcome = Contest, outcome.Contested
	who := "somebody who was not seen"
	if e.By != nil {
		who = e.By.String()
	}
	e.Message = fmt.Sprintf("%s: contested by %s, yielding after %d repairs in a minute: stop one of the two", outcome.Name(e.Path), who, Repairs)
	k.state.Contested = append(k.state.Contested, Contested{ID: e.ID, Path: e.Path, Wanted: e.Wanted, Found: e.Found, By: e.By, Since: e.Time})
	k.tell(e)
}

func (k *Keeper) regain(real, why string) {
	n := k.nodes[real]
	i := slices.IndexFunc(k.state.Contested, func(c Contested) bool { return c.Path == n.Path })
	if i < 0 {
		return
	}
	c := k.state.Contested[i]
	k.state.Contested = slices.Delete(k.state.Contested, i, i+1)
	k.tell(Event{Type: Regained, Time: k.wall().UTC(), ID: c.ID, Path: c.Path, Wanted: c.Wanted, Found: c.Found, By: c.By, Outcome: outcome.Contested, Message: why})
}

func (k *Keeper) tell(e Event) {
	if e.Type == Drift {
		k.state.Drifts++
	}
	k.state.add(e)
	k.dirty = true
	if e.Type == Contest {
		k.flushAt = 0 // an alarm does not wait
	}
	k.emit(e)
}
