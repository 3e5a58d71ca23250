package degrade

import (
	"math"
	"time"
)

// Interval is the window of a [Utilisation] controller.
const Interval = 500 * time.Millisecond

// Utilisation keeps a resource as busy as wanted by how much is done at once: a
// proportional-integral controller on the logarithm of that, whose integral
// stops where its output does.
type Utilisation struct {
	Target float64 // part of the time that it is busy, 0.9
	Max    int     // most to do at once

	integral float64
	started  bool
}

// Gains, in powers of e for a full error. They settle within ten windows on a
// plant that follows at once.
const (
	proportional = 0.1
	integrating  = 0.5
)

// Step takes the busy part of one window and returns how much to do at once,
// from 1 to Max. While degraded it holds what it has.
func (u *Utilisation) Step(busy float64, degraded bool) int {
	top := math.Log(float64(max(u.Max, 1)))
	if !u.started {
		u.started, u.integral = true, top
	}
	out := u.integral
	if !degraded {
		e := busy - u.Target // too busy: larger portions cost less each
		u.integral = min(max(u.integral+integrating*e, 0), top)
		out = min(max(u.integral+proportional*e, 0), top)
	}
	return int(math.Exp(out) + 0.5)
}
