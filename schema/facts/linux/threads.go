package linux

import (
	_ "embed"
	"iter"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/nametable"
)

//go:embed threads.bin
var threadData []byte

//go:embed features.bin
var featureData []byte

var (
	threadTable  = sync.OnceValue(func() *nametable.Table { return nametable.Open(threadData) })
	featureTable = sync.OnceValue(func() *nametable.Table { return nametable.Open(featureData) })
)

// Thread is a kind of kernel threads of one kernel.
type Thread struct {
	Name string // a glob, such as ksoftirqd/*
	// Needs are alternatives, each of them options that must all be on; none where every kernel
	// starts the threads.
	Needs [][]string
	Bound bool // each to one processor, for good
}

// Kernels lists the kernels of the tables.
func Kernels() []string {
	var lines []string
	for _, s := range kernel.Sets() {
		lines = append(lines, s.Name)
	}
	return lines
}

// Threads yields the kernel threads of a kernel whose names are known, by name. Threads that are
// named after a device or a work queue only are not among them.
func Threads(line string) iter.Seq[Thread] {
	n := lineIndex(line)
	return func(yield func(Thread) bool) {
		for name, rest := range threadTable().All() {
			if t, ok := parseThread(name, rest, n); ok && !yield(t) {
				return
			}
		}
	}
}

func parseThread(name, rest string, n int) (Thread, bool) {
	for variant := range strings.SplitSeq(rest, "\t") {
		f := strings.Split(variant, ";")
		if len(f) != 3 || !holds(f[0], n) {
			continue
		}
		t := Thread{Name: name, Bound: f[2] != ""}
		if f[1] != "" {
			for alternative := range strings.SplitSeq(f[1], "/") {
				t.Needs = append(t.Needs, strings.Split(alternative, "&"))
			}
		}
		return t, true
	}
	return Thread{}, false
}

// NetFeatures lists the features of network interfaces of a kernel, by name.
func NetFeatures(line string) []string {
	n := lineIndex(line)
	var names []string
	for name, rest := range featureTable().All() {
		for variant := range strings.SplitSeq(rest, "\t") {
			if mask, _, _ := strings.Cut(variant, ";"); holds(mask, n) {
				names = append(names, name)
			}
		}
	}
	return names
}
