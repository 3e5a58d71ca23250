package degrade

import (
	"math"
	"time"
)

// Interval is the window of a [Utilisation] controller.
const Interval = 500 * time.Millisecond

// Utilisation keeps a resource at a target utilisation by the amount of work done at once: a
// proportional-integral controller on the logarithm of the amount, with anti-windup.
type Utilisation struct {
	Target float64 // target fraction of busy time, 0.9
	Max    int     // upper limit of the amount

	integral float64
	started  bool
	share    float64
}

// Gains, as exponents of e for a full error. They settle within ten windows on a plant that
// responds immediately.
const (
	proportional = 0.1
	integrating  = 0.5
)

// Step takes the busy fraction of one window and returns the amount to do at once, from 1 to
// Max. While degraded it holds its output.
func (u *Utilisation) Step(busy float64, degraded bool) int {
	top := math.Log(float64(max(u.Max, 1)))
	if !u.started {
		u.started, u.integral = true, top
	}
	out := u.integral
	if !degraded {
		e := busy - u.Target // too busy: larger batches cost less per frame
		u.integral = min(max(u.integral+integrating*e, 0), top)
		out = min(max(u.integral+proportional*e, 0), top)
	}
	return int(math.Exp(out) + 0.5)
}

// Limits of the share of frames that a live source keeps, and how fast it returns.
const (
	leastShare = 0.1
	raise      = 1.05
	room       = 0.95 // of the target below which it returns
)

// Share takes the busy fraction of one window and returns the share of a live source's frames to process, which goes
// below 1 when the largest amount at once does not keep the target. It goes down in proportion to
// the excess, and returns slowly, so that it does not swing.
func (u *Utilisation) Share(busy float64, amount int, degraded bool) float64 {
	if u.share == 0 {
		u.share = 1
	}
	switch {
	case degraded:
	case busy > u.Target && amount >= u.Max:
		u.share = max(u.share*u.Target/busy, leastShare)
	case busy < room*u.Target:
		u.share = min(u.share*raise, 1)
	}
	return u.share
}
