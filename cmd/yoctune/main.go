//go:build !manual

// Command yoctune turns a configuration into a Yocto layer for Jetson devices.
//
// This folder holds flags, help and rendering: one file a subcommand, one
// constructor a file, all listed in root.go. What they do lives in compiler/.
package main

import (
	"context"
	"os"
	"runtime/debug"
)

// gcPercent spends memory on speed: a run lasts a fraction of a second, and at
// the default the collector takes a third of it.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	// An interrupt ends the program: files are written atomically. Commands that must
	// clean up, such as check-layer and build, handle signals themselves.
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}
