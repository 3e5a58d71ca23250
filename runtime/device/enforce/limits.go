package enforce

import (
	"path"
	"strconv"
	"strings"
)

// limitPair says which end of a frequency window a node is, and what the other
// end's node is called.
func limitPair(real string) (other string, upper, ok bool) {
	dir, base := path.Split(real)
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

// orderLimits puts the two ends of each frequency window into the order in which
// the window is never empty: kernels before 5.3 refuse a minimum above the maximum
// (drivers/cpufreq/cpufreq.c), later ones clamp it and say nothing.
func orderLimits(out []*target) {
	at := map[string]int{}
	for i, t := range out {
		at[t.real] = i
	}
	for i, t := range out {
		other, upper, ok := limitPair(t.real)
		j, both := at[other]
		if !ok || !both || !upper {
			continue
		}
		minimum := out[j]
		// The maximum first, unless it would fall below the minimum in force.
		minFirst := false
		if want, now, ok := t.limit().value(), minimum.now(), minimum.known; ok && want < now {
			minFirst = true
		}
		if minFirst != (j < i) {
			out[i], out[j] = out[j], out[i]
			at[t.real], at[other] = j, i
		}
	}
}

// hertz is a frequency's text; what is no number is above all.
type hertz string

func (h hertz) value() uint64 {
	n, err := strconv.ParseUint(strings.TrimSpace(string(h)), 10, 64)
	if err != nil {
		return 1<<64 - 1
	}
	return n
}

func (t *target) limit() hertz {
	if t.write != "" {
		return hertz(t.write)
	}
	return hertz(t.setting.Want)
}

func (t *target) now() uint64 { return hertz(t.found.Value).value() }
