package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// Share is what one of several devices did of common work.
type Share struct {
	Items int     `json:"items"`
	Rate  float64 `json:"items_per_s"` // as the balancer measured it
	Lost  bool    `json:"lost"`
}

// Balance gives n items of equal work, sums of 1 Mi float32, to devices as they prove to
// be quick. A device that is lost gets no more; the item it had is done by another.
func Balance(ctx context.Context, devices []*core.Device, n int) ([]Share, error) {
	b, err := core.NewBalancer(core.BalanceThroughput, len(devices))
	if err != nil {
		return nil, err
	}
	x := ramp(1 << 20)
	out := make([]Share, len(devices))
	var (
		mu    sync.Mutex // guards what follows
		left  = n
		first error
		wg    sync.WaitGroup
	)
	// As many workers as devices: each has at most one item at a time.
	for range devices {
		wg.Go(func() {
			for {
				mu.Lock()
				if left == 0 || first != nil {
					mu.Unlock()
					return
				}
				left--
				mu.Unlock()
				i, err := b.Next()
				if err == nil {
					start := time.Now()
					_, err = devices[i].Reduce(ctx, core.Sum, x)
					b.Done(i, time.Since(start), err)
					lost := devices[i].Health() != nil
					mu.Lock()
					if err == nil {
						out[i].Items++
					} else if lost {
						out[i].Lost, left, err = true, left+1, nil
					}
					mu.Unlock()
				}
				if err != nil {
					mu.Lock()
					first = fmt.Errorf("share work: %w", err)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for i, rate := range b.Rates() {
		out[i].Rate = rate
	}
	return out, first
}
