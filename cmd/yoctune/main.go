//go:build !manual

// Command yoctune turns a configuration into a Yocto layer for Jetson devices.
//
// This folder holds flags, help and rendering: one file a subcommand, one
// constructor a file, all listed in root.go. What they do lives in compiler/.
package main

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// gcPercent spends memory on speed: a run lasts a fraction of a second, and at the default
// the collector takes a third of it. From largeHeap bytes in use on, as for a fleet of a
// thousand targets, the default percentage applies, and the memory of the program stays below
// heapLimit bytes where three quarters of it are enough for what is in use.
const (
	gcPercent = 400
	largeHeap = 24 << 20
	heapLimit = 160 << 20
)

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		limitHeap()
	}
	// An interrupt ends the program: files are written atomically. Commands that must
	// clean up, such as check-layer and build, handle signals themselves.
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// limitHeap looks at the heap after each collection.
func limitHeap() {
	type marker struct{ _ *byte }
	runtime.AddCleanup(&marker{}, func(struct{}) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		switch used := live[0].Value.Uint64(); {
		case used > heapLimit*3/4:
			replaceMemoryLimit(heapLimit, math.MaxInt64)
			return
		case used >= largeHeap:
			debug.SetGCPercent(100)
			replaceMemoryLimit(math.MaxInt64, heapLimit)
		}
		limitHeap()
	}, struct{}{})
}

// replaceMemoryLimit keeps a limit that the environment or the command has set.
func replaceMemoryLimit(from, to int64) {
	if debug.SetMemoryLimit(-1) == from {
		debug.SetMemoryLimit(to)
	}
}
