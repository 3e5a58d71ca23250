//go:build !manual

// Command yoctune turns a configuration into a Yocto layer for Jetson devices.
//
// This folder holds flags, help and rendering: one file a subcommand, one
// constructor a file, all listed in root.go. What they do lives in compiler/.
package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// gcPercent spends memory on speed: a run lasts a fraction of a second, and at the default
// the collector takes a third of it. From largeHeap bytes in use on, as for a fleet of a
// thousand targets, the default percentage applies.
const (
	gcPercent = 400
	largeHeap = 24 << 20
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

// limitHeap looks at the heap after each collection, until it is large.
func limitHeap() {
	type marker struct{ _ *byte }
	runtime.AddCleanup(&marker{}, func(struct{}) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if live[0].Value.Uint64() < largeHeap {
			limitHeap()
			return
		}
		debug.SetGCPercent(100)
	}, struct{}{})
}
