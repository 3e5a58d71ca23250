package core

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// Peer says how data gets from one device to another.
type Peer struct {
	Same    bool `json:"same"`
	Direct  bool `json:"direct"`  // the driver says so
	Checked bool `json:"checked"` // and a pattern arrived unchanged
}

// CanPeer asks, and the first time tries, how data gets from one device to another
// of the same backend. Direct without Checked is not used: some machines say that
// they can and deliver rubbish.
func CanPeer(from, to *Device) (Peer, error) {
	if err := together("ask peers", from, to); err != nil {
		return Peer{}, err
	}
	defer from.gate.RUnlock()
	if from != to {
		defer to.gate.RUnlock()
	}
	caps, f := to.api.PeerQuery(from.dev, to.dev)
	return Peer{Same: caps&c.PeerSame != 0, Direct: caps&c.PeerDirect != 0, Checked: caps&c.PeerChecked != 0}, failed("ask peers", f)
}

// CopyPeer copies src to dst, which is of s's device, and reports whether it went
// directly; else it went through host memory. All work on both has finished, s is
// idle, and they stay until s has been waited for.
func CopyPeer(s *Stream, dst, src Region) (direct bool, err error) {
	const op = "copy between devices"
	if s == nil || src.Buf == nil || dst.Buf == nil || dst.Buf.d != s.d || src.Off|src.Len|dst.Off|dst.Len < 0 {
		return false, fmt.Errorf("%s: a stream, a region of its device and one of another are needed: %w", op, ErrInvalid)
	}
	if err := together(op, src.Buf.d, s.d); err != nil {
		return false, err
	}
	defer s.d.gate.RUnlock()
	if src.Buf.d != s.d {
		defer src.Buf.d.gate.RUnlock()
	}
	how, f := s.d.api.PeerCopy(s.s, c.Range{Buf: dst.Buf.id, Off: uint64(dst.Off), Len: uint64(dst.Len)},
		src.Buf.d.dev, c.Range{Buf: src.Buf.id, Off: uint64(src.Off), Len: uint64(src.Len)})
	return how == c.PeerDirect, failed(op, f)
}

// together keeps two devices of one backend open.
func together(op string, a, b *Device) error {
	if a == nil || b == nil || a.backend != b.backend {
		return fmt.Errorf("%s: two devices of one backend are needed: %w", op, ErrInvalid)
	}
	if err := a.enter(op); err != nil {
		return err
	}
	if a == b {
		return nil
	}
	if err := b.enter(op); err != nil {
		a.gate.RUnlock()
		return err
	}
	return nil
}

// Balance says how work is shared among devices.
type Balance int

const (
	BalanceThroughput Balance = iota // in proportion to the measured rate
	BalanceLatency                   // to where the item is expected to be done first
	BalanceManual                    // in proportion to given weights
)

// Balancer shares items of work among devices by what they were measured to do. It
// is told when work starts and ends and does nothing itself. It may be used from
// several goroutines.
type Balancer struct {
	mu      sync.Mutex
	by      Balance
	devices []load
}

type load struct {
	weight  float64 // BalanceManual
	rate    float64 // items a second, a moving average; 0: not measured
	given   float64 // items, for the share
	passed  int     // items that others got since it got one
	pending int
	lost    bool
}

// NewBalancer shares among n devices. Weights are for BalanceManual, one each.
func NewBalancer(by Balance, n int, weights ...float64) (*Balancer, error) {
	if n < 1 || (by == BalanceManual && len(weights) != n) || by < BalanceThroughput || by > BalanceManual {
		return nil, fmt.Errorf("balance: %d devices with %d weights: %w", n, len(weights), ErrInvalid)
	}
	b := &Balancer{by: by, devices: make([]load, n)}
	total := 0.0
	for i, w := range weights[:min(len(weights), n)] {
		if !(w >= 0 && w <= 1e9) {
			return nil, fmt.Errorf("balance: weight %g: not negative: %w", w, ErrInvalid)
		}
		b.devices[i].weight = w
		total += w
	}
	if by == BalanceManual && total == 0 {
		return nil, fmt.Errorf("balance: all weights are 0: %w", ErrInvalid)
	}
	return b, nil
}

// passedMost is after how many items of others a device gets one whatever its rate was:
// it may have been measured at a bad moment.
const passedMost = 100

// Next takes an item and returns the device for it, or ErrDeviceLost when none is
// left. Call Done when it has finished.
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
		case d.passed >= passedMost && d.pending == 0:
			cost = -float64(d.passed)
		case d.rate == 0: // unknown: try it, but with one item at a time
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
		return 0, fmt.Errorf("balance: no device is left: %w", ErrDeviceLost)
	}
	for i := range b.devices {
		b.devices[i].passed++
	}
	b.devices[best].passed = 0
	b.devices[best].pending++
	b.devices[best].given++
	return best, nil
}

// Done says how an item that Next gave to device i ended. A sticky error takes the
// device out until Restore; its share goes to the others.
func (b *Balancer) Done(i int, took time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := &b.devices[i]
	d.pending = max(d.pending-1, 0)
	var e *Error
	if errors.As(err, &e) && e.Sticky {
		b.lose(i)
		return
	}
	if err != nil || took <= 0 {
		return
	}
	const newest = 0.2 // of the moving average
	rate := float64(time.Second) / float64(took)
	if d.rate == 0 {
		d.rate = rate
		b.forget() // the shares so far were guesses
		return
	}
	d.rate += newest * (rate - d.rate)
}

// Lose takes a device out until Restore; its share goes to the others.
func (b *Balancer) Lose(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lose(i)
}

func (b *Balancer) lose(i int) {
	b.devices[i].lost = true
	b.forget()
}

// forget starts the shares anew.
func (b *Balancer) forget() {
	for i := range b.devices {
		b.devices[i].given = 0
	}
}

// Restore brings a device back, for instance after its process was started again.
func (b *Balancer) Restore(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.devices[i] = load{weight: b.devices[i].weight}
	b.forget()
}

// Rates returns the measured rates in items a second, 0 where unknown or lost.
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
