// Package ladder decides when a device that follows its load changes its power
// mode. [Ladder] is the decision, without a clock or a device of its own: it is
// told the time and what was measured, and says which step to be on.
//
// What outranks what:
//
//	heat     a step down, whatever else is wanted, and none up until it has cooled
//	a lease  the top step at once, and none down
//	load     one step at a time, after it has lasted, has rested, and within a budget;
//	         a pipeline that misses its latency counts as load
package ladder

import (
	"fmt"
	"slices"
	"time"
)

// Bounds of a ladder. A switch rewrites some twenty nodes, and clocks that jump
// are worse for a pipeline than clocks that are low.
const (
	Dwell  = 5 * time.Second  // least time on a step before load moves it
	cool   = 30 * time.Second // without heat before it climbs again
	scald  = 2 * time.Second  // heat that lasts so long costs a step
	Budget = 30               // switches by load within an hour
)

// Config of a ladder; loads in percent.
type Config struct {
	Steps    int // at least 2
	UpLoad   int
	UpFor    time.Duration
	DownLoad int
	DownFor  time.Duration

	Dwell  time.Duration // zero values are the constants of these names
	Cool   time.Duration
	Budget int
}

// Input is what was measured.
type Input struct {
	Load  int    // percent
	Known bool   // Load could be measured
	Late  string // the pipeline that misses its latency objective, "" when none does
	Hot   bool   // a cooling device holds a clock down
	Lease bool   // somebody holds a lease
}

// Decision is the step to be on.
type Decision struct {
	Step  int
	Moved bool
	Why   string // of a move, or, once, of one that the budget forbids
}

// span is since when something has been so.
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

// Ladder is where a device is, and since when.
type Ladder struct {
	config Config
	step   int
	moved  time.Duration // when it last did
	busy   span
	late   span
	idle   span
	hot    span
	cooled time.Duration   // when heat was last seen
	heated bool            // it was ever seen
	spent  []time.Duration // switches by load of the last hour
	held   bool            // that the budget is spent has been said
}

// New begins on a step.
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

// Step is where it is.
func (l *Ladder) Step() int { return l.step }

// Decide is told what was measured now; times never go back.
func (l *Ladder) Decide(now time.Duration, in Input) Decision {
	c := l.config
	l.busy.set(now, in.Known && in.Load >= c.UpLoad)
	l.late.set(now, in.Late != "")
	l.idle.set(now, in.Known && in.Load <= c.DownLoad && in.Load < c.UpLoad && !in.Lease && in.Late == "")
	l.hot.set(now, in.Hot)
	if in.Hot {
		l.cooled, l.heated = now, true
	}
	rested := now-l.moved >= c.Dwell
	switch {
	case in.Hot:
		if l.hot.lasted(now, scald) && l.step > 0 && rested {
			return l.move(now, l.step-1, "heat holds a clock down")
		}
	case l.heated && now-l.cooled < c.Cool:
		// Climbing into the heat again would only go up and down.
	case in.Lease:
		if top := c.Steps - 1; l.step < top {
			return l.move(now, top, "a lease is held")
		}
	case !rested:
	case l.busy.lasted(now, c.UpFor) && l.step < c.Steps-1:
		return l.byLoad(now, l.step+1, fmt.Sprintf("load was %d %% or more for %v", c.UpLoad, c.UpFor))
	case l.late.lasted(now, c.UpFor) && l.step < c.Steps-1:
		return l.byLoad(now, l.step+1, fmt.Sprintf("pipeline %q missed its latency for %v", in.Late, c.UpFor))
	case l.idle.lasted(now, c.DownFor) && l.step > 0:
		return l.byLoad(now, l.step-1, fmt.Sprintf("load was %d %% or less for %v", c.DownLoad, c.DownFor))
	}
	return Decision{Step: l.step}
}

// byLoad moves while the hour's budget lasts.
func (l *Ladder) byLoad(now time.Duration, to int, why string) Decision {
	l.spent = slices.DeleteFunc(l.spent, func(at time.Duration) bool { return now-at >= time.Hour })
	if len(l.spent) >= l.config.Budget {
		d := Decision{Step: l.step}
		if !l.held {
			l.held = true
			d.Why = fmt.Sprintf("%d switches within an hour: the load moves it no more until some are an hour old", l.config.Budget)
		}
		return d
	}
	l.held = false
	l.spent = append(l.spent, now)
	return l.move(now, to, why)
}

func (l *Ladder) move(now time.Duration, to int, why string) Decision {
	l.step, l.moved = to, now
	// What lasted on one step says nothing about the next.
	l.busy, l.late, l.idle = span{}, span{}, span{}
	l.hot.since = now
	return Decision{Step: to, Moved: true, Why: why}
}
