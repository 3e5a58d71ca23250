package watch

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/ladder"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/device/power"
)

// The load is sampled four times in the shorter of upFor and downFor, within these bounds.
// With a power ladder, an idle device wakes up that often.
const (
	minLoadInterval = 250 * time.Millisecond
	maxLoadInterval = 2 * time.Second
)

// adaptive switches the power mode with the load and the latency of pipelines.
type adaptive struct {
	ladder *ladder.Ladder
	meter  *ladder.Meter
	modes  []string // that need no reboot, lowest first
	every  time.Duration
	at     time.Duration // of the next sample

	lateness *lateness // nil: no pipeline has a latency objective
}

// startLadder starts the plan's power ladder. Modes that need a reboot are skipped, and
// with fewer than two modes the ladder is off.
func (d *daemon) startLadder(now time.Duration) {
	p := d.File.Plan.Power
	if p == nil || p.Adaptive == nil {
		return
	}
	a := p.Adaptive
	var modes []string
	for _, name := range a.Ladder {
		if err := d.session.CanEnter(name); err != nil {
			d.Report.Problem(fmt.Errorf("power ladder: mode %s is left out: %w", name, err))
			continue
		}
		modes = append(modes, name)
	}
	if len(modes) < 2 {
		d.Report.Problem(errors.New("power ladder: fewer than two modes can be entered without a reboot, so the mode will not follow the load"))
		return
	}
	start := slices.Index(modes, d.session.Mode())
	if start < 0 {
		start = 0
		d.switchMode(modes[0], "the power ladder starts at its lowest mode")
	}
	var late *lateness
	for _, pl := range d.File.Plan.Pipelines {
		if pl.SLO != nil && pl.SLO.LatencyP95 > 0 {
			late = &lateness{dir: filepath.Join(d.Root.Dir(), pipelines.Dir)}
		}
	}
	up, down := time.Duration(a.UpFor), time.Duration(a.DownFor)
	d.adaptive = &adaptive{
		ladder: ladder.New(ladder.Config{Steps: len(modes), UpLoad: a.UpLoad, UpFor: up, DownLoad: a.DownLoad, DownFor: down,
			Dwell: time.Duration(a.Dwell), Cool: time.Duration(a.Cool), Budget: a.Budget}, start, now),
		meter: ladder.NewMeter(d.Root), modes: modes, every: min(max(min(up, down)/4, minLoadInterval), maxLoadInterval), at: now,
		lateness: late,
	}
}

// followLoad takes a sample and switches the mode if the ladder decides to.
func (d *daemon) followLoad(now time.Duration) {
	a := d.adaptive
	a.at = now + a.every
	var load int
	var known, hot bool
	if s := d.sampling.recent(now, a.every); s != nil {
		// A client has just asked for a sample: use it.
		load, known = s.Load()
		hot = len(s.Throttled()) > 0
	} else {
		load, known = a.meter.Load()
		hot = enforce.Throttled(d.Root) != ""
	}
	decision := a.ladder.Decide(now, ladder.Input{
		Load: load, Known: known, Late: a.lateness.poll(), Hot: hot, Lease: len(d.ledger.All()) > 0,
	})
	switch {
	case decision.Moved:
		d.switchMode(a.modes[decision.Step], decision.Why)
	case decision.Why != "":
		d.Report.Problem(fmt.Errorf("power ladder: %s", decision.Why))
	}
}

// lateness finds pipelines that miss their latency objective. It reads them in a
// goroutine of its own, so that a pipeline that hangs does not delay the daemon.
type lateness struct {
	dir     string
	reading atomic.Bool
	before  map[string]*pipelines.Progress // used by the reading goroutine only
	late    atomic.Pointer[string]
}

// poll returns the name of a pipeline that missed its objective at the last reading, ""
// when none did, and starts the next reading.
func (l *lateness) poll() string {
	if l == nil {
		return ""
	}
	if l.reading.CompareAndSwap(false, true) {
		go func() {
			defer l.reading.Store(false)
			l.read()
		}()
	}
	if name := l.late.Load(); name != nil {
		return *name
	}
	return ""
}

func (l *lateness) read() {
	list, _ := pipelines.ReadAll(l.dir, pipelines.DecodeProgress) // a pipeline that does not answer cannot be late
	late, now := "", make(map[string]*pipelines.Progress, len(list))
	for _, p := range list {
		now[p.Pipeline] = p
		if p.MissedTarget(l.before[p.Pipeline]) {
			late = p.Pipeline
		}
	}
	l.before = now
	l.late.Store(&late)
}

// switchMode switches the power mode and reports failures.
func (d *daemon) switchMode(name, why string) {
	if err := d.keeper.switchMode(name, why); err != nil {
		d.Report.Problem(fmt.Errorf("power ladder: %w", err))
	}
}

// switchMode enters a power mode in place of the current one.
func (k *Keeper) switchMode(name, why string) error {
	was := k.session.Mode()
	results, err := k.session.SetMode(name)
	k.Reindex()
	if err != nil {
		return err
	}
	e := Event{Type: Switched, Time: k.Wall().UTC(), ID: "power.default", Path: power.StatusFile, Wanted: name, Found: was, Outcome: outcome.OK, Message: why}
	// The first result summarises the mode. The last one, of the next boot's mode, is
	// ignored: the device boots in the plan's own mode.
	if r := results[0]; r.Outcome != outcome.OK {
		e.Outcome, e.Message = r.Outcome, why+"; "+r.Message
	}
	k.record(e)
	return nil
}
