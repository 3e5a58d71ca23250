package enforce

import (
	"strings"
	"sync"
)

// workers bounds how many devices are written at a time: each costs a thread
// while its driver waits.
const workers = 8

// lane names what a node must be written in order with; nodes of different lanes
// are independent. A disk's queue is a lane of its own: the kernel freezes it for
// many of its knobs, and waits some 25 ms for a grace period while nothing else
// has to. Everything else shares one lane, for what moves what there is not known.
func lane(name string) string {
	if disk, _, ok := strings.Cut(name, "/queue/"); ok && strings.HasPrefix(name, "/sys/devices/") {
		return disk
	}
	return ""
}

// inLanes calls step for each item, in order within a lane and at the same time
// across lanes, and returns when all are done.
func inLanes[T any](all []T, name func(T) string, step func(T)) {
	lanes := map[string][]T{}
	var disks []string
	for _, t := range all {
		l := lane(name(t))
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
