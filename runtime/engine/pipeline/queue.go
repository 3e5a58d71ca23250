package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"

	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// policy says what a full queue does with one more frame.
type policy string

const (
	block      policy = registry.Block
	dropOldest policy = registry.DropOldest
	dropNewest policy = registry.DropNewest
)

// none is the index of no frame.
const none = -1

// queue is a bounded queue of frame indices, oldest first.
//
// A lock is enough: a hand-over costs tens of nanoseconds, a wake-up
// microseconds, and what decides latency is the capacity and the policy. Whoever
// is woken looks again and wakes the next one if there is more, so that a signal
// which is already there may be dropped. Several take frames out, one puts them in.
type queue struct {
	policy policy
	ready  chan struct{} // something was put in, or may be taken now, or there will be no more
	room   chan struct{} // something was taken out, or what claim waits for is there

	mu     sync.Mutex
	ring   []int
	head   int
	n      int
	busy   int  // who work on frames of this queue
	claims bool // claim waits
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

// at is the n-th oldest frame; put and take move frames. All want the lock.
func (q *queue) at(n int) int { return q.ring[(q.head+n)%len(q.ring)] }

func (q *queue) put(i int) {
	q.ring[(q.head+q.n)%len(q.ring)] = i
	q.n++
}

func (q *queue) take() int {
	i := q.ring[q.head]
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	return i
}

// push puts a frame in. It returns the frame that had to go for it, which may be
// the same one, or none. It fails only when ctx ends while it blocks; then the
// frame is still the caller's.
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
			dropped = q.take()
			full = false
		}
		if !full {
			q.put(i)
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

// close says that nothing is put in any more.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	signal(q.ready)
}

// claim is how whoever puts frames in becomes the one that works on the next, which is
// not put in: it succeeds when none waits and nobody works. With wait it waits for that,
// unless ctx ends. done is called afterwards.
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

// done says that the work on what pop returned, or claim stands for, has ended.
func (q *queue) done() {
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
	// choose is asked, with the queue locked and not empty, how many of the
	// oldest frames to take. With 0 it is asked again when something changes or
	// wait has passed; a wait of 0 is until something changes.
	choose(q *queue) (take int, wait time.Duration)
}

// pop moves the frames that t chooses to dst. It returns 0 when the queue is
// closed and empty. urgent makes it ask again.
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
			dst[n] = q.take()
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
			urgent = nil // it has been seen; choose knows
		}
		timer.Stop()
	}
}

// expire moves the oldest frames for which old holds to dst, and returns how many.
func (q *queue) expire(dst []int, old func(i int) bool) int {
	q.mu.Lock()
	n := 0
	for n < len(dst) && q.n > 0 && old(q.ring[q.head]) {
		dst[n] = q.take()
		n++
	}
	q.mu.Unlock()
	if n > 0 {
		signal(q.room)
	}
	return n
}

// len is how many frames wait.
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
	return "", fmt.Errorf("%w: queue policy %q; it is one of %s, %s, %s", ErrPlan, s, block, dropOldest, dropNewest)
}
