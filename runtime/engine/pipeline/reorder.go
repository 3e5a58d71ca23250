package pipeline

import "sync"

// order restores the order of frames of a stage with several instances to the order in which
// they were taken from its queue. A ticket stands for a frame that was taken; the instances
// resolve tickets in any order.
type order struct {
	wake chan struct{}

	mu      sync.Mutex
	slots   []int  // by ticket, head to issued; pending, none, or a frame
	head    uint64 // oldest undelivered ticket
	issued  uint64 // the next ticket
	workers int    // instances that have not returned
}

// pending marks a ticket whose frame is in work.
const pending = -2

func newOrder(window, workers int) *order {
	return &order{wake: make(chan struct{}, 1), slots: make([]int, window), workers: workers}
}

// countFree returns how many tickets can be issued, so that undeliverable results do not pile up.
func (o *order) countFree() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.slots) - int(o.issued-o.head)
}

// issueTickets returns the first of n consecutive new tickets.
func (o *order) issueTickets(n int) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := o.issued
	for t := first; t < first+uint64(n); t++ {
		o.slots[t%uint64(len(o.slots))] = pending
	}
	o.issued += uint64(n)
	return first
}

// resolve assigns to a ticket a frame to deliver, or none.
func (o *order) resolve(ticket uint64, i int) {
	o.mu.Lock()
	o.slots[ticket%uint64(len(o.slots))] = i
	o.mu.Unlock()
	signal(o.wake)
}

// removeWorker records that one of the workers has ended.
func (o *order) removeWorker() {
	o.mu.Lock()
	o.workers--
	o.mu.Unlock()
	signal(o.wake)
}

// next waits for the next frame and returns it, or none where one was lost. ok is false after
// the last.
func (o *order) next() (i int, ok bool) {
	for {
		o.mu.Lock()
		if o.head < o.issued {
			if i = o.slots[o.head%uint64(len(o.slots))]; i != pending {
				o.head++
				o.mu.Unlock()
				return i, true
			}
		} else if o.workers == 0 {
			o.mu.Unlock()
			return none, false
		}
		o.mu.Unlock()
		<-o.wake
	}
}
