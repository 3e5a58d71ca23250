package worker

import (
	"errors"
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// Errors of a Client; see Elsewhere.
var (
	ErrUnavailable = errors.New("no worker")                         // none runs now: starting, resting, or given up
	ErrTimeout     = errors.New("the worker did not answer in time") // it is killed
	ErrDied        = errors.New("the worker ended")
	ErrGarbage     = errors.New("the worker's answer is wrong") // it is killed
	ErrSticky      = errors.New("the device is lost")           // the worker ends itself
	ErrClosed      = errors.New("the worker's client is closed")
)

// Elsewhere reports whether the work was not done for want of a device, and is to be
// done elsewhere. The rest are errors of the work itself: a wrong argument, or memory
// that ran out (core.ErrOOM), which a smaller piece of work may not need.
func Elsewhere(err error) bool {
	for _, e := range []error{ErrUnavailable, ErrTimeout, ErrDied, ErrGarbage, ErrSticky} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Cause is why a worker was lost.
type Cause string

// Causes.
const (
	CauseHang    Cause = "hang"    // no answer within the limit
	CauseSticky  Cause = "sticky"  // an illegal address and the like: the device answers no more
	CauseLost    Cause = "lost"    // the device is gone
	CauseExit    Cause = "exit"    // the process ended by itself
	CauseSignal  Cause = "signal"  // or by a signal of somebody else, such as the kernel's when memory is out
	CauseGarbage Cause = "garbage" // an answer that cannot be
	CauseStart   Cause = "start"   // it could not start, or not in time
	causeClosed  Cause = "closed"
)

// of gives the error of a caller whose worker was lost.
func (c Cause) of(why string) error {
	base := ErrDied
	switch c {
	case CauseHang:
		base = ErrTimeout
	case CauseGarbage:
		base = ErrGarbage
	case CauseSticky, CauseLost:
		base = ErrSticky
	case causeClosed:
		base = ErrClosed
	case CauseStart:
		base = ErrUnavailable
	}
	return fmt.Errorf("%w: %s", base, why)
}

// failure is an answer's error.
func (a *answer) failure(op string) error {
	if a.code == 0 {
		return nil
	}
	return &core.Error{Op: op, Code: core.Code(a.code), Sticky: a.sticky == 1, Native: int(a.native), Msg: a.text()}
}
