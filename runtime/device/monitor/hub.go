package monitor

import (
	"context"
	"sync"
	"time"
)

// Hub shares the samples of one sampler. It samples while at least one watcher
// is there, and does nothing otherwise: no timer runs.
type Hub struct {
	interval time.Duration
	take     func() *Sample

	taking sync.Mutex // the sampler is for one at a time

	mu       sync.Mutex
	watchers map[chan *Sample]bool
	stop     context.CancelFunc
	done     chan struct{}
	last     *Sample
}

// NewHub returns a hub that takes a sample every interval.
func NewHub(take func() *Sample, interval time.Duration) *Hub {
	return &Hub{interval: interval, take: take, watchers: map[chan *Sample]bool{}}
}

// Watch returns the samples from now on, until ctx ends. A watcher that does not
// keep up misses samples; it never holds others up.
func (h *Hub) Watch(ctx context.Context) <-chan *Sample {
	c := make(chan *Sample, 1)
	h.mu.Lock()
	h.watchers[c] = true
	if len(h.watchers) == 1 {
		h.start()
	} else if h.last != nil {
		c <- h.last
	}
	h.mu.Unlock()
	context.AfterFunc(ctx, func() { h.leave(c) })
	return c
}

// start is called with the lock held.
func (h *Hub) start() {
	ctx, stop := context.WithCancel(context.Background())
	before, done := h.done, make(chan struct{})
	h.stop, h.done = stop, done
	go func() {
		defer close(done)
		if before != nil {
			<-before // one goroutine at a time has the sampler
		}
		tick := time.NewTicker(h.interval)
		defer tick.Stop()
		for ctx.Err() == nil {
			h.give(h.sample())
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
}

func (h *Hub) sample() *Sample {
	h.taking.Lock()
	defer h.taking.Unlock()
	return h.take()
}

// Now returns the sample that watchers have, and takes one when there are none.
// Loads are then over the time since the one before, such as the last scrape.
func (h *Hub) Now() *Sample {
	h.mu.Lock()
	last := h.last
	h.mu.Unlock()
	if last != nil {
		return last
	}
	return h.sample()
}

func (h *Hub) give(s *Sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.watchers) == 0 {
		return // the last one left meanwhile
	}
	h.last = s
	for c := range h.watchers {
		select {
		case <-c: // the one that was not fetched
		default:
		}
		c <- s
	}
}

func (h *Hub) leave(c chan *Sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.watchers[c] {
		return
	}
	delete(h.watchers, c)
	close(c)
	if len(h.watchers) == 0 {
		h.stop()
		h.last = nil
	}
}

// Watchers is how many there are.
func (h *Hub) Watchers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watchers)
}
