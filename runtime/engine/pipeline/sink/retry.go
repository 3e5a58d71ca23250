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

func (b *retry) over() bool { return b.err == nil || !time.Now().Before(b.next) }

// error is that of the last attempt.
func (b *retry) error() error { return b.err }

func (b *retry) failed(err error) error {
	b.next = time.Now().Add(b.pause.Next())
	b.err = fmt.Errorf("%w: %w", ErrDegraded, err)
	return b.err
}

func (b *retry) worked() { b.err, b.pause = nil, 0 }
