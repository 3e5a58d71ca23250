package worker

import (
	"errors"
	"fmt"
	"slices"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// Errors of a Client; see IsWorkerFault.
var (
	ErrUnavailable = errors.New("no worker available")               // starting, resting or failed
	ErrTimeout     = errors.New("the worker did not answer in time") // the worker is killed
	ErrDied        = errors.New("the worker exited")
	ErrGarbage     = errors.New("malformed answer from the worker") // the worker is killed
	ErrSticky      = errors.New("the device is lost")               // the worker exits
	ErrClosed      = errors.New("the worker client is closed")
)

// IsWorkerFault reports whether a call failed because of the worker or its device, so that the
// work should be done elsewhere. Other errors concern the work itself: an invalid argument,
// or lack of memory (core.ErrOOM), which a smaller piece of work may avoid.
func IsWorkerFault(err error) bool {
	ofWorker := []error{ErrUnavailable, ErrTimeout, ErrDied, ErrGarbage, ErrSticky}
	return slices.ContainsFunc(ofWorker, func(e error) bool { return errors.Is(err, e) })
}

// Cause is the reason why a worker was lost.
type Cause string

// Causes.
const (
	CauseHang    Cause = "hang"    // no answer within the limit
	CauseSticky  Cause = "sticky"  // a sticky device error, such as an illegal address
	CauseLost    Cause = "lost"    // the device is lost
	CauseExit    Cause = "exit"    // the process exited
	CauseSignal  Cause = "signal"  // a signal ended the process, for example the OOM killer's
	CauseGarbage Cause = "garbage" // a malformed answer
	CauseStart   Cause = "start"   // the start failed or took too long
	causeClosed  Cause = "closed"
)

// errorFor returns the error for a call whose worker was lost.
func (c Cause) errorFor(why string) error {
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

// deviceError returns the error in an answer, or nil.
func (a *answer) deviceError(op string) error {
	if a.code == 0 {
		return nil
	}
	return &core.Error{Op: op, Code: core.Code(a.code), Sticky: a.sticky == 1, Native: int(a.native), Msg: a.text()}
}
