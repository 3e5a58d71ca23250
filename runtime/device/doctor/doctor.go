// Package doctor judges a device: each check has a measured value, the limit it
// is held against, a verdict, and what to do.
//
// The limits are the optimisation checklists and troubleshooting tables that
// people who tune such devices work through by hand. A check that needs load, a
// plan or a sensor that is not there says so: skipped or unknown is neither good
// nor bad, and never counts as either.
package doctor

import (
	"errors"
	"fmt"
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/plan"
)

// Verdict is a check's answer.
type Verdict string

// Verdicts.
const (
	OK      Verdict = "ok"
	Warn    Verdict = "warn"    // it costs performance or will
	Fail    Verdict = "fail"    // it is wrong
	Unknown Verdict = "unknown" // it could not be measured
	Skipped Verdict = "skipped" // the question does not arise on this device, or under this load
)

// Finding is what a check found.
type Finding struct {
	Type     string  `json:"type"` // "check"
	Check    string  `json:"check"`
	Title    string  `json:"title"`
	Verdict  Verdict `json:"verdict"`
	Measured string  `json:"measured"` // "" when nothing was
	Limit    string  `json:"limit"`
	Advice   string  `json:"advice"` // "" when there is nothing to do
}

// Check is one question.
type Check struct {
	ID    string
	Title string
	Limit string
	judge func(*Input) answer
}

type answer struct {
	verdict  Verdict
	measured string
	advice   string
}

// Input is what checks look at.
type Input struct {
	Dev     rootfs.FS
	Plan    *plan.Plan // nil: none
	Refused string     // why the installed plan is not obeyed
	Results []enforce.Result
	Watch   *watch.State // nil: nobody has watched
	Modes   *nvpmodel.File
	Mode    string // in force, "" unknown
	Samples []*monitor.Sample
	Before  Counters
	After   Counters
	Procs   []string                    // names of processes that run
	Units   map[string]rootfs.UnitState // of Services, as systemd says; nil: it does not
}

// Counters are cumulative numbers of the kernel at one moment.
type Counters struct {
	At         time.Duration
	VM         map[string]int64
	Disks      map[string]Disk
	Links      map[string]Link
	Interrupts []int64 // by CPU
}

// Disk is a line of /proc/diskstats.
type Disk struct {
	Written  int64 // sectors of 512 bytes
	Busy     int64 // ms in which something was in flight
	Weighted int64 // ms times how much was in flight
}

// Link is a network interface.
type Link struct{ Packets, Errors int64 }

// Count reads the counters; what a device does not have stays empty.
func Count(dev rootfs.FS, at time.Duration) Counters {
	c := Counters{At: at, VM: map[string]int64{}, Disks: map[string]Disk{}, Links: map[string]Link{}}
	read := func(name string) string {
		b, err := dev.ReadFile(name, 4<<20)
		if err != nil {
			return ""
		}
		return string(b)
	}
	for line := range strings.Lines(read("/proc/vmstat")) {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
			c.VM[f[0]] = n
		}
	}
	for line := range strings.Lines(read("/proc/diskstats")) {
		f := strings.Fields(line)
		if len(f) < 14 {
			continue
		}
		written, err1 := strconv.ParseInt(f[9], 10, 63)
		busy, err2 := strconv.ParseInt(f[12], 10, 63)
		weighted, err3 := strconv.ParseInt(f[13], 10, 63)
		if errors.Join(err1, err2, err3) == nil {
			c.Disks[f[2]] = Disk{written, busy, weighted}
		}
	}
	nodes, err := rootfs.Nodes(dev, rootfs.ClassNet)
	if err == nil {
		for _, n := range nodes {
			get := func(name string) int64 {
				content, err := dev.Read(n.Path + "/statistics/" + name)
				if err != nil {
					return 0
				}
				v, err := strconv.ParseInt(strings.TrimSpace(content.Text), 10, 63)
				if err != nil {
					return 0
				}
				return v
			}
			c.Links[n.Name] = Link{get("rx_packets") + get("tx_packets"), get("rx_errors") + get("tx_errors") + get("rx_dropped")}
		}
	}
	c.Interrupts = interrupts(read("/proc/interrupts"))
	return c
}

// interrupts adds the columns of /proc/interrupts up.
func interrupts(text string) []int64 {
	head, rest, _ := strings.Cut(text, "\n")
	out := make([]int64, len(strings.Fields(head)))
	for line := range strings.Lines(rest) {
		_, counts, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		for i, f := range strings.Fields(counts) {
			n, err := strconv.ParseInt(f, 10, 62)
			if i >= len(out) || err != nil {
				break
			}
			out[i] += n
		}
	}
	return out
}

// Processes lists the names of the processes that run below the root.
func Processes(dev rootfs.FS) []string {
	names, err := dev.List("/proc")
	if err != nil {
		return nil
	}
	var out []string
	for _, pid := range names {
		if strings.Trim(pid, "0123456789") != "" {
			continue
		}
		if c, err := dev.Read("/proc/" + pid + "/comm"); err == nil {
			out = append(out, strings.TrimSpace(c.Text))
		}
	}
	return out
}

// Examine asks every question, in the order of Checks. One that panics costs its
// own answer only.
func Examine(in *Input) []Finding {
	var out []Finding
	for _, c := range Checks() {
		a := guarded(c, in)
		if a.verdict == OK || a.verdict == Skipped {
			a.advice = ""
		}
		out = append(out, Finding{Type: "check", Check: c.ID, Title: c.Title, Verdict: a.verdict, Measured: a.measured, Limit: c.Limit, Advice: a.advice})
	}
	return out
}

func guarded(c Check, in *Input) (a answer) {
	defer func() {
		if cause := recover(); cause != nil {
			a = answer{Unknown, "", fmt.Sprintf("internal error: %v", cause)}
		}
	}()
	return c.judge(in)
}

// seconds is the length of the time that was watched.
func (in *Input) seconds() float64 { return (in.After.At - in.Before.At).Seconds() }

// rate is how fast a counter of vmstat grew; false when it is not there.
func (in *Input) rate(name string) (float64, bool) {
	a, ok := in.Before.VM[name]
	b, ok2 := in.After.VM[name]
	if !ok || !ok2 || in.seconds() <= 0 || b < a {
		return 0, false
	}
	return float64(b-a) / in.seconds(), true
}

// text reads a node, trimmed; "" when it is not there.
func (in *Input) text(name string) string {
	c, err := in.Dev.Read(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(c.Text)
}

func (in *Input) last() *monitor.Sample {
	if len(in.Samples) == 0 {
		return &monitor.Sample{}
	}
	return in.Samples[len(in.Samples)-1]
}

// average of what is known in the samples; false when nothing is.
func (in *Input) average(of func(*monitor.Sample) *int64) (float64, bool) {
	sum, n := 0.0, 0
	for _, s := range in.Samples {
		if v := of(s); v != nil {
			sum += float64(*v)
			n++
		}
	}
	return sum / float64(max(n, 1)), n > 0
}

// wants reports whether the plan has a setting of a domain.
func (in *Input) wants(domain string) bool {
	if in.Plan == nil {
		return false
	}
	for _, s := range in.Plan.Settings {
		if s.Domain == domain {
			return true
		}
	}
	return false
}

// isolated are the cores that the running kernel keeps free.
func (in *Input) isolated() []int {
	list, err := cpulist.Parse(in.text("/sys/devices/system/cpu/isolated"))
	if err != nil {
		return nil
	}
	return list
}

// chosen is the bracketed word of a list such as "always [madvise] never".
func chosen(list string) string {
	_, rest, ok := strings.Cut(list, "[")
	word, _, ok2 := strings.Cut(rest, "]")
	if !ok || !ok2 {
		return strings.TrimSpace(list)
	}
	return word
}

// missingNodes lists files that nvpmodel.conf declares and that are not there.
// It stops at the first of them, and leaves the mode half set.
func missingNodes(dev rootfs.FS) []string {
	b, err := dev.ReadFile(power.ConfigFile, 1<<20)
	if err != nil {
		return nil
	}
	type arg struct{ name, file string }
	var args []arg
	param := false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "<") {
			param = strings.HasPrefix(strings.TrimSpace(strings.Trim(line, "<>")), "PARAM")
			continue
		}
		f := strings.Fields(line)
		if !param || len(f) < 2 || strings.HasPrefix(line, "#") || !strings.HasPrefix(f[1], "/sys/") || path.Clean(f[1]) != f[1] {
			continue
		}
		args = append(args, arg{f[0], f[1]})
	}
	there := func(file string) bool {
		_, err := dev.Mode(file)
		return !errors.Is(err, fs.ErrNotExist)
	}
	var out []string
	for i, a := range args {
		// One of a pair is for another kernel.
		pair := strings.HasSuffix(a.name, "_KNEXT") && i > 0 && there(args[i-1].file) ||
			i+1 < len(args) && args[i+1].name == a.name+"_KNEXT" && there(args[i+1].file)
		if !pair && !there(a.file) {
			out = append(out, a.file)
		}
	}
	return out
}
