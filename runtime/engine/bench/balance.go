package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// Share is the part of the work that one device did.
type Share struct {
	Items int     `json:"items"`
	Rate  float64 `json:"items_per_s"` // measured by the balancer
	Lost  bool    `json:"lost"`
}

// Balance distributes n equal work items, sums of 1 Mi float32 values, among the devices by
// their measured speed. A lost device gets no further items; another device repeats the
// item that it lost.
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
	// One worker per device; each has at most one item at a time.
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
					first = fmt.Errorf("balance work: %w", err)
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
