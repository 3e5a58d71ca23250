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
// heapLimit bytes or, if that is more, one and a half times what is in use.
const (
	gcPercent = 400
	largeHeap = 24 << 20
	heapLimit = 152 << 20
)

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		limitHeap(math.MaxInt64)
	}
	// An interrupt ends the program: files are written atomically. Commands that must
	// clean up, such as check-layer and build, handle signals themselves.
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// limitHeap looks at the heap after each collection. limit is the memory limit that it has set; one
// that the environment or the command sets stays.
func limitHeap(limit int64) {
	type marker struct{ _ *byte }
	runtime.AddCleanup(&marker{}, func(struct{}) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		used := int64(live[0].Value.Uint64())
		if used >= largeHeap && debug.SetMemoryLimit(-1) == limit {
			debug.SetGCPercent(100)
			limit = max(heapLimit, used*3/2)
			debug.SetMemoryLimit(limit)
		}
		limitHeap(limit)
	}, struct{}{})
}
