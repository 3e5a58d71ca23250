package enforce

import (
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
		minimum := out[j]
		// The maximum comes first unless it would be below the minimum in force.
		minFirst := false
		if want, now, ok := t.wantedLimit().value(), minimum.currentLimit(), minimum.known; ok && want < now {
			minFirst = true
		}
		if minFirst != (j < i) {
			out[i], out[j] = out[j], out[i]
			at[t.real], at[other] = j, i
		}
	}
}

// frequency is the text of a frequency. Text that is not a number counts as the highest.
type frequency string

func (h frequency) value() uint64 {
	n, err := strconv.ParseUint(strings.TrimSpace(string(h)), 10, 64)
	if err != nil {
		return 1<<64 - 1
	}
	return n
}

func (t *target) wantedLimit() frequency {
	if t.write != "" {
		return frequency(t.write)
	}
	return frequency(t.setting.Want)
}

func (t *target) currentLimit() uint64 { return frequency(t.found.Value).value() }
