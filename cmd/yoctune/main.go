// Command yoctune turns a configuration into a Yocto layer for Jetson devices.
//
// This folder holds flags, help and rendering: one file a subcommand, one
// constructor a file, all listed in root.go. What they do lives in compiler/.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
)

// gcPercent spends memory on speed: a run lasts a fraction of a second, and at
// the default the collector takes a third of it.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
