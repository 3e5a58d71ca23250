package watch_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/schema/plan"
)

// A week in the clock of the test: every sweep takes place, other programs change settings, one
// of them against the plan once a day, and a device is removed and comes back. Memory stays as small
// as after the first day, and the state file has a limit.
func TestAWeekOfDrift(t *testing.T) {
	days := 1 // `make prove` sets a week
	if os.Getenv("YOCTUNE_SOAK_FRAMES") != "" {
		days = 7
	}
	const disk = "/sys/block/nvme0n1/queue/read_ahead_kb"
	r := start(t, sysctl("vm.swappiness", "10", plan.Enforce), sysctl("vm.vfs_cache_pressure", "50", plan.Enforce), newSetting(disk, plan.TypeInt, "512"))
	var heap, state [2]int64
	for day := range days + 1 {
		contested := false
		for hour := range 24 {
			r.write(100+hour, swappiness, "60")
			r.expectValue(swappiness, "10")
			r.writeSilently("/proc/sys/vm/vfs_cache_pressure", "90") // found by a sweep
			if hour == 12 {
				r.writeSilently(disk, "128") // as after it was plugged in again
				r.keeper.HandleUevent(r.now, watch.Uevent{Action: "add", DevPath: "/devices/platform/nvme", Subsystem: "block"})
			}
			if hour == 18 { // another program insists
				for range 2 * watch.Repairs {
					r.write(812, swappiness, "77")
				}
				contested = len(r.keeper.State().Contested) == 1
			}
			for range 12 {
				r.advance(watch.SweepEvery)
			}
			r.expectValue("/proc/sys/vm/vfs_cache_pressure", "50")
			r.expectValue(disk, "512")
			r.expectValue(swappiness, "10") // the truce has ended
		}
		if !contested || len(r.keeper.State().Contested) != 0 {
			t.Fatalf("day %d: contested %t, and at its end %+v", day, contested, r.keeper.State().Contested)
		}
		r.events, r.dev.Writes = nil, nil
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		info, err := os.Stat(filepath.Join(r.dir, watch.File))
		if err != nil {
			t.Fatal(err)
		}
		at := min(day, 1)
		heap[at], state[at] = int64(m.HeapAlloc), info.Size()
	}
	t.Logf("saw: %d days; heap %d and then %d KiB; state file %d and then %d bytes; %d drifts, %d repairs", days+1,
		heap[0]>>10, heap[1]>>10, state[0], state[1], r.keeper.State().Drifts, r.keeper.State().Repairs)
	if heap[1] > heap[0]+1<<20 || state[1] > 100<<10 {
		t.Error("they grow")
	}
}
