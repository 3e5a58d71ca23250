package sink

import (
	"fmt"
	"time"

	"github.com/yoctune/yoctune/internal/backoff"
)

// Retry delays the next attempt of a sink whose receiver failed.
type Retry struct {
	err   error
	next  time.Time
	pause backoff.Delay
}

// Err is the last failure, as Fail returned it.
func (b *Retry) Err() error { return b.err }

// Due reports whether the next attempt may be made.
func (b *Retry) Due() bool { return b.err == nil || !time.Now().Before(b.next) }

// Fail records a failed attempt. It returns err as [ErrDegraded].
func (b *Retry) Fail(err error) error {
	b.next = time.Now().Add(b.pause.Next())
	b.err = fmt.Errorf("%w: %w", ErrDegraded, err)
	return b.err
}

// Reset records a successful attempt.
func (b *Retry) Reset() { b.err, b.pause = nil, 0 }
