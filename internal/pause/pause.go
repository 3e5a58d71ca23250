// Package pause is the time between attempts at something that fails: 0.1 s, then twice
// as long each time, up to 10 s.
package pause

import "time"

// Bounds of a pause.
const (
	First   = 100 * time.Millisecond
	Longest = 10 * time.Second
)

// Pause is the last pause; its zero value is that before the first attempt, and after
// one that succeeded.
type Pause time.Duration

// Next is the pause before the next attempt.
func (p *Pause) Next() time.Duration {
	*p = Pause(min(max(2*time.Duration(*p), First), Longest))
	return time.Duration(*p)
}
