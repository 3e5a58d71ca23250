package monitor

import (
	"context"
	"sync"
	"time"
)

// Hub shares the samples of one sampler. It samples while it has watchers, and runs no timer
// otherwise.
type Hub struct {
	interval time.Duration
	take     func() *Sample

	taking sync.Mutex // held while the sampler is in use

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

// Watch returns the samples from now on, until ctx is done. A slow watcher misses samples and
// does not delay others.
func (h *Hub) Watch(ctx context.Context) <-chan *Sample {
	c := make(chan *Sample, 1)
	h.mu.Lock()
	h.watchers[c] = true
	if len(h.watchers) == 1 {
		h.startSampling()
	} else if h.last != nil {
		c <- h.last
	}
	h.mu.Unlock()
	context.AfterFunc(ctx, func() { h.removeWatcher(c) })
	return c
}

// startSampling is called with the lock held.
func (h *Hub) startSampling() {
	ctx, stop := context.WithCancel(context.Background())
	before, done := h.done, make(chan struct{})
	h.stop, h.done = stop, done
	go func() {
		defer close(done)
		if before != nil {
			<-before // only one goroutine may use the sampler
		}
		tick := time.NewTicker(h.interval)
		defer tick.Stop()
		for ctx.Err() == nil {
			h.deliver(h.sample())
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

// Now returns the watchers' last sample, or takes one if there are no watchers. Loads then
// cover the time since the previous sample, such as the last scrape.
func (h *Hub) Now() *Sample {
	h.mu.Lock()
	last := h.last
	h.mu.Unlock()
	if last != nil {
		return last
	}
	return h.sample()
}

func (h *Hub) deliver(s *Sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.watchers) == 0 {
		return // no watchers any more
	}
	h.last = s
	for c := range h.watchers {
		select {
		case <-c: // replace a sample that was not received
		default:
		}
		c <- s
	}
}

func (h *Hub) removeWatcher(c chan *Sample) {
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
