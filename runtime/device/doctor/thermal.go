package doctor

import (
	"fmt"
	"maps"
	"slices"
)

func checkThrottling(in *Input) answer {
	known, slow := 0, 0
	names := map[string]bool{}
	for _, s := range in.Samples {
		if !s.ReportsThrottling() {
			continue
		}
		known++
		if hot := s.Throttled(); len(hot) > 0 {
			slow++
			for _, c := range hot {
				names[c.Name] = true
			}
		}
	}
	if known == 0 {
		return answer{Unknown, "", "no cooling device found"}
	}
	share := 100 * float64(slow) / float64(known)
	a := judgeMaximum(share, 0.001, 20, "% of the time", "improve cooling, or choose a lower power mode: a lower mode without throttling is faster than one that throttles")
	if slow > 0 {
		a.measured += ": " + joinSome(slices.Sorted(maps.Keys(names)))
	}
	return a
}

func checkOverCurrent(in *Input) answer {
	first := map[string]int64{}
	for _, s := range in.Samples {
		for _, a := range s.Alarms {
			if _, ok := first[a.Name]; !ok && a.Events != nil {
				first[a.Name] = *a.Events
			}
		}
	}
	if len(first) == 0 {
		return answer{Unknown, "", "this kernel has no over-current counters"}
	}
	total, grown := int64(0), int64(0)
	for _, a := range in.lastSample().Alarms {
		if a.Events != nil {
			total += *a.Events
			grown += *a.Events - first[a.Name]
		}
	}
	advice := "the supply or the carrier board cannot deliver what the mode draws: use the next lower power mode or a stronger supply"
	switch {
	case grown > 0:
		return answer{Fail, fmt.Sprintf("%d events during the check, %d since boot", grown, total), advice}
	case total > 0:
		return answer{Warn, fmt.Sprintf("%d events since boot", total), advice}
	}
	return answer{OK, "0 events", ""}
}

func checkThermalMargin(in *Input) answer {
	least, name := int64(1<<40), ""
	for _, s := range in.Samples {
		for _, z := range s.Zones {
			if z.Temp == nil || z.Placeholder {
				continue
			}
			limit := int64(passiveUnknown)
			if z.Passive != nil {
				limit = *z.Passive
			} else if z.Critical != nil {
				limit = min(limit, *z.Critical)
			}
			if m := limit - *z.Temp; m < least {
				least, name = m, z.Name
			}
		}
	}
	if name == "" {
		return answer{Unknown, "", "no thermal zone can be read"}
	}
	a := answer{OK, fmt.Sprintf("%.1f °C (%s)", float64(least)/1000, name), "use a fan curve that starts earlier, more airflow, or a lower power mode"}
	switch {
	case least <= 0:
		a.verdict = Fail
	case least < thermalMargin:
		a.verdict = Warn
	}
	return a
}

func checkFan(in *Input) answer {
	s := in.lastSample()
	if len(s.Fans) == 0 {
		return answer{Skipped, "no fan", ""}
	}
	turning, known := false, false
	for _, f := range s.Fans {
		if v := f.RPM; v != nil {
			known, turning = true, turning || *v > 0
		} else if v := f.PWM; v != nil {
			known, turning = true, turning || *v > 0
		}
	}
	hot := s.Hottest()
	switch {
	case !known || hot == nil:
		return answer{Unknown, "", "neither speed nor temperature can be read"}
	case !turning && *hot.Temp > 70_000:
		return answer{Fail, fmt.Sprintf("stopped at %.1f °C", float64(*hot.Temp)/1000), "systemctl status nvfancontrol; it reads a new profile only after /var/lib/nvfancontrol/status is removed"}
	}
	state := "stopped"
	if turning {
		state = "running"
	}
	return answer{OK, fmt.Sprintf("%s at %.1f °C", state, float64(*hot.Temp)/1000), ""}
}

func checkSensors(in *Input) answer {
	var names []string
	for _, st := range in.lastSample().Stale {
		names = append(names, fmt.Sprintf("%s (%.1f s)", st.Sensor, float64(st.For)/1000))
	}
	if len(names) > 0 {
		return answer{Warn, joinSome(names), "a driver or firmware hangs; see dmesg"}
	}
	return answer{OK, "0", ""}
}
