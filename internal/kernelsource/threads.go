package kernelsource

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Thread is a place that starts kernel threads.
type Thread struct {
	Name   string // ksoftirqd/#: "#" stands for a number, "?" for a character and "*" for any text
	Bound  bool   // to one processor, for good (kthread_bind)
	Source string
	Needs  []string // options of the object and of the #ifdef around the line
}

var (
	threadCall = regexp.MustCompile(`\b(kthread_create|kthread_run|kthread_create_on_node|kthread_create_on_cpu|kthread_run_on_cpu|` +
		`kthread_create_worker|kthread_run_worker|kthread_create_worker_on_cpu|kthread_run_worker_on_cpu|nvgpu_thread_create|nvgpu_thread_create_priority)\s*\(`)
	threadComm = regexp.MustCompile(`\.thread_comm\s*=\s*"([^"\n]+)"`)
	// RCU names its threads by the flavour, which no call has as text.
	rcuName    = regexp.MustCompile(`\bdefine\s+RCU_NAME_RAW\s+"([^"]+)"`)
	rcuState   = regexp.MustCompile(`\bRCU_STATE_INITIALIZER\((rcu_\w+),`)
	textDefine = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+"([^"\n]*)"[ \t]*$`)
	conversion = regexp.MustCompile(`%[-+ #0-9.*]*(?:hh|h|ll|l|z|t)?(\w|%)`)
)

// nameAt is the index of the argument that names the thread.
var nameAt = map[string]int{
	"kthread_create": 2, "kthread_run": 2, "kthread_create_on_node": 3, "kthread_create_on_cpu": 3, "kthread_run_on_cpu": 3,
	"kthread_create_worker": 1, "kthread_run_worker": 1, "kthread_create_worker_on_cpu": 2, "kthread_run_worker_on_cpu": 2,
	"nvgpu_thread_create": 3, "nvgpu_thread_create_priority": 4,
}

// Threads lists the kernel threads of the tree whose names are known, sorted.
func (t *Tree) Threads(objects []Object) []Thread {
	x := &extractor{tree: t, clean: map[string]string{}}
	var found []Thread
	for _, o := range objects {
		if t.files[o.Source] == nil {
			continue
		}
		found = append(found, x.threads(o.Source, o)...)
		// RCU's sources are headers that its one object includes.
		for _, header := range []string{"tree.h", "tree_plugin.h", "tree_nocb.h", "tree_stall.h"} {
			if name := path.Join(path.Dir(o.Source), header); path.Base(path.Dir(o.Source)) == "rcu" && t.files[name] != nil {
				found = append(found, x.threads(name, o)...)
			}
		}
	}
	key := func(th Thread) string {
		bound := ""
		if th.Bound {
			bound = "b"
		}
		return strings.Join([]string{th.Name, th.Source, bound, strings.Join(th.Needs, ",")}, "\x00")
	}
	slices.SortFunc(found, func(a, b Thread) int { return cmp.Compare(key(a), key(b)) })
	return slices.CompactFunc(found, func(a, b Thread) bool { return key(a) == key(b) })
}

func (x *extractor) threads(source string, o Object) []Thread {
	f := &unit{x: x, source: source, object: o, text: x.text(source), macros: map[string]string{}}
	for _, m := range textDefine.FindAllStringSubmatch(f.text, -1) {
		f.macros[m[1]] = m[2]
	}
	var found []Thread
	var stack []branch
	for start := 0; start < len(f.text); {
		end := strings.IndexByte(f.text[start:], '\n')
		if end < 0 {
			end = len(f.text) - start
		}
		line := f.text[start : start+end]
		if directive, ok := strings.CutPrefix(strings.TrimSpace(line), "#"); ok {
			stack = preprocess(stack, strings.TrimSpace(directive))
		}
		if !isDead(stack) {
			for _, th := range f.threadsOf(f.text[start:], line) {
				th.Source, th.Needs = source, union(o.Needs, needsOf(stack))
				found = append(found, th)
			}
		}
		start += end + 1
	}
	return found
}

// threadsOf reads the threads that a line starts; text goes on after the line.
func (f *unit) threadsOf(text, line string) []Thread {
	var found []Thread
	add := func(format string, bound bool) {
		if name := threadPattern(format); name != "" {
			found = append(found, Thread{Name: name, Bound: bound})
		}
	}
	for _, at := range threadCall.FindAllStringSubmatchIndex(line, -1) {
		call := line[at[2]:at[3]]
		args := arguments(text[at[1]:])
		if n := nameAt[call]; n < len(args) {
			if format, ok := f.literal(args[n]); ok {
				add(format, strings.HasSuffix(call, "_on_cpu"))
			}
		}
	}
	if m := threadComm.FindStringSubmatch(line); m != nil {
		add(m[1], true)
	}
	for _, one := range []*regexp.Regexp{rcuName, rcuState} {
		if m := one.FindStringSubmatch(line); m != nil {
			add(m[1], false)
		}
	}
	return found
}

// threadPattern turns a format of printf into a pattern; "" where hardly anything is fixed.
func threadPattern(format string) string {
	fixed := conversion.ReplaceAllString(format, "")
	if len(strings.Trim(fixed, "-_/:. ")) < 2 || strings.ContainsAny(format, "#*?[]\\\t") {
		return ""
	}
	return conversion.ReplaceAllStringFunc(format, func(c string) string {
		switch c[len(c)-1] {
		case '%':
			return "%"
		case 'c':
			return "?"
		case 'd', 'i', 'u':
			return "#"
		}
		return "*"
	})
}

var featureName = regexp.MustCompile(`\[NETIF_F_\w+_BIT\]\s*=\s*"([^"]+)"`)

// NetFeatures lists the names of the features of network devices, as ethtool -k shows them.
func (t *Tree) NetFeatures() []string {
	var names []string
	for _, file := range []string{"net/core/ethtool.c", "net/ethtool/common.c"} {
		text := stripComments(string(t.files[path.Join(t.roots[0], file)]))
		for _, m := range featureName.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
