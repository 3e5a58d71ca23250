package knob

import (
	"path"
	"strings"
)

// Ranks of writes. Nodes that create or reset others come first, and automatic power
// management is restored last.
const (
	rankCores = iota
	rankMasks
	rankChoices
	RankClocks // and everything else
	rankSleep
)

// WriteRank returns the rank of a node: of the nodes written together, those with lower
// ranks are written first.
func WriteRank(name string) int {
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
	return RankClocks
}

// OppositeLimit returns the node of the other end of a frequency window, and whether the
// given node is the upper end. ok is false for other nodes.
func OppositeLimit(name string) (other string, upper, ok bool) {
	dir, base := path.Split(name)
	switch base {
	case "scaling_min_freq":
		return dir + "scaling_max_freq", false, true
	case "scaling_max_freq":
		return dir + "scaling_min_freq", true, true
	case "min_freq":
		return dir + "max_freq", false, true
	case "max_freq":
		return dir + "min_freq", true, true
	}
	return "", false, false
}

// OfferedValuesPath returns the node that lists the accepted values of another one, "" if
// there is none.
func OfferedValuesPath(name string) string {
	dir, base := path.Split(name)
	switch base {
	case "scaling_governor":
		return dir + "scaling_available_governors"
	case "governor":
		return dir + "available_governors"
	}
	return ""
}
