package core

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Balance is a policy for distributing work among devices.
type Balance int

const (
	BalanceThroughput Balance = iota // in proportion to the measured rate
	BalanceLatency                   // to the device expected to finish the item first
	BalanceManual                    // in proportion to the given weights
)

// Balancer distributes work items among devices by their measured rates. The caller runs
// the items and reports their start (Next) and end (Done). Several goroutines may use it.
type Balancer struct {
	mu      sync.Mutex
	by      Balance
	devices []load
}

type load struct {
	weight  float64 // BalanceManual
	rate    float64 // items a second, a moving average; 0: not measured
	given   float64 // items received since the shares were reset
	passed  int     // items that other devices received since the last one
	pending int
	lost    bool
}

// NewBalancer returns a balancer of n devices. BalanceManual needs one weight per device.
func NewBalancer(by Balance, n int, weights ...float64) (*Balancer, error) {
	if n < 1 || (by == BalanceManual && len(weights) != n) || by < BalanceThroughput || by > BalanceManual {
		return nil, fmt.Errorf("balance: invalid policy, or %d devices with %d weights: %w", n, len(weights), ErrInvalid)
	}
	b := &Balancer{by: by, devices: make([]load, n)}
	total := 0.0
	for i, w := range weights[:min(len(weights), n)] {
		if !(w >= 0 && w <= 1e9) {
			return nil, fmt.Errorf("balance: weight %g must be 0 to 1e9: %w", w, ErrInvalid)
		}
		b.devices[i].weight = w
		total += w
	}
	if by == BalanceManual && total == 0 {
		return nil, fmt.Errorf("balance: all weights are 0: %w", ErrInvalid)
	}
	return b, nil
}

// maxPassed is the number of items that other devices receive before a device receives one
// regardless of its rate, because its measurement may be outdated.
const maxPassed = 100

// Next returns the device for the next item, or ErrDeviceLost if all are lost. Call Done
// when the item has finished.
func (b *Balancer) Next() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	best, least := -1, 0.0
	for i := range b.devices {
		d := &b.devices[i]
		if d.lost || (b.by == BalanceManual && d.weight == 0) {
			continue
		}
		var cost float64
		switch {
		case b.by == BalanceManual:
			cost = (d.given + 1) / d.weight
		case d.passed >= maxPassed && d.pending == 0:
			cost = -float64(d.passed)
		case d.rate == 0: // unknown: measure it with one item at a time
			cost = float64(d.pending) * 1e9
		case b.by == BalanceLatency:
			cost = float64(d.pending+1) / d.rate
		default:
			cost = (d.given + 1) / d.rate
		}
		if best < 0 || cost < least {
			best, least = i, cost
		}
	}
	if best < 0 {
		return 0, fmt.Errorf("balance: all devices are lost: %w", ErrDeviceLost)
	}
	for i := range b.devices {
		b.devices[i].passed++
	}
	b.devices[best].passed = 0
	b.devices[best].pending++
	b.devices[best].given++
	return best, nil
}

// Done reports the end of an item on device i. A sticky error excludes the device until
// Restore.
func (b *Balancer) Done(i int, took time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := &b.devices[i]
	d.pending = max(d.pending-1, 0)
	var e *Error
	if errors.As(err, &e) && e.Sticky {
		b.exclude(i)
		return
	}
	if err != nil || took <= 0 {
		return
	}
	const newest = 0.2 // weight of the newest value in the moving average
	rate := float64(time.Second) / float64(took)
	if d.rate == 0 {
		d.rate = rate
		b.resetShares() // earlier shares were based on unknown rates
		return
	}
	d.rate += newest * (rate - d.rate)
}

// Exclude excludes a device until Restore.
func (b *Balancer) Exclude(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.exclude(i)
}

func (b *Balancer) exclude(i int) {
	b.devices[i].lost = true
	b.resetShares()
}

// resetShares forgets how many items each device received.
func (b *Balancer) resetShares() {
	for i := range b.devices {
		b.devices[i].given = 0
	}
}

// Restore includes a lost device again, for example after its worker was restarted.
func (b *Balancer) Restore(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.devices[i] = load{weight: b.devices[i].weight}
	b.resetShares()
}

// Rates returns the measured rates in items per second; 0 means unknown or lost.
func (b *Balancer) Rates() []float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]float64, len(b.devices))
	for i, d := range b.devices {
		if !d.lost {
			out[i] = d.rate
		}
	}
	return out
}
