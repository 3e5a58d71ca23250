// Package ladder decides from its load when a device switches its power mode. [Ladder] takes
// times and measurements and has no clock and no device. [Meter] measures the load.
//
// Priorities, highest first:
//
//	heat     thermal limits win: step down, never up until the device has cooled
//	a lease  the top step at once, never down
//	load     one step at a time, after load and dwell time, and within a budget;
//	         a pipeline that misses its latency objective counts as load
package ladder

import (
	"fmt"
	"slices"
	"time"
)

// Defaults of a ladder. A switch writes some twenty nodes, and frequent changes of clocks are
// worse for a pipeline than low clocks.
const (
	Dwell  = 5 * time.Second  // minimum time on a step before load changes it
	cool   = 30 * time.Second // without heat before a step up
	scald  = 2 * time.Second  // of heat before a step down
	Budget = 30               // switches by load per hour
)

// Config of a ladder; loads in percent.
type Config struct {
	Steps    int // at least 2
	UpLoad   int
	UpFor    time.Duration
	DownLoad int
	DownFor  time.Duration

	Dwell  time.Duration // zero values select the defaults
	Cool   time.Duration
	Budget int
}

// Input is a measurement.
type Input struct {
	Load  int    // percent
	Known bool   // Load is valid
	Late  string // pipeline that misses its latency objective, "" for none
	Hot   bool   // a cooling device limits a clock
	Lease bool   // a lease is in force
}

// Decision is the step to enter.
type Decision struct {
	Step  int
	Moved bool
	Why   string // of a move; also, once, of a move that the budget forbids
}

// span records since when a condition holds.
type span struct {
	on    bool
	since time.Duration
}

func (s *span) set(now time.Duration, on bool) {
	if on && !s.on {
		s.since = now
	}
	s.on = on
}

func (s *span) lasted(now, d time.Duration) bool { return s.on && now-s.since >= d }

// Ladder is the current step with the recent history.
type Ladder struct {
	config Config
	step   int
	moved  time.Duration // time of the last move
	busy   span
	late   span
	idle   span
	hot    span
	cooled time.Duration   // when heat was last measured
	heated bool            // heat was measured at least once
	spent  []time.Duration // times of switches by load in the last hour
	held   bool            // the spent budget was reported
}

// New returns a ladder on a step.
func New(c Config, step int, now time.Duration) *Ladder {
	if c.Dwell <= 0 {
		c.Dwell = Dwell
	}
	if c.Cool <= 0 {
		c.Cool = cool
	}
	if c.Budget <= 0 {
		c.Budget = Budget
	}
	return &Ladder{config: c, step: min(max(step, 0), c.Steps-1), moved: now - c.Dwell}
}

// Decide takes a measurement and returns the step to enter. Times never go back.
func (l *Ladder) Decide(now time.Duration, in Input) Decision {
	l.observe(now, in)
	c := l.config
	top, rested := c.Steps-1, now-l.moved >= c.Dwell
	switch {
	case in.Hot:
		if l.hot.lasted(now, scald) && l.step > 0 && rested {
			return l.move(now, l.step-1, "heat limits a clock")
		}
	case l.heated && now-l.cooled < c.Cool:
		// Stay: a step up would only heat the device again.
	case in.Lease:
		if l.step < top {
			return l.move(now, top, "a lease is held")
		}
	case rested:
		return l.followLoad(now, in)
	}
	return Decision{Step: l.step}
}

// observe records since when each condition holds.
func (l *Ladder) observe(now time.Duration, in Input) {
	c := l.config
	l.busy.set(now, in.Known && in.Load >= c.UpLoad)
	l.late.set(now, in.Late != "")
	l.idle.set(now, in.Known && in.Load <= c.DownLoad && in.Load < c.UpLoad && !in.Lease && in.Late == "")
	l.hot.set(now, in.Hot)
	if in.Hot {
		l.cooled, l.heated = now, true
	}
}

// followLoad moves by one step if the load or a late pipeline has lasted long enough.
func (l *Ladder) followLoad(now time.Duration, in Input) Decision {
	c, top := l.config, l.config.Steps-1
	switch {
	case l.busy.lasted(now, c.UpFor) && l.step < top:
		return l.moveByLoad(now, l.step+1, fmt.Sprintf("load was %d %% or more for %v", c.UpLoad, c.UpFor))
	case l.late.lasted(now, c.UpFor) && l.step < top:
		return l.moveByLoad(now, l.step+1, fmt.Sprintf("pipeline %q missed its latency for %v", in.Late, c.UpFor))
	case l.idle.lasted(now, c.DownFor) && l.step > 0:
		return l.moveByLoad(now, l.step-1, fmt.Sprintf("load was %d %% or less for %v", c.DownLoad, c.DownFor))
	}
	return Decision{Step: l.step}
}

// moveByLoad moves within the budget.
func (l *Ladder) moveByLoad(now time.Duration, to int, why string) Decision {
	l.spent = slices.DeleteFunc(l.spent, func(at time.Duration) bool { return now-at >= time.Hour })
	if len(l.spent) >= l.config.Budget {
		d := Decision{Step: l.step}
		if !l.held {
			l.held = true
			d.Why = fmt.Sprintf("%d switches within an hour: load does not change the mode until the oldest is an hour old", l.config.Budget)
		}
		return d
	}
	l.held = false
	l.spent = append(l.spent, now)
	return l.move(now, to, why)
}

func (l *Ladder) move(now time.Duration, to int, why string) Decision {
	l.step, l.moved = to, now
	// Conditions on one step do not apply to the next.
	l.busy, l.late, l.idle = span{}, span{}, span{}
	l.hot.since = now
	return Decision{Step: to, Moved: true, Why: why}
}
