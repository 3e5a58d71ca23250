package enforce

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/formats/nvfancontrol"
	"github.com/yoctune/yoctune/schema/plan"
)

// nvfancontrol controls the fan by its own configuration file and writes the speed every
// second. A second writer would only make the speed oscillate. Therefore the fan is not
// written here: its controlling program and configuration are compared with the plan.

const (
	fanConfig = "/etc/nvfancontrol.conf"
	fanID     = "fan"
)

// fanPrograms returns programs that write a fan's speed.
func fanPrograms() []string { return []string{"nvfancontrol", "jtop", "fancontrol", "thermald"} }

// fanResult compares the fan's configuration and owner with the plan. It is nil without a fan
// in the plan.
func fanResult(dev rootfs.FS, f *plan.Fan) []Result {
	if f == nil {
		return nil
	}
	r := Result{ID: fanID, Path: fanConfig, Wanted: describeFan(f), Outcome: outcome.OK}
	b, err := dev.ReadFile(fanConfig, 1<<20)
	if err != nil {
		r.Outcome, r.Message = outcome.Unsupported, fmt.Sprintf("fan: %s cannot be read: add nvfancontrol to the image", fanConfig)
		return []Result{r}
	}
	fans, _ := nvfancontrol.Parse(string(b)) // nvfancontrol also skips what it cannot parse
	if len(fans) == 0 {
		fans = []nvfancontrol.Fan{{}}
	}
	var found, faults []string
	for _, fan := range fans {
		f, fault := compareFan(f, &fan)
		found, faults = appendNew(found, f), appendNew(faults, fault) // fans may share a fault
	}
	r.Found, r.Known = strings.Join(found, ", "), true
	owners := findProcesses(dev, fanPrograms())
	switch i := slices.IndexFunc(owners, func(p rootfs.RunningProcess) bool { return p.Name != "nvfancontrol" }); {
	case len(faults) > 0:
		r.Outcome, r.Message = outcome.Pending, "fan: "+strings.Join(faults, "; ")+": needs an image built from this plan's layer"
	case i >= 0:
		r.Outcome, r.Message = outcome.Contested, fmt.Sprintf("fan: %s also controls the fan: stop it, so that only nvfancontrol does", owners[i])
	case len(owners) == 0:
		r.Outcome, r.Message = outcome.Differs, "fan: nvfancontrol is not running: `systemctl restart nvfancontrol`"
	}
	return []Result{r}
}

// compareFan returns the settings of a fan that the plan sets, and the differences.
func compareFan(want *plan.Fan, fan *nvfancontrol.Fan) (found, faults []string) {
	for _, c := range []struct{ what, key, want string }{
		{"profile", "PROFILE", want.Profile}, {"governor", "GOVERNOR", want.Governor}, {"control", "CONTROL", want.Control},
	} {
		if c.want == "" {
			continue
		}
		found = append(found, c.what+" "+fan.Defaults[c.key])
		if fan.Defaults[c.key] != c.want {
			faults = append(faults, fmt.Sprintf("%s is %q, wanted %q", c.what, fan.Defaults[c.key], c.want))
		}
	}
	if want.Profile == "" {
		return found, faults
	}
	if curve := fan.Profile(want.Profile); curve == nil {
		faults = append(faults, fmt.Sprintf("no profile %q is defined", want.Profile))
	} else if why := checkCurve(curve.Points, fan.Margin); why != "" {
		faults = append(faults, fmt.Sprintf("profile %q: %s", want.Profile, why))
	}
	return found, faults
}

// appendNew appends the texts that the list does not have.
func appendNew(list, texts []string) []string {
	for _, s := range texts {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

func describeFan(f *plan.Fan) string {
	var w []string
	for _, c := range []struct{ what, want string }{{"profile", f.Profile}, {"governor", f.Governor}, {"control", f.Control}} {
		if c.want != "" {
			w = append(w, c.what+" "+c.want)
		}
	}
	return strings.Join(w, ", ")
}

// findProcesses returns the running processes with one of the names.
func findProcesses(dev rootfs.FS, names []string) []rootfs.RunningProcess {
	all, _ := rootfs.RunningProcesses(dev) // without /proc no process is found
	return slices.DeleteFunc(all, func(p rootfs.RunningProcess) bool { return !slices.Contains(names, p.Name) })
}

// checkCurve explains where a curve cools less at a higher temperature, "" where it does
// not. With margins the file counts down from the limit, so that PWM falls along it.
func checkCurve(points []nvfancontrol.Point, margin bool) string {
	for i := 1; i < len(points); i++ {
		p, q := points[i-1], points[i]
		hotter := q.Temp > p.Temp
		if margin {
			hotter = q.Temp < p.Temp
		}
		if q.Temp != p.Temp && q.PWM != p.PWM && hotter != (q.PWM > p.PWM) {
			return fmt.Sprintf("PWM goes from %d to %d between %d and %d: the fan slows down as the temperature rises", p.PWM, q.PWM, p.Temp, q.Temp)
		}
	}
	return ""
}
