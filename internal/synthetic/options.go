package synthetic

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/formats/nvfancontrol"
	"github.com/yoctune/yoctune/schema/plan"
)

// choice is a word that the kernel offers in a node if it has an option.
type choice struct{ node, word string }

// Patterns of the nodes of [choices].
const (
	schedulers = "/sys/devices/*/queue/scheduler"
	governors  = "/sys/devices/system/cpu/cpufreq/policy*/scaling_available_governors"
	devfreq    = "/sys/devices/*/devfreq/*/available_governors"
	congestion = "/proc/sys/net/ipv4/tcp_available_congestion_control"
)

// choices are the words by the kernel's options. The options of congestion control other
// than these follow one rule, see [choiceOf].
var choices = map[string]choice{
	"IOSCHED_BFQ":                  {schedulers, "bfq"},
	"MQ_IOSCHED_KYBER":             {schedulers, "kyber"},
	"MQ_IOSCHED_DEADLINE":          {schedulers, "mq-deadline"},
	"CPU_FREQ_GOV_PERFORMANCE":     {governors, "performance"},
	"CPU_FREQ_GOV_POWERSAVE":       {governors, "powersave"},
	"CPU_FREQ_GOV_USERSPACE":       {governors, "userspace"},
	"CPU_FREQ_GOV_ONDEMAND":        {governors, "ondemand"},
	"CPU_FREQ_GOV_CONSERVATIVE":    {governors, "conservative"},
	"CPU_FREQ_GOV_SCHEDUTIL":       {governors, "schedutil"},
	"DEVFREQ_GOV_PERFORMANCE":      {devfreq, "performance"},
	"DEVFREQ_GOV_POWERSAVE":        {devfreq, "powersave"},
	"DEVFREQ_GOV_USERSPACE":        {devfreq, "userspace"},
	"DEVFREQ_GOV_SIMPLE_ONDEMAND":  {devfreq, "simple_ondemand"},
	"TCP_CONG_HSTCP":               {congestion, "highspeed"},
	"TCP_CONG_ADVANCED":            {},
	"CPU_FREQ_GOV_ATTR_SET":        {},
	"CPU_FREQ_GOV_COMMON":          {},
	"TRANSPARENT_HUGEPAGE_ALWAYS":  {hugePages, "always"},
	"TRANSPARENT_HUGEPAGE_MADVISE": {hugePages, "madvise"},
	"TRANSPARENT_HUGEPAGE_NEVER":   {hugePages, "never"},
}

// hugePages has the same words with every kernel: an option chooses the first one in force.
const hugePages = "/sys/kernel/mm/transparent_hugepage/enabled"

// folders exist only with an option.
var folders = map[string]string{
	"TRANSPARENT_HUGEPAGE": "/sys/kernel/mm/transparent_hugepage",
	"KSM":                  "/sys/kernel/mm/ksm",
	"HUGETLBFS":            "/sys/kernel/mm/hugepages",
}

func choiceOf(option string) choice {
	if c, ok := choices[option]; ok {
		return c
	}
	if name, ok := strings.CutPrefix(option, "TCP_CONG_"); ok {
		return choice{congestion, strings.ToLower(name)}
	}
	return choice{}
}

// obeyOption changes the nodes in which the kernel shows an option. A module counts as
// loaded: the kernel loads it when its word is written.
func (t *Tree) obeyOption(s plan.Setting) {
	has := s.Want == "y" || s.Want == "m"
	if dir, ok := folders[s.Select.Name]; ok && !has {
		t.remove(dir)
	}
	c := choiceOf(s.Select.Name)
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		switch {
		case c.node == "" || !matchBelow(c.node, name) || strings.HasPrefix(name, "/sys/devices/virtual/"):
		case c.node != hugePages:
			t.set(name, offer(t.nodes[name].text, c.word, has))
		case has:
			t.set(name, choose(t.nodes[name].text, c.word))
		}
	}
}

// matchBelow matches a name with a pattern whose first "*" stands for any folders.
func matchBelow(pattern, name string) bool {
	head, tail, _ := strings.Cut(pattern, "*/")
	if !strings.HasPrefix(name, head) {
		return false
	}
	parts := strings.Split(name, "/")
	if n := len(parts) - 1 - strings.Count(tail, "/"); tail != "" && n > 0 {
		ok, _ := path.Match(tail, strings.Join(parts[n:], "/"))
		return ok
	}
	return name == pattern
}

// offer adds a word to the words of a node, or takes it away. Where the chosen word goes,
// the first one becomes the chosen one.
func offer(text, word string, has bool) string {
	words := strings.Fields(text)
	at := slices.IndexFunc(words, func(w string) bool { return strings.Trim(w, "[]") == word })
	switch {
	case has && at < 0:
		words = append(words, word)
	case !has && at >= 0:
		chosen := words[at] != word
		words = slices.Delete(words, at, at+1)
		if chosen && len(words) > 0 {
			words[0] = "[" + words[0] + "]"
		}
	}
	return strings.Join(words, " ") + "\n"
}

// choose sets the brackets of a node's chosen word.
func choose(text, word string) string {
	words := strings.Fields(text)
	if !slices.Contains(words, word) && !slices.Contains(words, "["+word+"]") {
		return text
	}
	for i, w := range words {
		words[i] = strings.Trim(w, "[]")
		if words[i] == word {
			words[i] = "[" + word + "]"
		}
	}
	return strings.Join(words, " ") + "\n"
}

// fanProcess is the number of nvfancontrol's process.
const fanProcess = "640"

// installFan writes the file of nvfancontrol with the plan's curve and defaults, and its
// process. The facts have the names of the BSP's own profiles, and not their points.
func (t *Tree) installFan(m model, p *plan.Fan) {
	f := m.facts.Fan
	if f == nil || f.Config == "" || strings.HasPrefix(m.L4T, "# R32") {
		return
	}
	margin := f.TMargin != nil && *f.TMargin
	var b strings.Builder
	b.WriteString("# The points of the BSP's own profiles are not among the facts.\n<FAN 1>\n")
	if margin {
		b.WriteString("\tTMARGIN ENABLED\n")
	}
	for _, name := range []string{"pid", "cont"} {
		fmt.Fprintf(&b, "\tFAN_GOVERNOR %s {\n\t\tSTEP_SIZE 10\n\t}\n", name)
	}
	for _, name := range f.Profiles {
		if len(p.Curve) == 0 || name != p.Profile {
			fmt.Fprintf(&b, "\tFAN_PROFILE %s {\n\t\t#TEMP\tHYST\tPWM\tRPM\n\t}\n", name)
		}
	}
	if len(p.Curve) > 0 {
		fmt.Fprintf(&b, "\tFAN_PROFILE %s {\n\t\t#TEMP\tHYST\tPWM\tRPM\n", p.Profile)
		for _, point := range fanPoints(p.Curve, int64(f.MaxTemp), margin) {
			fmt.Fprintf(&b, "\t\t%d\t%d\t%d\t%d\n", point.Temp, point.Hysteresis, point.PWM, point.RPM)
		}
		b.WriteString("\t}\n")
	}
	fmt.Fprintf(&b, "\tTHERMAL_GROUP 0 {\n\t\tGROUP_MAX_TEMP %d\n\t}\n", f.MaxTemp)
	for _, d := range []struct{ key, own, stock string }{{"CONTROL", p.Control, "close_loop"}, {"PROFILE", p.Profile, f.Default}, {"GOVERNOR", p.Governor, "cont"}} {
		if d.own == "" {
			d.own = d.stock
		}
		fmt.Fprintf(&b, "\tFAN_DEFAULT_%s %s\n", d.key, d.own)
	}
	t.set("/etc/nvfancontrol.conf", b.String())
	t.set("/proc/"+fanProcess+"/comm", "nvfancontrol\n")
}

// fanPoints returns the rows that the layer's build makes of a curve: they cover 0 to the
// limit, and rise in their first column.
func fanPoints(curve []plan.FanPoint, limit int64, margin bool) []nvfancontrol.Point {
	var out []nvfancontrol.Point
	for _, p := range curve {
		out = append(out, nvfancontrol.Point{Temp: p.Temp / 1000, Hysteresis: p.Hysteresis / 1000, PWM: int64(p.PWM), RPM: int64(p.RPM)})
	}
	if first := out[0]; first.Temp > 0 {
		first.Temp = 0
		out = slices.Insert(out, 0, first)
	}
	if last := out[len(out)-1]; last.Temp < limit {
		last.Temp = limit
		out = append(out, last)
	}
	if margin {
		for i := range out {
			out[i].Temp = limit - out[i].Temp
		}
		slices.Reverse(out)
	}
	return out
}

// remove takes away a folder or file.
func (t *Tree) remove(name string) {
	below := func(have string) bool { return have == name || strings.HasPrefix(have, name+"/") }
	maps.DeleteFunc(t.nodes, func(have string, _ node) bool { return below(have) })
	maps.DeleteFunc(t.dirs, func(have string, _ bool) bool { return below(have) })
	t.removed = append(t.removed, name)
}
