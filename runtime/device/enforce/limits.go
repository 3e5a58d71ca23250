package enforce

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/knob"
)

// orderLimits orders the two ends of each frequency window so that the window is never
// empty in between. Kernels before 5.3 refuse a minimum above the maximum
// (drivers/cpufreq/cpufreq.c), and later ones clamp it silently.
func orderLimits(out []*target) {
	at := map[string]int{}
	for i, t := range out {
		at[t.real] = i
	}
	for i, t := range out {
		other, upper, ok := knob.OppositeLimit(t.real)
		j, both := at[other]
		if !ok || !both || !upper {
			continue
		}
		// The maximum comes first unless it would be below the minimum in force.
		minimum := out[j]
		minFirst := minimum.known && parseLimit(cmp.Or(t.write, t.setting.Want)) < parseLimit(minimum.found.Value)
		if minFirst != (j < i) {
			out[i], out[j] = out[j], out[i]
			at[t.real], at[other] = j, i
		}
	}
}

// parseLimit parses a frequency. Text that is not a number counts as the highest.
func parseLimit(text string) uint64 {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return math.MaxUint64
	}
	return n
}
