package source

import (
	"fmt"
	"time"

	"github.com/yoctune/yoctune/internal/backoff"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Values of restart: what a source does after it ended or failed.
const (
	restartAlways    = "always"
	restartOnFailure = "on-failure"
	restartNever     = "never"
)

// stopped is how long a live source may deliver no frame before it counts as stopped, unless
// the plan sets a timeout.
const stopped = 2 * time.Second

// restartPolicy decides whether and when a source is restarted.
type restartPolicy struct {
	timeout time.Duration
	restart string
	pause   backoff.Delay // before the next attempt
	say     func(why string)
}

func newRestartPolicy(s plan.PipelineSource, say func(why string)) (restartPolicy, error) {
	kind, _ := registry.SourceOf(s.Kind)
	r := restartPolicy{timeout: time.Duration(s.Timeout), restart: s.Restart, say: say}
	switch {
	case r.timeout < 0:
		return r, fmt.Errorf("%w: invalid timeout of %v", registry.ErrPlan, r.timeout)
	case r.timeout == 0:
		r.timeout = stopped
	}
	switch r.restart {
	case "":
		if r.restart = restartNever; s.Live || kind.Camera {
			r.restart = restartAlways
		}
	case restartAlways, restartOnFailure, restartNever:
	default:
		return r, fmt.Errorf("%w: restart %q; use one of %s, %s, %s", registry.ErrPlan, r.restart, restartAlways, restartOnFailure, restartNever)
	}
	return r, nil
}

func (r *restartPolicy) event(format string, a ...any) {
	r.say(fmt.Sprintf(format, a...))
}
