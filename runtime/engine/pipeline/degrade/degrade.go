// Package degrade decides when a live pipeline reduces its work to stay in time, and when it
// resumes.
//
// [Controller] is the ladder: level 0 does all declared work, each level below costs less.
// [Utilisation] is the outer loop, which tunes the batch size and pauses while the ladder is in
// use, because two control loops on one plant oscillate.
//
// Both are state machines without a clock or device: the caller passes the time and the
// measurements of the last window.
//
//	two violated windows                   ▼ down to the next level that is predicted to fit
//	no violation for the dwell time        ▲ up to the highest level that is predicted to fit
//	a step down within the dwell time of     the dwell time doubles, up to a limit
//	a step up
//	two moves within a minute                only steps down are allowed
//	no violation for ten minutes             the dwell time is reset
package degrade

import (
	"fmt"
	"time"
)

// Defaults and bounds of a [Controller].
const (
	Window   = 250 * time.Millisecond // length of one window
	patience = 2                      // violated windows before a step down
	settle   = 500 * time.Millisecond // after a step, before the next one down
	upDwell  = 3 * time.Second
	maxDwell = 48 * time.Second
	calmTime = 10 * time.Minute
	headroom = 0.8  // of the objective and of the frame period, for a step up
	lossy    = 0.05 // fraction of frames lost to overload that counts as a violation
)

// Level is the cost of one level, as measured during warm-up.
type Level struct {
	Period     time.Duration // between frames, 0: the source's rate
	Bottleneck time.Duration // service time of its slowest stage for one frame
	Service    time.Duration // of all stages
}

// Config of a controller. Zero durations select the defaults; SLO 0 means no limit.
type Config struct {
	Levels            []Level
	Source            time.Duration // period of the source
	SLO               time.Duration // 95th percentile from capture to sink
	UpDwell, MaxDwell time.Duration
}

// Input is the measurements of one window.
type Input struct {
	P95        time.Duration // capture to sink; of Done frames
	Done       int
	Lost       int           // frames dropped because of a full queue or their age
	Bottleneck time.Duration // mean service time of the slowest stage, 0: unknown
	Hot        string        // reason why the device itself must do less, "" for none
}

// Decision is the level to run on.
type Decision struct {
	Level int
	Moved bool
	Why   string // reason for a change
}

// Controller is the state of the ladder.
type Controller struct {
	c        Config
	level    int
	dwell    time.Duration
	violated int
	moved    time.Duration // time of the last move
	before   time.Duration // time of the move before that
	moves    int
	started  bool
	up       bool          // the last move was up
	calm     time.Duration // start of the time without violations
	ratio    float64       // measured cost over calibrated cost, smoothed
}

// New returns a controller on level 0.
func New(c Config) *Controller {
	if c.UpDwell <= 0 {
		c.UpDwell = upDwell
	}
	if c.MaxDwell < c.UpDwell {
		c.MaxDwell = max(maxDwell, c.UpDwell)
	}
	return &Controller{c: c, dwell: c.UpDwell, ratio: 1}
}

// Dwell returns how long no window may be violated before a step up.
func (d *Controller) Dwell() time.Duration { return d.dwell }

// Step evaluates one window that ended at now.
func (d *Controller) Step(now time.Duration, in Input) Decision {
	if !d.started {
		d.started, d.moved, d.calm = true, now, now
	}
	if cal := d.c.Levels[d.level].Bottleneck; cal > 0 && in.Bottleneck > 0 {
		d.ratio += (float64(in.Bottleneck)/float64(cal) - d.ratio) * 0.3
	}
	why := d.violation(in)
	since := now - d.moved
	if why == "" {
		d.violated = 0
		if level, cost := d.levelAbove(now, in); level < d.level {
			return d.move(now, level, cost)
		}
	} else {
		d.violated++
		d.calm = now
		if d.violated >= patience && since >= settle && d.level+1 < len(d.c.Levels) {
			if d.up && since < d.dwell {
				d.dwell = min(2*d.dwell, d.c.MaxDwell)
			}
			return d.move(now, d.levelBelow(), why)
		}
	}
	if now-d.calm >= calmTime && since >= calmTime {
		d.dwell = d.c.UpDwell
	}
	return Decision{Level: d.level}
}

// levelAbove returns the highest level that is predicted to fit, with its cost. It returns the
// current level if none fits or the last violation is too recent.
func (d *Controller) levelAbove(now time.Duration, in Input) (int, string) {
	if now-d.moved >= d.dwell && now-d.calm >= min(d.dwell, d.c.UpDwell) && in.Done > 0 && !d.isOscillating(now) {
		for level := range d.level {
			if fits, cost := d.fits(level); fits {
				return level, cost
			}
		}
	}
	return d.level, ""
}

func (d *Controller) move(now time.Duration, level int, why string) Decision {
	d.up = level < d.level
	d.before = d.moved
	d.level, d.moved, d.violated = level, now, 0
	d.moves++
	// Each level has its own ratio; the old level's is the best estimate.
	return Decision{Level: level, Moved: true, Why: why}
}

// isOscillating reports whether the level changed twice within the last minute.
func (d *Controller) isOscillating(now time.Duration) bool {
	return d.moves >= 2 && now-d.before < time.Minute
}

// levelBelow returns the next lower level that is predicted to fit, or the last one.
func (d *Controller) levelBelow() int {
	for level := d.level + 1; level < len(d.c.Levels); level++ {
		if fits, _ := d.fits(level); fits {
			return level
		}
	}
	return len(d.c.Levels) - 1
}

// violation returns which limit a window violated, or "".
func (d *Controller) violation(in Input) string {
	all := in.Done + in.Lost
	switch {
	case in.Hot != "":
		return in.Hot
	case d.c.SLO > 0 && in.Done > 0 && in.P95 > d.c.SLO:
		return fmt.Sprintf("latency p95 %v exceeds %v", in.P95.Round(100*time.Microsecond), d.c.SLO)
	case all > 0 && float64(in.Lost) > lossy*float64(all):
		return fmt.Sprintf("%d of %d frames were late", in.Lost, all)
	}
	return ""
}

// fits predicts whether a level meets its limits at the current cost.
func (d *Controller) fits(level int) (bool, string) {
	l := d.c.Levels[level]
	busy := time.Duration(float64(l.Bottleneck) * d.ratio)
	whole := time.Duration(float64(l.Service) * d.ratio)
	period := max(l.Period, d.c.Source)
	if period > 0 && float64(busy) > headroom*float64(period) {
		return false, ""
	}
	if d.c.SLO > 0 && float64(whole) > headroom*float64(d.c.SLO) {
		return false, ""
	}
	return true, fmt.Sprintf("predicted to fit at %v a frame", busy.Round(100*time.Microsecond))
}
