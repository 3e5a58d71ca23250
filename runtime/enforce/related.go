package enforce

import (
	"path"
	"strings"

	"github.com/yoctune/yoctune/schema/plan"
)

// relation says what the kernel rewrites by itself when a node is written.
type relation struct {
	group  string   // members exclude each other: one is active, the others read 0
	others []string // resolved paths
	typ    string   // their value type
}

// related returns the neighbours whose originals must be journalled together
// with path, a resolved name. All are read in the kernel's source:
//
//   - mm/page-writeback.c and mm/util.c: each of a ratio and its absolute form
//     zeroes the other, and 0 is refused for dirty_bytes;
//   - block/blk-mq-sched.c: changing the scheduler sets nr_requests anew;
//   - mm/khugepaged.c: changing transparent huge pages raises min_free_kbytes.
func related(name string) relation {
	const vm = "/proc/sys/vm/"
	switch name {
	case vm + "dirty_ratio", vm + "dirty_bytes":
		return exclusive(name, vm+"dirty_ratio", vm+"dirty_bytes")
	case vm + "dirty_background_ratio", vm + "dirty_background_bytes":
		return exclusive(name, vm+"dirty_background_ratio", vm+"dirty_background_bytes")
	case vm + "overcommit_ratio", vm + "overcommit_kbytes":
		return exclusive(name, vm+"overcommit_ratio", vm+"overcommit_kbytes")
	case "/sys/kernel/mm/transparent_hugepage/enabled":
		return relation{others: []string{vm + "min_free_kbytes"}, typ: plan.TypeInt}
	}
	if dir, ok := strings.CutSuffix(name, "/queue/scheduler"); ok {
		return relation{others: []string{dir + "/queue/nr_requests"}, typ: plan.TypeInt}
	}
	return relation{}
}

func exclusive(name string, members ...string) relation {
	r := relation{group: members[0], typ: plan.TypeInt}
	for _, m := range members {
		if m != name {
			r.others = append(r.others, m)
		}
	}
	return r
}

// Ranks of writes: what brings others into being or resets them comes before
// them, and power goes back to automatic last.
const (
	rankCores = iota
	rankMasks
	rankChoices
	rankClocks
	rankSleep
)

// rank orders writes.
func rank(name string) int {
	dir, base := path.Split(name)
	switch base {
	case "online":
		if strings.HasPrefix(dir, "/sys/devices/system/cpu/cpu") {
			return rankCores
		}
	case "tpc_pg_mask", "fbp_pg_mask", "gpc_pg_mask":
		return rankMasks
	case "scheduler", "scaling_governor", "governor":
		return rankChoices
	case "control":
		if path.Base(path.Clean(dir)) == "power" {
			return rankSleep
		}
	}
	return rankClocks
}

// offers returns where the kernel lists the values that a plain node accepts, ""
// when it does not.
func offers(name string) string {
	dir, base := path.Split(name)
	switch base {
	case "scaling_governor":
		return dir + "scaling_available_governors"
	case "governor":
		return dir + "available_governors"
	}
	return ""
}
