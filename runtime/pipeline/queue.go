package pipeline

import (
	"context"
	"fmt"
)

// policy says what a full queue does with one more frame.
type policy string

const (
	block      policy = "block"
	dropOldest policy = "drop-oldest"
	dropNewest policy = "drop-newest"
)

// none is the index of no frame.
const none = -1

// queue is a bounded queue of frame indices with one goroutine at each end.
//
// A channel is enough: a hand-over costs tens of nanoseconds, a wake-up
// microseconds, and what decides latency is the capacity and the policy.
type queue struct {
	c      chan int
	policy policy
}

func newQueue(capacity int, p policy) queue {
	return queue{c: make(chan int, capacity), policy: p}
}

// push puts a frame in. It returns the frame that had to go for it, which may be
// the same one, or none. It fails only when ctx ends while it blocks; then the
// frame is still the caller's.
func (q queue) push(ctx context.Context, i int) (dropped int, err error) {
	switch q.policy {
	case dropNewest:
		select {
		case q.c <- i:
			return none, nil
		default:
			return i, nil
		}
	case dropOldest:
		dropped = none
		for {
			select {
			case q.c <- i:
				return dropped, nil
			default:
			}
			// The only other hand on the queue takes frames out, so after one
			// is taken from the front there is room.
			select {
			case dropped = <-q.c:
			default:
			}
		}
	default:
		select {
		case q.c <- i:
			return none, nil
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

func parsePolicy(s string, live bool) (policy, error) {
	switch p := policy(s); p {
	case block, dropOldest, dropNewest:
		return p, nil
	case "":
		if live {
			return dropOldest, nil
		}
		return block, nil
	}
	return "", fmt.Errorf("%w: queue policy %q; it is one of %s, %s, %s", ErrPlan, s, block, dropOldest, dropNewest)
}
