// Package backoff implements exponential backoff: 0.1 s after the first failure, twice
// as long after each further one, at most 10 s.
package backoff

import "time"

// Bounds of a delay.
const (
	First   = 100 * time.Millisecond
	longest = 10 * time.Second
)

// Delay is the delay before the most recent attempt. Its zero value means that no
// attempt has failed since the last success.
type Delay time.Duration

// Next doubles the delay within its bounds and returns it.
func (d *Delay) Next() time.Duration {
	*d = Delay(min(max(2*time.Duration(*d), First), longest))
	return time.Duration(*d)
}

// Wait doubles the delay and waits for it. It returns true at once if stop is closed.
func (d *Delay) Wait(stop <-chan struct{}) (stopped bool) { return WaitClosed(stop, d.Next()) }

// WaitClosed waits for at most d until c is closed, and reports whether it was.
func WaitClosed(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}
