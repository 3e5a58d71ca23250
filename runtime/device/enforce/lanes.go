package enforce

import (
	"strings"
	"sync"
)

// workers bounds how many devices are written in parallel. Each blocks a thread while its
// driver waits.
const workers = 8

// laneOf returns the lane of a node. Nodes of one lane are written in order; lanes are
// independent. Each disk's queue is a lane: for many of its nodes the kernel freezes the
// queue and waits some 25 ms for a grace period. All other nodes share one lane, since they
// may affect each other.
func laneOf(name string) string {
	if disk, _, ok := strings.Cut(name, "/queue/"); ok && strings.HasPrefix(name, "/sys/devices/") {
		return disk
	}
	return ""
}

// runInLanes calls step for each item, in order within a lane and in parallel across lanes.
// It returns when all are done.
func runInLanes[T any](all []T, name func(T) string, step func(T)) {
	lanes := map[string][]T{}
	var disks []string
	for _, t := range all {
		l := laneOf(name(t))
		if _, known := lanes[l]; !known && l != "" {
			disks = append(disks, l)
		}
		lanes[l] = append(lanes[l], t)
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, workers)
	wg.Go(func() {
		for _, l := range disks {
			slots <- struct{}{}
			wg.Go(func() {
				for _, t := range lanes[l] {
					step(t)
				}
				<-slots
			})
		}
	})
	for _, t := range lanes[""] {
		step(t)
	}
	wg.Wait()
}
