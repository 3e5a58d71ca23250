package sink

import (
	"fmt"
	"time"

	"github.com/yoctune/yoctune/internal/backoff"
)

// retry delays the next attempt of a sink whose receiver failed.
type retry struct {
	err   error
	next  time.Time
	pause backoff.Delay
}

// due reports whether the next attempt may be made.
func (b *retry) due() bool { return b.err == nil || !time.Now().Before(b.next) }

// fail records a failed attempt. It returns err as [ErrDegraded].
func (b *retry) fail(err error) error {
	b.next = time.Now().Add(b.pause.Next())
	b.err = fmt.Errorf("%w: %w", ErrDegraded, err)
	return b.err
}

// reset records a successful attempt.
func (b *retry) reset() { b.err, b.pause = nil, 0 }
