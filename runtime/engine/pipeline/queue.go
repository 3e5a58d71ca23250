package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"

	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// policy decides what a full queue does with another frame.
type policy string

const (
	block      policy = registry.Block
	dropOldest policy = registry.DropOldest
	dropNewest policy = registry.DropNewest
)

// none is the index that means no frame.
const none = -1

// queue is a bounded queue of frame indices, oldest first.
//
// A mutex is enough: a hand-over costs tens of nanoseconds and a wake-up microseconds, so
// capacity and policy decide the latency. A woken consumer checks the queue again and wakes the
// next one if frames remain, so that a signal that is already pending may be dropped. There are
// several consumers and one producer.
type queue struct {
	policy policy
	ready  chan struct{} // signals consumers: a frame arrived, a frame may be taken now, or the queue was closed
	room   chan struct{} // signals the producer: a frame was taken, or a claim may succeed

	mu     sync.Mutex
	ring   []int
	head   int
	n      int
	busy   int  // workers that process frames of this queue
	claims bool // a claim is waiting
	closed bool
}

func newQueue(capacity int, p policy) *queue {
	return &queue{
		policy: p, ring: make([]int, capacity),
		ready: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// frameAt returns the n-th oldest frame. The lock must be held, also for appendFrame and removeOldest.
func (q *queue) frameAt(n int) int { return q.ring[(q.head+n)%len(q.ring)] }

func (q *queue) appendFrame(i int) {
	q.ring[(q.head+q.n)%len(q.ring)] = i
	q.n++
}

func (q *queue) removeOldest() int {
	i := q.ring[q.head]
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	return i
}

// push appends a frame. It returns the frame that was dropped to make room, which may be the
// same one, or none. It fails only if ctx ends while it blocks; the caller then keeps the
// frame.
func (q *queue) push(ctx context.Context, i int) (dropped int, err error) {
	for {
		q.mu.Lock()
		dropped = none
		full := q.n == len(q.ring)
		switch {
		case full && q.policy == dropNewest:
			q.mu.Unlock()
			return i, nil
		case full && q.policy == dropOldest:
			dropped = q.removeOldest()
			full = false
		}
		if !full {
			q.appendFrame(i)
			q.mu.Unlock()
			signal(q.ready)
			return dropped, nil
		}
		q.mu.Unlock()
		select {
		case <-q.room:
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

// close marks the queue complete: no more frames are pushed.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	signal(q.ready)
}

// claim lets the producer process the next frame itself instead of pushing it. It succeeds if
// the queue is empty and idle; with wait it blocks until then or until ctx ends. The caller
// calls finish afterwards.
func (q *queue) claim(ctx context.Context, wait bool) bool {
	for {
		q.mu.Lock()
		free := q.n == 0 && q.busy == 0
		if free {
			q.busy++
		}
		q.claims = wait && !free
		q.mu.Unlock()
		if free || !wait {
			return free
		}
		select {
		case <-q.room:
		case <-ctx.Done():
			return false
		}
	}
}

// finish ends the work started by pop or claim.
func (q *queue) finish() {
	q.mu.Lock()
	q.busy--
	free := q.claims && q.n == 0 && q.busy == 0
	q.mu.Unlock()
	if free {
		signal(q.room)
	}
}

// chooser decides how many of the waiting frames one worker takes.
type chooser interface {
	// choose is called with the queue locked and not empty, and returns how many of the oldest
	// frames to take. If it returns 0 it is called again when something changes or wait has
	// passed; a wait of 0 means until something changes.
	choose(q *queue) (take int, wait time.Duration)
}

// pop moves the frames that t chooses to dst. It returns 0 when the queue is closed and empty.
// A signal on urgent makes it choose again.
func (q *queue) pop(t chooser, dst []int, timer *time.Timer, urgent <-chan struct{}) int {
	for {
		q.mu.Lock()
		if q.n == 0 {
			closed := q.closed
			q.mu.Unlock()
			if closed {
				signal(q.ready) // for the other workers
				return 0
			}
			<-q.ready
			continue
		}
		take, wait := t.choose(q)
		for n := range take {
			dst[n] = q.removeOldest()
		}
		more := q.n > 0 || q.closed
		if take > 0 {
			q.busy++
		}
		claims := q.claims
		q.mu.Unlock()
		if take > 0 {
			if !claims {
				signal(q.room)
			}
			if more {
				signal(q.ready)
			}
			return take
		}
		var after <-chan time.Time
		if wait > 0 {
			timer.Reset(wait)
			after = timer.C
		}
		select {
		case <-q.ready:
		case <-after:
		case <-urgent:
			urgent = nil // handled by the next choose
		}
		timer.Stop()
	}
}

// expire moves the oldest frames for which old returns true to dst, and returns their number.
func (q *queue) expire(dst []int, old func(i int) bool) int {
	q.mu.Lock()
	n := 0
	for n < len(dst) && q.n > 0 && old(q.ring[q.head]) {
		dst[n] = q.removeOldest()
		n++
	}
	q.mu.Unlock()
	if n > 0 {
		signal(q.room)
	}
	return n
}

// len returns the number of waiting frames.
func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}

func parsePolicy(s string, live bool) (policy, error) {
	switch p := policy(s); p {
	case block, dropOldest, dropNewest:
		return p, nil
	case "":
		p, _ := registry.Queue(live)
		return policy(p), nil
	}
	return "", fmt.Errorf("%w: queue policy %q; use one of %s, %s, %s", ErrPlan, s, block, dropOldest, dropNewest)
}
