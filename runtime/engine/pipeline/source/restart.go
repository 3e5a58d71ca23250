package source

import (
	"fmt"
	"time"

	"github.com/yoctune/yoctune/internal/backoff"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// What a source does when it has ended or failed.
const (
	restartAlways    = "always"
	restartOnFailure = "on-failure"
	restartNever     = "never"
)

// stopped is how long a live source may give no frame before it counts as stopped, when
// the plan sets no time.
const stopped = 2 * time.Second

// revival says when a source counts as stopped, and what is done about it.
type revival struct {
	timeout time.Duration
	restart string
	pause   backoff.Delay // before the next attempt
	say     func(why string)
}

func newRevival(s plan.PipelineSource, say func(why string)) (revival, error) {
	kind, _ := registry.SourceOf(s.Kind)
	r := revival{timeout: time.Duration(s.Timeout), restart: s.Restart, say: say}
	switch {
	case r.timeout < 0:
		return r, fmt.Errorf("%w: timeout of %v", registry.ErrPlan, r.timeout)
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
		return r, fmt.Errorf("%w: restart %q; it is one of %s, %s, %s", registry.ErrPlan, r.restart, restartAlways, restartOnFailure, restartNever)
	}
	return r, nil
}

func (r *revival) event(format string, a ...any) {
	r.say(fmt.Sprintf(format, a...))
}
