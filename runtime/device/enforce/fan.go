package enforce

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// The fan has one owner, nvfancontrol, which is told by its own file at build and
// writes the speed every second. Writing beside it only makes the fan hunt, so
// that here it is found out who owns the fan, and whether it was told the same.

const (
	fanConfig = "/etc/nvfancontrol.conf"
	fanID     = "fan"
)

// fanPrograms write a fan's speed.
func fanPrograms() []string { return []string{"nvfancontrol", "jtop", "fancontrol", "thermald"} }

// fanResult compares the fan's owner with the plan, nil when the plan says nothing.
func fanResult(dev rootfs.FS, f *plan.Fan) []Result {
	if f == nil {
		return nil
	}
	r := Result{ID: fanID, Path: fanConfig, Wanted: describeFan(f), Outcome: outcome.OK}
	b, err := dev.ReadFile(fanConfig, 1<<20)
	if err != nil {
		r.Outcome, r.Message = outcome.Unsupported, fmt.Sprintf("fan: %s cannot be read: nvfancontrol is not in this image", fanConfig)
		return []Result{r}
	}
	has := parseFanConfig(string(b))
	var found, faults []string
	for _, c := range []struct{ what, key, want string }{
		{"profile", "FAN_DEFAULT_PROFILE", f.Profile},
		{"governor", "FAN_DEFAULT_GOVERNOR", f.Governor},
		{"control", "FAN_DEFAULT_CONTROL", f.Control},
	} {
		if c.want == "" {
			continue
		}
		found = append(found, c.what+" "+has.defaults[c.key])
		if has.defaults[c.key] != c.want {
			faults = append(faults, fmt.Sprintf("%s is %q, wanted %q", c.what, has.defaults[c.key], c.want))
		}
	}
	if f.Profile != "" {
		curve, ok := has.profiles[f.Profile]
		if !ok {
			faults = append(faults, fmt.Sprintf("no profile %q is defined", f.Profile))
		} else if why := curve.checkMonotonic(has.margin); why != "" {
			faults = append(faults, fmt.Sprintf("profile %q: %s", f.Profile, why))
		}
	}
	r.Found, r.Known = strings.Join(found, ", "), true
	owners := fanOwners(dev)
	switch i := slices.IndexFunc(owners, func(o string) bool { return !strings.HasPrefix(o, "nvfancontrol ") }); {
	case len(faults) > 0:
		r.Outcome, r.Message = outcome.Pending, "fan: "+strings.Join(faults, "; ")+": needs an image built from this plan's layer"
	case i >= 0:
		r.Outcome, r.Message = outcome.Contested, fmt.Sprintf("fan: %s runs and writes its speed too: stop it, or leave the fan to nvfancontrol", owners[i])
	case len(owners) == 0:
		r.Outcome, r.Message = outcome.Differs, "fan: nvfancontrol does not run: `systemctl restart nvfancontrol`"
	}
	return []Result{r}
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

// fanOwners names the programs that run and are known to write a fan's speed.
func fanOwners(dev rootfs.FS) []string {
	var out []string
	for _, p := range findProcesses(dev, fanPrograms()) {
		out = append(out, p.String())
	}
	return out
}

// process is one that runs.
type process struct{ name, pid string }

func (p process) String() string { return p.name + " (pid " + p.pid + ")" }

// findProcesses finds the processes that have one of these names.
func findProcesses(dev rootfs.FS, names []string) []process {
	pids, err := dev.List("/proc")
	if err != nil {
		return nil
	}
	var out []process
	for _, pid := range pids {
		if _, err := strconv.ParseUint(pid, 10, 32); err != nil {
			continue
		}
		c, err := dev.Read("/proc/" + pid + "/comm")
		if err != nil {
			continue // it has ended
		}
		if name := strings.TrimSpace(c.Text); slices.Contains(names, name) {
			out = append(out, process{name, pid})
		}
	}
	return out
}

type fanFile struct {
	defaults map[string]string
	profiles map[string]fanCurve
	margin   bool // TMARGIN: temperatures are margins below a limit
}

// fanCurve has temperature and PWM of each point, in the file's order.
type fanCurve [][2]int

// checkMonotonic says why a curve would cool less when it is hotter. With margins the file
// counts from the limit down, so that PWM falls along it.
func (c fanCurve) checkMonotonic(margin bool) string {
	for i := 1; i < len(c); i++ {
		hotter := c[i][0] > c[i-1][0]
		if margin {
			hotter = c[i][0] < c[i-1][0]
		}
		if c[i][0] != c[i-1][0] && hotter != (c[i][1] > c[i-1][1]) && c[i][1] != c[i-1][1] {
			return fmt.Sprintf("PWM goes from %d to %d between %d and %d: it cools less when it is hotter", c[i-1][1], c[i][1], c[i-1][0], c[i][0])
		}
	}
	return ""
}

// parseFanConfig reads nvfancontrol.conf: blocks in braces, one thing a line.
func parseFanConfig(text string) fanFile {
	f := fanFile{defaults: map[string]string{}, profiles: map[string]fanCurve{}}
	profile := regexp.MustCompile(`FAN_PROFILE\s+(\S+)\s*\{`)
	name := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.ReplaceAll(line, "\t", " "))
		if line == "" || line[0] == '#' {
			continue
		}
		if m := profile.FindStringSubmatch(line); m != nil {
			name = m[1]
			f.profiles[name] = nil
			continue
		}
		w := strings.Fields(line)
		if strings.HasPrefix(line, "}") {
			name = ""
		}
		switch {
		case w[0] == "TMARGIN" && len(w) > 1:
			f.margin = w[1] == "ENABLED"
		case strings.HasPrefix(w[0], "FAN_DEFAULT_") && len(w) > 1:
			f.defaults[w[0]] = w[1]
		case name != "" && len(w) >= 3:
			temp, err1 := strconv.Atoi(w[0])
			pwm, err2 := strconv.Atoi(w[2])
			if err1 == nil && err2 == nil {
				f.profiles[name] = append(f.profiles[name], [2]int{temp, pwm})
			}
		}
	}
	return f
}
