//go:build !manual

// Command yoctuned applies a tuning plan to a device and keeps it applied.
//
// This folder holds flags, help and rendering: one file a subcommand, one
// constructor a file, all listed in root.go. What they do lives below runtime/.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}
